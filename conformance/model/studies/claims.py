"""Claims of a published study as relations over points, and what measurements say of them. Pure.

A *quantity* is a metric at a point, of one group of flows; what trials say of it is its median's 90 % confidence
interval (statistics.py). A relation holds where it does for all values that these intervals allow, does not where it
does for none, and is open in between: so five trials a side are the fewest that say anything. Nothing here knows what a
quantity is; it is asked for by `Look`.
"""

import dataclasses
import enum
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol

from conformance.model import statistics


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What trials say of a quantity: the median of `n` trials, and the interval that holds it."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Seen":
        """Return what these values say; of fewer than five, the interval has no bounds."""
        low, high = statistics.median_interval(values)
        return cls(median=statistics.median(values), low=low, high=high, n=len(values))


@dataclasses.dataclass(frozen=True, slots=True)
class NotSeen:
    """Why nothing is known of a quantity, in words."""

    why: str


#: what rises or falls may stand still on its way: a step back of less than this is none
_PLATEAU = 1.05
Look = Callable[[Hashable], Seen | NotSeen]


class Relation(Protocol):
    """What a claim says of the quantities of one instance, in order."""

    def holds(self, seen: Sequence[Seen]) -> bool | None:
        """Return whether it holds; None where intervals leave that open."""
        ...

    @property
    def words(self) -> str:
        """Return what is asked, for people."""
        ...


def _all(found: Iterable[bool | None]) -> bool | None:
    """Return whether all hold: False where one does not, None where one is open."""
    known = list(found)
    return False if False in known else None if None in known else True


def above(one: Seen, other: Seen, factor: float = 1.0) -> bool | None:
    """Say whether a quantity is more than `factor` times another; None where intervals leave that open."""
    if one.low > factor * other.high:
        return True
    return False if one.high <= factor * other.low else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Each quantity lies between two values; either may be infinite."""

    low: float
    high: float

    def holds(self, seen: Sequence[Seen]) -> bool | None:
        """See Relation."""
        return _all(map(self._one, seen))

    def _one(self, one: Seen) -> bool | None:
        if self.low <= one.low and one.high <= self.high:
            return True
        return False if one.high < self.low or one.low > self.high else None

    @property
    def words(self) -> str:
        """See Relation."""
        if math.isinf(self.low):
            return f"at most {self.high:.4g}"
        return f"at least {self.low:.4g}" if math.isinf(self.high) else f"{self.low:.4g} to {self.high:.4g}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Each quantity is more than `factor` times the next one."""

    factor: float = 1.0

    def holds(self, seen: Sequence[Seen]) -> bool | None:
        """See Relation."""
        return _all(above(a, b, self.factor) for a, b in itertools.pairwise(seen))

    @property
    def words(self) -> str:
        """See Relation."""
        return "each above the next" + ("" if self.factor == 1 else f" by a factor of {self.factor:g}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rises:
    """The last quantity is more than `factor` times the first, and none less than the one before by 5 %."""

    factor: float = 1.0
    _VERB: ClassVar[str] = "rises"

    def holds(self, seen: Sequence[Seen]) -> bool | None:
        """See Relation."""
        steps_back = (above(a, b, _PLATEAU) for a, b in itertools.pairwise(seen))
        return _all(
            [above(seen[-1], seen[0], self.factor), *(None if back is None else not back for back in steps_back)]
        )

    @property
    def words(self) -> str:
        """See Relation."""
        return self._VERB + ("" if self.factor == 1 else f" by a factor of {self.factor:g} or more")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Falls(Rises):
    """The first quantity is more than `factor` times the last, and none more than the one before by 5 %."""

    _VERB: ClassVar[str] = "falls"

    def holds(self, seen: Sequence[Seen]) -> bool | None:
        """See Relation."""
        return Rises.holds(self, seen[::-1])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Maximum:
    """The greatest quantity is one of those at the places `at`."""

    at: tuple[int, ...]

    def holds(self, seen: Sequence[Seen]) -> bool | None:
        """See Relation."""
        inside = [seen[place] for place in self.at]
        others = [one for place, one in enumerate(seen) if place not in self.at]
        if any(all(above(other, one) for one in inside) for other in others):
            return False
        return True if any(all(above(one, other) for other in others) for one in inside) else None

    @property
    def words(self) -> str:
        """See Relation."""
        return "has its maximum there"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """No two quantities differ by more: by so many `points` of their unit, or by a `ratio` (0.1: by a tenth)."""

    points: float | None = None
    ratio: float | None = None

    def holds(self, seen: Sequence[Seen]) -> bool | None:
        """See Relation."""
        return _all(self._pair(a, b) for at, a in enumerate(seen) for b in seen[at + 1 :])

    def _pair(self, one: Seen, other: Seen) -> bool | None:
        if self.points is not None:
            most = max(one.high - other.low, other.high - one.low)
            least = max(one.low - other.high, other.low - one.high)
            return True if most <= self.points else False if least > self.points else None
        factor = 1 + (self.ratio or 0.0)
        apart = above(one, other, factor), above(other, one, factor)
        return False if True in apart else None if None in apart else True

    @property
    def words(self) -> str:
        """See Relation."""
        return f"alike within {self.points:g}" if self.points is not None else f"alike within {self.ratio or 0:.0%}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A relation and the quantities that it is about, in order. `where`: what they have in common, in words."""

    relation: Relation
    quantities: tuple[Hashable, ...]
    where: str
    #: what each quantity is, as far as they differ
    labels: tuple[str, ...]
    #: names of the anchors that its scaled points rest on
    anchors: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of an instance: what was seen of each quantity, and whether the relation holds (None: open).

    `why`: why it could not be judged, else None.
    """

    instance: Instance
    seen: tuple[Seen | None, ...]
    holds: bool | None
    why: str | None


class Verdict(enum.StrEnum):
    """What came of a claim."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    INCONCLUSIVE = "inconclusive"
    NOT_JUDGED = "not judged"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict on a claim, and the findings that it rests on. `why`: of one that is not judged, or judged in part.

    `judged` of `of` instances were measured.
    """

    verdict: Verdict
    why: str | None
    findings: tuple[Finding, ...] = ()

    @property
    def of(self) -> int:
        """Return how many instances there are."""
        return len(self.findings)

    @property
    def judged(self) -> int:
        """Return how many of them were measured."""
        return sum(finding.why is None for finding in self.findings)

    @property
    def part(self) -> str:
        """Say at how many places it was judged, where that is some of them; else nothing."""
        return f"at {self.judged} of {self.of} places" if 0 < self.judged < self.of else ""


def find(instance: Instance, look: Look, anchors: Mapping[str, "Judged"] = {}) -> Finding:
    """Return what measurements say of an instance; it is not judged where an anchor that it rests on differs."""
    looked = [look(quantity) for quantity in instance.quantities]
    seen = tuple(one if isinstance(one, Seen) else None for one in looked)
    lacking = (one.why for one in looked if isinstance(one, NotSeen))
    unfit = (
        f"scaled, and anchor {name} differs" for name in instance.anchors if anchors[name].verdict is Verdict.DIFFERS
    )
    why = next(itertools.chain(lacking, unfit), None)
    known = [one for one in seen if one is not None]
    return Finding(instance=instance, seen=seen, holds=instance.relation.holds(known) if why is None else None, why=why)


def judge(instances: Iterable[Instance], look: Look, anchors: Mapping[str, "Judged"] = {}) -> Judged:
    """Judge a claim by all of its instances that were measured, given the verdicts on the anchors that they rest on.

    It differs where one of them does not hold, is reproduced where all do, and is inconclusive in between. What was
    not measured counts as nothing; `why` says that there was some. Without any that was, it is not judged.

    An anchor compares a published point with its scaled one. Where one differs, instances that rest on it count as
    nothing, too; where one is open or was not measured, they count, and `why` says so.
    """
    findings = tuple(find(instance, look, anchors) for instance in instances)
    whys = dict.fromkeys(finding.why for finding in findings if finding.why is not None)
    held = [finding.holds for finding in findings if finding.why is None]
    if not held:
        return Judged(verdict=Verdict.NOT_JUDGED, why="; ".join(whys) or "it says nothing", findings=findings)
    used = dict.fromkeys(name for finding in findings if finding.why is None for name in finding.instance.anchors)
    whys |= dict.fromkeys(
        f"scaled, and anchor {name} {_OPEN[anchors[name].verdict]}" for name in used if anchors[name].verdict in _OPEN
    )
    return Judged(verdict=_VERDICTS[_all(held)], why="; ".join(whys) or None, findings=findings)


_VERDICTS = {True: Verdict.REPRODUCED, False: Verdict.DIFFERS, None: Verdict.INCONCLUSIVE}
_OPEN = {Verdict.INCONCLUSIVE: "is inconclusive", Verdict.NOT_JUDGED: "was not measured"}


def counts(judged: Iterable[Judged]) -> dict[Verdict, int]:
    """Return how many claims have each verdict."""
    found = [one.verdict for one in judged]
    return {verdict: found.count(verdict) for verdict in Verdict}


def words_of(found: Finding) -> Iterator[str]:
    """Yield a phrase for each quantity that was seen: its label, median and interval."""
    for label, seen in zip(found.instance.labels, found.seen, strict=True):
        if seen is not None:
            yield f"{label} {seen.median:.4g} ({seen.low:.4g} to {seen.high:.4g})".strip()
