"""Features that tell: in which cell each is looked for, what it points at, and by how much it may differ.

*Labels* are those of mutants/mutants.json. Much follows from little (a window that is cut less is reduced
sooner, and stands in a longer queue), so what is seen directly weighs more than what follows from it.
"""

import dataclasses

from conformance.model.setting import Cell

#: where features are looked for: nothing lost at random, a loss now and then, many
CLEAN, FEW, MANY = "clean", "few", "many"
#: the cells, and the seconds' worth of data: three minima of BBR's ten seconds; loss events enough; a window that
# many losses keep small
CELLS = {CLEAN: (Cell(10, 40, 0), 30), FEW: (Cell(10, 20, 0.3), 15), MANY: (Cell(10, 20, 3), 5)}
#: tail drop of one BDP, loss by the packet
PROFILE = "identify"
#: what follows from nothing else, is seen directly, may follow from other faults, does follow from most
_ALONE, _DIRECT, _LESS, _FOLLOWS = 3.0, 1.0, 0.5, 0.25


#: what a feature points at: of senders that a loss should slow down, and of BBR
Label = tuple[str | None, str | None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Feature:
    """`label`: what it points at, for senders that a loss should slow down and for BBR; None where it says nothing.

    `tolerance` is a difference, or, with `ratio`, a factor. `says`: a sentence's beginning with {value}, {low},
    {high} and {n}; `above`, `below`: what it would mean.
    """

    name: str
    cell: str
    label: Label
    tolerance: float
    says: str
    above: str = "more than it should"
    below: str = "less than it should"
    ratio: bool = False
    weight: float = _DIRECT
    digits: int = 2
    mean: bool = False
    #: samples: fewer say nothing
    least: int = 1
    #: a smaller value is no fault
    only_above: bool = False
    #: divided by what isolated losses leave
    of_kept: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}-{self.cell}"


def _of_loss(label: str) -> Label:
    return (label, None)


def _of_bbr(label: str) -> Label:
    return (None, label)


FEATURES = (
    Feature(
        name="initial_window",
        cell=CLEAN,
        label=("initial_window",) * 2,
        tolerance=1.25,
        ratio=True,
        digits=0,
        weight=_ALONE,
        says="it sent {value} full packets in the first round trip",
        above="a larger initial window",
        below="a smaller initial window",
    ),
    Feature(
        name="start_up_growth",
        cell=CLEAN,
        label=("slow_start", "gains"),
        tolerance=1.2,
        ratio=True,
        says="in start-up it sent {value} times as much each round trip as in the one before ({n} round trips)",
        above="a start-up that is too fast",
        below="a start-up that is too slow",
    ),
    Feature(
        name="start_up_time",
        cell=CLEAN,
        label=("slow_start", "gains"),
        tolerance=1.6,
        ratio=True,
        digits=0,
        weight=_LESS,
        says="it took {value} round trips to fill the path",
        above="a start-up that is too slow, or left too early",
        below="a start-up that is too fast",
    ),
    Feature(
        name="start_up_length",
        cell=CLEAN,
        label=("slow_start",) * 2,
        tolerance=1.4,
        ratio=True,
        digits=0,
        says="it sent faster than the bottleneck until round trip {value}",
        above="a start-up that is left late",
        below="a start-up that is left early",
    ),
    Feature(
        name="start_up_losses",
        cell=CLEAN,
        label=("slow_start",) * 2,
        tolerance=0.4,
        weight=_LESS,
        says="start-up ended with losses of {value} BDP",
        above="a start-up that is left late",
        below="a start-up that is left early",
    ),
    Feature(
        name="start_up_burst",
        cell=CLEAN,
        label=("pacing",) * 2,
        tolerance=1.4,
        ratio=True,
        digits=1,
        says="in start-up, a packet was one of {value} sent at once",
        above="larger bursts than it should send",
        below="smaller bursts than it should send",
        only_above=True,
        weight=_LESS,
    ),
    Feature(
        name="burst",
        cell=CLEAN,
        label=_of_bbr("pacing"),
        tolerance=1.25,
        ratio=True,
        digits=1,
        weight=_ALONE,
        says="after start-up, a packet was one of {value} sent at once",
        above="larger bursts than it should send",
        below="smaller bursts than it should send",
        only_above=True,
    ),
    Feature(
        name="kept",
        cell=FEW,
        least=5,
        label=("beta", "response"),
        tolerance=0.04,
        says="on {n} isolated losses it kept {value} ({low}..{high}) of its window",
        above="as if beta were {value}",
        below="as if beta were {value}",
    ),
    Feature(
        name="trough",
        cell=FEW,
        least=5,
        label=("beta", "response"),
        tolerance=0.15,
        says="after {n} isolated losses its flight fell to {value} ({low}..{high}) of its window",
        above="less of a reduction",
        below="more of a reduction",
    ),
    Feature(
        name="responded",
        cell=FEW,
        least=5,
        label=("response", None),
        tolerance=0.15,
        mean=True,
        weight=_ALONE,
        says="{value} of {n} loss events were followed by a smaller window",
        above="a reduction too often",
        below="a reduction that is missing",
    ),
    Feature(
        name="responded",
        cell=CLEAN,
        label=("response", None),
        tolerance=0.15,
        mean=True,
        weight=_LESS,
        says="{value} of {n} loss events of a full queue were followed by a smaller window",
        above="a reduction too often",
        below="a reduction that is missing",
    ),
    *(
        Feature(
            name="kept_of_several",
            cell=cell,
            label=_of_loss("every_loss"),
            tolerance=1.3,
            ratio=True,
            of_kept=True,
            says="losses of several packets ({n} events" + where + ") left {value} of what isolated ones leave",
            above="no reduction where several are lost",
            below="a reduction for every packet lost",
        )
        for cell, where in ((CLEAN, ", a full queue"), (FEW, ""), (MANY, ", at 3 % of loss"))
    ),
    Feature(
        name="growth",
        cell=FEW,
        least=5,
        label=_of_loss("growth"),
        tolerance=0.15,
        says="between {n} losses it grew by {value} ({low}..{high}) packets a round trip",
        above="growth between losses that is too fast",
        below="growth between losses that is too slow",
        # CUBIC's follows from its beta (RFC 9438, 4.3).
        weight=0.75,
    ),
    Feature(
        name="growth",
        cell=CLEAN,
        label=_of_loss("growth"),
        tolerance=1.4,
        ratio=True,
        weight=_LESS,
        says="up to a full queue it grew by {value} ({low}..{high}) packets a round trip",
        above="growth into a full queue that is too fast",
        below="growth into a full queue that is too slow",
    ),
    Feature(
        name="doubling",
        cell=FEW,
        only_above=True,
        least=5,
        label=_of_loss("slow_start"),
        tolerance=1.25,
        ratio=True,
        says="after {n} reductions each round trip's window was {value} times the one before",
        above="slow start instead of congestion avoidance",
    ),
    Feature(
        name="doubling",
        cell=CLEAN,
        only_above=True,
        label=_of_loss("slow_start"),
        tolerance=1.25,
        ratio=True,
        says="after {n} reductions, without random loss, each round trip's window was {value} times the one before",
        above="slow start instead of congestion avoidance",
    ),
    Feature(
        name="half_time_share",
        cell=CLEAN,
        label=_of_loss("growth"),
        tolerance=0.06,
        says="of what it grew between reductions, it reached {value} at half time (0.5 is linear)",
        above="more concave than it should be",
        below="less concave than it should be",
        weight=_LESS,
    ),
    Feature(
        name="epoch_s",
        cell=CLEAN,
        label=_of_loss("growth"),
        tolerance=1.3,
        ratio=True,
        digits=1,
        weight=_FOLLOWS,
        says="{n} reductions came {value} s apart",
        above="a full queue too seldom",
        below="a full queue too often",
    ),
    Feature(
        name="mean_window",
        cell=MANY,
        label=_of_loss("growth"),
        tolerance=1.15,
        ratio=True,
        digits=1,
        weight=_FOLLOWS,
        says="at 3 % of loss its mean window was {value} packets",
        above="too aggressive in small windows",
        below="too timid in small windows",
    ),
    Feature(
        name="throughput",
        cell=MANY,
        label=_of_bbr("response"),
        tolerance=0.08,
        weight=_LESS,
        says="at 3 % of loss it filled {value} of the path",
        above="too aggressive under loss",
        below="too timid under loss",
    ),
    Feature(
        name="queue_mean",
        cell=CLEAN,
        label=("queue", "queue"),
        tolerance=0.1,
        weight=_FOLLOWS,
        says="it stood in a queue of {value} BDP",
        above="a standing queue",
        below="an empty queue",
    ),
    Feature(
        name="queue_low",
        cell=CLEAN,
        label=_of_bbr("queue"),
        tolerance=0.06,
        weight=_FOLLOWS,
        says="there were always {value} BDP in the queue",
        above="a queue that is never drained",
        below="an empty queue",
    ),
    Feature(
        name="queue_after_start_up",
        cell=CLEAN,
        label=_of_bbr("queue"),
        tolerance=0.06,
        says="after start-up the queue held {value} BDP",
        above="start-up's queue is not drained",
        below="an empty queue",
        weight=_FOLLOWS,
    ),
    Feature(
        name="rate_high",
        cell=CLEAN,
        label=_of_bbr("gains"),
        tolerance=0.05,
        says="a twentieth of the time it sent faster than {value} times the bottleneck",
        above="probing with a gain that is too high",
        below="probing with a gain that is too low",
    ),
    Feature(
        name="rate_low",
        cell=CLEAN,
        label=_of_bbr("gains"),
        tolerance=0.06,
        weight=_LESS,
        says="a twentieth of the time it sent slower than {value} times the bottleneck",
        above="it does not drain what it probed with",
        below="draining with a gain that is too low",
    ),
    Feature(
        name="flight_high",
        cell=CLEAN,
        label=_of_bbr("gains"),
        tolerance=1.1,
        ratio=True,
        weight=_FOLLOWS,
        says="a twentieth of the time it had more than {value} BDP in flight",
        above="a window gain that is too high",
        below="a window gain that is too low",
    ),
    Feature(
        name="flight_high",
        cell=FEW,
        label=_of_bbr("gains"),
        tolerance=1.1,
        ratio=True,
        weight=_FOLLOWS,
        says="with a few losses, a twentieth of the time it had more than {value} BDP in flight",
        above="a window gain that is too high",
        below="a window gain that is too low",
    ),
    Feature(
        name="dips_per_10_s",
        cell=CLEAN,
        label=_of_bbr("probe_rtt"),
        tolerance=0.3,
        digits=1,
        says="in 10 s its flight dipped {value} times, as for ProbeRTT",
        above="ProbeRTT too often",
        below="ProbeRTT too seldom, or never",
    ),
)
