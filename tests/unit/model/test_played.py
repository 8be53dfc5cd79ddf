"""Documents that are played, and the closed forms that the plays have to match."""

import dataclasses
import itertools
import random
import statistics

import pytest
from hypothesis import given, strategies as st

from conformance.catalogue import bases, documents
from conformance.model.judging import played
from conformance.model.networks.place import Cell

LOSS = st.floats(1e-4, 0.05)
#: a path whose link is never the limit
PATH = played.PlayedPath(
    bandwidth_mbps=1000, rtt_s=0.04, loss=0.01, packet_bytes=1448, wire_bytes=1514, queue_packets=10_000,
    transfer_bytes=12_500_000,
)  # fmt: skip


def played_utilization(document, path, seeds=20):
    chances = (bases.passing(path.loss, str(seed)) for seed in range(seeds))
    return statistics.median(played.utilization(document, path, passing) for passing in chances)


def test_the_documents_own_figures():
    """Average windows in segments by packet loss rate: RFC 9438, table 1 (C = 0.4, RTT 0.1 s), and Reno of RFC 3649."""
    for loss, reno, cubic in ((1e-2, 12, 12), (1e-3, 38, 38), (1e-4, 120, 187), (1e-5, 379, 1054), (1e-6, 1200, 5926)):
        assert played.reno_window_segments(loss) == pytest.approx(reno, rel=0.05)
        assert played.cubic_window_segments(loss, 0.1) == pytest.approx(cubic, rel=0.05)


@given(LOSS, LOSS, st.floats(0.001, 1))
def test_more_loss_never_gives_a_larger_window(one, other, rtt_s):
    low, high = sorted((one, other))
    assert played.reno_window_segments(high) <= played.reno_window_segments(low)
    assert played.cubic_window_segments(high, rtt_s) <= played.cubic_window_segments(low, rtt_s)
    assert played.cubic_window_segments(high, rtt_s) >= played.reno_window_segments(high)


@pytest.mark.parametrize("loss", [0.01, 0.02, 0.03, 0.04])
@pytest.mark.parametrize("rtt_s", [0.04, 0.12, 0.2])
def test_the_play_of_rfc_5348_has_the_mean_of_its_equation(loss, rtt_s):
    """Section 3.1 with b = 1 and a timer of RTT + 0.2 s; the play is a few percent above, because of slow start."""
    path = dataclasses.replace(PATH, loss=loss, rtt_s=rtt_s)
    said = played.rfc5348_segments_a_second(loss, rtt_s, rtt_s + 0.2) * 1448 * 8 / 1e9
    assert played_utilization("RFC 5348", path) == pytest.approx(said, rel=0.08)


def test_the_play_of_rfc_5681_has_the_window_of_reno_s_response_function():
    """Random losses make it up to an eighth larger: Mathis et al. have 1.22 for regular losses and 1.31 for these."""
    for loss in (0.001, 0.01):
        path = dataclasses.replace(PATH, loss=loss, transfer_bytes=100_000_000)
        window = played_utilization("RFC 5681", path, 5) * 1e9 * path.rtt_s / 8 / path.packet_bytes
        assert 1.0 < window / played.reno_window_segments(loss) < 1.13


def periodic(loss):
    """Yield the numbers of packets between losses: one packet in every 1 / loss is lost."""
    return itertools.repeat(round(1 / loss) - 1)


@given(st.floats(0.001, 0.9), st.text(max_size=5))
def test_packets_are_lost_where_python_s_own_draws_say(loss, seed):
    draw = random.Random(seed)
    lost = [at for at in range(10_000) if draw.random() < loss]
    between = [second - first - 1 for first, second in itertools.pairwise([-1, *lost])]
    assert list(itertools.islice(bases.passing(loss, seed), len(between))) == between


@pytest.mark.parametrize(("loss", "rtt_s"), [(0.003, 0.2), (0.001, 0.2), (0.0003, 0.2)])
def test_periodic_losses_give_cubic_what_rfc_9438_says(loss, rtt_s):
    """The response function of section 5.1 has a loss every 1 / p packets; random losses give larger windows."""
    path = dataclasses.replace(PATH, loss=loss, rtt_s=rtt_s, transfer_bytes=round(200 / loss) * 1448)
    regular = played.utilization("RFC 9438", path, periodic(loss)) * 1e9 * rtt_s / 8 / 1448
    assert regular == pytest.approx(played.cubic_window_segments(loss, rtt_s), rel=0.1)
    by_chance = played_utilization("RFC 9438", path, 5) * 1e9 * rtt_s / 8 / 1448
    assert 1.05 < by_chance / regular < 1.35


@pytest.mark.parametrize("document", played.CONTROLLERS)
def test_more_loss_is_slower_and_larger_packets_are_faster(document):
    rates = [played_utilization(document, dataclasses.replace(PATH, loss=loss)) for loss in (0.005, 0.01, 0.02, 0.04)]
    assert rates == sorted(rates, reverse=True)
    sizes = (1200, 1448)
    small, full = (played_utilization(document, dataclasses.replace(PATH, packet_bytes=size)) for size in sizes)
    assert small / full == pytest.approx(1200 / 1448, rel=0.03)


def test_a_link_without_loss_is_full():
    path = dataclasses.replace(PATH, loss=0.0, bandwidth_mbps=10, queue_packets=33)
    for document in ("RFC 5681", "RFC 9438"):
        assert 0.9 < played_utilization(document, path, 1) < 1448 / 1514


@pytest.mark.parametrize(
    ("algorithm", "profile", "cell", "named"),
    [
        ("reno", "packets", Cell(10, 20, 1), ["rfc5681-played", "rfc5348-played"]),
        ("cubic", "packets", Cell(10, 20, 1), ["rfc9438-played", "rfc5348-played"]),
        ("reno", "packets", Cell(10, 20, 4), ["rfc5681-played"]),  # timeouts take more than a fifth of the time
        ("cubic", "packets", Cell(10, 200, 0.02), ["rfc9438-played"]),  # CUBIC is above Reno
        ("reno", "packets", Cell(10, 20, 0), []),  # nothing is lost at random
        ("reno", "atc25", Cell(10, 20, 1), []),  # super-packets are lost whole
        ("bbrv1", "packets", Cell(10, 20, 1), []),
        ("vegas", "packets", Cell(10, 20, 1), []),
    ],
)
def test_documents_are_asked_only_where_they_speak(algorithm, profile, cell, named):
    found = bases.played_bases(algorithm, documents.profile(profile, cell))
    assert [basis.reference for basis in found[0]] == named if found else not named
    if found:
        assert 0.8 < found[1] <= 1.0
        assert all(basis.n == bases.PLAYED_TRIALS for basis in found[0])


@pytest.mark.parametrize("algorithm", ["reno", "cubic"])
def test_the_reference_is_near_what_documents_say(algorithm):
    """The plays know nothing of Linux, which is measured below its own RFC without timeouts, and near RFC 5348."""
    zone = documents.zone_of(algorithm, profile="packets")
    ratios = {}
    for cell, permitted in zone.intervals.items():
        for basis in permitted.bases[1:]:
            ratios.setdefault(basis.reference, []).append((permitted.basis.median / basis.median, cell.id))
    own, equation = ratios.pop(f"rfc{'5681' if algorithm == 'reno' else '9438'}-played"), ratios.pop("rfc5348-played")
    assert not ratios
    assert len(own) == 24 and all(0.6 < ratio < 1.05 for ratio, _ in own)
    assert len(equation) >= 10 and all(0.85 < ratio < 1.15 for ratio, _ in equation)


def test_a_wrong_beta_would_be_outside():
    """A Reno that keeps 0.7 of its window acts like quic-go's beta of two emulated connections (section 4 of D)."""

    class Gentle(played.Reno):
        def lost(self, now_s):
            self.window = self._threshold = max(0.7 * self.window, 2.0)

    usual = played_utilization("RFC 5681", PATH)
    try:
        played.CONTROLLERS["gentle"] = Gentle
        assert played_utilization("gentle", PATH) / usual == pytest.approx(1.37, rel=0.05)
    finally:
        del played.CONTROLLERS["gentle"]
