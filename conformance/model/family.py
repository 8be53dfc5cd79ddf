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
from conformance.model.split.split_zone import SplitVerdict
from conformance.model.trial import Measurement
from conformance.model.verdict import HasStatus, Status, Verdict, ZoneVerdict, level
from conformance.model.zone import Zone

#: looks at a cell where nothing else is asked for
USUAL_LOOKS = verdicts.looks(5, verdicts.last_look(5))
#: so many settings are hardly all unclear at a run's first look
_MANY = 4
#: what is judged together: a zone, and {place: measurements of one scheme}
Held = tuple[Zone, Mapping[Place, Sequence[Measurement]]]
_K = TypeVar("_K")
_T = TypeVar("_T")
_V = TypeVar("_V", bound=HasStatus)
_R = TypeVar("_R", Verdict, SplitVerdict)


class Counted(Protocol):
    """A verdict that shares a chance of a false alarm with others."""

    @property
    def p(self) -> float | None: ...

    @property
    def counted(self) -> bool: ...


class HasReason(Protocol):
    """A verdict that says why."""

    @property
    def status(self) -> Status: ...

    @property
    def reason(self) -> str: ...


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


def looks_of(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the looks of a run that made so many trials of its settings: the usual, or what another --trials asks for.

    Where all of many settings have more than five trials, nobody looked at five: some would have been clear. A few may
    all have been unclear.
    """
    there = [n for n in numbers if n <= USUAL_LOOKS[-1]]
    first = min(there, default=0)
    if len(there) < _MANY or first <= USUAL_LOOKS[0]:
        return USUAL_LOOKS
    own = verdicts.looks(first, USUAL_LOOKS[-1])
    return own if set(there) <= set(own) else tuple(n for n in USUAL_LOOKS if n >= first)


def looks_at(available: Collection[int], looks: Sequence[int]) -> Sequence[int]:
    """Return the looks at trials that are there, so many of each setting, of a run with these `looks`.

    More than the last of them of each were asked for as one look at all of them.
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
    (seeds.py) take it back where they do not show it again, but not where these were interrupted before they were
    clear. Raises UserError for unlike runs.
    """
    for zone, measured in held:
        if everything := [m for measurements in measured.values() for m in measurements]:
            verdicts.obstacle(zone, everything)
    # A cell that is not counted cannot violate.
    size = max(sum(zone.intervals[place].counted for zone, measured in held for place in measured), family or 1)
    apart = [
        (zone, place, *repeats_apart(measurements))
        for zone, measured in held
        for place, measurements in measured.items()
    ]
    looks = looks_of({own[0].trial.setting: len(own) for _, _, own, _ in apart if own}.values())
    first = [_at_first_clear(zone, place, own, size, looks) for zone, place, own, _ in apart]
    strict = together(first, size)
    by_zone: dict[str, dict[Place, Verdict]] = collections.defaultdict(dict)
    for (zone, place, own, again), verdict in zip(apart, first, strict=True):
        if verdict.status is Status.INCONCLUSIVE:
            verdict = verdicts.judge(zone, place, own[: verdict.n], strict)
        if verdict.status is Status.VIOLATES and again:
            verdict = unless_repeated(verdict, _at_first_clear(zone, place, again, 1, looks), looks)
        by_zone[zone.id][place] = verdict
    return [ZoneVerdict(zone_id=zone.id, verdicts=by_zone[zone.id], family=size) for zone, _ in held]


def _at_first_clear(
    zone: Zone, place: Place, measurements: Sequence[Measurement], family: int, looks: Sequence[int]
) -> Verdict:
    available = len(measurements)
    looks = looks_at([available], looks)
    found = first_clear(
        looks,
        available,
        lambda n, more: verdicts.judge(zone, place, measurements[:n], family, more),
        lambda v: v.status is not Status.INCONCLUSIVE or not v.counted,  # as a session, which has one look at these
        ends=True,
    )
    if found.status.passes:
        # More trials were made of a known deviation, to be sure, and none that are not needed may turn the verdict.
        later = sorted({n for n in (*looks, available) if found.n < n <= available})
        sure = found.sure or any(verdicts.judge(zone, place, measurements[:n], family).sure for n in later)
        found = dataclasses.replace(found, sure=sure)
    return found


def unless_repeated(verdict: _R, again: _R, looks: Sequence[int]) -> _R:
    """Return a violation as it is where trials with fresh seeds violate, too, and as inconclusive where not.

    It stays where the repeat was interrupted: where it is not clear, and has not had its last look.
    """
    interrupted = again.status in (Status.INCONCLUSIVE, Status.COMPATIBLE) and again.n < looks[-1]
    if again.status is Status.VIOLATES or interrupted:
        return verdict
    return verdict.taken_back(not_confirmed(verdict, again))


def not_confirmed(verdict: HasReason, again: HasReason) -> str:
    """Return the reason of a violation that trials with fresh seeds did not show again."""
    return f"not confirmed: {verdict.reason}, but with fresh seeds {again.status} ({again.reason})"
