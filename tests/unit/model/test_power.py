"""Which shifts cells detect, and how often they raise false alarms: simulations of the audit's findings."""

import math

import numpy as np
import pytest
from helpers import CELL, measurements, zone_on

from conformance.model.judging import power
from conformance.model.judging.verdict import ALPHA, LOOKS, Status, judge, status_in
from conformance.model.judging.zone import Basis

FAMILY = 30
LEVEL = ALPHA / LOOKS / FAMILY


def violates(judged, values, family=FAMILY):
    """Say whether trials of full packets with these values would violate the zone's only cell."""
    return status_in(judged.metric, judged.intervals[CELL], values, family) is Status.VIOLATES


def trials(rng, kind, n, spread, median=0.5):
    """Draw n trials with this median and coefficient of variation (`spread`)."""
    if kind == "normal":
        relative = rng.normal(0, spread, n)
    elif kind == "lognormal":
        return median * np.exp(rng.normal(0, spread, n))
    elif kind == "t(3)":
        relative = rng.standard_t(3, n) * spread / math.sqrt(3)
    else:
        relative = np.where(rng.random(n) < 0.5, -spread, spread) + rng.normal(0, spread / 10, n)
    return median * (1 + relative)


def told_by_simulation(spread, reference_n, shift, runs=60):
    """Return the share of runs in which the suite's judge finds a scheme with `shift` times the reference's value."""
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(runs):
        judged = zone_on(Basis.of("r", trials(rng, "normal", reference_n, spread)))
        values = list(trials(rng, "normal", 20, spread, 0.5 * shift))
        found += violates(judged, values)
    return found / runs


@pytest.mark.parametrize("kind", ["normal", "lognormal", "t(3)", "bimodal"])
@pytest.mark.parametrize(("reference_n", "spread"), [(20, 0.02), (30, 0.1), (30, 0.4), (60, 0.2)])
def test_honest_stacks_are_hardly_ever_violations(kind, reference_n, spread):
    """A stack like the reference violates in at most one of 300 cells, at the level of a family of 30."""
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(300):
        judged = zone_on(Basis.of("r", trials(rng, kind, reference_n, spread)))
        for n in (5, 8, 13, 20):
            wrong += violates(judged, list(trials(rng, kind, n, spread)))
    assert wrong <= 1


@pytest.mark.parametrize("shift", [0.9, 1.1])
@pytest.mark.parametrize(("reference_n", "n"), [(20, 20), (30, 5), (30, 20)])
def test_exactly_at_the_margin_the_rate_is_what_is_promised(reference_n, n, shift):
    """In 2,000 cells at a level of 1 %, an honest stack with the reference's spread is off by all of the margin."""
    rng = np.random.default_rng(13)
    at_level = round(ALPHA / LOOKS / 0.01, 6)  # a fractional family, so that ALPHA / LOOKS / family = 0.01
    wrong = 0
    for _ in range(2000):
        judged = zone_on(Basis.of("r", trials(rng, "normal", reference_n, 0.1)))
        wrong += violates(judged, list(trials(rng, "normal", n, 0.1, 0.5 * shift)), at_level)
    assert wrong / 2000 <= 0.01


def test_more_trials_of_the_reference_make_a_zone_sharper():
    """This reverses the audit's first finding: if the range of trials was the zone, more trials made it wider."""
    shifts = {n: told_by_simulation(0.2, n, 0.62, runs=150) for n in (20, 60)}
    assert shifts[60] > shifts[20] + 0.05


@pytest.mark.parametrize(("spread", "down"), [(0.01, 0.13), (0.03, 0.17), (0.05, 0.20), (0.1, 0.28), (0.2, 0.42)])
def test_shifts_that_are_told_are_those_that_the_audit_computed(spread, down):
    """Proposal A with 20 reference trials detects 12, 15, 18, 25, 37 % less; shifts of a few points more are surer."""
    assert told_by_simulation(spread, 20, 1 - down) >= power.POWER


@pytest.mark.slow
def test_what_a_cell_tells_is_what_the_judge_finds():
    """power.told() has a fast judge of its own. At the shift that it names, the suite's judge finds as many violations;
    at smaller shifts, it finds fewer."""
    rng = np.random.default_rng(3)
    reference = Basis.of("r", trials(rng, "normal", 30, 0.05))
    judged = zone_on(reference)
    told = power.told(judged.intervals[CELL], "utilization", 20, LEVEL)
    assert told.down == pytest.approx((reference.median - told.low) / reference.median)
    assert 0.1 < told.down < 0.25 and 0.1 < told.up < 0.3 and told.enough

    def found(at):
        draws = rng.choice(reference.values, size=(100, 20)) * (at / reference.median)
        return np.mean([violates(judged, list(row)) for row in draws])

    for at, nearer in ((told.low, reference.median * 0.95), (told.high, reference.median * 1.05)):
        assert found(at) >= power.POWER - 0.12
        assert found(nearer) < 0.5


def test_a_wide_cell_tells_nothing_and_a_bound_of_the_metric_ends_the_question():
    wide = zone_on(Basis.of("r", [0.02, 0.03, 0.05, 0.3, 0.55, 0.6, 0.62] * 4))
    told = power.told(wide.intervals[CELL], "utilization", 20, LEVEL)
    assert not told.enough
    full = zone_on(Basis.of("r", [0.95 + 0.0001 * i for i in range(30)]))
    told = power.told(full.intervals[CELL], "utilization", 20, LEVEL)
    assert told.up is None and told.high is None  # no utilization is above 1
    assert told.enough and told.words == "11 % less"


def test_a_verdict_that_cannot_tell_says_what_it_could_have():
    judged = zone_on(Basis.of("r", [0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7] * 3))
    verdict = judge(judged, CELL, measurements([0.3, 0.35, 0.5, 0.65, 0.7]))
    assert verdict.status is Status.COMPATIBLE
    assert verdict.detectable is not None
    assert verdict.words.endswith(f"; {verdict.detectable.words} would have been detected")


def test_where_the_absolute_margin_is_the_larger_one_medians_are_named():
    """The nearest told are shares of 3 then, and not of the reference's 0.05."""
    lost = zone_on(Basis.of("r", [0.05 + 0.0001 * at for at in range(-15, 15)]), absolute=0.3)
    told = power.told(lost.intervals[CELL], "lost_pct", 20, LEVEL)
    assert told.enough and told.high == pytest.approx(0.05 + 3 * told.up, abs=0.001)
    assert told.words == f"a median of at least {told.high:.3f}"
    more = zone_on(Basis.of("r", [2 + 0.001 * at for at in range(-15, 15)]), absolute=0.3)
    told = power.told(more.intervals[CELL], "lost_pct", 20, LEVEL)
    assert told.words == f"a median of at most {told.low:.3f} or at least {told.high:.3f}"


@pytest.mark.slow
def test_a_stack_that_is_a_fifth_slower_never_plainly_conforms():
    """At a margin of 10 % and any spread, it violates, or the verdict says which shifts it would have detected."""
    rng = np.random.default_rng(5)
    for spread in (0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
        conforms = 0
        for _ in range(40):
            reference = trials(rng, "normal", 30, spread)
            judged = zone_on(Basis.of("r", reference))
            verdict = judge(judged, CELL, measurements(list(0.8 * rng.choice(reference, 20))), FAMILY)
            conforms += verdict.status is Status.CONFORMS
        assert conforms <= 1
