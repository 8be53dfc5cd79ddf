"""Queues that are not those that tc was told to make are found by the options that tc shows of them."""

import pytest
from helpers import link

from conformance.model.emulation import queue_options, shaping
from conformance.model.networks.links import Direction, Queue
from conformance.model.networks.network import Network

NETWORK = Network.from_json({"links": [link(delay_ms=20)], "flows": [{"name": "test", "bytes": 1}]})


def problems(direction, kind, options, handle="10:"):
    lines = shaping.tc_lines(NETWORK, direction)
    return list(queue_options.problems(lines, [{"kind": kind, "handle": handle, "options": options}]))


@pytest.mark.parametrize(
    ("queue", "options", "why"),
    [
        (Queue(kind="bfifo", size=2), {"limit": 100_000}, None),
        (Queue(kind="bfifo", size=2), {"limit": 1514}, "a bfifo with limit 1514 instead of 100000"),
        (Queue(kind="bfifo", size=2), {}, None),
        (Queue(kind="red"), {"limit": 200_000, "min": 16_666, "max": 50_000, "ecn": False}, None),
        (
            Queue(kind="red"),
            {"limit": 200_000, "min": 1, "max": 50_000, "ecn": False},
            "a red with min 1 instead of 16666",
        ),
        (Queue(kind="fq_codel"), {"limit": 10_240, "ecn": True}, None),
        (Queue(kind="fq_codel", ecn=False), {"limit": 10_240}, None),
        (Queue(kind="fq_codel", ecn=False), {"limit": 10_240, "ecn": True}, "a fq_codel that marks"),
        (Queue(kind="codel", ecn=True), {"limit": 1000, "ecn": False}, "a codel that does not mark"),
        (Queue(kind="codel", ce_threshold_us=242), {"ce_threshold": 241}, None),
        (Queue(kind="codel", ce_threshold_us=242), {}, "a codel with ce_threshold 0 instead of 242"),
        (Queue(kind="cake"), {"bandwidth": "unlimited"}, None),
        (Queue(kind="policer"), {"limit": 9}, None),  # of a policer, and there is none
    ],
)
def test_a_queue_with_other_options_is_found(queue, options, why):
    direction = Direction(rate_mbps=10, delay_ms=20, queue=queue)
    assert problems(direction, queue.kind, options) == ([why] if why else [])


def test_what_is_no_number_is_not_compared():
    direction = Direction(rate_mbps=10, delay_ms=20, queue=Queue(kind="pfifo", size=5))
    assert problems(direction, "htb", {"default": "0x1", "r2q": 10}, "5:") == []


def test_rates_and_bursts_are_compared():
    pfifo = Queue(kind="pfifo", size=500)
    netem = Direction(rate_mbps=100, delay_ms=50, limiter="netem", queue=pfifo)
    assert problems(netem, "netem", {"limit": 500, "rate": {"rate": 12_500_000, "cellsize": 0}}) == []
    assert problems(netem, "netem", {"limit": 1, "rate": {"rate": 125_000}}) == [
        "a netem with limit 1 instead of 500",
        "a netem with rate 125000 instead of 1.25e+07",
    ]
    tbf = Direction(rate_mbps=100, limiter="tbf", burst_bytes=50_000, queue=pfifo)
    assert problems(tbf, "tbf", {"rate": 12_500_000, "burst": 49_998, "lat": 121}, "5:") == []
    assert problems(tbf, "tbf", {"rate": 12_500_000, "burst": 5000}, "5:") == ["a tbf with burst 5000 instead of 50000"]
