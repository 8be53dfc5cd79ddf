"""Build the tc(8) commands for one direction of a link: netem (delay, loss), then a limiter, then the limiter's queue.

In cells, every size is that of the testbed in the ATC'25 study that the README names, with two differences, both of
which make the network what the setting says: fractional loss works (the testbed applied loss only from 1 % on), and
netem's own queue never overflows (the testbed's held 1000 packets).
"""

import math
from collections.abc import Mapping
from typing import Any

from conformance.model.emulation import dualpi2
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.links import DUAL, Direction, Queue
from conformance.model.networks.network import Network

#: handle of the queue, in tc's hexadecimal notation
QUEUE_HANDLE = "10"
#: handle of the limiter, if it is not netem itself
LIMITER_HANDLE = "5"
FRAME_BYTES = 1514
NO_LIMIT_PACKETS = 1_000_000
#: the shortest delay that has an effect, in ns. A netem with this delay stands before a limiter even if the link has no
#: delay: netem takes packets from their socket, as a wire does. Otherwise TCP small queues (net/ipv4/tcp_output.c)
#: would notice, across all namespaces, that a sender's packets are still in the bottleneck's queue, and would send no
#: more: the queue would never fill.
_LEAST_DELAY_NS = 1000
#: the limiter's class that the queue belongs to (5:1), as the kernel writes it
_CLASS = 0x50001
#: the rate of a policer's class, in terms of the policer's, which is the limit
_POLICED = 2
#: far beyond any option of a queue: larger numbers are ignored
_MOST = 1e15
#: tc's option for a plug that holds nothing back
_RUN = "release_indefinite"


def tc_lines(
    network: Network,
    direction: Direction,
    delay_off_ns: int = 0,
    *,
    changes: bool = False,
    held: bool = False,
    bdp: float | None = None,
) -> list[str]:
    """Return the tc commands, without the leading `tc`, for a direction's egress interface {dev}; possibly none.

    Adds `delay_off_ns` to the direction's delay if it has one. `changes`: its delay or loss will change; `held`: its
    rate will be 0 at times. `bdp`: the bandwidth-delay product in bytes that sizes its queue, if not the network's.
    """
    own_ns = delay_ns(direction, delay_off_ns)
    loss = f" loss {direction.loss_pct:g}%" if direction.loss_pct else ""
    if direction.rate_mbps is None:
        slot = f" slot {direction.slot_ms * 1000:.12g}us" if direction.slot_ms else ""
        if not own_ns and not loss and not slot and not changes:
            return []
        return [_netem("1:", direction.delay_packets or NO_LIMIT_PACKETS, own_ns) + loss + slot]
    rate = f"{direction.rate_mbps:g}mbit"
    queue = direction.queue or Queue(kind="pfifo", size=1000)
    bdp = network.bdp_bytes(direction) if bdp is None else bdp
    if direction.limiter == "netem":
        return [f"{_netem(f'{QUEUE_HANDLE}:', int(queue.size or 1), own_ns)}{loss} rate {rate}"]
    lines = [_netem("1:", NO_LIMIT_PACKETS, own_ns) + loss]
    if direction.limiter == "tbf":
        # The limit is that of tbf's own FIFO, which the queue replaces.
        burst = direction.burst_bytes or FRAME_BYTES
        lines.append(
            f"qdisc add dev {{dev}} parent 1: handle {LIMITER_HANDLE}: tbf rate {rate} burst {burst}"
            f" limit {burst + FRAME_BYTES}"
        )
    else:
        beyond = f"{direction.rate_mbps * _POLICED:g}mbit"
        lines += [
            f"qdisc add dev {{dev}} parent 1: handle {LIMITER_HANDLE}: htb default 1",
            f"class add dev {{dev}} parent {LIMITER_HANDLE}: classid {LIMITER_HANDLE}:1 htb"
            f" rate {beyond if queue.kind == 'policer' else rate} quantum {quantum(direction)}",
        ]
    place = f"dev {{dev}} parent {LIMITER_HANDLE}:1 handle {QUEUE_HANDLE}:"
    if held:
        # A plug is a FIFO of this many bytes that can be stopped.
        lines += [f"qdisc add {place} plug limit {limit_bytes(queue, bdp)}", f"qdisc change {place} plug {_RUN}"]
    elif queue.kind == DUAL:
        lines.append(dualpi2.line(queue, int(QUEUE_HANDLE, 16) << 16, _CLASS))
    else:
        lines.append(f"qdisc add {place} {_queue(queue, bdp, rate)}")
    if queue.kind == "policer":
        burst = direction.burst_bytes or max(
            math.floor(direction.rate_mbps * 1e6 / 8 * 0.010), 65_536 if network.offload else 3028
        )
        lines.append(
            f"filter add dev {{dev}} parent {LIMITER_HANDLE}: protocol all matchall"
            f" action police rate {rate} burst {burst} conform-exceed drop/ok"
        )
    return lines


def delay_ns(direction: Direction, off_ns: int) -> int:
    """Return the delay of a direction's netem in ns; `off_ns` is added if the direction has a delay."""
    requested_ns = round(direction.delay_ms * 1e6)
    requested_ns = max(requested_ns + off_ns, 0) if requested_ns else 0
    limited = direction.rate_mbps is not None and direction.limiter != "netem"
    return max(requested_ns, _LEAST_DELAY_NS) if limited else requested_ns


def quantum(direction: Direction) -> int:
    """Return how many bytes HTB lets a class send at once."""
    return max(min(math.floor((direction.rate_mbps or 0) * 1e6 / 8 / 10), 200_000), FRAME_BYTES)


def extra_delay_lines(group: Flows) -> list[str]:
    """Return the commands for the interface towards a group's sender; none if the group has no extra delay."""
    return [_netem("1:", NO_LIMIT_PACKETS, round(group.extra_delay_ms * 1e6))] if group.extra_delay_ms else []


def red_parameters(bdp: float) -> dict[str, int]:
    """Return RED's parameters in the testbed: limit 4 BDP but at least 48,000 bytes; thresholds at 1/4 and 1/12."""
    limit = max(math.floor(4 * bdp), 48_000)
    high = math.floor(limit / 4)
    low = math.floor(high / 3)
    average_packet = 1000
    return {
        "limit_bytes": limit,
        "max_bytes": high,
        "min_bytes": low,
        "avpkt_bytes": average_packet,
        "burst_packets": math.floor(1 + low / average_packet),
    }


def _netem(handle: str, limit: int, delay_ns: int) -> str:
    return f"qdisc add dev {{dev}} root handle {handle} netem limit {limit} delay {delay_ns / 1000:.12g}us"


def _queue(queue: Queue, bdp: float, rate: str) -> str:
    if queue.kind == "red":
        p = red_parameters(bdp)
        return (
            f"red limit {p['limit_bytes']} min {p['min_bytes']} max {p['max_bytes']} avpkt {p['avpkt_bytes']}"
            f" burst {p['burst_packets']} probability 0.02 adaptive harddrop bandwidth {rate}"
        )
    if queue.kind == "cake":
        return "cake unlimited besteffort"
    if queue.kind == "policer":
        return "bfifo limit 10000000"
    if queue.kind == "bfifo":
        return f"bfifo limit {limit_bytes(queue, bdp)}"
    limit = queue.size or (max(math.floor(4 * bdp / 1500), 10) if queue.kind == "pie" else None)
    words = [queue.kind, *([f"limit {limit:.15g}"] if limit else [])]
    if queue.ecn is not None:
        words.append("ecn" if queue.ecn else "noecn")
    if queue.ce_threshold_us is not None:
        words.append(f"ce_threshold {queue.ce_threshold_us:g}us")
    return " ".join(words)


def limit_bytes(queue: Queue, bdp: float) -> int:
    """Return the size in bytes of a queue that is not counted in packets: at least one full frame."""
    return max(math.floor((queue.size or 0) * (bdp if queue.in_bdp else 1)), FRAME_BYTES)


def problems(direction: Direction, qdiscs: list[Mapping[str, Any]], held: bool = False) -> list[str]:
    """Return how the delay, loss and queue of an interface, as tc shows them, differ from what was requested.

    `held`: the direction's rate was 0 at times, as in tc_lines().
    """
    differences = []
    netem = next((q for q in qdiscs if q.get("kind") == "netem"), {})
    delay_ms = _option(netem, "delay", "delay") * 1000
    loss_pct = _option(netem, "loss-random", "loss") * 100
    # Each trial's delay is off by up to 10 us; without a delay, netem has 1 us.
    if not math.isclose(delay_ms, direction.delay_ms, rel_tol=1e-3, abs_tol=0.0125):
        differences.append(f"a delay of {delay_ms:g} ms instead of {direction.delay_ms:g}")
    if not math.isclose(loss_pct, direction.loss_pct, rel_tol=1e-3, abs_tol=1e-6):
        differences.append(f"a loss of {loss_pct:g} % instead of {direction.loss_pct:g}")
    if direction.rate_mbps is not None:
        kind = "plug" if held else direction.queue.kind if direction.queue else "pfifo"
        kinds = {str(q.get("kind")) for q in qdiscs}
        wanted = (
            {"netem"} if direction.limiter == "netem" else {direction.limiter, "bfifo" if kind == "policer" else kind}
        )
        differences += [f"no {kind} qdisc" for kind in sorted(wanted - kinds)]
        rate_mbps = direction.rate_mbps * (_POLICED if kind == "policer" else 1)
        for rate in (8 * q["class_bytes_per_s"] / 1e6 for q in qdiscs if q.get("class_bytes_per_s") is not None):
            # tc is given six digits of a rate.
            if not math.isclose(rate, rate_mbps, rel_tol=1e-5, abs_tol=1e-5):
                differences.append(f"a rate of {rate:g} Mbit/s instead of {rate_mbps:g}")
        if direction.queue is not None and direction.queue.kind == DUAL:
            differences += [
                why for q in qdiscs if q.get("kind") == DUAL for why in dualpi2.problems(direction.queue, q)
            ]
    return differences


def _option(queue: Mapping[str, Any], *path: str) -> float:
    """Return a number from the options that tc shows of a queue; 0 if there is none, since tc leaves zeros out."""
    option = queue.get("options")
    for name in path:
        option = option.get(name) if isinstance(option, dict) else None
    return option if isinstance(option, (int, float)) and abs(option) < _MOST else 0
