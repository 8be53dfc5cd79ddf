"""A capture that was cut: its beginning is kept, and shows what a beginning shows."""

import dataclasses

import numpy
import pytest
from made_senders import seen, windows

from conformance.model.captures.packets import LOST, Packets
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.clauses.seen import Invisible
from conformance.model.errors import UserError

DOUBLING = [10, 20, 40, 80, 80, 80]


def view(**rest):
    return seen("CL017", windows, DOUBLING, **rest)[1]


def test_packets_whose_fate_nobody_knows_are_left_out():
    whole = view(lost={5, *range(300, 400)}).packets
    kept = whole.whose_fate_is_known()
    assert kept.cut and not whole.cut and len(kept) == 300
    assert kept.out_ns[5] == LOST and kept.out_ns[-1] != LOST
    again = Packets.from_json(kept.to_json())
    assert again.cut and numpy.array_equal(again.sent_ns, whole.sent_ns[:300])
    assert "cut" not in whole.to_json()


def test_a_capture_without_an_arrival_is_an_error():
    with pytest.raises(UserError, match="no packet arrived before"):
        view(lost=range(400)).packets.whose_fate_is_known()


def test_the_beginning_shows_the_first_window_as_the_whole_does_and_no_later_half():
    whole = view()
    cut = dataclasses.replace(whole, packets=dataclasses.replace(whole.packets, cut=True))
    first = OBSERVABLES["initial_window"]
    assert first.value(first.samples(cut)) == first.value(first.samples(whole))
    with pytest.raises(Invisible, match=r"no room for packets after the first 310, 0\.\d s"):
        OBSERVABLES["later_throughput"].samples(cut)
