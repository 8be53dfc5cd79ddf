"""Prepare what a page shows of a cell: trials, traces of up to three, reports of the emulator, commands to rerun."""

import dataclasses
from collections.abc import Iterator

from conformance.model.emulation import facts
from conformance.model.errors import UserError
from conformance.model.metrics.table import METRICS, UTILIZATION, tabled
from conformance.model.networks.place import Cell, exact
from conformance.model.trials.trial import Measurement
from conformance.reporting import rerun
from conformance.reporting.heatmaps import CellResult, Heatmap, Series
from conformance.reporting.html import heatmap_table, traces
from conformance.results.source import Source


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialRow:
    """A row of the cell's table of trials; `numbers` has a text for each of columns()."""

    seed: int
    shown_as: str
    outcome: str
    numbers: tuple[str, ...]
    message: str | None


#: columns besides the metrics, before and after these: (name in result lines, heading, decimals)
_BEFORE = (("goodput_mbps", "goodput, Mbit/s", 3), ("completion_s", "completion, s", 3))
_AFTER = (("min_rtt_ms", "minimum RTT, ms", 2), ("retransmitted_segments", "retransmitted, segments", 0))


def columns() -> tuple[str, ...]:
    """Return the headings of the numbers in the table of trials."""
    first, *others = tabled()
    heads = [[head for _, head, _ in part] for part in (_BEFORE, _AFTER)]
    return (first.label, *heads[0], *(metric.label for metric in others), *heads[1])


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellDetail:
    """What a page shows of a cell. `shown`: {style: label} of drawn trials; `facts`: (name, text) of the front one."""

    anchor: str
    title: str
    utilization: CellResult
    #: (metric, its result) of the other metrics
    others: tuple[tuple[str, CellResult], ...]
    lines: tuple[str, ...]
    trials: tuple[TrialRow, ...]
    shown: dict[str, str]
    end_s: str
    panels: tuple[traces.TracePanel, ...]
    facts: tuple[tuple[str, str], ...]
    command: str | None
    why_no_command: str | None
    trace_command: str | None
    #: which trial the trace command repeats
    traced: str


def anchor(cell: Cell) -> str:
    """Return the HTML anchor of a cell on the page of its series and bandwidth."""
    return f"{exact(cell.one_way_delay_ms)}ms-{exact(cell.loss_pct)}pct"


def of_cell(series: Series, cell: Cell, source: Source) -> CellDetail:
    """Return the CellDetail of a cell. The trials to be drawn are read again from the Source, with all evidence.

    Raises UserError, for example if that evidence is not as result lines have it.
    """
    utilization = series.utilization.results[cell]
    telling = _telling(series, cell)
    chosen = _three(telling.results[cell], telling.metric)
    full = {style: source.whole(measurement) for style, measurement in chosen.items()}
    drawn = {style: m.evidence["trace"] for style, m in full.items() if isinstance(m.evidence.get("trace"), dict)}
    named = {style: m for style, m in chosen.items() if style in drawn or not drawn}
    end = traces.end_s(list(drawn.values()))
    try:
        facts = tuple(_facts(full["median"])) if full else ()
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        where, why = source.where(full["median"]), f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise UserError(f"{where}: /evidence: not in the format of result lines: {why}") from None
    styles = {measurement.trial.seed: style for style, measurement in named.items()}
    command, why_not = rerun.cell(utilization.measurements)
    shown = chosen.get("median", utilization.measurements[0])
    return CellDetail(
        anchor=anchor(cell),
        title=cell.id,
        utilization=utilization,
        others=tuple((h.metric, h.results[cell]) for h in series.heatmaps[1:]),
        lines=tuple(heatmap_table.about(h.metric, h.results[cell]).split("\n", 1)[1] for h in series.heatmaps),
        trials=tuple(_row(m, styles.get(m.trial.seed, "")) for m in utilization.measurements),
        shown={style: f"{_words(style, telling.metric)} (seed {m.trial.seed})" for style, m in named.items()},
        end_s=f"{end:.3g}",
        panels=traces.panels(drawn, end, cell.bandwidth_mbps) if drawn else (),
        facts=facts,
        command=command,
        why_no_command=why_not,
        trace_command=rerun.trial(shown),
        traced=f"{_words('median', telling.metric) if chosen else 'first trial'} (seed {shown.trial.seed})",
    )


def _words(style: str, metric: str) -> str:
    if style != "median":
        return f"{style} {METRICS[metric].noun}"
    return "median trial" if metric == UTILIZATION.name else f"median trial by {METRICS[metric].noun}"


def front(series: Series, cell: Cell) -> Measurement | None:
    """Return the front trial, the one nearest to the median of the cell's most telling metric; None if none ran."""
    telling = _telling(series, cell)
    return _three(telling.results[cell], telling.metric).get("median")


def _telling(series: Series, cell: Cell) -> Heatmap:
    """Return the heatmap of the most telling metric: the first in which the cell violates, else utilization."""
    violating = (h for h in series.heatmaps if h.results[cell].status.against)
    return next(violating, series.utilization)


def _three(result: CellResult, metric: str) -> dict[str, Measurement]:
    """Return {style: trial}: the one nearest to the median, then the lowest and highest if they differ from it."""
    middle = result.value
    ran = [(value, m) for m in result.counted if (value := m.value(metric)) is not None]
    if not ran or middle is None:
        return {}
    ordered = sorted(ran, key=lambda pair: (pair[0], pair[1].trial.seed))
    nearest, median = min(ordered, key=lambda pair: (abs(pair[0] - middle), pair[1].trial.seed))
    chosen = {"median": median}
    for style, (value, measurement) in (("lowest", ordered[0]), ("highest", ordered[-1])):
        if value != nearest:
            chosen[style] = measurement
    return chosen


def _row(measurement: Measurement, style: str) -> TrialRow:
    first, *others = tabled()
    before, after = (
        [(measurement.metrics.get(name), digits) for name, _, digits in part] for part in (_BEFORE, _AFTER)
    )
    numbers = (
        (measurement.value(first.name), first.digits + 2),
        *before,
        *((measurement.value(metric.name), metric.digits + 1) for metric in others),
        *after,
    )
    return TrialRow(
        seed=measurement.trial.seed,
        shown_as=style,
        outcome=str(measurement.outcome),
        numbers=tuple("" if value is None else f"{value:.{digits}f}" for value, digits in numbers),
        message=measurement.message,
    )


def _facts(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of what the emulator and the kernel reported of a trial, as far as its result line has it."""
    evidence = measurement.evidence
    # There is a list with one record for each segment; a line of an older lab has a single record instead.
    calibrations = evidence.get("calibration") or ()
    for calibration in [calibrations] if isinstance(calibrations, dict) else calibrations:
        sent, lost = calibration["loss_sent"], calibration["loss_lost"]
        delays = ", ".join(sorted({f"{delay:.3f}" for delay in calibration["delays_ms"]}))
        yield (
            "calibration",
            f"{calibration['rate_mbps']:.4g} Mbit/s; one-way delay {delays} ms; {lost} of {sent} packets lost",
        )
    setting = measurement.setting
    network = setting.network
    limit = network.bottleneck(network.tested) if setting.of_profile else None
    bottleneck = limit and facts.egress(network, *limit)
    for qdisc in evidence.get("qdiscs") or ():
        if qdisc.get("dev") == bottleneck and qdisc.get("kind") != "htb":
            count = f"{qdisc.get('packets')} packets, {qdisc.get('drops')} dropped"
            yield f"{qdisc.get('kind')} at the bottleneck", count
    control = evidence.get("congestion_control")
    if control:
        bbr = control.get("bbr")
        yield (
            "congestion control, as the kernel reports it",
            control["name"] + (f", BBR version {bbr['exported_version']}" if bbr else ""),
        )
    if evidence.get("kernel_release"):
        yield "kernel, as the guest reports it", evidence["kernel_release"]
