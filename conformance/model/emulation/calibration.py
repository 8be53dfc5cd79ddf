"""Check that the emulator delivered what was requested. If it did not, a trial is an error and never a violation.

What tc reads back (delay, loss and kind of queue) must equal what was requested, and what probe packets saw of rate,
delay and loss must agree with it. Tolerances: 3 % of the rate; 0.5 ms + 2 % of the delay beyond the probe's own
serialization; for the loss, an exact two-sided binomial test at 1e-6, so that a
correct emulator fails once in a million calibrations.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.emulation import shaping
from conformance.model.networks.links import Direction
from conformance.model.networks.network import Network
from conformance.model.networks.setting import Setting

#: what was seen of a link (conformance/guest/seen.py: LinkSeen); what tc shows of a queue; {node: {sysctl: value}}
LinkSeen = Mapping[str, Any]
Qdisc = Mapping[str, Any]
Sysctls = Mapping[str, Mapping[str, str | None]]

RATE_TOLERANCE = 0.03
DELAY_TOLERANCE_MS, DELAY_TOLERANCE = 0.5, 0.02
LOSS_P_VALUE = 1e-6
#: sizes in bits of the frames that measure delay and loss, and of those that measure the rate (guest/calibrate.py)
PROBE_FRAME_BITS, _FRAME_BITS = 106 * 8, 1514 * 8
#: numbers of packets that measure a rate, and that of a policer whose bucket has its usual size
_RATE_PACKETS = (120, 600)
#: a quarter of this rate, in Mbit/s, measures the loss of a link without a rate
_UNLIMITED_MBPS = 10
#: {sysctl: the value with which kernels behave as those that lack it}; before Linux 5.18, in this case
_WITHOUT = {"net.ipv4.tcp_tso_rtt_log": "0"}
#: the part of a sum below which a term does not change it
_NEGLIGIBLE = 1e-17


def binomial_p_value(lost: int, sent: int, probability: float) -> float:
    """Return the two-sided p-value of `lost` out of `sent`: twice the smaller tail, at most 1.

    It is exact but for rounding; 0.0 if the observation is impossible.
    """
    if probability <= 0:
        return 1.0 if lost == 0 else 0.0
    if probability >= 1:
        return 1.0 if lost == sent else 0.0
    came, odds = sent - lost, probability / (1 - probability)
    just_so = math.exp(
        math.lgamma(sent + 1) - math.lgamma(lost + 1) - math.lgamma(came + 1)
        + lost * math.log(probability) + came * math.log1p(-probability)
    )  # fmt: skip
    # On the side away from the most likely number, terms shrink soon: of a million packets, hundreds count.
    fewer = lost <= sent * probability
    tail, term = just_so, just_so
    while term > _NEGLIGIBLE * tail:
        term *= lost / ((came + 1) * odds) if fewer else came * odds / (lost + 1)
        lost, came = (lost - 1, came + 1) if fewer else (lost + 1, came - 1)
        tail += term
    return min(1.0, 2 * min(tail, 1 - tail + just_so))


def sysctl_problems(setting: Setting, sysctls: Sysctls) -> Iterator[str]:
    """Yield sentences about sysctls that differ from the request, or that a node's kernel lacks (None)."""
    for node, values in sorted(sysctls.items()):
        for name, wanted in setting.sysctls:
            held = values.get(name) or _WITHOUT.get(name)
            if held is None:
                yield f"{name} does not exist on the {node}"
            elif held.split() != wanted.split():
                yield f"{name} on the {node} is {held!r} instead of {wanted!r}"


def _undelivered(
    rate_mbps: float | None, delay_ms: float, loss_pct: float, observed: LinkSeen, slot_ms: float = 0.0
) -> Iterator[str]:
    """Yield how what probe packets saw differs from the request; the rate is not checked if it is None."""
    rate = observed["rate_mbps"]
    if rate_mbps is not None:
        if rate is None:
            yield "no probe packet for the rate arrived"
        elif abs(rate - rate_mbps) > RATE_TOLERANCE * rate_mbps:
            yield f"the emulator delivered {rate:.3g} Mbit/s instead of {rate_mbps:g}"
    delays = sorted(observed["delays_ms"])
    if not delays:
        yield "no probe packet for the delay arrived"
    else:
        serialization_ms = 0.0 if rate_mbps is None else PROBE_FRAME_BITS / (rate_mbps * 1000)
        most_ms = delay_ms + serialization_ms + DELAY_TOLERANCE_MS + DELAY_TOLERANCE * delay_ms + slot_ms
        if not delay_ms - 0.01 <= delays[0] <= most_ms:
            yield f"the emulator delayed packets by {delays[0]:.4g} ms instead of {delay_ms:g}"
    sent, lost = observed["loss_sent"], observed["loss_lost"]
    if binomial_p_value(lost, sent, loss_pct / 100) < LOSS_P_VALUE:
        yield f"the emulator lost {lost} of {sent} probe packets instead of {loss_pct:g} %"


def probed(network: Network) -> Iterator[tuple[int, str, Direction]]:
    """Yield (link, way, what is requested) of each direction to calibrate: of acks only where they differ from data.

    Both are made by the same qdiscs, unless the rate of only one ever becomes 0, or the delay of only one ever changes.
    """
    for at, link in enumerate(network.links):
        data, acks = (dataclasses.replace(direction, impairments=None) for _, direction in link.directions)
        yield at, "data", data
        qdiscs = {(network.held(link, way), network.changes_delay(link, way)) for way, _ in link.directions}
        if acks != data or len(qdiscs) > 1:
            yield at, "acks", acks


def probed_mbps(direction: Direction) -> float | None:
    """Return the rate of a direction, if packets that come faster can show it."""
    if direction.rate_mbps is None or direction.limiter != "netem":
        return direction.rate_mbps
    # Delayed packets are in netem's own queue, too, which may be too short for the rate.
    in_flight = direction.rate_mbps * direction.delay_ms * 1000 / _FRAME_BITS
    return direction.rate_mbps if _held_packets(direction) > 2 * in_flight else None


def rate_packets(direction: Direction) -> int:
    """Return how many packets show the rate of a direction.

    At 1.5 times its rate, a token bucket that is full first passes three buckets, and then two packets in three. Only
    the second half of what passes counts.
    """
    policed = direction.queue is not None and direction.queue.kind == "policer"
    buckets = 8 * (direction.burst_bytes or 0) * 8 // _FRAME_BITS
    return max(_RATE_PACKETS[policed], buckets)


def pace_mbps(direction: Direction) -> float:
    """Return the rate of which a quarter shows the losses of a direction, and never fills what holds packets."""
    rate_mbps = direction.rate_mbps or _UNLIMITED_MBPS
    if (direction.delay_packets is None and direction.limiter != "netem") or not direction.delay_ms:
        return rate_mbps
    most_a_s = _held_packets(direction) / 4 / (direction.delay_ms / 1000)
    return min(rate_mbps, 4 * most_a_s * PROBE_FRAME_BITS / 1e6)


def _held_packets(direction: Direction) -> float:
    if direction.rate_mbps is None:
        return direction.delay_packets or math.inf
    return (direction.queue.size if direction.queue else None) or math.inf


def problems(network: Network, observed: Sequence[LinkSeen]) -> list[str]:
    """Return sentences about what links did not deliver; empty if they delivered everything.

    `observed`: what was seen (conformance/guest/calibrate.py), in the order of probed(), with what tc shows of the
    interfaces in its "qdiscs".
    """
    expected = list(probed(network))
    if len(observed) != len(expected):
        return [f"{len(observed)} directions of links were calibrated instead of {len(expected)}"]
    return [
        f"{problem} ({network.links[at].name}, {way})"
        for (at, way, direction), direction_observed in zip(expected, observed, strict=True)
        for problem in (
            *_read_back(direction, direction_observed["qdiscs"], network.held(network.links[at], way)),
            *_of_probes(direction, direction_observed),
        )
    ]


def _read_back(direction: Direction, qdiscs: Sequence[Qdisc], held: bool) -> Iterator[str]:
    if not qdiscs:
        yield "tc showed no queue"
    interfaces = dict.fromkeys(str(queue.get("dev")) for queue in qdiscs)
    for name in interfaces:
        queues = [queue for queue in qdiscs if str(queue.get("dev")) == name]
        yield from (f"{name} has {problem}" for problem in shaping.problems(direction, queues, held))


def _of_probes(direction: Direction, observed: LinkSeen) -> Iterator[str]:
    return _undelivered(
        probed_mbps(direction), direction.delay_ms, direction.loss_pct, observed, direction.slot_ms or 0.0
    )
