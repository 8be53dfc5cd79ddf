"""The common client acknowledges as it is asked to, as counters of its interface show (CC_ACKS in docs/contract.md)."""

import common_client
import pytest
from helpers import setting
from test_guest import go
from test_scenario_guest import FIFO, measure, network

from conformance.engine import benches
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest

#: longer than any gap of these transfers
LONGEST_S = 0.4


def counted(server, folder, mbps, rtt_ms, policy):
    """Return how many packets a client got, how many it sent, and how long the transfer took in ms.

    The client's windows are a little more than the path holds, so nothing is lost.
    """
    window = int(1.3 * mbps * 1e6 / 8 * rtt_ms / 1e3)
    client = common_client.with_variables(
        folder / "acks", CC_ACKS=f"{policy} {LONGEST_S}", CC_WINDOWS=f"{window} {window}"
    )
    bench = benches.find(benches.Choice(stack=server.adapter.name, client=client))
    (found,) = go(bench, [setting(Cell(mbps, rtt_ms, 0), offload=False, transfer_s=1)], algorithm="reno")
    assert found.outcome is Outcome.OK, found.message
    (counters,) = (c for name, c in found.evidence["interfaces"]["client"].items() if name == "client-eth0")
    assert counters["rx_packets"] > 80 * mbps
    return counters["rx_packets"], counters["tx_packets"], found.metrics["completion_s"] * 1000


@pytest.mark.parametrize(
    ("mbps", "packets"),
    [
        (10, 2),
        (100, 25),
        *(
            pytest.param(*of, marks=pytest.mark.thorough)
            for of in ((10, 1), (10, 10), (10, 25), (100, 1), (100, 2), (100, 10))
        ),
    ],
)
def test_one_acknowledgement_is_sent_for_so_many_packets(server, tmp_path, mbps, packets):
    """Also where many packets arrive together, which for the client's usual policy are one."""
    came, sent, took_ms = counted(server, tmp_path, mbps, 100, f"packets {packets}")
    # The handshake takes a dozen, and new credit comes each half window.
    others = 12 + 2 * took_ms / 100
    assert came / packets * 0.98 < sent < came / packets + others


@pytest.mark.parametrize(
    ("mbps", "share"),
    [(10, 0.25), *(pytest.param(*of, marks=pytest.mark.thorough) for of in ((10, 0.5), (100, 0.25), (100, 0.5)))],
)
def test_one_acknowledgement_is_sent_for_a_share_of_the_round_trip(server, tmp_path, mbps, share):
    """The queue may make the round trip 1.3 times as long as on an empty path, and a wait begins with a packet."""
    rtt_ms = 40
    _, sent, took_ms = counted(server, tmp_path, mbps, rtt_ms, f"rtt {share}")
    periods = took_ms / (rtt_ms * share)
    assert 0.6 * periods < sent < periods + 12 + 2 * took_ms / rtt_ms


def fetched(server, size, acks, **impairments):
    """Return the measurement of a transfer on a link that impairs its data, to a client with this policy."""
    data = {**FIFO, **({"impairments": impairments} if impairments else {})}
    flow = {"name": "test", "bytes": size, "client": {"acks": acks}}
    (found,) = measure(server, (network([flow], data), 1), algorithm="reno")
    return found


def packets(found, direction):
    return next(link["out_packets"] for link in found.links if link["direction"] == direction)


def impaired(found):
    return next(link["impaired"] for link in found.links if link["direction"] == "data")


def test_packets_that_the_network_marks_are_acknowledged_at_once(server):
    """All that hold data are; those that only acknowledge, of which ngtcp2's server sends some more, are not."""
    policy = {"packets": 25, "longest_ms": LONGEST_S * 1000}
    marked, plain = (fetched(server, 200_000, policy, **about) for about in ({"ecn": "all_ce"}, {}))
    assert impaired(marked)["marked"] > 140
    assert packets(marked, "acks") > 0.9 * packets(plain, "data")
    assert packets(plain, "acks") < 0.3 * packets(plain, "data")


def test_the_packet_after_a_lost_one_is_acknowledged_at_once(server):
    """Of each ten packets one is lost. None is acknowledged for the number of packets, and few for their age."""
    policy = {"packets": 1000, "longest_ms": LONGEST_S * 1000}
    found = fetched(server, 200_000, policy, lose={"first": 20, "every": 10, "at_least_bytes": 1000})
    assert impaired(found)["chosen"] > 10
    # The handshake takes a dozen.
    assert packets(found, "acks") > 12 + found.metrics["completion_s"] / LONGEST_S + impaired(found)["chosen"] / 3


def test_a_packet_is_acknowledged_after_the_longest_delay(server):
    """The server's first window is smaller than the body, so it waits for the client once."""
    took_s = [
        fetched(server, 20_000, {"packets": 1000, "longest_ms": longest_ms}).flows[0]["completion_s"]
        for longest_ms in (200, 500)
    ]
    assert took_s[1] - took_s[0] == pytest.approx(0.3, abs=0.002)
