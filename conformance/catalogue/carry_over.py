"""Carry zone documents of earlier formats over to the present one: what `conformance zones fmt` does first.

Before format 2 a cell held the range of its reference's trials, and no trials. What is known of them stays known: the
basis keeps its range, and is judged by it, until the zone is derived anew from trials.
"""

import copy
from collections.abc import Mapping
from typing import Any

from conformance.catalogue import derive, derive_split, documents
from conformance.model import zone
from conformance.model.metrics import UTILIZATION
from conformance.model.setting import Cell
from conformance.model.zone import Basis, Margin


def carried_over(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a zone document of any format in the present one; the same where it is. Raises UserError."""
    made = copy.deepcopy(dict(document))
    if made.get("format", 1) >= derive.FORMAT or any("basis" not in cell for cell in made["cells"]):
        return made
    made["format"] = derive.FORMAT
    made["margin_rule"] = derive.margin_rule(made["metric"], made["id"])
    made["cells"] = [_cell(entry, made) for entry in made["cells"]]
    further = [zone.basis_from_json(basis) for cell in made["cells"] for basis in cell["bases"][1:]]
    made["references"] = {**made["references"], **derive.document_references(made["algorithm"], further)}
    return made


def split_carried_over(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same of a zone's split part, whose intervals follow from cells as they did."""
    measured = any("measured" in path for path in document["paths"])
    return {**document, "margin_rule": derive_split.margin_rule(measured)}


def _cell(entry: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: entry["basis"][name] for name in ("reference", "n", "median", "min", "max")}
    cell = Cell(entry["bandwidth_mbps"], entry["one_way_delay_ms"], entry["loss_pct"])
    bases, more = [Basis(**known)], {}
    documented = None
    if document["metric"] == UTILIZATION.name:
        documented = derive.played_bases(document["algorithm"], documents.profile(document["profile"], cell))
    if documented:
        bases += documented[0]
        more = {"small_packets": documented[1]}
    low, high = derive.interval(bases, document["metric"], Margin.of(document["margin_rule"], cell))
    further = [{"reference": basis.reference, "values": list(basis.values)} for basis in bases[1:]]
    return {**cell.to_json(), "low": low, "high": high, **more, "bases": [known, *further]}
