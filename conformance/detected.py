"""What the mutants did when they were last measured: tests/mutants/detected.json.

`conformance mutants --record` writes it. `zones check` judges it anew by zones as they are: a zone that accepts every
mutant of its algorithm is no use, and to know that, nothing has to be measured.
"""

import collections
import dataclasses
import functools
import json

from conformance import files, paths, schema, specs
from conformance.model import grid, verdict
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.trial import Outcome
from conformance.model.zone import Zone

#: of a zone over a grid, mutants are measured in these cells
GRID = "10mbps"
_METRICS = tuple(dict.fromkeys(specs.METRICS.values()))
_DIGITS = 6


def path():
    return paths.PACKAGE.parent / "tests" / "mutants" / "detected.json"


def limited(zone):
    """The part of a zone that mutants are judged by."""
    if zone.id.partition("/")[2] not in specs.GRID_ZONES:
        return zone
    cells = grid.cells(GRID)
    return dataclasses.replace(zone, intervals={c: i for c, i in zone.intervals.items() if c in cells})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """What a mutant did in one cell. `values`: {metric: one of each trial}; `timed_out`: of which trials, in order."""

    mutant: str
    profile: str
    profile_digest: str
    cell: Cell
    values: dict[str, list[float]]
    timed_out: list[bool]

    def violates(self, zone):
        """Whether a limited() zone says so, of however many trials; None where it does not judge this.

        A mutant is judged by the zones of the algorithm that it claims to be.
        """
        own = self.mutant.startswith(f"{zone.algorithm}-") and self.profile_digest == zone.profile_digest
        if not own or zone.metric not in self.values or self.cell not in zone.intervals:
            return None
        return verdict.violates(zone, self.cell, self.values[zone.metric], self.timed_out, len(zone.intervals))

    def to_json(self):
        return {**dataclasses.asdict(self), "cell": self.cell.id}


def measured(mutant_id, measurements):
    """The Measured of a mutant's measurements of one cell; None where any failed."""
    if any(m.outcome not in (Outcome.OK, Outcome.TIMEOUT) for m in measurements):
        return None
    setting = measurements[0].trial.setting
    values = {metric: [m.value(metric) for m in measurements] for metric in _METRICS}
    return Measured(
        mutant=mutant_id,
        profile=setting.profile,
        profile_digest=setting.profile_digest,
        cell=setting.cell,
        values={name: [round(v, _DIGITS) for v in found] for name, found in values.items() if None not in found},
        timed_out=[m.outcome is Outcome.TIMEOUT for m in measurements],
    )


@functools.cache
def _load(at, _changed):
    try:
        return tuple(Measured(**{**row, "cell": Cell.parse(row["cell"])}) for row in schema.read(at))
    except (ValueError, KeyError, TypeError, AttributeError, UserError) as error:
        why = f"{at}: not a record of mutants: {type(error).__name__}: {error}"
        raise UserError(why, "write it anew with `conformance mutants --record`") from None


def load():
    """All that is Measured; nothing where there is no file. Raises UserError."""
    at = path()
    return _load(at, at.stat().st_mtime_ns) if at.exists() else ()


def record(found):
    """Write what is Measured of all mutants; the file's path. Raises UserError."""
    rows = sorted(found, key=lambda one: (one.mutant, one.profile, one.cell))
    files.write(path(), "[\n" + ",\n".join(json.dumps(row.to_json()) for row in rows) + "\n]\n")
    return path()


def shipped():
    """The zones over cells that ship, each limited()."""
    found = map(specs.any_zone, specs.zone_files("*"))
    return [limited(zone) for zone in found if isinstance(zone, Zone)]


def rejected_by(zones, found):
    """{mutant: ids of the zones that reject it}, of what is Measured."""
    rejected = collections.defaultdict(set)
    for one in found:
        rejected[one.mutant].update(zone.id for zone in zones if one.violates(zone))
    return rejected


def telling(mutant_id, zones):
    """What told this mutant, and what told others: each [(profile, cell)]; see model.mutants.order()."""
    told = [(one.mutant, (one.profile, one.cell)) for one in load() if any(one.violates(zone) for zone in zones)]
    return [where for mutant, where in told if mutant == mutant_id], [where for _, where in told]


def check(whole, file):
    """What there is to say of a zone, perhaps nothing. Raises UserError where it accepts every mutant it was tried on.

    Zones of algorithms that have no mutants were tried on none.
    """
    zone = limited(whole)
    judged = [(one.mutant, violates) for one in load() if (violates := one.violates(zone)) is not None]
    if not judged:
        return None
    rejected = {mutant for mutant, violates in judged if violates}
    cells = collections.Counter(mutant for mutant, _ in judged)
    accepted = {mutant for mutant, n in cells.items() if n == len(zone.intervals)} - rejected
    if not rejected:
        tried = ", ".join(sorted(cells))
        raise UserError(
            f"{file}: it accepts every mutant of {zone.algorithm} that it was tried on ({tried})",
            "narrow it, or give it cells that tell them apart",
        )
    return f"rejects {len(rejected)} of {len(rejected | accepted)} mutants"
