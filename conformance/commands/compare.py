"""`conformance compare`: find what moved between two builds, kernels or results files, at a stated error rate.

Four kinds of quantities are compared: features, which `why` reads from traces of a few cells (beta, initial window,
growth, pacing ...), features of networks that change, metrics in cells, and shares of trials (compare_shares.py). If
the two sides are one build on two kernels, or with two settings of sysctls, the command also says whether one serves
for the other.

**Looks.** A few trials are made in every place first. Then all trials are made where the sides differ, in the order of
how much these few differ. So a budget that ends leaves out what tells least.

**Family.** All that was planned is one family (model/studies/comparison.py), whether or not it was measured in time.
Where only a few trials were made, no p-value is small enough for anything to have moved. So whatever decides which
places get all trials, the chance of a false alarm is at most that of all trials everywhere. Where further trials might
be told from each other, those few are not enough to call anything the same.
"""

import dataclasses
import functools
import itertools
import json
import math
import pathlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from conformance.catalogue import documents
from conformance.commands import (
    compare_clauses,
    compare_features,
    compare_measured,
    compare_places,
    compare_result,
    compare_shares,
    compare_sides,
)
from conformance.commands.compare_measured import MeasuredSide, TrialCost
from conformance.commands.compare_places import ComparedPlaces
from conformance.commands.compare_result import ROLES, ComparedSide, Comparison, Further, LeftOut
from conformance.commands.compare_shares import TrialEnds
from conformance.commands.compare_sides import Results, Stack
from conformance.commands.result import printed
from conformance.commands.tracing import TracedPlace
from conformance.engine import runs
from conformance.engine.benches import Choice, Means
from conformance.lab import job
from conformance.model.diagnosis import by_trial, feature_table
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids, seeds
from conformance.model.judging.question import Key
from conformance.model.metrics.metric import Metric
from conformance.model.metrics.table import METRICS, named
from conformance.model.networks import events
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Compared, Movement, Quantity, Values
from conformance.model.trials.trial import Measurement, Scheme
from conformance.reporting.text import compare as compare_text
from conformance.results.features import Features
from conformance.support import extras, files
from conformance.support.console import count, duration

#: the most trials a side that are proposed to decide what is unclear
_MOST_TRIALS = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """What to compare, and how. `trials` None: as few as can show that one quantity moved.

    `margin`: see Comparison; None stands for the default if the sides are two kernels. `profile`: a profile, or a
    scenario whose points are compared; None: that of each cell's zone. `flow`: the GROUP/N whose features are compared
    there, None for the judged group's first.
    """

    algorithms: Sequence[str]
    choice: Choice
    #: working trees that the first side is built with; those of `choice` are for the second
    base_source: tuple[str, ...] = ()
    #: sysctls of each side's hosts, besides those of a profile
    sysctls: tuple[compare_sides.Sysctls, compare_sides.Sysctls] = ((), ())
    grid: str = grids.SMOKE
    profile: str | None = None
    flow: str | None = None
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
    #: whether the sides may be different stacks
    across_stacks: bool = False


def compute(base: str, head: str, options: CompareOptions, means: Means) -> Comparison:
    """Measure what is missing of the two sides, and compare them. Raises UserError."""
    if not (compare_sides.is_results(base) and compare_sides.is_results(head)):
        given = [" with ".join([*side]) for side in ((base, *options.base_source), (head, *options.choice.source))]
        means.notes.say(
            f"compare: looking up base {given[0]} and head {given[1]}; what is not built may be built first"
        )
    # A working tree is the new side, so --source applies to the second side only.
    released = dataclasses.replace(options.choice, source=options.base_source)
    first, second = options.sysctls
    return of_sides(
        compare_sides.parse(base, released, first), compare_sides.parse(head, options.choice, second), options, means
    )


def of_sides(base: Stack | Results, head: Stack | Results, options: CompareOptions, means: Means) -> Comparison:
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
        algorithm: compare_places.chosen(both, algorithm, options.grid, options.profile, options.features, options.flow)
        for algorithm in differing
    }
    clauses = options.clauses or all(isinstance(side, Results) for side in both)
    changes = {algorithm: _changes(both, algorithm, options, margin) for algorithm in differing}
    keys = {algorithm: [*chose.keys, *changes[algorithm]] for algorithm, chose in chosen.items()}
    # Each place may add a share of failures or timeouts to the family.
    family = sum(
        sum(len(shown(both, key, options.matters, clauses)) + 1 for key in keys[a])
        + sum(len(place.features(a)) + 1 for place in chosen[a].traced.values())
        for a in differing
    )
    trials = options.trials or max(comparison.fewest_trials(family), comparison.FIRST_LOOK)
    measures = any(isinstance(side, Stack) for side in both)
    if comparison.fewest_trials(family) > trials and measures:
        raise UserError(
            f"{trials} trials a side can never show that one of {family} quantities moved",
            "ask for more with --trials, or for fewer cells with --grid",
        )
    work = ComparisonWork(
        both=both, options=options, changes=[key for of in changes.values() for key in of], clauses=clauses,
        seeds=runs.seeds(trials, options.first_seed), thorough=margin is not None, began_s=began_s,
        ends_s=math.inf if options.budget_s is None else began_s + options.budget_s, means=means,
    )  # fmt: skip
    first, second = (
        ComparedSide(given=side.given, schemes=tuple(of[at] for of in schemes.values())) for at, side in enumerate(both)
    )
    if measures and differing:
        cells = count(sum(len(chosen[algorithm].keys) for algorithm in differing), "place")
        within = f", {duration(options.budget_s)} at most" if options.budget_s else ""
        means.notes.say(
            f"compare: base {first.name}, head {second.name}: {', '.join(differing)}:"
            f" {'features, then ' * options.features}{cells};"
            f" {comparison.FIRST_LOOK} trials a side first, up to {trials} where they differ{within}"
        )
    for algorithm in differing:
        if base.labs(algorithm) != head.labs(algorithm):
            work.lacking.append(f"{algorithm}: the sides are from two labs, so what moved may be due to the emulator")
        work.lacking += chosen[algorithm].lacking
    work.compare(chosen)
    # What files hold was measured before anything was planned.
    family = max(family if measures else 0, len(work.values))
    compared = tuple(comparison.largest_first(comparison.compare(work.values, family=family)))
    if not measures:
        trials = max((max(compared.n) for compared in compared), default=0)
    return Comparison(
        sides=(first, second), same_build=same, trials=trials, family=family, compared=compared,
        sentences=work.sentences, one_sided=tuple(work.one_sided), left_out=tuple(work.left_out),
        unmeasured=tuple(work.unmeasured), begun=tuple(work.begun), rest=tuple(work.rest),
        problems=tuple(work.problems), lacking=tuple(work.lacking), margin=margin,
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
    # Of two kernels, it is asked whether cells come out alike, and of a scenario, what happens at its points.
    usual = options.features and margin is None and not compare_places.is_scenario(options.profile)
    wanted = usual if options.changes is None else options.changes
    held = [set(side.measured(algorithm)) for side in both if isinstance(side, Results)]
    events = compare_clauses.changing(algorithm) if wanted else []
    transports = {side.bench.adapter.manifest.transport for side in both if isinstance(side, Stack)}
    of_clauses = [k for t in transports for k in compare_clauses.keys(algorithm, t)] if options.clauses else []
    keys = [key for key in dict.fromkeys((*events, *of_clauses)) if all(key in of for of in held)]
    if options.changes and not keys and held:
        raise UserError("results are compared by what they hold", "leave out --changes")
    # What two files hold is among their places.
    return [] if len(held) == len(both) else keys


def _further(work: "ComparisonWork", compared: Sequence[Compared], trials: int) -> Further | None:
    """Return what would decide if nothing moved and something is unclear, or was not measured; None otherwise."""
    # What is said of all places together is decided by trials of each place.
    placed = [c for c in compared if c.quantity.place != compare_shares.EVERYWHERE]
    unclear = [c for c in placed if c.change is Movement.UNCLEAR]
    if any(c.change is Movement.MOVED for c in compared) or not (unclear or work.unmeasured or work.begun):
        return None
    # A share of trials has no difference that matters, so any is as large as the largest.
    leading = max(unclear, key=lambda c: (not c.quantity.is_share, c.telling), default=None)
    tried = {c.quantity: work.tried.get(c.quantity, c.n) for c in placed}
    needed = (
        trials
        if leading is None
        else comparison.trials_that_decide(leading, trials, _MOST_TRIALS, min(tried[leading.quantity]))
    )
    if needed is None:
        return Further(leading=leading, trials=None, seconds=None)
    lacking = {
        (c.quantity.algorithm, c.quantity.profile, c.quantity.place): sum(max(needed - n, 0) for n in tried[c.quantity])
        for c in placed
        if not c.identical
    }
    lacking |= {where: 2 * (needed - comparison.FIRST_LOOK) for where in work.begun if where not in lacking}
    missing = sum(lacking.values()) + 2 * len(work.unmeasured) * (needed if lacking else comparison.FIRST_LOOK)
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


#: places that both sides are looked at in, or get all trials in, before the next ones, so that a budget that ends
#: leaves no side far behind; the part of a budget after which nothing is looked at while the sides differ elsewhere
_LOOKS_AT_A_TIME, _PLACES_AT_A_TIME, _LOOKS_SHARE = 4, 2, 0.5
#: (algorithm, profile, place)
Where = tuple[str, str, Point]
#: a place to measure: (algorithm, Setting), or (algorithm, name of a place that is traced)
Spot = tuple[str, Setting | str]


@dataclasses.dataclass(kw_only=True)
class ComparisonWork:
    """A comparison under way: what is asked for, and what was found so far.

    Features are looked at first, as they cost a known time and name the cause. Networks that change come next, because
    a difference can hide there. Cells are the rest.
    """

    both: tuple[Stack | Results, Stack | Results]
    options: CompareOptions
    #: the settings of networks and applications that change in which both sides are compared
    changes: Collection[Key]
    #: whether all that clauses look at is compared where their networks are
    clauses: bool
    seeds: range
    #: times of time.monotonic()
    began_s: float
    ends_s: float
    means: Means
    #: whether each cell gets all trials, even if both sides look alike
    thorough: bool
    values: dict[Quantity, tuple[Values, Values]] = dataclasses.field(default_factory=dict)
    sentences: dict[Quantity, str] = dataclasses.field(default_factory=dict)
    #: how many trials of each side were made of what not all may show
    tried: dict[Quantity, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    one_sided: list[tuple[Quantity, str]] = dataclasses.field(default_factory=list)
    #: where features are read, {algorithm: {name: place}}
    places: dict[str, Mapping[str, TracedPlace]] = dataclasses.field(default_factory=dict)
    #: {algorithm: {role: its features}}, and those of trials that failed
    traced: dict[str, dict[str, compare_features.SideSamples]] = dataclasses.field(default_factory=dict)
    failed: dict[str, dict[str, compare_features.FailedSeeds]] = dataclasses.field(default_factory=dict)
    #: the measurements of both sides
    measurements: dict[Key, Sequence[Sequence[Measurement]]] = dataclasses.field(default_factory=dict)
    left_out: list[LeftOut] = dataclasses.field(default_factory=list)
    #: {place with a few trials that is to get all: how much the sides differ there}
    open: dict[Spot, "Telling"] = dataclasses.field(default_factory=dict)
    #: places that have all trials, or need no more
    complete: set[Spot] = dataclasses.field(default_factory=set)
    #: what was not measured in time; `begun`: what has too few trials; `rest`: cells that need not be measured if
    #: nothing else differs
    unmeasured: list[Where] = dataclasses.field(default_factory=list)
    begun: list[Where] = dataclasses.field(default_factory=list)
    rest: list[Where] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)
    lacking: list[str] = dataclasses.field(default_factory=list)
    #: {event: why it did not happen in what is compared, as far as that is known} of model/networks/events.py
    never: dict[str, str] = dataclasses.field(default_factory=lambda: dict.fromkeys(events.EVENTS, ""))
    spent: TrialCost = dataclasses.field(default_factory=TrialCost)

    def compare(self, chosen: Mapping[str, ComparedPlaces]) -> None:
        """Measure the sides within the budget, and collect their values: {algorithm: places} besides `changes`.

        Raises UserError.
        """
        self.places = {algorithm: of.traced for algorithm, of in chosen.items()}
        keys = dict.fromkeys((*self.changes, *itertools.chain.from_iterable(of.keys for of in chosen.values())))
        self._measure(list(keys))
        for algorithm, of in chosen.items():
            changing = [key for key in self.changes if key[0] == algorithm]
            ends: EndsByPlace = {}
            self._features(algorithm, ends)
            self._networks(changing, ends, self.unmeasured)
            is_needed = self.options.grid != grids.SMOKE or not (self._is_alike(algorithm) and changing)
            self._networks(of.keys, ends, self.unmeasured if is_needed else self.rest)
            for where, here in ends.items():
                self._add(compare_shares.of_place(*where, compare_shares.together(here)), where not in self.begun)
            self._add(compare_shares.of_all_places(algorithm, list(itertools.chain.from_iterable(ends.values()))))

    def _measure(self, waiting: list[Key]) -> None:
        """Look at everything with few trials, and make all trials where the sides differ, most telling first.

        Looks take a part of the budget, or more while nothing differs by enough to matter. What does not differ in
        value, but in packets, is last.
        """
        for algorithm, places in self.places.items():
            # Points of a scenario share no guest.
            alone = [[name] for name, place in places.items() if place.of is not None]
            for names in alone or [list(places)] if places else ():
                self._trace(algorithm, names, self._few)
        looks_end_s = self.began_s + _LOOKS_SHARE * (self.ends_s - self.began_s)
        while (waiting or self.open) and self._measures and time.monotonic() < self.ends_s:
            ranked = sorted(self.open, key=self.open.__getitem__, reverse=True)
            matters = bool(ranked) and self.open[ranked[0]] > UNIMPORTANT
            if waiting and (time.monotonic() < looks_end_s or not matters):
                some, waiting = waiting[:_LOOKS_AT_A_TIME], waiting[_LOOKS_AT_A_TIME:]
                self._make(some, self._few)
            else:
                algorithm, where = ranked[0]
                if isinstance(where, str):
                    self._trace(algorithm, [where], self.seeds)
                else:
                    some = [(a, setting) for a, setting in ranked if not isinstance(setting, str)]
                    self._make(some[:_PLACES_AT_A_TIME], self.seeds)
        if not self._measures:
            self._make(waiting, self.seeds)

    @property
    def _few(self) -> range:
        return self.seeds[: comparison.FIRST_LOOK]

    @property
    def _ends_s(self) -> float | None:
        """When measuring ends, None if never."""
        return None if math.isinf(self.ends_s) else self.ends_s

    @property
    def _measures(self) -> bool:
        return any(isinstance(side, Stack) for side in self.both)

    def _trace(self, algorithm: str, names: Sequence[str], seeds: range) -> None:
        """Trace trials of some places on both sides, in the time that is left: all in cells, or of one flow."""
        stacks = {role: s.bench for role, s in zip(ROLES, self.both, strict=True) if isinstance(s, Stack)}
        given = {role: s.traits(algorithm) for role, s in zip(ROLES, self.both, strict=True) if isinstance(s, Results)}
        without = [s.given for s in self.both if isinstance(s, Results) and not s.traits(algorithm)]
        if without:
            self.lacking.append(f"{' and '.join(without)}: no features of {algorithm}, so none are compared")
            return
        places = {name: self.places[algorithm][name] for name in names}
        under = {
            role: {name: side.under(place.setting) for name, place in places.items()}
            for role, side in zip(ROLES, self.both, strict=True)
            if isinstance(side, Stack)
        }
        sides, failed, problems = compare_features.both(
            stacks, given, algorithm, dict.fromkeys(names, seeds), self.means, self._ends_s, under=under,
            spent=self.spent, failed=self.failed.get(algorithm, {}), places=places, kept=self._kept,
        )  # fmt: skip
        self.problems += [problem for problem in problems if problem not in self.problems]
        self.failed[algorithm] = failed
        before = self.traced.get(algorithm, {})
        self.traced[algorithm] = {role: {**before.get(role, {}), **sides[role]} for role in ROLES}
        in_time = time.monotonic() < self.ends_s
        for name in names:
            spot = algorithm, name
            self.open.pop(spot, None)
            if not self._is_traced(spot):
                continue
            is_alike = compare_features.alike(self.traced[algorithm], name)
            if is_alike or not stacks or (in_time and seeds == self.seeds):
                self.complete.add(spot)
            elif seeds != self.seeds:
                self.open[spot] = telling(self._traced_rows(spot), self._traced_ends(spot))

    @functools.cached_property
    def _kept(self) -> Features:
        """The features of trials that were traced before.

        Those of a scenario's flows are not kept beside the results, where nothing says which flow it was.
        """
        flows = [place for places in self.places.values() for place in places.values() if place.of is not None]
        return Features(None if flows else self.means.results)

    def _is_alike(self, algorithm: str) -> bool:
        """Return whether the features of an algorithm are the same on both sides."""
        sides, names = self.traced.get(algorithm), self.places[algorithm]
        return sides is not None and all(compare_features.alike(sides, name) for name in names)

    def _is_traced(self, spot: tuple[str, str]) -> bool:
        """Return whether each side that is measured has a trial of a traced place, if only one that failed."""
        algorithm, name = spot
        return all(
            self.traced[algorithm][role].get(name) or self.failed[algorithm][role].get(name)
            for role, side in zip(ROLES, self.both, strict=True)
            if isinstance(side, Stack)
        )

    def _traced_ends(self, spot: tuple[str, str]) -> compare_shares.Ends:
        algorithm, name = spot
        failed = [self.failed[algorithm][role].get(name, {}) for role in ROLES]
        traced = [self.traced[algorithm][role].get(name, {}) for role in ROLES]
        base, head = (TrialEnds(seeds={*a, *b}, failed=a) for a, b in zip(failed, traced, strict=True))
        return base, head

    def _traced_rows(self, spot: tuple[str, str]) -> "list[Row]":
        """Return what the traces of both sides show of the features of a place.

        While the place lacks trials, or the cell that a feature is divided by, the first ones alone count on both
        sides.
        """
        algorithm, name = spot
        places = self.places[algorithm]
        place = places[name]
        levelled = compare_features.level(self.traced[algorithm])
        rows = []
        for feature in place.features(algorithm):
            needed = {name, feature_table.FEW} if feature.of_kept and place.of is None else {name}
            is_complete = all((algorithm, of) in self.complete for of in needed)
            sides = [
                {places[of].cell: side[of] for of in needed if of in side}
                for side in (levelled[role] if is_complete else self._first_traced(levelled[role]) for role in ROLES)
            ]
            quantity = by_trial.quantity(
                feature, algorithm, self.options.matters, place.setting.point, place.setting.profile
            )
            rows.append(
                Row(
                    quantity=quantity,
                    is_complete=is_complete,
                    values=(by_trial.values(feature, sides[0]), by_trial.values(feature, sides[1])),
                    showing=[by_trial.seeds(feature, side) for side in sides],
                    tried=[side.get(feature.cell, ()) for side in sides],
                    sentence=functools.partial(by_trial.sentence, feature, sides[1]),
                )
            )
        return rows

    def _first_traced(self, side: compare_features.SideSamples) -> compare_features.SideSamples:
        """Return the first trials of each place of a side; all that it has if none of these is among them."""
        return {name: {seed: of[seed] for seed in self._few if seed in of} or of for name, of in side.items()}

    def _features(self, algorithm: str, ends: "EndsByPlace") -> None:
        """Collect the values of an algorithm's features."""
        if algorithm not in self.traced:
            return
        for name, place in self.places[algorithm].items():
            spot, where = (algorithm, name), (algorithm, place.setting.profile, place.setting.point)
            if all(isinstance(side, Stack) for side in self.both):  # a file keeps no traces that failed
                ends.setdefault(where, []).append(self._traced_ends(spot))
            if not self.problems and not self._is_traced(spot):
                self.unmeasured.append(where)
            elif self._is_traced(spot) and spot not in self.complete:
                self.begun.append(where)
            for row in self._traced_rows(spot):
                self._keep(row)

    def _make(self, work: Sequence[Key], seeds: range) -> None:
        """Make trials of some settings on both sides, in the time that is left."""
        sides = self._measured(work, seeds)
        for key in work:
            self.open.pop(key, None)
            bad = [
                LeftOut(side=role, measurement=side.left_out[key])
                for role, side in zip(ROLES, sides, strict=True)
                if key in side.left_out
            ]
            self.left_out += bad
            if bad:
                self.measurements.pop(key, None)
                self.complete.add(key)
            elif all(key in side.good for side in sides):
                self.measurements[key] = [side.good[key] for side in sides]
                if seeds == self.seeds:
                    self.complete.add(key)
                    continue
                rows = self._rows(key)
                if self._is_settled(key, rows):
                    self.complete.add(key)
                else:
                    base, head = map(TrialEnds.of, self.measurements[key])
                    self.open[key] = telling(rows, (base, head))

    def _is_settled(self, key: Key, rows: Iterable["Row"]) -> bool:
        """Return whether a few trials are enough: both sides sent the same packets, or are alike in features and here.

        If it is to be shown that one kernel serves for another, they never are.
        """
        base, head = self.measurements[key]
        if self.thorough or [m.outcome for m in base] != [m.outcome for m in head]:
            return False
        sent, also = ([(m.metrics, m.evidence, m.packets) for m in of] for of in (base, head))
        return (sent == also or self._is_alike(key[0])) and all(row.is_identical for row in rows)

    def _measured(self, work: Sequence[Key], seeds: range) -> list[MeasuredSide]:
        """Return the measurements of some settings on both sides, made in the time that is left. Raises UserError."""
        both_sides = []
        for role, side in zip(ROLES, self.both, strict=True):
            left_s = None if self._ends_s is None else self._ends_s - time.monotonic()
            if isinstance(side, Results):
                held = {a: side.measured(a) for a in dict.fromkeys(algorithm for algorithm, _ in work)}
                kept = {key: self._first(held[key[0]][key], seeds) for key in work if key in held[key[0]]}
                both_sides.append(compare_measured.sorted_out(kept))
            elif not work or (left_s is not None and left_s <= 0):
                both_sides.append(MeasuredSide(good={}, left_out={}))
            else:
                under_side = {(algorithm, side.under(setting)): (algorithm, setting) for algorithm, setting in work}
                measurements = compare_measured.measured(
                    side.bench, list(under_side), seeds, self.means, left_s, role, self.spent
                )
                # The settings of the two sides may differ in sysctls; they are compared under the setting without.
                both_sides.append(
                    compare_measured.sorted_out({under_side[key]: trials for key, trials in measurements.items()})
                )
        return both_sides

    def _first(self, held: Sequence[Measurement], seeds: range) -> Sequence[Measurement]:
        """Return what a file holds with the seeds that the other side is measured with; all if none is measured."""
        if not self._measures:
            return held
        return [m for m in held if m.trial.seed in seeds] or held

    def _networks(self, settings: Sequence[Key], ends: "EndsByPlace", late: list[Where]) -> None:
        """Collect what settings show on both sides; those that were not measured in time are added to `late`."""
        for key in settings:
            where = key[0], key[1].profile, key[1].point
            if key in self.measurements:
                base, head = map(TrialEnds.of, self.measurements[key])
                ends.setdefault(where, []).append((base, head))
                shows = [self._keep(row) for row in self._rows(key)]
                for event in events.of(key[1]) & self.never.keys():
                    if any(shows):
                        del self.never[event]
                    else:
                        self.never[event] = compare_clauses.why_invisible(key, self.measurements[key][0])
                if key not in self.complete:
                    self.begun.append(where)
            elif key not in self.complete:
                late.append(where)

    def _rows(self, key: Key) -> "list[Row]":
        """Return what a setting shows on both sides."""
        base, head = measurements = self.measurements[key]
        readings = compare_clauses.readings(key, self.options.matters, self.clauses)
        ends = [TrialEnds.of(of) for of in measurements]
        rows = []
        for quantity, read in shown(self.both, key, self.options.matters, self.clauses).items():
            row = Row(quantity=quantity, values=(read(base), read(head)), is_complete=key in self.complete)
            if reading := readings.get(quantity):
                row = dataclasses.replace(
                    row, showing=[reading.seeds(of) for of in measurements],
                    tried=[set(of.seeds) - of.failed.keys() for of in ends],
                    sentence=functools.partial(reading.sentence, head),
                )  # fmt: skip
            rows.append(row)
        return rows

    def _add(self, shares: Iterable[compare_shares.ComparedShare], is_complete: bool = True) -> None:
        for quantity, values, sentence in shares:
            if is_complete or not comparison.is_identical(*values):
                self.values[quantity] = values
                self.sentences[quantity] = sentence

    def _keep(self, row: "Row") -> bool:
        """Collect a quantity that both sides have, and how many trials show it; return whether any does.

        A quantity that only one side has, and whose trials are not counted, is listed as one-sided. What is equal in
        the few trials of a place that lacks others is not collected.
        """
        before, after = row.values
        self._add(row.shares, row.is_complete)
        if before and after:
            if row.is_complete or not row.is_identical:
                self.values[row.quantity] = before, after
                if row.tried:
                    self.tried[row.quantity] = tuple(map(len, row.tried))
                if row.sentence:
                    self.sentences[row.quantity] = row.sentence()
        elif (before or after) and not row.shares:
            self.one_sided.append((row.quantity, ROLES[0] if before else ROLES[1]))
        return bool(before or after or row.shares)


#: {(algorithm, profile, place): how the trials of both sides ended, one for each network there}
EndsByPlace = dict[Where, list[compare_shares.Ends]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What both sides show of a quantity in a place; `is_complete`: whether the place has all trials that it needs.

    `tried`: the seeds of each side's trials that may show it; none if each does that ends. `showing`: of those that
    do, be they too few for a value. `sentence` returns what the head does.
    """

    quantity: Quantity
    values: tuple[Values, Values]
    is_complete: bool
    showing: Sequence[Collection[int]] = ()
    tried: Sequence[Collection[int]] = ()
    sentence: Callable[[], str] | None = None

    @property
    def shares(self) -> list[compare_shares.ComparedShare]:
        """The share of trials that show it, if some do and some do not."""
        return list(compare_shares.of_showing(self.quantity, self.showing, self.tried)) if self.tried else []

    @property
    def is_identical(self) -> bool:
        return self.values[0] == self.values[1]


#: how much both sides of a place differ, as Compared.telling: in a quantity of which one side's values are all beyond
#: the other's, by enough to matter, and in any
Telling = tuple[float, float]
#: exceeds every place in which nothing differs by enough to matter
UNIMPORTANT: Telling = (0.0, math.inf)


def telling(rows: Iterable[Row], ends: compare_shares.Ends) -> Telling:
    """Return how much both sides of a place differ in the quantity that differs most, and in how their trials end."""
    values = {row.quantity: row.values for row in rows if all(row.values)}
    shares = [share for row in rows for share in row.shares]
    shares += compare_shares.of_place("", "", compare_shares.EVERYWHERE, ends)
    values |= {quantity: of for quantity, of, _ in shares}
    most = {True: 0.0, False: 0.0}
    for compared, (before, after) in zip(comparison.compare(values), values.values(), strict=True):
        is_apart = max(before.values()) < min(after.values()) or max(after.values()) < min(before.values())
        is_clear = is_apart and compared.size >= 1
        most[is_clear] = max(most[is_clear], compared.telling)
    return most[True], max(most.values())


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
        for metric in _metrics(both, setting)
    }


#: what is compared where no zone says what to look at: of a transfer alone, and of flows that share a network
_OF_TRANSFER, _OF_FLOWS = ("utilization", "lost_pct"), ("flow_goodput_mbps", "share", "link_utilization")


def _metrics(both: Sequence[Stack | Results], setting: Setting) -> list[Metric]:
    """Return the metrics of all zones under a setting's profile, whether or not the algorithm has zones."""
    profiles = {side.bench.profile for side in both if isinstance(side, Stack)} or set(documents.PROFILES.values())
    kinds = {kind for usual in profiles for kind, under in documents.kinds(usual).items() if under == setting.profile}
    names = {documents.metric_of(kind) for kind in kinds}
    names |= set(() if names else _OF_TRANSFER if job.is_detailed(setting) else _OF_FLOWS)
    return [named(name) for name in METRICS if name in names]
