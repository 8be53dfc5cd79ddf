"""A client's word about the end of its handshake is believed if its packets say the same."""

import pytest
from helpers import NETWORK, facts, process, trial

from conformance.model.emulation import handshake
from conformance.model.emulation.facts import measurement
from conformance.model.trials.trial import Outcome

RTT_S = 0.2
#: a trial of linux-tcp at 10mbps-100ms-0pct: Nagle holds back the request until Finished is acknowledged
SEEN = {"asked_s": [[0.200006, 0.602343], [0.399997, 0.602343]], "whole_s": 1.222892, "last_s": 1.230159}


def why(handshake_s, completion_s=1.430151, **changes):
    report = {"bytes": 150_000, "completion_s": completion_s, "handshake_s": handshake_s}
    return handshake.lie(report, {**SEEN, **changes}, RTT_S)


@pytest.mark.parametrize("handshake_s", [0.399998, 0.4 - 0.019, 0.4 + 0.019, 0.599, None])
def test_a_report_that_agrees_to_a_tenth_of_a_round_trip_is_believed(handshake_s):
    assert why(handshake_s) is None


@pytest.mark.parametrize("handshake_s", [0.2, 0.37, 0.44, 0.64, 0.8, 1.43])
def test_a_report_that_differs_by_more_is_not(handshake_s):
    assert "s from the end of the handshake to the last byte, but its packets show 0.830 s" in why(handshake_s)
    assert "reports 0.770 s" in why(0.4, completion_s=1.17)


def test_a_packet_that_is_sent_when_the_body_comes_did_not_ask_for_it():
    early = [0.6, 0.61]
    assert why(0.8, asked_s=[*SEEN["asked_s"], early]) is not None
    assert "but no packet asked for the body" in why(0.8, asked_s=[early])


def test_what_was_not_seen_contradicts_nothing():
    report = {"bytes": 1, "completion_s": 1.0, "handshake_s": 0.9}
    assert handshake.lie(report, None, RTT_S) is None
    assert handshake.lie(report, SEEN, 0.0) is None


@pytest.mark.parametrize(
    ("at_s", "count", "believed"), [(4.9, 30_000, False), (5.1, 30_000, True), (4.9, 15_000, True), (4.9, None, True)]
)
def test_no_handshake_ends_after_part_of_the_body_has_come(at_s, count, believed):
    words = handshake.too_late({"handshake_s": 5.0}, [(0.0, 0), (at_s, count)])
    assert words == (None if believed else f"reports a handshake of 5.000 s, but after 4.900 s {count} bytes had come")


def test_a_trial_whose_client_lies_about_the_handshake_is_an_error():
    line = '{"bytes": 12500000, "completion_s": 20.0, "handshake_s": %s}'
    seen = {"asked_s": [[0.04, 0.09]], "whole_s": 19.9, "last_s": 19.96}
    for reported_s, outcome in ((0.08, Outcome.OK), (0.32, Outcome.ERROR)):
        told = process(0, line % reported_s)
        found = measurement(trial(), facts(client=told, exchange=seen), NETWORK, {})
        assert found.outcome is outcome, found.message
    assert found.message.startswith("the client of linux-tcp reports 19.680 s from the end of the handshake")
    sampled = {**facts()["detail"]["sampled"], "trace": {"t_s": [1.0, 2.0], "bytes_acked": [500_000, 900_000]}}
    told = process(0, line % 9.0)
    found = measurement(trial(), facts(client=told, sampled=sampled), NETWORK, {})
    assert "reports a handshake of 9.000 s, but after 1.000 s 500000 bytes had come" in found.message
