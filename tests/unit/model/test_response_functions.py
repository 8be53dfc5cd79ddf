"""The documents' response functions, and the zones that carry them."""

import itertools
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.catalogue import documents
from conformance.model import response_functions
from conformance.model.setting import Cell

LOSS = st.floats(1e-4, 0.05)


def test_the_documents_own_figures():
    """RFC 9438, table 1 (C = 0.4, RTT 0.1 s) and RFC 3649's Reno: average windows in segments at a packet loss rate."""
    for loss, reno, cubic in ((1e-2, 12, 12), (1e-3, 38, 38), (1e-4, 120, 187), (1e-5, 379, 1054), (1e-6, 1200, 5926)):
        assert response_functions.reno_window_segments(loss) == pytest.approx(reno, rel=0.05)
        assert response_functions.cubic_window_segments(loss, 0.1) == pytest.approx(cubic, rel=0.05)


@given(LOSS, LOSS, st.floats(0.001, 1))
def test_more_loss_never_gives_a_larger_window(one, other, rtt_s):
    low, high = sorted((one, other))
    assert response_functions.reno_window_segments(high) <= response_functions.reno_window_segments(low)
    assert response_functions.cubic_window_segments(high, rtt_s) <= response_functions.cubic_window_segments(low, rtt_s)
    assert response_functions.cubic_window_segments(high, rtt_s) >= response_functions.reno_window_segments(high)


def played(loss, rtt_s, gaps, losses, steps_per_rtt=8):
    """Mean window in segments of RFC 9438's equations (4.2, 4.3, 4.6, 4.7), a loss after each of so many packets."""
    c, beta = 0.4, 0.7
    dt_s = rtt_s / steps_per_rtt
    window = w_max = response_functions.cubic_window_segments(loss, rtt_s)
    area = steps = 0
    for packets in itertools.islice(gaps, losses):
        w_max = window * (1 + beta) / 2 if window < w_max else window
        window *= beta
        friendly, k_s, t_s = window, ((w_max - window) / c) ** (1 / 3), 0.0
        while packets > 0:
            t_s += dt_s
            friendly += 3 * (1 - beta) / (1 + beta) / steps_per_rtt
            window = max(c * (t_s - k_s) ** 3 + w_max, friendly)
            packets -= window / steps_per_rtt
            area, steps = area + window, steps + 1
    return area / steps


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "rtt_s"), [(0.003, 0.2), (0.0003, 0.2), (0.0002, 0.4)])
def test_how_much_more_random_losses_leave_cubic(loss, rtt_s):
    """Periodic losses give what RFC 9438's function says; random ones so much more, where Reno is not the floor."""
    said = response_functions.cubic_window_segments(loss, rtt_s)
    periodic = played(loss, rtt_s, itertools.repeat(1 / loss), 200)
    assert periodic == pytest.approx(said, rel=0.06)
    draws = [random.Random(seed) for seed in range(1, 5)]
    by_chance = [played(loss, rtt_s, (draw.expovariate(loss) for _ in itertools.count()), 2000) for draw in draws]
    assert statistics.mean(by_chance) == pytest.approx(response_functions.RANDOM_LOSSES * said, rel=0.03)
    assert 1.15 < min(by_chance) / periodic < max(by_chance) / periodic < 1.27


@pytest.mark.parametrize(
    ("algorithm", "profile", "cell", "applies"),
    [
        ("reno", "packets", Cell(10, 20, 1), True),
        ("reno", "packets", Cell(10, 20, 0), False),  # nothing is lost at random
        ("reno", "packets", Cell(10, 20, 4), False),  # windows of six segments: timeouts
        ("reno", "packets", Cell(10, 1, 1), False),  # the link is the limit
        ("reno", "packets", Cell(0.1, 100, 1), False),  # too few losses, and the link
        ("reno", "atc25", Cell(10, 20, 1), False),  # super-packets are lost whole
        ("bbrv1", "packets", Cell(10, 20, 1), False),
    ],
)
def test_is_asked_only_where_it_applies(algorithm, profile, cell, applies):
    assert (response_functions.formula(algorithm, documents.profile(profile, cell)) is not None) is applies


@pytest.mark.parametrize("algorithm", ["reno", "cubic"])
def test_reference_runs_are_what_the_document_predicts(algorithm):
    """The zone's reference, measured, against a formula that knows nothing of it."""
    zone = documents.zone_of(algorithm, profile="packets")
    both = [(i.basis.median, i.basis["formula"]) for i in zone.intervals.values() if "formula" in i.basis]
    assert len(both) == 10
    assert all(response_functions.agrees(median, formula) for median, formula in both)


def test_a_wrong_beta_would_not_agree():
    """Of the response function for beta 0.85 (two emulated connections): an average window twice as large."""
    formula = response_functions.formula("reno", documents.profile("packets", Cell(10, 40, 1)))
    assert not response_functions.agrees(2 * formula["utilization"], formula)
    assert not response_functions.agrees(formula["utilization"] / 2, formula)
