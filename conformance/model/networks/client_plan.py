"""Describe what a flow's client is told to do beyond asking for bodies: version 3 of the contract (docs/contract.md).

Each record's JSON has the form of a scenario's document, without fields that have their default value.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence

from conformance.model.records import Sparse

#: most connections of one client
MOST_CONNECTIONS = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Acknowledgements(Sparse):
    """When a client acknowledges: after `packets`, or after `round_trips`, and after `longest_ms` at the latest."""

    packets: int | None = None
    round_trips: float | None = None
    longest_ms: float = 25

    @property
    def text(self) -> str:
        """The policy as CC_ACKS has it."""
        often = f"rtt {self.round_trips:g}" if self.packets is None else f"packets {self.packets}"
        return f"{often} {self.longest_ms / 1000:g}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Connection(Sparse):
    """A connection that a client opens, `times` in a row.

    It is opened `at_s` after the client's start; or, with `after_s`, so long after the bodies of the connection before
    it are there. `resumes`: whether it returns the ticket and the token that an earlier one was given.
    """

    at_s: float = 0
    after_s: float | None = None
    resumes: bool = False
    times: int = 1

    @property
    def line(self) -> str:
        """One connection as a line of CC_CONNECTIONS."""
        when, seconds = ("at", self.at_s) if self.after_s is None else ("after", self.after_s)
        return f"{when} {seconds:.9f} {'resume' if self.resumes else 'new'}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows(Sparse):
    """The windows of flow control that a client gives, in bytes."""

    connection_bytes: int
    stream_bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClientPlan(Sparse):
    """What each client of a group is told to do; a plan of defaults tells it nothing.

    `migrate_s`: so long after its start, each connection moves to another port. `stop_bytes`: it stops a body of which
    so many bytes are there. `read_bytes_per_s`: it takes so many bytes a second out of its windows. `idle_s`: the idle
    timeout that it announces.
    """

    acks: Acknowledgements | None = None
    connections: tuple[Connection, ...] = ()
    migrate_s: float | None = None
    stop_bytes: int | None = None
    windows: Windows | None = None
    read_bytes_per_s: int | None = None
    idle_s: float | None = None

    def __bool__(self) -> bool:
        return self != PLAIN

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from this plan, what is wrong)."""
        if self.acks is not None and (self.acks.packets is None) == (self.acks.round_trips is None):
            yield "/acks", "a client acknowledges after packets or after round trips; give one of packets, round_trips"
        first = self.connections[0] if self.connections else Connection()
        if first.after_s is not None or first.resumes:
            yield "/connections/0", "there is no connection before the first one; leave out after_s and resumes"
        for at, connection in enumerate(self.connections):
            if connection.at_s and connection.after_s is not None:
                yield f"/connections/{at}/after_s", "a connection is opened once; give either at_s or after_s"
        if len(self.each) > MOST_CONNECTIONS:
            yield "/connections", f"a client opens at most {MOST_CONNECTIONS} connections; ask for fewer times"

    @property
    def each(self) -> tuple[Connection, ...]:
        """Its connections, each once; one that is opened at once if none are listed."""
        return tuple(planned for planned in self.connections for _ in range(planned.times)) or (Connection(),)

    @property
    def ports(self) -> int:
        """How many ports it may connect from. Of two the kernel always tries the first one first; of more, it draws."""
        return 2 * len(self.each)

    @property
    def waits_s(self) -> float:
        """How long it waits between connections, in all."""
        opened_s = max(connection.at_s for connection in self.each)
        return opened_s + math.fsum(connection.after_s or 0 for connection in self.each)

    @property
    def connection_lines(self) -> tuple[str, ...]:
        """The lines of the file that CC_CONNECTIONS names; none if the client opens one connection as always."""
        return tuple(connection.line for connection in self.each) if self.connections else ()

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the contract that say this, without CC_CONNECTIONS."""
        windows = self.windows
        named = {
            "CC_ACKS": None if self.acks is None else self.acks.text,
            "CC_MIGRATE_S": _number(self.migrate_s),
            "CC_STOP_BYTES": _number(self.stop_bytes),
            "CC_WINDOWS": None if windows is None else f"{windows.connection_bytes} {windows.stream_bytes}",
            "CC_READ_BYTES_PER_S": _number(self.read_bytes_per_s),
            "CC_IDLE_S": _number(self.idle_s),
        }
        return {name: text for name, text in named.items() if text is not None}

    def arrives(self, bodies: Sequence[int]) -> tuple[int, int]:
        """Return the fewest and the most bytes that arrive of bodies of these sizes; it may stop each."""
        least = bodies if self.stop_bytes is None else [min(size, self.stop_bytes) for size in bodies]
        return sum(least), sum(bodies)


#: the plan of a client that is told nothing
PLAIN = ClientPlan()


def _number(number: float | None) -> str | None:
    return None if number is None else f"{number:.15g}"
