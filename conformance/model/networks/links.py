"""Describe the links of a network that flows share: what each direction does, and the queue before its limiter.

Each record's JSON leaves out fields that have their default value, so a field that is added later changes no digest.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Self

from conformance.model.errors import UserError
from conformance.model.networks.impairments import Impairments
from conformance.model.networks.place import exact
from conformance.model.records import Sparse

#: names of a link's two directions
WAYS = ("data", "acks")
#: what can limit a link's rate, by tc's names
LIMITERS = ("htb", "tbf", "netem")
#: queue disciplines -> the units that their size may have, the default first; empty if they take no size
QUEUES: Mapping[str, tuple[str, ...]] = {
    "bfifo": ("bdp", "bytes"),
    "pfifo": ("packets",),
    "red": (),
    "fq_codel": ("packets",),
    "codel": ("packets",),
    "pie": ("packets",),
    "cake": (),
    "dualpi2": ("packets",),
    "policer": (),
}
#: disciplines that must have a size
_SIZED = ("bfifo", "pfifo")
#: disciplines that can be told to mark packets that allow ECN instead of dropping them; cake and dualpi2 always do so
_MARKING = ("fq_codel", "codel", "pie")
#: disciplines that can mark packets that stood in them for longer than a fixed time
_THRESHOLD = ("fq_codel", "codel", "dualpi2")
#: the largest size of a queue, in packets or bytes, that the kernel can count
_LARGEST_QUEUE = 2**32 - 1
#: the discipline of RFC 9332: a queue for L4S, in which it marks, coupled with one for all other packets
DUAL = "dualpi2"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Queue(Sparse):
    """A queue before a limiter: its discipline and size.

    The unit "bdp" is the BDP of the path at the link's rate (Network.bdp_bytes). `ecn`: whether it marks instead of
    dropping; None is the kernel's default. `ce_threshold_us`: it marks packets that stood in it for longer. `rtt_ms`:
    the round-trip time that a BDP is computed with; None is that of the first group of flows. `any_ect`: whether a
    dualpi2 takes ECT(0) for L4S, too; None means ECT(1) alone, as RFC 9331 says.
    """

    kind: str
    size: float | None = None
    unit: str | None = None
    ecn: bool | None = None
    ce_threshold_us: float | None = None
    rtt_ms: float | None = None
    any_ect: bool | None = None

    @property
    def text(self) -> str:
        """The discipline and its size, as in "bfifo:1": what `parse` reads back if the queue has no more than that."""
        return self.kind if self.size is None else f"{self.kind}:{exact(self.size)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the queue of a discipline's name and its size in the default unit, as in "bfifo:1". Raises UserError.

        Of the disciplines that may have a size, only those that must have one are given one here.
        """
        kind, _, size = text.partition(":")
        if kind not in QUEUES or kind == DUAL:
            known = ", ".join(name for name in QUEUES if name != DUAL)
            raise UserError(f"queue {text!r} is not known", f"choose one of {known}")
        if bool(size) != (kind in _SIZED):
            form = f"{kind}:SIZE, SIZE in {QUEUES[kind][0]}" if kind in _SIZED else kind
            raise UserError(f"queue {text!r} is not of the form {form}")
        if not size:
            return cls(kind=kind)
        unit = QUEUES[kind][0]
        try:
            positive = math.isfinite(float(size)) and float(size) > 0
        except ValueError:
            positive = False
        if not positive or (unit == "packets" and not size.isdigit()):
            raise UserError(f"queue {text!r}: the size must be a positive number of {unit}")
        if float(size) > _LARGEST_QUEUE:
            raise UserError(f"queue {text!r}: the size is too large", f"give at most {_LARGEST_QUEUE} {unit}")
        return cls(kind=kind, size=float(size))

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from this queue, what is wrong)."""
        units = QUEUES.get(self.kind)
        if units is None:
            yield "/kind", f"queue {self.kind!r} is not known; choose one of {', '.join(QUEUES)}"
            return
        if self.size is None and self.kind in _SIZED:
            yield "/size", f"a {self.kind} needs a size, in {' or '.join(units)}"
        if self.size is not None and not units:
            yield "/size", f"a {self.kind} takes no size"
        if self.unit is not None and self.unit not in units:
            yield "/unit", f"a {self.kind} has no size in {self.unit}; choose {' or '.join(units) or 'no unit'}"
        if self.in_packets and self.size is not None and not float(self.size).is_integer():
            yield "/size", "the size in packets must be a whole number"
        if self.ecn is not None and self.kind not in _MARKING:
            yield "/ecn", f"a {self.kind} cannot be told to mark or not; choose one of {', '.join(_MARKING)}"
        if self.ce_threshold_us is not None and self.kind not in _THRESHOLD:
            yield "/ce_threshold_us", f"a {self.kind} has no threshold; choose {' or '.join(_THRESHOLD)}"
        if self.any_ect is not None and self.kind != DUAL:
            yield "/any_ect", f"a {self.kind} has no queue for L4S; choose {DUAL}"

    @property
    def in_packets(self) -> bool:
        return self._unit == "packets"

    @property
    def in_bdp(self) -> bool:
        return self._unit == "bdp"

    @property
    def _unit(self) -> str | None:
        return self.unit or next(iter(QUEUES.get(self.kind, ())), None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Direction(Sparse):
    """What one direction of a link does: delay and random loss, then a limiter with its queue if it has a rate.

    `burst_bytes`: the bucket of a tbf or of a policer. `delay_packets`: the most packets that the delay holds; None
    means no bound. `slot_ms`: packets are held and leave in groups, each this long after the group before (netem's
    slot); None means that each packet leaves when it is due. `impairments`: what is done to packets that have left the
    queue.
    """

    rate_mbps: float | None = None
    delay_ms: float = 0
    loss_pct: float = 0
    limiter: str = "htb"
    burst_bytes: int | None = None
    queue: Queue | None = None
    delay_packets: int | None = None
    slot_ms: float | None = None
    impairments: Impairments | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from this direction, what is wrong)."""
        if self.limiter not in LIMITERS:
            yield "/limiter", f"limiter {self.limiter!r} is not known; choose one of {', '.join(LIMITERS)}"
        if self.rate_mbps is None:
            for name, setting in (("queue", self.queue), ("burst_bytes", self.burst_bytes)):
                if setting is not None:
                    yield f"/{name}", "without a rate nothing queues; give rate_mbps"
        elif self.limiter == "netem":
            if self.queue is None or self.queue.kind != "pfifo":
                yield "/queue", "netem's own queue is a pfifo, which delayed packets are in, too; give one with a size"
        elif self.queue is None:
            yield "/queue", 'a rate needs a queue; give one, such as {"kind": "bfifo", "size": 1}'
        if self.rate_mbps is not None and self.delay_packets is not None:
            yield "/delay_packets", "it would also count packets in the queue; give the delay a link of its own"
        if self.rate_mbps is not None and self.slot_ms is not None:
            yield "/slot_ms", "slots would hold up what the limiter sends; give them a link of their own"
        if self.queue is not None:
            yield from ((f"/queue{where}", why) for where, why in self.queue.problems())
            if self.queue.kind == "policer" and self.limiter != "htb":
                yield "/limiter", "a policer needs the limiter htb"
        if self.impairments is not None:
            yield from ((f"/impairments{where}", why) for where, why in self.impairments.problems())
        policed = self.queue is not None and self.queue.kind == "policer"
        if self.burst_bytes is None and self.limiter == "tbf":
            yield "/burst_bytes", "a tbf needs a burst; give burst_bytes"
        if self.burst_bytes is not None and self.limiter != "tbf" and not policed:
            yield "/burst_bytes", "only a tbf or a policer has a burst; leave it out"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link(Sparse):
    """A link between two nodes, the client's side first: `data` goes to the client, `acks` to the server."""

    name: str
    ends: tuple[str, str]
    data: Direction
    acks: Direction

    @property
    def directions(self) -> tuple[tuple[str, Direction], ...]:
        return (("data", self.data), ("acks", self.acks))

    def direction(self, name: str) -> Direction:
        """Return the direction "data" or "acks"."""
        return self.data if name == "data" else self.acks
