"""Figures of documents that are also in files: they are the same."""

import re

from conformance import detected, paths, specs

_MUTANTS = (paths.PACKAGE.parent / "docs" / "mutants.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (\S+) \| (\S+) \| (?:(\S+) (\S+): ([\d.]+), permitted ([\d.]+)\.\.([\d.]+))? ?\| \d+ \|$", re.M)


def test_the_mutants_score_is_what_is_recorded_and_by_the_zones_that_ship():
    rows = _ROW.findall(_MUTANTS)
    known = {mutant for about in detected.load().zones.values() for mutant in about["rejects"]}
    assert {name for name, verdict, *_ in rows if verdict == "detected"} == known
    for _, verdict, zone_id, cell, value, low, high in rows:
        if verdict != "detected":
            continue
        by_id = {c.id: permitted for c, permitted in specs.zone(specs.zone_path(zone_id)).intervals.items()}
        assert (float(low), float(high)) == (by_id[cell].low, by_id[cell].high)
        assert not float(low) < float(value) < float(high)


def test_the_score_adds_up():
    rows = _ROW.findall(_MUTANTS)
    told = sum(verdict == "detected" for _, verdict, *_ in rows)
    said = f"**{told} of {len(rows)} detected ({100 * told / len(rows):.1f} %)**, {len(rows) - told} missed"
    assert len(rows) > 50
    assert said in _MUTANTS
