"""What a link's direction did between changes, by the kernel's counts: deviations from the schedule are found."""

import dataclasses

import pytest

from conformance.model.emulation.scheduled import problems
from conformance.model.networks.links import Direction, Queue
from conformance.model.networks.schedule import Change

ACKS = Direction(delay_ms=20)
DATA = Direction(rate_mbps=10, delay_ms=20, queue=Queue(kind="bfifo", size=1))
MOST = 0xFFFFFFFF


def change(at_s, before, **fields):
    return Change(at_ns=round(at_s * 1e9), direction=dataclasses.replace(before, **fields), before=before)


def behind(at_s, out, dropped=0, standing=0, queue_dropped=None, delay_ms=20.0, loss_pct=0.0, rate_mbps=None):
    """Return what a guest reports of the kernel's state just after a change."""
    return {
        "link": 0, "way": 1, "at_ns": round(at_s * 1e9), "out_packets": out, "dropped_packets": dropped,
        "standing_packets": standing, "queue_dropped_packets": queue_dropped, "delay_ns": round(delay_ms * 1e6),
        "loss": round(loss_pct / 100 * MOST), "rate_bytes_per_s": None if rate_mbps is None else rate_mbps * 125_000,
    }  # fmt: skip


def shown(out, dropped=0, standing=0, queue_dropped=None, **looks):
    root = {"kind": "netem", "root": True, "packets": out, "drops": dropped, "qlen": standing}
    limiter = {"kind": "htb", "handle": "5:", "drops": queue_dropped}
    queue = [] if queue_dropped is None else [limiter, {"kind": "bfifo"}]
    return {"qdiscs": [root, *queue], "looks": looks}


#: an outage of one second, ten seconds into a trial of twenty
OUTAGE = [change(10, ACKS, loss_pct=100), change(11, ACKS.__class__(delay_ms=20, loss_pct=100), loss_pct=0)]
BEGIN = behind(10, 1000, standing=5, loss_pct=100)


def outage(lost=40, passed=0, begin=BEGIN, **more):
    end = behind(11, 1005 + passed, dropped=lost, **more)
    return list(problems(ACKS, OUTAGE, shown(2000, dropped=lost), [begin, end], 20, False))


def test_losses_that_go_on_are_found():
    made = [BEGIN, behind(11, 1005, dropped=40)]
    assert list(problems(ACKS, OUTAGE, shown(2000, dropped=41), made, 20, False)) == [
        "1 of 996 packets were lost from 11 to 20 s instead of 0 %"
    ]


@pytest.mark.parametrize(
    ("counted", "why"),
    [
        ({}, None),
        ({"lost": 0, "passed": 40}, "0 of 40 packets were lost from 10 to 11 s instead of 100 %"),
        ({"lost": 39, "passed": 1}, "39 of 40 packets were lost from 10 to 11 s instead of 100 %"),
        ({"lost": 0}, None),  # nothing came, so nothing is known
        ({"delay_ms": 30}, "a delay of 30 ms instead of 20 from 11 s on"),
        ({"loss_pct": 100}, "a loss of 100 % instead of 0 from 11 s on"),
        ({"delay_ms": 20.009}, None),
    ],
)
def test_an_outage_loses_all_that_comes_and_what_follows_is_as_asked(counted, why):
    assert outage(**counted) == ([why] if why else [])


@pytest.mark.parametrize(
    ("asked_mbps", "rate_mbps", "why"),
    [
        (2, 2, []),
        (2, 10, ["a rate of 10 Mbit/s instead of 2 from 5 s on"]),
        (10.48576, 10.4858, []),  # 10 times 2^20 bit/s, which tc is given with six digits
    ],
)
def test_a_rate_that_did_not_change_is_found(asked_mbps, rate_mbps, why):
    changes = [change(5, DATA, rate_mbps=asked_mbps)]
    made = [behind(5, 100, queue_dropped=0, rate_mbps=rate_mbps)]
    assert list(problems(DATA, changes, shown(200, queue_dropped=0), made, 10, False)) == why


@pytest.mark.parametrize(("lost", "wrong"), [(100, False), (0, True), (500, True), (125, False)])
def test_random_loss_is_compared_by_an_exact_test_in_each_trial(lost, wrong):
    direction = Direction(delay_ms=20, loss_pct=1)
    assert bool(list(problems(direction, [], shown(10_000 - lost, dropped=lost), [], 20, False))) == wrong


def test_what_the_queue_drops_is_not_taken_for_lost():
    assert list(problems(DATA, [], shown(900, dropped=70, standing=3, queue_dropped=70), [], 20, False)) == []
    assert list(problems(DATA, [], shown(900, dropped=71, standing=3, queue_dropped=70), [], 20, False)) == [
        "1 of 974 packets were lost from 0 to 20 s instead of 0 %"
    ]


def test_super_packets_are_counted_in_outages_only():
    lossy = Direction(delay_ms=20, loss_pct=1)
    assert list(problems(lossy, [], shown(10_000), [], 20, True)) == []
    assert list(problems(Direction(delay_ms=20), [], shown(10_000, dropped=2), [], 20, True)) != []


def looks(*left, standing=200_000, step_s=0.1):
    count = len(left) + 1
    out = [sum(left[:at]) for at in range(count)]
    return {
        "t_s": [at * step_s for at in range(count)], "queue_bytes": [standing] * count, "out_bytes": out,
        "dropped_packets": [0] * count,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("left", "standing", "why"),
    [
        ((125_000, 124_000), 200_000, None),
        ((125_000, 100_000), 200_000, "only 100000 bytes left a full queue from 0.1 to 0.2 s, at 10 Mbit/s"),
        ((125_000, 1000), 100_000, None),  # the queue may have been empty
    ],
)
def test_a_full_queue_lets_out_what_the_rate_carries(left, standing, why):
    seen = shown(900, queue_dropped=0, **looks(*left, standing=standing))
    assert list(problems(DATA, [], seen, [], 0.2, False)) == ([why] if why else [])


def test_nothing_leaves_while_the_rate_is_0():
    changes = [change(1, DATA, rate_mbps=0)]
    seen = shown(900, queue_dropped=0, **looks(*[125_000] * 10, 0, 0, 5000))
    assert list(problems(DATA, changes, seen, [behind(1, 900, queue_dropped=0)], 1.3, False)) == [
        "5000 bytes left the queue from 1.2 to 1.3 s, but none should have"
    ]


@pytest.mark.parametrize(
    "direction",
    [
        Direction(rate_mbps=10, limiter="tbf", queue=Queue(kind="fq_codel")),
        Direction(rate_mbps=10, limiter="netem", queue=Queue(kind="pfifo", size=10)),
        Direction(delay_ms=5, delay_packets=100),
    ],
)
def test_of_queues_that_drop_by_other_rules_losses_are_not_told_apart(direction):
    assert list(problems(direction, [], shown(900, dropped=50, queue_dropped=0), [], 20, False)) == []


@pytest.mark.parametrize("kind", ["red", "fq_codel", "cake", "policer"])
def test_of_any_queue_the_limiter_tells_losses_apart_if_nothing_changes(kind):
    direction = Direction(rate_mbps=10, delay_ms=20, loss_pct=1, queue=Queue(kind=kind))
    assert list(problems(direction, [], shown(9900, dropped=300, queue_dropped=200), [], 20, False)) == []
    assert list(problems(direction, [], shown(9900, dropped=300, queue_dropped=300), [], 20, False)) == [
        "0 of 10200 packets were lost from 0 to 20 s instead of 1 %"
    ]
    changed = [change(1, direction, delay_ms=30)]
    counts = [behind(1, 9900, dropped=300, queue_dropped=0, loss_pct=1, delay_ms=30)]
    assert list(problems(direction, changed, shown(9900, dropped=300, queue_dropped=300), counts, 20, False)) == []


def test_a_kernel_that_counted_nothing_says_nothing():
    unknown = {**BEGIN, "out_packets": None}
    assert list(problems(ACKS, OUTAGE, shown(2000, dropped=9), [unknown], 20, False)) == []
    nothing = {**shown(2000, dropped=9), "qdiscs": [{"kind": "netem", "root": True}]}
    assert list(problems(ACKS, OUTAGE, nothing, [BEGIN], 20, False)) == []


@pytest.mark.parametrize(
    ("starts_s", "is_late"),
    [([], False), ([0.2], True), ([0.2005], True), ([0.193], True), ([0.3002], True), ([0.18], False), ([0.21], False)],
)
def test_a_sample_may_be_late_where_clients_start(starts_s, is_late):
    """As 32 clients started at 5 s, the sample of 5 s was taken 7 ms late."""
    seen = shown(900, queue_dropped=0, **looks(125_000, 134_000, 116_000, 125_000))
    why = "only 116000 bytes left a full queue from 0.2 to 0.3 s, at 10 Mbit/s"
    assert list(problems(DATA, [], seen, [], 20, False, starts_s)) == ([] if is_late else [why])
