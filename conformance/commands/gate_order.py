"""What a gate measures first: the smoke cells, then one of each other zone, then the cheap and telling ones; shards."""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.catalogue import scenarios, separation
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.judging.question import Key
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Point

#: stages of the order: smoke places, the first look at each other zone, the rest
_SMOKE, _FIRST, _REST = range(3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GateOrder:
    """What is measured, in order; which of it is at smoke places, and what comes before all the rest."""

    work: Sequence[Key]
    smoke: frozenset[Key]
    urgent: frozenset[Key]


def order(zones: Mapping[str, Sequence[Zone]], others: Sequence[Zone], grid: str) -> GateOrder:
    """Return the GateOrder of these zones' places, the most telling first: smoke places, then others, each by bytes.

    Bytes decide what a trial costs. Ties of an algorithm go to the place whose interval is farthest from other
    algorithms'. The first place of a zone without smoke places comes right after the smoke places, so that a budget
    that ends early has a look at each zone. `grid`: its name, or SMOKE for smoke cells and points only. Raises
    UserError.
    """
    ranked: list[tuple[tuple[Any, ...], Key]] = []
    for algorithm, of_algorithm in zones.items():
        for profile in dict.fromkeys(zone.profile for zone in of_algorithm):
            of_profile = [zone for zone in of_algorithm if zone.profile == profile]
            smoke = {place for zone in of_profile for place in zone.smoke}
            there = (
                smoke if grid == grids.SMOKE else {p for zone in of_profile for p in grids.within(grid, zone.places)}
            )
            settings = {at: scenarios.setting(profile, at) for at in there}
            ranks = {
                at: (setting.transfer_bytes, algorithm, -_telling(of_profile, others, at), profile, at)
                for at, setting in settings.items()
            }
            first = _first_looks(of_profile, smoke, ranks)
            for at, rank in ranks.items():
                stage = _SMOKE if at in smoke else _FIRST if at in first else _REST
                ranked.append(((stage, *rank), (algorithm, settings[at])))
    ranked.sort(key=lambda pair: pair[0])
    return GateOrder(
        work=[key for _, key in ranked],
        smoke=frozenset(key for (stage, *_), key in ranked if stage == _SMOKE),
        urgent=frozenset(key for (stage, *_), key in ranked if stage != _REST),
    )


def _first_looks(zones: Sequence[Zone], smoke: set[Point], ranks: Mapping[Point, Any]) -> set[Point]:
    """Return the first place that is judged, of each zone that has no smoke place, among those that are ranked."""
    without = (zone for zone in zones if not any(at in smoke and at in ranks for at in zone.places))
    places = ([at for at in zone.places if at in ranks and zone.intervals[at].counted] for zone in without)
    return {min(of_zone, key=ranks.__getitem__) for of_zone in places if of_zone}


def _telling(zones: Sequence[Zone], others: Sequence[Zone], at: Point) -> float:
    """Return how far apart this place sets an algorithm from the most similar one, in widths of its interval."""
    widest: dict[str, float] = {}
    for mine, theirs in itertools.product(zones, others):
        there = theirs.profile == mine.profile and at in mine.intervals and at in theirs.intervals
        if there and theirs.metric == mine.metric and theirs.algorithm != mine.algorithm:
            width = separation.gap(mine.intervals[at], theirs.intervals[at])
            widest[theirs.algorithm] = max(width, widest.get(theirs.algorithm, width))
    return min(widest.values(), default=0.0)


def shares(text: str) -> tuple[int, int]:
    """Parse a shard such as 2/5, and return (which, of how many). Raises UserError."""
    match = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", text.strip())
    if not match or int(match[1]) > int(match[2]):
        raise UserError(f"--shard {text} does not name a part", "give which of how many, such as 2/5")
    return int(match[1]), int(match[2])


def share(work: Sequence[Key], which: int, of: int) -> Sequence[Key]:
    """Return every `of`-th piece of the work, so that each shard has its part of the most telling cells."""
    return work[which - 1 :: of]
