"""Place splitters in a network that flows share, route connections to them, and run their programs.

A splitter is connected to its node's bridge by two interfaces, its legs. Flows that cross the node are sent to a leg
instead of the far end: data come in by the far leg and leave by the near one. Flows that end at the node bypass the
splitter. It runs a program (conformance/proxy) for each server port of the flows that cross it.
"""

from __future__ import annotations

import itertools
import json
import os
import time

from conformance.guest import netns, proxy
from conformance.guest.kernel_flows import PORT, Program
from conformance.guest.seen import SplitterSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from conformance.guest.network_job import GroupJob, NetworkJob, SplitterJob
    from conformance.guest.topology import Host, SplitterPlace

_READY_NS = 5_000_000_000


def ports(network: NetworkJob, at: int, stacks_port: int) -> tuple[int, ...]:
    """Return the ports of the servers whose connections cross the splitter with index `at`."""
    crossing = [group for group in network.groups if at in group.splitters]
    return tuple(sorted({stacks_port if group.stack else PORT for group in crossing}))


def hops(
    group: GroupJob, splitters: Sequence[SplitterPlace], receiver: Host, sender: Host
) -> list[tuple[Host, str, str]]:
    """Return (host or leg, IP address of a far end, Ethernet address of the next hop) for what a group's flows pass.

    These are both hosts, and both legs of each splitter between them, which must know both far ends.
    """
    way = [splitters[at] for at in group.splitters]
    rules = []
    for host, beyond in itertools.pairwise((receiver, *(leg for at in way for leg in at.legs), sender)):
        # A splitter's legs are not connected to each other, but its program passes on what it gets.
        if host.node != beyond.node:
            rules += [(host, sender.address, beyond.mac), (beyond, receiver.address, host.mac)]
    return rules


class Splitting:
    """The programs of one splitter in a trial. Call `stop()`, then `end()`."""

    def __init__(
        self, node: Any, splitter: SplitterJob, command: Sequence[str], ports: Sequence[int], folder: str
    ) -> None:
        name = splitter.node
        self._splitter, self._programs = splitter, {}
        for port in ports:
            whole = [command[0], "-p", str(port), *command[1:]]
            if splitter.ours:
                whole += ["-u", str(proxy.PROXY_USER)]
            self._programs[port] = Program(node, whole, os.path.join(folder, f"splitter-{name}-{port}"))
        until_ns = time.monotonic_ns() + _READY_NS
        for port, program in self._programs.items():
            while not netns.port_is_bound(node, port, "tcp"):
                self._require_running(program, "before it was ready")
                if time.monotonic_ns() > until_ns:
                    raise RuntimeError(f"the splitter at {name} was never ready")
                time.sleep(0.005)

    @property
    def pidfds(self) -> list[int]:
        return [program.pidfd for program in self._programs.values()]

    def stop(self) -> list[SplitterSeen]:
        """End the programs. Return what they counted, which other programs than the suite's own do not say.

        Raises RuntimeError if one had ended before.
        """
        counts = []
        name = self._splitter.node
        for port, program in self._programs.items():
            self._require_running(program, "before the flows did")
            words = program.stop()
            if self._splitter.ours:
                counted: Mapping[str, int] = json.loads(words)
                names = ("connections", "refused", "resets", "bytes_to_client")
                counts.append(SplitterSeen(node=name, port=port, **{name: counted[name] for name in names}))
        return counts

    def _require_running(self, program: Program, when: str) -> None:
        if not program.running:
            how = f"ended with status {program.status} {when}{f': {program.words}' if program.words else ''}"
            raise RuntimeError(f"the splitter at {self._splitter.node} {how}")

    def end(self) -> None:
        for program in self._programs.values():
            program.end()
