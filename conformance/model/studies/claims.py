"""Judge claims of a published study, which are relations over points, by measurements. Pure.

A *quantity* is a metric of one group of flows at a point. Trials give the 90 % confidence interval of its median
(statistics.py). A relation holds if it does for all values that these intervals allow, does not hold if it does for
none, and is open otherwise. So each side needs at least five trials. Nothing here knows what a quantity is; `Look`
returns what was seen of it.
"""

import dataclasses
import enum
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Protocol

from conformance.model.judging import statistics


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What trials say about a quantity: the median of `n` trials, and its confidence interval."""

    median: float
    #: End of the interval that contains the median with 90 % confidence; null if there are too few trials.
    low: Annotated[float, float | None]
    high: Annotated[float, float | None]
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """Return the Estimate of these values; if there are fewer than five, the interval has no bounds."""
        low, high = statistics.median_interval(values)
        return cls(median=statistics.median(values), low=low, high=high, n=len(values))


@dataclasses.dataclass(frozen=True, slots=True)
class NotSeen:
    """The reason, in words, why nothing is known about a quantity."""

    why: str


#: what rises or falls may stand still in between: a step back by less than this factor does not count
_PLATEAU = 1.05
Lookup = Callable[[Hashable], Estimate | NotSeen]


class Relation(Protocol):
    """What a claim says about the quantities of one instance, which have an order."""

    def holds(self, sightings: Sequence[Estimate]) -> bool | None:
        """Return whether the relation holds; None if intervals leave that open."""
        ...

    @property
    def words(self) -> str:
        """The relation in words, for people."""
        ...


def _all(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all hold: False if one does not, else None if one is open."""
    known = list(answers)
    return False if False in known else None if None in known else True


def above(first: Estimate, other: Estimate, factor: float = 1.0) -> bool | None:
    """Return whether a quantity is more than `factor` times another; None if intervals leave that open."""
    if first.low > factor * other.high:
        return True
    return False if first.high <= factor * other.low else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Each quantity lies between two values; either may be infinite."""

    low: float
    high: float

    def holds(self, sightings: Sequence[Estimate]) -> bool | None:
        """See Relation."""
        return _all(map(self._one, sightings))

    def _one(self, estimate: Estimate) -> bool | None:
        if self.low <= estimate.low and estimate.high <= self.high:
            return True
        return False if estimate.high < self.low or estimate.low > self.high else None

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

    def holds(self, sightings: Sequence[Estimate]) -> bool | None:
        """See Relation."""
        return _all(above(a, b, self.factor) for a, b in itertools.pairwise(sightings))

    @property
    def words(self) -> str:
        """See Relation."""
        return "each above the next" + ("" if self.factor == 1 else f" by a factor of {self.factor:g}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rises:
    """The last quantity is more than `factor` times the first, and none is less than the one before by 5 %."""

    factor: float = 1.0
    _VERB: ClassVar[str] = "rises"

    def holds(self, sightings: Sequence[Estimate]) -> bool | None:
        """See Relation."""
        steps_back = (above(a, b, _PLATEAU) for a, b in itertools.pairwise(sightings))
        return _all(
            [
                above(sightings[-1], sightings[0], self.factor),
                *(None if back is None else not back for back in steps_back),
            ]
        )

    @property
    def words(self) -> str:
        """See Relation."""
        return self._VERB + ("" if self.factor == 1 else f" by a factor of {self.factor:g} or more")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Falls(Rises):
    """The first quantity is more than `factor` times the last, and none is more than the one before by 5 %."""

    _VERB: ClassVar[str] = "falls"

    def holds(self, sightings: Sequence[Estimate]) -> bool | None:
        """See Relation."""
        return Rises.holds(self, sightings[::-1])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Maximum:
    """The greatest quantity is one of those at the positions `at`."""

    at: tuple[int, ...]

    def holds(self, sightings: Sequence[Estimate]) -> bool | None:
        """See Relation."""
        inside = [sightings[place] for place in self.at]
        others = [estimate for place, estimate in enumerate(sightings) if place not in self.at]
        if any(all(above(other, inner) for inner in inside) for other in others):
            return False
        return True if any(all(above(inner, other) for other in others) for inner in inside) else None

    @property
    def words(self) -> str:
        """See Relation."""
        return "has its maximum where claimed"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """No two quantities differ by more than `points` of their unit, or by more than a `ratio` (0.1: a tenth)."""

    points: float | None = None
    ratio: float | None = None

    def holds(self, sightings: Sequence[Estimate]) -> bool | None:
        """See Relation."""
        return _all(self._pair(a, b) for at, a in enumerate(sightings) for b in sightings[at + 1 :])

    def _pair(self, first: Estimate, other: Estimate) -> bool | None:
        if self.points is not None:
            most = max(first.high - other.low, other.high - first.low)
            least = max(first.low - other.high, other.low - first.high)
            return True if most <= self.points else False if least > self.points else None
        factor = 1 + (self.ratio or 0.0)
        apart = above(first, other, factor), above(other, first, factor)
        return False if True in apart else None if None in apart else True

    @property
    def words(self) -> str:
        """See Relation."""
        return f"alike within {self.points:g}" if self.points is not None else f"alike within {self.ratio or 0:.0%}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A relation and its quantities, in order. `where`: the coordinates that they have in common, in words."""

    relation: Relation
    quantities: tuple[Hashable, ...]
    where: str
    #: for each quantity, the coordinates in which it differs from the others, in words
    labels: tuple[str, ...]
    #: names of the anchors that its scaled points rest on
    anchors: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSeen:
    """What trials say about the quantity that `label` tells from others."""

    SHOWN = ("label", "median=estimate.median", "low=estimate.low", "high=estimate.high", "trials=estimate.n")

    label: str
    estimate: Estimate


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFinding:
    """The result of an instance: what was seen of each quantity, and whether the relation holds."""

    SHOWN = (
        "where=instance.where",
        #: The relation, in words.
        "asked=instance.relation.words",
        "holds", "why", "seen=labelled",
    )  # fmt: skip

    instance: Instance
    estimates: tuple[Estimate | None, ...]
    #: Null if the intervals leave it open, or it was not measured.
    holds: bool | None
    #: Why it could not be judged.
    why: str | None

    @property
    def labelled(self) -> list[LabelledSeen | None]:
        """What was seen of each quantity, with its label."""
        return [
            None if estimate is None else LabelledSeen(label=label, estimate=estimate)
            for label, estimate in zip(self.instance.labels, self.estimates, strict=True)
        ]


class ClaimVerdict(enum.StrEnum):
    """The verdict on a claim."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    INCONCLUSIVE = "inconclusive"
    NOT_JUDGED = "not judged"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JudgedClaim:
    """The verdict on a claim, and the findings that it rests on."""

    SHOWN = ("verdict", "why", "judged", "of", "findings")

    verdict: ClaimVerdict
    #: Why it is not judged, or judged only in part.
    why: str | None
    findings: tuple[ClaimFinding, ...] = ()

    @property
    def of(self) -> int:
        """The number of places in all."""
        return len(self.findings)

    @property
    def judged(self) -> int:
        """The number of places at which it was judged."""
        return sum(finding.why is None for finding in self.findings)

    @property
    def part(self) -> str:
        """A phrase with the number of instances that were judged, if that is some but not all; else empty."""
        return f"at {self.judged} of {self.of} places" if 0 < self.judged < self.of else ""


def find(instance: Instance, look: Lookup, anchors: Mapping[str, "JudgedClaim"] = {}) -> ClaimFinding:
    """Return the ClaimFinding of an instance; it is not judged if an anchor that it rests on differs."""
    looked = [look(quantity) for quantity in instance.quantities]
    sightings = tuple(estimate if isinstance(estimate, Estimate) else None for estimate in looked)
    lacking = (invisible.why for invisible in looked if isinstance(invisible, NotSeen))
    unfit = (
        f"scaled, and anchor {name} differs"
        for name in instance.anchors
        if anchors[name].verdict is ClaimVerdict.DIFFERS
    )
    why = next(itertools.chain(lacking, unfit), None)
    known = [estimate for estimate in sightings if estimate is not None]
    return ClaimFinding(
        instance=instance, estimates=sightings, holds=instance.relation.holds(known) if why is None else None, why=why
    )


def judge(instances: Iterable[Instance], look: Lookup, anchors: Mapping[str, "JudgedClaim"] = {}) -> JudgedClaim:
    """Judge a claim by all of its instances that were measured, given the verdicts on the anchors that they rest on.

    The claim differs if one of them does not hold, is reproduced if all hold, and is inconclusive otherwise. Instances
    that were not measured do not count, but `why` mentions them. If none was measured, the claim is not judged.

    An anchor compares a published point with its scaled one. If an anchor differs, the instances that rest on it do not
    count, either. If an anchor is inconclusive or was not measured, they count, and `why` says so.
    """
    findings = tuple(find(instance, look, anchors) for instance in instances)
    whys = dict.fromkeys(finding.why for finding in findings if finding.why is not None)
    held = [finding.holds for finding in findings if finding.why is None]
    if not held:
        return JudgedClaim(
            verdict=ClaimVerdict.NOT_JUDGED, why="; ".join(whys) or "it has nothing to judge", findings=findings
        )
    used = dict.fromkeys(name for finding in findings if finding.why is None for name in finding.instance.anchors)
    whys |= dict.fromkeys(
        f"scaled, and anchor {name} {_OPEN[anchors[name].verdict]}" for name in used if anchors[name].verdict in _OPEN
    )
    return JudgedClaim(verdict=_VERDICTS[_all(held)], why="; ".join(whys) or None, findings=findings)


_VERDICTS = {True: ClaimVerdict.REPRODUCED, False: ClaimVerdict.DIFFERS, None: ClaimVerdict.INCONCLUSIVE}
_OPEN = {ClaimVerdict.INCONCLUSIVE: "is inconclusive", ClaimVerdict.NOT_JUDGED: "was not measured"}


def counts(judged: Iterable[JudgedClaim]) -> dict[ClaimVerdict, int]:
    """Return how many claims have each verdict."""
    verdicts = [judged.verdict for judged in judged]
    return {verdict: verdicts.count(verdict) for verdict in ClaimVerdict}


def words_of(finding: ClaimFinding) -> Iterator[str]:
    """Yield a phrase for each quantity that was seen: its label, median and interval."""
    for label, estimate in zip(finding.instance.labels, finding.estimates, strict=True):
        if estimate is not None:
            yield f"{label} {estimate.median:.4g} ({estimate.low:.4g} to {estimate.high:.4g})".strip()
