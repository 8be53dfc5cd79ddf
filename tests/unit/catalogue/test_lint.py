"""`conformance zones`: any fault in a file is named with its place; versions are compared; the form is canonical."""

import collections
import copy
import json
import re

import helpers
import pytest
from helpers import JSON, places, refusal, replaced
from hypothesis import HealthCheck, given, settings, strategies as st

from conformance.catalogue import derive, documents, lint
from conformance.commands import zones
from conformance.commands.result import printed
from conformance.model.errors import UserError
from conformance.model.judging.zone import id_parts
from conformance.reporting.text import zones as shown_zones
from conformance.support import paths, schema

SHIPPED = paths.data("zones", "reno", "heatmap-packets.json")
DOCUMENT = json.loads(SHIPPED.read_text())


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a document where a zone's file could be, and returns its path."""

    def write(document):
        path = tmp_path / "heatmap-packets.json"
        text = derive.dumps(document) if isinstance(document, dict) and "cells" in document else document
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return path

    return write


def changed(**changes):
    return {**copy.deepcopy(DOCUMENT), **changes}


def with_cell(at=8, basis=None, of=0, **changes):
    """Return the document with changes to a cell and to one of its bases."""
    document = copy.deepcopy(DOCUMENT)
    document["cells"][at].update(changes)
    document["cells"][at]["bases"][of].update(basis or {})
    return document


def test_a_cell_with_a_margin_above_30_percent_is_not_counted(tmp_path):
    document = json.loads(SHIPPED.with_name("loss-packets.json").read_text())
    path = tmp_path / "loss-packets.json"
    path.write_text(json.dumps(document))
    lint.check(path)
    (cell,) = [one for one in document["cells"] if (one["one_way_delay_ms"], one["loss_pct"]) == (80, 0)]
    assert not cell.pop("counted")
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=r"counted with margin 173 % .* set by the farthest of aioquic.*; above 30"):
        lint.check(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "words"),
    [
        (changed(id="cubic/heatmap-packets"), "/id: 'cubic/heatmap-packets' does not begin with the algorithm"),
        (changed(id="reno/other"), "/id: 'reno/other' does not match the file's name"),
        (changed(profile_digest="0" * 16), "/profile_digest: profile packets now has digest"),
        (changed(metric="goodput"), "/metric: 'goodput' is not one of"),
        (changed(smoke=[], cells=DOCUMENT["cells"][:-1]), "/cells: cell 10mbps-100ms-4pct of the grid is missing"),
        (changed(cells=DOCUMENT["cells"] + DOCUMENT["cells"][:1]), "/cells/30: cell 10mbps-1ms-0pct is listed twice"),
        (changed(smoke=["10mbps-20ms-9pct"]), "/smoke/[0-9]+: cell 10mbps-20ms-9pct has no interval"),
        (with_cell(low=0.9), "/cells/8: low 0.9 is above high .* in cell 10mbps-20ms-3pct"),
        (with_cell(low=0.0, high=0.01), "/cells/8: the reference's own median"),
        (with_cell(loss_pct=99), "/cells/8: loss_pct is 99"),
        (with_cell(basis={"reference": "nobody"}), "/cells/8: reference 'nobody' is not among /references"),
        (with_cell(basis={"values": [0.19] * 60}, of=1), "/cells/8/bases: other values follow from rfc5681-played"),
        (with_cell(counted=False), "/cells/8/counted: it is not counted, but it can detect a shift of 30%"),
        (with_cell(small_packets=0.5), "/cells/8/bases: other values follow from rfc5681-played"),
        (with_cell(at=0, small_packets=0.5), "/cells/0/bases: no document says anything here"),
        (with_cell(basis={"values": [0.15] * 4}), "/cells/8/bases/0/values: "),
        (with_cell(high=5), "/cells/8/high: 5 is above the greatest possible utilization, 1"),
        (
            with_cell(low=0.0, high=1.0),
            r"/cells/8: 0..1 does not follow from the margin rule, but 0.1.*, in cell 10mbps-20ms-3pct; derive the z",
        ),
        (
            changed(margin_rule={**DOCUMENT["margin_rule"], "relative": 5}),
            "/margin_rule/relative: .*, but the rule for all zones",
        ),
        (with_cell(basis={"values": [0.171] * 61}), "/cells/8/bases/0: 61 trials, but its reference has 60 per cell"),
        (changed(smoke=[], cells=DOCUMENT["cells"][:1]), "/cells: cell 10mbps-1ms-1pct of the grid is missing"),
        (changed(metric="lost_pct"), "/metric: 'lost_pct', but zones called heatmap-packets are about utilization"),
        (
            changed(profile="atc25"),
            "/profile: 'atc25', but zones called heatmap-packets are under packets; call the file heatmap.json",
        ),
        (changed(profile="startup"), "/profile: 'startup', but .* under packets; call the file otherwise"),
        (changed(profile="atc26"), "/profile: scenario 'atc26' is not known"),
        (changed(smoke=["x"]), "/smoke/0: cell 'x' is not of the form"),
        (with_cell(low=float("nan")), "/cells/8/low: nan is not between -1e"),
        (with_cell(high=10**400), "/cells/8/high: 1000.*0 is not between -1e"),
    ],
)
def test_a_mistake_is_named_with_its_place(file, document, words):
    path = file(document)
    with pytest.raises(UserError, match=words) as error:
        lint.check(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"a": NaN}', '{"id": 1, "id": 1}', "\x00", "\ud800", "[" * 100_000]
)
def test_what_is_no_document_is_said_so(file, text):
    path = file(text)
    assert str(path) in refusal(lint.check, path)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.data())
def test_whatever_stands_there_the_place_is_named(tmp_path, data):
    place = data.draw(st.sampled_from([place for place in places(DOCUMENT) if place != ("$schema",)]))
    document = replaced(DOCUMENT, place, data.draw(JSON))
    path = tmp_path / "heatmap-packets.json"
    path.write_text(json.dumps(document))
    try:
        lint.check(path)
    except UserError as error:
        assert str(error).startswith(f"{path}: /")
        assert "\n" not in str(error)


@pytest.mark.slow
def test_two_zones_may_not_have_one_id(tmp_path):
    (tmp_path / "a").mkdir()
    copied = tmp_path / "a" / SHIPPED.name
    copied.write_text(SHIPPED.read_text())
    assert "is also the id of" in refusal(list, lint.check_all([SHIPPED, copied]))


def backwards(value):
    """Return the same document with the names of all its objects in reverse order."""
    if isinstance(value, list):
        return [backwards(one) for one in value]
    return {k: backwards(v) for k, v in reversed(value.items())} if isinstance(value, dict) else value


@pytest.mark.slow
def test_one_form_is_canonical_to_the_byte_and_written_only_when_asked(tmp_path):
    path, text = tmp_path / SHIPPED.name, SHIPPED.read_text()
    document = json.loads(text)
    document["cells"] = document["cells"][::-1]
    document["cells"][0]["bases"][0]["values"].reverse()
    for other in (json.dumps(document), json.dumps(backwards(json.loads(text))), text.replace("\n", "\r\n")):
        path.write_bytes(other.encode())
        assert not lint.format_file(path, write=False)
        assert not lint.format_file(path, write=True)
        assert lint.format_file(path, write=False)
        assert path.read_text() == text


def shown(compute, *arguments, width=160):
    """Return a command's exit status and output; check its document against its schema."""
    found = compute(*arguments)
    schema.check(f"zones-{compute.__name__}", json.loads(json.dumps(printed(found))), compute.__name__)
    show = {zones.diff: shown_zones.show_difference, zones.show: shown_zones.show_zone}[compute]
    return found.exit_status, helpers.shown(show, found, width=width)


def test_versions_of_a_zone_are_compared(file):
    assert shown(zones.diff, SHIPPED, SHIPPED) == (0, "reno/heatmap-packets: both permit the same in 30 cells\n")
    newer = file(with_cell(high=0.9))
    status, text = shown(zones.diff, SHIPPED, newer)
    assert status == 1
    assert "1 cell differs" in text
    assert "..0.900" in text
    for change, words in (({"small_packets": 0.5}, "x 0.5 at 1200 bytes"), ({"counted": False}, "not judged")):
        status, text = shown(zones.diff, SHIPPED, file(with_cell(**change)))
        assert status == 1 and "1 cell differs" in text and words in text
    status, text = shown(zones.diff, SHIPPED, file(changed(by_kind=True)))
    assert status == 1 and "judged by_kind: False -> True" in text
    other_rule = file(changed(margin_rule={**DOCUMENT["margin_rule"], "relative": 0.2}))
    status, text = shown(zones.diff, SHIPPED, other_rule)
    assert status == 1 and "margin rule, relative: 0.1 -> 0.2" in text
    assert "metric differs" in refusal(shown, zones.diff, SHIPPED, paths.data("zones", "reno", "loss-packets.json"))


def test_the_split_part_of_a_zone_is_drawn():
    status, text = shown(zones.show, "cubic/split-packets")
    assert status == 0
    assert "10mbps-100ms-0pct+10mbps-1ms-4pct (class I near)" in text and "split, predicted" in text
    assert "share of paths with gain > 3x, grid 10mbps" in text and "class II" in text


def test_a_zone_is_drawn_by_its_id():
    _, text = shown(zones.show, "reno/heatmap-packets")
    assert "0.29..0.41" in text
    assert "reference linux-7.2.11" in text
    small = next(c for c in documents.zone(SHIPPED).intervals.values() if c.high < 0.09)
    assert f"{small.low:.2g}..{small.high:.2g}" in text and "0.00.." not in text
    with pytest.raises(UserError, match="nothing is neither a zone file nor the id of a zone; give an id such as cu"):
        shown(zones.show, "nothing")
    assert "give an id such as reno/heatmap" in refusal(shown, zones.show, "reno")


def test_ids_of_zones_that_ship_are_made_of_folder_and_file():
    for path in documents.zone_files("*"):
        zone = documents.zone(path)
        assert id_parts(zone.id) == (path.parent.name, path.stem) and zone.algorithm == path.parent.name
    assert id_parts("cubic") == ("cubic", "")


def test_no_bound_is_cut_on_a_narrow_terminal():
    _, text = shown(zones.show, "cubic/heatmap", width=80)
    assert "…" not in text and "0.69..0.84" in text
    assert max(map(len, text.splitlines()[1:])) <= 80


@pytest.mark.parametrize(("zone", "width"), [("cubic/heatmap", 80), ("cubic/heatmap", 60), ("reno/heatmap", 80)])
def test_no_number_is_folded_on_a_narrow_terminal(zone, width):
    """A narrow terminal shows the same whole numbers as a wide one."""
    wide, narrow = (
        collections.Counter(re.findall(r"\d[\d.]*", shown(zones.show, zone, width=at)[1].replace("..", " ")))
        for at in (200, width)
    )
    assert narrow == wide


@pytest.mark.slow
def test_zones_that_hold_are_a_document():
    seen = []
    found = zones.check(["cubic/heatmap", "cubic/startup"], seen.append)
    assert [one.zone.id for one in seen] == ["cubic/heatmap", "cubic/startup"] and list(found.zones) == seen
    schema.check("zones-check", printed(found), "zones-check")


@pytest.mark.parametrize("raw", [{}, [], 5, {"references": 1}, {"metric": "utilization", "cells": [{"bases": "x"}]}])
def test_what_is_no_zone_is_no_traceback_of_fmt(tmp_path, raw):
    path = tmp_path / "z.json"
    path.write_text(json.dumps(raw))
    assert "z.json" in refusal(lint.format_file, path, write=False)
