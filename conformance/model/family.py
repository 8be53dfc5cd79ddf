"""Many questions judged in one family, each at its own first clear look.

A *family* shares one chance of a false alarm, verdict.ALPHA, by Holm's procedure (statistics.holm_adjusted). Its size
is what was planned, not what arrived: what was not measured counts as if it conformed. A question is judged by the
first trials that make its verdict clear, however many more another question asked for. So no verdict depends on which
other questions held the same cell open, or on the order in which trials arrived.
"""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from conformance.model import verdict as verdicts
from conformance.model.place import Place
from conformance.model.seeds import repeats_apart
from conformance.model.trial import Measurement
from conformance.model.verdict import HasStatus, Status, Verdict, ZoneVerdict, level
from conformance.model.zone import Zone

#: looks at a cell where nothing else is asked for
USUAL_LOOKS = verdicts.looks(5, verdicts.last_look(5))
#: what is judged together: a zone, and {place: measurements of one scheme}
Held = tuple[Zone, Mapping[Place, Sequence[Measurement]]]
_V = TypeVar("_V", bound=HasStatus)


class Counted(Protocol):
    """A verdict that shares a chance of a false alarm with others."""

    @property
    def p(self) -> float | None: ...

    @property
    def counted(self) -> bool: ...


def _is_clear(verdict: HasStatus) -> bool:
    return verdict.status is not Status.INCONCLUSIVE


def first_clear(
    looks: Sequence[int],
    available: int,
    judge: Callable[[int, bool], _V],
    clear: Callable[[_V], bool] = _is_clear,
    ends: bool = False,
) -> _V:
    """Return the verdict at the first look that is clear, else at all trials that are `available`, looks permitting.

    `judge(n, more)` judges the first n trials; `more`: whether more may follow. That is so up to the last of `looks`,
    and not after the last that is available where these are all that there will be (`ends`).
    """
    numbers = [number for number in looks if number < available]
    if available <= looks[-1]:
        numbers.append(available)
    for number in numbers[:-1]:
        found = judge(number, True)
        if clear(found):
            return found
    return judge(numbers[-1], numbers[-1] < looks[-1] and not ends)


def last_step(p_values: Sequence[float], family: int) -> int:
    """Return the size of family with which each of these is judged as strictly as Holm's procedure judges all.

    Holm's procedure rejects the k smallest p-values where each is small enough for what is left of the family before
    it; so the same are rejected by what is left before the last of them.
    """
    size = max(family, len(p_values), 1)
    rejected = 0
    for p in sorted(p_values):
        if p > level(size - rejected):
            break
        rejected += 1
    return size - max(rejected - 1, 0)


def together(found: Sequence[Counted], family: int) -> int:
    """Return the size of family with which verdicts of a family this large are judged, as last_step() does."""
    return last_step([1.0 if verdict.p is None else verdict.p for verdict in found if verdict.counted], family)


def judge_zones(held: Sequence[Held], family: int | None = None) -> list[ZoneVerdict]:
    """Judge zones by measurements that are there, all of one scheme and in one family; no trials follow.

    `family`: how many questions there are in all, where these are more. Trials that repeat a violation with fresh seeds
    (seeds.py) take it back where they do not show it again. Raises UserError for unlike runs.
    """
    for zone, measured in held:
        if everything := [m for measurements in measured.values() for m in measurements]:
            verdicts.obstacle(zone, everything)
    # A cell that is not counted cannot violate.
    size = max(sum(zone.intervals[place].counted for zone, measured in held for place in measured), family or 1)
    first: list[tuple[Zone, Place, Sequence[Measurement], Verdict]] = []
    for zone, measured in held:
        for place, measurements in measured.items():
            own, _ = repeats_apart(measurements)
            first.append((zone, place, measurements, _at_first_clear(zone, place, own, size)))
    strict = together([verdict for *_, verdict in first], size)
    by_zone: dict[str, dict[Place, Verdict]] = collections.defaultdict(dict)
    for zone, place, measurements, verdict in first:
        own, again = repeats_apart(measurements)
        if verdict.status is Status.INCONCLUSIVE:
            verdict = verdicts.judge(zone, place, own[: verdict.n], strict)
        if verdict.status is Status.VIOLATES and again:
            verdict = unless_repeated(verdict, _at_first_clear(zone, place, again, 1))
        by_zone[zone.id][place] = verdict
    return [ZoneVerdict(zone_id=zone.id, verdicts=by_zone[zone.id], family=size) for zone, _ in held]


def _at_first_clear(zone: Zone, place: Place, measurements: Sequence[Measurement], family: int) -> Verdict:
    available = len(measurements)
    # More trials than usual were asked for as one look at all of them.
    looks = USUAL_LOOKS if available <= USUAL_LOOKS[-1] else (available,)
    found = first_clear(
        looks, available, lambda n, more: verdicts.judge(zone, place, measurements[:n], family, more), ends=True
    )
    if found.status.passes and found.n < available:
        # More trials were made of a known deviation, to be sure, and none that are not needed may turn the verdict.
        found = dataclasses.replace(found, sure=verdicts.judge(zone, place, measurements, family).sure)
    return found


def unless_repeated(verdict: Verdict, again: Verdict) -> Verdict:
    """Return a violation as it is where trials with fresh seeds violate, too, and as inconclusive where not."""
    if again.status is Status.VIOLATES:
        return verdict
    reason = f"not confirmed: {verdict.reason}, but with fresh seeds {again.status} ({again.reason})"
    return dataclasses.replace(verdict, status=Status.INCONCLUSIVE, reason=reason, p=None)
