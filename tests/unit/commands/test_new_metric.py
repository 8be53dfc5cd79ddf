"""A new metric needs only a row in the table and a zone's file: then it is judged, gated, drawn and exported."""

import json
import pathlib
import shutil

import fake_room
import helpers
import pytest

from conformance.catalogue import derive, documents, lint
from conformance.model.errors import UserError
from conformance.model.judging.verdict import Status, judge
from conformance.model.judging.zone import Basis
from conformance.model.metrics.metric import Metric
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell
from conformance.reporting import heatmaps
from conformance.reporting.html import cell_page
from conformance.reporting.text import overview, terminal
from conformance.reporting.tools import export
from conformance.results import store
from conformance.support import paths, schema

CELLS = (Cell(10, 20, 1), Cell(10, 40, 1))
GRID = ",".join(cell.id for cell in CELLS)
WASTE = Metric(
    name="waste_pct",
    title="waste",
    noun="waste",
    heading="Waste: share of the link that nobody uses, %",
    unit="%",
    digits=1,
    most=100.0,
    margin=1.0,
    full_scale=100.0,
    column="waste",
    of=lambda measured, group: 100 * (1 - METRICS["utilization"].of(measured, group)) if measured.flows else None,
)


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    """Copy the catalogue, and add a zone of CUBIC's waste and the metric's row in the table; return the folder."""
    shutil.copytree(paths.data("zones"), tmp_path / "zones")
    as_shipped = paths.data
    monkeypatch.setattr(
        paths, "data", lambda *parts: tmp_path.joinpath(*parts) if parts[0] == "zones" else as_shipped(*parts)
    )
    monkeypatch.setitem(METRICS, WASTE.name, WASTE)
    heatmap = json.loads(paths.data("zones", "cubic", "heatmap.json").read_text())
    cells = []
    for entry in heatmap["cells"]:
        cell = Cell(entry["bandwidth_mbps"], entry["one_way_delay_ms"], entry["loss_pct"])
        if cell in CELLS:
            own = entry["bases"][0]
            bases = [{**own, "values": sorted(round(100 * (1 - v), 4) for v in own["values"])}]
            low, high = derive.interval([Basis.of(own["reference"], bases[0]["values"])], WASTE.name)
            cells.append({**cell.to_json(), "low": low, "high": high, "bases": bases})
    zone = {**heatmap, "id": "cubic/waste", "metric": WASTE.name, "cells": cells, "smoke": []}
    zone["margin_rule"] = derive.margin_rule(WASTE.name)
    paths.data("zones", "cubic", "waste.json").write_text(derive.dumps(zone))
    return tmp_path


@pytest.fixture
def gated(catalogue, monkeypatch):
    """Return a function that runs a gate over CELLS with a fake stack of this kind; it gives (result, folder)."""
    monkeypatch.chdir(catalogue)

    def run(kind):
        fake_room.install(kind)
        options = ["--grid", GRID, "--no-why", "--results", f"{kind}.jsonl", "--out", kind]
        done = helpers.invoke("gate", "cubic", *options)
        return done, pathlib.Path(kind)

    return run


def test_its_zone_holds_and_is_found_by_its_file(catalogue):
    assert documents.kinds("atc25")["waste"] == "atc25"
    assert "waste" not in documents.kinds("packets")
    assert documents.marker("waste") == "waste"
    assert lint.check(documents.zone_path("cubic/waste")).metric == "waste_pct"


def test_it_is_gated_and_exported(gated, monkeypatch):
    done, out = gated("good")
    assert done.exit_code == 0, done.output
    assert "zone cubic/waste, cubic/fake/" in done.output
    done, out = gated("bad")
    assert done.exit_code == 1, done.output
    gate = json.loads((out / "gate.json").read_text())
    schema.check("gate", gate, "gate.json")
    (zone,) = [zone for zone in gate["zones"] if zone["zone"] == "cubic/waste"]
    assert (zone["metric"], zone["count"]) == ("waste_pct", {"violates": 2})
    assert "violates cubic/waste at 10mbps-20ms-1pct: above the zone; median 99.900" in done.output
    summary = json.loads((out / "summary.json").read_text())
    schema.check("summary", summary, "summary.json")
    assert summary["schemes"][0]["metrics"]["waste_pct"]["verdict"] == "violates"
    head, *rows = (out / "site" / "data" / "cells.csv").read_text().splitlines()
    (row,) = [dict(zip(head.split(","), row.split(","), strict=True)) for row in rows if GRID.split(",")[0] in row]
    assert (row["waste_pct"], row["waste_verdict"]) == ("99.9", "violates")
    assert json.loads((out / "site" / "data" / "summary.json").read_text())["schemes"] == summary["schemes"]
    monkeypatch.setattr(overview, "_SHOWN", 99)  # also show the values that it would only count
    done = helpers.invoke("export", "matrix", "bad.jsonl", "--out", "matrix.md")
    assert done.exit_code == 0, done.output
    assert f"waste {CELLS[0].id} +" in pathlib.Path("matrix.md").read_text()


def test_it_is_judged_and_drawn(gated):
    _, out = gated("bad")
    measurements = store.read(out / "results.jsonl")
    zone = documents.zone(documents.zone_path("cubic/waste"))
    own = [m for m in measurements if m.trial.setting.cell == CELLS[0]]
    assert judge(zone, CELLS[0], own).status is Status.VIOLATES
    series = heatmaps.all_series(measurements)
    page = next((out / "site").glob("cubic-fake-*.html")).read_text()
    assert "Waste: share of the link that nobody uses, %" in page
    assert "99.9" in page
    assert "waste, %" in cell_page.columns()
    text = helpers.shown(terminal.show, series, width=120)
    assert "violates at 10mbps-20ms-1pct: 99.90 %, permitted" in text
    assert "waste_pct" in {column.name for column in export.columns()}


def test_two_zones_about_the_same_are_refused(catalogue):
    twin = json.loads(documents.zone_path("cubic/waste").read_text())
    paths.data("zones", "cubic", "waste2.json").write_text(derive.dumps({**twin, "id": "cubic/waste2"}))
    with pytest.raises(UserError, match=r"zones cubic/waste and cubic/waste2 both judge waste_pct"):
        heatmaps.all_series(helpers.measurements([0.5]))


def test_a_metric_that_has_no_row_is_refused(catalogue, monkeypatch):
    monkeypatch.delitem(METRICS, WASTE.name)
    with pytest.raises(
        UserError, match=r"waste.json: /metric: 'waste_pct' is not one of the metrics; choose one of util"
    ):
        lint.check(documents.zone_path("cubic/waste"))
