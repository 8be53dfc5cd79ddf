"""Read a SplitZone from its JSON document; the schema is conformance/schemas/split-zone.json."""

import collections
from collections.abc import Mapping
from typing import Any

from conformance.model import grid
from conformance.model.errors import UserError, located
from conformance.model.place import Cell
from conformance.model.split import split_paths as model
from conformance.model.split import split_rates
from conformance.model.split.split_zone import PREDICTIONS, Check, PathCheck, ShareCheck, SplitZone
from conformance.model.zone import Interval, Margin, interval_from_json


def from_json(data: Mapping[str, Any], where: object) -> SplitZone:
    """Build a SplitZone from a document that satisfies the schema; `where` names it in errors. Raises UserError."""
    references, rule = data["references"], data["margin_rule"]
    checks: list[Check] = [
        _path_check(entry, f"{where}: /paths/{at}", references, rule) for at, entry in enumerate(data["paths"])
    ]
    rows: dict[tuple[str, split_rates.Filter], dict[model.PathClass, Interval]] = collections.defaultdict(dict)
    for at, entry in enumerate(data["shares"]):
        pointer = f"{where}: /shares/{at}"
        key = entry["grid"], split_rates.Filter(entry["gain_above"], entry["utilization_above"])
        path_class = model.PathClass(entry["class"])
        if path_class in rows[key]:
            raise UserError(f"{pointer}: {path_class} is listed twice for this grid and filter")
        rows[key][path_class] = interval_from_json(entry, references, Margin.of(rule), pointer)
    for (name, filter_), permitted in rows.items():
        with located(f"{where}: /shares"):
            classes = {path.path_class for path in model.paths(grid.cells(name))}
        if not set(permitted) <= classes:
            absent = next(iter(set(permitted) - classes))
            raise UserError(f"{where}: /shares: grid {name} has no path of class {absent}")
        checks.append(ShareCheck(grid=name, filter=filter_, permitted=permitted))
    with located(f"{where}: /default_grid"):
        grid.cells(data["default_grid"])
    with located(f"{where}: /small_packets"):
        small = {Cell.parse(name): factor for name, factor in data.get("small_packets", {}).items()}
    digest = data.get("path_profile_digest")
    if digest is None and any(check.measured for check in checks):
        raise UserError(f"{where}: /path_profile_digest: missing, but paths were measured", "derive the zone again")
    fields = (
        "id", "algorithm", "algorithm_version", "profile", "profile_digest", "transfer_s", "default_grid",
        "margin_rule", "references",
    )  # fmt: skip
    return SplitZone(
        checks=tuple(checks), path_profile_digest=digest, small_packets=small, **{name: data[name] for name in fields}
    )


def _path_check(
    entry: Mapping[str, Any], pointer: str, references: Mapping[str, Any], rule: Mapping[str, Any]
) -> PathCheck:
    with located(f"{pointer}/path"):
        path = model.Path.parse(entry["path"])
    if path.path_class != entry["class"]:
        raise UserError(f"{pointer}: path {path.id} is of class {path.path_class}, not {entry['class']}")
    if path.end_to_end is None:
        raise UserError(f"{pointer}: path {path.id} amounts to no cell of the grid")
    margin = Margin.of(rule)
    return PathCheck(
        path=path,
        permitted={name: interval_from_json(entry[name], references, margin, pointer) for name in PREDICTIONS},
        measured=interval_from_json(entry["measured"], references, margin, pointer) if "measured" in entry else None,
    )
