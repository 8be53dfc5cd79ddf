"""Build the rtnetlink messages that change a link's direction: those that tc(8) would send, made before they are due.

Each message changes what shaping.tc_lines() set up, and asks for an acknowledgement. The index of its interface, which
only the guest knows, is 0 (netlink_message.py). Layouts: include/uapi/linux/{netlink,rtnetlink,pkt_sched}.h.
"""

import struct
from collections.abc import Iterator

from conformance.model.emulation import shaping
from conformance.model.emulation.netlink_message import NEWQDISC, NEWTCLASS, attribute, message
from conformance.model.networks.links import Direction
from conformance.model.networks.network import Network

_NETEM_RATE, _NETEM_RATE64, _NETEM_LATENCY64, _NETEM_JITTER64, _NETEM_SEED = 6, 8, 10, 11, 14
_HTB_PARMS, _HTB_RATE64, _HTB_CEIL64 = 1, 6, 7
#: attribute with the limit, the same in fq_codel, codel and pie
_LIMIT = 2
_PLUG_BUFFER, _PLUG_RELEASE = 0, 2
_ETHERNET = 1
_ROOT, _NETEM, _LIMITER, _CLASS, _QUEUE = 0xFFFFFFFF, 0x10000, 0x50000, 0x50001, int(shaping.QUEUE_HANDLE, 16) << 16
_MOST_U32 = 0xFFFFFFFF
#: The packet scheduler counts time in units of 64 ns. tc(8) gives HTB's bucket the size of one packet, in bytes.
_TICK_NS, _HTB_BUCKET_BYTES = 64, 1600
#: A netem with a rate keeps its packets in order, even if its delay changes. At this rate, each takes a nanosecond.
_KEEPS_ORDER_BYTES_PER_S = 10**12


def messages(network: Network, after: Direction, before: Direction, off_ns: int, seed: int) -> list[bytes]:
    """Return the messages that turn a direction from `before` into `after`, in order.

    `off_ns`: how much longer than nominal the trial's delay is, in ns. `seed`: seed of the random losses from then on.
    """
    return list(_messages(network, after, before, off_ns, seed))


def _messages(network: Network, after: Direction, before: Direction, off_ns: int, seed: int) -> Iterator[bytes]:
    with_rate = after.limiter == "netem" and after.rate_mbps is not None
    same = (after.delay_ms, after.loss_pct) == (before.delay_ms, before.loss_pct)
    if not same or (with_rate and after.rate_mbps != before.rate_mbps):
        yield _netem(after, shaping.delay_ns(after, off_ns), seed)
    if after.limiter != "netem" and after.rate_mbps is not None and before.rate_mbps is not None:
        if after.rate_mbps == 0:
            yield _plug(_PLUG_BUFFER)
        elif before.rate_mbps == 0:
            yield _limiter(after)
            yield _plug(_PLUG_RELEASE)
        elif after.rate_mbps != before.rate_mbps:
            yield _limiter(after)
    if after.queue is not None and after.queue != before.queue:
        yield _limit(network, after)


def _netem(direction: Direction, delay_ns: int, seed: int) -> bytes:
    limit, handle, rate = shaping.NO_LIMIT_PACKETS, _NETEM, _KEEPS_ORDER_BYTES_PER_S
    if direction.limiter == "netem" and direction.rate_mbps is not None:
        rate, handle = _bytes_per_s(direction), _QUEUE
        limit = int(direction.queue.size or 1) if direction.queue else 1
    elif direction.rate_mbps is None:
        limit = direction.delay_packets or limit
    loss = round(direction.loss_pct / 100 * _MOST_U32)
    options = struct.pack("=6I", min(delay_ns // _TICK_NS, _MOST_U32), limit, loss, 0, 0, 0)
    options += attribute(_NETEM_LATENCY64, struct.pack("=q", delay_ns))
    options += attribute(_NETEM_JITTER64, struct.pack("=q", 0))
    if rate > _MOST_U32:
        options += attribute(_NETEM_RATE64, struct.pack("=Q", rate))
    options += attribute(_NETEM_RATE, struct.pack("=IiIi", min(rate, _MOST_U32), 0, 0, 0))
    options += attribute(_NETEM_SEED, struct.pack("=Q", seed))
    return message(NEWQDISC, handle, _ROOT, "netem", options)


def _bytes_per_s(direction: Direction) -> int:
    return round((direction.rate_mbps or 0) * 1e6 / 8)


def _limiter(direction: Direction) -> bytes:
    rate = _bytes_per_s(direction)
    spec = struct.pack("=BBHhHI", 0, _ETHERNET, 0, -1, 0, min(rate, _MOST_U32))
    bucket_ticks = _ticks(_HTB_BUCKET_BYTES, rate)
    parms = spec + spec + struct.pack("=5I", bucket_ticks, bucket_ticks, shaping.quantum(direction), 0, 0)
    options = attribute(_HTB_PARMS, parms)
    if rate > _MOST_U32:
        options += attribute(_HTB_RATE64, struct.pack("=Q", rate)) + attribute(_HTB_CEIL64, struct.pack("=Q", rate))
    return message(NEWTCLASS, _CLASS, _LIMITER, "htb", options)


def _ticks(size: int, rate: int) -> int:
    """Return how long `size` bytes take at `rate` bytes per second, in ticks as tc(8) counts them."""
    return int(size * 10**9 / rate / _TICK_NS)


def _limit(network: Network, direction: Direction) -> bytes:
    queue = direction.queue
    if queue is None:
        raise ValueError("a queue without a size")
    size = int(queue.size or 0) if queue.in_packets else shaping.limit_bytes(queue, network.bdp_bytes(direction))
    words = struct.pack("=I", size)
    options = words if queue.kind in ("bfifo", "pfifo") else attribute(_LIMIT, words)
    return message(NEWQDISC, _QUEUE, _CLASS, queue.kind, options)


def _plug(action: int) -> bytes:
    return message(NEWQDISC, _QUEUE, _CLASS, "plug", struct.pack("=iI", action, 0))
