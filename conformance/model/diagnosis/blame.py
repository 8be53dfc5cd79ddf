"""Attribute a violation to congestion control, to loss recovery or to the size of packets.

A transfer's rate u is a product. For a share s of the time, data are outstanding but nothing is sent, because the
sender waits for a timeout. In the rest of the time, a window of packets leaves in each round trip, and a packet carries
b bytes. So, compared with a reference (index b; docs/blame.md derives this, and says how well it holds):

    log(u / u_b) = log((1 - s) / (1 - s_b))     recovery
                 + e log(b / b_b)               packet size
                 + log(g / g_b) / 2             response: g = alpha (1 + beta) / (1 - beta)
                 + rest                         growth beyond alpha, pacing, start-up

e is the share of the time in which the window, and not the link, is the limit. The third line follows from the response
function of additive increase (S. Floyd, M. Handley, J. Padhye, "A Comparison of Equation-Based and AIMD Congestion
Control", 2000, section 4). Congestion control is what recovery and packet size leave: response and rest together.

Intervals come from a bootstrap over trials (B. Efron, Ann. Stat. 7, 1979).
"""

import dataclasses
import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import numpy.typing

from conformance.model.diagnosis import features
from conformance.model.diagnosis.feature_table import is_bbr
from conformance.model.diagnosis.flow import Flow

Floats = numpy.typing.NDArray[Any]
#: {metric: 1 if it rises when a transfer is faster, -1 if it falls}; other metrics are not attributed
RATES = {
    "utilization": 1, "transfer_rtts": -1, "link_utilization": 1, "later_utilization": 1, "group_goodput_mbps": 1,
    "flow_goodput_mbps": 1,
}  # fmt: skip
#: round trips without a packet that count as waiting: a window of packets and its acknowledgements take less
_SILENT = 1.5
#: used instead of zero, which has no logarithm
_LEAST = 1e-6
#: bootstrap samples; the seed, so that they are always the same; and the share of the results inside an interval
_DRAWS, _SEED, _INSIDE = 2000, 1, 0.9


class Cause(enum.StrEnum):
    """What a violation is due to."""

    CONGESTION_CONTROL = "congestion control"
    RECOVERY = "recovery"
    PACKET_SIZE = "packet size"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlowTraits:
    """What one captured trial of a cell shows. `waiting`: the share of the time that the sender waits.

    `payload_bytes`: of a full packet. `window_limited`: the share of the time in which less was in flight than the path
    holds.
    """

    waiting: float
    payload_bytes: float
    window_limited: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What one captured trial shows of isolated losses: the share of the window that they leave, and its growth."""

    beta: float
    alpha: float

    @property
    def log_rate(self) -> float:
        """The logarithm of the rate that follows from both, up to a constant that all senders have in common."""
        return math.log(self.alpha * (1 + self.beta) / (1 - self.beta)) / 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """A stack, or its reference: `values` of the metric, and what its captured trials show.

    `responses` is empty if nothing shows beta or alpha: for senders that no loss slows down, or with very few losses.
    """

    values: Sequence[float]
    sightings: Sequence[FlowTraits]
    responses: Sequence[Response] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """The factor by which one cause changes the stack's rate from the reference's, and its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}..{self.high:.2f})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Blame:
    """A violation, split into factors of the reference's rate, whose product is `total`.

    `cause`: None if the trials leave it open. `control` is what recovery and packet size leave; it is `rest` times
    `response`, if that is known. `permitted`: the interval that `control` may lie in. `waiting` and `payload_bytes`:
    the stack's and the reference's means over trials.
    """

    cause: Cause | None
    total: Factor
    recovery: Factor
    packet_size: Factor
    control: Factor
    response: Factor | None
    rest: Factor
    permitted: tuple[float, float]
    waiting: tuple[float, float]
    payload_bytes: tuple[float, float]

    @property
    def words(self) -> str:
        """The cause, for the end of a violation's line."""
        return f"by {self.cause}" if self.cause else "cause unclear"

    @property
    def sentence(self) -> str:
        """All parts in words."""
        ours, theirs = (f"{size:.0f}" for size in self.payload_bytes)
        sizes = f" ({ours} bytes a packet, the reference {theirs})" if ours != theirs else ""
        shares = [f"{100 * share:.1f} %" for share in self.waiting]
        waits = f" (waiting {shares[0]} of the time, the reference {shares[1]})" if shares[0] != shares[1] else ""
        of_response = "" if self.response is None else f", of which response {self.response}"
        low, high = self.permitted
        return (
            f"{self.words}: {self.total.value:.2f} of the reference's rate = recovery {self.recovery.value:.2f}{waits}"
            f" x packet size {self.packet_size.value:.2f}{sizes} x congestion control {self.control}{of_response};"
            f" permitted {low:.2f}..{high:.2f}"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class NotAttributed:
    """The reason why it is not known what a violation is due to."""

    why_not: str

    @property
    def words(self) -> str:
        """The words for the end of a violation's line."""
        return "not attributed"

    @property
    def sentence(self) -> str:
        """The same words, with the reason."""
        return f"not attributed: {self.why_not}"


def seen(flow: Flow) -> FlowTraits | None:
    """Return what the captures of a trial show from the request on; None if they show too little.

    They show too little if too little was sent, or if packets are no longer than the headers that are assumed.

    A sender waits if it sends nothing for more than one and a half round trips, which is longer than acknowledgements
    of its last packets can take. The first round trip of such a gap does not count, as all senders have it.
    """
    at = int(numpy.searchsorted(flow.sent_s, flow.request_s))
    gaps, rtts = numpy.diff(flow.sent_s[at:]), flow.rtt_s[at:-1]
    payload, total = features.payload(flow).values, gaps.sum()
    if not total or not len(payload) or payload[0] <= 0:
        return None
    below = flow.flight[at:-1] < flow.bdp_bytes
    return FlowTraits(
        waiting=float((gaps - rtts)[gaps > _SILENT * rtts].sum() / total),
        payload_bytes=float(payload[0]),
        window_limited=float(gaps[below].sum() / total),
    )


def response(flow: Flow) -> Response | None:
    """Return the beta and alpha that a trial shows; None if it does not show both, or shows no reduction or growth."""
    kept, growth = (of(flow).values for of in (features.kept, features.growth))
    if not len(kept) or not len(growth):
        return None
    beta, alpha = float(numpy.median(kept)), float(numpy.median(growth))
    return Response(beta=beta, alpha=alpha) if 0 < beta < 1 and alpha > 0 else None


def sizes_count(algorithm: str, *sides: Side) -> float:
    """Return e, from 0 to 1: the rate is proportional to the packet size to the power of e.

    It is the share of the time in which the window, not the link, was the limit. Simulations of the documents'
    equations with packets of 1200 and 1448 bytes agree with that (docs/blame.md). BBR's rate counts bytes, not packets.
    """
    if is_bbr(algorithm):
        return 0.0
    return float(numpy.mean([traits.window_limited for side in sides for traits in side.sightings]))


def blame(algorithm: str, metric: str, stack: Side, reference: Side, permitted: tuple[float, float]) -> Blame:
    """Decompose the ratio of a stack's rate to its reference's. Each side needs values and captures.

    `metric`: one of RATES. `permitted`: the metric's permissible interval, for packets of the reference's size. What
    the stack would have with the reference's recovery and packets is judged by the same interval.
    """
    count = sizes_count(algorithm, stack, reference)
    draw = numpy.random.default_rng(_SEED)
    sign = RATES[metric]

    def logs(side: Side) -> dict[str, tuple[float, Floats]]:
        return {
            "total": _drawn(draw, [sign * math.log(value) for value in side.values], numpy.median),
            "recovery": _drawn(draw, [1 - traits.waiting for traits in side.sightings], _log_of_mean),
            "packet_size": _drawn(
                draw, [count * math.log(traits.payload_bytes) for traits in side.sightings], numpy.mean
            ),
            "response": _drawn(draw, [answer.log_rate for answer in side.responses], numpy.mean),
        }

    ours, theirs = logs(stack), logs(reference)
    known = bool(stack.responses and reference.responses)
    parts = {name: (ours[name][0] - theirs[name][0], ours[name][1] - theirs[name][1]) for name in ours}
    parts["control"] = _less(parts["total"], parts["recovery"], parts["packet_size"])
    parts["rest"] = _less(parts["control"], *([parts["response"]] if known else []))
    factors = {name: _factor(*part) for name, part in parts.items()}
    middle = float(numpy.median(reference.values))
    low, high = sorted(max(end / middle, _LEAST) ** sign for end in permitted)
    return Blame(
        cause=_cause(factors, low, high),
        **{name: factors[name] for name in ("total", "recovery", "packet_size", "control", "rest")},
        response=factors["response"] if known else None,
        permitted=(low, high),
        waiting=_means(stack, reference, lambda traits: traits.waiting),
        payload_bytes=_means(stack, reference, lambda traits: traits.payload_bytes),
    )


def _drawn(draw: numpy.random.Generator, values: Sequence[float], middle: Callable[..., Any]) -> tuple[float, Floats]:
    """Return (`middle` of the values, `middle` of each of their bootstrap samples); zeros if there are no values."""
    if not values:
        return 0.0, numpy.zeros(_DRAWS)
    array = numpy.array(values, dtype=float)
    return float(middle(array)), middle(draw.choice(array, size=(_DRAWS, len(array))), axis=-1)


def _log_of_mean(values: Floats, axis: int | None = None) -> Any:
    # A transfer that only waited would never end.
    return numpy.log(numpy.maximum(values.mean(axis=axis), _LEAST))


def _less(whole: tuple[float, Floats], *parts: tuple[float, Floats]) -> tuple[float, Floats]:
    value, samples = whole
    return value - sum(part for part, _ in parts), samples - sum(drawn for _, drawn in parts)


def _factor(value: float, samples: Floats) -> Factor:
    low, high = numpy.percentile(samples, (50 * (1 - _INSIDE), 50 * (1 + _INSIDE)))
    return Factor(value=math.exp(value), low=math.exp(low), high=math.exp(high))


def _means(stack: Side, reference: Side, of: Callable[[FlowTraits], float]) -> tuple[float, float]:
    ours, theirs = (float(numpy.mean([of(traits) for traits in side.sightings])) for side in (stack, reference))
    return ours, theirs


def _cause(factors: dict[str, Factor], low: float, high: float) -> Cause | None:
    """Return the cause of the difference; None if the interval of the factor of congestion control leaves it open.

    Congestion control is not the cause if, alone, it would be outside on the other side.
    """
    control, total = factors["control"], factors["total"].value
    if low <= total <= high:
        # The violated zone is another one: it is scaled to the size of the stack's packets.
        return Cause.CONGESTION_CONTROL if control.low > high or control.high < low else None
    slower = total < low
    if control.high < low if slower else control.low > high:
        return Cause.CONGESTION_CONTROL
    if control.value < low if slower else control.value > high:
        return None
    others = {Cause.RECOVERY: factors["recovery"].value, Cause.PACKET_SIZE: factors["packet_size"].value}
    return min(others, key=lambda c: others[c]) if slower else max(others, key=lambda c: others[c])
