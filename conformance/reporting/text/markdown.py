"""Render results for a pull request or a job summary, as Markdown of GitHub and GitLab.

A stack's name for itself may contain anything. It is in code spans, where HTML, mentions and links have no effect.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from conformance.model.judging.verdict import Status
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point
from conformance.reporting import naming
from conformance.reporting.heatmaps import Series
from conformance.reporting.html import heatmap_table
from conformance.reporting.marks import LOOKS
from conformance.reporting.points import PointRow
from conformance.support.console import count, printable

#: most verdicts listed for a scheme: nobody reads a long comment to the end
_MOST_CELLS = 20
#: function from a zone's id and a cell or point to the deviation that is known there, in words, or None
KnownAt = Callable[[str, Point], str | None]


class Raw(str):
    """Text that is Markdown already, and is put into a table as it is."""

    __slots__ = ()


#: text that would end a cell, begin markup, make a link, or mention a person
_SPECIAL = re.compile(r"[\\|`*\[<@~]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|://|(?<!\w)www\.", re.IGNORECASE)
_ENTITIES = {"<": "&lt;", "@": "&#64;", "&": "&amp;", "://": ":&#47;/"}


def code(text: str) -> Raw:
    """Return any text as a code span for a table, with bars escaped: a bar ends a cell even in a code span."""
    return Raw(span(" ".join(text.split())).replace("|", chr(92) + "|"))


def table(header: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()) -> list[str]:
    """Return the lines of a table; columns named in `right` are aligned to the right.

    Cells are plain text: what would end a cell, begin markup, mention a person or make a link is escaped here and
    nowhere else. A Raw cell, such as code() returns, is not changed; None is an empty cell.
    """
    rule = "|".join("---:" if name in right else "---" for name in header)
    return [_row(header), f"|{rule}|", *(_row(row) for row in rows)]


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(value: object) -> str:
    if isinstance(value, Raw):
        return value.replace("\n", " ")
    return plain("" if value is None else str(value))


def plain(text: str) -> str:
    """Return text as one line of plain text; what would begin markup, mention a person or make a link is escaped."""
    text = " ".join(printable(text).split())
    return _SPECIAL.sub(lambda special: _escape(special[0]), text)


def _escape(special: str) -> str:
    if special.lower() == "www.":
        return f"{special[:-1]}&#46;"
    return _ENTITIES.get(special) or f"\\{special}"


def span(text: str) -> str:
    """Return any text as a code span, whose fence is longer than any run of backticks in the text."""
    printable = "".join(c if c.isprintable() else " " for c in text).strip()
    fence = "`" * (max((len(run) for run in re.findall("`+", printable)), default=0) + 1)
    pad = " " if printable.startswith("`") or printable.endswith("`") else ""
    return f"{fence}{pad}{printable}{pad}{fence}" if printable else ""


def render(
    all_series: Sequence[Series],
    title: str = "Congestion-control conformance",
    known: KnownAt = lambda zone_id, cell: None,
    of_points: Sequence[PointRow] = (),
) -> str:
    """Return a table of schemes, for each scheme the cells that do not conform, and a table of points of scenarios."""
    names = naming.labels(series.scheme for series in all_series)
    schemes = [
        (code(names[series.scheme]), code(series.utilization.settings), Raw("<br>".join(_verdicts(series))))
        for series in all_series
    ]
    lines = [f"### {title}"]
    if schemes or not of_points:
        lines += ["", *table(("scheme", "settings", "verdicts"), schemes)]
    for series in all_series:
        lines += _cells(series, names[series.scheme], known)
    return "\n".join([*lines, *_points(of_points, known)]) + "\n"


def _points(rows: Sequence[PointRow], known: KnownAt) -> list[str]:
    """Return the lines of a table of verdicts on flows that share a network; none if there are no verdicts."""
    if not rows:
        return []
    cells = []
    for row in rows:
        words = known(row.zone.id, row.verdict.place)
        why = f"{row.verdict.words}; {words}" if words else row.verdict.words
        mark = f"{LOOKS[row.status].symbol} {row.status}"
        value = f"{row.title} {row.measured}"
        cells.append((code(row.scheme.id), row.zone.id, row.verdict.place.id, mark, value, row.permitted, code(why)))
    header = ("scheme", "zone", "point", "verdict", "measured", "permitted", "why")
    return ["", "#### Flows that share a network", "", *table(header, cells)]


def _verdicts(series: Series) -> list[str]:
    words = [f"{METRICS[of.metric].title}: {LOOKS[of.verdict].symbol} {of.words}" for of in series.judged]
    return [*words, *([series.false_alarms] if series.false_alarms else [])]


def _cells(series: Series, name: str, known: KnownAt) -> list[str]:
    shown = [
        (heatmap.metric, result)
        for heatmap in series.heatmaps
        for result in heatmap.results.values()
        if result.status not in (Status.CONFORMS, Status.NOT_JUDGED, Status.UNSUPPORTED)
    ]
    if not shown:
        return []
    what = _escaped(f"{name}, {series.utilization.settings}")
    lines = ["", f"<details><summary>{count(len(shown), 'verdict')} on {what}</summary>", ""]
    rows: list[tuple[str, ...]] = []
    for metric, result in shown[:_MOST_CELLS]:
        permitted, more = result.permitted, heatmap_table.more_digits(metric, result)
        edges: tuple[float, ...] = (permitted.low, permitted.high) if permitted else ()
        zone = " to ".join(METRICS[metric].text(edge, more) for edge in edges)
        zone += f" ({permitted.margin.words})" if permitted else ""
        why = result.cause
        if result.verdict and (words := known(result.verdict.zone_id, result.cell)):
            why += f"; {words}"
        value = f"{METRICS[metric].title} {METRICS[metric].text(result.value, more)}"
        mark = f"{LOOKS[result.status].symbol} {result.status}"
        rows.append((result.cell.id, mark, value, zone, code(why)))
    if len(shown) > _MOST_CELLS:
        rows.append(("", "", "", "", f"and {len(shown) - _MOST_CELLS} more: see the report"))
    return [*lines, *table(("cell", "verdict", "measured", "permitted", "why"), rows), "", "</details>"]


def _escaped(text: str) -> str:
    """Return text escaped for HTML inside Markdown, where code spans do not work."""
    import markupsafe

    return re.sub(r"[^ -~]", "?", str(markupsafe.escape(text))).replace("@", "&#64;").replace("|", "&#124;")
