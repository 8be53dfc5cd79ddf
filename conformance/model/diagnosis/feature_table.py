"""List the features that `why` reads: the cells of each, the label that it points at, and how much it may differ.

*Labels* are those of mutants/mutants.json. One fault shows in many features (a window that is cut less is reduced
sooner, and stands in a longer queue), so a feature that shows a fault directly weighs more than one that follows from
it.
"""

import dataclasses
from collections.abc import Iterator

from conformance.model.networks.place import Cell

#: names of cells: no random loss, a loss now and then, many losses, and more than BBRv2 and BBRv3 tolerate
CLEAN, FEW, MANY, HEAVY = "clean", "few", "many", "heavy"
#: {name: (cell, seconds' worth of data)}. They show, in this order: three of BBR's ten-second minima; enough loss
#: events; a window that many losses keep small; a rate that losses keep low, except BBRv1's
CELLS = {
    CLEAN: (Cell(10, 40, 0), 30),
    FEW: (Cell(10, 20, 0.3), 15),
    MANY: (Cell(10, 20, 3), 5),
    HEAVY: (Cell(10, 20, 6), 5),
}
#: the profile: a tail-drop queue of one BDP, and random loss of single packets
PROFILE = "identify"
#: weights of features: caused by no other fault, direct, perhaps caused by other faults, caused by most faults
ALONE, _DIRECT, LESS, FOLLOWS = 3.0, 1.0, 0.5, 0.25


#: the labels that a feature points at: for senders that a loss should slow down, and for BBR; None for no label
Label = tuple[str | None, str | None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Feature:
    """A number to read in a cell; `label` is what a deviation points at.

    `tolerance` is a difference, or, with `ratio`, a factor. `says`: the beginning of a sentence, with {value}, {low},
    {high} and {n}; `above`, `below`: what a larger or smaller value than the reference's would mean.
    """

    name: str
    cell: str
    label: Label
    tolerance: float
    says: str
    above: str
    below: str
    ratio: bool = False
    weight: float = _DIRECT
    digits: int = 2
    mean: bool = False
    #: the fewest samples that are needed
    least: int = 1
    #: a smaller value is no fault
    only_above: bool = False
    #: the value is divided by what isolated losses leave
    of_kept: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}-{self.cell}"


def cells(algorithm: str) -> list[str]:
    """Return the names of the cells in which an algorithm is traced: those with at least one of its features."""
    return [name for name in CELLS if any(f.cell == name and label_of(f, algorithm) is not None for f in FEATURES)]


def like(loss_pct: float) -> str:
    """Return the name of the cell whose features say something about a path with this much random loss."""
    return next(name for name, most in ((CLEAN, 0), (FEW, 1), (MANY, 4), (HEAVY, 100)) if loss_pct <= most)


def label_of(feature: Feature, algorithm: str) -> str | None:
    """Return what a feature points at for an algorithm; None if it says nothing about it."""
    return feature.label[is_bbr(algorithm)]


def readable(cell: str, algorithm: str) -> list[Feature]:
    """Return the features of an algorithm that traces of one cell alone can show: not what divides by another cell's.

    They divide by what isolated losses leave.
    """
    has_kept = any(feature.name == "kept" and feature.cell == cell for feature in FEATURES)
    mine = (feature for feature in FEATURES if feature.cell == cell and label_of(feature, algorithm))
    return [feature for feature in mine if has_kept or not feature.of_kept]


def is_bbr(algorithm: str) -> bool:
    """Return whether an algorithm is a version of BBR: a model of the path, not losses, decides what it sends."""
    return algorithm.startswith("bbr")


class _Times(float):
    """A tolerance that is a factor; any other number is a difference."""


@dataclasses.dataclass(frozen=True)
class _In:
    """A cell in which a feature is read; `where` is how the feature's sentence names it."""

    cell: str
    tolerance: float
    weight: float = _DIRECT
    where: str = ""
    least: int = 1


def _row(
    name: str, label: Label, *cells: _In, says: str, means: tuple[str, str],
    digits: int = 2, mean: bool = False, only_above: bool = False, of_kept: bool = False,
) -> Iterator[Feature]:  # fmt: skip
    """Yield one feature for each of the cells; `means` is what a larger and what a smaller value would mean."""
    above, below = means
    for place in cells:
        yield Feature(
            name=name, cell=place.cell, label=label, tolerance=float(place.tolerance),
            ratio=isinstance(place.tolerance, _Times), weight=place.weight, least=place.least,
            says=says.replace("{where}", place.where), above=above, below=below,
            digits=digits, mean=mean, only_above=only_above, of_kept=of_kept,
        )  # fmt: skip


def _both(label: str) -> Label:
    return (label, label)


def _of_loss(label: str) -> Label:
    return (label, None)


def _of_bbr(label: str) -> Label:
    return (None, label)


_START_UP_LEFT = ("a start-up that is left late", "a start-up that is left early")
_BURSTS = ("larger bursts than it should send", "smaller bursts than it should send")

# Each row has a feature's name, its label, the cells with its tolerance and weight there (_DIRECT if none is given),
# and its sentence.
# fmt: off
FEATURES = (
    *_row("initial_window", _both("initial_window"), _In(CLEAN, _Times(1.25), ALONE), digits=0,
          says="it sent {value} full packets in the first round trip",
          means=("a larger initial window", "a smaller initial window")),
    *_row("start_up_growth", ("slow_start", "gains"), _In(CLEAN, _Times(1.2)),
          says="in start-up it sent {value} times as much each round trip as in the one before ({n} round trips)",
          means=("a start-up that is too fast", "a start-up that is too slow")),
    *_row("start_up_time", ("slow_start", "gains"), _In(CLEAN, _Times(1.6), LESS), digits=0,
          says="it took {value} round trips to fill the path",
          means=("a start-up that is too slow, or left too early", "a start-up that is too fast")),
    *_row("start_up_length", _both("slow_start"), _In(CLEAN, _Times(1.4)), digits=0, means=_START_UP_LEFT,
          says="it sent faster than the bottleneck until round trip {value}"),
    *_row("start_up_losses", _both("slow_start"), _In(CLEAN, 0.4, LESS), means=_START_UP_LEFT,
          says="start-up ended with losses of {value} BDP"),
    *_row("start_up_burst", _both("pacing"), _In(CLEAN, _Times(1.4), LESS), digits=1, only_above=True, means=_BURSTS,
          says="in start-up, packets left in bursts of {value}"),
    *_row("burst", _of_bbr("pacing"), _In(CLEAN, _Times(1.25), ALONE), digits=1, only_above=True, means=_BURSTS,
          says="after start-up, packets left in bursts of {value}"),
    *_row("kept", ("beta", "response"), _In(FEW, 0.04, least=5),
          says="after {n} isolated losses it kept {value} ({low}..{high}) of its window",
          means=("as if beta were {value}", "as if beta were {value}")),
    *_row("trough", ("beta", "response"), _In(FEW, 0.15, least=5),
          says="after {n} isolated losses its flight fell to {value} ({low}..{high}) of its window",
          means=("less of a reduction", "more of a reduction")),
    *_row("responded", _of_loss("response"),
          _In(FEW, 0.15, ALONE, least=5),
          _In(CLEAN, 0.15, LESS, " of a full queue"), mean=True,
          says="{value} of {n} loss events{where} were followed by a smaller window",
          means=("a reduction too often", "a reduction that is missing")),
    *_row("kept_of_several", _of_loss("every_loss"),
          _In(CLEAN, _Times(1.3), where=", a full queue"),
          _In(FEW, _Times(1.3)),
          _In(MANY, _Times(1.3), where=", at 3 % of loss"), of_kept=True,
          says="losses of several packets ({n} events{where}) left {value} of what isolated ones leave",
          means=("no reduction where several are lost", "a reduction for every packet lost")),
    # The weight is less than _DIRECT, as CUBIC's growth follows from its beta (RFC 9438, 4.3).
    *_row("growth", _of_loss("growth"), _In(FEW, 0.15, 0.75, least=5),
          says="between {n} losses it grew by {value} ({low}..{high}) packets a round trip",
          means=("growth between losses that is too fast", "growth between losses that is too slow")),
    *_row("growth", _of_loss("growth"), _In(CLEAN, _Times(1.4), LESS),
          says="up to a full queue it grew by {value} ({low}..{high}) packets a round trip",
          means=("growth into a full queue that is too fast", "growth into a full queue that is too slow")),
    *_row("doubling", _of_loss("slow_start"),
          _In(FEW, _Times(1.25), least=5),
          _In(CLEAN, _Times(1.25), where=", without random loss,"), only_above=True,
          says="after {n} reductions{where} each round trip's window was {value} times the one before",
          means=("slow start instead of congestion avoidance", "less than it should")),
    *_row("half_time_share", _of_loss("growth"), _In(CLEAN, 0.06, LESS),
          says="halfway between reductions it had {value} of its growth (0.5 is linear)",
          means=("more concave than it should be", "less concave than it should be")),
    *_row("epoch_s", _of_loss("growth"), _In(CLEAN, _Times(1.3), FOLLOWS), digits=1,
          says="{n} reductions came {value} s apart",
          means=("a full queue too seldom", "a full queue too often")),
    *_row("mean_window", _of_loss("growth"), _In(MANY, _Times(1.15), FOLLOWS), digits=1,
          says="at 3 % of loss its mean window was {value} packets",
          means=("too aggressive in small windows", "too timid in small windows")),
    # The weight: nothing explains as well as a size that is seen, but a sender's bugs are told apart from it.
    *_row("payload", _of_loss("packet_size"), _In(MANY, _Times(1.1), 0.75), digits=0,
          says="its packets carry {value} bytes",
          means=("the same window in packets is more bytes", "the same window in packets is fewer bytes")),
    # Without random loss, BBRv2 and BBRv3 stay below the flight that overflowed a queue: how far, and for how long.
    *_row("throughput", _of_bbr("response"),
          _In(CLEAN, 0.05, LESS, "without random loss"),
          _In(MANY, 0.08, LESS, "at 3 % of loss"),
          _In(HEAVY, _Times(1.3), LESS, "at 6 % of loss"),
          says="{where} it filled {value} of the path",
          means=("too aggressive after losses", "too timid after losses")),
    *_row("queue_mean", _both("queue"), _In(CLEAN, 0.1, FOLLOWS),
          says="its mean queue was {value} BDP",
          means=("a standing queue", "an empty queue")),
    *_row("queue_low", _of_bbr("queue"), _In(CLEAN, 0.06, FOLLOWS),
          says="there were always {value} BDP in the queue",
          means=("a queue that is never drained", "an empty queue")),
    *_row("queue_after_start_up", _of_bbr("queue"), _In(CLEAN, 0.06, FOLLOWS),
          says="after start-up the queue held {value} BDP",
          means=("start-up's queue is not drained", "an empty queue")),
    # The tolerance: Linux's BBRv3 has 1.15 or 1.21, by chance.
    *_row("rate_high", _of_bbr("gains"), _In(CLEAN, 0.07),
          says="for a twentieth of the time it sent faster than {value} times the bottleneck",
          means=("probing with a gain that is too high", "probing with a gain that is too low")),
    *_row("rate_low", _of_bbr("gains"), _In(CLEAN, 0.06, LESS),
          says="for a twentieth of the time it sent slower than {value} times the bottleneck",
          means=("it does not drain what it probed with", "draining with a gain that is too low")),
    *_row("flight_high", _of_bbr("gains"),
          _In(CLEAN, _Times(1.1), FOLLOWS),
          _In(FEW, _Times(1.1), FOLLOWS, "with a few losses, "),
          says="{where}for a twentieth of the time it had more than {value} BDP in flight",
          means=("a window gain that is too high", "a window gain that is too low")),
    # The weight: BBR enters ProbeRTT only if its draining has not shown the minimum round trip. The tolerance: stack
    # and reference may each have one dip more or less at an end of the trace, which lasts 25 s or more after start-up.
    *_row("dips_per_10_s", _of_bbr("probe_rtt"), _In(CLEAN, 0.8, LESS), digits=1,
          says="in 10 s its flight dipped {value} times, as in ProbeRTT",
          means=("ProbeRTT too often", "ProbeRTT too seldom, or never")),
)
# fmt: on
