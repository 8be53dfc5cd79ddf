"""When bytes of a stream arrive, and how late, from packets whose times are all known."""

import struct

import pytest

from conformance.model.captures import delivery
from conformance.model.diagnosis.pcap import Packet
from conformance.model.errors import UserError
from conformance.model.metrics import delivery_metrics
from conformance.model.networks.instants import instants
from conformance.model.networks.network import Network

SYN, ACK = 0x02, 0x10
WRAP = 1 << 32


def network(**more):
    way = {"rate_mbps": 10, "delay_ms": 20, "queue": {"kind": "bfifo", "size": 1}}
    flows = [{"name": "test", "seconds": 10}]
    link = {"name": "link", "ends": ["left", "right"], "data": way}
    return Network.from_json({"links": [link], "flows": flows, "delivery": True, **more})


def packet(seconds, seq, payload, flags=ACK, ports=(443, 40000), ack=0):
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + payload, 0, 0, 64, 6, 0, b"\x0a\0\0\1", b"\x0a\1\0\1")
    tcp = struct.pack(">HHIIBBHHH", *ports, seq % WRAP, ack % WRAP, 5 << 4, flags, 0, 0, 0)
    return Packet(seconds, 54 + payload, ip + tcp)


def stream(origin, *pieces):
    """Return packets: a connection's SYN-ACK, then data from `pieces`, (time, offset, bytes)."""
    return [packet(0.0, origin - 1, 0, SYN | ACK), *(packet(t, origin + at, n) for t, at, n in pieces)]


def asked(origin, *acks):
    return [packet(t, 0, 0, ports=(40000, 443), ack=origin + at) for t, at in acks]


def of(sent, came, acks=(), elapsed_s=10.0, **more):
    return delivery.of_flow(network(**more), sent, came, acks, elapsed_s)


@pytest.mark.parametrize("origin", [1, WRAP - 150])
def test_a_byte_is_as_late_as_it_is_in_order_however_sequence_numbers_run(origin):
    sent = stream(origin, (1.0, 0, 100), (1.1, 100, 100), (1.2, 200, 100), (2.0, 100, 100))
    # Behind a splitter, sequence numbers differ. The second packet is lost, and the third waits for it.
    came = stream(777, (1.05, 0, 100), (1.25, 200, 100), (2.1, 100, 100))
    found = of(sent, came, asked(origin, (1.1, 100), (2.2, 300)))
    assert found["whole"]["bytes"] == 300
    assert found["whole"]["delay_p50_ms"] == pytest.approx(900)  # the third: from 1.2 to 2.1
    assert found["whole"]["delay_p95_ms"] == pytest.approx(1000)  # the second: from when it was first sent
    assert found["whole"]["gap_s"] == pytest.approx(10 - 2.1)
    assert (found["acked_bytes"], found["acked_undelivered_bytes"]) == (300, 0)


def test_what_a_splitter_acknowledged_and_never_delivered_is_counted():
    sent = stream(1, (1.0, 0, 100), (1.1, 100, 100))
    found = of(sent, stream(5, (1.5, 0, 60)), asked(1, (1.2, 200), (1.3, 201)))
    assert (found["acked_bytes"], found["acked_undelivered_bytes"]) == (200, 140)


def test_phases_begin_where_something_changes_or_others_start():
    more = {
        "schedule": [{"at_s": 4, "link": "link", "set": {"loss_pct": 1}, "for_s": 2}],
        "flows": [
            {"name": "test", "seconds": 10},
            {"name": "cross", "sender": "kernel", "algorithm": "reno", "count": 2, "judged": False,
             "start": {"at_s": 3, "every_s": 5}},
        ],
    }  # fmt: skip
    assert instants(network(**more)) == [0, 3, 4, 6, 8]
    pieces = [(second + 0.5, 1000 * second, 1000) for second in range(10)]
    found = of(stream(1, *pieces), stream(1, *((t + 0.1, at, n) for t, at, n in pieces)), **more)
    assert [one["bytes"] for one in found["phases"]] == [3000, 1000, 2000, 2000, 2000]
    assert [one["mbps"] for one in found["phases"]] == pytest.approx([0.008] * 5)
    assert found["series_mbps"] == pytest.approx([0.0064, 0.0096, 0.0064, 0.0096], abs=1e-4)


def test_a_phase_without_a_byte_has_no_delay_and_is_all_gap():
    more = {"schedule": [{"at_s": 5, "link": "link", "set": {"loss_pct": 100}}]}
    found = of(stream(1, (1.0, 0, 10)), stream(1, (1.1, 0, 10)), **more)
    assert found["phases"][1] == {
        "from_s": 5, "to_s": 10.0, "bytes": 0, "mbps": 0, "delay_p50_ms": None, "delay_p95_ms": None, "gap_s": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "came", "why"),
    [
        ([], [], "the beginning of the connection was not captured"),
        (stream(1, (1, 0, 10)), stream(1, (2, 0, 20)), "never sent"),
    ],
)
def test_captures_that_are_not_of_one_transfer_are_refused(sent, came, why):
    with pytest.raises(UserError, match=why):
        of(sent, came)


class Measured:
    def __init__(self, flows):
        self.flows, self.links, self.setting = flows, (), None


def test_metrics_are_of_the_whole_or_of_a_phase():
    spans = [{"mbps": 1.0, "delay_p50_ms": None}, {"mbps": 3.0, "delay_p50_ms": 7.0}]
    shown = {
        "group": "test",
        "judged": True,
        "delivery": {"whole": {"mbps": 2.0, "delay_p50_ms": 5.0}, "phases": spans},
    }
    flows = (shown, {"group": "cross", "judged": False})
    mbps, p50 = delivery_metrics.of("mbps"), delivery_metrics.of("delay_p50_ms")
    assert (mbps(Measured(flows), None), p50(Measured(flows), "test")) == (2.0, 5.0)
    assert mbps(Measured(flows), "cross") is None
    assert mbps(Measured(delivery_metrics.in_phase(flows, 1)), None) == 3.0
    assert p50(Measured(delivery_metrics.in_phase(flows, 0)), None) is None
    assert delivery_metrics.in_phase(flows, 2) is None
    assert delivery_metrics.in_phase(flows[1:], 0) is None
