"""Observables of the scenario `conditions`, by which builds are compared, with made-up senders."""

import pytest
from made_senders import paced, permitted, timed, view, windows

from conformance.catalogue import clauses, scenarios
from conformance.model.clauses import changes
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.clauses.seen import Invisible


def look(name, network, how, parts, **rest):
    observable = OBSERVABLES[name]
    return observable.value(observable.samples(view(changes.COMPARED_NETWORKS[network], "cubic", how, parts, **rest)))


def test_each_compared_feature_has_an_identity_a_network_and_an_observable():
    assert len({feature.id for feature in changes.COMPARED}) == len(changes.COMPARED)
    assert {feature.cell for feature in changes.COMPARED} == set(changes.COMPARED_NETWORKS)
    assert {feature.name for feature in changes.COMPARED} <= set(OBSERVABLES)


@pytest.mark.parametrize("feature", changes.COMPARED, ids=lambda feature: feature.id)
def test_a_feature_is_found_again_by_where_it_is_read(feature):
    setting = clauses.setting(changes.COMPARED_NETWORKS[feature.cell])
    same = [f for f in changes.COMPARED if f.name == feature.name]
    assert [f for f in same if changes.is_read_at(f, setting.profile, setting.point)] == [feature]


def test_each_condition_but_those_that_clauses_alone_ask_is_compared():
    conditions = set(scenarios.find("conditions").axes[0].values)
    compared = {dict(of.point).get("condition") for of in changes.COMPARED_NETWORKS.values()}
    assert conditions - compared == {"no-sack", "outage-14s"}  # clauses ask these


def outage(*after_s):
    """Return when packets are sent before, in and after an outage of 20 s that begins after 3 s."""
    return [0.02 * at for at in range(150)] + [3.5, 5, 8, 14, *after_s]


def test_probes_that_are_far_apart_find_a_path_that_healed_late():
    for after_s in (24, 31):
        at_s = look("restart_after_s", changes.LONG, timed, outage(after_s, after_s + 0.1), outage=(2.9, 22.9))
        assert at_s == pytest.approx(after_s - 22.9, abs=0.03)
    with pytest.raises(Invisible, match="nothing arrived"):
        look("restart_after_s", changes.LONG, timed, outage(), outage=(2.9, 22.9), ended_s=40)


@pytest.mark.parametrize(("after", "window"), [([2, 4, 8, 16, 20, 20, 20, 20], 20), ([2, 2, 2, 3, 4, 5, 5, 5], 5)])
def test_the_fifth_round_after_an_outage_shows_whether_start_up_began_anew(after, window):
    steady = [0.02 * at for at in range(150)]
    rounds = [4.5 + 0.07 * number + 0.0001 * at for number, packets in enumerate(after) for at in range(packets)]
    assert look("restart_window", changes.OUTAGE, timed, [*steady, *rounds], outage=(2.9, 4.4)) == pytest.approx(
        window, abs=2
    )


@pytest.mark.parametrize("silence_s", [0.06, 0.5])
def test_silence_after_the_end_of_a_body_was_lost_is_measured_in_round_trips(silence_s):
    body = [0, 0.01, 0.02, 1.7, 1.7001, 1.7002, 1.7003]
    parts = [*body, 1.7003 + silence_s, 1.75 + silence_s]
    rtts = look("first_probe_rtts", changes.TAIL, timed, parts, lost={5, 6}, triggered={"request": 0.0})
    assert rtts == pytest.approx(silence_s / 0.04, abs=0.05)


def test_a_body_whose_end_is_not_lost_says_nothing():
    with pytest.raises(Invisible, match="never sent"):
        look("first_probe_rtts", changes.TAIL, timed, [0, 0.01, 1.7, 1.71], triggered={"request": 0.0})


@pytest.mark.parametrize("kept", [0.5, 0.7, 1.0])
def test_what_the_second_of_two_losses_left_is_read(kept):
    parts = [20, 40, 60, 60, 60, *[60 * kept] * 8]
    share = look("kept_of_last", changes.ONCE_KNOWN, windows, parts, lost={185}, triggered={"first_loss": 0.25})
    assert share == pytest.approx(kept, abs=0.05)


@pytest.mark.parametrize("slope", [1, 4])
def test_growth_in_a_large_window_is_in_packets_per_round(slope):
    parts = [100, 200, 300, *[210 + slope * at for at in range(12)]]
    grown = look("growth_after_loss", changes.WIDE, windows, parts, lost={310}, triggered={"request": 0.0})
    assert grown == pytest.approx(slope, abs=0.2)
    with pytest.raises(Invisible, match="rounds after the loss are needed"):
        look("growth_after_loss", changes.WIDE, windows, parts[:5], lost={310}, triggered={"request": 0.0})


@pytest.mark.parametrize(("later", "small", "answers", "rtts"), [
    ([2.01, 2.21], {21}, [2.0095], 21),  # it acknowledges the client's own probe at once
    ([2.025, 2.037], {21}, [2.005, 2.047], 3.7),  # late, and what comes back is about the next one
    ([2.037, 2.3], {21}, [2.005, 2.047], 3.7),  # a PING, which the client acknowledges
])  # fmt: skip
def test_a_bare_acknowledgement_is_no_probe(later, small, answers, rtts):
    sent = [*(0.1 * at for at in range(21)), *later]
    sender = {"lost": {20}, "answers": answers, "sizes": dict.fromkeys(small, 80)}
    assert look("first_probe_rtts", changes.ANSWER_LOST, timed, sent, **sender) == pytest.approx(rtts, abs=0.05)


@pytest.mark.parametrize(("answers", "size", "why_not"), [
    ([2.005], 700, None), ([2.005, 2.03], 700, "the client sent something"), ([2.005, 2.047], 80, "too little"),
])  # fmt: skip
def test_what_an_acknowledgement_or_a_small_packet_ends_is_no_timeout(answers, size, why_not):
    sent = [*(0.1 * at for at in range(21)), 2.037]
    sender = {"lost": {20}, "answers": answers, "sizes": {21: size}}
    if why_not is None:
        rtts = look("probe_timeout_rtts", changes.ANSWER_LOST, timed, sent, **sender)
        assert rtts == pytest.approx(3.7, abs=0.05)
        assert permitted("CL036", timed, sent, **sender)
        return
    with pytest.raises(Invisible, match=why_not):
        look("probe_timeout_rtts", changes.ANSWER_LOST, timed, sent, **sender)


@pytest.mark.parametrize(("packets", "ratio", "kept"), [(2, 2.4, True), (3, 3.6, False)])
def test_what_is_sent_before_a_clients_second_packet_is_measured_in_payloads(packets, ratio, kept):
    sender = {"answers": [(-0.02, 1242), (1.0, 80)]}
    parts = [*(0.001 * at for at in range(packets)), 1.5, 1.6]
    assert look("handshake_ratio", changes.CLIENT_LOST, timed, parts, **sender) == pytest.approx(ratio, abs=0.05)
    assert permitted("CL186", timed, parts, **sender) == kept


def test_packets_without_data_are_counted_beside_full_ones():
    sent = [0.01 * at for at in range(40)]
    assert look("small_share", changes.SLOW_READER, timed, sent, sizes=dict.fromkeys(range(10, 20), 70)) == 10 / 30


def test_a_late_request_is_measured_in_round_trips():
    assert look("request_rtts", changes.ANSWER, paced, [(1, 1)]) == 0


@pytest.mark.parametrize(("packets", "ratio", "kept"), [(10, 1.0, True), (7, 0.7, True), (40, 4.0, False)])
def test_a_second_connection_begins_with_a_window_like_the_first(packets, ratio, kept):
    first, second = ([at_s + 0.0001 * at for at in range(count)] for at_s, count in ((0.06, 10), (5.06, packets)))
    handshakes, more = (0, 5.02), [0.1 + 0.002 * at for at in range(40)]
    parts, sender = [*handshakes, *first, *more, *second], {"connections": (0.04, 5.04)}
    assert look("next_connection_window", changes.AGAIN, timed, parts, **sender) == pytest.approx(ratio, abs=0.01)
    assert permitted("CL117", timed, parts, **sender) == kept


@pytest.mark.parametrize("connections", [(), (0.0,), (0.0, 9.0)])
def test_where_no_second_connection_carries_a_body_nothing_is_said_of_it(connections):
    parts = [0.02 + 0.002 * at for at in range(50)]
    with pytest.raises(Invisible, match=r"no second connection|carried no body"):
        look("next_connection_window", changes.AGAIN, timed, parts, connections=connections)
