"""What a sender sends to another address of its client (RFC 9000, 9.4), of made-up senders."""

import pytest
from made_senders import permitted, seen, timed, why_not

from conformance.catalogue import scenarios
from conformance.lab import captures
from conformance.model.networks.place import Point

#: when the client moves, 5 s after the network begins and 0.1 s before the first packet, and when the server must know
MOVE_S, KNOWN_S = 4.9, 4.92
GAP_S = 0.0012
#: an initial window of ten packets, and then what the link carries
BEFORE = [0.0001 * number for number in range(10)] + [0.05 + GAP_S * number for number in range(4058)]


def burst(at_s, packets):
    return [KNOWN_S + at_s + 0.0001 * number for number in range(packets)]


def steady(at_s):
    return [KNOWN_S + at_s + GAP_S * number for number in range(200)]


def moved(clause, *after, **rest):
    return (clause, timed, [*BEFORE, *(at for part in after for at in part)]), {"outage": (MOVE_S, KNOWN_S), **rest}


def value(clause, *after, **rest):
    arguments, options = moved(clause, *after, **rest)
    judged, view = seen(*arguments, **options)
    return judged.observable.value(judged.observable.samples(view))


def is_permitted(clause, *after, **rest):
    arguments, options = moved(clause, *after, **rest)
    return permitted(*arguments, **options)


def test_an_initial_window_after_validation_is_permitted():
    rounds = burst(0.06, 10), burst(0.11, 20), burst(0.16, 40)
    assert value("CL084", *rounds) == pytest.approx(1, abs=0.01)
    assert is_permitted("CL084", *rounds)


@pytest.mark.parametrize("silence_s", [0.0, 0.02, 0.08])
def test_a_window_that_is_kept_is_told_with_validation_and_without(silence_s):
    assert value("CL084", steady(silence_s)) > 2.5
    assert not is_permitted("CL084", steady(silence_s))


def test_a_window_of_ten_is_permitted_where_the_first_flight_was_smaller():
    clause, view = seen("CL084", timed, [*BEFORE[4:], *burst(0.06, 10)], outage=(MOVE_S, KNOWN_S))
    assert clause.observable.value(clause.observable.samples(view)) == pytest.approx(1, abs=0.01)


def test_what_goes_on_to_the_old_address_does_not_count():
    old = [KNOWN_S + GAP_S * number for number in range(20)]
    numbers = range(len(BEFORE), len(BEFORE) + len(old))
    answers = [(4.91, 80), (4.925, 80)]
    assert value("CL084", old, burst(0.06, 10), lost=numbers) == pytest.approx(1, abs=0.01)
    assert value("CL085", old, burst(0.06, 10), lost=numbers, answers=answers) == 0


def test_silence_after_the_move_shows_nothing():
    arguments, options = moved("CL084")
    assert why_not(*arguments, **options) == "nothing was sent to the new address"
    arguments, options = moved("CL085", answers=[(MOVE_S + 0.001, 80)])
    assert why_not(*arguments, **options) == "nothing was sent to the new address"


def test_before_validation_three_times_what_came_is_permitted():
    """Of a frame of 1500 bytes, 1458 are the datagram's, and of one of 80 bytes, 38."""
    answers = [(MOVE_S - 0.01, 80), *((MOVE_S + 0.001 + 0.001 * number, 80) for number in range(13))]
    assert value("CL085", burst(0.001, 1), burst(0.06, 10), answers=answers) == pytest.approx(1458 / (13 * 38))
    assert is_permitted("CL085", burst(0.001, 1), burst(0.06, 10), answers=answers)
    assert not is_permitted("CL085", burst(0.001, 2), burst(0.06, 10), answers=answers)


def test_a_client_that_sends_nothing_after_its_move_shows_no_limit():
    arguments, options = moved("CL085", steady(0.001), answers=[(MOVE_S - 0.01, 80)])
    assert why_not(*arguments, **options) == "nothing came from the client in the round trip after its move"


@pytest.mark.parametrize("rebind", ["address", "port"])
def test_captures_have_both_addresses_of_a_client_that_moves(rebind):
    where = captures.captures_of(scenarios.setting("migration", Point.parse(f"rebind={rebind}")))
    first, second = where.clients
    assert where.moves and first[:3] == second[:3] and second[3] == first[3] + 100


def test_captures_of_others_have_one_address():
    where = captures.captures_of(scenarios.setting("connections", Point.parse("connections=4")))
    assert not where.moves and len(where.clients) == 1
