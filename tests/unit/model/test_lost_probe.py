"""What the loss of a probe for larger packets leaves of the window (RFC 9000, 14.4), of made-up senders."""

import dataclasses

import pytest
from made_senders import FULL, seen, windows

from conformance.model.clauses.seen import Absent, Invisible

ROUNDS = [20, 21, 22, 23, 24, 25]


def view(counts, probe, lost=(), larger=92):
    """Return the clause and the view of a sender whose packet number `probe` is larger than the path carries."""
    clause, view = seen("CL055", windows, counts, lost={*lost, probe})
    sizes = view.packets.bytes.copy()
    sizes[probe] = FULL + larger
    return clause, dataclasses.replace(view, packets=dataclasses.replace(view.packets, bytes=sizes))


def kept(*arguments, **rest):
    clause, of = view(*arguments, **rest)
    amount = clause.observable.value(clause.observable.samples(of))
    return amount, amount in clause.bound


def test_a_window_that_stays_is_permitted():
    amount, permitted = kept([*ROUNDS, *range(26, 40)], probe=70)
    assert amount == pytest.approx(1, abs=0.15) and permitted


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_a_window_that_is_cut_is_told(share):
    amount, permitted = kept([*ROUNDS[:4], *[round(24 * share)] * 12], probe=64)
    assert amount == pytest.approx(share, abs=0.12) and not permitted


@pytest.mark.parametrize(
    ("counts", "probe", "more", "error", "words"),
    [
        pytest.param([*ROUNDS[:4], *[12] * 12], 64, {"lost": {60}}, Invisible, "by itself", id="a loss beside it"),
        pytest.param([*ROUNDS, 2], 110, {}, Invisible, "before the end", id="at the end of a transfer"),
        pytest.param([*ROUNDS, *range(26, 40)], 70, {"larger": 0}, Absent, None, id="probes for nothing"),
    ],
)
def test_a_probe_may_show_nothing(counts, probe, more, error, words):
    clause, of = view(counts, probe, **more)
    with pytest.raises(error, match=words):
        clause.observable.samples(of)
