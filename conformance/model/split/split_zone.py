"""Judge what a connection-splitting proxy may gain for an algorithm, as its heatmap's zone predicts it.

All that is permitted follows from that zone when it is judged. A PathCheck has a representative path, and the
permissible utilization of the split and of the end-to-end connection: what the ends of its cells' intervals predict. So
a stack that is inside the heatmap's zone in these cells is inside here, too. A ShareCheck has a grid, a filter such as
"gains more than 3 times", and the permissible share of each class's paths that pass the filter (shares.py). Transfers
of another length are another profile, so they are never judged by the same zone.

Connections that are really split are judged at the points of scenarios/split.json, by zones of their own.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from conformance.model.judging import grid, verdict
from conformance.model.judging.verdict import Status
from conformance.model.judging.zone import REFERENCE_PACKET_BYTES, Basis, Interval, Margin, Zone, size_factor
from conformance.model.metrics.metric import RELATIVE_MARGIN
from conformance.model.metrics.table import UTILIZATION
from conformance.model.networks.place import Cell
from conformance.model.rounding import rounded_outward
from conformance.model.split import split_paths as model
from conformance.model.split import split_rates
from conformance.model.split.split_rates import Bounds
from conformance.model.trials.trial import Measurement

#: {what a path is judged by, as documents call it: as people call it}
PREDICTIONS = {"split": "split, predicted", "end_to_end": "end-to-end, predicted"}
#: grids of shares. The first is the default: it takes minutes, and is all that stacks over UDP have zones for.
GRIDS = ("10mbps", "full")
#: what ids of split parts have after the algorithm
NAMES = ("split", "split-packets")
_MARGIN = Margin(relative=RELATIVE_MARGIN, absolute=UTILIZATION.margin)
_PREDICT = {"split": model.predict_split, "end_to_end": model.predict_end_to_end}


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
    """A representative path, and the zone of the cells that predict its utilization."""

    path: model.Path
    heatmap: Zone

    @property
    def id(self) -> str:
        return f"{self.path.path_class}-{self.path.id}".replace(" ", "-")

    @property
    def name(self) -> str:
        return f"{self.path.id} (class {self.path.path_class})"

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(dict.fromkeys(cell for cell in self.path.cells if cell is not None))

    @functools.cached_property
    def permitted(self) -> Mapping[str, Interval]:
        """{name of a prediction: Interval}, from the ends of the intervals of the path's cells."""
        return {of: self._interval(of) for of in PREDICTIONS}

    def _interval(self, of: str) -> Interval:
        by_cell = self.heatmap.intervals

        def predicted(utilization: Callable[[Interval], float]) -> float:
            rate = _PREDICT[of](self.path, {c: utilization(by_cell[c]) * c.bandwidth_mbps for c in self.cells})
            assert rate is not None  # all of its cells are there
            return rate / self.path.bandwidth_mbps

        low, high = rounded_outward(predicted(lambda cell: cell.low), predicted(lambda cell: cell.high))
        basis = Basis(
            reference=by_cell[self.cells[0]].basis.reference,
            n=min(by_cell[cell].basis.n for cell in self.cells),
            median=round(predicted(lambda cell: cell.basis.median), 4),
            min=round(predicted(lambda cell: cell.basis.min), 4),
            max=round(predicted(lambda cell: cell.basis.max), 4),
        )
        return Interval(low=low, high=high, bases=(basis,), margin=_MARGIN)

    def values(self, rates: split_rates.Rates) -> dict[str, Bounds | None]:
        """Return {what is judged: its (low, high), or None if it is not known}."""
        prediction = split_rates.predict(self.path, rates)
        return {name: prediction.utilization(name) for name in PREDICTIONS}

    def in_doubt(self, what: str, rates: split_rates.Rates) -> set[Cell]:
        """Return the cells whose rates may decide the value `what`."""
        return split_rates.predict(self.path, rates).rests_on(what, rates)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareCheck:
    """The share of a grid's paths that pass a filter, by path class, and the zone of the grid's cells."""

    grid: str
    filter: split_rates.Filter
    heatmap: Zone

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

    @functools.cached_property
    def permitted(self) -> Mapping[str, Interval]:
        """{path class: Interval}, by the trials that the bases of the grid's cells record."""
        from conformance.model.split import shares  # numpy takes a while to import, and only this needs it

        bases = [self.heatmap.intervals[cell].basis for cell in self.cells]
        n = min(basis.n for basis in bases)
        by_class = shares.permitted(self.grid, tuple(basis.values for basis in bases))[self.filter]
        return {
            path_class: Interval(
                low=share.low,
                high=share.high,
                bases=(Basis(reference=bases[0].reference, n=n, median=share.median, min=share.min, max=share.max),),
                margin=_MARGIN,
            )
            for path_class, share in by_class.items()
        }

    def values(self, rates: split_rates.Rates) -> dict[str, Bounds | None]:
        """Return {what is judged: its (low, high)}."""
        predictions = [split_rates.predict(path, rates) for path in model.paths(self.cells)]
        return {path_class: count.share for path_class, count in split_rates.count(predictions, self.filter).items()}

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
    """The split part of the zone of a heatmap. Its id is that of the heatmap, with another word: cubic/split."""

    heatmap: Zone

    @property
    def id(self) -> str:
        return self.heatmap.id.replace("/heatmap", "/split")

    @property
    def algorithm(self) -> str:
        return self.heatmap.algorithm

    @property
    def profile(self) -> str:
        return self.heatmap.profile

    def digest_at(self, cell: object) -> str:
        """Return the digest of the settings that the zone judges, which is the same for each cell."""
        return self.heatmap.profile_digest

    @property
    def references(self) -> Mapping[str, Mapping[str, object]]:
        return self.heatmap.references

    @property
    def metric(self) -> str:
        return "split"

    @property
    def intervals(self) -> dict[Place, Interval]:
        """{Place: Interval} of all checks: paths first."""
        return {Place(check.name, _called(what)): i for check in self.checks for what, i in check.permitted.items()}

    def sizes(self, measured: Mapping[Cell, Sequence[Measurement]]) -> dict[Cell, float]:
        """Return {cell: rate relative to that with full packets, by the packets' size alone}, unless that is 1."""
        factors = {
            cell: size_factor(self.heatmap.intervals[cell].small_packets, verdict.packet_bytes(measurements))
            for cell, measurements in measured.items()
        }
        return {cell: factor for cell, factor in factors.items() if factor != 1.0}

    @functools.cached_property
    def checks(self) -> tuple[Check, ...]:
        """A path of each class, at the default grid's rate, and each filter of each grid whose trials are known."""
        known = self.heatmap.intervals
        grids = [name for name in GRIDS if all(c in known and known[c].basis.values for c in grid.cells(name))]
        bandwidth_mbps = grid.cells(GRIDS[0])[0].bandwidth_mbps
        paths = model.representative_paths(bandwidth_mbps).values() if grids else ()
        return (
            *(PathCheck(path=path, heatmap=self.heatmap) for path in paths),
            *(ShareCheck(grid=name, filter=f, heatmap=self.heatmap) for name in grids for f in split_rates.FILTERS),
        )

    def checks_within(self, cells: Iterable[Cell]) -> tuple[Check, ...]:
        """Return the checks that need no other cells than these."""
        known = frozenset(cells)
        return tuple(check for check in self.checks if known.issuperset(check.cells))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """The verdict on one value of a check. `value`: (low, high), which are equal if the value is known.

    `interval`: its interval at `confidence`.
    """

    what: str
    status: Status
    reason: str
    value: tuple[float, float]
    interval: tuple[float, float]
    confidence: float
    permitted: Interval
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
    family: int = 1,
    more: bool = False,
) -> SplitVerdict:
    """Judge a check by {cell: measurements} of one scheme, for all cells that the check needs.

    `family`: how many settings and cells of zones are judged in all. `more`: whether more trials may follow.

    A prediction conforms if all values are inside that the cells' confidence intervals at CONFIDENCE allow. It violates
    if all values are outside that wider intervals allow. At most verdict.ALPHA of runs have any wrong violation in a
    family: each look at each setting has the same share of that. This holds for any number of predictions, because as
    long as the intervals of all cells contain the medians, the intervals of all predictions contain the true
    predictions. Raises UserError for unlike runs.
    """
    given = {cell: measured.get(cell, ()) for cell in check.cells}
    missing = [cell.id for cell, measurements in given.items() if not measurements]
    if missing:
        return SplitVerdict(status=Status.ERROR, reason=f"nothing was measured in {', '.join(missing[:3])}")
    n = max(map(len, given.values()))
    obstacle = verdict.obstacle(zone, [m for measurements in given.values() for m in measurements])
    if obstacle:
        return SplitVerdict(status=obstacle[0], reason=obstacle[1], n=n)
    confidence = 1 - verdict.ALPHA / verdict.LOOKS / family
    sizes = zone.sizes(given)
    values = check.values(split_rates.Rates.medians(measured).over(sizes))
    likely = check.values(split_rates.Rates.intervals(measured, verdict.CONFIDENCE).over(sizes))
    intervals = check.values(split_rates.Rates.intervals(measured, confidence).over(sizes))
    findings = [
        _find(_called(what), value, inner, interval, confidence, permitted, more)
        for what, permitted in check.permitted.items()
        if (value := values[what]) is not None
        and (inner := likely[what]) is not None
        and (interval := intervals[what]) is not None
    ]
    status = verdict.overall(findings)
    reasons = "; ".join(f"{finding.what}: {finding.reason}" for finding in findings if finding.status is status)
    if sizes:
        reasons += f" (rates as with packets of {REFERENCE_PACKET_BYTES} bytes)"
    return SplitVerdict(status=status, reason=reasons, findings=tuple(findings), n=n)


def unclear(
    zone: SplitZone, check: Check, verdict_: SplitVerdict, measured: Mapping[Cell, Sequence[Measurement]]
) -> set[Cell]:
    """Return the cells whose trials might make a verdict clear.

    These may decide the values that are inconclusive or, if none is, those that are not surely inside. They are few of
    the cells that a check needs, as the intervals of most cells change none of these values.
    """
    findings = {f.what: f for f in verdict_.findings if f.status is Status.INCONCLUSIVE} or {
        f.what: f for f in verdict_.findings if not f.sure
    }
    sizes = zone.sizes({cell: measured[cell] for cell in check.cells})
    intervals = functools.cache(lambda confidence: split_rates.Rates.intervals(measured, confidence).over(sizes))
    cells: set[Cell] = set()
    for what, permitted in check.permitted.items():
        if (finding := findings.get(_called(what))) is not None:
            # Conforming is decided by the likely intervals, every other outcome by the wide ones.
            conforming = finding.status is Status.INCONCLUSIVE and all(value in permitted for value in finding.value)
            confidence = verdict.CONFIDENCE if conforming else finding.confidence
            cells |= check.in_doubt(what, intervals(confidence))
    return cells


def _called(what: str) -> str:
    return PREDICTIONS.get(what) or f"class {what}"


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
