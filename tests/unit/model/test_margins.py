"""By how much implementations differ, and the margin that follows from it."""

import dataclasses
import math

import pytest
from helpers import zone, zone_on

from conformance.model.judging.margins import spreads
from conformance.model.judging.zone import Basis, Margin, kind_of
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell, Point

CELLS = [Cell(10, 20, 1), Cell(10, 40, 2)]
POINT = Point((("flows", 2),))
KIND = "up to 2 % of loss"


def of(*bases, small_packets=1.0):
    permitted = dataclasses.replace(zone_on(*bases).intervals[Cell(10, 20, 1)], small_packets=small_packets)
    return zone(intervals=dict.fromkeys(CELLS, permitted))


def of_points(metric, basis, *points, absolute=0.05):
    permitted = zone_on(basis, absolute=absolute).intervals[Cell(10, 20, 1)]
    points = points or (POINT,)
    return zone(intervals=dict.fromkeys(points, permitted), metric=metric, digests=dict.fromkeys(points, "0" * 16))


def basis(name, median):
    return Basis.of(name, [median - 0.01, median, median + 0.01])


def measured(**medians):
    return {name: dict.fromkeys(CELLS, (median, None)) for name, median in medians.items()}


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (Cell(10, 1, 0), "no random loss"),
        (Cell(10, 100, 0), "no random loss"),
        (Cell(10, 1, 4), "random loss at 1 ms"),
        (Cell(10, 20, 2), KIND),
        (Cell(10, 200, 0.02), KIND),
        (Cell(10, 20, 3), "more than 2 % of loss"),
    ],
)
def test_kinds_of_cells(cell, kind):
    assert kind_of(cell) == kind


def test_for_loss_each_cell_without_random_loss_is_of_a_kind_of_its_own():
    assert kind_of(Cell(10, 100, 0), "lost_pct") == "10mbps-100ms-0pct"
    assert kind_of(Cell(10, 100, 1), "lost_pct") == kind_of(Cell(10, 100, 1))
    rule = {"relative": 0.1, "absolute": 0.5, "kinds": {"10mbps-1ms-0pct": {"relative": 0.4}, KIND: {"relative": 0.2}}}
    of_cells = [Margin.of(rule, cell).relative for cell in (Cell(10, 1, 0), Cell(10, 100, 0), Cell(10, 20, 2))]
    assert of_cells == [0.4, 0.1, 0.2]


def test_inside_what_the_bases_span_the_margin_is_the_usual_one():
    (found,) = spreads(of(basis("linux", 0.4), basis("rfc", 0.6)), measured(a=0.45, b=0.55))
    assert (found.kind, found.cells, found.implementations) == (KIND, 2, ("a", "b"))
    assert (found.farthest, found.relative) == (0.0, 0.1)
    logs = [math.log(value) for value in (0.45, 0.55, 0.4, 0.6)]
    mean = sum(logs) / 4
    assert found.spread == pytest.approx(math.sqrt(sum((value - mean) ** 2 for value in logs) / 3))


@pytest.mark.parametrize(("median", "farthest", "relative"), [(0.7, 1 / 6, 0.17), (0.3, 0.25, 0.25), (0.57, 0, 0.1)])
def test_what_is_outside_asks_for_more_in_whole_percent(median, farthest, relative):
    (found,) = spreads(of(basis("linux", 0.4), basis("rfc", 0.6)), measured(a=0.5, b=median))
    assert found.farthest == pytest.approx(farthest)
    assert found.relative == pytest.approx(relative)


def test_the_size_of_packets_is_taken_out():
    """With packets of 1200 bytes, 0.83 of the bases' value counts as the bases' value."""
    small = {name: dict.fromkeys(CELLS, (0.83 * 0.5, 1200)) for name in "ab"}
    (found,) = spreads(of(basis("linux", 0.5), small_packets=0.83), small)
    assert found.spread == pytest.approx(0, abs=1e-9) and found.farthest == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("metric", "median", "farthest"),
    [
        ("utilization", 0.7, (0.7 - 0.05) / 0.5 - 1),
        ("utilization", 0.54, 0),  # inside what the absolute margin permits
        ("utilization", 0.3, 1 - (0.3 + 0.05) / 0.5),
        ("jain_index", 0.7, 0),  # being fairer is no fault
        ("jain_index", 0.3, 1 - (0.3 + 0.05) / 0.5),
        ("unequal_pct", 0.3, 0),  # nor is being less unequal
        ("unequal_pct", 0.7, (0.7 - 0.05) / 0.5 - 1),
    ],
)
def test_beyond_the_absolute_margin_and_on_the_sides_that_are_judged(metric, median, farthest):
    (found,) = spreads(of_points(metric, basis("linux", 0.5)), {name: {POINT: (median, None)} for name in "ab"})
    assert found.kind == "flows=2" and found.farthest == pytest.approx(farthest)


def test_no_share_of_nothing_is_a_margin():
    nothing = of_points("unequal_pct", Basis.of("linux", [0.0, 0.0]))
    (found,) = spreads(nothing, {name: {POINT: (0.0, None)} for name in "ab"})
    assert found.farthest == found.spread == 0 and found.relative == 0.1


@pytest.mark.parametrize(("medians", "absolute"), [((0.0, 3.0), 5.0), ((0.0, 12.4), 13.0), ((9.0, 5.0), 9.0)])
def test_harm_has_a_margin_in_percentage_points(medians, absolute):
    """Others of the reference's kind lose next to nothing beside it, so the margin is at least 5 percentage points."""
    harmless = of_points("harm_pct", Basis.of("linux", [0.0, 0.0]), absolute=5.0)
    (found,) = spreads(harmless, {name: {POINT: (value, None)} for name, value in zip("ab", medians, strict=True)})
    assert (found.relative, found.absolute) == (0.1, absolute)
    kinds = {"flows=2": {"relative": found.relative, "absolute": found.absolute}}
    rule = {"relative": 0.1, "absolute": 5.0, "kinds": kinds}
    assert Margin.of(rule, POINT) == Margin(relative=0.1, absolute=absolute)
    assert Margin.of(rule, Point((("flows", 4),))).absolute == 5.0


def test_one_implementation_says_nothing_of_a_spread():
    assert spreads(of(basis("linux", 0.5)), measured(a=0.9)) == []


def test_a_rule_with_kinds_has_a_margin_for_each():
    rule = {"relative": 0.1, "absolute": 0.001, "kinds": {KIND: {"relative": 0.17}}}
    assert Margin.of(rule, CELLS[0]) == Margin(relative=0.17, absolute=0.001)
    assert Margin.of(rule, Cell(10, 20, 0)) == Margin.of(rule) == Margin(relative=0.1, absolute=0.001)


def test_a_margin_says_how_wide_it_is_and_what_set_it():
    kinds = {"10mbps-1ms-0pct": {"relative": 27.958, "implementations": ["aioquic", "quinn"]},
             KIND: {"relative": 0.1, "implementations": ["aioquic", "quinn"]}}  # fmt: skip
    rule = {"relative": 0.1, "absolute": 0.3, "kinds": kinds}
    words = [Margin.of(rule, cell, METRICS["lost_pct"]).words for cell in (Cell(10, 1, 0), Cell(10, 20, 2))]
    assert words == [
        "margin 2,796 % and 0.3 percentage points set by the farthest of aioquic, quinn",
        "margin 10 % and 0.3 percentage points by the rule for all zones",
    ]


def test_who_was_measured_is_said_of_each_kind():
    """Some stacks may have been measured only at some points."""
    points = [Point((("flows", count),)) for count in (2, 4)]
    every = dict.fromkeys(points, (0.5, None))
    medians = {"a": every, "b": every, "c": {points[0]: (0.5, None)}}
    found = spreads(of_points("share", basis("linux", 0.5), *points), medians)
    assert {one.kind: one.implementations for one in found} == {"flows=2": ("a", "b", "c"), "flows=4": ("a", "b")}
