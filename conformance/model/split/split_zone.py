"""Judge the split part of an algorithm's zone: what a connection-splitting proxy may gain, predicted and measured.

The zone's JSON document is authoritative (split_document.py reads it). It has two kinds of checks. A PathCheck has a
representative path, and the permissible utilization of the split and of the end-to-end connection, both predicted from
cells. It may also have the utilization of a connection that the suite's own splitter really splits. A ShareCheck has a
grid, a filter such as "gains more than 3 times", and the permissible share of each class's paths that pass the filter,
predicted. Transfers of another length are another profile, so they are never judged by the same zone.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformance.model import grid, verdict
from conformance.model.errors import UserError
from conformance.model.place import Cell
from conformance.model.split import split_paths as model
from conformance.model.split import split_rates
from conformance.model.split.split_rates import Bounds
from conformance.model.trial import Measurement
from conformance.model.verdict import Status
from conformance.model.zone import REFERENCE_PACKET_BYTES, Interval, Zone, size_factor

#: {what a path is judged by, as documents call it: as people call it}
PREDICTIONS = {"split": "split, predicted", "end_to_end": "end-to-end, predicted"}
MEASURED = "split, measured"


@dataclasses.dataclass(frozen=True, order=True)
class Place:
    """The key of one of a zone's intervals: `where` is the check's name, `what` names the value in it."""

    where: str
    what: str

    @property
    def id(self) -> str:
        return f"{self.where}: {self.what}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PathCheck:
    """A representative path: `permitted` utilization by name of prediction, and `measured` through the splitter.

    `measured` is None if there was no reference.
    """

    path: model.Path
    permitted: Mapping[str, Interval]
    measured: Interval | None = None

    @property
    def id(self) -> str:
        return f"{self.path.path_class}-{self.path.id}".replace(" ", "-")

    @property
    def name(self) -> str:
        return f"{self.path.id} (class {self.path.path_class})"

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(dict.fromkeys(cell for cell in self.path.cells if cell is not None))

    def values(self, rates: split_rates.Rates) -> dict[str, Bounds | None]:
        """Return {what is judged: its (low, high), or None if it is not known}."""
        prediction = split_rates.predict(self.path, rates)
        return {name: prediction.utilization(name) for name in self.permitted}

    def in_doubt(self, what: str, rates: split_rates.Rates) -> set[Cell]:
        """Return the cells whose rates may decide the value `what`."""
        return split_rates.predict(self.path, rates).rests_on(what, rates)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareCheck:
    """The `permitted` share of a grid's paths that pass a filter, by path class. It is predicted, never measured."""

    grid: str
    filter: split_rates.Filter
    permitted: Mapping[model.PathClass, Interval]
    measured: None = None

    @property
    def id(self) -> str:
        limits = {"gain": self.filter.gain, "use": self.filter.utilization}
        parts = (f"{name}-above-{limit:g}" for name, limit in limits.items() if limit is not None)
        return f"{self.grid}-{'-'.join(parts)}"

    @property
    def name(self) -> str:
        return f"share of paths with {self.filter.title}, grid {self.grid}"

    @property
    def cells(self) -> tuple[Cell, ...]:
        return grid.cells(self.grid)

    def values(self, rates: split_rates.Rates) -> dict[str, Bounds | None]:
        """Return {what is judged: its (low, high)}."""
        predictions = [split_rates.predict(path, rates) for path in model.paths(self.cells)]
        found = split_rates.count(predictions, self.filter)
        return {path_class: found[path_class].share for path_class in self.permitted}

    def in_doubt(self, what: str, rates: split_rates.Rates) -> set[Cell]:
        """Return the cells whose rates may decide the value `what`: those of paths that perhaps pass the filter."""
        predictions = [split_rates.predict(p, rates) for p in model.paths(self.cells) if p.path_class == what]
        return {
            cell for prediction in predictions for of in self.filter.in_doubt(prediction)
            for cell in prediction.rests_on(of, rates)
        }  # fmt: skip


Check = PathCheck | ShareCheck


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitZone:
    """`checks` are in the document's order; `default_grid` is what is measured unless a user asks for more.

    `path_profile_digest` is the digest of measured paths' settings, as `profile_digest` is of cells'; None if no path
    is measured.
    """

    id: str
    algorithm: str
    algorithm_version: str
    profile: str
    profile_digest: str
    path_profile_digest: str | None
    transfer_s: float
    default_grid: str
    margin_rule: Mapping[str, Any]
    references: Mapping[str, Mapping[str, Any]]
    checks: tuple[Check, ...]
    #: {cell: factor, see zone.Interval} of cells in which the size of packets matters
    small_packets: Mapping[Cell, float] = dataclasses.field(default_factory=dict)

    def digest_at(self, cell: object) -> str:
        """Return the digest of the settings that the zone judges, which is the same for each cell."""
        return self.profile_digest

    @property
    def summary(self) -> str:
        paths = sum(isinstance(check, PathCheck) for check in self.checks)
        measured = sum(check.measured is not None for check in self.checks)
        also = f" ({measured} measured)" if measured else ""
        return f"{self.id}: {paths} paths{also}, {len(self.checks) - paths} shares of paths"

    @property
    def metric(self) -> str:
        return "split"

    @property
    def intervals(self) -> dict[Place, Interval]:
        """{Place: Interval} of all checks, in the order of the document."""
        return {Place(check.name, _called(what)): i for check in self.checks for what, i in _permitted(check)}

    def sizes(self, measured: Mapping[Cell, Sequence[Measurement]]) -> dict[Cell, float]:
        """Return {cell: rate relative to that with full packets, by the packets' size alone}, unless that is 1."""
        found = {
            cell: size_factor(small, verdict.packet_bytes(measured[cell]))
            for cell, small in self.small_packets.items()
            if cell in measured
        }
        return {cell: factor for cell, factor in found.items() if factor != 1.0}

    def checks_within(self, cells: Iterable[Cell]) -> tuple[Check, ...]:
        """Return the checks that need no other cells than these."""
        known = frozenset(cells)
        return tuple(check for check in self.checks if known.issuperset(check.cells))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """The verdict on one value of a check. `value`: (low, high), which are equal if the value is known.

    `interval`: its interval at `confidence`. `p`: see verdict.Verdict; None for a prediction.
    """

    what: str
    status: Status
    reason: str
    value: tuple[float, float]
    interval: tuple[float, float]
    confidence: float
    permitted: Interval
    p: float | None = None
    #: see verdict.Verdict
    sure: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitVerdict:
    """The worst of a check's findings. `n`: the most trials of one setting.

    There are no findings if nothing can be said about the stack.
    """

    status: Status
    reason: str
    findings: tuple[Finding, ...] = ()
    n: int = 0

    @property
    def sure(self) -> bool:
        """Whether all findings are inside even by the wide intervals that show that a known deviation is gone."""
        return bool(self.findings) and all(finding.sure for finding in self.findings)

    def taken_back(self, reason: str) -> "SplitVerdict":
        """Return the inconclusive verdict that replaces a violation which trials with fresh seeds did not confirm."""
        return dataclasses.replace(self, status=Status.INCONCLUSIVE, reason=reason)

    @property
    def borderline(self) -> bool:
        """Whether a value is outside the zone, but still inconclusive after the usual number of trials."""
        open_ = [f for f in self.findings if f.status is Status.INCONCLUSIVE]
        outside = any(value not in f.permitted for f in open_ for value in f.value)
        return self.status is Status.INCONCLUSIVE and self.n >= verdict.USUALLY_MOST and outside


def judge(
    zone: SplitZone,
    check: Check,
    measured: Mapping[Cell, Sequence[Measurement]],
    through: Sequence[Measurement] | None = None,
    family: int = 1,
    more: bool = False,
) -> SplitVerdict:
    """Judge a check by {cell: measurements} of one scheme, for all cells that the check needs.

    `through`: the same scheme's measurements of the check's path, split; None if it cannot be split, and then the split
    path is not judged. `family`: how many settings (cells and split paths) and cells of zones are judged in all.
    `more`: whether more trials may follow.

    A prediction conforms if all values are inside that the cells' confidence intervals at CONFIDENCE allow. It violates
    if all values are outside that wider intervals allow. A measured path is judged like a cell. At most verdict.ALPHA
    of runs have any wrong violation in a family: each look at each setting has the same share of that. This holds for
    any number of predictions, because as long as the intervals of all cells contain the medians, the intervals of all
    predictions contain the true predictions. Raises UserError for unlike runs.
    """
    given = {cell.id: measured.get(cell, ()) for cell in check.cells}
    if not isinstance(check, PathCheck) or check.measured is None:
        through = None
    elif through is not None:
        given[f"{check.path.id}, split"] = through
    missing = [name for name, measurements in given.items() if not measurements]
    if missing:
        return SplitVerdict(status=Status.ERROR, reason=f"nothing was measured in {', '.join(missing[:3])}")
    n = max(map(len, given.values()))
    obstacle = _obstacle(zone, check, measured, through)
    if obstacle:
        return SplitVerdict(status=obstacle[0], reason=obstacle[1], n=n)
    confidence = 1 - verdict.ALPHA / verdict.LOOKS / family
    sizes = zone.sizes({cell: measured[cell] for cell in check.cells})
    values = check.values(split_rates.Rates.medians(measured).over(sizes))
    likely = check.values(split_rates.Rates.intervals(measured, verdict.CONFIDENCE).over(sizes))
    intervals = check.values(split_rates.Rates.intervals(measured, confidence).over(sizes))
    findings = [
        _find(_called(what), value, inner, interval, confidence, permitted, more)
        for what, permitted in _predicted(check)
        if (value := values[what]) is not None
        and (inner := likely[what]) is not None
        and (interval := intervals[what]) is not None
    ]
    if isinstance(check, PathCheck) and through is not None:
        of_path = _judge_path(zone, check, through, family, more)
        if of_path.value is None or of_path.interval is None:
            return SplitVerdict(status=of_path.status, reason=f"{MEASURED}: {of_path.reason}", n=n)
        findings.append(_finding(of_path, of_path.value, of_path.interval))
    status = verdict.overall(findings)
    reasons = "; ".join(f"{finding.what}: {finding.reason}" for finding in findings if finding.status is status)
    if sizes:
        reasons += f" (rates as with packets of {REFERENCE_PACKET_BYTES} bytes)"
    return SplitVerdict(status=status, reason=reasons, findings=tuple(findings), n=n)


def unclear(
    zone: SplitZone, check: Check, verdict_: SplitVerdict, measured: Mapping[Cell, Sequence[Measurement]]
) -> tuple[bool, set[Cell]]:
    """Return whether more trials of the split path might make a verdict clear, and the cells whose trials might.

    These may decide the values that are inconclusive or, if none is, those that are not surely inside. They are few of
    the cells that a check needs, as the intervals of most cells change none of these values.
    """
    findings = {f.what: f for f in verdict_.findings if f.status is Status.INCONCLUSIVE} or {
        f.what: f for f in verdict_.findings if not f.sure
    }
    sizes = zone.sizes({cell: measured[cell] for cell in check.cells})
    intervals = functools.cache(lambda confidence: split_rates.Rates.intervals(measured, confidence).over(sizes))
    cells: set[Cell] = set()
    for what, permitted in _predicted(check):
        if (finding := findings.get(_called(what))) is not None:
            # Conforming is decided by the likely intervals, every other outcome by the wide ones.
            conforming = finding.status is Status.INCONCLUSIVE and all(value in permitted for value in finding.value)
            confidence = verdict.CONFIDENCE if conforming else finding.confidence
            cells |= check.in_doubt(what, intervals(confidence))
    return MEASURED in findings, cells


def _predicted(check: Check) -> list[tuple[str, Interval]]:
    return list(check.permitted.items())


def _permitted(check: Check) -> Iterator[tuple[str, Interval]]:
    """Yield (what, Interval) of a check."""
    yield from _predicted(check)
    if check.measured:
        yield MEASURED, check.measured


def _called(what: str) -> str:
    return PREDICTIONS.get(what) or (what if what == MEASURED else f"class {what}")


def _obstacle(
    zone: SplitZone, check: Check, measured: Mapping[Cell, Sequence[Measurement]], through: Sequence[Measurement] | None
) -> tuple[Status, str] | None:
    """Return (Status, reason) if measurements say nothing about congestion control, else None.

    Raises UserError if they are of unlike runs or paths.
    """
    cells = [m for cell in check.cells for m in measured[cell]]
    found = verdict.obstacle(zone, cells)
    if through is None or not isinstance(check, PathCheck):
        return found
    runs = {m.trial.run for m in (*cells, *through)}
    if len(runs) > 1 or {m.trial.setting.segments for m in through} != {check.path.segments}:
        raise UserError(f"measurements of different runs or paths at {check.path.id}", "judge each run by itself")
    return found or verdict.obstacle(dataclasses.replace(zone, profile_digest=zone.path_profile_digest or ""), through)


def _judge_path(
    zone: SplitZone, check: PathCheck, through: Sequence[Measurement], family: int, more: bool
) -> verdict.Verdict:
    """Judge a measured path like a heatmap cell, keyed by its point."""
    point, measured = through[0].trial.setting.point, check.measured
    assert measured is not None  # else there is nothing to judge by
    alone = Zone(
        id=zone.id, algorithm=zone.algorithm, metric="utilization", profile=zone.profile,
        profile_digest=zone.path_profile_digest or "", margin_rule=zone.margin_rule, references=zone.references,
        intervals={point: measured}, smoke=(),
    )  # fmt: skip
    return verdict.judge(alone, point, through, family, more)


def _finding(of_path: verdict.Verdict, value: float, interval: Bounds) -> Finding:
    """Return the verdict on a measured path as a Finding."""
    return Finding(
        what=MEASURED, status=of_path.status, reason=of_path.reason, value=(value, value),
        interval=interval, confidence=verdict.CONFIDENCE, permitted=of_path.permitted, p=of_path.p,
        sure=of_path.sure,
    )  # fmt: skip


def _find(
    what: str, value: Bounds, likely: Bounds, interval: Bounds, confidence: float, permitted: Interval, more: bool
) -> Finding:
    if interval[1] < permitted.low:
        status, reason = Status.VIOLATES, "below the zone"
    elif interval[0] > permitted.high:
        status, reason = Status.VIOLATES, "above the zone"
    elif likely[0] in permitted and likely[1] in permitted:
        status, reason = Status.CONFORMS, "inside the zone"
    elif value[0] != value[1]:
        status, reason = Status.INCONCLUSIVE, "a transfer timed out, so only a bound is known"
    elif value[0] in permitted:
        status, reason = verdict.undecided_inside(more)
    else:
        side = "below" if value[0] < permitted.low else "above"
        status, reason = Status.INCONCLUSIVE, f"{side} the zone, but not clear of it: more trials needed"
    return Finding(
        what=what, status=status, reason=reason, value=value, interval=interval, confidence=confidence,
        permitted=permitted,
        sure=status is Status.CONFORMS and interval[0] in permitted and interval[1] in permitted,
    )  # fmt: skip
