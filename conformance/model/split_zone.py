"""The split part of an algorithm's zone: what a connection-splitting proxy may bring it, by predictions from cells.

The JSON document is the truth (schema: conformance/schemas/split-zone.json); this module reads it, checks what a schema
cannot say, and judges. Two kinds of checks: a representative path, with permissible utilization of the split and of the
end-to-end connection; and, for a grid and a filter such as "gains more than 3 times", the permissible share of the
paths of each class. Transfers of another length are another profile, so they are never judged by the same zone.
"""

import collections
import dataclasses

from conformance.model import gains, grid, verdict
from conformance.model import split as model
from conformance.model.errors import UserError
from conformance.model.verdict import Status
from conformance.model.zone import Interval

#: what a path is judged by. Measurements of a real split connection (two-segment topology) belong here as a third.
PREDICTIONS = {"split": "split, predicted", "end_to_end": "end-to-end, predicted"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PathCheck:
    """A representative path: `permitted` utilization by name of prediction."""

    path: model.Path
    permitted: dict[str, Interval]

    @property
    def id(self):
        return f"{self.path.path_class}-{self.path.id}".replace(" ", "-")

    @property
    def name(self):
        return f"{self.path.id} (class {self.path.path_class})"

    @property
    def cells(self):
        return tuple(dict.fromkeys(self.path.cells))

    def values(self, rates):
        """{what is judged: (low, high) or None}"""
        prediction = gains.predict(self.path, rates)
        return {name: prediction.utilization(name) for name in self.permitted}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareCheck:
    """Of all paths of a grid: `permitted` share of those that pass a filter, by path class."""

    grid: str
    filter: gains.Filter
    permitted: dict[model.PathClass, Interval]

    @property
    def id(self):
        limits = {"gain": self.filter.gain, "use": self.filter.utilization}
        parts = (f"{name}-above-{limit:g}" for name, limit in limits.items() if limit is not None)
        return f"{self.grid}-{'-'.join(parts)}"

    @property
    def name(self):
        return f"share of paths with {self.filter.title}, grid {self.grid}"

    @property
    def cells(self):
        return grid.cells(self.grid)

    def values(self, rates):
        """{what is judged: (low, high) or None}"""
        predictions = [gains.predict(path, rates) for path in model.paths(self.cells)]
        found = gains.count(predictions, self.filter)
        return {path_class: found[path_class].share for path_class in self.permitted}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitZone:
    """`checks` in the order of the document; `default_grid` is what is measured unless a user asks for more."""

    id: str
    algorithm: str
    profile: str
    profile_digest: str
    transfer_s: float
    default_grid: str
    margin_rule: dict
    references: dict
    checks: tuple[PathCheck | ShareCheck, ...]

    @property
    def summary(self):
        paths = sum(isinstance(check, PathCheck) for check in self.checks)
        return f"{self.id}: {paths} paths, {len(self.checks) - paths} shares of paths"

    def checks_within(self, cells):
        """The checks that need no cell but these."""
        known = frozenset(cells)
        return tuple(check for check in self.checks if known.issuperset(check.cells))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One value of a check, judged. `value`: (low, high), equal where known; `interval`: its confidence interval."""

    what: str
    status: Status
    reason: str
    value: tuple[float, float]
    interval: tuple[float, float]
    permitted: Interval


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitVerdict:
    """The worst of a check's findings; none where nothing can be said of the stack."""

    status: Status
    reason: str
    findings: tuple[Finding, ...] = ()


def judge(zone, check, measured, confidence=0.9):
    """Judge a check by {cell: measurements} of one scheme, of all cells that it needs.

    conforms, violates, inconclusive: as a cell is judged, the prediction from medians in the place of the median, and
    in the place of its confidence interval the predictions from the ends of the cells' intervals. A prediction is the
    least of two cells' medians or one alone, so it wrongly violates below a zone with a probability of at most twice
    5 %, above it of at most 5 %; for shares the interval is wider still. Raises UserError for unlike runs.
    """
    measurements = [m for cell in check.cells for m in measured.get(cell, ())]
    missing = [cell.id for cell in check.cells if not measured.get(cell)]
    if missing:
        return SplitVerdict(status=Status.ERROR, reason=f"nothing was measured in {', '.join(missing[:3])}")
    obstacle = verdict.obstacle(zone, measurements)
    if obstacle:
        return SplitVerdict(status=obstacle[0], reason=obstacle[1])
    values = check.values(gains.Rates.medians(measured))
    intervals = check.values(gains.Rates.intervals(measured, confidence))
    findings = tuple(
        _find(str(PREDICTIONS.get(what, f"class {what}")), values[what], intervals[what], permitted)
        for what, permitted in check.permitted.items()
    )
    status = verdict.overall(findings)
    reasons = "; ".join(f"{finding.what}: {finding.reason}" for finding in findings if finding.status is status)
    return SplitVerdict(status=status, reason=reasons, findings=findings)


def _find(what, value, interval, permitted):
    if interval[1] < permitted.low:
        status, reason = Status.VIOLATES, "below the zone"
    elif interval[0] > permitted.high:
        status, reason = Status.VIOLATES, "above the zone"
    elif value[0] in permitted and value[1] in permitted:
        status, reason = Status.CONFORMS, "inside the zone"
    elif value[0] != value[1]:
        status, reason = Status.INCONCLUSIVE, "a transfer timed out, so only a bound is known"
    else:
        side = "below" if value[0] < permitted.low else "above"
        status, reason = Status.INCONCLUSIVE, f"{side} the zone, but not clear of it: more trials needed"
    return Finding(what=what, status=status, reason=reason, value=value, interval=interval, permitted=permitted)


def from_json(data, where):
    """Build a SplitZone from a document that satisfies the schema; `where` names it in errors. Raises UserError."""
    checks = [_path_check(entry, f"{where}: /paths/{at}", data) for at, entry in enumerate(data["paths"])]
    rows = collections.defaultdict(dict)
    for at, entry in enumerate(data["shares"]):
        pointer = f"{where}: /shares/{at}"
        key = entry["grid"], gains.Filter(entry["gain_above"], entry["utilization_above"])
        path_class = model.PathClass(entry["class"])
        if path_class in rows[key]:
            raise UserError(f"{pointer}: {path_class} stands twice for this grid and filter")
        rows[key][path_class] = _interval(entry, pointer, data)
    for (name, filter_), permitted in rows.items():
        classes = {path.path_class for path in model.paths(grid.cells(name))}
        if not set(permitted) <= classes:
            absent = next(iter(set(permitted) - classes))
            raise UserError(f"{where}: /shares: grid {name} has no path of class {absent}")
        checks.append(ShareCheck(grid=name, filter=filter_, permitted=permitted))
    grid.cells(data["default_grid"])
    fields = ("id", "algorithm", "profile", "profile_digest", "transfer_s", "default_grid", "margin_rule", "references")
    return SplitZone(checks=tuple(checks), **{name: data[name] for name in fields})


def _path_check(entry, pointer, data):
    path = model.Path.parse(entry["path"])
    if path.path_class != entry["class"]:
        raise UserError(f"{pointer}: path {path.id} is of class {path.path_class}, not {entry['class']}")
    if path.end_to_end is None:
        raise UserError(f"{pointer}: path {path.id} composes to no cell of the grid")
    return PathCheck(path=path, permitted={name: _interval(entry[name], pointer, data) for name in PREDICTIONS})


def _interval(entry, pointer, data):
    low, high, basis = entry["low"], entry["high"], entry["basis"]
    if not low <= high:
        raise UserError(f"{pointer}: low {low:g} is above high {high:g}")
    if basis["reference"] not in data["references"]:
        raise UserError(f"{pointer}: reference {basis['reference']!r} is not among /references")
    if not low <= basis["median"] <= high:
        raise UserError(f"{pointer}: the reference's own median {basis['median']:g} is outside the interval")
    return Interval(low=low, high=high, basis=basis)
