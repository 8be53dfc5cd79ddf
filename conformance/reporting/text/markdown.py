"""Results for a pull request or a job summary, as GitHub and GitLab render Markdown.

What a stack calls itself may hold anything: it stands in code spans, where neither HTML nor mentions nor links count.
"""

import re

from conformance.reporting.html import colours, heatmap_table
from conformance.support.console import count

#: a comment that nobody reads to the end helps nobody
_MOST_CELLS = 20


def code(text):
    """Any text as a code span inside a table's row, where even in a code span a bar ends the cell."""
    return span(" ".join(text.split())).replace("|", chr(92) + "|")


def span(text):
    """Any text as a code span: its fence is longer than any run of backticks in it."""
    plain = "".join(c if c.isprintable() else " " for c in text).strip()
    fence = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}" if plain else ""


def render(all_series, title="Congestion-control conformance", known=lambda zone_id, cell: None):
    """A table of schemes, and for each of them the cells that do not conform.

    `known(zone id, cell)`: what a stack is known to do there, in words, or None.
    """
    lines = [f"### {title}", "", "| scheme | settings | verdicts |", "|---|---|---|"]
    for series in all_series:
        verdicts = "<br>".join(_verdict(heatmap) for heatmap in series.judged)
        lines.append(f"| {code(series.scheme.id)} | {code(series.utilization.settings)} | {verdicts} |")
    for series in all_series:
        lines += _cells(series, known)
    return "\n".join(lines) + "\n"


def _verdict(heatmap):
    verdict = heatmap.verdict
    rate = f"; {heatmap.false_alarms}" if heatmap.false_alarms else ""
    return (
        f"{heatmap_table.METRICS[heatmap.metric][0]}: {colours.SYMBOLS[verdict]} **{verdict}**: {heatmap.words}{rate}"
    )


def _cells(series, known):
    found = [
        (heatmap.metric, result)
        for heatmap in series.heatmaps
        for result in heatmap.results.values()
        if result.status not in ("conforms", "not judged", "unsupported")
    ]
    if not found:
        return []
    what = _escaped(f"{series.scheme.id}, {series.utilization.settings}")
    lines = ["", f"<details><summary>{count(len(found), 'verdict')} of {what}</summary>", ""]
    lines += ["| cell | verdict | measured | permitted | why |", "|---|---|---|---|---|"]
    for metric, result in found[:_MOST_CELLS]:
        permitted = result.permitted
        zone = (
            f"{heatmap_table.number(metric, permitted.low, 1)} to {heatmap_table.number(metric, permitted.high, 1)}"
            if permitted
            else ""
        )
        why = result.verdict.reason if result.verdict else result.message or ""
        if result.verdict and (words := known(result.verdict.zone_id, result.cell)):
            why += f"; {words}"
        value = f"{heatmap_table.METRICS[metric][0]} {heatmap_table.number(metric, result.value, 1)}"
        mark = f"{colours.SYMBOLS[result.status]} {result.status}"
        lines.append(f"| {result.cell.id} | {mark} | {value} | {zone} | {code(why)} |")
    if len(found) > _MOST_CELLS:
        lines.append(f"| | | | | and {len(found) - _MOST_CELLS} more: see the report |")
    return [*lines, "", "</details>"]


def _escaped(text):
    """For HTML inside Markdown, where code spans do not work."""
    import markupsafe

    return re.sub(r"[^ -~]", "?", str(markupsafe.escape(text))).replace("@", "&#64;").replace("|", "&#124;")
