"""What honest implementations differ by, and the margin that follows: by algorithm, and by kind of cell or point.

A kind of cell is a condition in which the same things part implementations: without random loss how a sender fills a
queue, at a delay of 1 ms its timers, else how often it meets a timeout. For loss, each cell without random loss is of a
kind of its own (zone.kind_of), and so is each point of a scenario: a queue or a rival decides what parts
implementations. The spread is measured between implementations that share no
code (those that zones/margins.json names, with the reference and the documents), after the size of their packets is
taken out (Interval.at). It has two figures for each kind:

- `spread`, the standard deviation of the logarithms of their medians within a place, the zone's absolute margin added
  to each so that there is one of 0: what they differ by;
- `farthest`, how far the farthest of their medians is outside what the bases span with the absolute margin, as a share,
  on the sides that the metric is judged on: what a relative margin is for.

The margin is RELATIVE_MARGIN, or as much more as `farthest` asks for, in whole percent. Where the bases are 0, no share
of them suffices, and the absolute margin alone is what a metric has. Harm is a share already, and next to 0 where the
others are of the reference's own kind: there the absolute margin is as much more as the farthest of them asks for, in
whole percentage points.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.model.metric import RELATIVE_MARGIN, Metric
from conformance.model.metrics import METRICS
from conformance.model.place import Place
from conformance.model.zone import Zone, kind_of

#: of a percent, in which margins are rounded
_SLACK = 1e-6
#: a median, and the payload of its packets in bytes, None where that is not known
Median = tuple[float, float | None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What implementations differ by in the cells, or points, of one kind.

    `absolute`: the absolute margin that follows, where it is not the metric's own for all kinds.
    """

    kind: str
    implementations: tuple[str, ...]
    cells: int
    spread: float
    farthest: float
    absolute: float | None = None

    @property
    def relative(self) -> float:
        """The margin that follows."""
        return max(RELATIVE_MARGIN, math.ceil(self.farthest * 100 - _SLACK) / 100)

    def to_json(self) -> dict[str, Any]:
        """Return what a zone says of it."""
        return {
            "relative": self.relative, "spread": round(self.spread, 3), "farthest": round(self.farthest, 3),
            **({} if self.absolute is None else {"absolute": self.absolute}),
            "implementations": list(self.implementations), "cells": self.cells,
        }  # fmt: skip


def spreads(zone: Zone, medians: Mapping[str, Mapping[Place, Median]]) -> list[Spread]:
    """Return the Spread of each kind of a zone's places; `medians`: {implementation: {place: Median}}.

    Places that fewer than two implementations have are left out.
    """
    logs: dict[str, list[list[float]]] = {}
    outside: dict[str, list[float]] = {}
    names: dict[str, set[str]] = {}
    metric, most_more = METRICS[zone.metric], dict[str, float]()
    for place, permitted in zone.intervals.items():
        own = {name: found[place] for name, found in medians.items() if place in found}
        if len(own) < 2:
            continue
        bases = [basis.median for basis in permitted.bases]
        scaled = []
        for value, packet_bytes in own.values():
            factor = permitted.at(packet_bytes).bases[0].median / bases[0] if bases[0] else 1.0
            scaled.append(value / factor)
        absolute = permitted.margin.absolute
        kind = kind_of(place, zone.metric)
        names.setdefault(kind, set()).update(own)
        logs.setdefault(kind, []).append([math.log(value + absolute) for value in [*scaled, *bases]])
        more = max(scaled) - max(bases) * (1 + RELATIVE_MARGIN) if metric.against else 0.0
        most_more[kind] = max(more, most_more.get(kind, 0.0))
        outside.setdefault(kind, []).extend(
            0.0 if metric.against else _beyond(value, min(bases), max(bases), absolute, metric) for value in scaled
        )
    return [
        Spread(
            kind=kind, implementations=tuple(sorted(names[kind])), cells=len(found), spread=_within(found),
            farthest=max(outside[kind]),
            absolute=max(metric.margin, float(math.ceil(most_more[kind] - _SLACK))) if metric.against else None,
        )
        for kind, found in logs.items()
    ]  # fmt: skip


def _beyond(value: float, least: float, most: float, absolute: float, metric: Metric) -> float:
    """Return how far a value is outside an interval that an absolute margin widens, as a share of the end it is beyond.

    It is 0 inside, and beyond an end that is 0.
    """
    below = 1 - (value + absolute) / least if least and not metric.only_above else 0.0
    above = (value - absolute) / most - 1 if most and not metric.only_below else 0.0
    return max(0.0, below, above)


def _within(groups: Iterable[Sequence[float]]) -> float:
    """Return the pooled standard deviation within groups of two values or more."""
    sums = [(len(group) - 1, (len(group) - 1) * statistics.variance(group)) for group in groups]
    return math.sqrt(math.fsum(squares for _, squares in sums) / sum(freedom for freedom, _ in sums))
