"""Place splitters in a network that flows share, route connections to them, and run their programs.

A splitter is connected to its node's bridge by two interfaces, its legs. Flows that cross the node are sent to a leg
instead of the far end: data come in by the leg FAR and leave by the leg NEAR. Flows that end at the node bypass the
splitter. It runs a program (conformance/proxy) for each server port of the flows that cross it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time

from conformance.guest import netns, proxy
from conformance.guest.kernel_flows import PORT, Program
from conformance.guest.shared_job import SplitterSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from conformance.guest.shared_job import Group, SharedNetwork
    from conformance.guest.topology import Host

#: a splitter's interfaces, towards clients and towards servers
NEAR, FAR = "near", "far"
_READY_NS = 5_000_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitterPlace:
    """Where a splitter is: a Mininet node with two legs, each described like a host."""

    near: Host
    far: Host

    @property
    def node(self) -> str:
        return self.near.node

    @property
    def legs(self) -> tuple[tuple[str, Host], ...]:
        return ((NEAR, self.near), (FAR, self.far))


def ports(network: SharedNetwork, at: int, stacks_port: int) -> tuple[int, ...]:
    """Return the ports of the servers whose connections cross the splitter with index `at`."""
    crossing = [group for group in network.groups if at in group.splitters]
    return tuple(sorted({stacks_port if group.stack else PORT for group in crossing}))


def hops(
    group: Group, splitters: Sequence[SplitterPlace], receiver: Host, sender: Host
) -> list[tuple[str, str, str, str]]:
    """Return (node, its interface, IP address of a far end, Ethernet address of the next hop) for a group's nodes.

    These are both hosts, whose interface is "", and each splitter between them, which must know both far ends.
    """
    way = [splitters[at] for at in group.splitters]
    found = []
    for at, own in enumerate([None, *way]):
        beyond = way[at].near.mac if at < len(way) else sender.mac
        found.append((own.node if own else receiver.node, FAR if own else "", sender.address, beyond))
    for at, own in enumerate([*way, None]):
        before = way[at - 1].far.mac if at > 0 else receiver.mac
        found.append((own.node if own else sender.node, NEAR if own else "", receiver.address, before))
    return found


class Splitting:
    """The programs of one splitter in a trial. Call `stop()`, then `end()`."""

    def __init__(self, node: Any, name: str, command: Sequence[str], ports: Sequence[int], folder: str) -> None:
        self._name, self._programs = name, {}
        for port in ports:
            whole = [command[0], "-p", str(port), *command[1:], "-u", str(proxy.PROXY_USER)]
            self._programs[port] = Program(node, whole, os.path.join(folder, f"splitter-{name}-{port}"))
        until_ns = time.monotonic_ns() + _READY_NS
        for port, program in self._programs.items():
            while not netns.port_is_bound(node, port, "tcp"):
                if not program.running or time.monotonic_ns() > until_ns:
                    self.stop()
                    raise RuntimeError(f"the splitter at {name} was never ready")
                time.sleep(0.005)

    def stop(self) -> list[SplitterSeen]:
        """End the programs, and return what they counted. Raises RuntimeError if one had ended before."""
        found = []
        for port, program in self._programs.items():
            if not program.running:
                program.stop()
                raise RuntimeError(f"the splitter at {self._name} ended before the flows did")
            counted: Mapping[str, int] = json.loads(program.stop())
            names = ("connections", "refused", "resets", "bytes_to_client")
            found.append(SplitterSeen(node=self._name, port=port, **{name: counted[name] for name in names}))
        return found

    def end(self) -> None:
        for program in self._programs.values():
            program.end()
