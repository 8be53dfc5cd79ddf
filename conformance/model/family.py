"""Judge many questions in one family, each at its own first clear look.

The questions of a *family* share one chance of a false alarm, verdict.ALPHA, by Holm's procedure
(statistics.holm_adjusted). The size of a family is what was planned, not what arrived: a question that was not measured
counts as if it conformed. A question is judged by the first trials that make its verdict clear, however many more
trials another question needed. So no verdict depends on which other questions held the same cell open, or on the order
in which trials arrived.
"""

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from conformance.model.judging import verdict as verdicts
from conformance.model.judging.seeds import repeats_apart
from conformance.model.judging.verdict import HasStatus, Status, Verdict, ZoneVerdict, level
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Point
from conformance.model.split.split_zone import SplitVerdict
from conformance.model.trials.trial import Measurement

#: numbers of trials at which a cell is judged, unless others are asked for
USUAL_LOOKS = verdicts.looks(5, verdicts.last_look(5))
#: with this many settings, it is unlikely that all are unclear at a run's first look
_MANY = 4
#: a zone and its measurements, which are judged together: {place: measurements of one scheme}
Held = tuple[Zone, Mapping[Point, Sequence[Measurement]]]
_K = TypeVar("_K")
_T = TypeVar("_T")
_V = TypeVar("_V", bound=HasStatus)
_R = TypeVar("_R", Verdict, SplitVerdict)


class Counted(Protocol):
    """A verdict that shares a chance of a false alarm with others."""

    @property
    def p(self) -> float | None: ...


class HasReason(Protocol):
    """A verdict that says why."""

    @property
    def status(self) -> Status: ...

    @property
    def reason(self) -> str: ...


def next_look(looks: Sequence[int], unclear: Iterable[_K], numbers: Mapping[_K, int]) -> dict[_K, int]:
    """Return how many trials in all the next look takes of each unclear setting that has not had its last look.

    `numbers`: how many trials of each setting the present look takes.
    """
    return {key: next(n for n in looks if n > numbers[key]) for key in unclear if numbers[key] < looks[-1]}


def at_first_clear(
    looks: Sequence[int],
    available: Mapping[_K, int],
    judge: Callable[[Mapping[_K, int], bool], _T],
    unclear: Callable[[_T, Mapping[_K, int]], Collection[_K]],
    ends: bool = False,
) -> _T:
    """Return the verdict at the first look that is clear, or else at the last look for which all trials are available.

    `available`: how many trials there are of each setting. `judge(numbers, more)` judges the first trials of each
    setting, as many as `numbers` says; `more`: whether more may follow. `unclear(verdict, numbers)`: the settings of
    which more trials might make the verdict clear; none if it is clear. With `ends`, no trials will follow the
    available ones, so the last look takes what there is.

    A look waits for all of its trials. Otherwise a verdict would depend on what else held one of its settings open.
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
    # No more trials will come of the unclear settings: either they have had their last look, though other settings have
    # not, or `ends` is set.
    numbers |= {key: min(number, available[key]) for key, number in further.items()}
    return judge(numbers, False)


def looks_of(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the looks of a run, as its numbers of trials show: the usual ones, or those that another --trials gives.

    If all of many settings have more than five trials, the run had no look at five, where some would have been clear.
    If the settings are few, all may have been unclear there.
    """
    there = [n for n in numbers if n <= USUAL_LOOKS[-1]]
    first = min(there, default=0)
    if len(there) < _MANY or first <= USUAL_LOOKS[0]:
        return USUAL_LOOKS
    own = verdicts.looks(first, USUAL_LOOKS[-1])
    return own if set(there) <= set(own) else tuple(n for n in USUAL_LOOKS if n >= first)


def looks_at(available: Collection[int], looks: Sequence[int]) -> Sequence[int]:
    """Return the looks at the trials of a run with these `looks`; `available`: how many there are of each setting.

    If each setting has more trials than the last of `looks`, they were asked for as one look at all of them.
    """
    return looks if min(available) <= looks[-1] else (max(available),)


def _is_clear(verdict: HasStatus) -> bool:
    return verdict.status is not Status.INCONCLUSIVE


def first_clear(
    looks: Sequence[int],
    available: int,
    judge: Callable[[int, bool], _V],
    clear: Callable[[_V], bool] = _is_clear,
    ends: bool = False,
) -> _V:
    """Return the verdict of at_first_clear() for one setting; `judge(n, more)` judges its first n trials."""
    return at_first_clear(
        looks,
        {None: available},
        lambda numbers, more: judge(numbers[None], more),
        lambda found, numbers: () if clear(found) else (None,),
        ends,
    )


def last_step(p_values: Sequence[float], family: int) -> int:
    """Return the family size at which each p-value alone is judged as strictly as Holm's procedure judges all of them.

    Holm's procedure takes the p-values in rising order, and rejects each that is small enough for what is left of the
    family, until one is not. So comparing each with what was left at the last rejection rejects the same ones.
    """
    size = max(family, len(p_values), 1)
    rejected = 0
    for p in sorted(p_values):
        if p > level(size - rejected):
            break
        rejected += 1
    return size - max(rejected - 1, 0)


def together(found: Sequence[Counted], family: int) -> int:
    """Return the family size at which to judge each of these verdicts of a family of this size, by last_step()."""
    return last_step([verdict.p for verdict in found if verdict.p is not None], family)


def judge_zones(held: Sequence[Held], family: int | None = None) -> list[ZoneVerdict]:
    """Judge zones by the measurements that there are, all of one scheme and in one family; no trials follow.

    `family`: how many questions there are in all, if more than these. Trials that repeat a violation with fresh seeds
    (seeds.py) take it back if they do not show it again, unless they were interrupted before they were clear. Raises
    UserError for unlike runs.
    """
    for zone, measured in held:
        if everything := [m for measurements in measured.values() for m in measurements]:
            verdicts.obstacle(zone, everything)
    # A cell that is not judged cannot violate.
    size = max(sum(zone.intervals[place].counted for zone, measured in held for place in measured), family or 1)
    apart = [
        (zone, place, *repeats_apart(measurements))
        for zone, measured in held
        for place, measurements in measured.items()
    ]
    looks = looks_of({own[0].trial.setting: len(own) for _, _, own, _ in apart if own}.values())
    first = [_at_first_clear(zone, place, own, size, looks) for zone, place, own, _ in apart]
    strict = together(first, size)
    by_zone: dict[str, dict[Point, Verdict]] = collections.defaultdict(dict)
    for (zone, place, own, again), verdict in zip(apart, first, strict=True):
        if verdict.status is Status.INCONCLUSIVE:
            verdict = verdicts.judge(zone, place, own[: verdict.n], strict)
        if verdict.status is Status.VIOLATES and again:
            verdict = unless_repeated(verdict, _at_first_clear(zone, place, again, 1, looks), looks)
        by_zone[zone.id][place] = verdict
    return [ZoneVerdict(zone_id=zone.id, verdicts=by_zone[zone.id], family=size) for zone, _ in held]


def _at_first_clear(
    zone: Zone, place: Point, measurements: Sequence[Measurement], family: int, looks: Sequence[int]
) -> Verdict:
    available = len(measurements)
    looks = looks_at([available], looks)
    found = first_clear(
        looks,
        available,
        lambda n, more: verdicts.judge(zone, place, measurements[:n], family, more),
        ends=True,
    )
    if found.status.passes:
        # A known deviation gets more trials, to be sure of it. Trials that the verdict does not need may not change it.
        later = sorted({n for n in (*looks, available) if found.n < n <= available})
        sure = found.sure or any(verdicts.judge(zone, place, measurements[:n], family).sure for n in later)
        found = dataclasses.replace(found, sure=sure)
    return found


def unless_repeated(verdict: _R, again: _R, looks: Sequence[int]) -> _R:
    """Return a violation as it is if trials with fresh seeds violate, too; otherwise return it as inconclusive.

    It also stays if the repeat was interrupted: if that is not clear and has not had its last look.
    """
    interrupted = again.status in (Status.INCONCLUSIVE, Status.COMPATIBLE) and again.n < looks[-1]
    if again.status is Status.VIOLATES or interrupted:
        return verdict
    return verdict.taken_back(not_confirmed(verdict, again))


def not_confirmed(verdict: HasReason, again: HasReason) -> str:
    """Return the reason of a violation that trials with fresh seeds did not show again."""
    return f"not confirmed: {verdict.reason}, but with fresh seeds {again.status} ({again.reason})"
