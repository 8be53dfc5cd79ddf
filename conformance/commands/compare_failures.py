"""Compare how often both sides of a comparison fail: their programs end, break off or stay silent in a transfer."""

from collections.abc import Mapping, Sequence

from conformance.model.diagnosis.feature_table import FOLLOWS
from conformance.model.networks.place import Point
from conformance.model.studies.comparison import Quantity, Tolerance, Values
from conformance.model.trials.trial import Measurement, Outcome

#: what it is called, and what it points at
LABEL = "failures"
#: {seed: what the stack's programs said} of the trials that failed
Said = Mapping[int, str]


def quantity(algorithm: str, profile: str, place: Point) -> Quantity:
    """Return the share of trials in a place that fail."""
    return Quantity(
        algorithm=algorithm, name=LABEL, place=place, profile=profile, tolerance=Tolerance(), digits=2, weight=FOLLOWS,
        label=LABEL, is_share=True,
    )  # fmt: skip


def said(measurements: Sequence[Measurement]) -> dict[int, str]:
    """Return what the stack's programs said in trials that failed."""
    return {m.trial.seed: str(m.message) for m in measurements if m.outcome is Outcome.FAILED}


def values(failed: Said, others: Sequence[int]) -> Values:
    """Return {seed: 1 if it failed, else 0}, in order; `others`: the seeds of trials that did not fail."""
    return {seed: float(seed in failed) for seed in sorted({*failed, *others})}


def sentence(sides: Sequence[tuple[Said, int]]) -> str:
    """Return how many of each side's trials failed, head first, and what the programs said."""
    (base, of_base), (head, of_head) = sides
    return f"{_words(head, of_head)}; on base, {_words(base, of_base)}"


def _words(failed: Said, of: int) -> str:
    return f"{len(failed)} of {of} trials failed: {next(iter(failed.values()))}" if failed else f"none of {of} failed"
