"""Keep what the mutants did when they were last measured (mutants/detected.json), and which of them each zone rejects
(rejected.json beside it).

`conformance dev mutants --record` writes detected.json. `zones check` judges it anew by the present zones: a zone that
accepts every mutant of its algorithm is useless, and nothing has to be measured to find that.
"""

import collections
import dataclasses
import functools
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformance.catalogue import documents, own_kind
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging import grid, kinds, verdict
from conformance.model.judging.zone import Zone, id_parts
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point
from conformance.model.studies.mutants import Where
from conformance.model.trials.trial import Measurement, Outcome
from conformance.support import files, paths, schema

#: the cells of a zone over a grid in which mutants are measured, unless a user asks for more
GRID = "10mbps"
_DIGITS = 6


def _counted(zone: Zone) -> set[Point]:
    """Return the cells or points that a zone judges, or the kinds of them; others are shown only."""
    if zone.by_kind:
        return {rule.place for rule in _kinds(zone)}
    return {place for place, permitted in zone.intervals.items() if permitted.counted}


def _kinds(zone: Zone) -> list[kinds.Amount]:
    """Return the rules for how much a zone permits in kinds of its cells. How even these are needs whole trials."""
    return [rule for rule in kinds.rules(zone, zone.places) if isinstance(rule, kinds.Amount) and rule.judgeable]


def path() -> pathlib.Path:
    return paths.PACKAGE.parent / "mutants" / "detected.json"


def _over_grid(zone: Zone) -> bool:
    return id_parts(zone.id)[1] in documents.GRID_ZONES


def limited(zone: Zone, to: str = GRID) -> Zone:
    """Return the part of a zone that mutants are judged by. Raises UserError if there is no such grid."""
    if not _over_grid(zone):
        return zone
    cells = grid.cells(to)
    return dataclasses.replace(zone, intervals={c: i for c, i in zone.intervals.items() if c in cells})


@dataclasses.dataclass(frozen=True, kw_only=True)
class MutantTrials:
    """What a mutant did in one cell, or at one point.

    `values`: {metric: one value for each trial}; `timed_out`: whether each trial timed out, in the same order.
    `packet_bytes`: how many bytes its packets carried; None in older records, which counts as full packets.
    """

    mutant: str
    profile: str
    profile_digest: str
    cell: Point
    values: Mapping[str, list[float]]
    timed_out: Sequence[bool]
    packet_bytes: float | None = None

    @property
    def algorithm(self) -> str:
        """The algorithm that the mutant claims to be."""
        return _algorithm(self.mutant)

    def fits(self, zone: Zone) -> bool:
        """Return whether a zone has an interval for its trials."""
        is_there = self.cell in zone.intervals and self.profile_digest == zone.digest_at(self.cell)
        return is_there and zone.metric in self.values

    def outside(self, zone: Zone) -> bool | None:
        """Return whether a limited() zone's interval rejects it, with the trials that there are; None if the zone does
        not count such an interval.
        """
        if not self.fits(zone) or not zone.intervals[self.cell].counted:
            return None
        permitted, values = zone.intervals[self.cell].at(self.packet_bytes), self.values[zone.metric]
        status = verdict.status_in(zone.metric, permitted, values, len(zone.intervals), self.timed_out)
        return status is verdict.Status.VIOLATES

    def to_json(self) -> dict[str, Any]:
        fields = {**dataclasses.asdict(self), "cell": self.cell.id}
        return {name: given for name, given in fields.items() if given is not None}


def measured(mutant_id: str, measurements: Sequence[Measurement]) -> MutantTrials | None:
    """Return the MutantTrials of a mutant's measurements of one cell; None if any trial failed."""
    if any(m.outcome not in (Outcome.OK, Outcome.TIMEOUT) for m in measurements):
        return None
    setting = measurements[0].setting
    values = {
        metric: [round(v, _DIGITS) for m in measurements if (v := own_kind.value(m, metric)) is not None]
        for metric in METRICS
    }
    return MutantTrials(
        mutant=mutant_id,
        profile=setting.profile,
        profile_digest=setting.profile_digest,
        cell=setting.point,
        values={name: numbers for name, numbers in values.items() if len(numbers) == len(measurements)},
        timed_out=[m.outcome is Outcome.TIMEOUT for m in measurements],
        packet_bytes=None if (size := verdict.packet_bytes(measurements)) is None else round(size, 1),
    )


@functools.cache
def _load(at: pathlib.Path, _changed: int) -> tuple[MutantTrials, ...]:
    try:
        return tuple(MutantTrials(**{**row, "cell": Point.parse(row["cell"])}) for row in schema.read(at))
    except (ValueError, KeyError, TypeError, AttributeError, UserError) as error:
        why = f"{at}: not a record of mutants: {type(error).__name__}: {error}"
        raise UserError(why, "write it again with `conformance dev mutants --record`") from None


def load() -> tuple[MutantTrials, ...]:
    """Return every MutantTrials in the record; nothing if there is no file. Raises UserError."""
    at = path()
    return _load(at, at.stat().st_mtime_ns) if at.exists() else ()


def record(measured: Iterable[MutantTrials]) -> pathlib.Path:
    """Write the MutantTrials of all mutants; return the file's path. Raises UserError."""
    rows = sorted(measured, key=lambda trials: (trials.mutant, trials.profile, trials.cell))
    files.write(path(), "[\n" + ",\n".join(json.dumps(row.to_json()) for row in rows) + "\n]\n")
    return path()


def shipped() -> list[Zone]:
    """Return the zones over cells that ship, each limited()."""
    return [limited(documents.zone(file)) for file in documents.zone_files("*")]


def _algorithm(mutant: str) -> str:
    return mutant.partition("-")[0]


def judged(zone: Zone, measured: Iterable[MutantTrials]) -> Iterator[tuple[str, bool]]:
    """Yield (mutant, whether a limited() zone rejects it) for each cell in which it was tried, or each kind of cells in
    all of which it was tried, if the zone judges these.
    """
    if not zone.by_kind:
        each = ((trials.mutant, trials.outside(zone)) for trials in measured)
        yield from ((mutant, outside) for mutant, outside in each if outside is not None)
        return
    rules = _kinds(zone)
    for mutant, of_mutant in grouped((trials.mutant, trials) for trials in measured if trials.fits(zone)).items():
        by_cell = {trials.cell: trials for trials in of_mutant}
        for rule in rules:
            if by_cell.keys() >= set(rule.cells):
                there = {cell: by_cell[cell] for cell in rule.cells}
                values = {cell: trials.values[zone.metric] for cell, trials in there.items()}
                late = [any(at) for at in zip(*(trials.timed_out for trials in there.values()), strict=False)]
                yield mutant, rule.of_values(values, late, len(rules)).status is verdict.Status.VIOLATES


def rejects_own(zone: Zone, measured: Iterable[MutantTrials]) -> bool:
    """Return whether a limited() zone rejects any mutant of its algorithm."""
    return any(outside for mutant, outside in judged(zone, measured) if _algorithm(mutant) == zone.algorithm)


def rejected_by(zones: Sequence[Zone], measured: Iterable[MutantTrials]) -> dict[str, set[str]]:
    """Return {mutant: ids of the zones of its algorithm that reject it}, by these MutantTrials."""
    held = list(measured)
    rejected: dict[str, set[str]] = {trials.mutant: set() for trials in held}
    for zone in zones:
        for mutant, outside in judged(zone, held):
            if outside and _algorithm(mutant) == zone.algorithm:
                rejected[mutant].add(zone.id)
    return rejected


def telling(mutant_id: str, zones: Sequence[Zone]) -> tuple[list[Where], list[Where]]:
    """Return (places where this mutant was told from its algorithm, the same for all mutants), each [(profile, cell)];
    see model.studies.mutants.order().
    """
    rejected = [
        (trials.mutant, (trials.profile, trials.cell))
        for trials in load()
        if any(trials.algorithm == zone.algorithm and trials.outside(zone) for zone in zones)
    ]
    return [where for mutant, where in rejected if mutant == mutant_id], [where for _, where in rejected]


def check(whole: Zone, file: object, anew: bool = False) -> str:
    """Return a line about the mutants that a zone rejects.

    Raises UserError if the zone accepts every mutant it was tried on or, unless `anew`, a mutant that it rejected when
    keep() was called.
    """
    zone = limited(whole)
    if not _counted(zone) and zone.of_cells:
        raise UserError(f"{file}: no cell counts, so it accepts every mutant", "give it cells that tell enough")
    rejected, cells, of_algorithm = _rejected(zone)
    if cells and not rejected:
        raise UserError(
            f"{file}: it accepts every mutant{'' if of_algorithm else ' of any algorithm'} that it was tried on"
            f" ({', '.join(sorted(cells))})",
            "narrow it, or give it cells in which mutants differ from the algorithm",
        )
    # Also lost is a mutant in whose cells the zone judges no longer, or under another profile than was measured.
    known = {trials.mutant for trials in load()}
    if not anew and (lost := sorted((_kept().get(zone.id, set()) & known) - rejected)):
        raise UserError(
            f"{file}: it now accepts {', '.join(lost)}, which it rejected before",
            "narrow it; if this is intended, run `conformance zones check --record`",
        )
    if not cells:
        return "tried on no mutants" if _counted(zone) else "judges nothing"
    accepted = {mutant for mutant, n in cells.items() if n == len(_counted(zone))} - rejected
    whose = "" if of_algorithm else ", none of them of its own algorithm"
    return f"rejects {len(rejected)} of {len(rejected | accepted)} mutants{whose}"


def keep() -> pathlib.Path:
    """Record which mutants each zone that ships rejects, so that check() notices when one is lost; return the file's
    path.
    """
    rejected = {zone.id: sorted(_rejected(zone)[0]) for zone in shipped()}
    rows = [f"{json.dumps(zone_id)}: {json.dumps(mutants)}" for zone_id, mutants in sorted(rejected.items())]
    files.write(_kept_path(), "{\n" + ",\n".join(rows) + "\n}\n")
    return _kept_path()


def _kept_path() -> pathlib.Path:
    return path().with_name("rejected.json")


def _kept() -> dict[str, set[str]]:
    """Return {zone id: mutants that it rejected}; nothing if there is no file. Raises UserError."""
    at = _kept_path()
    try:
        return {zone_id: set(mutants) for zone_id, mutants in schema.read(at).items()} if at.exists() else {}
    except (TypeError, AttributeError, UserError) as error:
        raise UserError(
            f"{at}: not a record of what zones reject: {error}", "run `conformance zones check --record`"
        ) from None


def _rejected(zone: Zone) -> tuple[set[str], collections.Counter[str], bool]:
    """Return (mutants that a limited() zone rejects, {mutant: in how many cells, or kinds of them, it was tried},
    whether these are mutants of its own algorithm).

    A zone is tried on the mutants of its own algorithm if any were measured in its cells, else on all mutants. Those of
    other algorithms are just as wrong: a CUBIC with a bug is no BBRv3. Other zones judge the points of a scenario, or
    look at other cells than the few of this one, and what a mutant does may show only there. So if a zone that is not
    over a grid rejects no mutant of its own, it is tried on all, too.
    """
    tried = list(judged(zone, load()))
    of_algorithm = [(mutant, outside) for mutant, outside in tried if _algorithm(mutant) == zone.algorithm]
    if not _over_grid(zone) and not any(outside for _, outside in of_algorithm):
        of_algorithm = []
    counted = of_algorithm or tried
    cells = collections.Counter(mutant for mutant, _ in counted)
    return {mutant for mutant, outside in counted if outside}, cells, bool(of_algorithm)
