"""Figures in documents equal those in the files from which they come."""

import collections
import functools
import json
import re

import pytest
import score_why

from conformance.catalogue import documents, mutant_record, recorded_features, separation
from conformance.commands import export, false_alarms, mutants as testing
from conformance.model.diagnosis import ranking
from conformance.model.judging.verdict import Status
from conformance.reporting import heatmaps
from conformance.reporting.text import overview
from conformance.results import source
from conformance.support import paths

_DOCS = paths.PACKAGE.parent / "docs"
_MUTANTS = (_DOCS / "findings-mutants.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (\S+) \| (\S+) \| (?:(\S+) (\S+): ([\d.]+), permitted ([\d.]+)\.\.([\d.]+))? ?\| \d+ \|$", re.M)
#: least share of each group of mutants whose top suspect has to be the right one
_LEAST_TOP = {"CUBIC, Reno and BBRv1": 0.8, "BBRv2 and BBRv3": 0.55}


def _unwrapped(text):
    """Return a text with all line breaks replaced by spaces."""
    return " ".join(text.split())


def test_the_mutants_score_is_what_is_recorded_and_by_the_zones_that_ship():
    rows = _ROW.findall(_MUTANTS)
    rejected = mutant_record.rejected_by(mutant_record.shipped(), mutant_record.load())
    assert {name for name, verdict, *_ in rows if verdict == "detected"} == {m for m, by in rejected.items() if by}
    for _, verdict, zone_id, cell, value, low, high in rows:
        if verdict != "detected":
            continue
        by_id = {c.id: permitted for c, permitted in documents.zone(documents.zone_path(zone_id)).intervals.items()}
        assert (float(low), float(high)) == (by_id[cell].low, by_id[cell].high)
        assert not float(low) < float(value) < float(high)


def test_the_score_adds_up():
    rows = _ROW.findall(_MUTANTS)
    told = sum(verdict == "detected" for _, verdict, *_ in rows)
    said = f"**{told} of {len(rows)} detected ({100 * told / len(rows):.1f} %)**, {len(rows) - told} missed"
    assert len(rows) > 50
    assert said in _unwrapped(_MUTANTS)


def test_the_false_alarms_are_those_recorded():
    record = false_alarms.Kept()
    runs = [run for algorithm in false_alarms.REFERENCES for run in record.runs(algorithm).values()]
    alarms = sum(run.status is Status.VIOLATES for run in runs)
    assert alarms <= false_alarms.MOST * len(runs)
    text = _unwrapped(_MUTANTS)
    assert f"**False alarms: {alarms or 'none'} in {len(runs)} runs**" in text
    counted = false_alarms.FalseAlarms(runs=tuple(runs), before=0, recorded=None)
    assert f"in at most {100 * counted.at_most_with_95_pct_confidence:.1f} % of runs" in text
    assert f"{sum(run.trials for run in runs):,} trials" in text


@pytest.mark.parametrize("algorithm", false_alarms.REFERENCES)
def test_the_runs_without_a_false_alarm_were_judged_by_the_zones_that_ship(algorithm):
    options = testing.MutantOptions(profile=None, trials=5, max_trials=20, first_seed=1, results="", workers=1)
    zones = testing.zones_of(algorithm, documents.PROFILES["tcp"], options)
    recorded = json.loads(false_alarms.path().read_text(encoding="utf-8"))[algorithm]["about"]
    assert recorded["judged"] == false_alarms.judging_digest(zones)


def test_the_score_of_why_is_that_of_what_was_read_of_the_mutants_traces():
    """The readings are scored with today's weights and tolerances, so a change that loses hits is noticed."""
    scores = score_why.recorded()
    assert [score.mutant for score in scores] == list(testing.corpus())
    assert all(score.looked for score in scores)
    assert {mutant.algorithm for mutant in testing.corpus()} == set().union(*score_why.GROUPS.values())
    for group, least in _LEAST_TOP.items():
        own = [score for score in scores if score.mutant.algorithm in score_why.GROUPS[group]]
        assert sum(score.rank == 1 for score in own) >= least * len(own)
    assert _unwrapped(score_why.table(scores, evidence=False)) in _unwrapped(
        (_DOCS / "findings-why.md").read_text(encoding="utf-8")
    )


def test_what_stands_in_the_place_of_references_is_what_was_read_of_them_with_the_mutants():
    ids = {name: recorded_features.find(name).scheme for name in score_why.OWN_KERNELS}
    anew = score_why.references_text(score_why.with_readings(score_why.recorded_rows(), ids))
    assert score_why.REFERENCES.read_text(encoding="utf-8") == anew


@pytest.mark.parametrize("algorithm", ["cubic", "reno", "bbrv1", "bbrv2", "bbrv3"])
def test_linux_is_no_suspect_by_what_documents_say(algorithm):
    """Otherwise, if the reference's kernel is not built, a stack that behaves like Linux would be a suspect."""
    read = score_why.readings(score_why.recorded_rows()[algorithm])
    assert ranking.suspects(algorithm, read, ranking.documented(algorithm)) == []


@functools.cache
def _published():
    folder = paths.PACKAGE.parent / "reports" / "published"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < _MOST_BYTES
    lines = sorted(
        path for path in folder.iterdir() if path.is_file() and path.name not in ("README.md", "history.json")
    )
    assert {path.suffixes[-2:] == [".jsonl", ".xz"] for path in lines} == {True}
    return source.Source(lines).measurements


#: limit for all published lines together; studies of up to a hundred flows keep the rates of each second
_MOST_BYTES = 8_000_000


@functools.cache
def _series():
    return heatmaps.all_series(_published())


@pytest.mark.slow
def test_the_published_table_is_what_todays_zones_say_of_the_published_lines():
    """`make site` writes the table anew."""
    said = overview.render(_series(), export.called)
    assert said == (paths.PACKAGE.parent / "docs" / "matrix.md").read_text(encoding="utf-8")


def test_the_page_of_zones_counts_the_cells_that_two_zones_have_apart():
    """It counts the cells of the grid (150), by utilization and by loss."""
    names = {"cubic": "CUBIC", "reno": "Reno", "bbrv1": "BBRv1", "bbrv2": "BBRv2", "bbrv3": "BBRv3"}
    found = collections.defaultdict(list)
    for one, other, _, _, cells in separation.apart(names):
        found[one, other].append(len(cells))
    rows = []
    for one in list(names)[:-1]:
        columns = (" / ".join(map(str, found[one, other])) for other in list(names)[1:])
        rows.append(f"| {names[one]} |" + "".join(f" {column} |" if column else " |" for column in columns))
    assert "\n".join(rows) in (_DOCS / "findings-zones.md").read_text("utf-8")
