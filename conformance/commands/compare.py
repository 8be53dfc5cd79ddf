"""`conformance compare`: find what moved between two builds, kernels or results files, at a stated error rate.

Two kinds of quantities are compared: features, which `why` reads from traces of a few cells (beta, initial window,
growth, pacing ...), and metrics in cells. All of them are one family (model/studies/comparison.py). If the two sides
are one build on two kernels, or with two settings of sysctls, the command also says whether one serves for the other.
"""

import dataclasses
import json
import pathlib
import time
from collections.abc import Sequence

from conformance.catalogue import documents
from conformance.commands import (
    compare_features,
    compare_measured,
    compare_places,
    compare_result,
    compare_sides,
    tracing,
)
from conformance.commands.compare_result import Comparison, LeftOut, Side
from conformance.commands.compare_sides import Results, Stack
from conformance.engine import runs
from conformance.engine.benches import Choice
from conformance.engine.questions import Key
from conformance.model import grid as grids
from conformance.model import place as places
from conformance.model import seeds
from conformance.model.diagnosis import by_trial
from conformance.model.errors import UserError
from conformance.model.metric import Metric
from conformance.model.metrics import METRICS, named
from conformance.model.place import Place
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Quantity, Values
from conformance.model.trial import Measurement, Scheme
from conformance.reporting.text import compare as shown
from conformance.support import extras, files
from conformance.support.notes import Notes

#: cells that are measured on both sides before the next ones, so that a budget that ends leaves no side far behind
_CELLS_AT_A_TIME = 4
_ROLES = ("base", "head")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
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
    trials: int | None = None
    first_seed: int = seeds.JUDGED
    matters: float = comparison.MATTERS
    margin: float | None = None
    budget_s: float | None = None
    workers: int | None = None
    #: whether the sides may be different stacks
    across_stacks: bool = False


def compute(base: str, head: str, options: Options, notes: Notes) -> Comparison:
    """Measure what is missing of the two sides, and compare them; `notes` shows progress. Raises UserError."""
    # A working tree is the new side, so --source applies to the second side only.
    released = dataclasses.replace(options.choice, source=options.base_source)
    first, second = options.sysctls
    return of_sides(
        compare_sides.parse(base, released, first), compare_sides.parse(head, options.choice, second), options, notes
    )


def of_sides(base: Stack | Results, head: Stack | Results, options: Options, notes: Notes) -> Comparison:
    """Measure what is missing of the two sides, and compare them. Raises UserError."""
    began_s = time.monotonic()
    both = base, head
    algorithms = list(dict.fromkeys(options.algorithms)) or compare_sides.common(*both)
    schemes = {algorithm: (base.scheme(algorithm), head.scheme(algorithm)) for algorithm in algorithms}
    for of in () if options.across_stacks else schemes.values():
        compare_sides.require_one_stack(*of)
    same = tuple(a for a, (x, y) in schemes.items() if compare_sides.one_build(x, y) and compare_sides.alike(*both))
    asked = [algorithm for algorithm in algorithms if algorithm not in same]
    margin = _margin(both, [schemes[algorithm] for algorithm in asked], options)
    chosen = {algorithm: compare_places.chosen(both, algorithm, options.grid, options.profile) for algorithm in asked}
    works = {algorithm: chose.keys for algorithm, chose in chosen.items()}
    family = sum(
        sum(len(_metrics(both, key)) for key in works[a]) + options.features * len(by_trial.told(a)) for a in asked
    )
    trials = options.trials or max(comparison.fewest_trials(family), compare_features.FIRST_LOOK)
    if comparison.fewest_trials(family) > trials and any(isinstance(side, Stack) for side in both):
        raise UserError(
            f"{trials} trials a side can never show that one of {family} quantities moved",
            "ask for more with --trials, or for fewer cells with --grid",
        )
    ends_s = None if options.budget_s is None else began_s + options.budget_s
    work = _Work(
        both=both, options=options, seeds=runs.seeds(trials, options.first_seed), ends_s=ends_s, notes=notes,
        thorough=margin is not None,
    )  # fmt: skip
    for algorithm in asked:
        if base.labs(algorithm) != head.labs(algorithm):
            work.lacking.append(f"{algorithm}: the sides are from two labs, so what moved may be due to the emulator")
        work.lacking += chosen[algorithm].lacking
        work.compare(algorithm, works[algorithm])
    first, second = (
        Side(given=side.given, schemes=tuple(of[at] for of in schemes.values())) for at, side in enumerate(both)
    )
    compared = tuple(comparison.largest_first(comparison.compare(work.values)))
    if not any(isinstance(side, Stack) for side in both):
        trials = max((max(one.n) for one in compared), default=0)
    return Comparison(
        sides=(first, second), same_build=same, trials=trials, compared=compared, sentences=work.sentences,
        one_sided=tuple(work.one_sided), left_out=tuple(work.left_out), unmeasured=tuple(work.unmeasured),
        problems=tuple(work.problems), lacking=tuple(work.lacking), margin=margin,
    )  # fmt: skip


def write(found: Comparison, target: pathlib.Path) -> None:
    """Write compare.md, compare.json and, if figures can be drawn, compare.svg to a folder. Raises UserError."""
    contents: dict[str, str | bytes] = {
        "compare.md": shown.render(found),
        "compare.json": json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n",
    }
    if extras.installed("figures"):
        from conformance.reporting import changes  # imported late, as drawing libraries take seconds to import

        contents["compare.svg"] = changes.svg(found)
    for name, content in contents.items():
        files.write(target / name, content, files.OTHER_FOLDER)


@dataclasses.dataclass(kw_only=True)
class _Work:
    """A comparison under way, and its findings so far."""

    both: tuple[Stack | Results, Stack | Results]
    options: Options
    seeds: range
    ends_s: float | None
    notes: Notes
    #: whether each cell gets all trials, even if both sides look alike
    thorough: bool
    values: dict[Quantity, tuple[Values, Values]] = dataclasses.field(default_factory=dict)
    sentences: dict[Quantity, str] = dataclasses.field(default_factory=dict)
    one_sided: list[tuple[Quantity, str]] = dataclasses.field(default_factory=list)
    left_out: list[LeftOut] = dataclasses.field(default_factory=list)
    unmeasured: list[tuple[str, str, Place]] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)
    lacking: list[str] = dataclasses.field(default_factory=list)

    def compare(self, algorithm: str, work: Sequence[Key]) -> None:
        """Collect the values of an algorithm's features, then of its metrics. Raises UserError."""
        alike = self._features(algorithm) if self.options.features else False
        # If traces show no difference, each cell gets two trials first, and all trials only if these differ.
        for at in range(0, len(work), _CELLS_AT_A_TIME):
            some = work[at : at + _CELLS_AT_A_TIME]
            differing = self._differing(some) if alike and not self.thorough else some
            self._metrics(some, differing)

    def _features(self, algorithm: str) -> bool:
        """Collect the values of an algorithm's features; return whether they are the same on both sides."""
        stacks = {role: s.bench for role, s in zip(_ROLES, self.both, strict=True) if isinstance(s, Stack)}
        given = {role: s.traits(algorithm) for role, s in zip(_ROLES, self.both, strict=True) if isinstance(s, Results)}
        without = [s.given for s in self.both if isinstance(s, Results) and not s.traits(algorithm)]
        if without:
            self.lacking.append(f"{' and '.join(without)}: no features of {algorithm}, so none are compared")
            return False
        under = {
            role: {name: side.under(setting) for name, setting in tracing.settings().items()}
            for role, side in zip(_ROLES, self.both, strict=True)
            if isinstance(side, Stack)
        }
        found, problems = compare_features.both(
            stacks, given, algorithm, self.seeds, self.options.results, self.notes, self.options.workers, self.ends_s,
            under=under,
        )  # fmt: skip
        self.problems += problems
        before, after = (found[role] for role in _ROLES)
        alike = bool(before)
        for feature in by_trial.told(algorithm):
            quantity = by_trial.quantity(feature, algorithm, self.options.matters)
            values = by_trial.values(feature, before), by_trial.values(feature, after)
            self._keep(quantity, *values)
            alike &= dict(values[0]) == dict(values[1])
            if quantity in self.values:
                self.sentences[quantity] = by_trial.sentence(feature, after)
        return alike

    def _measured(self, work: Sequence[Key], seeds: range) -> list[compare_measured.Measured]:
        """Return the measurements of some settings on both sides, made in the time that is left. Raises UserError."""
        found = []
        for side in self.both:
            left_s = None if self.ends_s is None else self.ends_s - time.monotonic()
            if isinstance(side, Results):
                held = side.measured(work[0][0]) if work else {}
                found.append(compare_measured.sorted_out({key: held[key] for key in work if key in held}))
            elif not work or (left_s is not None and left_s <= 0):
                found.append(compare_measured.Measured(good={}, left_out={}))
            else:
                asked = {(algorithm, side.under(setting)): (algorithm, setting) for algorithm, setting in work}
                made = compare_measured.measured(
                    side.bench, list(asked), seeds, self.options.results, self.options.workers, self.notes, left_s
                )
                # The settings of the two sides may differ in sysctls; they are compared under the setting without.
                found.append(
                    compare_measured.Measured(
                        good={asked[key]: trials for key, trials in made.good.items()},
                        left_out={asked[key]: trial for key, trial in made.left_out.items()},
                    )
                )
        return found

    def _differing(self, work: Sequence[Key]) -> list[Key]:
        """Measure two trials of each setting on each side, and return the settings in which the sides differ."""
        first, second = self._measured(work, self.seeds[: compare_features.FIRST_LOOK])
        alike = {
            key
            for key in first.good.keys() & second.good.keys()
            if all(
                compare_measured.values(metric, first.good[key]) == compare_measured.values(metric, second.good[key])
                for metric in _metrics(self.both, key)
            )
        }
        return [key for key in work if key not in alike]

    def _metrics(self, work: Sequence[Key], differing: Sequence[Key]) -> None:
        """Collect the values of metrics: of all seeds in the `differing` settings, of the first two in the others."""
        alike = self._measured([key for key in work if key not in differing], self.seeds[: compare_features.FIRST_LOOK])
        other = self._measured(differing, self.seeds)
        good = [{**a.good, **b.good} for a, b in zip(alike, other, strict=True)]
        bad = [{**a.left_out, **b.left_out} for a, b in zip(alike, other, strict=True)]
        for key in work:
            failed = [
                LeftOut(side=role, measurement=of[key]) for role, of in zip(_ROLES, bad, strict=True) if key in of
            ]
            self.left_out += failed
            if all(key in of for of in good):
                self._values(key, [of[key] for of in good])
            elif not failed:
                self.unmeasured.append((key[0], key[1].profile, places.of(key[1])))

    def _values(self, key: Key, measurements: Sequence[Sequence[Measurement]]) -> None:
        algorithm, setting = key
        for metric in _metrics(self.both, key):
            before, after = (compare_measured.values(metric, of) for of in measurements)
            tolerance = compare_measured.tolerance(metric, self.options.matters)
            place = places.of(setting)
            quantity = compare_measured.quantity(metric, algorithm, setting.profile, place, tolerance)
            self._keep(quantity, before, after)

    def _keep(self, quantity: Quantity, before: Values, after: Values) -> None:
        """Collect a quantity that both sides have, or list it as one-sided if only one side has it."""
        if before and after:
            self.values[quantity] = before, after
        elif before or after:
            self.one_sided.append((quantity, _ROLES[0] if before else _ROLES[1]))


def _margin(
    both: tuple[Stack | Results, Stack | Results], schemes: Sequence[tuple[Scheme, Scheme]], options: Options
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


def _metrics(both: Sequence[Stack | Results], key: Key) -> list[Metric]:
    """Return the metrics of all zones under a setting's profile, whether or not the algorithm has zones."""
    profiles = {side.bench.profile for side in both if isinstance(side, Stack)} or set(documents.PROFILES.values())
    kinds = {
        kind for profile in profiles for kind, under in documents.kinds(profile).items() if under == key[1].profile
    }
    names = {documents.metric_of(kind) for kind in kinds} or {"utilization", "lost_pct"}
    return [named(name) for name in METRICS if name in names]
