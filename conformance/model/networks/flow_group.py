"""Describe groups of flows that share a network: who sends, when each flow starts, what it sends or is asked for.

Each record's JSON has the form of a scenario's document, without fields that have their default value.
"""

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Self

from conformance.model.networks.client_plan import PLAIN, ClientPlan
from conformance.model.records import Sparse

_ALGORITHM = re.compile(r"[a-z0-9_]{1,15}\Z")
SENDERS = ("stack", "kernel")
MOST_STACK_FLOWS = 32
#: most requests of one flow: a client's report of more would not fit into what is read of its output (guest/process.py)
MOST_REQUESTS = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request(Sparse):
    """A client's request for a body of `bytes`, made `times` in a row on its `connection`, counted from 1.

    The next request is made `pause_s` after this body and all before it have arrived; or, with `every_s`, that long
    after this request was made, whether or not its body has arrived.
    """

    bytes: int
    pause_s: float = 0
    every_s: float | None = None
    times: int = 1
    connection: int = 1

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from this request, what is wrong)."""
        if self.bytes < 1:
            yield "/bytes", f"a request of {self.bytes} bytes asks for nothing; ask for 1 or more"
        if self.times < 1:
            yield "/times", f"a request that is made {self.times} times is never made; leave it out"
        if self.pause_s and self.every_s is not None:
            yield "/every_s", "the next request comes after a pause or an interval; give either pause_s or every_s"

    @classmethod
    def parse(cls, line: str) -> Self:
        """Return the request in a line of CC_REQUESTS: the inverse of `line`."""
        size, how, wait, *on = line.split()
        connection = int(on[0]) if on else 1
        if how == "pause":
            return cls(bytes=int(size), pause_s=float(wait), connection=connection)
        return cls(bytes=int(size), every_s=float(wait), connection=connection)

    @property
    def line(self) -> str:
        """One request as a line of CC_REQUESTS (docs/contract.md)."""
        how, wait_s = ("pause", self.pause_s) if self.every_s is None else ("every", self.every_s)
        return f"{int(self.bytes)} {how} {wait_s:.9f}{'' if self.connection == 1 else f' {self.connection}'}"

    @property
    def waits_s(self) -> float:
        """The time that is waited after all `times` requests together."""
        return self.times * (self.pause_s if self.every_s is None else self.every_s)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start(Sparse):
    """When the flows of a group start: the first at `at_s`, each next one `every_s` later, each up to `spread_s` late.

    How late each is depends on the trial's seed.
    """

    at_s: float = 0
    every_s: float = 0
    spread_s: float = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flows(Sparse):
    """A group of flows: of the stack under test, or of the kernel with `algorithm` (None: the one under test).

    Each flow sends `bytes`; or for `seconds`; or what its bottleneck carries in `seconds_at_rate`; or what the
    `requests` of its client ask for on its connection. With none of these, it sends until all others have ended. Where
    `client` opens several connections, `bytes` are those of each.
    `ends`: the nodes of receiver and sender. `extra_delay_ms`: how much longer than others' the path of its
    acknowledgements is. `pace_mbps`: the highest rate at which each flow sends. `ecn`: whether its hosts ask for ECN;
    None is the kernel's default. `judged`: whether metrics without a group are about these flows.
    """

    name: str
    ends: tuple[str, str]
    sender: str = "stack"
    algorithm: str | None = None
    count: int = 1
    start: Start = Start()
    bytes: int | None = None
    seconds: float | None = None
    seconds_at_rate: float | None = None
    extra_delay_ms: float = 0
    pace_mbps: float | None = None
    ecn: bool | None = None
    host_queue: str | None = None
    judged: bool = True
    requests: tuple[Request, ...] = ()
    client: ClientPlan = PLAIN

    @property
    def bodies(self) -> tuple[int, ...]:
        """The sizes of all bodies that each flow's client asks for; none if their size is not given."""
        if self.requests:
            return tuple(request.bytes for request in self.requests for _ in range(request.times))
        return () if self.bytes is None else (self.bytes,) * len(self.client.each)

    @property
    def is_stack(self) -> bool:
        return self.sender == "stack"

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from this group, what is wrong)."""
        if self.sender not in SENDERS:
            yield "/sender", f"sender {self.sender!r} is not known; choose stack or kernel"
        if self.is_stack:
            if self.algorithm is not None:
                yield "/algorithm", "the stack's algorithm is the one under test; leave it out"
            if self.pace_mbps is not None:
                yield "/pace_mbps", "only flows of the kernel can be paced at a given rate; leave it out"
            if self.count > MOST_STACK_FLOWS:
                yield "/count", f"a stack has at most {MOST_STACK_FLOWS} flows, each with a client of its own"
            if not self.has_end:
                yield "/bytes", "it must say how much is sent; give bytes, seconds, seconds_at_rate or requests"
        elif self.algorithm is not None and not _ALGORITHM.match(self.algorithm):
            yield "/algorithm", f"{self.algorithm!r} is not a valid kernel name of a congestion control"
        if sum(amount is not None for amount in (self.bytes, self.seconds, self.seconds_at_rate)) > 1:
            yield "/seconds", "give only one of bytes, seconds and seconds_at_rate"
        if self.requests and self.amount is not None:
            yield "/requests", "requests say how much is sent; leave out bytes, seconds and seconds_at_rate"
        for at, request in enumerate(self.requests):
            yield from ((f"/requests/{at}{where}", why) for where, why in request.problems())
        if sum(request.times for request in self.requests) > MOST_REQUESTS:
            yield "/requests", f"a flow has at most {MOST_REQUESTS} requests; ask for larger bodies, or fewer times"
        yield from self._client_problems()

    def _client_problems(self) -> Iterator[tuple[str, str]]:
        yield from ((f"/client{where}", why) for where, why in self.client.problems())
        if self.client and not self.is_stack:
            yield "/client", "only clients of the stack are told what to do; leave it out"
        if self.client.connections and self.seconds_at_rate is not None:
            yield "/seconds_at_rate", "it is the size of one body, but there are several connections; give bytes"
        count = len(self.client.each)
        for at, request in enumerate(self.requests):
            if request.connection > count:
                yield f"/requests/{at}/connection", f"the client opens {count} connections; ask it for more of them"
        if self.requests and (idle := set(range(1, count + 1)) - {request.connection for request in self.requests}):
            yield "/client/connections", f"connection {min(idle)} has no request; give it one, or leave it out"

    @property
    def end_s(self) -> float | None:
        """When its last flow ends at the latest; None if the clock does not end its flows."""
        if self.seconds is None:
            return None
        return self.start.at_s + (self.count - 1) * self.start.every_s + self.start.spread_s + self.seconds

    @property
    def amount(self) -> float | None:
        """How much each flow sends, in its field's own unit; None if it sends for as long as others run."""
        return next((amount for amount in (self.bytes, self.seconds, self.seconds_at_rate) if amount is not None), None)

    @property
    def has_end(self) -> bool:
        """Whether its flows end by themselves, and not only when all others have ended."""
        return self.amount is not None or bool(self.requests)

    @property
    def total_bytes(self) -> int | None:
        """How many bytes each flow sends, in all; None if that is not given."""
        return sum(self.bodies) or None

    @property
    def waits_s(self) -> float:
        """How long its client waits between requests, and between connections, in all."""
        return math.fsum(request.waits_s for request in self.requests) + self.client.waits_s

    @property
    def request_lines(self) -> tuple[str, ...]:
        """The lines of the file that CC_REQUESTS names: one for each request."""
        return tuple(request.line for request in self.requests for _ in range(request.times))
