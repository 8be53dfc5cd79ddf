"""A comparison under way: measure what is missing of both sides, and collect the values of each quantity.

Features come first, as they cost a known time and name the cause. Networks that change come next, because a difference
can hide there. Cells are the rest.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Sequence

from conformance.catalogue import documents
from conformance.commands import (
    compare_clauses,
    compare_failures,
    compare_features,
    compare_measured,
    tracing,
)
from conformance.commands.compare_measured import MeasuredSide, TrialCost
from conformance.commands.compare_result import ROLES, LeftOut
from conformance.commands.compare_sides import Results, Stack
from conformance.model.diagnosis import by_trial, feature_table
from conformance.model.judging import grid as grids
from conformance.model.judging.question import Key
from conformance.model.metrics.metric import Metric
from conformance.model.metrics.table import METRICS, named
from conformance.model.networks import events
from conformance.model.networks.place import Point
from conformance.model.studies.comparison import Quantity, Values
from conformance.model.trials.trial import Measurement
from conformance.support.notes import Notes

#: cells that are measured on both sides before the next ones, so that a budget that ends leaves no side far behind
_CELLS_AT_A_TIME = 4
#: (algorithm, profile, place)
Where = tuple[str, str, Point]


@dataclasses.dataclass(kw_only=True)
class ComparisonWork:
    """What is asked for, and what was found so far; see compare.Options for the first fields."""

    both: tuple[Stack | Results, Stack | Results]
    grid: str
    features: bool
    #: the settings of networks and applications that change in which both sides are compared
    changes: Collection[Key]
    #: whether all that clauses look at is compared where their networks are
    clauses: bool
    matters: float
    results: str
    workers: int | None
    seeds: range
    #: a time of time.monotonic()
    ends_s: float | None
    notes: Notes
    #: whether each cell gets all trials, even if both sides look alike
    thorough: bool
    values: dict[Quantity, tuple[Values, Values]] = dataclasses.field(default_factory=dict)
    sentences: dict[Quantity, str] = dataclasses.field(default_factory=dict)
    one_sided: list[tuple[Quantity, str]] = dataclasses.field(default_factory=list)
    left_out: list[LeftOut] = dataclasses.field(default_factory=list)
    #: what was not measured in time; `rest`: the same of cells that need not be, if nothing else differs
    unmeasured: list[Where] = dataclasses.field(default_factory=list)
    rest: list[Where] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)
    lacking: list[str] = dataclasses.field(default_factory=list)
    #: {event: why it did not happen in what is compared, as far as that is known} of model/networks/events.py
    never: dict[str, str] = dataclasses.field(default_factory=lambda: dict.fromkeys(events.EVENTS, ""))
    spent: TrialCost = dataclasses.field(default_factory=TrialCost)

    def compare(self, algorithm: str, cells: Sequence[Key]) -> None:
        """Collect the values of an algorithm's features, then those that changes show, then those of its cells.

        Raises UserError.
        """
        alike = self._features(algorithm) if self.features else False
        changing = [key for key in self.changes if key[0] == algorithm]
        self._measure(changing, True, self.unmeasured)
        named = self.grid != grids.SMOKE
        self._measure(cells, alike, self.unmeasured if named or not (alike and changing) else self.rest)

    def _features(self, algorithm: str) -> bool:
        """Collect the values of an algorithm's features; return whether they are the same on both sides."""
        stacks = {role: s.bench for role, s in zip(ROLES, self.both, strict=True) if isinstance(s, Stack)}
        given = {role: s.traits(algorithm) for role, s in zip(ROLES, self.both, strict=True) if isinstance(s, Results)}
        without = [s.given for s in self.both if isinstance(s, Results) and not s.traits(algorithm)]
        if without:
            self.lacking.append(f"{' and '.join(without)}: no features of {algorithm}, so none are compared")
            return False
        under = {
            role: {name: side.under(setting) for name, setting in tracing.settings().items()}
            for role, side in zip(ROLES, self.both, strict=True)
            if isinstance(side, Stack)
        }
        features_of, failed, problems = compare_features.both(
            stacks, given, algorithm, self.seeds, self.results, self.notes, self.workers, self.ends_s, under=under,
            spent=self.spent,
        )  # fmt: skip
        self.problems += problems
        before, after = (features_of[role] for role in ROLES)
        untraced = [c for c in feature_table.cells(algorithm) if not all(features_of[role].get(c) for role in stacks)]
        for cell in feature_table.cells(algorithm):
            place = feature_table.CELLS[cell][0]
            self._failures(
                compare_failures.quantity(algorithm, feature_table.PROFILE, place),
                [(failed[role].get(cell, {}), list(features_of[role].get(cell, ()))) for role in ROLES],
            )
        if not problems:
            self.unmeasured += [(algorithm, feature_table.PROFILE, feature_table.CELLS[c][0]) for c in untraced]
        alike = bool(before) and not untraced
        for feature in by_trial.told(algorithm):
            quantity = by_trial.quantity(feature, algorithm, self.matters)
            values = by_trial.values(feature, before), by_trial.values(feature, after)
            self._keep(quantity, *values)
            alike &= dict(values[0]) == dict(values[1])
            if quantity in self.values:
                self.sentences[quantity] = by_trial.sentence(feature, after)
        return alike

    def _measure(self, work: Sequence[Key], alike: bool, late: list[Where]) -> None:
        """Collect what each setting shows; settings that are not measured in time are added to `late`.

        If both sides are `alike` so far, each setting gets two trials first, and all trials only if these differ.
        """
        for at in range(0, len(work), _CELLS_AT_A_TIME):
            some = work[at : at + _CELLS_AT_A_TIME]
            few = self._same(some) if alike and not self.thorough else []
            look = self._measured(few, self.seeds[: compare_features.FIRST_LOOK])
            full = self._measured([key for key in some if key not in few], self.seeds)
            good = [{**a.good, **b.good} for a, b in zip(look, full, strict=True)]
            bad = [{**a.left_out, **b.left_out} for a, b in zip(look, full, strict=True)]
            for key in some:
                failed = [
                    LeftOut(side=role, measurement=of[key]) for role, of in zip(ROLES, bad, strict=True) if key in of
                ]
                self.left_out += failed
                if all(key in of for of in good):
                    self._compare(key, [of[key] for of in good])
                elif not failed:
                    late.append((key[0], key[1].profile, key[1].point))

    def _measured(self, work: Sequence[Key], seeds: range) -> list[MeasuredSide]:
        """Return the measurements of some settings on both sides, made in the time that is left. Raises UserError."""
        both_sides = []
        for role, side in zip(ROLES, self.both, strict=True):
            left_s = None if self.ends_s is None else self.ends_s - time.monotonic()
            if isinstance(side, Results):
                held = side.measured(work[0][0]) if work else {}
                kept = {key: self._first(held[key], seeds) for key in work if key in held}
                both_sides.append(compare_measured.sorted_out(kept))
            elif not work or (left_s is not None and left_s <= 0):
                both_sides.append(MeasuredSide(good={}, left_out={}))
            else:
                under_side = {(algorithm, side.under(setting)): (algorithm, setting) for algorithm, setting in work}
                measurements = compare_measured.measured(
                    side.bench,
                    list(under_side),
                    seeds,
                    self.results,
                    self.workers,
                    self.notes,
                    left_s,
                    role,
                    self.spent,
                )
                # The settings of the two sides may differ in sysctls; they are compared under the setting without.
                both_sides.append(
                    compare_measured.sorted_out({under_side[key]: trials for key, trials in measurements.items()})
                )
        return both_sides

    def _first(self, held: Sequence[Measurement], seeds: range) -> Sequence[Measurement]:
        """Return what a file holds with the seeds that the other side is measured with; all if none is measured."""
        if not any(isinstance(side, Stack) for side in self.both):
            return held
        return [m for m in held if m.trial.seed in seeds] or held

    def _same(self, work: Sequence[Key]) -> list[Key]:
        """Measure two trials of each setting on each side, and return the settings in which the sides do not differ."""
        first, second = self._measured(work, self.seeds[: compare_features.FIRST_LOOK])
        return [
            key
            for key in work
            if key in first.good and key in second.good
            if [m.outcome for m in first.good[key]] == [m.outcome for m in second.good[key]]
            if all(read(first.good[key]) == read(second.good[key]) for read in self._shown(key).values())
        ]

    def _compare(self, key: Key, measurements: Sequence[Sequence[Measurement]]) -> None:
        """Collect what a setting shows on both sides."""
        before = len(self.values) + len(self.one_sided)
        self._failures(
            compare_failures.quantity(key[0], key[1].profile, key[1].point),
            [(compare_failures.said(of), [m.trial.seed for m in of]) for of in measurements],
        )
        for quantity, read in self._shown(key).items():
            self._keep(quantity, *(read(of) for of in measurements))
        for event in events.of(key[1]) & self.never.keys():
            if len(self.values) + len(self.one_sided) > before:
                del self.never[event]
            else:
                self.never[event] = compare_clauses.why_invisible(key, measurements[0])
        self.sentences |= {
            quantity: reading.sentence(measurements[1])
            for quantity, reading in compare_clauses.readings(key, self.matters, self.clauses).items()
            if quantity in self.values
        }

    def _failures(self, quantity: Quantity, sides: Sequence[tuple[compare_failures.Said, Sequence[int]]]) -> None:
        """Collect how often both sides failed in a place, if either did; `sides`: what was said, seeds of trials."""
        if any(failed for failed, _ in sides):
            before, after = (compare_failures.values(failed, seeds) for failed, seeds in sides)
            self._keep(quantity, before, after)
            self.sentences[quantity] = compare_failures.sentence(
                [(failed, len({*failed, *seeds})) for failed, seeds in sides]
            )

    def _shown(self, key: Key) -> dict[Quantity, Callable[[Sequence[Measurement]], Values]]:
        return shown(self.both, key, self.matters, self.clauses)

    def _keep(self, quantity: Quantity, before: Values, after: Values) -> None:
        """Collect a quantity that both sides have, or list it as one-sided if only one side has it."""
        if before and after:
            self.values[quantity] = before, after
        elif before or after:
            self.one_sided.append((quantity, ROLES[0] if before else ROLES[1]))


def shown(
    both: Sequence[Stack | Results], key: Key, matters: float, with_clauses: bool = False
) -> dict[Quantity, Callable[[Sequence[Measurement]], Values]]:
    """Return {Quantity: function from a side's measurements to its values} of what a setting shows."""
    algorithm, setting = key
    if readings := compare_clauses.readings(key, matters, with_clauses):
        return {quantity: reading.values for quantity, reading in readings.items()}
    return {
        compare_measured.quantity(metric, algorithm, setting.profile, setting.point, matters): functools.partial(
            compare_measured.values, metric
        )
        for metric in _metrics(both, setting.profile)
    }


def _metrics(both: Sequence[Stack | Results], profile: str) -> list[Metric]:
    """Return the metrics of all zones under a profile, whether or not the algorithm has zones."""
    profiles = {side.bench.profile for side in both if isinstance(side, Stack)} or set(documents.PROFILES.values())
    kinds = {kind for usual in profiles for kind, under in documents.kinds(usual).items() if under == profile}
    names = {documents.metric_of(kind) for kind in kinds} or {"utilization", "lost_pct"}
    return [named(name) for name in METRICS if name in names]
