"""Turn measurements into the heatmaps that reports draw, and judge their cells (points.py judges points)."""

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from conformance.catalogue import documents
from conformance.model import digest
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging import seeds, statistics
from conformance.model.judging.session import by_zone
from conformance.model.judging.verdict import CONFIDENCE, Status, Verdict, ZoneVerdict, counts, false_alarms, overall
from conformance.model.judging.zone import Interval, Zone
from conformance.model.metrics.metric import Metric
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome, RunKey, Scheme
from conformance.reporting import naming, points
from conformance.support.console import count

#: fewest trials from which an interval can hold the median with the confidence that a verdict needs
_FEWEST = next(n for n in itertools.count(1) if 1 - 2 / 2**n >= CONFIDENCE)


#: {(metric, algorithm, profile's digest): Zone}
_Zones = Mapping[tuple[str, str, str], Zone]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellResult:
    """The result of a cell. `value` is the median of the metric over the `known` of `n` trials that have one, None if
    none has.

    Only `measurements` has trials that repeat a violation with fresh seeds. `low` and `high` are the least and the
    greatest value. `interval` holds the median with 90 % confidence. It is None if there are too few trials, if trials
    failed, or if transfers timed out (`late` of them): then value, low and high are upper bounds, not numbers.
    `verdict` and `permitted` are None if no zone applies.
    """

    cell: Cell
    n: int
    known: int
    value: float | None
    low: float | None
    high: float | None
    interval: tuple[float, float] | None
    late: int
    message: str | None
    unsupported: bool
    verdict: Verdict | None
    permitted: Interval | None
    measurements: tuple[Measurement, ...]

    @functools.cached_property
    def counted(self) -> list[Measurement]:
        """The `n` trials that all figures are of: without those that repeat a violation."""
        return seeds.repeats_apart(self.measurements)[0]

    @property
    def reference(self) -> float | None:
        """The median of the zone's reference in this cell; None if no zone applies."""
        median: float | None = self.permitted.basis.median if self.permitted else None
        return median

    @property
    def difference(self) -> float | None:
        """Measured minus reference; None if either is not known."""
        reference = self.reference
        return None if self.value is None or reference is None else self.value - reference

    @property
    def cause(self) -> str:
        """The reason for the verdict, as part of a sentence; without a verdict, why nothing was measured."""
        if self.verdict is None:
            return self.message or ""
        if self.verdict.status is Status.INCONCLUSIVE and self.n < _FEWEST and not self.late:
            return f"{count(self.n, 'trial')}; at least {_FEWEST} are needed"
        return self.verdict.words

    @property
    def status(self) -> Status:
        """The verdict's status; without a verdict: not judged, unsupported or error, by how the trials ended."""
        if self.verdict:
            return self.verdict.status
        if any(m.outcome in (Outcome.OK, Outcome.TIMEOUT) for m in self.measurements):
            return Status.NOT_JUDGED
        return Status.UNSUPPORTED if self.unsupported else Status.ERROR


def worst_first(result: CellResult) -> tuple[int, float]:
    """Return a sort key: by status, then by the ratio between the median and the bound it crosses, largest first."""
    order = list(Status).index(result.status)
    value, permitted = result.value, result.permitted
    if value is None or permitted is None or value in permitted:
        return order, 0.0
    beyond, bound = (value, permitted.high) if value > permitted.high else (permitted.low, value)
    return order, -(beyond / bound) if bound else -math.inf


@dataclasses.dataclass(frozen=True, kw_only=True)
class Heatmap:
    """Comparable results: one metric of one scheme under one profile, measured in one room by one lab version."""

    scheme: Scheme
    setting: Setting
    room: str
    lab_digest: str
    metric: str
    zone: Zone | None
    #: how many counted cells (or points) share the limit on false alarms; 0 if no zone judges these
    family: int
    results: dict[Cell, CellResult]
    #: the verdicts on kinds of cells, if its zone judges these; then its cells are detail
    kinds: tuple[Verdict, ...] = ()

    @property
    def settings(self) -> str:
        return naming.settings(self.setting)

    @property
    def trials(self) -> int:
        """The largest number of trials of any cell."""
        return max((r.n for r in self.results.values()), default=0)

    @property
    def trials_words(self) -> str:
        return naming.trials_words(result.n for result in self.results.values())

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts that count: on kinds of cells, if its zone judges these, else on cells."""
        return list(self.kinds) or [result.verdict for result in self.results.values() if result.verdict]

    @property
    def verdict(self) -> Status:
        """The worst of the verdicts."""
        return overall(self.verdicts)

    def count(self) -> collections.Counter[Status]:
        """Return {status: number of verdicts}, without those that are not judged."""
        judged = (verdict.status for verdict in self.verdicts)
        return collections.Counter(status for status in judged if status is not Status.NOT_JUDGED)

    @property
    def words(self) -> str:
        """How many verdicts have which status: "2 violates, 28 conforms"; or that no zone judges its cells."""
        if not self.verdicts:
            return f"{count(len(self.results), 'cell')} measured; no zone judges these settings"
        return counts(verdict.status for verdict in self.verdicts)

    @property
    def words_of_cells(self) -> str:
        """How many cells have which verdict, if its zone judges kinds of cells; else nothing, as `words` says it."""
        return counts(result.status for result in self.results.values()) if self.kinds else ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Series:
    """All results of one scheme under one profile: utilization, loss, and other metrics that a zone judges."""

    utilization: Heatmap
    lost: Heatmap
    #: heatmaps of the other metrics that a zone judges
    others: tuple[Heatmap, ...] = ()

    @property
    def heatmaps(self) -> tuple[Heatmap, ...]:
        return (self.utilization, self.lost, *self.others)

    def of(self, metric: Metric) -> Heatmap | None:
        """Return the Heatmap of a Metric; None if reports do not show it, as no zone judges it."""
        return next((h for h in self.heatmaps if h.metric == metric.name), None)

    @property
    def judged(self) -> tuple[Heatmap, ...]:
        """The heatmaps in which a zone judges cells; all heatmaps if there are none."""
        return tuple(h for h in self.heatmaps if h.verdicts) or self.heatmaps

    def is_told(self, heatmap: Heatmap, result: CellResult) -> bool:
        """Return whether this is an error or "unsupported" that utilization has in this cell, too: once is enough."""
        again = heatmap is not self.utilization and result.status in (Status.ERROR, Status.UNSUPPORTED)
        return again and result.status == self.utilization.results[result.cell].status

    @property
    def false_alarms(self) -> str | None:
        """The limit on false alarms over all results of the scheme, as part of a sentence; None if no zone judges."""
        family = max(each.family for each in self.heatmaps)
        return false_alarms(family) if family else None

    @property
    def scheme(self) -> Scheme:
        return self.utilization.scheme

    def count(self) -> collections.Counter[Status]:
        """Return {status: number of cells} by the worst verdict on each cell, without cells that are not judged."""
        verdicts = [[h.results[cell].verdict for h in self.heatmaps if cell in h.results] for cell in self.cells]
        of_cells = (overall(verdict for verdict in of_cell if verdict) for of_cell in verdicts)
        return collections.Counter(status for status in of_cells if status is not Status.NOT_JUDGED)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts on all metrics of all cells."""
        return [verdict for each in self.heatmaps for verdict in each.verdicts]

    @property
    def verdict(self) -> Status:
        """The worst of the verdicts on all metrics."""
        return overall(self.verdicts)

    @property
    def setting(self) -> Setting:
        """The setting of one of the cells; those of the others differ from it only in the cell."""
        return self.utilization.setting

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(self.utilization.results)

    @property
    def bandwidths(self) -> list[float]:
        return sorted({cell.bandwidth_mbps for cell in self.cells})

    @functools.cached_property
    def digest(self) -> str:
        """A digest of all that tells this series from others: scheme, profile, room and lab."""
        h = self.utilization
        return digest.of_value(
            [dataclasses.asdict(h.scheme), h.setting.profile_digest, h.room, h.lab_digest],
        )


def heatmap(measurements: Sequence[Measurement], zone: Zone | None, metric: str, whole: ZoneVerdict | None) -> Heatmap:
    """Return the Heatmap of measurements that differ in nothing but cell and seed; `whole`: the zone's verdict."""
    first = measurements[0].trial
    metric = zone.metric if zone else metric
    by_cell = grouped((measurement.setting.cell, measurement) for measurement in measurements)
    verdicts: Mapping[Point, Verdict] = whole.verdicts if whole else {}
    return Heatmap(
        scheme=first.scheme,
        setting=first.setting,
        room=first.room,
        lab_digest=first.lab_digest,
        metric=metric,
        zone=zone,
        family=whole.family if whole else 0,
        results={
            cell: _cell(cell, measurements, verdicts.get(cell), metric)
            for cell, measurements in sorted(by_cell.items())
        },
        kinds=tuple(verdict for place, verdict in verdicts.items() if not isinstance(place, Cell)),
    )


def _cell(cell: Cell, measurements: Sequence[Measurement], verdict: Verdict | None, metric: str) -> CellResult:
    kept, _ = seeds.repeats_apart(measurements)
    ran = [m for m in kept if m.outcome in (Outcome.OK, Outcome.TIMEOUT)]
    values = [value for value in (m.value(metric) for m in ran) if value is not None]
    interval = statistics.median_interval(values, CONFIDENCE)
    late = sum(m.outcome is Outcome.TIMEOUT for m in kept)
    return CellResult(
        cell=cell,
        n=len(kept),
        known=len(values),
        value=statistics.median(values) if values else None,
        low=min(values, default=None),
        high=max(values, default=None),
        interval=interval if interval[0] > float("-inf") and not late and len(values) == len(kept) else None,
        late=late,
        message=next((m.message for m in measurements if m.message), None),
        unsupported=all(m.outcome is Outcome.UNSUPPORTED for m in measurements),
        verdict=verdict,
        permitted=verdict.permitted if verdict else None,
        measurements=tuple(sorted(measurements, key=lambda m: m.trial.seed)),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drawn:
    """What reports show of measurements: cells as Series, points of scenarios as rows."""

    series: Sequence[Series] = ()
    rows: Sequence[points.PointRow] = ()


def drawn(measurements: Iterable[Measurement], or_none: bool = False) -> Drawn:
    """Judge measurements as lines of files, and return what reports show of them.

    If there are only paths of two segments that no zone judges, raises UserError, or with `or_none` returns nothing.
    """
    known = _with_counters(measurements)
    zones = _zones()
    findings = points.findings(known, zones.values())
    judged = {run: by_zone(finding for _, finding in of_run) for run, of_run in findings.items()}
    if not or_none and not findings and all(m.setting.segments for m in known):
        raise UserError("these results are only of paths with two segments", "use `conformance split`")
    return Drawn(series=_series(known, judged, zones), rows=points.rows(findings))


def all_series(measurements: Iterable[Measurement], planned: Mapping[str, ZoneVerdict] | None = None) -> list[Series]:
    """Return the Series of measurements, in order of scheme and profile. Raises UserError if it cannot show any.

    All verdicts on one scheme are one family, whatever the profile. `planned`: {zone's id: ZoneVerdict} of a plan that
    has judged these measurements already, by its own looks and family.
    """
    if planned is None:
        return list(drawn(measurements).series)
    known = _with_counters(measurements)
    return _series(known, {m.trial.run: planned for m in known}, _zones())


def _series(
    known: Iterable[Measurement], judged: Mapping[RunKey, Mapping[str, ZoneVerdict]], zones: _Zones
) -> list[Series]:
    """Return the Series of cells. Paths of two segments, and flows that share a network, are no cells."""
    cells = (m for m in known if isinstance(m.setting.point, Cell))
    groups = grouped(((m.trial.run, m.setting.profile_digest), m) for m in cells)
    several = []
    for (run, profile_digest), measurements in groups.items():

        def of(metric: str) -> Heatmap:
            zone = zones.get((metric, run[0].algorithm, profile_digest))  # noqa: B023
            return heatmap(measurements, zone, metric, judged.get(run, {}).get(zone.id) if zone else None)  # noqa: B023

        utilization, lost, *others = METRICS
        judged_ = [name for name in others if (name, run[0].algorithm, profile_digest) in zones]
        several.append(Series(utilization=of(utilization), lost=of(lost), others=tuple(map(of, judged_))))
    return sorted(several, key=lambda s: (s.scheme.id, s.setting.profile, s.utilization.room, s.digest))


def _with_counters(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Leave out what a study published (without counters, with a reference's seeds) if others have counters."""
    known = list(measurements)
    cells = [m for m in known if isinstance(m.setting.point, Cell)]
    better = {(m.trial.run, m.setting.profile_digest) for m in cells if m.counted}
    left_out = {
        id(m)
        for m in cells
        if not m.counted and m.outcome is Outcome.OK and (m.trial.run, m.setting.profile_digest) in better
    }
    return [m for m in known if id(m) not in left_out]


def _zones() -> _Zones:
    """Return {(metric, algorithm, profile's digest): Zone} of the zones that judge stacks.

    Raises UserError if two zones have the same key, as either could judge.
    """
    zones: dict[tuple[str, str, str], Zone] = {}
    for zone in map(documents.zone, documents.judging_files()):
        other = zones.setdefault((zone.metric, zone.algorithm, zone.profile_digest), zone)
        if other is not zone:
            raise UserError(
                f"zones {other.id} and {zone.id} both judge {zone.metric} under profile {zone.profile}",
                "merge them into one zone",
            )
    return zones
