"""The program that bonds two links, with packets that are described on its stdin, without network or guest."""

import json
import subprocess

import pytest
from hypothesis import given, settings, strategies as st

from conformance.lab import load

MS = 1_000_000
TIMER_NS = 200 * MS


@pytest.fixture(scope="module")
def bond():
    return load.bond()


def split(bond, packets, batch, first, copies=0):
    """Return (link, number) of each packet that left."""
    done = subprocess.run(
        [bond, "simulate", "split", *map(str, (batch, first, copies))], input="x\n" * packets, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


def merge(bond, came, timer_ns=TIMER_NS, end_ns=None):
    """Return ([(ns, number)] of forwarded packets, the tally); `came`: [(ns, number)] of received ones."""
    lines = [f"{at} {number}\n" for at, number in came]
    if end_ns is not None:
        lines.append(f"{end_ns} -\n")
    done = subprocess.run(
        [bond, "simulate", "merge", str(timer_ns)], input="".join(lines), capture_output=True, text=True, check=True
    )
    *given_on, tally = done.stdout.splitlines()
    return [tuple(map(int, line.split())) for line in given_on], json.loads(tally)


def test_of_each_batch_the_first_packets_take_the_first_link(bond):
    found = split(bond, 25, batch=10, first=9)
    assert [number for _, number in found] == list(range(25))
    assert [number for link, number in found if link == 1] == [9, 19]


def test_a_duplicate_takes_the_other_link(bond):
    assert split(bond, 2, batch=1, first=1, copies=1) == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_numbers_begin_again_after_65535(bond):
    found = split(bond, 65_537, batch=2, first=1)
    assert found[65_535:] == [(1, 65_535), (0, 0)]


def test_in_order_packets_pass_at_once(bond):
    came = [(at * MS, at) for at in range(5)]
    assert merge(bond, came)[0] == came


def test_what_came_early_waits_until_the_gap_is_filled(bond):
    found, tally = merge(bond, [(0, 0), (1 * MS, 2), (2 * MS, 3), (5 * MS, 1), (6 * MS, 4)])
    assert found == [(0, 0), (5 * MS, 1), (5 * MS, 2), (5 * MS, 3), (6 * MS, 4)]
    assert (tally["held"], tally["held_ns"], tally["held_peak"]) == (2, 7 * MS, 2)
    assert (tally["reordered"], tally["expiries"], tally["missing"]) == (1, 0, 0)


def test_the_timer_gives_up_what_was_missing_when_it_began_and_no_more(bond):
    # Packet 1 is missing when 2 starts the timer. Packet 5 is missing later: its timer starts when the first expires.
    came = [(0, 0), (1 * MS, 2), (50 * MS, 3), (60 * MS, 4), (70 * MS, 6)]
    found, tally = merge(bond, came, end_ns=1000 * MS)
    assert found == [(0, 0), *((201 * MS, number) for number in (2, 3, 4)), (401 * MS, 6)]
    assert (tally["expiries"], tally["missing"], tally["waiting"]) == (2, 2, 0)


def test_a_gap_that_is_filled_stops_the_timer_and_the_next_starts_it_anew(bond):
    # When 1 fills the first gap, 4 still waits for 3, with a timer that starts at that time.
    found, _ = merge(bond, [(0, 0), (1 * MS, 2), (90 * MS, 4), (100 * MS, 1)], end_ns=1000 * MS)
    assert found == [(0, 0), (100 * MS, 1), (100 * MS, 2), (300 * MS, 4)]


def test_what_comes_after_its_successors_were_given_on_is_dropped(bond):
    found, tally = merge(bond, [(0, 0), (1 * MS, 2), (300 * MS, 1), (301 * MS, 3)])
    assert found == [(0, 0), (201 * MS, 2), (301 * MS, 3)]
    assert (tally["late"], tally["copies"]) == (1, 0)


def test_a_copy_is_dropped_whether_its_first_has_left_or_waits(bond):
    found, tally = merge(bond, [(0, 0), (1, 0), (2, 2), (3, 2), (4, 1), (5, 1), (6, 2)])
    assert [number for _, number in found] == [0, 1, 2]
    assert (tally["copies"], tally["late"]) == (4, 0)


def test_without_a_timer_all_but_copies_passes_as_it_comes(bond):
    came = [(0, 0), (1, 3), (2, 1), (3, 3), (4, 1), (5, 2)]
    found, tally = merge(bond, came, timer_ns=0)
    assert [number for _, number in found] == [0, 3, 1, 2]
    assert (tally["copies"], tally["reordered"], tally["held"], tally["expiries"]) == (2, 2, 0, 0)


def test_numbers_that_begin_again_are_in_order(bond):
    came = [(at, at % 65_536) for at in range(65_600)]
    came[65_534], came[65_540] = came[65_540], came[65_534]
    came = [(at, number) for at, (_, number) in enumerate(came)]
    found, tally = merge(bond, came)
    assert [number for _, number in found] == [at % 65_536 for at in range(65_600)]
    assert (tally["late"], tally["beyond"], tally["missing"]) == (0, 0, 0)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.sampled_from(["once", "once", "lost", "twice"])), min_size=1, max_size=60
    ),
    st.sampled_from([0, 5 * MS, 200 * MS]),
)
def test_each_packet_leaves_once_at_most_in_order_and_is_accounted_for(bond, delays, timer_ns):
    came = []
    for number, (delay_ms, fate) in enumerate(delays):
        copies = {"lost": 0, "once": 1, "twice": 2}[fate]
        came += [(number * MS + delay_ms * MS * (1 + copy), number) for copy in range(copies)]
    came.sort()
    found, tally = merge(bond, came, timer_ns, end_ns=10_000_000 * MS)
    numbers = [number for _, number in found]
    assert len(set(numbers)) == len(numbers)
    if timer_ns:
        assert numbers == sorted(numbers)
    else:
        assert set(numbers) == {number for _, number in came}
    first = {}
    for at, number in came:
        first.setdefault(number, at)
    for at, number in found:
        # A waiting packet is forwarded when a timer expires; each gap before it may have had a timer of its own.
        assert first[number] <= at <= first[number] + timer_ns * (1 + len(delays))
    assert tally["left"] + tally["copies"] + tally["late"] + tally["beyond"] == len(came)
    assert tally["waiting"] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "usage: bond split IN"),
        (["simulate", "split", "0", "0", "0"], "0 is not a whole number from 1"),
        (["simulate", "split", "10", "11", "0"], "11 is not a whole number from 0 to 10"),
        (["simulate", "merge", "x"], "x is not a whole number"),
    ],
)
def test_a_wrong_option_is_one_line(bond, options, words):
    done = subprocess.run([bond, *options], capture_output=True, text=True, input="")
    assert done.returncode == 64
    assert words in done.stderr and done.stderr.count("\n") == 1
