"""Execute a command's plan: show a progress bar, and write measurements to a results file."""

import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from conformance.engine import unused
from conformance.engine.benches import Bench
from conformance.engine.execute import Answer, execute
from conformance.engine.plan import Judged, Plan, plan
from conformance.engine.progress import Progress
from conformance.engine.questions import Key, Question
from conformance.engine.workers import Executor
from conformance.model.family import not_confirmed
from conformance.model.judging.verdict import Status
from conformance.model.trials.trial import Measurement
from conformance.results.store import Store
from conformance.support.console import count
from conformance.support.notes import Notes


def amount(asked: Plan) -> str:
    """Return in words how many trials a Plan may take: "150 cells, 5 to 20 trials each: 750 to 3,000 trials"."""
    cells, numbers = len(asked.work), dict.fromkeys((asked.looks[0], asked.looks[-1]))
    each, total = (" to ".join(f"{n * times:,}" for n in numbers) for times in (1, cells))
    return f"{count(cells, 'cell')}, {each} trials each: {total} trials"


def answers(
    asked: Plan,
    bench: Bench,
    results: str | pathlib.Path,
    workers: int | None,
    notes: Notes,
    *,
    budget_s: float | None = None,
    executor: Callable[[], Executor] | None = None,
    compares_kernels: bool = False,
    new: Callable[[Judged], bool] = lambda judged: False,
    what: str = "measuring",
    on_trial: Callable[[Progress], None] = lambda progress: None,
) -> Iterator[Answer]:
    """Yield the Answers of a Plan as they are completed, and show a progress bar. Raise UserError.

    After `budget_s` seconds, measuring stops; the next run makes the trials that were under way again. If the results
    file holds trials of this plan on another kernel, a note names the kernel that is used now; `compares_kernels` turns
    this off, for commands that use several kernels on purpose. `new` tells whether a verdict is a new violation: trials
    that repeat it with fresh seeds are made in the same guests and kept in the file. `what` stands before the bar.
    `on_trial` is called with the run's Progress after each trial.
    """
    kept = Store(results)
    for line in () if compares_kernels else unused.lines(asked, bench, kept):
        notes.say(line)
    with notes.bar(what, budget_s=budget_s) as bar:

        def follow(progress: Progress) -> None:
            bar.follow(progress)
            on_trial(progress)

        yield from execute(
            asked, bench, kept, workers=workers, executor=executor, on_trial=follow, budget_s=budget_s, new=new
        )


def confirmed(
    asked: Plan,
    bench: Bench,
    results: str | pathlib.Path,
    workers: int | None,
    notes: Notes,
    new: Callable[[Judged], bool],
    left_s: Callable[[], float | None] = lambda: None,
) -> tuple[list[Answer], dict[Question, Judged]]:
    """Execute a Plan, judge each family together, and repeat `new` violations with fresh seeds. Raise UserError.

    Return the Answers, and the verdicts by question. A violation that its repeat does not show again is inconclusive.
    `left_s` returns the seconds that measuring may take; what is not measured by then has no verdict, and a violation
    whose repeat is not clear by then stands.
    """
    first = list(answers(asked, bench, results, workers, notes, new=new, budget_s=left_s()))
    judged = {one.question: one for one in asked.together(one for answer in first for one in answer.judged)}
    if violations := [one.question for one in judged.values() if new(one)]:
        again = asked.repeating(violations)
        repeats = answers(again, bench, results, workers, notes, budget_s=left_s())
        for repeated in (one for answer in repeats for one in answer.judged):
            if not again.next_look(repeated):  # else the budget ended before it was clear
                judged[repeated.question] = _unless_repeated(judged[repeated.question], repeated)
    return first, judged


def _unless_repeated(violation: Judged, again: Judged) -> Judged:
    """Return a violation unchanged if trials with fresh seeds violate, too, else as inconclusive."""
    if again.status is Status.VIOLATES:
        return violation
    reason = not_confirmed(violation.verdict, again.verdict)
    return dataclasses.replace(violation, verdict=violation.verdict.taken_back(reason))


def measure(
    bench: Bench,
    work: Iterable[Key],
    seeds: range,
    results: str | pathlib.Path,
    workers: int | None,
    notes: Notes,
    *,
    compares_kernels: bool = False,
) -> Iterator[tuple[Key, Sequence[Measurement]]]:
    """Measure each (algorithm, setting) of `work` with all `seeds`; yield (key, measurements) as they are completed.

    No zone judges them. `compares_kernels`: see answers(). Raise UserError.
    """
    asked = plan(trials=len(seeds), first_seed=seeds[0], work=work)
    for answer in answers(asked, bench, results, workers, notes, compares_kernels=compares_kernels):
        yield answer.key, answer.measurements
