"""Set up a bond of two links: its two nodes, the programs on them (conformance/bond), and what they count.

Data from hosts at the bond's second end (the server's side) pass the node SPLIT, which deals them to both links. At the
other end of the links, the node MERGE puts them in order again. The kernel forwards acknowledgements over the first
link.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time

from conformance.guest import netns, tc
from conformance.guest.kernel_flows import Program
from conformance.guest.seen import BondSeen
from conformance.guest.topology import BondPlace, Interface

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from conformance.guest.network_job import BondJob, BondTrial

SPLIT, MERGE = "b-split", "b-merge"
#: names of these nodes' interfaces, towards hosts and towards links; and of the port of each bridge that leads to one
#: of them
_HOSTS, _LINKS, _PORT = "hosts", ("one", "two"), "bond"
#: the qdisc that closes a gate, whose drops are counted nowhere; and the ns after which packets that have passed the
#: gates are through
_DROP_ALL = "netem loss 100%"
_LAST_NS = 5_000_000
_COUNTS = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes")


def place(bond: BondJob, ends: tuple[str, str], directions: Sequence[tuple[Interface, Interface]]) -> BondPlace:
    """Return where a bond's parts are; `ends`: the bridges at its ends; `directions`: egresses of all links (Place)."""
    client, server = ends
    ways = {(client, server): _PORT, (server, client): _PORT}
    joints = [
        (Interface(server, _PORT), Interface(SPLIT, _HOSTS)),
        (Interface(client, _PORT), Interface(MERGE, _HOSTS)),
    ]
    gates = [Interface(server, _PORT)]
    for link, name in zip(bond.links, _LINKS, strict=True):
        data, acks = directions[link]
        far, near = data.node, acks.node
        joints += [
            (Interface(far, _PORT), Interface(SPLIT, name)),
            (Interface(near, _PORT), Interface(MERGE, name)),
        ]
        ways |= {(far, client): data.name, (near, client): _PORT, (near, server): acks.name, (far, server): _PORT}
        gates.append(Interface(near, _PORT))
    return BondPlace(ends=ends, joints=tuple(joints), ways=ways, gates=tuple(gates))


def connect(net: Mapping[str, Any]) -> None:
    """Let the kernel forward acknowledgements over the first link."""
    first = _LINKS[0]
    for node, come, go in ((net[MERGE], _HOSTS, first), (net[SPLIT], first, _HOSTS)):
        whole = f"dev {come} parent ffff: protocol all matchall action mirred egress redirect dev {go}"
        tc.run(node, [f"qdisc add dev {come} handle ffff: ingress", f"filter add {whole}"])


def fresh_start(where: BondPlace, bond_trial: BondTrial) -> dict[str, list[str]]:
    """Return {node: tc commands} that open the gates and delay each packet by what its treatment costs."""
    commands: dict[str, list[str]] = {}
    slow = [Interface(SPLIT, _LINKS[0]), Interface(SPLIT, _LINKS[1]), Interface(MERGE, _HOSTS)]
    for interface in (*where.gates, *slow):
        lines = commands.setdefault(interface.node, [])
        # Deleting a qdisc that does not exist is an error, so one is created first.
        lines.append(f"qdisc replace dev {interface.name} root handle 99: pfifo limit 1000")
        lines.append(f"qdisc del dev {interface.name} root")
        lines += [line.replace("{dev}", interface.name) for line in (bond_trial.cost_tc if interface in slow else ())]
    return commands


class Bonding:
    """The bond's programs of one trial. Call `stop()`, then `end()`."""

    def __init__(
        self, program: str, folder: str, net: Mapping[str, Any], where: BondPlace, bond_trial: BondTrial
    ) -> None:
        self._net, self._where, self._cost_ns = net, where, bond_trial.cost_ns
        self._before = self._counters()
        turns = [str(bond_trial.batch), str(bond_trial.first), str(int(bond_trial.copies))]
        self._split = Program(net[SPLIT], [program, "split", _HOSTS, *_LINKS, *turns], os.path.join(folder, "split"))
        order = [*_LINKS, _HOSTS, str(bond_trial.timer_ns)]
        self._merge = Program(net[MERGE], [program, "merge", *order], os.path.join(folder, "merge"))

    def stop(self) -> BondSeen:
        """Close the gates, end the programs, and return what they and the interfaces counted. Raises RuntimeError."""
        for gate in self._where.gates:
            tc.run(self._net[gate.node], [f"qdisc replace dev {gate.name} root handle 98: {_DROP_ALL}"])
        time.sleep((self._cost_ns + _LAST_NS) / 1e9)
        split, merge = json.loads(self._split.stop()), json.loads(self._merge.stop())
        # The last packets that MERGE forwarded stand in the queue that delays them by their cost.
        time.sleep((self._cost_ns + _LAST_NS) / 1e9)
        after = self._counters()
        counted = {
            name: {what: after[name][what] - self._before[name][what] for what in _COUNTS} for name in self._before
        }
        qdiscs = [q for node in (SPLIT, MERGE) for q in tc.read_qdiscs(self._net[node], [*_LINKS, _HOSTS])]
        return BondSeen(split=split, merge=merge, interfaces=counted, qdiscs=tuple(qdiscs))

    def _counters(self) -> dict[str, dict[str, int]]:
        return {
            f"{node}:{name}": dataclasses.asdict(interface_counters)
            for node in (SPLIT, MERGE)
            for name, interface_counters in netns.interface_counters(self._net[node]).items()
        }

    def end(self) -> None:
        self._split.end()
        self._merge.end()
