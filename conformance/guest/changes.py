"""ChangeJob links while a trial runs: one small program (load/change.c) makes all changes, each at its time.

After each change it queries the kernel for the direction's settings in force from then on, and for its counters so far.
"""

from __future__ import annotations

import os
import socket
import struct

from conformance.guest.kernel_flows import Program
from conformance.guest.netns import inside
from conformance.guest.rtnetlink import INDEX_AT, counted, questions
from conformance.guest.seen import ChangeSeen, CountsSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.guest.netns import Node
    from conformance.guest.network_job import ChangeJob
    from conformance.guest.topology import Interface

#: the most changes for which the kernel is queried after each; rate traces have many thousand changes
_MOST_CHANGES = 500
#: what the program accepts as one change (load/change.c): bytes, and directions with three queries each
_MOST_BYTES, _MOST_QUESTIONED = 8192, 16


class Changes:
    """The changes of a trial that begins at `begin_ns` of the clock. Call `stop()`, then `end()`."""

    def __init__(
        self, program: str, folder: str, nodes: Mapping[str, Node],
        directions: Sequence[tuple[Interface, Interface]], changes: Sequence[ChangeJob], begin_ns: int,
    ) -> None:  # fmt: skip
        self._begin_ns = begin_ns
        self._sockets: dict[str, socket.socket] = {}
        #: for each change, the directions, (link, way), that are queried after it
        self._asked: list[list[tuple[int, int]]] = []
        # Changes that are due in one namespace at one time are sent there together.
        due: dict[tuple[int, str], dict[tuple[int, int], tuple[int, bytearray]]] = {}
        for change in changes:
            where = directions[change.link][change.way]
            with inside(nodes[where.node]):
                if where.node not in self._sockets:
                    netlink_socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
                    netlink_socket.bind((0, 0))
                    self._sockets[where.node] = netlink_socket
                index = socket.if_nametoindex(where.name)
            for text in change.messages:
                message = bytearray.fromhex(text)
                struct.pack_into("=i", message, INDEX_AT, index)
                touched = due.setdefault((change.at_ns, where.node), {})
                touched.setdefault((change.link, change.way), (index, bytearray()))[1].extend(message)
        path = os.path.join(folder, "changes")
        with open(path, "w") as f:
            for (at_ns, node), touched in sorted(due.items(), key=lambda change: change[0][0]):
                for questions, data in batches(touched, asks=len(due) <= _MOST_CHANGES):
                    self._asked.append(questions)
                    f.write(f"{begin_ns + at_ns} {self._sockets[node].fileno()} {data.hex()}\n")
        fds = [netlink_socket.fileno() for netlink_socket in self._sockets.values()]
        self._program = Program(next(iter(nodes.values())), [program, path], f"{folder}/changes.out", fds)

    def stop(self) -> tuple[ChangeSeen, ...]:
        """End the program, and return what it did. Raises RuntimeError with its error message."""
        rows = [line.split() for line in self._program.stop().decode().splitlines()]
        return tuple(
            ChangeSeen(
                at_ns=int(at) - self._begin_ns, done_ns=int(done) - self._begin_ns, error=int(error),
                counts=tuple(
                    CountsSeen(link=link, way=way, **counts)
                    for (link, way), counts in zip(questions, counted(answers), strict=True)
                ),
            )
            for (at, done, error, *answers), questions in zip(rows, self._asked[: len(rows)], strict=True)
        )  # fmt: skip

    def end(self) -> None:
        self._program.end()
        for netlink_socket in self._sockets.values():
            netlink_socket.close()


def batches(
    touched: Mapping[tuple[int, int], tuple[int, bytes | bytearray]], asks: bool
) -> Iterator[tuple[list[tuple[int, int]], bytes]]:
    """Split what is due in one namespace at one time into batches that the program accepts: one if all fits.

    Yield (directions that are queried, bytes) of each batch. `touched`: {(link, way): (index of its interface,
    messages)}; `asks`: whether queries follow the messages.
    """
    question_bytes = len(questions([0])) if asks else 0
    batch: dict[tuple[int, int], tuple[int, bytes | bytearray]] = {}
    size = 0
    for direction, (index, messages) in touched.items():
        more = len(messages) + question_bytes
        if batch and (size + more > _MOST_BYTES or (asks and len(batch) == _MOST_QUESTIONED)):
            yield _batch(batch, asks)
            batch, size = {}, 0
        batch[direction] = index, messages
        size += more
    yield _batch(batch, asks)


def _batch(
    touched: Mapping[tuple[int, int], tuple[int, bytes | bytearray]], asks: bool
) -> tuple[list[tuple[int, int]], bytes]:
    data = b"".join(messages for _, messages in touched.values())
    return (list(touched), data + questions([index for index, _ in touched.values()])) if asks else ([], data)
