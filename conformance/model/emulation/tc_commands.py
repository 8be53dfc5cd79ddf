"""Build the tc(8) commands of the emulator's chain of qdiscs: netem (delay, loss), then HTB (rate), then the queue.

Every size is that of the testbed in the ATC'25 study that the README names, with two differences, both of which make
the network what the setting says: fractional loss works (the testbed applied loss only from 1 % on), and netem's own
queue never overflows (the testbed's held 1000 packets).
"""

import math

from conformance.model.errors import UserError
from conformance.model.legacy import CellForm
from conformance.model.place import Cell

#: handle of the queue under test, in tc's hexadecimal notation
QUEUE_HANDLE = "10"
_ETHERNET_FRAME_BYTES = 1514
#: limit in packets: more than any delay line here ever holds, so that netem drops only what it was asked to
_NETEM_LIMIT_PACKETS = 1_000_000


def rtt_s(cell: Cell) -> float:
    """Return the round-trip time of the empty path: twice the one-way delay."""
    return 2 * cell.one_way_delay_ms / 1000


def bdp_bytes(cell: Cell) -> float:
    """Return the bandwidth-delay product: the round-trip time at the bottleneck's rate."""
    return rtt_s(cell) * cell.bandwidth_mbps * 1e6 / 8


def red_parameters(cell: Cell) -> dict[str, int]:
    """Return RED's parameters in the testbed: limit 4 BDP but at least 48,000 bytes; thresholds at 1/4 and 1/12."""
    return red_parameters_of(bdp_bytes(cell))


def red_parameters_of(bdp: float) -> dict[str, int]:
    """Return RED's parameters for a bandwidth-delay product in bytes, as red_parameters() does for a cell."""
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


def tc_lines(setting: CellForm, link: int = 0, delay_off_ns: int = 0) -> list[str]:
    """Return the tc commands, without the leading `tc`, for an egress interface of a link, which they name {dev}.

    Each link of a split path keeps its own rate, delay and loss. As in the published testbed, the queues of both are
    sized by the bandwidth-delay product of the whole path, unless `queue_sized_by` is "segment": then each is sized by
    that of its own link. Adds `delay_off_ns` to the cell's delay, clamped at zero.
    """
    cell = setting.links[link]
    delay_ns = max(round(cell.one_way_delay_ms * 1e6) + delay_off_ns, 0)
    sized_by = cell if setting.queue_sized_by == "segment" else setting.cell
    rate = f"{cell.bandwidth_mbps:g}mbit"
    kind, _, size = setting.queue.partition(":")
    loss = f" loss {cell.loss_pct:g}%" if cell.loss_pct else ""
    htb_rate_mbps = cell.bandwidth_mbps * (2 if kind == "policer" else 1)
    quantum = min(math.floor(cell.bandwidth_mbps * 1e6 / 8 / 10), 200_000)
    lines = [
        f"qdisc add dev {{dev}} root handle 1: netem limit {_NETEM_LIMIT_PACKETS} delay {delay_ns / 1000:.12g}us{loss}",
        "qdisc add dev {dev} parent 1: handle 5: htb default 1",
        f"class add dev {{dev}} parent 5: classid 5:1 htb rate {htb_rate_mbps:g}mbit quantum {max(quantum, 1514)}",
    ]
    lines.append(f"qdisc add dev {{dev}} parent 5:1 handle {QUEUE_HANDLE}: {_queue(kind, size, sized_by, rate)}")
    if kind == "policer":
        # 10 ms at the policed rate, but at least a super-packet (two frames without offload): a bucket that cannot hold
        # a packet drops every packet
        burst = max(math.floor(cell.bandwidth_mbps * 1e6 / 8 * 0.010), 65_536 if setting.offload else 3028)
        lines.append(
            f"filter add dev {{dev}} parent 5: protocol all matchall"
            f" action police rate {rate} burst {burst} conform-exceed drop/ok"
        )
    return lines


def _queue(kind: str, size: str, cell: Cell, rate: str) -> str:
    bdp = bdp_bytes(cell)
    if kind == "red":
        p = red_parameters(cell)
        return (
            f"red limit {p['limit_bytes']} min {p['min_bytes']} max {p['max_bytes']} avpkt {p['avpkt_bytes']}"
            f" burst {p['burst_packets']} probability 0.02 adaptive harddrop bandwidth {rate}"
        )
    if kind == "bfifo":
        return f"bfifo limit {max(math.floor(float(size) * bdp), _ETHERNET_FRAME_BYTES)}"
    if kind == "pfifo":
        return f"pfifo limit {size}"
    if kind == "pie":
        return f"pie limit {max(math.floor(4 * bdp / 1500), 10)}"
    if kind == "cake":
        return "cake unlimited besteffort"
    if kind in ("fq_codel", "codel"):
        return kind
    if kind == "policer":
        return "bfifo limit 10000000"
    raise UserError(f"queue {kind!r} is not known")
