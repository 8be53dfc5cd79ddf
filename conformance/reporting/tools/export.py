"""Export results: cells as CSV and Parquet, and a summary as JSON (schema: conformance/schemas/summary.json)."""

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

from conformance import __version__
from conformance.model.judging import statistics
from conformance.model.judging.verdict import ALPHA, Status
from conformance.model.metrics.metric import Metric
from conformance.model.metrics.table import tabled
from conformance.model.networks.place import Cell, number
from conformance.model.trials.trial import Measurement, Outcome
from conformance.reporting.heatmaps import CellResult, Heatmap, Series
from conformance.results.source import File
from conformance.support import extras
from conformance.support.record import At, Record, filled, follow, plain

_TEXT, _NUMBER, _COUNT = "string", "double", "int32"
#: a value in the table of cells; None if it is not known
Value = str | float | bool | None
Of = Callable[[Series, Cell], Value]


@dataclasses.dataclass(frozen=True)
class _Cell:
    """A cell of a series, from which columns are read by paths: `utilization` and `lost` are its results."""

    series: Series
    cell: Cell

    @property
    def utilization(self) -> CellResult:
        return self.series.utilization.results[self.cell]

    @property
    def lost(self) -> CellResult:
        return self.series.lost.results[self.cell]


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of the table of cells. `kind`: its type in Arrow. `at`: a path of a _Cell, or a function."""

    name: str
    kind: str
    about: str
    at: str | Of

    def of(self, series: Series, cell: Cell) -> Value:
        """Return the value of a cell; None if it is not known."""
        value: Value = follow(_Cell(series, cell), self.at) if isinstance(self.at, str) else self.at(series, cell)
        return value


def _outcomes(*outcomes: Outcome) -> Of:
    return lambda series, cell: sum(m.outcome in outcomes for m in series.utilization.results[cell].counted)


def _verdict(metric: Metric) -> Of:
    """Return the function for the verdict on a metric that few zones judge, whose value is None if no zone does."""

    def of(series: Series, cell: Cell) -> Value:
        judged = series.of(metric)
        return judged.results[cell].status if judged else None

    return of


def _median(name: str) -> Of:
    """Return the function for the median of the metric that has this name in result lines."""
    return _median_of(lambda measurement: measurement.metrics.get(name))


def _median_of(value: Callable[[Measurement], float | None]) -> Of:
    """Return the function for the median over the trials that ran, None if one of them has no value: a transfer that
    timed out took longer than any other.
    """

    def of(series: Series, cell: Cell) -> Value:
        values = [value(m) for m in series.utilization.results[cell].counted if m.metrics]
        known = [v for v in values if v is not None]
        return statistics.median(known) if known and len(known) == len(values) else None

    return of


def _others() -> Iterator[Column]:
    """Yield the columns of the metrics that few zones judge: median and verdict."""
    for metric in tabled()[2:]:
        unit = f", in {metric.unit}" if metric.unit else ""
        yield Column(metric.name, _NUMBER, f"median of the {metric.noun}{unit}", _median_of(metric.value))
        verdict = f"verdict on the {metric.noun}, if a zone judges it"
        yield Column(f"{metric.column}_verdict", _TEXT, verdict, _verdict(metric))


_FIRST_COLUMNS = (
    Column("algorithm", _TEXT, "the algorithm that the stack claims to run", "series.scheme.algorithm"),
    Column("stack", _TEXT, "adapter's name", "series.scheme.stack"),
    Column("stack_version", _TEXT, "version that the stack reports", "series.scheme.stack_version"),
    Column("stack_digest", _TEXT, "digest of everything that went into the stack", "series.scheme.stack_digest"),
    Column("client", _TEXT, "client that fetched, and its version, if stated", "series.scheme.client_and_version"),
    Column("kernel_release", _TEXT, "guest kernel", "series.scheme.kernel_release"),
    Column("kernel_digest", _TEXT, "digest of the guest kernel", "series.scheme.kernel_digest"),
    Column("lab_digest", _TEXT, "digest of the suite's code in the guest", "series.utilization.lab_digest"),
    Column("room", _TEXT, "where the trials ran: always virtual", "series.utilization.room"),
    Column("profile", _TEXT, "name of the settings other than the cell", "series.setting.profile"),
    Column("profile_digest", _TEXT, "digest of those settings", "series.setting.profile_digest"),
    Column("queue", _TEXT, "queue at the bottleneck", "series.setting.queue"),
    Column("offload", "bool", "segmentation offload", "series.setting.offload"),
    Column("transfer_s", _NUMBER, "length of a transfer, in seconds at the link's rate",
           lambda series, cell: number(series.setting.transfer_s)),
    Column("rival", _TEXT, "congestion control of the flow that shared the bottleneck", "series.setting.rival"),
    Column("cell", _TEXT, "the cell's id", "cell.id"),
    Column("bandwidth_mbps", _NUMBER, "bandwidth of the bottleneck", "cell.bandwidth_mbps"),
    Column("one_way_delay_ms", _NUMBER, "half of the round-trip time", "cell.one_way_delay_ms"),
    Column("loss_pct", _NUMBER, "random loss in each direction", "cell.loss_pct"),
    Column("trials", _COUNT, "trials made", "utilization.n"),
    Column("trials_ok", _COUNT, "transfers that completed", _outcomes(Outcome.OK)),
    Column("trials_timeout", _COUNT, "transfers that took too long; their utilization is an upper bound",
           _outcomes(Outcome.TIMEOUT)),
    Column("trials_error", _COUNT, "trials that failed", _outcomes(Outcome.ERROR, Outcome.FAILED)),
    Column("utilization", _NUMBER, "median of goodput over bandwidth", "utilization.value"),
    Column("utilization_low", _NUMBER, "90 % interval of the median, lower end", "utilization.interval.0"),
    Column("utilization_high", _NUMBER, "90 % interval of the median, upper end", "utilization.interval.1"),
    Column("utilization_min", _NUMBER, "lowest value of a trial", "utilization.low"),
    Column("utilization_max", _NUMBER, "highest value of a trial", "utilization.high"),
    Column("permitted_low", _NUMBER, "zone of utilization, lower end", "utilization.permitted.low"),
    Column("permitted_high", _NUMBER, "zone of utilization, upper end", "utilization.permitted.high"),
    Column("verdict", _TEXT, "verdict on utilization; a detail that does not count, if its zone judges kinds of cells",
           "utilization.status"),
    Column("lost_pct", _NUMBER, "median share of the sender's bytes that never arrived", "lost.value"),
    Column("lost_low", _NUMBER, "90 % interval of the median, lower end", "lost.interval.0"),
    Column("lost_high", _NUMBER, "90 % interval of the median, upper end", "lost.interval.1"),
    Column("lost_permitted_low", _NUMBER, "zone of loss, lower end", "lost.permitted.low"),
    Column("lost_permitted_high", _NUMBER, "zone of loss, upper end", "lost.permitted.high"),
    Column("lost_verdict", _TEXT, "verdict on loss", "lost.status"),
    Column("goodput_mbps", _NUMBER, "median", _median("goodput_mbps")),
    Column("completion_s", _NUMBER, "median", _median("completion_s")),
    Column("min_rtt_ms", _NUMBER, "median of the minimum RTT, which only Linux TCP reports", _median("min_rtt_ms")),
)  # fmt: skip
_LAST_COLUMN = Column("message", _TEXT, "why there is no result, if there is none", "utilization.message")


def columns() -> tuple[Column, ...]:
    """Return all columns of the table of cells, including those of every metric."""
    return (*_FIRST_COLUMNS, *_others(), _LAST_COLUMN)


def rows(all_series: Iterable[Series]) -> Iterator[dict[str, Value]]:
    """Yield {column: value} for each cell of each Series; a value that is not known is None."""
    every_column = columns()
    for series in all_series:
        for cell in series.cells:
            yield {column.name: column.of(series, cell) for column in every_column}


def csv_bytes(all_series: Iterable[Series]) -> bytes:
    """Return the table of cells as CSV (RFC 4180): in UTF-8, names in the first line, unknown values empty.

    A stack's text is untrusted: if a spreadsheet would take it for a formula, it gets an apostrophe in front.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [column.name for column in columns()], lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows(all_series))
    return text.getvalue().encode()


def _inert(value: Value) -> Value:
    return f"'{value}" if isinstance(value, str) and value.startswith(tuple("=+-@\t\r")) else value


def parquet_bytes(all_series: Iterable[Series]) -> bytes:
    """Return the same columns as typed Parquet; unknown values are null. Raises UserError without the extra parquet."""
    extras.need("parquet")
    import pyarrow  # imported late: not every installation has it
    import pyarrow.parquet

    every_row = list(rows(all_series))
    typed = {c.name: pyarrow.array([r[c.name] for r in every_row], pyarrow.type_for_alias(c.kind)) for c in columns()}
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(typed), sink, compression="zstd")
    return sink.getvalue()


#: the schema of a summary, with its version
SUMMARY = "summary/1"


class ShiftsRecord(Record):
    less: Annotated[float | None, At("down")]
    more: Annotated[float | None, At("up")]


class CellRecord(Record):
    cell: str
    bandwidth_mbps: float
    one_way_delay_ms: float
    loss_pct: float
    trials: int
    #: Transfers that timed out; if there are any, the median of utilization is an upper bound.
    timeouts: int
    #: Null if nothing ran: missing is never zero.
    median: float | None
    #: Contains the median with 90 % confidence; null if there are too few trials, failed ones, or timeouts.
    interval: list[float] | None
    #: The zone's interval; null if no zone judges.
    permitted: list[float] | None
    #: A detail that does not count, if the zone judges kinds of cells.
    verdict: Status
    #: For a cell that is not clear: the smallest shifts that would have been detected, as shares of the reference's
    #: median; null otherwise.
    would_tell: ShiftsRecord | None
    reason: str | None


class FalseAlarmRatesRecord(Record):
    at_most: float
    cells: int


class MetricRecord(Record):
    #: Id of the zone that judges, or null.
    zone: str | None
    verdict: Status
    #: Number of cells by verdict, or of kinds of cells, if the zone judges these; without those that no zone judges.
    count: dict[str, int]
    #: Upper bound on the share of runs in which the zone raises any false alarm, over all judged cells (Holm); null if
    #: no zone judges.
    false_alarms: FalseAlarmRatesRecord | None
    cells: list[CellRecord]


class SeriesRecord(Record):
    #: algorithm/stack/version; the version is the kernel's release, or that of a stack in user space
    id: str
    scheme: dict[str, str]
    #: The whole setting except its cell; profile_digest distinguishes it from others.
    settings: dict[str, Any]
    room: str
    lab_digest: str
    metrics: dict[str, MetricRecord]


class SummaryRecord(Record):
    """The cells that were measured, but no points of scenarios, as `conformance export json` and reports write them."""

    suite_version: str
    #: The results files that it was made from.
    results: list[File]
    #: One for each scheme under each profile, as measured by one version of the lab.
    schemes: list[SeriesRecord]


def summary(all_series: Iterable[Series], files: Iterable[File]) -> SummaryRecord:
    """Return the record of the document that `export json` writes."""
    return SummaryRecord(suite_version=__version__, results=[*files], schemes=[*map(_series, all_series)])


def summary_json(all_series: Iterable[Series], files: Iterable[File]) -> bytes:
    """Return the same as a file's content."""
    document = {"schema": SUMMARY, **plain(summary(all_series, files))}
    return (json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _series(series: Series) -> SeriesRecord:
    setting = series.setting.to_json()
    del setting["cell"]
    return SeriesRecord(
        id=series.scheme.id, scheme=dataclasses.asdict(series.scheme),
        settings={**setting, "profile_digest": series.setting.profile_digest}, room=series.utilization.room,
        lab_digest=series.utilization.lab_digest,
        metrics={heatmap.metric: _metric(heatmap) for heatmap in series.heatmaps},
    )  # fmt: skip


def _metric(heatmap: Heatmap) -> MetricRecord:
    return MetricRecord(
        zone=heatmap.zone.id if heatmap.zone else None, verdict=heatmap.verdict,
        count={str(status): number for status, number in sorted(heatmap.count().items())},
        false_alarms=FalseAlarmRatesRecord(at_most=ALPHA, cells=heatmap.family) if heatmap.family else None,
        cells=[_cell(result) for result in heatmap.results.values()],
    )  # fmt: skip


def _cell(result: CellResult) -> CellRecord:
    return CellRecord(
        cell=result.cell.id, **{name: number(value) for name, value in result.cell.to_json().items()},
        trials=result.n, timeouts=result.late, median=result.value,
        interval=list(result.interval) if result.interval else None,
        permitted=[result.permitted.low, result.permitted.high] if result.permitted else None, verdict=result.status,
        would_tell=filled(ShiftsRecord | None, result.verdict.detectable if result.verdict else None),
        reason=result.verdict.reason if result.verdict else result.message,
    )  # fmt: skip
