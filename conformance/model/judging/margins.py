"""Compute how far honest implementations differ, and the margins that follow, by kind of cell or point.

Cells are of one kind if the same things make implementations differ in them: without random loss, how a sender fills a
queue; at a delay of 1 ms, its timers; elsewhere, how often it has a timeout. For loss, each cell without random loss is
a kind of its own (zone.kind_of). So is each point of a scenario, as its queue or its rival decides what makes
implementations differ. The spread is measured for each algorithm, between implementations that share no code (those
that zones/margins.json names, the reference and the documents), after the size of their packets is taken out
(Interval.at). It has two figures for each kind:

- `spread`: the standard deviation of the logarithms of their medians within a place. It says how much they differ. The
  zone's absolute margin is added to each median, so that a median of 0 has a logarithm.
- `farthest`: how far the farthest of their medians is outside the bases' span, widened by the absolute margin, as a
  share. Only the sides on which the metric is judged count. The relative margin follows from it.

The relative margin is RELATIVE_MARGIN, or what `farthest` needs if that is more, in whole percent. If the bases are 0,
no share of them suffices, and the metric has its absolute margin alone. Harm is a share already, and close to 0 if the
other flows are of the reference's own kind. So its absolute margin grows instead, to what the farthest median needs, in
whole percentage points.

What QUIC has beside TCP with the same algorithm is a factor for each kind of cell. Linux's BBR runs on TCP, and a
stack's on QUIC, which acknowledges, times and recovers otherwise. BBRv1 ignores loss, so what its QUIC stacks have
beside Linux's BBRv1 is the transport's and no congestion control's. Zones of BBRv2 and BBRv3 that judge QUIC stacks
multiply the kernel's basis by this factor, and no other basis: the document's stack is a QUIC stack already. No stack's
BBRv2 or BBRv3 sets it, since it would excuse what it is judged for.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from conformance.model.errors import UserError
from conformance.model.judging.zone import Zone, kind_of
from conformance.model.metrics.metric import RELATIVE_MARGIN, Metric
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point

#: tolerance when margins are rounded up to whole percent, in percent
_SLACK = 1e-6
#: a median, and the payload of its packets in bytes, or None if that is not known
Median = tuple[float, float | None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far implementations differ in the cells, or points, of one kind."""

    SHOWN = ("relative", "spread", "farthest", "absolute", "implementations", "cells")

    kind: str
    implementations: tuple[str, ...]
    cells: int
    #: Standard deviation of the logarithms of implementations' medians within a cell.
    spread: float
    #: How far the farthest median lies outside those of all bases, as a share.
    farthest: float
    #: The absolute margin that follows; null if the metric's own is enough for all kinds.
    absolute: float | None = None

    @property
    def relative(self) -> float:
        """The relative margin that follows."""
        return max(RELATIVE_MARGIN, math.ceil(self.farthest * 100 - _SLACK) / 100)


def spreads(zone: Zone, medians: Mapping[str, Mapping[Point, Median]]) -> list[Spread]:
    """Return the Spread of each kind of a zone's places; `medians`: {implementation: {place: Median}}.

    Places with medians of fewer than two implementations are left out.
    """
    logs: dict[str, list[list[float]]] = {}
    outside: dict[str, list[float]] = {}
    names: dict[str, set[str]] = {}
    metric, most_more = METRICS[zone.metric], dict[str, float]()
    for place, permitted in zone.intervals.items():
        by_name = {name: by_place[place] for name, by_place in medians.items() if place in by_place}
        if len(by_name) < 2:
            continue
        bases = [basis.median for basis in permitted.bases]
        scaled = []
        for value, packet_bytes in by_name.values():
            factor = permitted.at(packet_bytes).bases[0].median / bases[0] if bases[0] else 1.0
            scaled.append(value / factor)
        absolute = permitted.margin.absolute
        kind = kind_of(place, zone.metric)
        names.setdefault(kind, set()).update(by_name)
        logs.setdefault(kind, []).append([math.log(value + absolute) for value in [*scaled, *bases]])
        more = max(scaled) - max(bases) * (1 + RELATIVE_MARGIN) if metric.against else 0.0
        most_more[kind] = max(more, most_more.get(kind, 0.0))
        outside.setdefault(kind, []).extend(
            0.0 if metric.against else _beyond(value, min(bases), max(bases), absolute, metric) for value in scaled
        )
    return [
        Spread(
            kind=kind, implementations=tuple(sorted(names[kind])), cells=len(ratios), spread=_within(ratios),
            farthest=max(outside[kind]),
            absolute=max(metric.margin, float(math.ceil(most_more[kind] - _SLACK))) if metric.against else None,
        )
        for kind, ratios in logs.items()
    ]  # fmt: skip


def _beyond(value: float, least: float, most: float, absolute: float, metric: Metric) -> float:
    """Return how far a value is beyond an end of an interval, widened by an absolute margin, as a share of that end.

    The result is 0 inside, and beyond an end that is 0.
    """
    below = 1 - (value + absolute) / least if least and not metric.only_above else 0.0
    above = (value - absolute) / most - 1 if most and not metric.only_below else 0.0
    return max(0.0, below, above)


def _within(groups: Iterable[Sequence[float]]) -> float:
    """Return the pooled standard deviation within groups of two values or more."""
    sums = [(len(group) - 1, (len(group) - 1) * statistics.variance(group)) for group in groups]
    return math.sqrt(math.fsum(squares for _, squares in sums) / sum(freedom for freedom, _ in sums))


#: the fewest stacks that a factor may rest on
LEAST_STACKS = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TransportFactor:
    """What stacks have in the cells of a kind, relative to the kernel's medians."""

    SHOWN = ("factor", "spread", "implementations", "cells")

    kind: str
    #: By what the kernel's basis is multiplied: the geometric mean over stacks and cells.
    factor: float
    #: Standard deviation, over the stacks, of the logarithm of a stack's geometric mean over the cells.
    spread: float
    implementations: tuple[str, ...]
    cells: int


def factors(zone: Zone, medians: Mapping[str, Mapping[Point, Median]]) -> list[TransportFactor]:
    """Return the factor of each kind of a zone's cells; `medians`: {stack: {cell: Median}} of the zone's algorithm.

    Raises UserError if fewer than three stacks have medians in all cells.
    """
    whole = sorted(name for name, by_place in medians.items() if zone.intervals.keys() <= by_place.keys())
    if len(whole) < LEAST_STACKS:
        raise UserError(
            f"a factor for transport rests on at least {LEAST_STACKS} stacks, and these results have {len(whole)}",
            f"measure all cells of {zone.id} with further stacks that zones/margins.json names under transport",
        )
    logs: dict[str, dict[str, list[float]]] = {}
    for place, permitted in zone.intervals.items():
        of_kind = logs.setdefault(kind_of(place, zone.metric), {name: [] for name in whole})
        for name in whole:
            of_kind[name].append(math.log(medians[name][place][0] / permitted.basis.median))
    return [
        TransportFactor(
            kind=kind, factor=math.exp(statistics.fmean(means)), spread=statistics.stdev(means),
            implementations=tuple(whole), cells=len(by_name[whole[0]]),
        )
        for kind, by_name in logs.items()
        if (means := [statistics.fmean(of_stack) for of_stack in by_name.values()])
    ]  # fmt: skip
