"""Show the results of `conformance scenario` in a terminal."""

from typing import TYPE_CHECKING

import rich.console
import rich.table

from conformance.model.judging.question import Named
from conformance.model.judging.verdict import Verdict
from conformance.model.metrics.table import METRICS
from conformance.model.rounding import told
from conformance.support.console import count, table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.scenario import PointRan, ScenarioList, ScenarioResults, Shown


#: decimals of medians and bounds; there are more if these do not tell them apart
_DIGITS = 3


def show_ran(ran: "ScenarioResults", console: rich.console.Console) -> None:
    """Show a table for each point: a row for each metric, a column for each group, medians over trials."""
    points = [*ran.points, *([ran.alone] if ran.alone and ran.alone not in ran.points else [])]
    for at in points:
        where = f"{ran.scenario} {at.point}".strip()
        console.print(f"{where}: {ran.scheme}, {count(len(at.outcomes), 'trial')}", style="bold", soft_wrap=True)
        if at.figures:
            console.print(_table(ran, at))
        for state, times in at.triggered.items():
            # One time, or the earliest and the latest of several.
            ends = " to ".join(f"{time:.3f}" for time in dict.fromkeys((min(times), max(times))))
            console.print(f"{state} began at {ends} s", soft_wrap=True)
        for verdict in at.verdicts:
            console.print(_verdict(verdict), style="red" if verdict.status.against else "", soft_wrap=True)
        for message in at.messages:
            console.print(message, style="yellow", soft_wrap=True)
    console.print(f"results: {ran.results}", soft_wrap=True)


def _table(ran: "ScenarioResults", at: "PointRan") -> rich.table.Table:
    groups = list(dict.fromkeys(figure.group for figure in at.figures))
    rows = []
    for name in dict.fromkeys(figure.metric for figure in at.figures):
        metric = METRICS[name]
        values = [at.median(group, name) for group in groups]
        rows.append((metric.title, *("" if value is None else metric.text(value) for value in values)))
    harms = dict(ran.harms(at)) if at is not ran.alone else {}
    if harms:
        rows.append(("harm", *(f"{harms[group]:.2f}" if group in harms else "" for group in groups)))
    return table(("median", *groups), rows, groups)


def _verdict(verdict: Verdict) -> str:
    """Return a zone's verdict on a point, or on its kind, in words, with the median and what is permitted."""
    kind = f", {verdict.place.id}" if isinstance(verdict.place, Named) else ""
    text = f"zone {verdict.zone_id}{kind}: {verdict.status}, {verdict.words}"
    if verdict.value is None:
        return text
    return f"{text}; median {told(verdict.value, verdict.permitted.low, verdict.permitted.high, _DIGITS)}"


def show_listed(listed: "ScenarioList", console: rich.console.Console) -> None:
    """Show the names and titles of scenarios."""
    rows = ((scenario.name, scenario.title) for scenario in listed.scenarios)
    console.print(table((), rows, box=None, show_header=False))


def show_shown(shown: "Shown", console: rich.console.Console) -> None:
    """Show a scenario's axes and grids, and its network and flows at a point."""
    scenario = shown.scenario
    console.print(f"{scenario.name}: {scenario.title}", soft_wrap=True)
    for axis in scenario.axes:
        values = ", ".join(map(str, axis.values))
        console.print(f"axis {axis.name}: {values} ({', '.join(axis.sets)})", soft_wrap=True)
    for name, points in sorted(scenario.grids.items()):
        console.print(f"grid {name}: {count(len(points), 'point')}", soft_wrap=True)
    console.print(f"at {shown.point.id or 'its one point'}:", soft_wrap=True)
    network = shown.setting.network
    for link in network.links:
        for way, direction in link.directions:
            ends = " to ".join(link.ends[:: -1 if way == "data" else 1])
            console.print(f"  link {link.name}, {way} ({ends}): {_words(direction.to_json())}", soft_wrap=True)
    if network.bond is not None:
        counts = " and ".join(
            f"{n} by {name}" for n, name in zip(network.bond.packets(network.links), network.bond.links, strict=True)
        )
        about = {key: value for key, value in network.bond.to_json().items() if key not in ("links", "ends")}
        console.print(f"  bond: of every {network.bond.batch} packets, {counts}; {_words(about)}", soft_wrap=True)
    for splitter in network.splitters:
        about = {key: value for key, value in splitter.to_json().items() if key != "node"}
        console.print(f"  splitter at {splitter.node}: {_words(about)}", soft_wrap=True)
    for group in network.flows:
        about = {key: value for key, value in group.to_json().items() if key not in ("name", "ends")}
        rtt_ms = 1000 * network.rtt_s(group)
        console.print(f"  flows {group.name}: {_words(about)}; round trip {rtt_ms:g} ms", soft_wrap=True)
    for entry in network.schedule:
        about = entry.to_json()
        if entry.trace is not None:
            about["trace"] = f"{entry.trace.file}, {count(len(entry.trace.rates_mbps), 'rate')}"
        console.print(f"  schedule: {_words(about)}", soft_wrap=True)
    console.print(f"  a guest of {shown.memory_mb} MB", soft_wrap=True)


def _words(record: dict[str, object]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in record.items()) or "nothing"


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"({'; '.join(map(_value, value))})"
    return _words(value) if isinstance(value, dict) else str(value)
