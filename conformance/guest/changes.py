"""What changes of links while a trial runs: one small program makes all of it, each at its time (load/change.c).

Behind each change it asks the kernel what of the direction is in force from then on, and what it has counted so far.
"""

from __future__ import annotations

import os
import socket
import struct

from conformance.guest.kernel_flows import Program
from conformance.guest.netns import inside
from conformance.guest.rtnetlink import INDEX_AT, counted, questions
from conformance.guest.shared_job import ChangeSeen, CountsSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.guest.netns import Node
    from conformance.guest.shared_job import Change
    from conformance.guest.topology import Interface


#: so many are asked about: rate traces have many thousand
_MOST_ASKED = 500


class Changes:
    """The changes of a trial that begins at `begin_ns` of the clock. Call `stop()`, and `end()`."""

    def __init__(
        self, program: str, folder: str, nodes: Mapping[str, Node],
        directions: Sequence[tuple[Interface, Interface]], changes: Sequence[Change], begin_ns: int,
    ) -> None:  # fmt: skip
        self._begin_ns = begin_ns
        self._sockets: dict[str, socket.socket] = {}
        #: the directions that each change was of, (link, way)
        self._asked: list[list[tuple[int, int]]] = []
        # What is due in one namespace at one time goes there at once.
        due: dict[tuple[int, str], bytearray] = {}
        touched: dict[tuple[int, str], dict[tuple[int, int], int]] = {}
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
                struct.pack_into("=i", message, INDEX_AT, index)
                due.setdefault((change.at_ns, where.node), bytearray()).extend(message)
                touched.setdefault((change.at_ns, where.node), {})[change.link, change.way] = index
        path = os.path.join(folder, "changes")
        with open(path, "w") as f:
            for (at_ns, node), data in sorted(due.items(), key=lambda one: one[0][0]):
                if len(due) <= _MOST_ASKED:
                    data += questions(list(touched[at_ns, node].values()))
                    self._asked.append(list(touched[at_ns, node]))
                else:
                    self._asked.append([])
                f.write(f"{begin_ns + at_ns} {self._sockets[node].fileno()} {data.hex()}\n")
        fds = [own.fileno() for own in self._sockets.values()]
        self._program = Program(next(iter(nodes.values())), [program, path], f"{folder}/changes.out", fds)

    def stop(self) -> tuple[ChangeSeen, ...]:
        """End it, and return what it did. Raises RuntimeError with its words."""
        rows = [line.split() for line in self._program.stop().decode().splitlines()]
        return tuple(
            ChangeSeen(
                at_ns=int(at) - self._begin_ns, done_ns=int(done) - self._begin_ns, error=int(error),
                counts=tuple(
                    CountsSeen(link=link, way=way, **found)
                    for (link, way), found in zip(asked, counted(answers), strict=True)
                ),
            )
            for (at, done, error, *answers), asked in zip(rows, self._asked[: len(rows)], strict=True)
        )  # fmt: skip

    def end(self) -> None:
        self._program.end()
        for own in self._sockets.values():
            own.close()
