"""Execute a command's plan: show a progress bar, and write measurements to a results file."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from conformance.engine import unused
from conformance.engine.benches import Bench, Means
from conformance.engine.execute import execute
from conformance.engine.progress import RunProgress
from conformance.model.judging.question import Key
from conformance.model.judging.session import Answer, Event, EventSource, Judged, Plan, plan
from conformance.model.trials.trial import Measurement
from conformance.results.store import Store
from conformance.support.console import count


def amount(plan: Plan) -> str:
    """Return in words how many trials a Plan may take: "150 cells, 5 to 20 trials each: 750 to 3,000 trials"."""
    cells, numbers = len(plan.work), dict.fromkeys((plan.looks[0], plan.looks[-1]))
    each, total = (" to ".join(f"{n * times:,}" for n in numbers) for times in (1, cells))
    return f"{count(cells, 'cell')}, {each} trials each: {total} trials"


def answers(
    plan: Plan,
    bench: Bench,
    means: Means,
    *,
    budget_s: float | None = None,
    compares_kernels: bool = False,
    new: Callable[[Judged], bool] = lambda judged: False,
    what: str = "measuring",
    on_trial: Callable[[RunProgress], None] = lambda progress: None,
) -> Iterator[Answer]:
    """Yield the Answers of a Plan as they are completed, and show a progress bar. Raise UserError.

    After `budget_s` seconds, measuring stops; the next run makes the trials that were under way again. If the results
    file holds trials of this plan on another kernel, a note names the kernel that is used now; `compares_kernels` turns
    this off, for commands that use several kernels on purpose. `new` tells whether a verdict is a new violation: trials
    that repeat it with fresh seeds are made in the same guests and kept in the file. `what` stands before the bar.
    `on_trial` is called with the run's RunProgress after each trial.
    """
    kept = Store.opened(means.results)
    for line in () if compares_kernels else unused.lines(plan, bench, kept):
        means.notes.say(line)
    with means.notes.bar(what, budget_s=budget_s) as bar:

        def follow(progress: RunProgress) -> None:
            bar.follow(progress)
            on_trial(progress)

        yield from execute(
            plan, bench, kept, workers=means.workers, executor=means.executor, on_trial=follow, budget_s=budget_s,
            new=new,
        )  # fmt: skip


def source(
    bench: Bench,
    means: Means,
    *,
    new: Callable[[Judged], bool] = lambda judged: False,
    left_s: Callable[[], float | None] = lambda: None,
    on_trial: Callable[[RunProgress], None] = lambda progress: None,
) -> EventSource:
    """Return the EventSource that measures what a Plan asks for; see answers().

    `left_s` returns the seconds that measuring may take; what is not measured by then is not judged.
    """

    def events(plan: Plan) -> Iterator[Event]:
        measured: dict[Key, Sequence[Measurement]] = {}
        for answer in answers(
            plan, bench, means, budget_s=left_s(), on_trial=on_trial,
            new=(lambda judged: False) if plan.repeats else new,
        ):  # fmt: skip
            yield answer
            yield from answer.judged
            measured[answer.key] = answer.measurements
        yield from plan.of_several(measured)

    return events


def measure(
    bench: Bench, work: Iterable[Key], seeds: range, means: Means
) -> Iterator[tuple[Key, Sequence[Measurement]]]:
    """Measure each (algorithm, setting) of `work` with all `seeds`; yield (key, measurements) as they are completed.

    No zone judges them. Raise UserError.
    """
    planned = plan(trials=len(seeds), first_seed=seeds[0], work=work)
    for answer in answers(planned, bench, means):
        yield answer.key, answer.measurements
