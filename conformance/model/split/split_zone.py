"""Judge what a connection-splitting proxy may gain for an algorithm, as its heatmap's zone predicts it.

All that is permitted follows from that zone when it is judged. A PathCheck has a representative path, and the
permissible utilization of the split connection: what the ends of its segments' intervals predict. A ShareCheck has a
grid, a filter such as "gains more than 3 times", and the permissible share of each class's paths that pass the filter
(see below). Transfers of another length are another profile, so they are never judged by the same zone.

What follows from cells accuses no stack that its cells do not: what the ends of all intervals predict is permitted, and
a check violates only if one of its cells does.

Connections that are really split are judged at the points of scenarios/split.json, by zones of their own.

The shares follow from the reference's trials in each cell. The interval of a share reaches from the smallest to the
largest of bootstrap replicates, or as far as the intervals of the cells predict, if that is farther. A replicate draws
as many trials of each cell as a run makes by default, with replacement, and takes their median. The filter's limits are
moved by the widest margin of the cells to either side, so that a gain has the margin that a rate has in the heatmap.
"""

import abc
import dataclasses
import functools
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy
import numpy.typing

from conformance.model.judging import grid, statistics, verdict as verdicts, words
from conformance.model.judging.question import MeasuredSettings, Named, Rule
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.judging.zone import (
    NO_MARGIN,
    REFERENCE_PACKET_BYTES,
    Basis,
    Interval,
    Zone,
    kind_of,
    size_factor,
)
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting
from conformance.model.rounding import rounded_outward
from conformance.model.split import split_paths, split_rates
from conformance.model.split.split_paths import Path, PathClass
from conformance.model.split.split_rates import FILTERS, Bounds, Filter
from conformance.model.trials.trial import Measurement

#: grids of shares. The first is the default: it takes minutes, and is all that stacks over UDP have zones for.
GRIDS = ("10mbps", "full")
#: what is permitted if nothing can be said
_ANYTHING = Interval(low=-math.inf, high=math.inf, bases=(), margin=NO_MARGIN)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitCheck(Rule):
    """A rule for values that are predicted from rates of cells, and the zone of the cells that permits them."""

    heatmap: Zone = dataclasses.field(hash=False)

    @property
    def id(self) -> str:
        return zone_id(self.heatmap)

    @property
    def place(self) -> Named:
        return Named(self.name)

    @property
    @abc.abstractmethod
    def name(self) -> str: ...

    @property
    @abc.abstractmethod
    def cells(self) -> tuple[Cell, ...]:
        """The cells that it needs."""

    @property
    @abc.abstractmethod
    def rests_on_judged(self) -> bool:
        """Whether its heatmap judges what it follows from, so that it can tell something."""

    @property
    @abc.abstractmethod
    def permitted(self) -> Mapping[str, Interval]:
        """{what is judged: Interval}."""

    @abc.abstractmethod
    def predicted(self, rates: split_rates.Rates) -> dict[str, Bounds | None]:
        """Return {what is judged: its (low, high), or None if it is not known}."""

    @abc.abstractmethod
    def in_doubt(self, what: str, rates: split_rates.Rates) -> set[Cell]:
        """Return the cells whose rates may decide the value `what`."""

    def judge(self, measured: MeasuredSettings, family: int, more: bool) -> Verdict:
        return judge(self, _by_cell(measured), family, more)

    def unclear(self, verdict: Verdict, measured: MeasuredSettings) -> Collection[Setting]:
        cells = unclear(self, verdict, _by_cell(measured))
        return [setting for setting in measured if setting.cell in cells]

    def fewest(self, family: int, least: int = 1) -> int:
        # Intervals of medians have to be clear at the family's level.
        return next(n for n in itertools.count(least) if 2 / 2**n <= verdicts.level(family))

    def lines(self, verdict: Verdict, before: str | None = None) -> list[tuple[str, str]]:
        """Return all that does not pass. The basis of the first is enough to find the others."""
        wrong = [part for part in verdict.parts if not part.status.passes]
        if not wrong:
            return []
        values = [
            f"{part.what} {' to '.join(f'{value:.3f}' for value in part.values)} ({words.interval(part)})"
            for part in wrong
        ]
        return [
            ("measured", "; ".join(values)),
            ("permitted", "; ".join(map(words.permitted, wrong))),
            ("basis", words.basis(wrong[0].permitted)),
        ]

    def sizes(self, measured: Mapping[Cell, Sequence[Measurement]]) -> dict[Cell, float]:
        """Return {cell: rate relative to that with full packets, by the packets' size alone}, unless that is 1."""
        factors = {
            cell: size_factor(self.heatmap.intervals[cell].small_packets, verdicts.packet_bytes(measurements))
            for cell, measurements in measured.items()
        }
        return {cell: factor for cell, factor in factors.items() if factor != 1.0}


def _by_cell(measured: MeasuredSettings) -> dict[Cell, Sequence[Measurement]]:
    return {setting.cell: measurements for setting, measurements in measured.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PathCheck(SplitCheck):
    """A representative path, and its utilization if it is split: end to end, it is a cell, which the heatmap judges.

    All of its cells have the path's bandwidth.
    """

    path: split_paths.Path

    @property
    def name(self) -> str:
        return f"{self.path.path_class}-{self.path.id}".replace(" ", "-")

    @property
    def where(self) -> str:
        return f"{self.path.id} (class {self.path.path_class})"

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(dict.fromkeys(self.path.segments))

    @property
    def rests_on_judged(self) -> bool:
        return all(self.heatmap.intervals[cell].counted for cell in self.cells)

    @property
    def selection(self) -> tuple[str, str]:
        return "--grid", ",".join(cell.id for cell in self.cells)

    @functools.cached_property
    def permitted(self) -> Mapping[str, Interval]:
        """{"split": Interval}, from the ends of the segments' intervals, and with the bases of the slower segment."""
        segments = [self.heatmap.intervals[cell] for cell in self.cells]
        slower = min(segments, key=lambda segment: segment.basis.median)
        low, high = min(segment.low for segment in segments), min(segment.high for segment in segments)
        return {"split": Interval(low=low, high=high, bases=slower.bases, margin=slower.margin)}

    def predicted(self, rates: split_rates.Rates) -> dict[str, Bounds | None]:
        return {"split": split_rates.predict(self.path, rates).utilization("split")}

    def in_doubt(self, what: str, rates: split_rates.Rates) -> set[Cell]:
        return split_rates.predict(self.path, rates).rests_on(what, rates)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareCheck(SplitCheck):
    """The share of a grid's paths that pass a filter, by path class."""

    grid: str
    filter: split_rates.Filter

    @property
    def name(self) -> str:
        limits = {"gain": self.filter.gain, "use": self.filter.utilization}
        parts = (f"{name}-above-{limit:g}" for name, limit in limits.items() if limit is not None)
        return f"{self.grid}-{'-'.join(parts)}"

    @property
    def where(self) -> str:
        return f"share of paths with {self.filter.title}, grid {self.grid}"

    @property
    def selection(self) -> tuple[str, str]:
        return "--grid", self.grid

    @property
    def cells(self) -> tuple[Cell, ...]:
        return grid.cells(self.grid)

    @property
    def rests_on_judged(self) -> bool:
        # One cell of a grid that is not counted decides few of its paths.
        return not any(kind_of(cell, self.heatmap.metric) in self.heatmap.shown for cell in self.cells)

    @functools.cached_property
    def permitted(self) -> Mapping[str, Interval]:
        """{path class: Interval}, by the intervals of the grid's cells and by the trials that their bases record."""
        by_cell = {cell: self.heatmap.intervals[cell] for cell in self.cells}
        bases = [interval.basis for interval in by_cell.values()]
        n = min(basis.n for basis in bases)
        margin = max((interval.margin for interval in by_cell.values()), key=lambda margin: margin.relative)
        by_class = permitted_shares(self.grid, tuple(basis.values for basis in bases), margin.relative)[self.filter]
        ends = self.predicted(
            split_rates.Rates(
                low={cell: interval.low * cell.bandwidth_mbps for cell, interval in by_cell.items()},
                high={cell: interval.high * cell.bandwidth_mbps for cell, interval in by_cell.items()},
            )
        )
        permitted: dict[str, Interval] = {}
        for path_class, share in by_class.items():
            least, most = rounded_outward(*(ends[path_class] or (share.low, share.high)))
            basis = Basis(reference=bases[0].reference, n=n, median=share.median, min=share.min, max=share.max)
            permitted[path_class] = Interval(
                low=min(share.low, least), high=max(share.high, most), bases=(basis,), margin=margin
            )
        return permitted

    def predicted(self, rates: split_rates.Rates) -> dict[str, Bounds | None]:
        predictions = [split_rates.predict(path, rates) for path in split_paths.paths(self.cells)]
        return {path_class: count.share for path_class, count in split_rates.count(predictions, self.filter).items()}

    def in_doubt(self, what: str, rates: split_rates.Rates) -> set[Cell]:
        """Return the cells of paths that perhaps pass the filter."""
        predictions = [split_rates.predict(p, rates) for p in split_paths.paths(self.cells) if p.path_class == what]
        return {
            cell for prediction in predictions for of in self.filter.in_doubt(prediction)
            for cell in prediction.rests_on(of, rates)
        }  # fmt: skip


def zone_id(heatmap: Zone) -> str:
    """Return the id of the split part of a heatmap's zone: that of the heatmap, with another word."""
    return heatmap.id.replace("/heatmap", "/split")


def checks(heatmap: Zone) -> tuple[SplitCheck, ...]:
    """Return a path of each class, at the default grid's rate, and each filter of each grid that it has."""
    known = heatmap.intervals
    grids = [name for name in GRIDS if all(c in known for c in grid.cells(name))]
    bandwidth_mbps = grid.cells(GRIDS[0])[0].bandwidth_mbps
    paths = split_paths.representative_paths(bandwidth_mbps).values() if grids else ()
    return (
        *(PathCheck(path=path, heatmap=heatmap) for path in paths),
        *(ShareCheck(grid=name, filter=f, heatmap=heatmap) for name in grids for f in split_rates.FILTERS),
    )


def judge(
    check: SplitCheck, measured: Mapping[Cell, Sequence[Measurement]], family: int = 1, more: bool = False
) -> Verdict:
    """Judge a check by {cell: measurements} of one scheme, for all cells that the check needs.

    `family`: how many settings and cells of zones are judged in all. `more`: whether more trials may follow.

    The verdict is the worst of those on its values, which are its parts. A prediction conforms if all values are inside
    that the cells' confidence intervals at CONFIDENCE allow. It violates if all values are outside that wider intervals
    allow, and one of its cells violates, too: so chance in the reference's trials accuses no stack. At most
    verdict.ALPHA of runs have any wrong violation in a family: each look at each setting has the same share of that.
    This holds for any number of predictions, because as long as the intervals of all cells contain the medians, the
    intervals of all predictions contain the true predictions. Raises UserError for unlike runs.
    """
    heatmap, given = check.heatmap, {cell: measured.get(cell, ()) for cell in check.cells}
    missing = [cell.id for cell, measurements in given.items() if not measurements]
    n = max(map(len, given.values()))

    def found(status: Status, reason: str, parts: tuple[Verdict, ...] = ()) -> Verdict:
        return Verdict(
            status=status, zone_id=check.id, place=check.place, permitted=_ANYTHING, reason=reason, n=n, parts=parts,
            sure=bool(parts) and all(part.sure for part in parts),
        )  # fmt: skip

    if missing:
        return found(Status.ERROR, f"nothing was measured in {', '.join(missing[:3])}")
    everything = [m for measurements in given.values() for m in measurements]
    obstacle = verdicts.obstacle(f"zone {check.id}", heatmap.profile, lambda _: heatmap.profile_digest, everything)
    if obstacle:
        return found(*obstacle)
    confidence = 1 - verdicts.ALPHA / verdicts.LOOKS / family
    sizes = check.sizes(given)
    values = check.predicted(split_rates.Rates.medians(measured).over(sizes))
    likely = check.predicted(split_rates.Rates.intervals(measured, verdicts.CONFIDENCE).over(sizes))
    intervals = check.predicted(split_rates.Rates.intervals(measured, confidence).over(sizes))
    parts = tuple(
        _part(found(*_compare(value, inner, interval, permitted, more)), what, value, interval, confidence, permitted)
        for what, permitted in check.permitted.items()
        if (value := values[what]) is not None
        and (inner := likely[what]) is not None
        and (interval := intervals[what]) is not None
    )
    if any(part.status.against for part in parts) and not any(
        verdicts.judge(heatmap, cell, of, family, more).status.against for cell, of in given.items()
    ):
        parts = tuple(_excused(part) if part.status.against else part for part in parts)
    status = verdicts.overall(parts)
    reasons = "; ".join(f"{part.what}: {part.reason}" for part in parts if part.status is status)
    if sizes:
        reasons += f" (rates as with packets of {REFERENCE_PACKET_BYTES} bytes)"
    return found(status, reasons, parts)


def unclear(check: SplitCheck, verdict: Verdict, measured: Mapping[Cell, Sequence[Measurement]]) -> set[Cell]:
    """Return the cells whose trials might make a verdict clear.

    These may decide the values that are inconclusive or, if none is, those that are not surely inside. They are few of
    the cells that a check needs, as the intervals of most cells change none of these values.
    """
    parts = {part.what: part for part in verdict.parts if part.status is Status.INCONCLUSIVE} or {
        part.what: part for part in verdict.parts if not part.sure
    }
    sizes = check.sizes({cell: measured[cell] for cell in check.cells})
    intervals = functools.cache(lambda confidence: split_rates.Rates.intervals(measured, confidence).over(sizes))
    cells: set[Cell] = set()
    for what, permitted in check.permitted.items():
        if (part := parts.get(called(what))) is not None:
            # Conforming is decided by the likely intervals, every other outcome by the wide ones.
            conforming = part.status is Status.INCONCLUSIVE and all(value in permitted for value in part.values)
            confidence = verdicts.CONFIDENCE if conforming else part.confidence
            cells |= check.in_doubt(what, intervals(confidence))
    return cells


def called(what: str) -> str:
    """Return what people call a value of a check."""
    return "split, predicted" if what == "split" else f"class {what}"


def _part(
    alone: Verdict, what: str, value: Bounds, interval: Bounds, confidence: float, permitted: Interval
) -> Verdict:
    """Return a verdict with what it rests on."""
    return dataclasses.replace(
        alone, what=called(what), value=value[1], least=value[0] if value[0] != value[1] else None, interval=interval,
        confidence=confidence, permitted=permitted,
        sure=alone.status is Status.CONFORMS and interval[0] in permitted and interval[1] in permitted,
    )  # fmt: skip


def _excused(part: Verdict) -> Verdict:
    """Return a violation as inconclusive, because none of the cells that it follows from violates."""
    reason = f"{part.reason}, but chance explains each of its cells: more trials needed"
    return dataclasses.replace(part, status=Status.INCONCLUSIVE, reason=reason)


def _compare(value: Bounds, likely: Bounds, interval: Bounds, permitted: Interval, more: bool) -> tuple[Status, str]:
    if interval[1] < permitted.low:
        return Status.VIOLATES, "below the zone"
    if interval[0] > permitted.high:
        return Status.VIOLATES, "above the zone"
    if likely[0] in permitted and likely[1] in permitted:
        return Status.CONFORMS, "inside the zone"
    if value[0] != value[1]:
        return Status.INCONCLUSIVE, "a transfer timed out, so only a bound is known"
    if value[0] in permitted:
        return verdicts.undecided_inside(more)
    side = "below" if value[0] < permitted.low else "above"
    return Status.INCONCLUSIVE, f"{side} the zone, but not clear of it: more trials needed"


_REPLICATES, _REPLICATE_TRIALS, _SEED = 1000, 5, 1
FloatRows = numpy.typing.NDArray[numpy.float64]
#: the utilizations of each cell's trials, in the order of a grid's cells
Values = tuple[tuple[float, ...], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The permitted share of a class's paths, `low` to `high`, and what it rests on.

    `median` is the share by the medians of all trials; `min` and `max` are those of the replicates.
    """

    low: float
    high: float
    median: float
    min: float
    max: float


@functools.lru_cache(maxsize=64)  # the full grid takes two seconds
def permitted_shares(name: str, values: Values, margin: float) -> Mapping[Filter, Mapping[PathClass, Share]]:
    """Return {filter: {class: Share}} of a grid; `values` are the reference's trials in each of its cells.

    `margin`: by what share the filter's limits are moved to either side.
    """
    cells = grid.cells(name)
    paths = split_paths.paths(cells)
    by_cell = list(zip(cells, values, strict=True))
    medians = numpy.array([[statistics.median(trials) * cell.bandwidth_mbps for cell, trials in by_cell]])
    replicates = _replicates(numpy.array(trials) * cell.bandwidth_mbps for cell, trials in by_cell)
    by_class = {c: [path for path in paths if path.path_class is c] for c in PathClass}

    def share(among: Sequence[Path], filter_: Filter) -> Share:
        drawn = shares(among, cells, replicates, filter_)
        strict = shares(among, cells, replicates, filter_.scaled(1 + margin))
        lenient = shares(among, cells, replicates, filter_.scaled(1 - margin))
        low, high = rounded_outward(float(strict.min()), float(lenient.max()))
        (median,) = shares(among, cells, medians, filter_)
        return Share(low=low, high=high, median=float(median), min=float(drawn.min()), max=float(drawn.max()))

    return {filter_: {c: share(among, filter_) for c, among in by_class.items() if among} for filter_ in FILTERS}


def _replicates(rates: Iterable[FloatRows]) -> FloatRows:
    """Return an array of replicates x cells: medians of trials drawn with replacement. `rates`: the trials of each
    cell.
    """
    generator = numpy.random.default_rng(_SEED)
    drawn = [generator.choice(trials, size=(_REPLICATES, _REPLICATE_TRIALS)) for trials in rates]
    medians: FloatRows = numpy.median(numpy.stack(drawn), axis=2).T
    return medians


def _cell(path: Path, part: int) -> Cell:
    cell = path.cells[part]
    assert cell is not None  # paths of a grid compose to cells of it
    return cell


def shares(paths: Sequence[Path], cells: Sequence[Cell], rates: FloatRows, filter_: Filter) -> FloatRows:
    """Return the share of these paths that pass a filter, for each row of `rates` (rows x cells, Mbit/s).

    The result is that of split_rates.count, which would take minutes for the replicates of the full grid.
    """
    at = {cell: number for number, cell in enumerate(cells)}
    first, second, whole = (numpy.array([at[_cell(path, part)] for path in paths]) for part in range(3))
    bandwidths = numpy.array([path.bandwidth_mbps for path in paths])
    rate = numpy.minimum(rates[:, first], rates[:, second])
    passes = numpy.ones(rate.shape, dtype=bool)
    if filter_.gain is not None:
        passes &= rate > filter_.gain * rates[:, whole]
    if filter_.utilization is not None:
        passes &= rate > filter_.utilization * bandwidths
    passing: FloatRows = passes.mean(axis=1)
    return passing
