"""What the mutants did when they were last measured: mutants/detected.json; and which of them each zone rejects:
rejected.json beside it.

`conformance mutants --record` writes it. `zones check` judges it anew by zones as they are: a zone that accepts every
mutant of its algorithm is no use, and to know that, nothing has to be measured.
"""

import collections
import dataclasses
import functools
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.catalogue import documents, own_kind
from conformance.model import grid, verdict
from conformance.model import place as places
from conformance.model.errors import UserError
from conformance.model.metrics import METRICS
from conformance.model.place import Place
from conformance.model.studies.mutants import Where
from conformance.model.trial import Measurement, Outcome
from conformance.model.zone import Zone, id_parts
from conformance.support import files, paths, schema

#: of a zone over a grid, mutants are measured in these cells unless a user asks for more
GRID = "10mbps"
_DIGITS = 6


def path() -> pathlib.Path:
    return paths.PACKAGE.parent / "mutants" / "detected.json"


def limited(zone: Zone, to: str = GRID) -> Zone:
    """Return the part of a zone that mutants are judged by. Raises UserError where there is no such grid."""
    if id_parts(zone.id)[1] not in documents.GRID_ZONES:
        return zone
    cells = grid.cells(to)
    return dataclasses.replace(zone, intervals={c: i for c, i in zone.intervals.items() if c in cells})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """What a mutant did in one cell, or at one point.

    `values`: {metric: one of each trial}; `timed_out`: of which trials, in order.
    """

    mutant: str
    profile: str
    profile_digest: str
    cell: Place
    values: Mapping[str, list[float]]
    timed_out: Sequence[bool]

    @property
    def algorithm(self) -> str:
        """The one that the mutant claims to be."""
        return self.mutant.partition("-")[0]

    def outside(self, zone: Zone) -> bool | None:
        """Say whether a limited() zone's interval rejects it, by however many trials; None where it has no such.

        That is asked of a cell that is not counted, too: its interval is shown, and is not to permit everything.
        """
        judged = self.profile_digest == zone.digest_at(self.cell) and zone.metric in self.values
        if not judged or self.cell not in zone.intervals:
            return None
        counted = dataclasses.replace(zone.intervals[self.cell], counted=True)
        asked = dataclasses.replace(zone, intervals={self.cell: counted})
        return verdict.violates(asked, self.cell, self.values[zone.metric], self.timed_out, len(zone.intervals))

    def violates(self, zone: Zone) -> bool | None:
        """Say whether it violates a limited() zone of the algorithm that it claims to be; None of all others.

        Only in a cell that is counted.
        """
        if self.algorithm != zone.algorithm:
            return None
        outside = self.outside(zone)
        return outside and zone.intervals[self.cell].counted

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "cell": self.cell.id}


def measured(mutant_id: str, measurements: Sequence[Measurement]) -> Measured | None:
    """Return the Measured of a mutant's measurements of one cell; None where any failed."""
    if any(m.outcome not in (Outcome.OK, Outcome.TIMEOUT) for m in measurements):
        return None
    setting = measurements[0].trial.setting
    values = {
        metric: [round(v, _DIGITS) for m in measurements if (v := own_kind.value(m, metric)) is not None]
        for metric in METRICS
    }
    return Measured(
        mutant=mutant_id,
        profile=setting.profile,
        profile_digest=setting.profile_digest,
        cell=places.of(setting),
        values={name: found for name, found in values.items() if len(found) == len(measurements)},
        timed_out=[m.outcome is Outcome.TIMEOUT for m in measurements],
    )


@functools.cache
def _load(at: pathlib.Path, _changed: int) -> tuple[Measured, ...]:
    try:
        return tuple(Measured(**{**row, "cell": places.parse(row["cell"])}) for row in schema.read(at))
    except (ValueError, KeyError, TypeError, AttributeError, UserError) as error:
        why = f"{at}: not a record of mutants: {type(error).__name__}: {error}"
        raise UserError(why, "write it anew with `conformance mutants --record`") from None


def load() -> tuple[Measured, ...]:
    """Return all that is Measured; nothing where there is no file. Raises UserError."""
    at = path()
    return _load(at, at.stat().st_mtime_ns) if at.exists() else ()


def record(found: Iterable[Measured]) -> pathlib.Path:
    """Write what is Measured of all mutants; the file's path. Raises UserError."""
    rows = sorted(found, key=lambda one: (one.mutant, one.profile, one.cell))
    files.write(path(), "[\n" + ",\n".join(json.dumps(row.to_json()) for row in rows) + "\n]\n")
    return path()


def shipped() -> list[Zone]:
    """Return the zones over cells that ship, each limited()."""
    found = map(documents.any_zone, documents.zone_files("*"))
    return [limited(zone) for zone in found if isinstance(zone, Zone)]


def rejected_by(zones: Sequence[Zone], found: Iterable[Measured]) -> dict[str, set[str]]:
    """Return {mutant: ids of the zones that reject it}, of what is Measured."""
    rejected: dict[str, set[str]] = collections.defaultdict(set)
    for one in found:
        rejected[one.mutant].update(zone.id for zone in zones if one.violates(zone))
    return rejected


def telling(mutant_id: str, zones: Sequence[Zone]) -> tuple[list[Where], list[Where]]:
    """Return what told this mutant, and what told others: each [(profile, cell)]; see model.mutants.order()."""
    told = [(one.mutant, (one.profile, one.cell)) for one in load() if any(one.violates(zone) for zone in zones)]
    return [where for mutant, where in told if mutant == mutant_id], [where for _, where in told]


def check(whole: Zone, file: object, anew: bool = False) -> str:
    """Return what there is to say of a zone.

    Raises UserError where it accepts every mutant it was tried on, or, unless `anew`, one that it rejected when keep()
    was called.
    """
    zone = limited(whole)
    rejected, cells, own = _rejected(zone)
    if not cells:
        return "tried on no mutant"
    if zone.digests and not rejected and not any(permitted.counted for permitted in zone.intervals.values()):
        return "counts no point, and rejects no mutant"
    accepted = {mutant for mutant, n in cells.items() if n == len(zone.intervals)} - rejected
    if not rejected:
        raise UserError(
            f"{file}: it accepts every mutant{'' if own else ' of any algorithm'} that it was tried on"
            f" ({', '.join(sorted(cells))})",
            "narrow it, or give it cells that tell them apart",
        )
    if not anew and (lost := sorted(_kept().get(zone.id, set()) & set(cells) - rejected)):
        raise UserError(
            f"{file}: it accepts {', '.join(lost)} now, which it rejected before",
            "narrow it; if that is meant, run `conformance zones check --record`",
        )
    whose = "" if own else ", and none of its own"
    return f"rejects {len(rejected)} of {len(rejected | accepted)} mutants{whose}"


def keep() -> pathlib.Path:
    """Write down which mutants each zone that ships rejects, so that none is lost without a word; the file's path."""
    found = {zone.id: sorted(_rejected(zone)[0]) for zone in shipped()}
    rows = [f"{json.dumps(zone_id)}: {json.dumps(mutants)}" for zone_id, mutants in sorted(found.items())]
    files.write(_kept_path(), "{\n" + ",\n".join(rows) + "\n}\n")
    return _kept_path()


def _kept_path() -> pathlib.Path:
    return path().with_name("rejected.json")


def _kept() -> dict[str, set[str]]:
    """Return {zone id: mutants that it rejected}; nothing where there is no file. Raises UserError."""
    at = _kept_path()
    try:
        return {zone_id: set(mutants) for zone_id, mutants in schema.read(at).items()} if at.exists() else {}
    except (TypeError, AttributeError, UserError) as error:
        raise UserError(f"{at}: not what zones reject: {error}", "run `conformance zones check --record`") from None


def _rejected(zone: Zone) -> tuple[set[str], collections.Counter[str], bool]:
    """Return (mutants that a limited() zone rejects, {mutant: cells in which it was tried}, whether they are of its
    own).

    Of its own algorithm, where that has any that were measured in its cells; else of all. Others' are no less wrong: a
    CUBIC with a bug is no BBRv3. Points of a scenario have several zones, of one metric each, and what its own mutants
    do may show in another metric only; so of these, too, all are asked where none of its own is rejected.
    """
    tried = [(one, outside) for one in load() if (outside := one.outside(zone)) is not None]
    own = [(one.mutant, outside) for one, outside in tried if one.algorithm == zone.algorithm]
    if zone.digests and not any(outside for _, outside in own):
        own = []
    judged = own or [(one.mutant, outside) for one, outside in tried]
    cells = collections.Counter(mutant for mutant, _ in judged)
    return {mutant for mutant, outside in judged if outside}, cells, bool(own)
