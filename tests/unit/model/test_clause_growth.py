"""Observables of clauses about growth, with made-up windows, one for each round trip."""

import pytest
from made_senders import permitted, why_not, windows

RTT_S = 0.2


def cubic(before, w_max, seconds, rtt_s=RTT_S, k_times=1.0):
    """Return the windows after a loss at `before`, with a plateau at `w_max`."""
    k_s = k_times * ((w_max - 0.7 * before) / 0.4) ** (1 / 3)
    c = (w_max - 0.7 * before) / k_s**3
    return [w_max + c * (at * rtt_s - k_s) ** 3 for at in range(round(seconds / rtt_s))]


#: slow start; then the window is kept for two round trips, because a loss in the first is known only after the second
DOUBLES, NUMBER = [10, 20, 40, 80, 160, 200], 505


def two_losses(k_times, share, gap_s, seconds, rtt_s=RTT_S):
    """Return two losses, the first at 200, and the growth after each; the last plateau is at `share` of the window."""
    first = cubic(200, 200, gap_s, rtt_s)
    parts = [*DOUBLES, 200, *first, *cubic(first[-1], share * first[-1], seconds, rtt_s, k_times)]
    second = round(sum(map(round, parts[: len(DOUBLES) + len(first)])))
    return parts, {"lost": {NUMBER, second}, "triggered": {"first_loss": 7 * rtt_s}}


@pytest.mark.parametrize(("k_times", "right"), [(1.0, True), (2.15, False), (0.46, False), (100, False)])
def test_k_says_when_the_window_is_back(k_times, right):
    parts, how = two_losses(k_times, 1, 7, 14)
    assert permitted("CL024", windows, parts, **how) is right


def test_what_ends_before_the_window_is_back_says_nothing():
    parts, how = two_losses(1, 1, 7, 2)
    assert "before the window was back" in why_not("CL024", windows, parts, **how)
    assert "too soon" in why_not("CL024", windows, two_losses(1, 1, 7, 0.6)[0], **how)
    assert "never sent" in why_not("CL024", windows, parts, **{**how, "lost": {NUMBER}})


@pytest.mark.parametrize(
    ("share", "k_times", "right"),
    [(0.85, 1, True), (1.0, 1, True), (0.85, 1.2, False), (1.0, 1.4, False), (0.85, 0.7, False), (1.0, 100, False)],
)
def test_the_plateau_may_be_lower_if_k_is_that_of_the_plateau(share, k_times, right):
    parts, how = two_losses(k_times, share, 1.7, 14, rtt_s=0.15)
    assert permitted("CL028", windows, parts, **how) is right


def test_reno_friendly_growth_is_by_one_beyond_the_old_window():
    for slope, right in ((1.0, True), (0.53, False)):
        after = [28 + 0.53 * at for at in range(22)] + [40 + slope * at for at in range(30)]
        assert permitted("CL027", windows, [10, 20, 40, *after], lost={25}) is right
    assert "fewer than six round trips" in why_not("CL027", windows, [10, 20, 40, *[28] * 30], lost={25})


@pytest.mark.parametrize(
    ("after", "right"),
    [([80, 160, 320, 640], True), ([45, 50, 100, 200], True), ([45, 56, 70, 88], False)],
)
def test_a_longer_moment_does_not_end_start_up(after, right):
    blip = {"triggered": {"request": 0.0}}
    assert permitted("CL021", windows, [10, 20, 40, *after], **blip) is right
    assert "too soon" in why_not("CL021", windows, [10, 20, 40], **blip)
    assert "event came too soon" in why_not("CL021", windows, after, triggered={"request": -0.5})
    assert "left slow start at once" in why_not("CL021", windows, [10, 20, 40, 45, 46, 47, 48], **blip)
    for left, lost in (([10, 20, 21], ()), ([10, 20, 40], {20})):
        assert "start-up was over" in why_not("CL021", windows, [*left, *after], lost=lost, **blip)


def test_a_rise_of_the_delay_ends_the_doubling():
    assert permitted("CL061", windows, [10, 20, 40, 80, 100, 110, 120, 130])
    assert not permitted("CL061", windows, [10, 20, 40, 80, 160, 320, 330])
    assert "three round trips" in why_not("CL061", windows, [30] * 10)


def test_conservative_slow_start_grows_by_a_quarter():
    assert permitted("CL062", windows, [10, 20, 40, 80, 100, 125, 156, 195, 244, 245, 246])
    assert not permitted("CL062", windows, [10, 20, 40, 80, 87, 94, 102, 111, 120])
    assert "left slow start at once" in why_not("CL062", windows, [10, 20, 40, 80, 81, 82, 83, 84, 85, 86])
    assert "doubled until" in why_not("CL062", windows, [10, 20, 40, 80, 160, 320])
