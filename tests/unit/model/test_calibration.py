"""A wrong emulator must be noticed, and a right one must pass."""

import dataclasses
import math

import pytest
from helpers import setting
from hypothesis import given, strategies as st

from conformance.model.emulation import calibration
from conformance.model.networks.links import Direction, Queue
from conformance.model.networks.network import Network
from conformance.model.networks.place import Cell
from conformance.model.networks.schedule import Entry

CELL = Cell(10, 20, 1)
QDISCS = [
    {"kind": "netem", "dev": "to_client", "options": {"delay": {"delay": 0.02}, "loss-random": {"loss": 0.01}}},
    {"kind": "htb", "dev": "to_client"},
    {"kind": "red", "dev": "to_client"},
]
GOOD = {"rate_mbps": 10.02, "delays_ms": [20.1, 20.2], "loss_sent": 2000, "loss_lost": 21, "qdiscs": QDISCS}


def test_a_right_emulator_has_no_problems():
    assert calibration.problems(setting(CELL).network, [GOOD]) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rate_mbps": 9.5}, "delivered 9.5 Mbit/s instead of 10"),
        ({"rate_mbps": None}, "no probe packet for the rate arrived"),
        ({"delays_ms": [25.0]}, "delayed packets by 25 ms instead of 20"),
        ({"delays_ms": [15.0]}, "delayed packets by 15 ms"),
        ({"delays_ms": []}, "no probe packet for the delay"),
        ({"loss_lost": 80}, "lost 80 of 2000"),
        ({"loss_lost": 0}, "lost 0 of 2000"),
        ({"qdiscs": []}, "tc showed no queue"),
        ({"qdiscs": QDISCS[1:]}, "a delay of 0 ms instead of 20"),
        (
            {
                "qdiscs": [
                    {**QDISCS[0], "options": {"delay": {"delay": 0.03}, "loss-random": {"loss": 0.01}}},
                    *QDISCS[1:],
                ]
            },
            "30 ms",
        ),
        ({"qdiscs": [{**QDISCS[0], "options": {"delay": {"delay": 0.02}}}, *QDISCS[1:]]}, "a loss of 0 %"),
        ({"qdiscs": QDISCS[:2]}, "no red qdisc"),
    ],
)
def test_a_wrong_one_is_named(change, words):
    found = calibration.problems(setting(CELL).network, [{**GOOD, **change}])
    assert any(words in problem for problem in found), found


def test_sysctls_must_be_held_as_asked():
    asked = dict(setting(CELL).sysctls)
    assert list(calibration.sysctl_problems(setting(CELL), {"server": asked})) == []
    lacking = {**asked, "net.ipv4.tcp_tso_rtt_log": None}
    assert list(calibration.sysctl_problems(setting(CELL), {"server": lacking})) == []
    lacking["net.ipv4.tcp_rmem"] = None
    (problem,) = calibration.sysctl_problems(setting(CELL), {"server": lacking})
    assert problem == "net.ipv4.tcp_rmem does not exist on the server"
    wrong = {**asked, "net.ipv4.tcp_rmem": "4096 131072 2000000"}
    (problem,) = calibration.sysctl_problems(setting(CELL), {"server": asked, "client": wrong})
    assert "net.ipv4.tcp_rmem on the client is '4096 131072 2000000'" in problem


def test_no_loss_means_none():
    observed = {**GOOD, "loss_lost": 1, "qdiscs": [{**QDISCS[0], "options": {"delay": {"delay": 0.02}}}, *QDISCS[1:]]}
    assert "lost 1 of 2000" in calibration.problems(setting(Cell(10, 20, 0)).network, [observed])[0]


@pytest.mark.parametrize(
    ("lost", "sent", "p", "expected"),
    [(0, 10, 0.5, 2 / 1024), (5, 10, 0.5, 1.0), (10, 10, 0.5, 2 / 1024), (0, 3, 0.1, 1.0), (3, 3, 0.1, 0.002)],
)
def test_binomial_p_value(lost, sent, p, expected):
    assert calibration.binomial_p_value(lost, sent, p) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@given(st.integers(1, 500), st.floats(0.001, 0.999), st.data())
def test_p_values_are_probabilities_and_symmetric(sent, p, data):
    lost = data.draw(st.integers(0, sent))
    value = calibration.binomial_p_value(lost, sent, p)
    assert 0 <= value <= 1
    assert math.isclose(value, calibration.binomial_p_value(sent - lost, sent, 1 - p), rel_tol=1e-6, abs_tol=1e-12)


# --- links of a network


def network(data, acks=None):
    acks = {} if acks is None else acks
    link = {"name": "last-mile", "ends": ["client", "server"], "data": data, "acks": acks}
    return Network.from_json({"links": [link], "flows": [{"name": "test", "bytes": 1}]})


DATA = {"rate_mbps": 10, "delay_ms": 20, "loss_pct": 1, "queue": {"kind": "bfifo", "size": 1}}
DELAY = {"kind": "netem", "dev": "acks0", "options": {"delay": {"delay": 0.02}}}
NO_RATE = {"rate_mbps": None, "delays_ms": [20.0], "loss_sent": 2000, "loss_lost": 0, "qdiscs": [DELAY]}
WITH_BFIFO = {**GOOD, "qdiscs": [*QDISCS[:2], {"kind": "bfifo", "dev": "to_client"}]}


def test_acks_are_calibrated_where_they_differ_from_data():
    held = {"at_s": 1, "link": "last-mile", "direction": "forward", "set": {"rate_mbps": 0}, "for_s": 1}
    made = dataclasses.replace(network(DATA, DATA), schedule=(Entry.from_json(held),))
    assert [way for _, way, _ in calibration.probed(made)] == ["data", "acks"]
    ways = [way for _, way, _ in calibration.probed(network(DATA, {"delay_ms": 20}))]
    assert ways == ["data", "acks"]
    assert [way for _, way, _ in calibration.probed(network(DATA, DATA))] == ["data"]


def test_what_a_link_of_a_network_does_not_deliver_is_named_with_its_direction():
    both = network(DATA, {"delay_ms": 20})
    assert calibration.problems(both, [WITH_BFIFO, NO_RATE]) == []
    assert calibration.problems(both, [{**WITH_BFIFO, "rate_mbps": 5.0}, {**NO_RATE, "loss_lost": 9}]) == [
        "the emulator delivered 5 Mbit/s instead of 10 (last-mile, data)",
        "the emulator lost 9 of 2000 probe packets instead of 0 % (last-mile, acks)",
    ]
    assert calibration.problems(both, [WITH_BFIFO]) == ["1 directions of links were calibrated instead of 2"]


def test_the_rate_of_acks_that_are_as_data_is_read_back():
    alike = network(DATA, DATA)
    seen = [
        {**queue, "class_bytes_per_s": 1_250_000} if queue["kind"] == "htb" else queue for queue in WITH_BFIFO["qdiscs"]
    ]
    for rate, problems in (
        (1_250_000, []),
        (125_000, ["acks0 has a rate of 1 Mbit/s instead of 10 (last-mile, data)"]),
    ):
        acks = [
            {**queue, "dev": "acks0"} | ({"class_bytes_per_s": rate} if queue["kind"] == "htb" else {})
            for queue in seen
        ]
        assert calibration.problems(alike, [{**WITH_BFIFO, "qdiscs": [*seen, *acks]}]) == problems


def test_packets_may_wait_for_their_slot():
    slots = network(DATA, {"delay_ms": 20, "slot_ms": 15})
    assert calibration.problems(slots, [WITH_BFIFO, {**NO_RATE, "delays_ms": [34.0]}]) == []
    assert calibration.problems(slots, [WITH_BFIFO, {**NO_RATE, "delays_ms": [37.0]}])


def test_probes_neither_overflow_what_holds_delayed_packets_nor_ask_it_for_a_rate_that_it_cannot_reach():
    short = Direction(rate_mbps=50, delay_ms=20, limiter="netem", queue=Queue(kind="pfifo", size=20))
    assert calibration.probed_mbps(short) is None
    packets_a_s = calibration.pace_mbps(short) / 4 * 1e6 / calibration.PROBE_FRAME_BITS
    assert packets_a_s * 0.020 <= 20 / 2
    long = Direction(rate_mbps=50, delay_ms=20, limiter="netem", queue=Queue(kind="pfifo", size=2000))
    assert (calibration.probed_mbps(long), calibration.pace_mbps(long)) == (50, 50)


def test_a_token_bucket_is_empty_long_before_the_packets_that_show_its_rate_end():
    bucket = Direction(rate_mbps=100, limiter="tbf", burst_bytes=500_000, queue=Queue(kind="bfifo", size=1))
    # At 1.5 times the rate, three buckets pass before it is empty, and then two packets in three.
    sent_bytes = calibration.rate_packets(bucket) * 1514
    passed_bytes = 3 * 500_000 + (sent_bytes - 3 * 500_000) * 2 / 3
    assert passed_bytes / 2 > 3 * 500_000
