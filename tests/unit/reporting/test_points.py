"""Rows of points of scenarios in reports, and the families that they share with cells."""

import dataclasses

import helpers
import pytest

from conformance.catalogue import documents, scenarios
from conformance.model.judging.zone import NO_LOSS, kind_of
from conformance.model.networks.place import Point
from conformance.reporting import heatmaps, points
from conformance.reporting.html import site
from conformance.reporting.text import markdown
from conformance.reporting.tools import badge
from conformance.results.source import Source
from conformance.support import paths

AT = Point((("flows", 2),))


def trials(value, n=8, stack="linux-tcp"):
    setting = scenarios.setting("fairness", AT)
    return [
        helpers.shared_measurement(
            helpers.trial_at(setting, seed, helpers.scheme(stack=stack)), {"dropped_pct": 0.15} | value
        )
        for seed in range(1, n + 1)
    ]


def test_there_is_a_row_for_each_zone_that_judges_a_point():
    rows = heatmaps.drawn(trials({"jain_index": 0.5})).rows
    assert [row.zone.id for row in rows] == ["cubic/fairness-convergence", "cubic/fairness-jain", "cubic/fairness-loss"]
    jain = rows[1]
    assert (jain.status, jain.measured) == ("violates", "0.500")
    assert jain.permitted.endswith(" to 1.000 (margin 10 % and 0.01 by the rule for all zones)")


def test_a_path_that_is_split_is_judged_where_a_zone_has_it():
    zone = documents.zone(paths.data("zones", "cubic", "split-utilization.json"))
    setting = scenarios.setting(zone.profile, next(iter(zone.intervals)))
    (row,) = heatmaps.drawn([helpers.of_trial(m, setting=setting) for m in helpers.measurements([0.01] * 8)]).rows
    assert (row.zone.id, row.status) == (zone.id, "violates")


def test_a_badge_is_of_points_too():
    drawn = heatmaps.drawn(trials({"jain_index": 0.5}))
    assert badge.message(drawn) == ("1 violates, 2 not judged", "violates")
    assert badge.label(drawn) == "cubic conformance"


def test_unlike_schemes_are_judged_apart():
    rows = heatmaps.drawn([*trials({}), *trials({"jain_index": 0.5}, stack="other")]).rows
    found = {row.scheme.stack: row.status for row in rows if row.zone.metric == "jain_index"}
    assert found == {"linux-tcp": "conforms", "other": "violates"}


def test_cells_and_points_of_a_scheme_are_one_family():
    of_points, of_cells = trials({}), helpers.measurements([0.4] * 8)
    every = [documents.zone(path) for path in documents.judging_files()]
    counted = [zone.intervals[helpers.CELL].counted for zone in documents.zones_for("cubic", helpers.setting())]
    (found,) = points.findings([*of_points, *of_cells], every).values()
    (alone,) = points.findings(of_points, every).values()
    assert {finding.family for _, finding in found} == {alone[0][1].family + sum(counted)}
    (series,) = heatmaps.all_series([*of_points, *of_cells])
    assert series.utilization.family == found[0][1].family


def test_a_zone_of_kinds_judges_kinds_of_cells_and_shows_its_cells():
    zone = documents.zone(paths.data("zones", "bbrv3", "heatmap-packets.json"))
    cells = [cell for cell in zone.cells if kind_of(cell, zone.metric) == NO_LOSS]

    def drawn(share):
        lines = []
        for cell in cells:
            setting = documents.profile("packets", cell)
            for seed in range(1, 9):
                m = helpers.measurement(share * zone.intervals[cell].basis.median, seed, algorithm="bbrv3", stack="own")
                lines.append(helpers.of_trial(m, setting=setting))
        (series,) = heatmaps.all_series(lines)
        return series.utilization

    like, less = drawn(1.0), drawn(0.8)
    assert {verdict.place.id for verdict in like.kinds} == {"no-random-loss", "no-random-loss-even"}
    assert (like.verdict, less.verdict) == ("conforms", "violates")
    assert [verdict.status for verdict in less.kinds] == ["violates", "conforms"]
    assert set(less.results) == set(cells)
    assert less.words_of_cells
    assert not heatmaps.all_series(helpers.measurements([0.4] * 8))[0].utilization.words_of_cells


def test_where_there_are_only_points_there_is_no_heatmap():
    assert heatmaps.all_series(trials({})) == []


def test_markdown_has_a_table_of_points():
    rows = heatmaps.drawn(trials({"jain_index": 0.5})).rows
    text = markdown.render([], of_points=rows)
    assert "Flows that share a network" in text
    assert "| cubic/fairness-jain | flows=2 | ✗ violates | Jain's index 0.500 |" in text
    known = markdown.render([], of_points=rows, known=lambda zone_id, place: f"known at {place.id}")
    assert "known at flows=2" in known


@pytest.mark.parametrize("value", [None, 0.5])
def test_a_row_says_none_where_nothing_is_known(value):
    (row,) = [row for row in heatmaps.drawn(trials({"jain_index": 0.5})).rows if row.zone.metric == "jain_index"]
    changed = dataclasses.replace(row, verdict=dataclasses.replace(row.verdict, value=value))
    assert changed.measured == ("none" if value is None else "0.500")


def test_the_page_has_the_rows_with_a_verdict_and_counts_the_others(tmp_path):
    measured = (*trials({"jain_index": 0.5}), *trials({}, n=3, stack="few"))
    kept = helpers.stored(tmp_path / "results.jsonl", measured)
    page = (site.write(Source([kept]), tmp_path / "site").parent / "shared.html").read_text()
    assert "cubic/linux-tcp/" in page and "cubic/few/" not in page
    assert "1 of 1 verdicts is a violation" in page and "5 of 6 rows have no verdict" in page
    assert "1 inconclusive" in page and "4 not judged" in page
    # The trial nearest to the median is drawn, with a line for each of its two flows.
    assert page.count("<polyline") == 2 and "Goodput of test, 2 flows, Mbit/s" in page
    assert "solid: the first flow; dotted: the others" in page
    assert "The verdict is on linux-tcp, Linux" in page
    assert "conformance trace cubic flows=2 --seed 1 --stack linux-tcp" in page
