"""Three sections with splitters between them: what comes through, how late, and that repeats give the same bytes."""

import copy
import json
import threading

import pytest
from helpers import line

from conformance.catalogue import scenarios
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest

DOCUMENT = json.loads(scenarios.files()["three-sections"].read_text())


def document(seconds=8, rival=False):
    found = copy.deepcopy(DOCUMENT)
    found["flows"] = [{"name": "test", "seconds": seconds}]
    if rival:
        found["flows"].append(
            {"name": "rival", "sender": "kernel", "algorithm": "reno", "ends": ["near-gateway", "far-gateway"],
             "seconds": seconds, "judged": False}
        )  # fmt: skip
    return found


def measure(bench, asked, made=None):
    """Return the measurements of points, which share one guest if they can."""
    made = scenarios.of_document(made or document())
    batches = [bench.trials("reno", made.setting(made.point(point)), [1]) for point in asked]
    return list(bench.place("reno").room.run(bench.adapter, batches, threading.Event()))


def test_sections_of_their_own_carry_more_over_a_lossy_one_and_give_the_same_bytes_again(bench):
    split, bound, again = measure(bench, [{}, {"bound_bytes": 16384}, {}])
    (whole,) = measure(bench, [{"boxes": "route"}])
    assert [one.outcome for one in (split, bound, again, whole)] == [Outcome.OK] * 4, [split.message, whole.message]
    assert line(split) == line(again)
    assert {one["node"]: one["connections"] for one in split.evidence["splitters"]} == {
        "near-gateway": 1, "far-gateway": 1,
    }  # fmt: skip
    delivered = [one.flows[0]["delivery"]["whole"] for one in (split, bound, whole)]
    assert delivered[0]["mbps"] > 2 * delivered[2]["mbps"]
    # With a bound, less data may be queued, so bytes arrive sooner; but none arrives before the path's delay.
    assert 50.5 < delivered[1]["delay_p50_ms"] < delivered[0]["delay_p50_ms"]
    assert delivered[2]["delay_p50_ms"] > 50
    # End to end, all acknowledged bytes have arrived.
    assert whole.flows[0]["delivery"]["acked_undelivered_bytes"] == 0
    assert split.flows[0]["delivery"]["acked_undelivered_bytes"] > 0


def test_rivals_of_a_section_pass_its_splitters_by(bench):
    (found,) = measure(bench, [{"loss_pct": 0}], document(rival=True))
    assert found.outcome is Outcome.OK, found.message
    assert [one["connections"] for one in found.evidence["splitters"]] == [1, 1]  # the rival's is counted by none
    rival = next(flow for flow in found.flows if flow["group"] == "rival")
    assert rival["goodput_mbps"] > 0.5


def test_an_algorithm_that_the_kernel_lacks_for_a_section_is_one_line(bench):
    made = document()
    made["boxes"][1]["options"]["to_client"] = "no_such"
    made["axes"] = [axis for axis in made["axes"] if axis["name"] != "wan"]
    del made["grids"]
    (found,) = measure(bench, [{}], made)
    assert found.outcome is Outcome.UNSUPPORTED
    assert found.message == "this kernel has no congestion control no_such for the splitter at far-gateway"
