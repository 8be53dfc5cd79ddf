"""Two bonded links: what comes through and in which order, and that a repeat gives the same bytes."""

import copy
import json
import threading

import pytest
from helpers import line

from conformance.catalogue import scenarios
from conformance.model.metrics import table as metrics
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest

DOCUMENT = json.loads(scenarios.files()["bond-options"].read_text())
MOST_MBPS = {"5:5": 40, "9:1": 200 / 9}


def document(size=4_000_000, sender="kernel"):
    """Return the scenario with flows of the kernel's own CUBIC."""
    found = copy.deepcopy(DOCUMENT)
    found["flows"] = [{"name": "test", "ends": ["phone", "site"], "bytes": size, "sender": sender}]
    return found


def measure(bench, asked, made=None, algorithm="cubic"):
    """Return the measurements of points, which share one guest."""
    made = scenarios.of_document(made or document())
    batches = [bench.trials(algorithm, made.setting(made.point(point)), [1]) for point in asked]
    found = list(bench.place(algorithm).room.run(bench.adapter, batches, threading.Event()))
    assert [m.outcome for m in found] == [Outcome.OK] * len(asked), [m.message for m in found]
    return found


def test_a_trial_gives_the_same_bytes_after_another_and_reordering_is_what_the_far_side_undoes(bench):
    first, bare, again = measure(bench, [{"batch": 50}, {"batch": 50, "reorder_ms": 0}, {"batch": 50}])
    assert line(first) == line(again)
    with_order, without = first.evidence["bond"]["merge"], bare.evidence["bond"]["merge"]
    assert with_order["held"] > 0 and without["held"] == 0
    # Without the bond's wait for missing packets as many arrive out of order, but then the receiver sees them.
    assert with_order["reordered"] > 100 and without["reordered"] > 100
    assert first.metrics["goodput_mbps"] <= MOST_MBPS["5:5"]


def test_each_link_gets_its_share_and_the_fuller_one_is_the_bound(bench):
    (found,) = measure(bench, [{"split": "9:1"}])
    split = found.evidence["bond"]["split"]
    assert split["one"] == pytest.approx(0.9 * split["came"], abs=100)
    assert 0.7 * MOST_MBPS["9:1"] < found.metrics["goodput_mbps"] <= MOST_MBPS["9:1"]
    assert 0.7 < metrics.METRICS["link_utilization"].value(found) <= 1


def test_duplicates_lose_what_both_links_lose(bench):
    (found,) = measure(bench, [{"duplicate": True, "loss_pct": 0.32}])
    split, merge = found.evidence["bond"]["split"], found.evidence["bond"]["merge"]
    assert split["one"] == split["two"] == split["came"]
    assert merge["copies"] > 0.9 * merge["left"]
    assert found.metrics["goodput_mbps"] <= 20


@pytest.mark.thorough
def test_of_duplicates_half_of_what_comes_is_new_and_a_half_of_the_loss_more(bench):
    """X = B(1+p)/2: of B packets that both links deliver, X are new at a loss of p (claim C23 of dual-connectivity)."""
    (found,) = measure(bench, [{"duplicate": True, "loss_pct": 5}], document(size=2_000_000))
    split, merge = found.evidence["bond"]["split"], found.evidence["bond"]["merge"]
    both = merge["one"] + merge["two"]
    loss = 1 - both / (2 * split["came"])
    assert loss == pytest.approx(0.05, abs=0.02)
    assert (both - merge["copies"]) / both == pytest.approx((1 + loss) / 2, rel=0.005)
    assert split["came"] - (both - merge["copies"]) == pytest.approx(loss**2 * split["came"], abs=15)


def test_each_side_holds_a_packet_as_long_as_was_asked(bench):
    costly = document(size=200_000)
    free = copy.deepcopy(costly)
    free["boxes"][0]["options"]["cost_ms"] = 0
    (slow,), (fast,) = measure(bench, [{}], costly), measure(bench, [{}], free)
    assert slow.metrics["min_rtt_ms"] - fast.metrics["min_rtt_ms"] == pytest.approx(2, abs=0.05)


def test_a_bonded_flow_meets_a_flow_of_each_link(bench):
    beside = document()
    both = {"sender": "kernel", "seconds": 3}
    beside["flows"] = [
        {"name": "dc", "ends": ["phone", "site"], **both},
        {"name": "one", "ends": ["near-one", "far-one"], **both},
        {"name": "two", "ends": ["near-two", "far-two"], **both},
    ]
    (found,) = measure(bench, [{}], beside)
    assert all(flow["goodput_mbps"] > 0.5 for flow in found.flows)
    assert sum(flow["goodput_mbps"] for flow in found.flows) <= 40
    assert 1 / 3 <= metrics.METRICS["jain_index"].value(found) <= 1


def test_buffers_that_the_kernel_has_one_of_for_all_hosts_are_as_asked(bench):
    asked = document(size=200_000)
    asked["sysctls"] = {**asked["sysctls"], "net.core.rmem_default": "500000", "net.core.rmem_max": "600000"}
    (found,) = measure(bench, [{}], asked)
    held = found.evidence["sysctls"].values()
    assert {own["net.core.rmem_default"] for own in held} == {"500000"}
    assert {own["net.core.rmem_max"] for own in held} == {"600000"}


@pytest.mark.slow
def test_a_stack_over_udp_goes_over_a_bond(quic_bench):
    (found,) = measure(quic_bench, [{}], document(size=2_000_000, sender="stack"))
    assert 10 < found.metrics["goodput_mbps"] <= 40
    assert found.evidence["bond"]["merge"]["reordered"] > 0
