"""Say whether suspects can explain a difference of rate, by the direction in which each acts, and for how long.

A suspect can explain a difference of rate from the reference if a piece of its evidence

- acts in its direction: a larger beta, for example, makes no transfer slower;
- acts in the phase in which the difference arises. What acts in start-up alone lengthens or shortens a transfer by the
  length of start-up at most.

What shows only in networks that change explains no difference of rate in networks that do not.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from conformance.model.diagnosis.feature_table import CELLS, CLEAN
from conformance.model.diagnosis.ranking import Evidence, Reading, Suspect
from conformance.model.networks.place import Cell

#: {feature's name: 1 if a larger value makes a higher rate, -1 if a lower one, 0 if either}, of features in networks
#: that do not change
_ACTS: Mapping[str, int] = {
    "initial_window": 1, "start_up_growth": 1, "start_up_time": -1, "start_up_length": 0, "start_up_losses": -1,
    "start_up_burst": -1, "burst": -1, "kept": 1, "trough": 1, "responded": -1, "kept_of_several": 1, "growth": 1,
    "doubling": 1, "half_time_share": 0, "epoch_s": 0, "mean_window": 1, "payload": 1, "throughput": 1,
    "queue_mean": 1, "queue_low": 1, "queue_after_start_up": 0, "rate_high": 1, "rate_low": 1, "flight_high": 1,
    "dips_per_10_s": -1,
}  # fmt: skip
#: features that act until a transfer has filled its path, and no longer. A start-up that is left early, or that ends
#: with many losses, is none: the window that it leaves may be too small for long.
_START_UP = ("initial_window", "start_up_growth", "start_up_time", "start_up_burst")
_START_UP_TIME = "start_up_time"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A rate that differs from the reference's: shares of what the bottleneck carries.

    `start_up`: the longer start-up's share of the longer transfer; None if it is not known.
    """

    where: str
    ours: float
    theirs: float
    start_up: float | None

    @property
    def size(self) -> float:
        """The share of its time by which the faster transfer is shorter."""
        return 1 - min(self.ours, self.theirs) / max(self.ours, self.theirs)


def difference(
    where: str, cell: Cell, seconds: float, ours: float, theirs: float, readings: Sequence[Mapping[str, Reading]]
) -> Difference:
    """Return the Difference of two rates in a cell; a transfer has `seconds` of data at the cell's bandwidth.

    `readings` are those of both sides, {feature's id: Reading}. They say in how many round trips start-up filled the
    path of the cell CLEAN; a path that holds more takes one more for each doubling. A round trip counts with a queue
    of one BDP, twice.
    """
    rounds = [of[name].value for of in readings if (name := f"{_START_UP_TIME}-{CLEAN}") in of]
    start_up = None
    if rounds and min(ours, theirs) > 0:
        clean = CELLS[CLEAN][0]
        larger = max(cell.bandwidth_mbps * cell.one_way_delay_ms / clean.bandwidth_mbps / clean.one_way_delay_ms, 1.0)
        start_up_s = (max(rounds) + math.log2(larger)) * 2 * 2 * cell.one_way_delay_ms / 1e3
        start_up = min(start_up_s / (seconds / min(ours, theirs)), 1.0)
    return Difference(where=where, ours=ours, theirs=theirs, start_up=start_up)


def unexplained(difference: Difference, suspects: Sequence[Suspect]) -> dict[str, str] | None:
    """Return {suspect's label: why it cannot explain a difference}; None if any suspect can."""
    why = {suspect.label: list(_why_not(difference, suspect)) for suspect in suspects}
    return {label: reasons[0] for label, reasons in why.items()} if all(why.values()) else None


def _why_not(difference: Difference, suspect: Suspect) -> Iterator[str]:
    """Yield why each piece of evidence cannot explain a difference; nothing if one can."""
    reasons = [_reason(difference, evidence) for evidence in suspect.evidence]
    if all(reasons):
        yield from (reason for reason in reasons if reason)


def _reason(difference: Difference, evidence: Evidence) -> str | None:
    name, faster = evidence.feature.name, difference.ours > difference.theirs
    if name not in _ACTS:
        return "it acts where networks change"
    if name in _START_UP and difference.start_up is not None and difference.size > difference.start_up:
        return f"it acts in start-up alone, {difference.start_up:.0%} of the transfer at most"
    acts = _ACTS[name] if evidence.ours.value > evidence.theirs.value else -_ACTS[name]
    if acts and (acts > 0) != faster:
        return f"it would make transfers {'slower' if faster else 'faster'}"
    return None
