"""Run the program that impairs packets of one direction of a link, in the link's middle (load/hop.c)."""

from __future__ import annotations

import json

from conformance.guest.kernel_flows import Program
from conformance.guest.topology import TO_CLIENT, TO_SERVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.guest.netns import Node


class Hop:
    """The program for `place`: (link, direction), 0 for data and 1 for acks. Call `stop()`, then `end()`.

    `rules`: hop.c's rules, with times in ns after `begin_ns`, when the trial begins.
    """

    def __init__(
        self, program: str, folder: str, node: Node, place: tuple[int, int], rules: Sequence[str], begin_ns: int,
        seed: int,
    ) -> None:  # fmt: skip
        link, way = place
        name = f"hop-{link}-{way}"
        with open(f"{folder}/{name}.rules", "w") as f:
            for rule in rules:
                at_ns, _, rest = rule.partition(" ")
                f.write(f"{begin_ns + int(at_ns)} {rest}\n")
        come, go = (TO_SERVER, TO_CLIENT) if way == 0 else (TO_CLIENT, TO_SERVER)
        command = [program, "run", come, go, f"{folder}/{name}.rules", str(64 * seed + 2 * link + way)]
        self._program = Program(node, command, f"{folder}/{name}.out")

    def stop(self) -> dict[str, int]:
        """End the program, and return what it counted. Raises RuntimeError with its error message."""
        counts: dict[str, int] = json.loads(self._program.stop())
        return counts

    def end(self) -> None:
        self._program.end()
