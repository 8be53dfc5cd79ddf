"""The program that impairs packets, packet by packet, with packets that are described on its stdin."""

import collections
import math
import random
import subprocess

import pytest
from hypothesis import given, settings, strategies as st

from conformance.lab import load
from conformance.model.emulation import impairing
from conformance.model.networks.impairments import Impairments

#: ns between packets, unless a test says otherwise: 1,500 bytes at 12 Mbit/s
GAP_NS = 1_000_000


@pytest.fixture(scope="module")
def simulate(tmp_path_factory):
    """Return a function: (impairments by time, seed, packets) -> [(ns, index, ECN)] of what left, in order."""
    folder, program = tmp_path_factory.mktemp("rules"), load.programs()[load.HOP]

    def run(asked, packets, seed=1):
        asked = asked if 0 in asked else {0: asked}
        rules = folder / "rules"
        rules.write_text("".join(f"{impairing.rule(Impairments.from_json(one), at)}\n" for at, one in asked.items()))
        lines = "".join(" ".join(map(str, packet)) + "\n" for packet in packets)
        done = subprocess.run([program, "simulate", rules, str(seed)], input=lines, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]

    return run


def train(count, size=1500, gap_ns=GAP_NS):
    return [(at * gap_ns, size) for at in range(count)]


def indexes(found):
    return [index for _, index, _ in found]


def test_nothing_asked_is_nothing_done(simulate):
    assert simulate({}, train(100)) == [(at * GAP_NS, at, 2) for at in range(100)]


@given(st.integers(1, 20), st.integers(21, 50))
@settings(max_examples=20, deadline=None)
def test_each_so_manieth_packet_is_passed_by_exactly_so_many(simulate, by, every):
    found = indexes(simulate({"reorder": {"every": every, "by_packets": by}}, train(200)))
    assert sorted(found) == list(range(200))
    for index in range(every - 1, 200 - by, every):
        at = found.index(index)
        assert sum(other > index for other in found[:at]) == by
    others = [index for index in found if (index + 1) % every]
    assert others == sorted(others)


def test_a_packet_that_too_few_follow_leaves_a_second_later(simulate):
    found = simulate({"reorder": {"every": 10, "by_packets": 5}}, train(10))
    assert found[-1] == (9 * GAP_NS + 10**9, 9, 2)


def test_a_packet_is_displaced_by_a_time(simulate):
    found = simulate({"reorder": {"every": 10, "by_ms": 4.5}}, train(20))
    assert indexes(found)[8:15] == [8, 10, 11, 12, 13, 9, 14]
    assert next(at for at, index, _ in found if index == 9) == 9 * GAP_NS + 4_500_000


@pytest.mark.parametrize("percent", [0.5, 20, 100])
def test_shares_are_those_asked_for(simulate, percent):
    count = 20_000
    copies = collections.Counter(indexes(simulate({"duplicate_pct": percent}, train(count))))
    marks = [ecn for *_, ecn in simulate({"mark_pct": percent}, train(count))].count(3)
    moved = simulate({"reorder": {"share_pct": percent, "by_ms": 0.5}}, train(count))
    late = sum(at % GAP_NS != 0 for at, *_ in moved)
    most = 6 * math.sqrt(count * percent / 100 * (1 - percent / 100))
    for found in (sum(copies.values()) - count, marks, late):
        assert abs(found - count * percent / 100) <= most
    assert sorted(copies) == list(range(count))


def test_losses_come_in_bursts_of_the_length_asked_for(simulate):
    asked = {"burst_loss": {"enter_pct": 1, "leave_pct": 20}}
    count = 100_000
    kept = set(indexes(simulate(asked, train(count))))
    bursts, length = [], 0
    for index in range(count):
        if index in kept:
            bursts += [length] if length else []
            length = 0
        else:
            length += 1
    assert abs(sum(bursts) / len(bursts) - 5) < 0.5  # 1 / 20 %
    mean_pct = Impairments.from_json(asked).burst_loss.mean_pct
    assert abs((count - len(kept)) / count * 100 - mean_pct) < 0.6


@given(st.floats(0.1, 50), st.integers(0, 2**60))
@settings(max_examples=20, deadline=None)
def test_jitter_keeps_order_and_is_no_longer_than_asked(simulate, jitter_ms, seed):
    found = simulate({"jitter_ms": jitter_ms}, train(200), seed)
    assert indexes(found) == list(range(200))
    times = [at for at, *_ in found]
    assert times == sorted(times)
    assert all(0 <= at - index * GAP_NS <= jitter_ms * 1e6 + 1 for at, index, _ in found)
    assert len(set(times)) > 1


def test_jitter_takes_all_of_its_range(simulate):
    late = [at - index * 10**9 for at, index, _ in simulate({"jitter_ms": 10}, train(2000, gap_ns=10**9))]
    assert min(late) < 100_000 and max(late) > 9_900_000
    assert abs(sum(late) / len(late) - 5_000_000) < 300_000


def test_packets_leave_together_at_the_ends_of_slots(simulate):
    found = simulate({"slots": {"every_ms": 10}}, train(25))
    assert [at for at, *_ in found] == [math.ceil(index / 10) * 10_000_000 for index in range(25)]
    assert indexes(found) == list(range(25))


def test_of_acknowledgements_only_the_newest_of_a_slot_leaves_and_data_do_all(simulate):
    packets = [(at * GAP_NS, 60 if at % 2 else 1500) for at in range(1, 41)]
    found = indexes(simulate({"slots": {"every_ms": 10, "keep": "newest"}}, packets))
    short = [index for index in found if packets[index][1] == 60]
    assert [packets[index][0] // GAP_NS for index in short] == [9, 19, 29, 39]
    assert len(found) - len(short) == 20


def test_chosen_packets_are_lost_and_held(simulate):
    assert indexes(simulate({"lose": {"first": 3, "count": 2}}, train(6))) == [0, 1, 4, 5]
    assert indexes(simulate({"hold": {"first": 2, "by_ms": 2.5}}, train(6))) == [0, 2, 3, 1, 4, 5]
    sizes = [(at * GAP_NS, 1500 if at % 3 == 0 else 60) for at in range(9)]
    assert indexes(simulate({"lose": {"first": 2, "at_least_bytes": 1000}}, sizes)) == [0, 1, 2, 4, 5, 6, 7, 8]


@given(st.integers(2, 20), st.data())
@settings(max_examples=20, deadline=None)
def test_a_pattern_loses_so_many_of_each_so_many_packets(simulate, every, data):
    of, first = data.draw(st.integers(1, every - 1)), data.draw(st.integers(1, 30))
    kept = indexes(simulate({"lose": {"first": first, "every": every, "of": of}}, train(100)))
    assert kept == [at for at in range(100) if at < first - 1 or (at - first + 1) % every >= of]


def test_neighbours_can_be_swapped_throughout(simulate):
    found = indexes(simulate({"hold": {"first": 1, "every": 2, "by_ms": 1.5}}, train(10)))
    assert found == [1, 0, 3, 2, 5, 4, 7, 6, 9, 8]


@pytest.mark.parametrize("again", [0, 1, 3])
def test_a_segment_and_so_many_of_its_retransmissions_are_lost(simulate, again):
    packets = [(0, 1500, 100), (1, 1500, 200), *((at, 1500, 200) for at in range(2, 9))]
    assert indexes(simulate({"lose": {"first": 2, "again": again}}, packets)) == [0, *range(2 + again, 9)]


def test_any_number_of_segments_is_lost_again(simulate):
    packets = [(at, 1500, at // 2 * 1448) for at in range(20_000)]
    assert indexes(simulate({"lose": {"first": 1, "every": 2, "again": 1}}, packets)) == []


def test_too_many_segments_that_wait_to_be_lost_again_are_an_error(simulate):
    packets = [(at, 1500, at * 1448) for at in range(4097)]
    assert simulate({"lose": {"first": 1, "count": 4096, "again": 1}}, packets)
    with pytest.raises(AssertionError, match="too many segments are to be lost again"):
        simulate({"lose": {"first": 1, "count": 4097, "again": 1}}, packets)


def test_packets_are_counted_from_when_it_comes_into_force(simulate):
    asked = {0: {}, 5 * GAP_NS: {"lose": {"first": 1, "count": 2}}, 10 * GAP_NS: {"lose": {"first": 1}}}
    assert indexes(simulate(asked, train(15))) == [0, 1, 2, 3, 4, 7, 8, 9, 11, 12, 13, 14]


def test_packets_that_are_too_long_vanish(simulate):
    packets = [(at, size) for at, size in enumerate((60, 1400, 1401, 1500, 60))]
    assert indexes(simulate({"largest_bytes": 1400}, packets)) == [0, 1, 4]


def test_marks_are_taken_off_or_put_on_all(simulate):
    assert {ecn for *_, ecn in simulate({"ecn": "bleached"}, train(9))} == {0}
    assert {ecn for *_, ecn in simulate({"ecn": "all_ce"}, train(9))} == {3}


def test_equal_seeds_give_equal_packets_and_other_seeds_others(simulate):
    asked = {"duplicate_pct": 5, "jitter_ms": 3, "reorder": {"share_pct": 5, "by_packets": 3}}
    assert simulate(asked, train(500), 7) == simulate(asked, train(500), 7) != simulate(asked, train(500), 8)


def test_what_one_packet_suffers_hangs_on_no_other_kind_of_harm(simulate):
    marks = {index for _, index, ecn in simulate({"mark_pct": 10}, train(1000)) if ecn == 3}
    both = simulate({"mark_pct": 10, "jitter_ms": 5, "duplicate_pct": 20}, train(1000))
    assert {index for _, index, ecn in both if ecn == 3} == marks


def test_no_packet_is_made_up_or_forgotten(simulate):
    rng = random.Random(1)
    asked = {
        "reorder": {"share_pct": 10, "by_packets": 4}, "duplicate_pct": 10, "slots": {"every_ms": 7},
        "hold": {"first": 20, "count": 9, "by_ms": 90},
    }  # fmt: skip
    packets = sorted((rng.randrange(10**9), 1500) for _ in range(2000))
    found = collections.Counter(indexes(simulate(asked, packets)))
    assert sorted(found) == list(range(2000)) and max(found.values()) == 2
