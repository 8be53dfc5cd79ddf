"""`conformance run`: a grid without pytest. Measures, shows progress, judges, draws."""

import rich.text

from conformance.catalogue import documents
from conformance.commands import common
from conformance.commands.measuring import answers, measure
from conformance.commands.status import of_verdicts
from conformance.engine import benches
from conformance.engine.plan import CellQuestion, plan
from conformance.model.errors import UserError
from conformance.model.trial import Outcome
from conformance.model.verdict import Status
from conformance.reporting import heatmaps
from conformance.reporting.text import terminal


def run(
    algorithm, choice, *, grid, trials, most_trials, results, profile, overrides, workers, console, executor=None
):  # fmt: skip
    """Measure and show; returns the exit status (docs/command.md). Raises UserError."""
    cells = documents.cells(grid)
    # A mistake in the settings is named before anything is looked up or built.
    documents.profile(profile or documents.PROFILES["tcp"], cells[0], **overrides)
    bench = benches.find(choice)
    profile = profile or bench.profile
    settings = [documents.profile(profile, cell, **overrides) for cell in cells]
    zones = _zones(algorithm, settings[0], console)
    if not zones:
        common.require_offered(bench, algorithm)
    questions = [
        CellQuestion(zone=zone, setting=setting, algorithm=algorithm)
        for setting in settings
        for zone in zones
        if setting.cell in zone.intervals
    ]
    asked = plan(
        questions, trials=trials, most_trials=max(trials, most_trials), work=[(algorithm, one) for one in settings]
    )
    measured = {}
    for answer in answers(asked, bench, results, workers, console, executor=executor):
        measured[answer.setting] = answer.measurements
        _complain(console, answer.setting.cell, answer.measurements)
    series = heatmaps.all_series([m for setting in settings for m in measured[setting]])
    terminal.show(series, console)
    console.print(f"results: {results}", soft_wrap=True)
    return exit_status(result for one in series for heatmap in one.judged for result in heatmap.results.values())


def _zones(algorithm, setting, console):
    """The zones that apply to this setting; none, having said why."""
    zones = documents.zones_for(algorithm, setting.profile_digest)
    if not zones:
        try:
            zone_id = documents.zone_of(algorithm, profile=setting.profile).id
            why_not = f"zone {zone_id} was measured under other settings"
        except UserError as error:
            why_not = str(error)
        console.print(f"not judged: {why_not}", style="yellow", soft_wrap=True)
    return zones


def _complain(console, cell, measurements):
    for message in sorted({m.message for m in measurements if m.outcome is Outcome.ERROR}):
        console.print(rich.text.Text.assemble(("error ", "red"), f"{cell.id}: {message}"), soft_wrap=True)


def exit_status(results):
    """Return the ExitStatus of CellResults, judged or not."""
    return of_verdicts(_status(result) for result in results)


def _status(result):
    if result.verdict is not None:
        return result.verdict.status
    if result.value is not None:
        return Status.CONFORMS  # measured, and no zone judges it
    return Status.UNSUPPORTED if result.unsupported else Status.ERROR


__all__ = ["exit_status", "measure", "run"]
