"""Clauses that ask the points of the scenario `conditions`, with made-up senders that keep them and that do not."""

import random

import pytest
import senders
from made_senders import paced, permitted, seen, timed, why_not, windows

from conformance.catalogue import clauses, scenarios
from conformance.model.clauses import changes


def test_each_condition_is_compared_or_asked_by_a_clause():
    asked = [*changes.COMPARED_NETWORKS.values(), *(clause.network for clause in clauses.all_clauses())]
    points = {dict(network.point).get("condition") for network in asked if network.scenario == "conditions"}
    assert points == set(scenarios.find("conditions").axes[0].values)


@pytest.mark.parametrize(("after", "right"), [([2, 4, 8, 16, 17, 18], True), ([2, 3, 4, 5, 6, 7], False)])
def test_slow_start_comes_after_persistent_congestion(after, right):
    steady = [0.02 * at for at in range(150)]
    rounds = [4.5 + 0.07 * number + 0.0001 * at for number, packets in enumerate(after) for at in range(packets)]
    assert permitted("CL201", timed, [*steady, *rounds, 5.1, 5.2], outage=(2.9, 4.4)) is right
    assert "too soon" in why_not("CL201", timed, [*steady, *rounds[:9]], outage=(2.9, 4.4))
    kept = [4.5 + 0.07 * number + 0.0001 * at for number in range(6) for at in range(17)]
    assert "did not reduce" in why_not("CL201", timed, [*steady, *kept, 5.1, 5.2], outage=(2.9, 4.4))


@pytest.mark.parametrize(("again_s", "right"), [(1.0, True), (7.0, True), (15.0, True), (17.0, False), (31.0, False)])
def test_a_handshake_whose_answers_are_lost_goes_on(again_s, right):
    flights = [0, 0.001, *(at for at in (1.0, 3.0, 7.0) if at < again_s), again_s]
    response = [again_s + 0.08 + 0.0012 * number for number in range(100)]
    assert permitted("CL237", timed, [*flights, *response], lost=range(len(flights) - 1)) is right


def test_a_response_that_never_comes_says_nothing_about_a_handshake():
    assert "no response" in why_not("CL237", timed, [0, 0.001, 1.0])


@pytest.mark.parametrize(
    ("kept", "reno", "cubic"),
    [(0.5, True, False), (0.7, False, True), (0.25, False, False), (0.49, True, False), (0.03, False, False),
     (1.0, False, False)],
)  # fmt: skip
def test_three_losses_of_an_instant_reduce_once(kept, reno, cubic):
    rounds, before = 24, 100
    parts = [*[before] * rounds, *[max(kept * before, 2)] * 20]
    first = (rounds - 2) * before
    how = {"lost": {first, first + 1, first + 2}, "triggered": {"request": windows(parts, 2.5e6, 0.04)[first] - 2.5}}
    assert permitted("CL213", windows, parts, **how) is reno
    assert permitted("CL313", windows, parts, **how) is cubic


def test_three_losses_in_a_small_window_say_nothing():
    why = why_not("CL213", windows, [10] * 80, lost={300, 301, 302}, triggered={"request": -1.2})
    assert "below 16 packets" in why


def test_losses_just_before_those_of_an_instant_hide_what_they_leave():
    parts = [*[100] * 24, *[25] * 20]
    lost = {2000, 2200, 2201, 2202}
    how = {"lost": lost, "triggered": {"request": windows(parts, 2.5e6, 0.04)[2200] - 2.5}}
    assert "lost beside" in why_not("CL213", windows, parts, **how)


@pytest.mark.parametrize(("slope", "right"), [(1, True), (0.5, True), (0, False), (2, False)])
def test_reno_grows_by_a_packet_in_a_large_window_too(slope, right):
    parts = [100, 200, 300, *[210 + round(slope * at) for at in range(16)]]
    how = {"lost": {310}, "triggered": {"request": 0.0}}
    assert permitted("CL222", windows, parts, **how) is right
    assert "rounds after the loss are needed" in why_not("CL222", windows, parts[:5], **how)


@pytest.mark.parametrize(
    ("name", "beta", "right"),
    [("CL312", 0.5, True), ("CL312", 0.7, False), ("CL312", 0.25, True), ("CL311", 0.7, True), ("CL311", 0.5, False),
     ("CL311", 0.875, False)],
)  # fmt: skip
def test_a_loss_leaves_what_it_should_without_sack(name, beta, right):
    clause, _ = seen(name, paced, [(1.0, 1.0)])
    draw = random.Random(1)
    lost = frozenset(at for at in range(200, 6000) if draw.random() < 1 / 300)
    sender = senders.Sender(lost=lost, ssthresh=20, beta=beta)
    kept = senders.packets(sender, one_way_s=0.02, bytes_per_s=1.25e6, queue_packets=33)
    _, view = seen(name, paced, [(1.0, 1.0)])
    view = type(view)(packets=kept, setting=view.setting, algorithm=clause.algorithms[0])
    assert (clause.observable.value(clause.observable.samples(view)) in clause.bound) is right
