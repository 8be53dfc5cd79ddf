"""What topologies say about themselves, read without Mininet."""

import ipaddress
import runpy

import pytest

from conformance.guest.topology import Topology
from conformance.support import paths

FILES = sorted(paths.data("topologies").glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_topology_can_be_read_without_mininet_and_agrees_with_itself(path):
    topology = runpy.run_path(str(path))["TOPOLOGY"]
    assert isinstance(topology, Topology)
    assert topology.addresses.keys() == {"client", "server"}
    first, last = topology.segments[0], topology.segments[-1]
    assert (first.receiver, first.address) == ("client", topology.addresses["client"])
    assert last.sender == "server"
    # Packets pass from one segment to the next through the router.
    inner = {segment.sender for segment in topology.segments[:-1]} | {s.receiver for s in topology.segments[1:]}
    assert inner == ({topology.router.node} if topology.router else set())
    queues = [queue for segment in topology.segments for queue in segment.queues]
    assert len(set(queues)) == 2 * len(topology.segments)
    assert len(topology.taps) == len(set(topology.taps.values())) == len(queues)
    for address in (*topology.addresses.values(), *(segment.address for segment in topology.segments)):
        assert ipaddress.ip_address(address).is_private


def test_each_kind_of_setting_has_a_topology():
    found = {path.stem: runpy.run_path(str(path))["TOPOLOGY"] for path in FILES}
    assert {name for name, topology in found.items() if topology.rival} == {"dumbbell"}
    assert {name for name, topology in found.items() if topology.router} == {"two_segment"}
