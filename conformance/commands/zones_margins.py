"""`conformance dev zones margins`: compute by how much honest implementations differ, and the margins that follow."""

import collections
import dataclasses
import json
import pathlib
import statistics
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated

from conformance.catalogue import documents
from conformance.commands.result import Result
from conformance.model.errors import UserError
from conformance.model.judging.margins import Median, Spread, spreads
from conformance.model.judging.transport import TransportFactor, factors
from conformance.model.judging.verdict import packet_bytes
from conformance.model.judging.zone import Zone, judges, kind_of
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import files, paths, schema
from conformance.support.record import At, Record, Text

#: implementations that share no code are measured over UDP, so margins are computed from the zones under this profile
_PROFILE = "packets"
#: what ignores loss, so that its stacks show what QUIC has beside TCP; and the algorithms whose zones that is stated in
_TRANSPORT_BY, _TRANSPORT_OF = "bbrv1", ("bbrv2", "bbrv3")


class SpreadRecord(Record):
    relative: float
    #: Standard deviation of the logarithms of implementations' medians within a cell.
    spread: float
    #: How far the farthest median lies outside those of all bases, as a share.
    farthest: float
    #: The absolute margin there; null if it is the metric's own.
    absolute: float | None
    implementations: list[str]
    cells: int


class TransportRecord(Record):
    #: By what the kernel's basis is multiplied.
    factor: float
    #: Standard deviation, over the stacks, of the logarithm of a stack's mean over the cells.
    spread: float
    implementations: list[str]
    cells: int


class MarginsRecord(Record):
    #: The file in which they were kept, or null.
    path: Text | None
    #: By zone and kind of cell (conformance/model/judging/margins.py): the margins there, and what they rest on.
    zones: Annotated[
        dict[str, dict[str, SpreadRecord]],
        At(lambda margins: {name: {each.kind: each for each in of_zone} for name, of_zone in margins.zones.items()}),
    ]
    #: By kind of cell (conformance/model/judging/transport.py): what QUIC has beside TCP with the same algorithm.
    transport: Annotated[
        dict[str, TransportRecord], At(lambda margins: {factor.kind: factor for factor in margins.transport})
    ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Margins(Result):
    """{zone id: the Spread of each kind of its cells}, and what QUIC has beside TCP, if the results tell.

    `path`: the file that they were written to, if any.
    """

    SCHEMA = "zones-margins"
    RECORD = MarginsRecord

    zones: Mapping[str, tuple[Spread, ...]]
    transport: tuple[TransportFactor, ...]
    path: pathlib.Path | None


def path() -> pathlib.Path:
    """Return the path of the file that keeps margins."""
    return paths.data("zones", "margins.json")


def compute(results: Iterable[pathlib.Path], record: bool = False) -> Margins:
    """Compute margins from measurements of the stacks that the file at path() lists as honest, and what QUIC has
    beside TCP from those that it lists under transport. Raise UserError.

    With `record`, the margins are written to path(); zones then have to be derived anew. Algorithms of which `results`
    has no honest stack are left out, and so are zones for which it has fewer than two. Kinds of cells of a zone that
    `results` does not cover keep their recorded margins.
    """
    kept = schema.load("margins", path())
    held = store.read(*results)
    spreads_of: dict[str, tuple[Spread, ...]] = {}
    kinds: dict[str, set[str]] = {}
    for algorithm, honest in kept["honest"].items():
        grids = [documents.zone_of(algorithm, kind, _PROFILE) for kind in documents.KINDS]
        for zone in [*grids, *_of_scenarios(algorithm)]:
            faults = {stack: about["kinds"] for stack, about in kept.get("faults", {}).get(algorithm, {}).items()}
            medians = {
                stack: of_stack
                for stack in honest
                if (of_stack := _honest(_medians(held, algorithm, stack, zone), zone, faults.get(stack, ())))
            }
            if zone_spreads := spreads(zone, medians):
                spreads_of[zone.id] = tuple(zone_spreads)
                kinds[zone.id] = {kind_of(place, zone.metric) for place in zone.intervals}
    transport = _transport(held, kept["transport"]["stacks"])
    if not spreads_of and not transport:
        names = sorted({stack for honest in kept["honest"].values() for stack in honest})
        raise UserError("these results contain none of the stacks that margins rest on", f"measure {', '.join(names)}")
    if record:
        zones = {
            name: {kind: what for kind, what in kept["zones"].get(name, {}).items() if kind in kinds[name]}
            | {spread.kind: spread.to_json() for spread in spread}
            for name, spread in spreads_of.items()
        }
        document = {**kept, "zones": {**kept["zones"], **zones}}
        if transport:
            by_kind = {factor.kind: factor.to_json() for factor in transport}
            of_zones = {documents.zone_of(name, documents.KINDS[0], _PROFILE).id: by_kind for name in _TRANSPORT_OF}
            document["transport"] = {**kept["transport"], "zones": of_zones}
        files.write(path(), json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return Margins(zones=spreads_of, transport=transport, path=path() if record else None)


def _transport(held: Iterable[Measurement], stacks: Iterable[str]) -> tuple[TransportFactor, ...]:
    """Return what QUIC has beside TCP; nothing if there are no results of these stacks. Raise UserError for too few."""
    zone = documents.zone_of(_TRANSPORT_BY, documents.KINDS[0], _PROFILE)
    medians = {stack: of_stack for stack in stacks if (of_stack := _medians(held, _TRANSPORT_BY, stack, zone))}
    return tuple(factors(zone, medians)) if medians else ()


def _honest(medians: Mapping[Point, Median], zone: Zone, faults: Collection[str]) -> dict[Point, Median]:
    """Return the medians without places of the kinds in which the stack is known to depart from the document."""
    return {place: median for place, median in medians.items() if kind_of(place, zone.metric) not in faults}


def _of_scenarios(algorithm: str) -> list[Zone]:
    """Return the zones of an algorithm over points of scenarios."""
    zones = map(documents.zone, documents.judging_files())
    return [zone for zone in zones if not zone.of_cells and zone.algorithm == algorithm]


def _medians(held: Iterable[Measurement], algorithm: str, stack: str, zone: Zone) -> dict[Point, Median]:
    """Return {place: Median} of the zone's metric over a stack's completed trials of an algorithm.

    Raise UserError if they are of several builds, kernels, rooms or lab versions.
    """
    by_place: dict[Point, list[Measurement]] = collections.defaultdict(list)
    for m in held:
        setting = m.trial.setting
        if (m.trial.scheme.stack, m.trial.scheme.algorithm, m.outcome) != (stack, algorithm, Outcome.OK):
            continue
        if not setting.segments and judges(zone, setting, place := setting.point):
            by_place[place].append(m)
    if len({m.trial.run for measurements in by_place.values() for m in measurements}) > 1:
        raise UserError(f"results of {stack}'s {algorithm} are from runs that differ", "give results of one run")
    medians: dict[Point, Median] = {}
    for place, measurements in by_place.items():
        values = [value for m in measurements if (value := zone.value(m)) is not None]
        if values:
            medians[place] = statistics.median(values), packet_bytes(measurements)
    return medians
