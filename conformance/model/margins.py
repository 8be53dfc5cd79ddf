"""What honest implementations differ by, and the margin that follows: by algorithm, and by kind of cell.

A kind of cell is a condition in which the same things part implementations: without random loss how a sender fills a
queue, at a delay of 1 ms its timers, else how often it meets a timeout. The spread is measured between implementations
that share no code (those that zones/margins.json names, with the reference and the documents), after the size of their
packets is taken out (Interval.at). It has two figures for each kind:

- `spread`, the standard deviation of the logarithms of their medians within a cell: what they differ by;
- `farthest`, how far the farthest of their medians is outside what the bases span, as a share: what a margin is for.

The margin is RELATIVE_MARGIN, or as much more as `farthest` asks for, in whole percent.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.model.metric import RELATIVE_MARGIN
from conformance.model.setting import Cell
from conformance.model.zone import Zone, kind_of

#: of a percent, in which margins are rounded
_SLACK = 1e-6
#: a median, and the payload of its packets in bytes, None where that is not known
Median = tuple[float, float | None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What implementations differ by in the cells of one kind."""

    kind: str
    implementations: tuple[str, ...]
    cells: int
    spread: float
    farthest: float

    @property
    def relative(self) -> float:
        """The margin that follows."""
        return max(RELATIVE_MARGIN, math.ceil(self.farthest * 100 - _SLACK) / 100)

    def to_json(self) -> dict[str, Any]:
        """Return what a zone says of it."""
        return {
            "relative": self.relative, "spread": round(self.spread, 3), "farthest": round(self.farthest, 3),
            "implementations": list(self.implementations), "cells": self.cells,
        }  # fmt: skip


def spreads(zone: Zone, medians: Mapping[str, Mapping[Cell, Median]]) -> list[Spread]:
    """Return the Spread of each kind of a zone's cells; `medians`: {implementation: {cell: Median}}.

    Cells that fewer than two implementations have are left out.
    """
    logs: dict[str, list[list[float]]] = {}
    outside: dict[str, list[float]] = {}
    for cell, permitted in zone.by_cell.items():
        own = {name: found[cell] for name, found in medians.items() if cell in found}
        if len(own) < 2:
            continue
        bases = [basis.median for basis in permitted.bases]
        scaled = []
        for value, packet_bytes in own.values():
            factor = permitted.at(packet_bytes).bases[0].median / bases[0]
            scaled.append(value / factor)
        logs.setdefault(kind_of(cell), []).append([math.log(value) for value in [*scaled, *bases]])
        outside.setdefault(kind_of(cell), []).extend(_beyond(value, min(bases), max(bases)) for value in scaled)
    return [
        Spread(
            kind=kind, implementations=tuple(sorted(medians)), cells=len(found), spread=_within(found),
            farthest=max(outside[kind]),
        )
        for kind, found in logs.items()
    ]  # fmt: skip


def _beyond(value: float, least: float, most: float) -> float:
    """Return how far a value is outside an interval, as a share of the end that it is beyond; 0 inside."""
    return max(0.0, 1 - value / least, value / most - 1)


def _within(groups: Iterable[Sequence[float]]) -> float:
    """Return the pooled standard deviation within groups of two values or more."""
    sums = [(len(group) - 1, (len(group) - 1) * statistics.variance(group)) for group in groups]
    return math.sqrt(math.fsum(squares for _, squares in sums) / sum(freedom for freedom, _ in sums))
