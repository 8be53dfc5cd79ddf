"""A real QUIC stack in a guest: an ngtcp2 of Debian, with the common client. Tests are skipped if it is missing."""

import re
import shutil

import common_client
import pytest
from helpers import line, setting
from test_guest import go

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def bench(quic_bench):
    return quic_bench


def packets(cell):
    return setting(cell, offload=False, transfer_s=2)


def test_a_transfer_is_measured_and_repeatable(bench):
    first, again = (go(bench, [packets(Cell(10, 20, 1))], (1, 2)) for _ in range(2))
    assert [line(m) for m in first] == [line(m) for m in again]
    for found in first:
        assert found.outcome is Outcome.OK, found.message
        assert 0.2 < found.utilization < 1
        assert found.value("lost_pct") > 0.2
        assert found.evidence["congestion_control"] is None
        trace = found.evidence["trace"]
        assert set(trace["rtt_ms"]) == set(trace["cwnd_segments"]) == {None}
        assert trace["queue_out_bytes"][-1] > 0.6 * found.trial.setting.transfer_bytes
        assert trace["dropped_packets"][-1] > 0


#: a wrapper of the common client, which fails on purpose to report its numbers of system calls and datagrams
COUNTED = r"""
datagrams() { awk '$1 == "Udp:" && $2 ~ /^[0-9]/ {print $2}' /proc/net/snmp; }
before=$(datagrams)
strace -f -c -U calls,name -o "$CC_SCRATCH/calls" "$CC_BUILD/client" >&2 || exit 1
packets=$(($(datagrams) - before))
awk '$2 == "total" {print "calls " $1}' "$CC_SCRATCH/calls" >&2
echo "packets $packets" >&2
exit 1
"""


@pytest.mark.thorough
def test_the_common_client_makes_at_most_1_6_system_calls_a_packet(bench, tmp_path):
    """Calls are counted by strace at 10 Mbit/s; a client that calls ppoll before every second receive makes 2.0.

    strace takes about 10 us of virtual time a call, which is little beside the 1.2 ms between two packets.
    """
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    client = common_client.adapter(tmp_path / "counted", COUNTED)
    counted = benches.find(benches.Choice(stack=bench.adapter.name, client=client))
    (found,) = go(counted, [documents.profile("packets", Cell(10, 20, 0))])
    calls, packets = map(int, re.search(r"calls (\d+) packets (\d+)", found.message).groups())
    assert packets > 8000
    assert 1 < calls / packets <= 1.6


def test_system_calls_are_few(bench):
    """System calls are what a trial costs.

    There are 5.6 a packet: 1.5 are the client's, as strace counts them above, so 4.1 are those of ngtcp2's server and
    of the harness. With 1.6 for the client, which is the most, that makes 5.7; a client that calls ppoll before every
    second receive raises it to 6.1.
    """
    (found,) = go(bench, [documents.profile("packets", Cell(10, 20, 0))])
    if "system_calls" not in found.host:
        pytest.skip(f"the guest kernel {found.trial.scheme.kernel_release} does not count system calls")
    assert found.outcome is Outcome.OK, found.message
    (counters,) = (c for name, c in found.evidence["interfaces"]["client"].items() if name == "client-eth0")
    assert found.host["system_calls"] / counters["rx_packets"] <= 5.7


def test_loss_strikes_packets_where_offload_is_off(bench):
    """Segments leave the server one by one, however many the stack hands to its socket at once."""
    (found,) = go(bench, [packets(Cell(10, 20, 0))])
    (counters,) = (c for name, c in found.evidence["interfaces"]["server"].items() if name == "server-eth0")
    assert counters["tx_bytes"] / counters["tx_packets"] < 1500
    (whole,) = go(bench, [setting(Cell(10, 20, 0), transfer_s=2)])
    (counters,) = (c for name, c in whole.evidence["interfaces"]["server"].items() if name == "server-eth0")
    assert counters["tx_bytes"] / counters["tx_packets"] > 3000


def test_each_algorithm_is_the_one_asked_for(bench):
    """The server accepts its name for each algorithm, and no two algorithms transfer alike under loss."""
    offered = bench.adapter.manifest.offered()
    found = {name: go(bench, [packets(Cell(10, 40, 2))], algorithm=name)[0] for name in offered}
    assert all(m.outcome is Outcome.OK for m in found.values())
    assert len({m.metrics["completion_s"] for m in found.values()}) == len(found)
    assert found[min(offered)].utilization > 2 * found["reno"].utilization  # a BBR


def test_a_server_takes_what_the_client_asks_for(bench_of):
    """Google's QUICHE has no setting for Reno: unless the client's option reached it, both transfers would use BBR."""
    bench = bench_of("google-quiche-options")
    found = {name: go(bench, [packets(Cell(10, 100, 2))], algorithm=name)[0] for name in ("reno", "bbrv1")}
    assert all(m.outcome is Outcome.OK for m in found.values()), [m.message for m in found.values()]
    assert found["bbrv1"].utilization > 2 * found["reno"].utilization
