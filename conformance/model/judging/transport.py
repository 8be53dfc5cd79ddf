"""Compute what QUIC has beside TCP with the same algorithm: a factor for each kind of cell.

Linux's BBR runs on TCP, and a stack's on QUIC, which acknowledges, times and recovers otherwise. BBRv1 ignores loss, so
what its QUIC stacks have beside Linux's BBRv1 is the transport's and no congestion control's. Zones of BBRv2 and BBRv3
that judge QUIC stacks multiply the kernel's basis by this factor, and no other basis: the document's stack is a QUIC
stack already. No stack's BBRv2 or BBRv3 sets it, since it would excuse what it is judged for.
"""

import dataclasses
import math
import statistics
from collections.abc import Mapping
from typing import Any

from conformance.model.errors import UserError
from conformance.model.judging.margins import Median
from conformance.model.judging.zone import Zone, kind_of
from conformance.model.networks.place import Point

#: the fewest stacks that a factor may rest on
LEAST_STACKS = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TransportFactor:
    """What stacks have in the cells of a kind, relative to the kernel's medians.

    `factor`: the geometric mean over stacks and cells. `spread`: the standard deviation, over stacks, of the logarithm
    of a stack's geometric mean over the cells.
    """

    kind: str
    factor: float
    spread: float
    implementations: tuple[str, ...]
    cells: int

    def to_json(self) -> dict[str, Any]:
        """Return the figures as a zone states them."""
        return {
            "factor": round(self.factor, 3), "spread": round(self.spread, 3),
            "implementations": list(self.implementations), "cells": self.cells,
        }  # fmt: skip


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
