"""Compare shares of trials: of those that fail, that time out, and that show a quantity at all.

Each is compared in every place where either side has any, and failures and timeouts of all places together as well: a
build that fails in one trial of five fails in too few trials of any one place to tell.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

from conformance.model.diagnosis.feature_table import FOLLOWS
from conformance.model.judging.question import Named
from conformance.model.networks.place import Point
from conformance.model.studies.comparison import Quantity, Tolerance, Values
from conformance.model.trials.trial import Measurement, Outcome

#: what the shares are called, and what they point at
FAILURES, TIMEOUTS = "failures", "timeouts"
#: the place of shares of all places together
EVERYWHERE = Named("all places")
#: how a sentence says that a trial failed or timed out
_DID = {FAILURES: "failed", TIMEOUTS: "timed out"}
#: {seed: what was said} of the trials that ended so
Said = Mapping[int, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnds:
    """How the trials of one side ended in a place: the seeds that were tried, and {seed: what was said} of some."""

    seeds: Collection[int]
    failed: Said
    timed_out: Said = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, measurements: Sequence[Measurement]) -> "TrialEnds":
        """Return how these trials ended."""
        return cls(
            seeds=[m.trial.seed for m in measurements], failed=_said(measurements, Outcome.FAILED),
            timed_out=_said(measurements, Outcome.TIMEOUT),
        )  # fmt: skip

    def said(self, name: str) -> Said:
        """Return what was said in the trials that FAILURES or TIMEOUTS are about."""
        return self.failed if name == FAILURES else self.timed_out


#: how the trials of both sides ended: the base's, the head's
Ends = tuple[TrialEnds, TrialEnds]
#: a share as it is compared, the values of both sides, and what the head does in words
ComparedShare = tuple[Quantity, tuple[Values, Values], str]


def of_place(algorithm: str, profile: str, place: Point, ends: Ends) -> Iterator[ComparedShare]:
    """Yield the shares of failures and of timeouts in a place, as far as either side has any."""
    for name in _DID:
        if any(ended.said(name) for ended in ends):
            before, after = ({seed: float(seed in e.said(name)) for seed in sorted(e.seeds)} for e in ends)
            yield _quantity(name, algorithm, profile, place), (before, after), _sentence(name, ends)


def of_all_places(algorithm: str, places: Sequence[Ends]) -> Iterator[ComparedShare]:
    """Yield the shares of failures and of timeouts in several places together, as far as either side has any."""
    if len(places) > 1:
        yield from of_place(algorithm, "", EVERYWHERE, together(places))


def together(places: Sequence[Ends]) -> Ends:
    """Return how the trials of both sides ended in one or several places, as if these were one."""
    return places[0] if len(places) == 1 else (_of_side(places, 0), _of_side(places, 1))


def of_showing(
    quantity: Quantity, shown: Sequence[Collection[int]], seeds: Sequence[Collection[int]]
) -> Iterator[ComparedShare]:
    """Yield the share of trials that show a quantity, if some do and some do not.

    `shown`: the seeds of those that do on each side; `seeds`: of those that it tried.
    Whether it is compared depends on how many do on both sides together, which the test takes as given.
    """
    before, after = (
        {seed: float(seed in of) for seed in sorted(tried)} for of, tried in zip(shown, seeds, strict=True)
    )
    every = [*before.values(), *after.values()]
    if before and after and 0 < sum(every) < len(every):
        showing = dataclasses.replace(
            quantity, name=f"{quantity.name}: shown", tolerance=Tolerance(), digits=2, unit="", is_share=True,
            weight=min(quantity.weight, FOLLOWS),
        )  # fmt: skip
        head, base = (f"{sum(of.values()):g} of {len(of)} trials show it" for of in (after, before))
        yield showing, (before, after), f"{head}; on base, {base}"


def _quantity(name: str, algorithm: str, profile: str, place: Point) -> Quantity:
    return Quantity(
        algorithm=algorithm, name=name, place=place, profile=profile, tolerance=Tolerance(), digits=2, weight=FOLLOWS,
        label=name, is_share=True,
    )  # fmt: skip


def _said(measurements: Sequence[Measurement], outcome: Outcome) -> dict[int, str]:
    return {m.trial.seed: str(m.message) for m in measurements if m.outcome is outcome}


def _of_side(places: Sequence[Ends], at: int) -> TrialEnds:
    """Return how the trials of one side ended in all places, numbered through.

    Only seeds count that both sides tried in a place, so that each place weighs as much on both sides.
    """
    trials = [(ends[at], seed) for ends in places for seed in sorted({*ends[0].seeds} & {*ends[1].seeds})]
    failed, timed_out = (
        {number: of.said(name)[seed] for number, (of, seed) in enumerate(trials) if seed in of.said(name)}
        for name in _DID
    )
    return TrialEnds(seeds=range(len(trials)), failed=failed, timed_out=timed_out)


def _sentence(name: str, ends: Ends) -> str:
    """Return how many of each side's trials ended so, head first, and what was said."""
    base, head = (_words(name, ended) for ended in ends)
    return f"{head}; on base, {base}"


def _words(name: str, ended: TrialEnds) -> str:
    said, of = ended.said(name), len(ended.seeds)
    return (
        f"{len(said)} of {of} trials {_DID[name]}: {next(iter(said.values()))}"
        if said
        else f"none of {of} {_DID[name]}"
    )
