"""`conformance run`: measure an algorithm over a grid without pytest, judge it by its zones, and make heatmaps."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.catalogue import documents
from conformance.catalogue.questions import zone_questions
from conformance.commands import common
from conformance.commands.measuring import amount, source
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_outcomes, of_verdicts, worst
from conformance.engine import benches
from conformance.engine.benches import Choice, Means
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.judging.session import Answer, Finding, Plan, Session, by_zone, plan, stored
from conformance.model.judging.verdict import Status, Verdict, ask
from conformance.model.judging.zone import Zone, judges
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome
from conformance.reporting import heatmaps
from conformance.reporting.heatmaps import CellResult, Series
from conformance.reporting.tools import export


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGrid(Result):
    """Measurements over a grid, as heatmaps with verdicts."""

    SCHEMA = "run"
    SHOWN = ("results", "not_judged", "schemes")

    series: tuple[Series, ...]
    #: File that holds the measurements.
    results: str
    #: Why no zone judges these settings, or null.
    not_judged: str | None

    @property
    def schemes(self) -> list[export.SeriesRecord]:
        """One for each scheme under each profile, as measured by one version of the lab, as `export json` has it."""
        return export.summary(self.series, ()).schemes

    @property
    def exit_status(self) -> ExitStatus:
        judged = (heatmap for series in self.series for heatmap in series.judged)
        return worst(exit_status(heatmap.results.values(), heatmap.kinds) for heatmap in judged)


def compute(
    algorithm: str,
    choice: Choice,
    means: Means,
    *,
    grid: str,
    trials: int,
    most_trials: int,
    profile: str | None,
    overrides: Mapping[str, Any],
    first_seed: int = seeds.JUDGED,
) -> MeasuredGrid:
    """Measure an algorithm over a grid, and judge it where zones apply.

    `overrides`: see documents.profile(). Raise UserError.
    """
    cells = documents.cells(grid)
    # Report mistakes in the settings before anything is looked up or built.
    documents.profile(profile or documents.PROFILES["tcp"], cells[0], **overrides)
    bench = benches.find(choice)
    profile = profile or bench.profile
    settings = [documents.profile(profile, cell, **overrides) for cell in cells]
    zones, not_judged = _zones(algorithm, settings[0])
    if not zones:
        common.require_offered(bench, algorithm)
    questions = [question for zone in zones for question in zone_questions(zone, settings, algorithm)]
    planned = plan(
        questions, trials=trials, most_trials=most_trials, first_seed=first_seed,
        work=[(algorithm, setting) for setting in settings],
    )  # fmt: skip
    if len(cells) > 1:
        means.notes.say(f"run: {bench.adapter.name}, {algorithm}: {amount(planned)}")
    measured: dict[Setting, Sequence[Measurement]] = {}
    findings: list[Finding] = []
    session = Session(plan=planned, confirms=False)
    for event in session.events(source(bench, means)):
        if isinstance(event, Answer):
            measured[event.setting] = event.measurements
            failed = (m for m in event.measurements if m.outcome in (Outcome.ERROR, Outcome.FAILED))
            for message in sorted({str(m.message) for m in failed}):
                means.notes.error(f"{event.setting.cell.id}: {message}")
        elif isinstance(event, Finding):
            findings.append(event)
    measurements = [m for setting in settings for m in measured[setting]]
    series = heatmaps.all_series(measurements, planned=by_zone([*_details(zones, measured, planned), *findings]))
    return MeasuredGrid(series=tuple(series), results=str(means.results), not_judged=not_judged)


def _details(zones: Iterable[Zone], measured: Mapping[Setting, Sequence[Measurement]], planned: Plan) -> list[Finding]:
    """Return the findings on single cells of zones that judge kinds of cells, which decide nothing (points.py)."""
    cells = {
        ask(zone, setting): {setting: measurements}
        for zone in zones
        if zone.by_kind
        for setting, measurements in measured.items()
        if judges(zone, setting, setting.point)
    }
    return stored(cells, planned.family) if cells else []


def _zones(algorithm: str, setting: Setting) -> tuple[list[Zone], str | None]:
    """Return the zones that apply to this setting, and None; or no zones, and why there are none."""
    zones = documents.zones_for(algorithm, setting)
    if zones:
        return zones, None
    try:
        zone_id = documents.zone_of(algorithm, profile=setting.profile).id
        return [], f"zone {zone_id} was measured under other settings"
    except UserError as error:
        return [], str(error)


def exit_status(results: Iterable[CellResult], kinds: Sequence[Verdict] = ()) -> ExitStatus:
    """Return the ExitStatus of CellResults: of their verdicts, or of those on `kinds` if a zone judges kinds of cells,
    and of the trials' outcomes where nothing is judged.
    """
    every = list(results)
    verdicts = kinds or [result.verdict for result in every if result.verdict is not None]
    not_judged = (r for r in every if r.verdict is None or r.verdict.status is Status.NOT_JUDGED)
    outcomes = of_outcomes(m.outcome for r in not_judged for m in r.measurements)
    return worst((of_verdicts(verdict.status for verdict in verdicts), outcomes))
