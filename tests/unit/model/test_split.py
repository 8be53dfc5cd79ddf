"""The split heuristic: composition, classes, predictions, filters, and rates between cells."""

import collections
import itertools

import pytest
from helpers import known_rates, measurements, refusal
from hypothesis import assume, given, strategies as st

from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.networks.place import Cell, end_to_end
from conformance.model.split import split_paths, split_rates
from conformance.model.split.split_paths import Path, PathClass, compose_on_grid
from conformance.model.split.split_rates import Filter, Rates
from conformance.model.trials.trial import Outcome

FULL = grid.cells("full")
CELLS = st.builds(Cell, st.floats(0.1, 1000), st.floats(0, 1000), st.floats(0, 25))
GRID_CELLS = st.sampled_from(FULL)
RATES = st.builds(
    lambda shares: {cell: share * cell.bandwidth_mbps for cell, share in zip(FULL, shares, strict=True)},
    st.lists(st.floats(0.001, 1), min_size=len(FULL), max_size=len(FULL)),
)


@given(CELLS, CELLS, CELLS)
def test_exact_composition_associates_up_to_rounding(a, b, c):
    assume(a.loss_pct + b.loss_pct + c.loss_pct <= 50)
    left, right = end_to_end((end_to_end((a, b)), c)), end_to_end((a, end_to_end((b, c))))
    assert left.bandwidth_mbps == right.bandwidth_mbps
    assert left.one_way_delay_ms == pytest.approx(right.one_way_delay_ms, abs=1e-8)
    assert left.loss_pct == pytest.approx(right.loss_pct, abs=1e-8)


def test_loss_above_any_cells_is_a_users_mistake():
    assert "loss_pct is 75" in refusal(end_to_end, (Cell(1, 1, 50), Cell(1, 1, 50)))


@given(GRID_CELLS, GRID_CELLS, GRID_CELLS)
def test_the_grids_rules_commute_associate_and_stay_on_the_grid(a, b, c):
    def then(x, y):
        return None if x is None or y is None else compose_on_grid(x, y)

    assert compose_on_grid(a, b) == compose_on_grid(b, a)
    assert then(then(a, b), c) == then(a, then(b, c))
    assert then(a, b) is None or then(a, b) in FULL
    # A segment of 1 ms without loss at the highest rate changes nothing.
    assert compose_on_grid(a, Cell(50, 1, 0)) == a


def test_off_the_grid_the_1_ms_rule_does_not_associate():
    half, long = Cell(10, 0.5, 0), Cell(10, 20, 0)
    assert compose_on_grid(compose_on_grid(half, half), long).one_way_delay_ms == 20
    assert compose_on_grid(half, compose_on_grid(half, long)).one_way_delay_ms == 21


@pytest.mark.slow
def test_the_paths_of_the_grid_are_as_many_as_published():
    paths = split_paths.paths(FULL)
    assert len(paths) == len(set(paths)) == 7875
    assert collections.Counter(path.path_class for path in paths) == {
        PathClass.I_NEAR: 500, PathClass.I_FAR: 500, PathClass.II: 1650, PathClass.III: 1500,
        PathClass.ZERO_LOSS: 525, PathClass.OTHER: 3200,
    }  # fmt: skip
    assert len(split_paths.paths(grid.cells("10mbps"))) == 315


@given(GRID_CELLS, GRID_CELLS)
def test_mirrored_paths_are_of_mirrored_classes(s1, s2):
    mirror = {PathClass.I_NEAR: PathClass.I_FAR, PathClass.I_FAR: PathClass.I_NEAR}
    one, other = Path(s1, s2).path_class, Path(s2, s1).path_class
    assert other is mirror.get(one, one)


@pytest.mark.parametrize("bandwidth", [None, 10])
def test_representative_paths_are_of_the_class_they_stand_for(bandwidth):
    found = split_paths.representative_paths(bandwidth)
    assert list(found) == list(PathClass)
    for path_class, path in found.items():
        assert path.path_class is path_class
        assert set(path.cells) <= set(FULL)
        assert bandwidth in (None, path.bandwidth_mbps)


@pytest.mark.slow
@given(RATES)
def test_predictions_are_symmetric_never_above_a_segment_and_grow_with_rates(rates):
    more = {cell: rate * 1.5 for cell, rate in rates.items()}
    for path in split_paths.paths(grid.cells("10mbps")):
        mirrored = Path(path.s2, path.s1)
        assert split_paths.predict_split(path, rates) == split_paths.predict_split(mirrored, rates)
        assert split_paths.predict_end_to_end(path, rates) == split_paths.predict_end_to_end(mirrored, rates)
        assert split_paths.predict_split(path, rates) <= min(rates[path.s1], rates[path.s2])
        assert split_paths.predict_split(path, rates) < split_paths.predict_split(path, more)


def test_missing_is_missing():
    path = Path(Cell(10, 20, 0), Cell(10, 20, 1))
    known = {path.s1: 9.0, path.s2: 8.0, path.end_to_end: 2.0}
    assert split_paths.predict_split(path, known) == 8.0
    assert split_paths.predict_split(path, {**known, path.s1: None}) is None
    assert split_rates.predict(path, known_rates(known)).gains(3) is True
    for cell in path.cells:
        rates = known_rates({c: rate for c, rate in known.items() if c != cell})
        assert split_rates.predict(path, rates).gains(3) is None
        found = split_rates.count([split_rates.predict(path, rates)], Filter(gain=3))
        assert found[PathClass.OTHER].unknown == 1
        assert found[PathClass.OTHER].share == (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "100ms-0pct-20mbps,1ms-4pct-20mbps",
        "20mbps-100ms-0pct+20mbps-1ms-4pct",
        "0pct-20mbps-100ms, 1ms-20mbps-4pct",
    ],
)
def test_a_path_reads_in_any_order_of_its_units(text):
    assert Path.parse(text) == Path(Cell(20, 100, 0), Cell(20, 1, 4))
    assert Path.parse(Path.parse(text).id) == Path.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "20mbps-1ms-4pct",
        "a,b",
        "1ms-1ms-1ms,20mbps-1ms-4pct",
        "1ms-4pct,20mbps-1ms-4pct",
        "-1ms-4pct-2mbps,1ms-4pct-2mbps",
        "1.1.1ms-4pct-2mbps,1ms-4pct-2mbps",
    ],
)
def test_a_path_that_is_none_is_a_users_mistake(text):
    with pytest.raises(UserError):
        Path.parse(text)


def of(cell, values, outcome=Outcome.OK):
    return measurements(values, cell=cell, outcome=outcome)


def test_a_timeout_is_a_bound_and_as_published_zero():
    path = Path(Cell(10, 20, 0), Cell(10, 20, 1))
    by_cell = {
        path.s1: of(path.s1, [0.9] * 5),
        path.s2: of(path.s2, [0.5] * 5),
        path.end_to_end: of(path.end_to_end, [0.1] * 5, Outcome.TIMEOUT),
    }
    bounded = split_rates.predict(path, Rates.medians(by_cell))
    assert bounded.end_to_end == (0.0, 1.0)
    # 0.5 is more than 3 times any possible value, but whether it is more than 6 times is not known.
    assert (bounded.gains(3), bounded.gains(6)) == (True, None)
    zero = split_rates.predict(path, Rates.medians(by_cell, "zero"))
    assert zero.gains(1000) is True
    for values, middle in (([0.2, 0.3, 0.4, 0.5], 0.4), ([0.2, 0.3, 0.4], 0.3)):
        late = of(path.end_to_end, [0.1] * 2, Outcome.TIMEOUT)
        rates = Rates.medians({path.end_to_end: [*late, *of(path.end_to_end, values)]}, "zero")
        assert rates.low[path.end_to_end] == rates.high[path.end_to_end] == 10 * middle
    assert "timeouts 'none'" in refusal(Rates.medians, by_cell, "none")


def test_what_would_have_been_given_up_is_bounded_by_what_it_could_have_reached():
    # helpers.measurement() completes in 20 s; a transfer has the bytes of 10 s at the link's rate.
    (kept,) = split_rates.cut_off(of(Cell(10, 20, 0), [0.5]), 21)
    assert (kept.outcome, kept.utilization) == (Outcome.OK, 0.5)
    (cut,) = split_rates.cut_off(of(Cell(10, 20, 0), [0.5]), 16)
    assert (cut.outcome, cut.utilization) == (Outcome.TIMEOUT, 10 / 16)


def test_errors_and_unsupported_leave_a_cell_unmeasured():
    cell = Cell(10, 20, 0)
    for outcome in (Outcome.ERROR, Outcome.UNSUPPORTED):
        broken = [*of(cell, [0.5] * 4), *of(cell, [0.5], outcome)]
        assert Rates.medians({cell: broken}).low == {}
        assert Rates.intervals({cell: broken}).low == {}


def test_too_few_trials_give_no_interval():
    cell = Cell(10, 20, 0)
    few = Rates.intervals({cell: of(cell, [0.5, 0.6])})
    assert (few.low[cell], few.high[cell]) == (0.0, float("inf"))
    enough = Rates.intervals({cell: of(cell, [0.5, 0.6, 0.7, 0.8, 0.9])})
    assert (enough.low[cell], enough.high[cell]) == pytest.approx((5.0, 9.0))


def test_filters_ask_all_they_name():
    path = Path(Cell(10, 20, 0), Cell(10, 20, 1))
    made = split_rates.predict(path, known_rates({path.s1: 9.0, path.s2: 4.0, path.end_to_end: 1.0}))
    assert Filter(gain=3).passes(made) is True
    assert Filter(gain=4).passes(made) is False
    assert Filter(utilization=0.5).passes(made) is False
    assert Filter(gain=3, utilization=0.5).passes(made) is False
    assert Filter(gain=3, utilization=0.3).passes(made) is True
    assert Filter(gain=3).scaled(1.1).gain == pytest.approx(3.3)


@pytest.mark.slow
@given(RATES, st.floats(0.1, 0.9), st.sampled_from(("bandwidth_mbps", "one_way_delay_ms", "loss_pct")))
def test_between_two_cells_a_rate_is_between_theirs(rates, fraction, axis):
    low = Cell(20, 20, 1)
    high = Cell(**{**low.to_json(), axis: {"bandwidth_mbps": 30, "one_way_delay_ms": 40, "loss_pct": 2}[axis]})
    value = (1 - fraction) * getattr(low, axis) + fraction * getattr(high, axis)
    found = split_rates.interpolate(rates, Cell(**{**low.to_json(), axis: value}))
    bounds = sorted((rates[low], rates[high]))
    assert bounds[0] * (1 - 1e-9) <= found <= bounds[1] * (1 + 1e-9)


def test_interpolation_is_exact_for_a_power_law_and_in_cells_and_says_none_elsewhere():
    rates = {cell: 5 * cell.bandwidth_mbps**0.5 / cell.one_way_delay_ms for cell in FULL}
    assert split_rates.interpolate(rates, Cell(25, 30, 2)) == pytest.approx(5 * 25**0.5 / 30)
    assert split_rates.interpolate(rates, Cell(20, 40, 2)) == rates[Cell(20, 40, 2)]
    for outside in (Cell(20, 101, 2), Cell(60, 40, 2), Cell(20, 40, 4.1)):
        assert split_rates.interpolate(rates, outside) is None
    del rates[Cell(20, 40, 3)]
    assert split_rates.interpolate(rates, Cell(20, 40, 2.5)) is None
    # A neighbour without weight does not matter.
    assert split_rates.interpolate(rates, Cell(20, 30, 2)) is not None


def test_leaving_one_out_sees_what_interpolation_misses():
    flat = {cell: 5.0 for cell in FULL}
    errors = split_rates.leave_one_out(flat)
    assert {axis: len(found) for axis, found in errors.items()} == {
        "bandwidth_mbps": 90, "one_way_delay_ms": 100, "loss_pct": 90,
    }  # fmt: skip
    assert all(ratio == pytest.approx(1) for ratio in (r for found in errors.values() for _, r in found))
    trough = flat | {Cell(20, 40, 2): 2.5}
    typical, worst = split_rates.typical_and_worst(split_rates.leave_one_out(trough)["loss_pct"])
    assert worst == pytest.approx(1.0)
    assert 0 < typical < 0.05


def test_exact_composition_of_a_path_is_asked_for():
    path = Path(Cell(10, 20, 2), Cell(10, 20, 2), exact=True)
    assert path.end_to_end == Cell(10, 40, 3.96)
    assert Path(path.s1, path.s2).end_to_end == Cell(10, 40, 4)


def test_bulk_shares_count_as_the_model_does():
    import numpy

    from conformance.model.split import split_zone

    cells = grid.cells("10mbps")
    paths = split_paths.paths(cells)
    generator = numpy.random.default_rng(7)
    rows = generator.uniform(0.01, 1, size=(3, len(cells))) * 10
    for row, filter_ in itertools.product(rows, split_rates.FILTERS):
        predictions = [split_rates.predict(path, known_rates(dict(zip(cells, row, strict=True)))) for path in paths]
        expected = sum(filter_.passes(prediction) for prediction in predictions) / len(paths)
        assert split_zone.shares(paths, cells, row[None, :], filter_) == pytest.approx([expected])
