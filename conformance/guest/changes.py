"""What changes of links while a trial runs: one small program makes all of it, each at its time (load/change.c)."""

from __future__ import annotations

import os
import socket
import struct

from conformance.guest.kernel_flows import Program
from conformance.guest.netns import inside
from conformance.guest.shared_job import ChangeSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.guest.netns import Node
    from conformance.guest.shared_job import Change
    from conformance.guest.topology import Interface

#: of a message, where the index of its interface is: behind struct nlmsghdr and the family of struct tcmsg
_INDEX_AT = 16 + 4


class Changes:
    """The changes of a trial that begins at `begin_ns` of the clock. Call `stop()`, and `end()`."""

    def __init__(
        self, program: str, folder: str, nodes: Mapping[str, Node],
        directions: Sequence[tuple[Interface, Interface]], changes: Sequence[Change], begin_ns: int,
    ) -> None:  # fmt: skip
        self._begin_ns = begin_ns
        self._sockets: dict[str, socket.socket] = {}
        # What is due in one namespace at one time goes there at once.
        due: dict[tuple[int, str], bytearray] = {}
        for change in changes:
            where = directions[change.link][change.way]
            with inside(nodes[where.node]):
                if where.node not in self._sockets:
                    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
                    made.bind((0, 0))
                    self._sockets[where.node] = made
                index = socket.if_nametoindex(where.name)
            for text in change.messages:
                message = bytearray.fromhex(text)
                struct.pack_into("=i", message, _INDEX_AT, index)
                due.setdefault((change.at_ns, where.node), bytearray()).extend(message)
        path = os.path.join(folder, "changes")
        with open(path, "w") as f:
            for (at_ns, node), data in sorted(due.items(), key=lambda one: one[0][0]):
                f.write(f"{begin_ns + at_ns} {self._sockets[node].fileno()} {data.hex()}\n")
        fds = [own.fileno() for own in self._sockets.values()]
        self._program = Program(next(iter(nodes.values())), [program, path], f"{folder}/changes.out", fds)

    def stop(self) -> tuple[ChangeSeen, ...]:
        """End it, and return what it did. Raises RuntimeError with its words."""
        rows = [line.split() for line in self._program.stop().decode().splitlines()]
        return tuple(
            ChangeSeen(at_ns=int(at) - self._begin_ns, done_ns=int(done) - self._begin_ns, error=int(error))
            for at, done, error in rows
        )

    def end(self) -> None:
        self._program.end()
        for own in self._sockets.values():
            own.close()
