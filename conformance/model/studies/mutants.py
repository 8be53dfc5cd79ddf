"""Test the zones by mutants, each with a bug that congestion controls have had: score how many the zones detect.

A mutant is *detected* if it violates a zone of its algorithm, *missed* if it violates none, and an *error* if nothing
is known; then it counts for neither. This module does not know how mutants are made and run.
"""

import dataclasses
import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from conformance.model.errors import UserError
from conformance.model.judging import statistics
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.judging.zone import Interval, Zone
from conformance.model.networks.place import Point


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mutant:
    """A mutant is made by `parameters` of the kernel `kernel`, or is the algorithm `measured` of the adapter `stack`.

    `algorithm` is what it claims to be. `suspect`: what an analysis of its traces should name first. `expected`: where
    the bug should show, if that is known.
    """

    id: str
    algorithm: str
    what: str
    reference: Mapping[str, Any]
    suspect: str
    stack: str
    measured: str
    kernel: str | None = None
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    expected: "ExpectedMutant | None" = None

    @property
    def first(self) -> list["Where"]:
        """The places to look at first."""
        return [(self.expected.profile, self.expected.cell)] if self.expected else []


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExpectedMutant:
    """In a cell under a profile, a metric lies on a `side`, "below" or "above", of the algorithm without the bug."""

    profile: str
    cell: Point
    metric: str
    side: str

    def shows(self, with_bug: Sequence[float], without: Sequence[float]) -> bool:
        """Return whether the medians with and without the bug lie as expected."""
        ours, others = statistics.median(with_bug), statistics.median(without)
        return ours < others if self.side == "below" else ours > others


#: the stack whose congestion control is the guest kernel's
KERNEL_STACK = "linux-tcp"


def from_json(data: Mapping[str, Any], where: object) -> tuple[Mutant, ...]:
    """Return the mutants of a document that satisfies the schema; `where` names it in errors. Raises UserError."""
    mutants: dict[str, Mutant] = {}
    for at, entry in enumerate(data["mutants"]):
        if entry["id"] in mutants:
            raise UserError(f"{where}: /mutants/{at}: mutant {entry['id']} is listed twice")
        if not entry["id"].startswith(entry["algorithm"]):
            raise UserError(f"{where}: /mutants/{at}/id: it does not begin with {entry['algorithm']}")
        build, expected = entry["made"], entry.get("expected")
        mutants[entry["id"]] = Mutant(
            **{name: entry[name] for name in ("id", "algorithm", "what", "reference", "suspect")},
            stack=build.get("adapter", KERNEL_STACK),
            measured=build.get("algorithm", entry["algorithm"]),
            kernel=build.get("kernel"),
            parameters=build.get("parameters", {}),
            expected=expected and ExpectedMutant(**{**expected, "cell": Point.parse(expected["cell"])}),
        )
    return tuple(mutants.values())


def choose(mutants: Sequence[Mutant], ids: Sequence[str]) -> Sequence[Mutant]:
    """Return the mutants with these ids, or all if none is named. Raises UserError for an unknown id."""
    known = {mutant.id: mutant for mutant in mutants}
    for name in ids:
        if name not in known:
            alike = [mutant for mutant in known if mutant.partition("-")[0] == name.partition("-")[0]]
            mend = f"choose one of {', '.join(alike)}" if alike else "mutants/mutants.json lists them"
            raise UserError(f"mutant {name!r} is not known", mend)
    return [known[name] for name in ids] if ids else list(mutants)


#: a profile or a scenario, and a cell or a point of it
Where = tuple[str, Point]
T = TypeVar("T")


class MutantOutcome(enum.StrEnum):
    DETECTED = "detected"
    MISSED = "missed"
    ERROR = "error"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MutantFinding:
    """The result of one mutant: the verdicts on its cells, and how many trials they took."""

    mutant: Mutant
    verdicts: tuple[Verdict, ...]
    trials: int

    @property
    def outcome(self) -> MutantOutcome:
        status = {verdict.status for verdict in self.verdicts}
        if any(verdict.status.against for verdict in self.verdicts):
            return MutantOutcome.DETECTED
        # Nothing is known about a mutant that did not run everywhere.
        return (
            MutantOutcome.ERROR if not status or status & {Status.ERROR, Status.UNSUPPORTED} else MutantOutcome.MISSED
        )

    @property
    def telling(self) -> list[Verdict]:
        """The verdicts that violate, the furthest outside first."""
        return sorted((v for v in self.verdicts if v.status.against), key=_outside, reverse=True)


def _outside(verdict: Verdict) -> float:
    """Return how far a median is outside the permitted interval, in widths of that interval."""
    low, high = verdict.permitted.low, verdict.permitted.high
    if verdict.value is None:
        return math.inf  # it failed
    return float(max(low - verdict.value, verdict.value - high)) / max(high - low, 1e-9)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    detected: int
    missed: int
    errors: int

    @property
    def share(self) -> float | None:
        """The share of the mutants that ran which was detected; None if none ran."""
        ran = self.detected + self.missed
        return self.detected / ran if ran else None

    def __str__(self) -> str:
        share = "" if self.share is None else f" ({self.share:.1%})"
        errors = f", {self.errors} errors" if self.errors else ""
        return f"detected {self.detected} of {self.detected + self.missed}{share}, missed {self.missed}{errors}"


def score(findings: Sequence[MutantFinding]) -> Score:
    count = {outcome: sum(f.outcome is outcome for f in findings) for outcome in MutantOutcome}
    return Score(
        detected=count[MutantOutcome.DETECTED], missed=count[MutantOutcome.MISSED], errors=count[MutantOutcome.ERROR]
    )


def order(zones: Sequence[Zone], first: Sequence[Where] = (), most: Sequence[Where] = ()) -> list[Where]:
    """Return [(profile, cell)] of these zones, those first that are most likely to detect a mutant.

    `first`: those that detected this mutant before; `most`: those that detected others, with an entry for each other.
    Then come those whose zone is narrow for what it permits.
    """
    widths: dict[Where, float] = {}
    for zone in zones:
        for cell, interval in zone.intervals.items():
            where = zone.profile, cell
            widths[where] = min(_width(interval), widths.get(where, float("inf")))

    def key(where: Where) -> tuple[int, int, float, Where]:
        at = first.index(where) if where in first else len(first)
        return at, -most.count(where), widths[where], where

    return sorted(widths, key=key)


def _width(interval: Interval) -> float:
    """Return the width of an interval divided by its middle; an interval that permits everything is the widest."""
    middle = (interval.high + interval.low) / 2
    return (interval.high - interval.low) / middle if middle else float("inf")


def rounds(items: Sequence[T], sizes: Sequence[int]) -> Iterator[Sequence[T]]:
    """Yield the parts of a list, of these sizes; the last size repeats as often as needed."""
    at = 0
    for size in (*sizes, *[sizes[-1]] * len(items)):
        if part := items[at : at + size]:
            yield part
        at += size


def upper_bound(k: int, n: int) -> float:
    """Return the one-sided upper 95 % confidence bound of the probability of an event that happened k times in n.

    Exact (C. J. Clopper, E. S. Pearson, Biometrika 26, 1934): 0 of 200 gives 1.5 %.
    """
    import scipy.stats  # imported late: it takes 40 MB, and memory may be short

    return 1.0 if k == n else float(scipy.stats.beta.ppf(0.95, k + 1, n - k))
