"""Studies in a site: the numbers of figures, charts, and pages with each claim beside its figure."""

import dataclasses
import re

import helpers
import pytest

from conformance.catalogue import studies
from conformance.model.studies import figure as figures, outcome
from conformance.model.studies.figure import Figure
from conformance.model.studies.study_point import StudyQuantity
from conformance.model.trials.trial import Measurement, Outcome
from conformance.reporting import study_figures
from conformance.reporting.html import site, study_charts, study_page
from conformance.results import store
from conformance.results.source import Source


def flow(group, goodput):
    return {
        "group": group, "judged": True, "goodput_mbps": goodput, "completion_s": 80 / goodput, "start_s": 0.0,
        "end_s": 2.0, "bytes": 10_000_000, "index": 0, "algorithm": "cubic", "handshake_s": 0.1,
        "bytes_are": "acknowledged", "sent_bytes": 100, "retransmitted_bytes": 1, "out_segments": 1,
        "retransmitted_segments": 1, "marked_segments": 0, "min_rtt_ms": 4.0, "arrived_bytes": None,
        "rtt_ms": {"mean": 5.0, "p50": 5.0, "p95": 6.0, "p99": 6.0}, "goodput_series_mbps": [goodput, goodput],
    }  # fmt: skip


def link(setting):
    return {
        "link": "bottleneck", "direction": "data", "rate_mbps": setting.cell.bandwidth_mbps, "out_bytes": 1,
        "out_packets": 1, "dropped_packets": 0, "marked_packets": 0, "queue_mean_bytes": 0, "queue_peak_bytes": 0,
        "queue_delay_ms": {"p50": 1.0, "p95": 1.0, "p99": 1.0, "mean": 1.0}, "queue_delay_packets": 1,
        "watched_one_in": 1, "out_series_mbps": [setting.cell.bandwidth_mbps, setting.cell.bandwidth_mbps / 4],
    }  # fmt: skip


def made(study, point, goodputs, seeds=5):
    """Return measurements of a point whose flows have these goodputs."""
    setting = study.setting(point)
    groups = [group.name for group in setting.network.flows]
    return [
        Measurement(
            trial=helpers.trial_at(setting, seed, helpers.scheme(point.algorithm)),
            outcome=Outcome.OK,
            metrics={"bytes": 1, "completion_s": 1.0, "goodput_mbps": 1.0, "utilization": 0.5},
            flows=[flow(group, goodput + seed) for group in groups for goodput in goodputs],
            links=[link(setting)],
        )
        for seed in range(1, seeds + 1)
    ]  # fmt: skip


@pytest.fixture
def study():
    return studies.find("access-networks")


@pytest.fixture
def measured(study):
    return {
        point: made(study, point, [300 if point.point["flows"] == 1 else 80])
        for point in study.points["smoke"]
        if point.algorithm in ("cubic", "bbrv1")
    }


def of(study, name):
    return next(figure for figure in study.figures if figure.id == name)


def test_curves_have_medians_intervals_and_published_values(study, measured):
    rows = study_figures.rows(of(study, "3"), measured)
    seen = [row for row in rows if row["kind"] == "seen"]
    assert {(row["x"], row["line"]) for row in seen} == {(a, f) for a in ("cubic", "bbrv1") for f in ("1", "6")}
    assert all(row["low"] < row["median"] < row["high"] for row in seen)
    assert {"x": "cubic", "line": "1", "median": 397.5, "kind": "published", "panel": ""} in rows
    assert study_figures.rows(of(study, "3"), {}) == []


def test_distributions_are_over_all_flows_of_all_trials(study, measured):
    figure = dataclasses.replace(of(study, "3"), draws="cdf", metric="flow_goodput_mbps")
    rows = [row for row in study_figures.rows(figure, measured) if row["line"] == "6"]
    assert len(rows) == 10
    assert max(row["share"] for row in rows) == 1
    values = [row["x"] for row in rows[:5]]
    assert values == sorted(values)


def test_flows_that_did_not_complete_are_among_all_whose_completion_is_drawn(study, measured):
    figure = dataclasses.replace(of(study, "3"), draws="cdf", metric="fct_p50_s", lines="algorithm")
    (point,) = (p for p in figure.points if (p.algorithm, p.point["flows"]) == ("cubic", 6))
    one, *others = measured[point]
    first, *flows = one.flows
    open_ended = dataclasses.replace(one, flows=[{**first, "completion_s": None}, *flows])
    rows = study_figures.rows(dataclasses.replace(figure, points=(point,)), {point: [open_ended, *others]})
    completed = sum(len(m.flows) for m in measured[point]) - 1
    assert [row["share"] for row in rows] == [at / (completed + 1) for at in range(1, completed + 1)]


def test_a_distribution_of_what_no_flow_has_is_over_trials(study, measured):
    figure = dataclasses.replace(of(study, "3"), draws="cdf", metric="jain_index", lines="algorithm")
    rows = [row for row in study_figures.rows(figure, measured) if row["line"] == "cubic"]
    trials = sum(
        len(found) for point, found in measured.items() if point in figure.points and point.algorithm == "cubic"
    )
    assert len(rows) == trials
    assert [row["x"] for row in rows] == sorted(row["x"] for row in rows)


def test_points_and_published_values_stand_in_their_panels(study, measured):
    published = ({"x": "cubic", "value": 7.0, "panel": [6]}, {"x": "cubic", "value": 8.0, "panel": [3]})
    figure = dataclasses.replace(of(study, "3"), lines=None, panels=("flows",), published=published)
    rows = study_figures.rows(figure, measured)
    assert {(row["panel"], row["median"]) for row in rows if row["kind"] == "published"} == {("flows 6", 7.0)}
    assert {row["panel"] for row in rows} == {"flows 1", "flows 6"}, "nothing of flows=3 was measured"
    drawn = study_charts.svg(figure, rows)
    assert "flows 1" in drawn and "flows 6" in drawn


def test_cells_have_what_was_seen_beside_what_was_published(study, measured):
    """A table and bars show each quantity, or say that it was not measured; if all are missing, nothing is shown."""
    one = next(point for point in measured if point.algorithm == "cubic" and point.point["flows"] == 1)
    cells = tuple(
        figures.TableCell(row="one", column=metric, quantity=StudyQuantity((point,), metric, "test"), published=value)
        for metric, point, value in (
            ("group_goodput_mbps", one, 397.5),
            ("share", next(iter(study.points["full"][-1:])), None),
        )
    )
    figure = dataclasses.replace(of(study, "3"), draws="bars", points=(), cells=cells, published=())
    look = outcome.looker(study, measured)
    assert study_figures.rows(figure, measured, look) == [
        {"x": "one", "line": "group_goodput_mbps", "panel": "", "kind": "seen", "median": 303, "low": 301, "high": 305},
        {"x": "one", "line": "group_goodput_mbps", "panel": "", "kind": "published", "median": 397.5},
    ]
    assert study_charts.svg(figure, study_figures.rows(figure, measured, look)).startswith("<svg")
    table = study_page.table_of(figure, look)
    assert table == study_page.Table(
        columns=("group_goodput_mbps", "share"), rows=(("one", (("303 (301 to 305)", "397.5"), ("not measured", ""))),)
    )
    assert study_page.table_of(figure, outcome.looker(study, {})) is None
    assert study_figures.rows(figure, {}, outcome.looker(study, {})) == []


def test_series_are_sums_over_a_group_in_each_second(study, measured):
    figure = dataclasses.replace(of(study, "3"), draws="series")
    rows = study_figures.rows(figure, measured)
    assert {"line": "cubic: test", "x": 0, "median": 301, "panel": ""} in rows


def test_series_of_links_are_parts_of_their_rates_in_each_second(study, measured):
    figure = dataclasses.replace(of(study, "3"), draws="series", metric="link_utilization", lines="flows")
    rows = study_figures.rows(figure, measured)
    assert [row for row in rows if row["line"] == "1, link bottleneck"][:2] == [
        {"line": "1, link bottleneck", "x": 0, "median": 1.0, "panel": ""},
        {"line": "1, link bottleneck", "x": 1, "median": 0.25, "panel": ""},
    ]  # fmt: skip
    assert "share of each link" in study_charts.svg(figure, rows)


@pytest.mark.parametrize("draws", ["curves", "cdf", "series", "heatmap"])
def test_every_kind_is_drawn(study, measured, draws):
    figure: Figure = dataclasses.replace(of(study, "3"), draws=draws, x="flows", y="algorithm", published=())
    assert study_charts.svg(figure, study_figures.rows(figure, measured)).startswith("<svg")


def test_a_site_of_a_study_has_a_page_for_each_and_a_scoreboard_of_every_claim(study, measured, tmp_path):
    results = tmp_path / "r.jsonl"
    results.write_bytes(b"".join(store.dumps(one) for found in measured.values() for one in found))
    source = Source([results])
    pages = study_page.pages(source.measurements)
    assert [page.study.name for page in pages] == list(studies.files())
    page = pages[0]
    assert page.name == "study-access-networks.html"
    told = [row.claim.id for section in page.sections for row in section.rows]
    assert sorted(told) == sorted(claim.id for claim in study.claims), "each claim stands on the page once"
    front = site.write(source, tmp_path / "report")
    text = (front.parent / page.name).read_text()
    assert "<svg" in text and "D06" in text and "Bequant" in text
    assert "Medians with their confidence intervals; hollow marks are published values." in text
    board = (front.parent / "studies.html").read_text()
    assert page.name in board
    for one in pages:
        assert all(f">{claim.id}<" in board for claim in one.study.claims), one.name
        assert [row.claim.id for row in one.rows] == [claim.id for claim in one.study.claims]
    claims = sum(len(one.study.claims) for one in pages)
    assert sum(study_page.totals(pages).values()) == claims
    assert f'Of {claims} <a href="studies.html">claims of published studies</a>' in front.read_text()


def test_a_caption_says_what_is_drawn(study, measured, tmp_path, monkeypatch):
    captions = {"series": "The first trial.", "cdf": "All trials taken together.", "heatmap": "Medians."}
    results = tmp_path / "r.jsonl"
    results.write_bytes(b"".join(store.dumps(one) for found in measured.values() for one in found))
    page, *rest = study_page.pages(Source([results]).measurements)
    drawn = [
        dataclasses.replace(page.sections[0], figure=dataclasses.replace(of(study, "3"), draws=draws))
        for draws in captions
    ]
    made = [dataclasses.replace(page, sections=tuple(drawn)), *rest]
    monkeypatch.setattr(study_page, "pages", lambda measurements: made)
    front = site.write(Source([results]), tmp_path / "report")
    text = (front.parent / page.name).read_text()
    assert re.findall("<figcaption>(.*?)</figcaption>", text) == list(captions.values())


def test_cells_alone_make_no_page(study):
    assert study_page.pages(helpers.measurements([0.5] * 5)) == []
