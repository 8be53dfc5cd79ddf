"""`conformance compare`: find what moved between two builds, kernels or results files, at a stated error rate.

Three kinds of quantities are compared: features, which `why` reads from traces of a few cells (beta, initial window,
growth, pacing ...), features of networks that change, and metrics in cells. All of them are one family
(model/studies/comparison.py). If the two sides are one build on two kernels, or with two settings of sysctls, the
command also says whether one serves for the other.
"""

import dataclasses
import json
import pathlib
import time
from collections.abc import Sequence

from conformance.commands import (
    compare_clauses,
    compare_features,
    compare_places,
    compare_result,
    compare_sides,
    compare_work,
)
from conformance.commands.compare_result import ComparedSide, Comparison, Further
from conformance.commands.compare_sides import Results, Stack
from conformance.commands.compare_work import ComparisonWork
from conformance.commands.result import printed
from conformance.engine import runs
from conformance.engine.benches import Choice
from conformance.model.diagnosis import by_trial, feature_table
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.judging import seeds
from conformance.model.judging.question import Key
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Compared, Movement
from conformance.model.trials.trial import Scheme
from conformance.reporting.text import compare as compare_text
from conformance.support import extras, files
from conformance.support.console import count, duration
from conformance.support.notes import Notes

#: the most trials a side that are proposed to decide what is unclear
_MOST_TRIALS = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """What to compare, and how. `trials` None: as few as can show that one quantity moved.

    `margin`: see Comparison; None stands for the default if the sides are two kernels. `profile` None: that of each
    cell's zone.
    """

    algorithms: Sequence[str]
    choice: Choice
    results: str
    #: working trees that the first side is built with; those of `choice` are for the second
    base_source: tuple[str, ...] = ()
    #: sysctls of each side's hosts, besides those of a profile
    sysctls: tuple[compare_sides.Sysctls, compare_sides.Sysctls] = ((), ())
    grid: str = grids.SMOKE
    profile: str | None = None
    features: bool = True
    #: whether networks and applications that change are compared; None: if features are, and it is not about kernels
    changes: bool | None = None
    #: whether the values of all clauses are compared
    clauses: bool = False
    trials: int | None = None
    first_seed: int = seeds.JUDGED
    matters: float = comparison.MATTERS
    margin: float | None = None
    budget_s: float | None = None
    workers: int | None = None
    #: whether the sides may be different stacks
    across_stacks: bool = False


def compute(base: str, head: str, options: CompareOptions, notes: Notes) -> Comparison:
    """Measure what is missing of the two sides, and compare them; `notes` shows progress. Raises UserError."""
    if not (compare_sides.is_results(base) and compare_sides.is_results(head)):
        given = [" with ".join([*side]) for side in ((base, *options.base_source), (head, *options.choice.source))]
        notes.say(f"compare: looking up base {given[0]} and head {given[1]}; what is not built may be built first")
    # A working tree is the new side, so --source applies to the second side only.
    released = dataclasses.replace(options.choice, source=options.base_source)
    first, second = options.sysctls
    return of_sides(
        compare_sides.parse(base, released, first), compare_sides.parse(head, options.choice, second), options, notes
    )


def of_sides(base: Stack | Results, head: Stack | Results, options: CompareOptions, notes: Notes) -> Comparison:
    """Measure what is missing of the two sides, and compare them. Raises UserError."""
    began_s = time.monotonic()
    both = base, head
    algorithms = list(dict.fromkeys(options.algorithms)) or compare_sides.common(*both)
    schemes = {algorithm: (base.scheme(algorithm), head.scheme(algorithm)) for algorithm in algorithms}
    for of in () if options.across_stacks else schemes.values():
        compare_sides.require_one_stack(*of)
    same = tuple(a for a, (x, y) in schemes.items() if compare_sides.one_build(x, y) and compare_sides.alike(*both))
    differing = [algorithm for algorithm in algorithms if algorithm not in same]
    margin = _margin(both, [schemes[algorithm] for algorithm in differing], options)
    chosen = {
        algorithm: compare_places.chosen(both, algorithm, options.grid, options.profile) for algorithm in differing
    }
    clauses = options.clauses or all(isinstance(side, Results) for side in both)
    changes = {algorithm: _changes(both, algorithm, options, margin) for algorithm in differing}
    keys = {algorithm: [*chose.keys, *changes[algorithm]] for algorithm, chose in chosen.items()}
    family = sum(
        sum(len(compare_work.shown(both, key, options.matters, clauses)) for key in keys[a])
        + options.features * len(by_trial.told(a))
        for a in differing
    )
    trials = options.trials or max(comparison.fewest_trials(family), compare_features.FIRST_LOOK)
    if comparison.fewest_trials(family) > trials and any(isinstance(side, Stack) for side in both):
        raise UserError(
            f"{trials} trials a side can never show that one of {family} quantities moved",
            "ask for more with --trials, or for fewer cells with --grid",
        )
    work = ComparisonWork(
        both=both, grid=options.grid, features=options.features, changes=[key for of in changes.values() for key in of],
        clauses=clauses, matters=options.matters,
        results=options.results, workers=options.workers, seeds=runs.seeds(trials, options.first_seed),
        ends_s=None if options.budget_s is None else began_s + options.budget_s, notes=notes,
        thorough=margin is not None,
    )  # fmt: skip
    first, second = (
        ComparedSide(given=side.given, schemes=tuple(of[at] for of in schemes.values())) for at, side in enumerate(both)
    )
    measures = any(isinstance(side, Stack) for side in both)
    if measures and differing:
        cells = count(sum(len(chosen[algorithm].keys) for algorithm in differing), "place")
        within = f", {duration(options.budget_s)} at most" if options.budget_s else ""
        notes.say(
            f"compare: base {first.name}, head {second.name}: {', '.join(differing)}:"
            f" {'features, then ' * options.features}{cells}; up to {count(trials, 'trial')} a side{within}"
        )
    for algorithm in differing:
        if base.labs(algorithm) != head.labs(algorithm):
            work.lacking.append(f"{algorithm}: the sides are from two labs, so what moved may be due to the emulator")
        work.lacking += chosen[algorithm].lacking
        work.compare(algorithm, chosen[algorithm].keys)
    compared = tuple(comparison.largest_first(comparison.compare(work.values)))
    if not measures:
        trials = max((max(compared.n) for compared in compared), default=0)
    return Comparison(
        sides=(first, second), same_build=same, trials=trials, compared=compared, sentences=work.sentences,
        one_sided=tuple(work.one_sided), left_out=tuple(work.left_out), unmeasured=tuple(work.unmeasured),
        rest=tuple(work.rest), problems=tuple(work.problems), lacking=tuple(work.lacking), margin=margin,
        never=work.never, can_change=all(isinstance(side, Stack) for side in both),
        further=_further(work, compared, trials) if measures and differing else None,
    )  # fmt: skip


def write(comparison: Comparison, target: pathlib.Path) -> None:
    """Write compare.md, compare.json and, if figures can be drawn, compare.svg to a folder. Raises UserError."""
    contents: dict[str, str | bytes] = {
        "compare.md": compare_text.render(comparison),
        "compare.json": json.dumps(printed(comparison), indent=1, allow_nan=False) + "\n",
    }
    if extras.installed("figures"):
        from conformance.reporting import changes  # imported late, as drawing libraries take seconds to import

        contents["compare.svg"] = changes.svg(comparison)
    for name, content in contents.items():
        files.write(target / name, content, files.OTHER_FOLDER)


def _changes(
    both: tuple[Stack | Results, Stack | Results], algorithm: str, options: CompareOptions, margin: float | None
) -> list[Key]:
    """Return the settings of networks that change in which both sides are compared. Raises UserError."""
    # Of two kernels, it is asked whether cells come out alike.
    wanted = options.features and margin is None if options.changes is None else options.changes
    held = [set(side.measured(algorithm)) for side in both if isinstance(side, Results)]
    events = compare_clauses.changing(algorithm) if wanted else []
    transports = {side.bench.adapter.manifest.transport for side in both if isinstance(side, Stack)}
    of_clauses = [k for t in transports for k in compare_clauses.keys(algorithm, t)] if options.clauses else []
    keys = [key for key in dict.fromkeys((*events, *of_clauses)) if all(key in of for of in held)]
    if options.changes and not keys and held:
        raise UserError("results are compared by what they hold", "leave out --changes")
    # What two files hold is among their places.
    return [] if len(held) == len(both) else keys


def _further(work: ComparisonWork, compared: Sequence[Compared], trials: int) -> Further | None:
    """Return what would decide if nothing moved and something is unclear, or was not measured; None otherwise."""
    unclear = [c for c in compared if c.change is Movement.UNCLEAR]
    if any(c.change is Movement.MOVED for c in compared) or not (unclear or work.unmeasured):
        return None
    leading = next(iter(unclear), None)
    needed = trials if leading is None else comparison.trials_that_decide(leading, trials, _MOST_TRIALS)
    if needed is None:
        return Further(leading=leading, trials=None, seconds=None)
    # Features come before cells, so a feature is decided before any cell is measured.
    of_feature = leading is not None and leading.quantity.label is not None
    differing = [c for c in compared if not c.identical and not (of_feature and c.quantity.label is None)]
    lacking = {(c.quantity.profile, c.quantity.place): sum(max(needed - n, 0) for n in c.n) for c in differing}
    late = [profile for _, profile, _ in work.unmeasured if profile == feature_table.PROFILE or not of_feature]
    missing = sum(lacking.values()) + 2 * len(late) * (needed if differing else compare_features.FIRST_LOOK)
    return Further(leading=leading, trials=needed, seconds=work.spent.estimate_s(missing))


def _margin(
    both: tuple[Stack | Results, Stack | Results], schemes: Sequence[tuple[Scheme, Scheme]], options: CompareOptions
) -> float | None:
    """Return the margin within which one side serves for the other; None if that is not asked.

    It is asked if cells are compared and nothing but the kernel or its sysctls differs. Raises UserError if it is not
    asked but --margin is given.
    """
    kernels = compare_sides.on_two_kernels(both, schemes)
    if kernels and options.grid != compare_places.NO_CELLS:
        return compare_result.MARGIN if options.margin is None else options.margin
    if options.margin is not None and schemes:
        what = "no cells are compared" if kernels else "these sides are not one build on two kernels"
        raise UserError(f"--margin is for cells of one build on two kernels, but {what}", "leave it out")
    return None
