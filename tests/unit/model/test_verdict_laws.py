"""Laws of verdicts: the order of trials does not matter, and a wider zone never turns conforms into violates."""

import dataclasses

import pytest
from helpers import CELL, judge_zones, measurements_of, zone, zone_on
from hypothesis import given, settings, strategies as st

from conformance.model.judging.verdict import Status, judge, overall
from conformance.model.judging.zone import Basis, Interval, Margin
from conformance.model.metrics.table import tabled
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome

OTHER = Cell(10, 40, 1)
values = st.lists(st.integers(0, 40).map(lambda n: n / 40), min_size=1, max_size=20)
edges = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: tuple(n / 40 for n in sorted(pair)))
outcomes = st.lists(
    st.sampled_from([Outcome.OK, Outcome.OK, Outcome.OK, Outcome.TIMEOUT, Outcome.ERROR, Outcome.UNSUPPORTED]),
    min_size=20,
    max_size=20,
)


def trials(found, ended=None, metric="utilization", cell=CELL):
    made = measurements_of(metric, found, cell=cell)
    if ended is None:
        return made
    return [
        dataclasses.replace(m, outcome=outcome, message=f"{outcome}")
        for m, outcome in zip(made, ended[: len(made)], strict=True)
    ]


@pytest.mark.parametrize("metric", [metric.name for metric in tabled()])
@settings(max_examples=50, deadline=None)
@given(st.data(), values, edges, outcomes)
def test_the_order_of_trials_does_not_matter(metric, data, found, bounds, ended):
    measured = trials(found, ended, metric)
    shuffled = data.draw(st.permutations(measured))
    judged = zone(*bounds, metric=metric)
    one, other = judge(judged, CELL, measured), judge(judged, CELL, shuffled)
    if one.status in (Status.ERROR, Status.UNSUPPORTED):
        assert other.status is one.status
    else:
        assert one == other


@settings(max_examples=50, deadline=None)
@given(st.data(), values, values, edges)
def test_the_order_of_cells_does_not_matter(data, here, there, bounds):
    judged = zone(*bounds)
    judged = dataclasses.replace(judged, intervals={**judged.intervals, OTHER: judged.intervals[CELL]})
    cells = {CELL: trials(here), OTHER: trials(there, cell=OTHER)}
    one = judge_zones([(judged, cells)])[0]
    other = judge_zones([(judged, dict(data.draw(st.permutations(list(cells.items())))))])[0]
    assert one.verdicts == other.verdicts
    assert one.status is other.status is overall(one.verdicts.values())


@settings(max_examples=50, deadline=None)
@given(values, edges, edges, outcomes, st.sampled_from([1, 30]), st.sampled_from([5, 20]))
def test_a_wider_zone_never_turns_conforms_into_violates(found, bounds, more, ended, family, reference_n):
    low, high = bounds
    wide_low, wide_high = low - more[0], high + more[1]
    measured = trials(found, ended)

    def status(least, most):
        basis = Basis.of("r", [low + (high - low) * at / (reference_n - 1) for at in range(reference_n)])
        permitted = Interval(low=least, high=most, bases=(basis,), margin=Margin(relative=0.0, absolute=0.0))
        return judge(zone(intervals={CELL: permitted}), CELL, measured, family).status

    narrow, wide = status(low, high), status(wide_low, wide_high)
    assert not (narrow is Status.CONFORMS and wide is not Status.CONFORMS)
    assert not (wide is Status.VIOLATES and narrow is not Status.VIOLATES)


@settings(max_examples=50, deadline=None)
@given(values, edges)
def test_nothing_conforms_and_violates(found, bounds):
    """A cell that conforms to a zone is outside no part of the zone that contains the same interval of the median."""
    verdict = judge(zone(*bounds), CELL, trials(found))
    if verdict.status is Status.CONFORMS:
        assert bounds[0] <= verdict.interval[0] <= verdict.value <= verdict.interval[1] <= bounds[1]
        assert verdict.p is None
    if verdict.status is Status.VIOLATES:
        assert verdict.interval[1] < bounds[0] or verdict.interval[0] > bounds[1]
        assert verdict.p is not None


@given(st.floats(0.2, 0.8), st.floats(0, 0.2), st.floats(0, 1))
def test_what_a_median_takes_of_the_margin_is_1_at_the_ends_and_0_between_the_bases(median, apart, at):
    bases = tuple(
        Basis(reference=name, n=1, median=value, min=value, max=value, values=(value,))
        for name, value in (("a", median), ("b", median + apart))
    )
    permitted = zone_on(*bases).intervals[CELL]
    assert permitted.margin_used(median + at * apart) == 0.0
    assert permitted.margin_used(permitted.low) == pytest.approx(1.0)
    assert permitted.margin_used(permitted.high) == pytest.approx(1.0)
    inside = permitted.low + at * (permitted.high - permitted.low)
    assert 0.0 <= permitted.margin_used(inside) <= 1.0 + 1e-9
    assert permitted.margin_used(permitted.high + 0.01) > 1.0
