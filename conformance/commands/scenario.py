"""`conformance scenario`: run a scenario at points, list the scenarios that ship, or show one at a point.

Points that have zones are judged by them, all in one family.
"""

import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from conformance.catalogue import documents, scenarios
from conformance.catalogue.questions import zone_questions
from conformance.commands import common
from conformance.commands.measuring import source
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_outcomes, of_verdicts, worst
from conformance.engine import benches
from conformance.engine.benches import Choice, Means
from conformance.lab import job
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging.question import Question
from conformance.model.judging.session import Answer, Finding, Session, plan
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.metrics import group_metrics
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import KERNEL_STACK, Measurement, Outcome
from conformance.support import limits
from conformance.support.record import At, Record

#: name of all judged flows together, if they are in more than one group
JUDGED = "judged"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GroupFigure:
    """One metric of a group at a point."""

    SHOWN = ("group", "metric", "median", "values")

    #: A group's name; `judged` for all judged groups together.
    group: str
    metric: str
    #: Null for a trial that did not see it.
    values: tuple[float | None, ...]

    @property
    def median(self) -> float | None:
        """Null if a trial did not see it."""
        known = [value for value in self.values if value is not None]
        return statistics.median(known) if known and len(known) == len(self.values) else None


class PointVerdictRecord(Record):
    zone: Annotated[str, At("zone_id")]
    verdict: Annotated[Status, At("status")]
    reason: Annotated[str, At("words")]
    median: Annotated[float | None, At("value")]
    permitted: Annotated[list[float], At("permitted.low", "permitted.high")]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PointRan:
    """The results at one point: figures of its groups, messages of trials that failed, and verdicts of zones."""

    SHOWN = ("point", "outcomes", "figures", "messages", "triggered", "verdicts")

    #: AXIS=VALUE, separated by commas.
    point: str
    #: One for each trial.
    outcomes: tuple[Outcome, ...]
    figures: tuple[GroupFigure, ...]
    messages: tuple[str, ...]
    #: Verdicts by the zones that have this point.
    verdicts: Annotated[tuple[Verdict, ...], list[PointVerdictRecord]] = ()
    #: When the states that the schedule waits for began, in seconds after the beginning of each trial.
    triggered: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)

    def median(self, group: str, metric: str) -> float | None:
        """Return the median of a figure, None if it is not known."""
        return next(
            (figure.median for figure in self.figures if (figure.group, figure.metric) == (group, metric)), None
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HarmedPoint:
    """The results at one point, beside those at the point `alone`."""

    SHOWN = (*(f"{name}=ran.{name}" for name in PointRan.SHOWN), "harm")

    ran: PointRan
    #: By what share a group's goodput is lower than at the point `alone`.
    harm: dict[str, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResults(Result):
    """The results of a scenario. `alone`: the point that harm (RFC 9743) is computed against, if one was named."""

    SCHEMA = "scenario-run"
    SHOWN = ("scenario", "scheme", "trials", "points=harmed", "alone", "results")

    scenario: str
    scheme: str
    trials: int
    points: tuple[PointRan, ...]
    alone: PointRan | None
    results: str

    @property
    def exit_status(self) -> ExitStatus:
        """The worst of the trials' outcomes and of the zones' violations and errors.

        Inconclusive zones do not count, because with few trials zones are often inconclusive.
        """
        ran = [*self.points, *([self.alone] if self.alone else [])]
        status = [
            verdict.status
            for point in ran
            for verdict in point.verdicts
            if verdict.status.against or verdict.status is Status.ERROR
        ]
        return worst([of_outcomes(outcome for point in ran for outcome in point.outcomes), of_verdicts(status)])

    @property
    def harmed(self) -> list[HarmedPoint]:
        """The points, with the harm at each."""
        return [HarmedPoint(ran=point, harm=dict(self.harms(point))) for point in self.points]

    def harms(self, at: PointRan) -> Iterator[tuple[str, float]]:
        """Yield (group, the share of its goodput at `alone` that it loses at this point), from 0 to 1."""
        for figure in at.figures if self.alone else ():
            if figure.metric == "group_goodput_mbps" and figure.group != JUDGED:
                alone = self.alone.median(figure.group, figure.metric) if self.alone else None
                harm = None if alone is None or figure.median is None else group_metrics.harm(alone, figure.median)
                if harm is not None:
                    yield figure.group, harm


def run(
    what: str,
    algorithm: str,
    choice: Choice,
    means: Means,
    *,
    points: Sequence[str],
    grid: str | None,
    alone: str | None,
    trials: int,
    first_seed: int,
) -> ScenarioResults:
    """Run a scenario at a point or over a grid of points. Raise UserError."""
    scenario = scenarios.find(what)
    chosen = list(_chosen(scenario, points, grid))
    compared = _point(scenario, [alone]) if alone is not None else None
    settings = {point: scenario.setting(point) for point in dict.fromkeys((*chosen, *([compared] if compared else [])))}
    if (free_mb := limits.free_memory_mb()) is not None:
        for setting in settings.values():
            job.check_memory(setting, choice.interop_rootfs or choice.stack, free_mb)
    bench = benches.find(choice)
    common.require_offered(bench, algorithm)
    for setting in settings.values():
        if bench.adapter.name != KERNEL_STACK and not any(group.is_stack for group in setting.network.flows):
            raise UserError(
                f"/flows: all flows are of the guest's kernel, and none is of {bench.adapter.name}",
                "leave --stack out: linux-tcp is the kernel's TCP",
            )
        if why_not := job.why_not(setting, bench.adapter):
            if job.lacks_tcp(setting, bench.adapter):
                raise UserError(f"/boxes: {why_not}", "choose a stack over TCP")
            raise UserError(
                f"/flows: {why_not}", "request one body per connection, or see docs/contract.md on contract 2"
            )
    questions = _questions(algorithm, settings.values())
    planned = plan(
        questions, trials=trials, first_seed=first_seed, work=[(algorithm, setting) for setting in settings.values()]
    )
    events = list(Session(plan=planned, confirms=False).events(source(bench, means)))
    measured = {event.setting: event.measurements for event in events if isinstance(event, Answer)}
    judged = {event.name: event.verdict for event in events if isinstance(event, Finding)}
    # A verdict on a kind of points is one on each of them.
    verdicts = grouped((setting, judged[question.name]) for question in questions for setting in question.settings)
    ran = {point: _ran(point, measured[at], verdicts.get(at, ())) for point, at in settings.items()}
    return ScenarioResults(
        scenario=scenario.name,
        scheme=bench.scheme(algorithm).id,
        trials=trials,
        points=tuple(ran[point] for point in chosen),
        alone=None if compared is None else ran[compared],
        results=str(means.results),
    )


def _questions(algorithm: str, settings: Iterable[Setting]) -> list[Question]:
    """Return the questions of an algorithm's zones about points; cells are judged by `conformance run`."""
    of_points = [setting for setting in settings if not isinstance(setting.point, Cell)]
    zones = {zone.id: zone for setting in of_points for zone in documents.zones_for(algorithm, setting)}
    return [question for zone in zones.values() for question in zone_questions(zone, of_points, algorithm)]


def _chosen(scenario: Scenario, points: Sequence[str], grid: str | None) -> Iterable[Point]:
    """Return the points to run: one point, or those points of `grid` that have the given values. Raise UserError."""
    if grid is None:
        return [_point(scenario, points)]
    given = scenario.given(",".join(points))
    scenario.point(given)
    matching = [point for point in scenario.grid(grid) if given.items() <= scenario.values(point).items()]
    if not matching:
        raise UserError(f"grid {grid} of {scenario.name} has no point with {', '.join(points)}")
    return matching


def _point(scenario: Scenario, texts: Sequence[str]) -> Point:
    return scenario.parse(",".join(texts))


def _ran(point: Point, measurements: Sequence[Measurement], verdicts: Sequence[Verdict]) -> PointRan:
    good = [measurement for measurement in measurements if measurement.outcome in (Outcome.OK, Outcome.TIMEOUT)]
    # Published result lines have no evidence.
    triggered = [measurement.evidence["triggered"] for measurement in good if "triggered" in measurement.evidence]
    return PointRan(
        point=point.id,
        outcomes=tuple(measurement.outcome for measurement in measurements),
        figures=tuple(_figures(good)),
        messages=tuple(sorted({str(measurement.message) for measurement in measurements if measurement.message})),
        verdicts=tuple(verdicts),
        triggered={state: tuple(times[state] for times in triggered) for state in (triggered[0] if triggered else ())},
    )


def _figures(measurements: Sequence[Measurement]) -> Iterator[GroupFigure]:
    """Yield the figures of each group that have a value."""
    if not measurements:
        return
    network = measurements[0].setting.network
    judged = [group.name for group in network.flows if group.judged]
    groups: Mapping[str, str | None] = {
        **({JUDGED: None} if len(judged) > 1 else {}),
        **{group.name: group.name for group in network.flows},
    }
    for title, group in groups.items():
        for name, metric in METRICS.items():
            yield from _figure(title, name, [metric.of(measurement, group) for measurement in measurements])


def _figure(group: str, metric: str, values: Sequence[float | None]) -> Iterator[GroupFigure]:
    if any(value is not None for value in values):
        rounded = (None if value is None else round(value, 6) for value in values)
        yield GroupFigure(group=group, metric=metric, values=tuple(rounded))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioList(Result):
    """The scenarios that ship, and the profiles."""

    SCHEMA = "scenario-list"

    scenarios: tuple[common.TitleRecord, ...]


def list_all() -> ScenarioList:
    """List the scenarios that ship, and the profiles. Raise UserError."""
    return ScenarioList(
        scenarios=tuple(common.TitleRecord(name=name, title=scenarios.find(name).title) for name in scenarios.names())
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Result):
    """A scenario, one of its points, and the Setting there."""

    SCHEMA = "scenario-show"
    SHOWN = (
        "scenario=scenario.name", "title=scenario.title", "axes=scenario.axes",
        #: {name: its points}
        "grids=scenario.grids",
        "point", "setting=written_setting", "memory_mb",
    )  # fmt: skip

    scenario: Scenario
    point: Point
    setting: Setting
    #: What a guest needs.
    memory_mb: int

    @property
    def written_setting(self) -> dict[str, Any]:
        """As in result lines (measurement.json)."""
        return self.setting.to_json()


def show(what: str, points: Sequence[str]) -> Shown:
    """Show a scenario at a point. Raise UserError."""
    scenario = scenarios.find(what)
    point = _point(scenario, points)
    setting = scenario.setting(point)
    return Shown(scenario=scenario, point=point, setting=setting, memory_mb=job.memory_mb(setting))
