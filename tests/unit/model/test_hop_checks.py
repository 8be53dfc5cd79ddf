"""The second check of hops (hop_checks.py): it accepts what the program does, and finds faults in anything else."""

import dataclasses
import random
import subprocess

import pytest

from conformance.guest.hop_probe import SIZES
from conformance.lab import load
from conformance.model.emulation import hop_checks, impairing
from conformance.model.networks.impairments import Impairments

GAP_NS, COUNT = 1_000_000, 3000
ASKED = {
    "reorder": {"reorder": {"share_pct": 5, "by_packets": 7}},
    "reorder by time": {"reorder": {"share_pct": 5, "by_ms": 4.5}},
    "reorder each": {"reorder": {"every": 20, "by_packets": 3}},
    "reorder each by time": {"reorder": {"every": 50, "by_ms": 5}},
    "reorder within a gap": {"reorder": {"every": 10, "by_ms": 0.5}},
    "reorder by a few": {"reorder": {"share_pct": 5, "by_ms": 2}},
    "reorder among long ones": {"largest_bytes": 1400, "reorder": {"every": 50, "by_packets": 3}},
    "reorder among losses": {"lose": {"first": 10, "every": 10}, "reorder": {"every": 20, "by_packets": 3}},
    "reorder beside held ones": {
        "hold": {"first": 1, "every": 10, "of": 5, "by_ms": 5},
        "reorder": {"share_pct": 5, "by_packets": 2},
    },
    "duplicate beside held ones": {"duplicate_pct": 5, "hold": {"first": 1, "every": 2, "by_ms": 3}},
    "duplicate": {"duplicate_pct": 5},
    "burst": {"burst_loss": {"enter_pct": 1, "leave_pct": 20}},
    "jitter": {"jitter_ms": 8},
    "slots": {"slots": {"every_ms": 12}},
    "newest": {"slots": {"every_ms": 12, "keep": "newest"}},
    "mark": {"mark_pct": 5},
    "bleached": {"ecn": "bleached"},
    "all_ce": {"ecn": "all_ce"},
    "largest": {"largest_bytes": 1400},
    "lose": {"lose": {"first": 30, "count": 3, "at_least_bytes": 1000}},
    "lose each": {"lose": {"first": 30, "every": 40, "of": 2}},
    "hold": {"hold": {"first": 30, "count": 3, "by_ms": 25}},
    "hold each": {"hold": {"first": 30, "every": 50, "by_ms": 25}},
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return a function: (impairments, seed) -> what a probe sees of them."""
    rules, program = tmp_path_factory.mktemp("rules") / "rules", load.programs()[load.HOP]

    def run(asked, seed=1):
        rules.write_text(impairing.rule(asked, 0) + "\n")
        sent = [(number + 1) * GAP_NS for number in range(COUNT)]
        lines = "".join(f"{at} {SIZES[number % len(SIZES)]}\n" for number, at in enumerate(sent))
        done = subprocess.run([program, "simulate", rules, str(seed)], input=lines, capture_output=True, text=True)
        rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        return {
            "sent_ns": sent, "numbers": [n for _, n, _ in rows], "arrived_ns": [at + 2000 for at, *_ in rows],
            "ecn": [ecn for *_, ecn in rows],
        }  # fmt: skip

    return run


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ASKED)
def test_what_was_asked_for_was_done(seen, name, seed):
    asked = Impairments.from_json(ASKED[name])
    assert hop_checks.problems(asked, SIZES, seen(asked, seed)) == []


@pytest.mark.parametrize("name", ASKED)
def test_a_hop_that_does_nothing_is_found_out(seen, name):
    assert hop_checks.problems(Impairments.from_json(ASKED[name]), SIZES, seen(Impairments()))


@pytest.mark.parametrize("name", ASKED)
def test_what_nobody_asked_for_is_found_out(seen, name):
    assert hop_checks.problems(Impairments(), SIZES, seen(Impairments.from_json(ASKED[name])))


OTHER = {
    "reorder": {"reorder": {"share_pct": 5, "by_packets": 6}},
    "reorder by time": {"reorder": {"share_pct": 10, "by_ms": 4.5}},
    "reorder each": {"reorder": {"every": 30, "by_packets": 3}},
    "reorder within a gap": {"reorder": {"every": 11, "by_ms": 0.5}},
    "reorder among long ones": {"largest_bytes": 1400, "reorder": {"every": 51, "by_packets": 3}},
    "duplicate": {"duplicate_pct": 10},
    "burst": {"burst_loss": {"enter_pct": 5, "leave_pct": 20}},
    "jitter": {"jitter_ms": 12},
    "slots": {"slots": {"every_ms": 10}},
    "mark": {"mark_pct": 10},
    "bleached": {"ecn": "all_ce"},
    "largest": {"largest_bytes": 1281},
    "lose": {"lose": {"first": 31, "count": 3, "at_least_bytes": 1000}},
    "lose each": {"lose": {"first": 30, "every": 41, "of": 2}},
    "hold": {"hold": {"first": 30, "count": 3, "by_ms": 30}},
    "hold each": {"hold": {"first": 30, "every": 51, "by_ms": 25}},
}


@pytest.mark.parametrize("name", OTHER)
def test_a_hop_that_does_something_else_is_found_out(seen, name):
    assert hop_checks.problems(Impairments.from_json(OTHER[name]), SIZES, seen(Impairments.from_json(ASKED[name])))


def test_losses_by_chance_are_found_out(seen):
    found = seen(Impairments())
    kept = [at for at in range(COUNT) if random.Random(at).random() > 0.01]
    few = {name: [found[name][at] for at in kept] for name in ("numbers", "arrived_ns", "ecn")}
    (problem,) = hop_checks.problems(Impairments(), SIZES, {**found, **few})
    assert problem.endswith("packets were lost, and none should have been")


def test_every_impairment_is_tried():
    fields = {field.name for field in dataclasses.fields(Impairments)}
    # Probes have no client; that clients are rebound is checked in each trial by counts (impairing.problems).
    assert fields - {"rebind"} == {name for asked in ASKED.values() for name in asked}
