"""Many questions judged in one family, each at its own first clear look.

A *family* shares one chance of a false alarm, verdict.ALPHA, by Holm's procedure (statistics.holm_adjusted). Its size
is what was planned, not what arrived: what was not measured counts as if it conformed. A question is judged by the
first trials that make its verdict clear, however many more another question asked for. So no verdict depends on which
other questions held the same cell open, or on the order in which trials arrived.
"""

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
_K = TypeVar("_K")
_T = TypeVar("_T")
_V = TypeVar("_V", bound=HasStatus)


class Counted(Protocol):
    """A verdict that shares a chance of a false alarm with others."""

    @property
    def p(self) -> float | None: ...

    @property
    def counted(self) -> bool: ...


def next_look(looks: Sequence[int], unclear: Iterable[_K], numbers: Mapping[_K, int]) -> dict[_K, int]:
    """Return how many trials in all the look after `numbers` takes of those that are unclear; none after the last."""
    return {key: next(n for n in looks if n > numbers[key]) for key in unclear if numbers[key] < looks[-1]}


def at_first_clear(
    looks: Sequence[int],
    available: Mapping[_K, int],
    judge: Callable[[Mapping[_K, int], bool], _T],
    unclear: Callable[[_T, Mapping[_K, int]], Collection[_K]],
    ends: bool = False,
) -> _T:
    """Return the verdict at the first look that is clear, else at the last for which all that it takes is there.

    `available`: how many trials there are of each setting. `judge(numbers, more)` judges the first so many of each;
    `more`: whether more may follow. `unclear(verdict, numbers)`: the settings of which more trials might make it clear;
    none where it is. With `ends` there will be no more than is available, so the last look takes what there is.

    A look waits for all of its trials: else a verdict would depend on what else held one of its settings open.
    """
    numbers = {key: min(looks[0], there) for key, there in available.items()}
    while True:
        last = min(numbers.values()) >= looks[-1]
        found = judge(numbers, not last)
        if last or not (open_ := unclear(found, numbers)):
            return found
        further = next_look(looks, open_, numbers)
        if not further or any(available[key] < number for key, number in further.items()):
            break
        numbers |= further
    if further and not ends:
        return found
    # No more will come of what is unclear: it has had its last look, though other settings have not, or `ends`.
    numbers |= {key: min(number, available[key]) for key, number in further.items()}
    return judge(numbers, False)


def looks_at(available: Collection[int]) -> tuple[int, ...]:
    """Return the looks at trials that are there, so many of each setting.

    More than the usual most of each were asked for as one look at all of them.
    """
    return USUAL_LOOKS if min(available) <= USUAL_LOOKS[-1] else (max(available),)


def _is_clear(verdict: HasStatus) -> bool:
    return verdict.status is not Status.INCONCLUSIVE


def first_clear(
    looks: Sequence[int],
    available: int,
    judge: Callable[[int, bool], _V],
    clear: Callable[[_V], bool] = _is_clear,
    ends: bool = False,
) -> _V:
    """Return what at_first_clear() does of the trials of one setting: `judge(n, more)` judges the first n of them."""
    return at_first_clear(
        looks,
        {None: available},
        lambda numbers, more: judge(numbers[None], more),
        lambda found, numbers: () if clear(found) else (None,),
        ends,
    )


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
    found = first_clear(
        looks_at([available]),
        available,
        lambda n, more: verdicts.judge(zone, place, measurements[:n], family, more),
        lambda v: v.status is not Status.INCONCLUSIVE or not v.counted,  # as a session, which has one look at these
        ends=True,
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
