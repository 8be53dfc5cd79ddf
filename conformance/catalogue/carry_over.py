"""Bring zone documents up to the present format and rules: what `conformance zones fmt` does first.

The measured bases of each cell stay. What follows from them (margins, bounds, what documents say, whether a cell is
counted) is computed anew. Before format 2, a cell held the range of its reference's trials, but not the trials. Such a
basis keeps its range, and is judged by it, until the zone is derived anew from trials.
"""

from collections.abc import Mapping
from typing import Any

from conformance.catalogue import bases, derive, documents
from conformance.model import zone as zones
from conformance.model.place import Cell
from conformance.model.zone import Margin


def carried_over(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a zone document of any format, converted to the present format and rules. Raises UserError."""
    rule = derive.margin_rule(document["metric"], document["id"])
    if "points" in document:
        points = [_point(entry, document["metric"], rule) for entry in document["points"]]
        return {**document, "margin_rule": rule, "points": points}
    cells = [_cell(entry, document, rule) for entry in document["cells"]]
    said = {basis["reference"] for cell in cells for basis in cell["bases"][1:]}
    own = {cell["bases"][0]["reference"] for cell in cells}
    references = {
        name: about
        for name, about in document["references"].items()
        if name in own or not said or (name in said and bases.is_measured(about))
    }
    return {
        **document,
        "format": derive.FORMAT,
        "margin_rule": rule,
        "references": {**references, **bases.document_references(document["algorithm"], said)},
        "cells": cells,
    }


def _point(entry: Mapping[str, Any], metric: str, rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point of a scenario with its values computed by the rule; no document says anything about points."""
    place = zones.place_of(entry)
    made = derive.entry(place, zones.bases_from_json(entry), metric, Margin.of(rule, place), None, counts_all=False)
    kept = {name: entry[name] for name in ("digest", "own_kind") if name in entry}
    return {**made, **kept}


def _cell(entry: Mapping[str, Any], document: Mapping[str, Any], rule: Mapping[str, Any]) -> dict[str, Any]:
    cell = Cell(entry["bandwidth_mbps"], entry["one_way_delay_ms"], entry["loss_pct"])
    measured = bases.measured(zones.bases_from_json(entry), document["references"])
    setting = documents.profile(document["profile"], cell)
    said = bases.documented(document["algorithm"], document["metric"], setting)
    return derive.entry(cell, measured, document["metric"], Margin.of(rule, cell), said, counts_all=False)
