"""Show the results of `zones check`, `show`, `diff`, `apart`, `power` and `margins` in a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rich.box
import rich.console
import rich.measure
import rich.table
import rich.text

from conformance.model.judging.power import BLIND, POWER
from conformance.model.judging.verdict import Status
from conformance.model.judging.zone import SMALL_PACKET_BYTES, Interval, Zone
from conformance.reporting import naming
from conformance.reporting.marks import LOOKS
from conformance.reporting.text import markdown, terminal
from conformance.support.console import table

if TYPE_CHECKING:
    from conformance.commands.zones import Apart, CheckedZone, Margins, Power, ShownZone, ZoneDifference, ZonePower

_WIDEST = 1000
#: options of a table that fits 80 columns
_NARROW: Mapping[str, Any] = {"box": rich.box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
_POWER = ("zone", "counted", "less, %", "more, %", "a stack 20 % slower")
#: heading of a column that is never wrapped
_PERMITTED = "permitted (reference)"


def show_checked(checked_zone: "CheckedZone", console: rich.console.Console) -> None:
    """Show a line for a zone that passed the checks."""
    console.print(f"ok  {checked_zone.zone.summary}, {checked_zone.mutants}, {checked_zone.path}", soft_wrap=True)


def show_zone(shown_zone: "ShownZone", console: rich.console.Console) -> None:
    """Draw what a zone permits in each cell or place, and the reference's median."""
    zone = shown_zone.zone
    under, noun = ("profile", "cell") if zone.of_cells else ("scenario", "point")
    console.print(f"{shown_zone.id}: {shown_zone.metric} under {under} {zone.profile}", soft_wrap=True)
    console.print("permitted: the least to the greatest median of the bases, widened by the cell's margin")
    for line in naming.margins(
        {" ".join(filter(None, at)): interval for at, interval in shown_zone.by_name.items()},
        "place" if shown_zone.predicted else noun,
    ):
        console.print(line, soft_wrap=True)
    if not all(interval.counted for interval in shown_zone.by_name.values()):
        console.print(f"{LOOKS[Status.NOT_JUDGED].symbol} not judged, because {BLIND} there", soft_wrap=True)
    for name, about in zone.references.items():
        console.print(f"reference {name}: {about['scheme']}, {about['trials']} trials a {noun}; {about['what']}")
    if shown_zone.predicted:
        console.print(_rows(("where", "what"), shown_zone))
        return
    if not zone.of_cells:
        console.print(_rows(("point",), shown_zone))
    for bandwidth in sorted({cell.bandwidth_mbps for cell in zone.cells}):
        console.print(_fitting(zone, bandwidth, console))


def _fitting(zone: Zone, bandwidth: float, console: rich.console.Console) -> rich.table.Table:
    """Return the table of a bandwidth in a form that fits the console, so that no number is wrapped.

    If there is too little room, lines between columns are left out; then the median goes below its interval; then each
    bound has a line of its own.
    """
    options = console.options.update(max_width=_WIDEST)
    narrower = ((rich.box.SIMPLE_HEAD, to, before) for to, before in (("..", " "), ("..", "\n"), ("..\n", "\n")))
    for box, to, before in ((None, "..", " "), *narrower):
        table = _cells(zone, bandwidth, to, before)
        if box:
            table.box, table.padding = box, (0, 1, 0, 0)
        if rich.measure.Measurement.get(console, options, table).maximum <= console.width:
            break
    return table


def _cells(zone: Zone, bandwidth: float, to: str, before: str) -> rich.table.Table:
    """Return a table of the cells of a bandwidth; `to` is written before an upper bound, `before` before a median."""
    cells = [cell for cell in zone.cells if cell.bandwidth_mbps == bandwidth]
    losses = sorted({cell.loss_pct for cell in cells})
    table = rich.table.Table(title=f"{bandwidth:g} Mbit/s, permitted (reference)", title_justify="left")
    table.add_column("delay \\ loss" if before == " " else "delay \\\nloss", justify="right")
    for loss in losses:
        table.add_column(f"{loss:g} %", justify="right", overflow="fold")  # a bound that is cut off says nothing
    for delay in sorted({cell.one_way_delay_ms for cell in cells}):
        row = {c.loss_pct: zone.intervals[c] for c in cells if c.one_way_delay_ms == delay}
        table.add_row(f"{delay:g} ms", *(_drawn(row.get(loss), zone.metric, to, before) for loss in losses))
    return table


def _rows(head: Sequence[str], shown_zone: "ShownZone") -> rich.table.Table:
    rows = ([*named[: len(head)], _drawn(i, shown_zone.metric)] for named, i in shown_zone.by_name.items())
    return table((*head, _PERMITTED), rows, fold=True, whole=(_PERMITTED,))


def _short(value: float) -> str:
    """Return a value with two decimals, or with two significant digits if it is below 0.1."""
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.1 else f"{value:.2g}"


def _drawn(interval: Interval | None, metric: str, to: str = "..", before: str = " ") -> rich.text.Text:
    if interval is None:
        return rich.text.Text()
    median = interval.basis.median
    mark = "" if interval.counted else LOOKS[Status.NOT_JUDGED].symbol
    text = f"{_short(interval.low)}{to}{_short(interval.high)}{before}({_short(median)}){mark}"
    return rich.text.Text(text, style=terminal.shade(median) if metric == "utilization" else "")


def show_difference(zone_difference: "ZoneDifference", console: rich.console.Console) -> None:
    """Show what changed in settings, rules, references and smoke cells, then every interval that differs."""
    for change in (*zone_difference.rules, *zone_difference.references):
        console.print(f"{change.what}: {change.before} -> {change.after}")
    for sign, cells in (("-", zone_difference.smoke_removed), ("+", zone_difference.smoke_added)):
        if cells:
            console.print(f"smoke cells: {sign} {', '.join(cell.id for cell in cells)}", soft_wrap=True)
    zone = zone_difference.zones[0]
    noun = zone.noun
    if not zone_difference.intervals:
        console.print(f"{zone.id}: both permit the same in {len(zone.intervals)} {noun}s")
        return
    n = len(zone_difference.intervals)
    how_many = f"1 {noun} differs" if n == 1 else f"{n} {noun}s differ"
    header = (noun, *zone_difference.names, "the second's reference")
    rows = ((p.id, _bounds(a), _bounds(b), _reference_in(a, b)) for p, a, b in zone_difference.intervals)
    console.print(table(header, rows, title=f"{zone.id}: {how_many}"))


def _bounds(interval: Interval | None) -> str:
    """Return all that decides a verdict, with the digits that bounds are rounded to."""
    if interval is None:
        return "none"
    small = "" if interval.small_packets == 1.0 else f", x {interval.small_packets:g} at {SMALL_PACKET_BYTES} bytes"
    return f"{interval.low:.4f}..{interval.high:.4f}{small}{'' if interval.counted else ', not judged'}"


def _reference_in(mine: Interval | None, theirs: Interval | None) -> str:
    if mine is None or theirs is None:
        return ""
    return "inside the first" if theirs.basis.median in mine else "outside the first"


def show_apart(apart: "Apart", console: rich.console.Console) -> None:
    for pair in apart.pairs:
        names = ", ".join(f"{cell.id} ({width:.1f})" for cell, width in pair.cells)
        where = f"{len(pair.cells)} of {pair.common} cells{': ' if pair.cells else ''}{names}"
        console.print(f"{' and '.join(pair.algorithms)}, {pair.metric}: {where}", soft_wrap=True)


def show_power(power: "Power", console: rich.console.Console) -> None:
    """Show a line for each zone: the cells that count, which shifts it detects, and its verdicts on a slow stack."""
    console.print(table(_POWER, power_rows(power), _POWER[1:], whole=_POWER, **_NARROW))
    console.print(
        f"less, more: shifts of the median that are detected in {POWER:.0%} of runs, in the median and in the worst of"
        f" a zone's cells, with {power.trials} trials a cell and {power.questions} cells in all; as shares of the"
        " reference's median, or, if that is less, of the value whose relative margin is the absolute one"
    )
    for zone in power.zones:
        if zone.not_counted:
            named = ", ".join(cell.id for cell in zone.not_counted)
            console.print(f"{zone.zone.id} does not count {named}", soft_wrap=True)


def power_markdown(power: "Power") -> str:
    """Return the same lines as a Markdown table, which docs/verdicts.md contains."""
    return "\n".join(markdown.table(_POWER, power_rows(power), right=_POWER[1:])) + "\n"


def power_rows(power: "Power") -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (zone, cells that count, shifts detected below, above, verdicts on a slow stack), in words."""
    for zone in power.zones:
        counted = f"{len(zone.cells) - len(zone.not_counted)} of {len(zone.cells)}"
        yield zone.zone.id, counted, _shifts(*zone.shifts("down")), _shifts(*zone.shifts("up")), _of_slower(zone)


def _shifts(*shifts: float | None) -> str:
    """Return the median and the worst shift, as percentages; a dash if no shift is detected."""
    return " to ".join(dict.fromkeys("-" if shift is None else f"{100 * shift:.0f}" for shift in shifts))


def _of_slower(zone_power: "ZonePower") -> str:
    """Return in how many cells a slower stack violates, is inconclusive or compatible, and conforms."""
    if not zone_power.slower:
        return ""
    counts = {
        "violate": zone_power.slower[Status.VIOLATES],
        "open": zone_power.slower[Status.INCONCLUSIVE] + zone_power.slower[Status.COMPATIBLE],
        "conform": zone_power.slower[Status.CONFORMS],
    }
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n)


def show_margins(margins: "Margins", console: rich.console.Console) -> None:
    """Show spread and margin of each zone, with a line for each kind of cell."""
    numbers, rows = ("cells", "spread", "farthest", "margin"), []
    for zone_id, spreads in margins.zones.items():
        for spread in spreads.values():
            shares = (f"{share:.1%}" for share in (spread.spread, spread.farthest))
            margin = f"{spread.relative:.0%}" + ("" if spread.absolute is None else f" and {spread.absolute:g}")
            rows.append((zone_id, spread.kind, str(spread.cells), *shares, margin))
    # A point's id is long; in a narrow terminal it wraps, so that no figure is cut off.
    console.print(table(("zone", "kind of cell", *numbers), rows, numbers, fold=True, whole=numbers, **_NARROW))
    for zone_id, spreads in margins.zones.items():
        implementations = next(iter(spreads.values())).implementations
        console.print(f"{zone_id}: {', '.join(implementations)}", soft_wrap=True)
    for factor in margins.transport.values():
        console.print(
            f"transport, {factor.kind}: {factor.factor:.3f} of the kernel's, spread {factor.spread:.1%},"
            f" {factor.cells} cells of {', '.join(factor.implementations)}", soft_wrap=True,
        )  # fmt: skip
    if margins.path:
        console.print(f"recorded in {margins.path}; derive the zones again", soft_wrap=True)
