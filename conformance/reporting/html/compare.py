"""Compare several schemes of one algorithm cell by cell, those under one profile side by side."""

import dataclasses
from collections.abc import Iterable, Sequence

from conformance.model.groups import grouped
from conformance.model.judging.zone import Interval
from conformance.model.metrics.table import UTILIZATION
from conformance.model.networks.place import Cell
from conformance.model.rounding import digits_to_tell
from conformance.model.trials.trial import SHORT_DIGEST
from conformance.reporting.heatmaps import CellResult, Series
from conformance.reporting.html import colours, heatmap_table
from conformance.reporting.marks import LOOKS

#: most series in one chart
_MOST_IN_CHART = 6
#: one series in one cell of a table: (text, CSS class of its colour, status, mark, description)
Value = tuple[str, str, str, str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """A cell: what its zone permits full packets, and `words` of it; a Value or None for each series; the span."""

    cell: Cell
    permitted: Interval | None
    words: str
    values: tuple[Value | None, ...]
    span: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedSection:
    """Series of one algorithm under the same settings, so they may be compared. `names` tell them apart in a figure."""

    settings: str
    series: tuple[Series, ...]
    names: tuple[str, ...]
    rows: tuple[ComparedRow, ...]

    @property
    def parts(self) -> list["ComparedSection"]:
        """The same in parts of few series, each for a chart: nobody can tell more lines apart."""
        of = -(-len(self.series) // _MOST_IN_CHART)
        size = -(-len(self.series) // of)
        return [
            dataclasses.replace(
                self, series=self.series[at : at + size], names=self.names[at : at + size],
                rows=tuple(dataclasses.replace(row, values=row.values[at : at + size]) for row in self.rows),
            )
            for at in range(0, len(self.series), size)
        ]  # fmt: skip


def sections(all_series: Iterable[Series]) -> list[ComparedSection]:
    """Return one ComparedSection for each profile's digest, in order of appearance."""
    by_profile = grouped((series.setting.profile_digest, series) for series in all_series)
    return [_section(series) for series in by_profile.values()]


def _section(sides: Sequence[Series]) -> ComparedSection:
    cells = sorted({cell for series in sides for cell in series.cells})
    # A verdict's own interval is scaled to its stack's packets, so that of one stack would be false for the others.
    zone = sides[0].utilization.zone
    permitted = zone.intervals if zone else {}
    return ComparedSection(
        settings=sides[0].utilization.settings,
        series=tuple(sides),
        names=tuple(_names(sides)),
        rows=tuple(_row(cell, sides, permitted.get(cell)) for cell in cells),
    )


def _names(series: Sequence[Series]) -> list[str]:
    """Return names of stack and working trees; to tell equal ones apart, add the kernel or a digest."""
    names = ["+".join((s.scheme.stack, *s.scheme.trees)) for s in series]
    for more in (
        [f" on {s.scheme.kernel_release}" for s in series],
        [f" ({s.scheme.stack_digest[:SHORT_DIGEST]})" for s in series],
        [f" ({s.digest[:SHORT_DIGEST]})" for s in series],
    ):
        names = [name if names.count(name) == 1 else name + end for name, end in zip(names, more, strict=True)]
    return names


def _row(cell: Cell, sides: Sequence[Series], permitted: Interval | None) -> ComparedRow:
    results = [series.utilization.results.get(cell) for series in sides]
    medians = [r.value for r in results if r is not None and r.value is not None]
    return ComparedRow(
        cell=cell,
        permitted=permitted,
        words=_bounds(permitted, medians) if permitted else "",
        values=tuple(_value(r) for r in results),
        span=f"{max(medians) - min(medians):.2f}" if len(medians) > 1 else "",
    )


def _bounds(permitted: Interval, medians: Sequence[float]) -> str:
    """Return the bounds with enough digits, as far as a column has room, to show which medians are outside."""
    digits = digits_to_tell(medians, permitted.low, permitted.high, UTILIZATION.digits)
    digits = min(digits, UTILIZATION.digits + 2)
    return f"{permitted.low:.{digits}f} to {permitted.high:.{digits}f}"


def _value(result: CellResult | None) -> Value | None:
    if result is None:
        return None
    text = heatmap_table.value_text("utilization", result)
    step = colours.value_step("utilization", result.value)
    return text, step, result.status, LOOKS[result.status].mark, heatmap_table.about("utilization", result)
