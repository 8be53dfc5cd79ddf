"""Prepare heatmaps for pages: tables whose cells have a colour, a number, a mark and a description."""

import dataclasses
from collections.abc import Callable, Mapping

from conformance.model.judging.verdict import Status
from conformance.model.metrics.metric import Timeout
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell
from conformance.model.rounding import digits_to_tell
from conformance.reporting.heatmaps import CellResult, Heatmap
from conformance.reporting.html import colours
from conformance.reporting.marks import LOOKS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Box:
    """One cell of a drawn heatmap. `about`: its description, as a tooltip and for screen readers."""

    text: str
    step: str
    status: str
    mark: str
    about: str
    href: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid:
    """A table with a row for each delay and a column for each loss; None where nothing was measured."""

    title: str
    delays: tuple[float, ...]
    losses: tuple[float, ...]
    rows: tuple[tuple[Box | None, ...], ...]


def more_digits(metric: str, result: CellResult, more: int = 1) -> int:
    """Return how many digits, at least `more`, to add to those in cells, so that rounding hides no crossed bound."""
    permitted, digits = result.permitted, METRICS[metric].digits
    values = [v for v in (result.value, *(result.interval or ())) if v is not None]
    return digits_to_tell(values, permitted.low, permitted.high, digits + more) - digits if permitted else more


def cell_digits(metric: str, result: CellResult) -> int:
    """Return how many decimals a cell's median and bounds need."""
    permitted, digits = result.permitted, METRICS[metric].digits
    if permitted is None or result.value is None:
        return digits
    return digits_to_tell([result.value], permitted.low, permitted.high, digits)


def _is_bound(metric: str, result: CellResult) -> bool:
    return result.late > 0 and METRICS[metric].timeout is Timeout.UPPER_BOUND


def value_text(metric: str, result: CellResult) -> str:
    """Return the median as a cell shows it: an upper bound has a sign that says so; "" if it is not known."""
    if result.value is None:
        return ""
    bound = "\N{LESS-THAN OR EQUAL TO}" if _is_bound(metric, result) else ""
    return f"{bound}{result.value:.{cell_digits(metric, result)}f}"


def permitted_text(metric: str, result: CellResult) -> str:
    """Return the bounds of what the zone permits in a cell, one above the other; "" if no zone judges."""
    if result.permitted is None:
        return ""
    return "\n".join(
        f"{edge:.{cell_digits(metric, result)}f}" for edge in (result.permitted.low, result.permitted.high)
    )


def signed(metric: str, difference: float | None) -> str:
    """Return a metric's difference with its sign, or without one if it rounds to zero; "" if it is not known."""
    if difference is None:
        return ""
    text = f"{difference:+.{METRICS[metric].digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if float(text) else text[1:]


def about(metric: str, result: CellResult) -> str:
    """Return one cell's result in words: trials, interval, zone, verdict."""
    name, text = METRICS[metric].title, METRICS[metric].text
    lines, more = [result.cell.id], more_digits(metric, result, 2)
    if result.value is None:
        lines.append(f"{result.status}: {result.message or 'nothing was measured'}")
        return "\n".join(lines)
    if result.late:
        bound = "at most " if _is_bound(metric, result) else "over part of the transfer "
        lines.append(f"{result.late} of {result.n} transfers timed out")
        lines.append(f"{name} {bound}{text(result.value, more)}, median of {result.n}; no interval")
    else:
        of = f"{result.n}" if result.known == result.n else f"the {result.known} of {result.n} trials that have a value"
        interval = (
            f"90 % interval {text(result.interval[0], more)} to {text(result.interval[1], more)}"
            if result.interval
            else ("too few trials for an interval" if result.known == result.n else "no interval")
        )
        lines.append(f"{name} {text(result.value, more)}, median of {of}; {interval}")
    lines.append(f"trials from {text(result.low, more)} to {text(result.high, more)}")
    if result.permitted:
        more = more_digits(metric, result)
        low, high = (text(edge, more) for edge in (result.permitted.low, result.permitted.high))
        margin = "" if result.status is Status.NOT_JUDGED else f" ({result.permitted.margin.words})"
        lines.append(f"permitted {low} to {high}{margin}: {result.status}, {result.cause}")
    return "\n".join(lines)


def of_bandwidth(heatmap: Heatmap, bandwidth_mbps: float, href: Callable[[Cell], str]) -> list[Grid]:
    """Return Grids of measured values and, if a zone judges, of zone and difference. `href(cell)`: the cell's link."""
    results = {c: r for c, r in heatmap.results.items() if c.bandwidth_mbps == bandwidth_mbps}
    metric = heatmap.metric

    def judged(result: CellResult, text: str, step: str) -> Box:
        mark, words = LOOKS[result.status].mark, about(metric, result)
        return Box(text=text, step=step, status=result.status, mark=mark, about=words, href=href(result.cell))

    def permitted(result: CellResult) -> Box:
        """Return the Box of what is permitted, coloured by the reference for comparison with the measured value."""
        step = colours.value_step(metric, result.reference)
        return Box(text=permitted_text(metric, result), step=step, status=Status.CONFORMS, mark="", about="", href="")

    value = _grid("Measured", results, lambda r: judged(r, value_text(metric, r), colours.value_step(metric, r.value)))
    if not any(r.permitted for r in results.values()):
        return [value]
    difference = _grid("Difference", results, lambda r: judged(r, signed(metric, r.difference), distance_step(r)))
    return [value, _grid("Permitted", results, permitted), difference]


def _grid(title: str, results: Mapping[Cell, CellResult], box: Callable[[CellResult], Box]) -> Grid:
    delays = tuple(sorted({cell.one_way_delay_ms for cell in results}))
    losses = tuple(sorted({cell.loss_pct for cell in results}))
    at = {(cell.one_way_delay_ms, cell.loss_pct): result for cell, result in results.items()}
    rows = tuple(tuple(box(at[d, p]) if (d, p) in at else None for p in losses) for d in delays)
    return Grid(title=title, delays=delays, losses=losses, rows=rows)


def distance(result: CellResult) -> float | None:
    """Return how far a median is from the reference, where 1 is the zone's bound; None if that is not known."""
    if result.permitted is None or result.reference is None or result.value is None:
        return None
    return colours.distance(result.value, result.reference, result.permitted.low, result.permitted.high)


def distance_step(result: CellResult) -> str:
    """Return the CSS class of distance()."""
    if result.permitted is None or result.reference is None:
        return "none"
    return colours.distance_step(result.value, result.reference, result.permitted.low, result.permitted.high)


def how_far(result: CellResult) -> str:
    """Return how far outside its zone a median is, relative to the bound; "" if it is inside or the bound is zero."""
    if result.value is None or result.permitted is None or result.value in result.permitted:
        return ""
    above = result.value > result.permitted.high
    bound = result.permitted.high if above else result.permitted.low
    share = abs(result.value / bound - 1) if bound else 0
    if not share:
        return ""
    return f"{result.value / bound:.3g} times" if share >= 1 else f"{100 * share:.0f} % {'above' if above else 'below'}"


#: side of a cell in a small heatmap, and gap between bandwidths, in units of the drawing
_SIDE, _GAP = 10, 6
#: up to this width a small heatmap is shown twice as large: two bandwidths of five losses
_NARROW = 2 * 5 * _SIDE + _GAP


@dataclasses.dataclass(frozen=True, kw_only=True)
class Small:
    """A whole heatmap drawn small, bandwidths side by side: one SVG path for each colour and for each tone of marks."""

    width: int
    height: int
    paths: tuple[tuple[str, str], ...]
    about: str

    @property
    def scale(self) -> int:
        return 2 if self.width <= _NARROW else 1


def small(heatmap: Heatmap) -> Small:
    """Draw a whole heatmap small.

    Marks are drawn, not text (marks.Stroke). Where kinds of cells are judged, single cells do not count, and have none.
    """
    by_class: dict[str, list[str]] = {}
    left = height = 0
    for bandwidth in sorted({cell.bandwidth_mbps for cell in heatmap.results}):
        results = {c: r for c, r in heatmap.results.items() if c.bandwidth_mbps == bandwidth}
        delays = sorted({cell.one_way_delay_ms for cell in results})
        losses = sorted({cell.loss_pct for cell in results})
        for cell, result in results.items():
            x = left + losses.index(cell.loss_pct) * _SIDE
            y = delays.index(cell.one_way_delay_ms) * _SIDE
            step = colours.value_step(heatmap.metric, result.value)
            by_class.setdefault(step, []).append(f"M{x} {y}h{_SIDE}v{_SIDE}h-{_SIDE}z")
            look = LOOKS[result.status]
            if look.stroke and not heatmap.kinds:
                name = f"mark {look.tone.name} {_on(heatmap.metric, result.value)}"
                by_class.setdefault(name, []).append(f"M{x} {y}{look.stroke.path}")
        left += len(losses) * _SIDE + _GAP
        height = max(height, len(delays) * _SIDE)
    ordered = sorted(by_class.items(), key=lambda item: (item[0].startswith("mark"), item[0]))
    return Small(
        width=left - _GAP, height=height, paths=tuple((name, "".join(parts)) for name, parts in ordered),
        about=f"{METRICS[heatmap.metric].title} in {len(heatmap.results)} cells; {heatmap.words}",
    )  # fmt: skip


def _on(metric: str, value: float | None) -> str:
    """Return the CSS class that says whether a mark is on a dark or a light colour."""
    if value is None:
        return "on-none"
    return "on-light" if colours.ink_of(colours.value_step(metric, value)) == "black" else "on-dark"
