"""Describe impairments of a link's direction beyond rate, delay and random loss: order, copies, bursts of loss, marks.

A small program behind the link's queue makes all of them (conformance/load/hop.c), with a random seed of its own, and
reports what it did. An omitted field has no effect. docs/scenarios.md describes every field.
"""

import dataclasses
from collections.abc import Iterator

from conformance.model.records import Sparse

#: values of `ecn`: no packet allows ECN any longer, or every packet that allows it is marked
BLEACHED, ALL_CE = "bleached", "all_ce"
#: values of `rebind`: a client gets another port, or another address, when the impairment comes into force
PORT, ADDRESS = "port", "address"
#: values of `keep`: all packets of a slot leave at its end, or of each flow's acknowledgements only the newest
ALL, NEWEST = "all", "newest"
_WAYS_OF_REORDERING = "give either by_packets or by_ms"

#: more packets than a trial has
_ENDLESS = 1 << 62


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reorder(Sparse):
    """Reordering: a random share of packets, or each `every`-th, is held until `by_packets` pass it, or for `by_ms`."""

    share_pct: float | None = None
    every: int | None = None
    by_packets: int | None = None
    by_ms: float | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from this record, what is wrong)."""
        if (self.share_pct is None) == (self.every is None):
            yield "/share_pct", "it must say which packets are held back; give either share_pct or every"
        if (self.by_packets is None) == (self.by_ms is None):
            yield "/by_packets", f"it must say how far packets are displaced; {_WAYS_OF_REORDERING}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BurstLoss(Sparse):
    """Loss by Gilbert and Elliott's model: each packet may begin or end a bad time, in which `loss_pct` are lost."""

    enter_pct: float
    leave_pct: float
    loss_pct: float = 100
    loss_between_pct: float = 0

    @property
    def mean_pct(self) -> float:
        """The percentage of packets that is lost in the long run."""
        bad = self.enter_pct / (self.enter_pct + self.leave_pct)
        return bad * self.loss_pct + (1 - bad) * self.loss_between_pct


@dataclasses.dataclass(frozen=True, kw_only=True)
class Slots(Sparse):
    """Packets leave only at multiples of `every_ms`; `keep`: all of them, or a flow's newest acknowledgement only."""

    every_ms: float
    keep: str = ALL


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chosen(Sparse):
    """Packets by number: `count` of them from the `first` on, among those of `at_least_bytes` (of IP).

    Numbers begin at 1 when this comes into force. The packets are lost, and so are `again` retransmissions of each
    (TCP); or, with `by_ms`, they are held for that long.

    `every`: instead of `count` packets, `of` neighbours in each so many, for as long as this is in force. The pattern
    begins up to `every` - 1 packets later, by the trial's seed.
    """

    first: int
    count: int = 1
    at_least_bytes: int = 0
    every: int | None = None
    of: int = 1
    again: int = 0
    by_ms: float | None = None

    @property
    def span(self) -> int:
        """How many packets, from the first on, are looked at."""
        return self.count if self.every is None else _ENDLESS

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from here, what is wrong)."""
        if self.every is None and self.of != 1:
            yield "/of", "it says how many of each `every` packets are meant; give every, too"
        if self.every is not None and self.count != 1:
            yield "/count", "a pattern goes on for as long as it is in force; leave count out"
        if self.every is not None and self.of >= self.every:
            yield "/of", f"it must be less than every, which is {self.every}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Impairments(Sparse):
    """All impairments of packets of one direction; see the records above.

    `jitter_ms`: each packet is late by up to this much, and none overtakes another. `mark_pct`: this percentage of
    packets is marked if they allow ECN, and dropped otherwise. `largest_bytes`: longer IP packets vanish. `rebind`:
    clients appear with another port or address, as behind a NAT that has lost its mapping (RFC 9000, 9.3); it holds in
    both directions.
    """

    reorder: Reorder | None = None
    duplicate_pct: float = 0
    burst_loss: BurstLoss | None = None
    jitter_ms: float = 0
    slots: Slots | None = None
    mark_pct: float = 0
    ecn: str | None = None
    largest_bytes: int | None = None
    lose: Chosen | None = None
    hold: Chosen | None = None
    rebind: str | None = None

    @property
    def none(self) -> bool:
        """Whether packets pass unchanged."""
        return not self.to_json()

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from these impairments, what is wrong)."""
        if self.reorder is not None:
            yield from ((f"/reorder{where}", why) for where, why in self.reorder.problems())
            # It could not be checked: which packets are held longer does not show among packets that all wait.
            if self.reorder.by_ms is not None and (self.jitter_ms or self.slots is not None):
                yield "/reorder/by_ms", "packets with jitter or slots are displaced by packets; give by_packets"
            if self.slots is not None and self.slots.keep == NEWEST:
                yield "/slots/keep", "packets that pass others might be dropped by it; leave out reorder"
        for name, chosen in (("lose", self.lose), ("hold", self.hold)):
            if chosen is not None:
                yield from ((f"/{name}{where}", why) for where, why in chosen.problems())
        if self.lose is not None and self.lose.by_ms is not None:
            yield "/lose/by_ms", "lost packets cannot be late; use hold instead"
        if self.hold is not None and self.hold.by_ms is None:
            yield "/hold/by_ms", "it must say how long packets are held; give by_ms"
        if self.hold is not None and self.hold.again:
            yield "/hold/again", "retransmissions can only be lost, not held; leave it out"
        if self.jitter_ms and self.slots is not None:
            yield "/slots", "packets that wait for a slot have no jitter of their own; leave out one of the two"
