"""`conformance run`: a grid without pytest. Measures, shows progress, judges, draws."""

import contextlib
import time

import rich.progress
import rich.text

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.engine.execute import execute
from conformance.engine.plan import CellQuestion, plan
from conformance.model.errors import UserError
from conformance.model.trial import Outcome
from conformance.model.verdict import Status
from conformance.reporting import heatmaps
from conformance.reporting.text import terminal
from conformance.results import store
from conformance.support.console import duration

#: between two lines of progress where there is no terminal
_LINE_S = 30.0


def run(
    algorithm, choice, *, grid, trials, most_trials, results, profile, overrides, workers, console, executor=None
):  # fmt: skip
    """Measure and show; returns the exit status (README.md). Raises UserError."""
    cells = documents.cells(grid)
    # A mistake in the settings is named before anything is looked up or built.
    documents.profile(profile or documents.PROFILES["tcp"], cells[0], **overrides)
    bench = benches.find(choice)
    profile = profile or bench.profile
    settings = [documents.profile(profile, cell, **overrides) for cell in cells]
    zones = _zones(algorithm, settings[0], console)
    if not zones and bench.adapter.why_not(algorithm):
        raise UserError(f"{bench.adapter.name} offers no algorithm {algorithm!r}, and there is no zone for it")
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


def answers(asked, bench, results, workers, console, budget_s=None, executor=None):
    """Yield the Answers of a Plan as they are completed, under a bar. Raise UserError.

    After `budget_s` seconds no more: what was under way then is ended, and made anew by the next run.
    """
    with _bar(console, budget_s) as show:
        yield from execute(
            asked, bench, store.Store(results), workers=workers, executor=executor, on_trial=show, budget_s=budget_s
        )


def measure(bench, work, seeds, results, workers, console):
    """Yield ((algorithm, setting), measurements) of `work`, all seeds of each, as they are completed, under a bar.

    Raise UserError.
    """
    asked = plan(trials=len(seeds), first_seed=seeds[0], work=work)
    for answer in answers(asked, bench, results, workers, console):
        yield answer.key, answer.measurements


@contextlib.contextmanager
def _bar(console, budget_s=None):
    """A bar with the time that is left, moved by the function it gives; gone when done.

    Where there is no terminal, as in CI, a line every half a minute.
    """
    began = last = time.monotonic()

    def words(progress):
        if budget_s is None:
            return progress.line()
        left = max(budget_s - (time.monotonic() - began), 0)
        return f"{progress.line()}; {duration(left)} of the budget left"

    def print_line(progress):
        nonlocal last
        if time.monotonic() - last >= _LINE_S:
            last = time.monotonic()
            console.print(words(progress), soft_wrap=True)

    if not console.is_terminal:
        yield print_line
        return
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TextColumn("{task.fields[line]}"),
    )
    with rich.progress.Progress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("measuring", total=None, line="starting guests")
        yield lambda progress: bar.update(task, completed=progress.done, total=progress.total, line=words(progress))


def _complain(console, cell, measurements):
    for message in sorted({m.message for m in measurements if m.outcome is Outcome.ERROR}):
        console.print(rich.text.Text.assemble(("error ", "red"), f"{cell.id}: {message}"), soft_wrap=True)


def exit_status(results):
    """The worst of these cells, judged or not, as an exit status."""
    found = set()
    for result in results:
        if result.verdict is not None:
            found.add(result.verdict.status)
        elif result.value is None:
            found.add(Status.UNSUPPORTED if result.unsupported else Status.ERROR)
    if Status.VIOLATES in found:
        return 1
    if Status.ERROR in found:
        return 3
    return 4 if found & {Status.INCONCLUSIVE, Status.UNSUPPORTED} else 0
