"""The qdisc chains of shared links, and how tc's output about them is read."""

import dataclasses

import pytest
from hypothesis import given, strategies as st

from conformance.lab import job
from conformance.model.emulation import shaping
from conformance.model.errors import UserError
from conformance.model.networks.links import Direction, Queue
from conformance.model.networks.network import Network
from conformance.model.networks.place import Cell

BFIFO = Queue(kind="bfifo", size=1)


def network(direction, **flows):
    link = {"name": "link", "ends": ["left", "right"], "data": direction.to_json() | _queue(direction), "acks": {}}
    return Network.from_json({"links": [link], "flows": [{"name": "test", "bytes": 1, **flows}]})


def _queue(direction):
    return {"queue": direction.queue.to_json()} if direction.queue else {}


def lines(direction, **more):
    return shaping.tc_lines(network(direction), direction, **more)


def test_a_policer_polices_at_the_rate_behind_twice_the_rate():
    policed = Direction(rate_mbps=50, delay_ms=20, queue=Queue(kind="policer"))
    made = shaping.tc_lines(dataclasses.replace(network(policed), offload=True), policed)
    assert "rate 100mbit" in made[2] and "police rate 50mbit burst 65536" in made[4]


def test_red_at_10_mbps_and_1_ms_hits_its_floor():
    assert shaping.red_parameters(Cell(10, 1, 0).bdp_bytes) == {
        "limit_bytes": 48_000,
        "max_bytes": 12_000,
        "min_bytes": 4_000,
        "avpkt_bytes": 1000,
        "burst_packets": 5,
    }


@given(st.builds(Cell, st.floats(1, 1000), st.floats(0, 500), st.just(0)))
def test_red_thresholds_are_ordered_and_burst_covers_the_lower(cell):
    red = shaping.red_parameters(cell.bdp_bytes)
    assert 4_000 <= red["min_bytes"] < red["max_bytes"] < red["limit_bytes"]
    # By tc-red(8), burst must cover min in average packets, or the kernel refuses it.
    assert red["burst_packets"] * red["avpkt_bytes"] >= red["min_bytes"]


def test_a_trials_delay_is_never_quite_what_was_asked_for():
    offs = [job.delay_off_ns(seed, 0) for seed in range(1, 201)]
    assert len(set(offs)) > 190 and 0 not in offs and -10_000 <= min(offs) < -9_000 and 9_000 < max(offs) <= 10_000
    assert offs == [job.delay_off_ns(seed, 0) for seed in range(1, 201)]
    assert job.delay_off_ns(1, 0) != job.delay_off_ns(1, 1)
    direction = Direction(rate_mbps=10, delay_ms=20, queue=BFIFO)
    as_asked, later = (lines(direction, delay_off_ns=off) for off in (0, 7))
    assert "delay 20000us" in as_asked[0] and "delay 20000.007us" in later[0] and as_asked[1:] == later[1:]


def test_a_limiter_never_stands_without_a_delay():
    """Otherwise a sender's socket would account for its packets in the bottleneck's queue, and never fill it."""
    first, *_ = lines(Direction(rate_mbps=10, queue=BFIFO), delay_off_ns=-5000)
    assert first == "qdisc add dev {dev} root handle 1: netem limit 1000000 delay 1us"


def test_a_tbf_has_its_burst_and_hands_its_packets_to_the_queue():
    direction = Direction(rate_mbps=100, limiter="tbf", burst_bytes=50_000, queue=Queue(kind="fq_codel", ecn=True))
    _, tbf, queue = lines(direction)
    assert "parent 1: handle 5: tbf rate 100mbit burst 50000 limit" in tbf
    assert queue == "qdisc add dev {dev} parent 5:1 handle 10: fq_codel ecn"


def test_netems_own_rate_is_one_queue_for_delay_and_rate():
    direction = Direction(rate_mbps=50, delay_ms=2, limiter="netem", queue=Queue(kind="pfifo", size=10))
    assert lines(direction) == ["qdisc add dev {dev} root handle 10: netem limit 10 delay 2000us rate 50mbit"]


def test_a_delay_may_have_a_limit_and_nothing_needs_no_chain():
    assert lines(Direction(delay_ms=20, delay_packets=1000, loss_pct=0.01)) == [
        "qdisc add dev {dev} root handle 1: netem limit 1000 delay 20000us loss 0.01%"
    ]
    assert lines(Direction()) == []


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (Queue(kind="bfifo", size=5000, unit="bytes"), "bfifo limit 5000"),
        (Queue(kind="bfifo", size=2), "bfifo limit 25000"),
        (Queue(kind="bfifo", size=2, rtt_ms=100), "bfifo limit 250000"),
        (Queue(kind="bfifo", size=0.01), "bfifo limit 1514"),
        (Queue(kind="pfifo", size=10), "pfifo limit 10"),
        (Queue(kind="pfifo", size=1_234_567), "pfifo limit 1234567"),
        (Queue(kind="codel", size=100, ecn=False), "codel limit 100 noecn"),
        (Queue(kind="fq_codel", ecn=True, ce_threshold_us=242), "fq_codel ecn ce_threshold 242us"),
        (Queue(kind="pie"), "pie limit 33"),
        (Queue(kind="cake"), "cake unlimited besteffort"),
    ],
)
def test_queues(queue, words):
    direction = Direction(rate_mbps=10, delay_ms=10, queue=queue)
    assert lines(direction)[-1] == f"qdisc add dev {{dev}} parent 5:1 handle 10: {words}"


def shown(direction, **changes):
    """Return what tc shows of a direction that is as requested, with changes."""
    netem = {"kind": "netem", "root": True, "options": {"delay": {"delay": direction.delay_ms / 1000}}}
    return [netem | changes, {"kind": "htb"}, {"kind": "bfifo"}]


def test_what_tc_shows_is_compared_with_what_was_asked():
    asked = Direction(rate_mbps=10, delay_ms=20, queue=BFIFO)
    assert shaping.problems(asked, shown(asked)) == []
    assert shaping.problems(asked, shown(asked, options={"delay": {"delay": 0.020009}})) == []
    assert shaping.problems(asked, shown(asked, options={})) == ["a delay of 0 ms instead of 20"]
    loss = shown(asked, options={"delay": {"delay": 0.02}, "loss-random": {"loss": 0.01}})
    assert shaping.problems(asked, loss) == ["a loss of 1 % instead of 0"]
    assert shaping.problems(asked, shown(asked)[:2]) == ["no bfifo qdisc"]
    assert shaping.problems(Direction(), [{"kind": "noqueue"}]) == []


def test_a_longer_way_of_a_group_is_a_delay_towards_its_sender():
    (group,) = network(Direction(rate_mbps=10, queue=BFIFO), extra_delay_ms=40).flows
    assert shaping.extra_delay_lines(group) == ["qdisc add dev {dev} root handle 1: netem limit 1000000 delay 40000us"]


def test_slots_let_packets_leave_together():
    acks = Direction(delay_ms=2, slot_ms=1.5)
    assert shaping.tc_lines(network(Direction(rate_mbps=10, queue=BFIFO)), acks)[0].endswith("delay 2000us slot 1500us")
    assert shaping.tc_lines(network(Direction(rate_mbps=10, queue=BFIFO)), Direction(slot_ms=1))
    with pytest.raises(UserError, match=r"/slot_ms: slots would hold up what the limiter sends"):
        network(Direction(rate_mbps=10, slot_ms=1, queue=BFIFO))
