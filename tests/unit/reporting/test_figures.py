"""Figures of documents that are also in files: they are the same."""

import collections
import csv
import functools
import re
import types

import score_why

from conformance.catalogue import documents, mutant_record
from conformance.commands import false_alarms
from conformance.commands import mutants as testing
from conformance.model.setting import Cell
from conformance.model.studies import mutants
from conformance.model.verdict import Status, overall
from conformance.support import paths

_DOCS = paths.PACKAGE.parent / "docs"
_MUTANTS = (_DOCS / "findings-mutants.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (\S+) \| (\S+) \| (?:(\S+) (\S+): ([\d.]+), permitted ([\d.]+)\.\.([\d.]+))? ?\| \d+ \|$", re.M)
#: of the mutants, those whose top suspect has to be the right one
_LEAST_TOP = 0.8


def _unwrapped(text):
    """The words of a page or of a part of it, wherever its lines break."""
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
    record = false_alarms.Record.load()
    runs = [run for algorithm in false_alarms.REFERENCES for run in record.runs(algorithm).values()]
    alarms = sum(run.status is Status.VIOLATES for run in runs)
    assert alarms <= false_alarms.MOST * len(runs)
    text = _unwrapped(_MUTANTS)
    assert f"**False alarms: {alarms or 'none'} in {len(runs)} runs**" in text
    assert f"in at most {100 * mutants.upper_bound(alarms, len(runs)):.1f} % of runs" in text
    assert f"{sum(run.trials for run in runs):,} trials" in text


def test_the_score_of_why_is_that_of_what_was_read_of_the_mutants_traces():
    """Scored anew by today's weights and tolerances, so that a change of them that costs hits is seen."""
    scores = score_why.recorded()
    assert {score.mutant.id for score in scores} == {mutant.id for mutant in testing.corpus()}
    assert all(score.looked for score in scores)
    assert sum(score.rank == 1 for score in scores) >= _LEAST_TOP * len(scores)
    assert _unwrapped(score_why.table(scores)) in _unwrapped((_DOCS / "findings-why.md").read_text(encoding="utf-8"))


#: of the published cells, what each metric's columns are called: verdict, and the interval's ends
_PUBLISHED = {
    "heatmap": ("verdict", "utilization_low", "utilization_high"),
    "loss": ("lost_verdict", "lost_low", "lost_high"),
}


def test_the_published_table_is_by_the_zones_that_ship():
    """Five trials: the interval is from the least to the most, and five outside are no chance (matrix.py, 60 cells)."""
    root = paths.PACKAGE.parent
    zone_of = functools.cache(documents.zone_of)
    found = collections.defaultdict(collections.Counter)
    with open(root / "reports" / "published" / "data" / "cells.csv", encoding="utf-8", newline="") as f:
        for row in csv.DictReader(f):
            for kind, (verdict, low, high) in _PUBLISHED.items():
                if row[verdict] == Status.ERROR:
                    found[row["stack"], row["algorithm"]][Status.ERROR] += 1
                elif row[verdict] != "not judged":
                    permitted = zone_of(row["algorithm"], kind, row["profile"]).intervals[Cell.parse(row["cell"])]
                    status = _status(permitted, float(row[low]), float(row[high]))
                    found[row["stack"], row["algorithm"]][status] += 1
    text = (root / "docs" / "matrix.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+) \| (\S+) \| [^|]+ \| (\S+) \| (\d+) of 60", text, re.M)
    assert found.keys() == {(stack, algorithm) for stack, algorithm, *_ in rows}
    for stack, algorithm, status, n in rows:
        count = found[stack, algorithm]
        worst = overall(types.SimpleNamespace(status=one) for one in count)
        assert (status, int(n)) == (str(worst), count[worst]), (stack, algorithm)


def _status(permitted, low, high):
    if low in permitted and high in permitted:
        return Status.CONFORMS
    return Status.VIOLATES if high < permitted.low or low > permitted.high else Status.INCONCLUSIVE
