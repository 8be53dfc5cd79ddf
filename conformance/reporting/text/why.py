"""Show the result of `conformance why`: ranked suspects with their evidence, and a chart of flights over time."""

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy
import rich.console

from conformance.model.diagnosis import feature_table, features, flow
from conformance.model.diagnosis.ranking import Evidence, Suspect
from conformance.model.diagnosis.samples import Samples
from conformance.reporting.text import clause, markdown
from conformance.support.console import count, printable, table

if TYPE_CHECKING:
    from conformance.commands.tracing import Traced
    from conformance.commands.why import NotTraced, Report

#: most pieces of evidence shown for a suspect; all are in why.json
_MOST_EVIDENCE = 3
#: most differences that no suspect explains; all are in why.json
_MOST_UNEXPLAINED = 3
#: most networks named that were not looked at
_MOST_NAMED = 6
_POINTS, _LOSSES = 500, 400
#: two strokes, as an SVG path: the chart library's own "cross" is an outline, which at this size looks like a disc
_CROSS = "M-1,-1L1,1M-1,1L1,-1"


def show_asked(report: "Report | NotTraced", console: rich.console.Console) -> None:
    """Show the report, or why there is none."""
    # The commands show reports with this module, so it cannot import theirs.
    if hasattr(report, "untraced"):
        console.print(report.untraced, soft_wrap=True)
    else:
        show(report, console)


def show(report: "Report", console: rich.console.Console) -> None:
    """Show the suspects, the likeliest first, with the evidence for each and where to look at it."""
    title = _title(report)
    if not report.suspects:
        console.print(f"{title}: {_nothing(report)}", soft_wrap=True)
    else:
        rows = ((of.label, f"{of.weight:.1f}", "\n".join(_evidence(report, of))) for of in report.suspects)
        header = ("suspect", "weight", "evidence")
        console.print(table(header, rows, ("weight",), whole=header[:2], title=title, show_lines=True))
    if text := _blamed(report):
        console.print(text, soft_wrap=True)
    for text in _unexplained(report):
        console.print(text, style="yellow", soft_wrap=True)
    for text in _permitted(report):
        console.print(text, soft_wrap=True)
    facts = [_fact(report, function) for function in (features.packet_fill, features.ack_ratio)]
    console.print(f"also: {'; '.join(fact for fact in facts if fact)}", soft_wrap=True)
    if report.clauses:
        console.print(clause.failing(report.clauses), soft_wrap=True)
        for text in report.clauses.faults:
            console.print(f"likely by these clauses: {text}", soft_wrap=True, markup=False, highlight=False)
    for what in (*report.problems, *_not_looked_at(report)):
        console.print(f"not looked at: {what}", style="yellow", soft_wrap=True)
    if report.not_shown:
        console.print(_not_shown(report), style="yellow", soft_wrap=True)


def lines(report: "Report") -> Iterator[str]:
    """Yield the same as Markdown, with a line for each suspect."""
    title = markdown.span(_title(report))
    yield from (f"{title}:", "") if report.suspects else (f"{title}: {_nothing(report)}",)
    for suspect in report.suspects:
        yield f"- **{suspect.label}** {suspect.weight:.1f}: {'. '.join(_evidence(report, suspect))}"
    if text := _blamed(report):
        yield f"- {text}"
    yield from (f"- {text}" for text in (*_unexplained(report), *_permitted(report)))
    if report.clauses:
        yield f"- {markdown.span(clause.failing(report.clauses))}"
        yield from (f"- likely by these clauses: {markdown.span(text)}" for text in report.clauses.faults)
    for what in (*report.problems, *_not_looked_at(report)):
        yield f"- not looked at: {markdown.span(what)}"
    if report.not_shown:
        yield f"- {_not_shown(report)}"


def _nothing(report: "Report") -> str:
    """Return, in words, that there is no suspect, or that nothing could be compared."""
    if not report.compared:
        return "not known: no feature was seen on both sides"
    return f"nothing looks wrong in {report.compared} features"


def _not_shown(report: "Report") -> str:
    return f"not compared, as only the reference shows it: {', '.join(report.not_shown)}"


def _blamed(report: "Report") -> str | None:
    """Return how the rate in the cell with many losses differs, and why; None if it is as permitted, or not known."""
    blame = report.blame
    if blame is None or blame.permitted[0] <= blame.total.value <= blame.permitted[1]:
        return None
    return f"rate at {report.blamed_cell}, {blame.sentence}"


def _unexplained(report: "Report") -> Iterator[str]:
    """Yield a sentence for each difference of rate that no suspect explains."""
    for difference, why_not in report.unexplained[:_MOST_UNEXPLAINED]:
        reasons = "; ".join(f"{label}: {reason}" for label, reason in why_not.items())
        both = f"it had {difference.ours:.2f} of the link's rate, the reference {difference.theirs:.2f}"
        rates = f"at {difference.where} {both}"
        yield f"no suspect explains this: {rates}{f' ({reasons})' if reasons else ''}"
    if more := len(report.unexplained) - _MOST_UNEXPLAINED:
        yield from [f"and {more} more that no suspect explains"] if more > 0 else []


def _permitted(report: "Report") -> Iterator[str]:
    """Yield a sentence for each difference from the reference that documents permit, and so is no suspect."""
    yield from (f"differs as documents permit: {evidence.sentence}" for evidence in report.permitted)


def _not_looked_at(report: "Report") -> Iterator[str]:
    """Yield which networks that change were left to `compare`, if any were."""
    if names := report.not_looked_at:
        more = ", ..." if len(names) > _MOST_NAMED else ""
        networks = count(len(names), "network")
        yield f"{networks} in which `compare` looks at two builds ({', '.join(names[:_MOST_NAMED])}{more})"


def _title(report: "Report") -> str:
    return f"{report.stack.name} against {report.against}"


def _evidence(report: "Report", suspect: Suspect) -> list[str]:
    said = [f"{evidence.sentence}; {_where(report, evidence)}" for evidence in suspect.evidence[:_MOST_EVIDENCE]]
    more = len(suspect.evidence) - _MOST_EVIDENCE
    return said + ([f"and {more} more"] if more > 0 else [])


def _where(report: "Report", evidence: Evidence) -> str:
    """Return one place in a trace to look at; why.json has more."""
    cell, seed, at_s = report.pcap_s(evidence)[0]
    return f"see {cell}, seed {seed}, {at_s:.2f} s"


def _fact(report: "Report", function: Callable[[flow.Flow], Samples]) -> str | None:
    """Return a fact that is no suspect, but may explain one; None if it was not seen."""
    flows = next(iter(report.stack.flows.values()))
    values = function(next(iter(flows.values()))).values
    words = {
        "packet_fill": "packets are {:.0%} full on average",
        "ack_ratio": "the client sends {:.2f} packets for each that it receives",
    }
    return words[function.__name__].format(values[0]) if len(values) else None


def svg(report: "Report") -> str:
    """Draw flight and losses over time, of stack and reference, in the cells without random loss and with a little."""
    import altair  # imported late: not every installation has the libraries that draw

    from conformance.reporting import charts

    drawn = {"stack": report.stack} | ({"reference": report.reference} if report.reference else {})
    data = [row for who, traced in drawn.items() for row in _rows(traced, who)]
    base = altair.Chart(altair.Data(values=data)).encode(
        x=altair.X("seconds:Q", title="seconds since the first packet"),
        y=altair.Y("flight_bdp:Q", title="in flight, BDP"),
        color=altair.Color("who:N", title=None, scale=altair.Scale(domain=list(drawn))),
    )
    curves = base.transform_filter("!datum.lost").mark_line(strokeWidth=1)
    losses = base.transform_filter("datum.lost").mark_point(shape=_CROSS, size=40, strokeWidth=1.5)
    chart = (
        altair.layer(curves, losses)
        .properties(width=900, height=200)
        .facet(row=altair.Row("cell:N", title=None))
        .properties(title=f"{printable(report.stack.name)}: flight, with a cross where a loss became known")
        .configure(font=charts.FONT)
    )
    return charts.svg(chart)


def _rows(traced: "Traced", who: str) -> Iterator[dict[str, Any]]:
    """Yield the highest flight in each of _POINTS equal periods, and at most _LOSSES losses, for each cell."""
    names = [name for name in (feature_table.CLEAN, feature_table.FEW) if traced.flows.get(name)]
    for name in names or traced.flows:
        first, cell = next(iter(traced.flows[name].values())), traced.under[name].id
        edges = numpy.linspace(0, first.sent_s[-1], _POINTS + 1)
        for start_s, end_s in itertools.pairwise(edges):
            flight = first.window(start_s, end_s)
            if numpy.isfinite(flight):
                yield _row(cell, who, start_s, flight * first.full_bytes / first.bdp_bytes, False)
        for event in flow.loss_events(first)[:_LOSSES]:
            if numpy.isfinite(event.before):
                yield _row(cell, who, event.known_s, event.before * first.full_bytes / first.bdp_bytes, True)


def _row(cell: str, who: str, seconds: float, flight_bdp: float, lost: bool) -> dict[str, Any]:
    return {"cell": cell, "who": who, "seconds": float(seconds), "flight_bdp": float(flight_bdp), "lost": lost}
