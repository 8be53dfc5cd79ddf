"""`conformance compare`: find what moved between two builds, kernels or results files, at a stated error rate.

Four kinds of quantities are compared: features, which `why` reads from traces of a few cells (beta, initial window,
growth, pacing ...), features of networks that change, metrics in cells, and shares of trials (compare_shares.py). All
of them are one family (model/studies/comparison.py). If the two sides are one build on two kernels, or with two
settings of sysctls, the command also says whether one serves for the other.
"""

import dataclasses
import functools
import json
import pathlib
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from conformance.catalogue import documents, scenarios
from conformance.commands import (
    compare_clauses,
    compare_features,
    compare_measured,
    compare_result,
    compare_shares,
    compare_sides,
    gate_order,
    tracing,
)
from conformance.commands.compare_measured import MeasuredSide, TrialCost
from conformance.commands.compare_result import ROLES, ComparedSide, Comparison, Further, LeftOut
from conformance.commands.compare_shares import TrialEnds
from conformance.commands.compare_sides import Results, Stack
from conformance.commands.result import printed
from conformance.engine import runs
from conformance.engine.benches import Choice, Means
from conformance.model.diagnosis import by_trial, feature_table
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids, seeds
from conformance.model.judging.question import Key
from conformance.model.metrics.metric import Metric
from conformance.model.metrics.table import METRICS, named
from conformance.model.networks import events
from conformance.model.networks.place import Cell, Point
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Compared, Movement, Quantity, Values
from conformance.model.trials.trial import Measurement, Scheme
from conformance.reporting.text import compare as compare_text
from conformance.support import extras, files
from conformance.support.console import count, duration

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
    chosen = {algorithm: _chosen(both, algorithm, options.grid, options.profile) for algorithm in differing}
    clauses = options.clauses or all(isinstance(side, Results) for side in both)
    changes = {algorithm: _changes(both, algorithm, options, margin) for algorithm in differing}
    keys = {algorithm: [*chose.keys, *changes[algorithm]] for algorithm, chose in chosen.items()}
    family = sum(
        sum(len(shown(both, key, options.matters, clauses)) for key in keys[a])
        + options.features * len(by_trial.told(a))
        for a in differing
    )
    # Each place may add a share of failures or timeouts to the family.
    places = sum(len(keys[a]) + options.features * len(feature_table.cells(a)) for a in differing)
    trials = options.trials or max(comparison.fewest_trials(family + places), comparison.FIRST_LOOK)
    if comparison.fewest_trials(family) > trials and any(isinstance(side, Stack) for side in both):
        raise UserError(
            f"{trials} trials a side can never show that one of {family} quantities moved",
            "ask for more with --trials, or for fewer cells with --grid",
        )
    work = ComparisonWork(
        both=both, options=options, changes=[key for of in changes.values() for key in of], clauses=clauses,
        seeds=runs.seeds(trials, options.first_seed), thorough=margin is not None,
        ends_s=None if options.budget_s is None else began_s + options.budget_s, means=means,
    )  # fmt: skip
    first, second = (
        ComparedSide(given=side.given, schemes=tuple(of[at] for of in schemes.values())) for at, side in enumerate(both)
    )
    measures = any(isinstance(side, Stack) for side in both)
    if measures and differing:
        cells = count(sum(len(chosen[algorithm].keys) for algorithm in differing), "place")
        within = f", {duration(options.budget_s)} at most" if options.budget_s else ""
        means.notes.say(
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


def _further(work: "ComparisonWork", compared: Sequence[Compared], trials: int) -> Further | None:
    """Return what would decide if nothing moved and something is unclear, or was not measured; None otherwise."""
    # What is said of all places together is decided by trials of each place.
    placed = [c for c in compared if c.quantity.place != compare_shares.EVERYWHERE]
    unclear = [c for c in placed if c.change is Movement.UNCLEAR]
    if any(c.change is Movement.MOVED for c in compared) or not (unclear or work.unmeasured):
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
    # Features come before cells, so a feature is decided before any cell is measured.
    of_feature = leading is not None and leading.quantity.label is not None
    differing = [c for c in placed if not c.identical and not (of_feature and c.quantity.label is None)]
    lacking = {
        (c.quantity.profile, c.quantity.place): sum(max(needed - n, 0) for n in tried[c.quantity]) for c in differing
    }
    late = [profile for _, profile, _ in work.unmeasured if profile == feature_table.PROFILE or not of_feature]
    missing = sum(lacking.values()) + 2 * len(late) * (needed if differing else comparison.FIRST_LOOK)
    return Further(leading=leading, trials=needed, seconds=work.spent.estimate_s(missing))


def _margin(
    both: tuple[Stack | Results, Stack | Results], schemes: Sequence[tuple[Scheme, Scheme]], options: CompareOptions
) -> float | None:
    """Return the margin within which one side serves for the other; None if that is not asked.

    It is asked if cells are compared and nothing but the kernel or its sysctls differs. Raises UserError if it is not
    asked but --margin is given.
    """
    kernels = compare_sides.on_two_kernels(both, schemes)
    if kernels and options.grid != NO_CELLS:
        return compare_result.MARGIN if options.margin is None else options.margin
    if options.margin is not None and schemes:
        what = "no cells are compared" if kernels else "these sides are not one build on two kernels"
        raise UserError(f"--margin is for cells of one build on two kernels, but {what}", "leave it out")
    return None


#: the --grid without cells, with which only features are compared
NO_CELLS = "none"
#: the cells for an algorithm without zones: one without loss, one with a little, one with more
_WITHOUT_ZONES = (Cell(10, 20, 0), Cell(10, 20, 1), Cell(10, 60, 2))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSettings:
    """The settings in which an algorithm is compared; `lacking`: sentences about what is not compared."""

    keys: list[Key]
    lacking: list[str]


def _chosen(both: Sequence[Stack | Results], algorithm: str, grid: str, profile: str | None) -> ComparedSettings:
    """Return the settings in which an algorithm is compared; if a side is a results file, those that it holds.

    `grid` and `profile` are the values of --grid and --profile; `profile` None stands for that of each zone. Raises
    UserError.
    """
    if grid == NO_CELLS:
        return ComparedSettings(keys=[], lacking=[])
    if any(isinstance(side, Results) for side in both):
        return _held(both, algorithm, grid, profile)
    usual, *others = dict.fromkeys(side.bench.profile for side in both if isinstance(side, Stack))
    if others:
        raise UserError("one stack runs over TCP, the other over UDP", "compare two builds of one stack")
    if grid != grids.SMOKE:
        settings = [scenarios.setting(named, place) for named, place in _named(grid, profile or usual)]
        return ComparedSettings(keys=[(algorithm, setting) for setting in settings], lacking=[])
    zones = [zone for _, zone in documents.judging(usual) if zone.algorithm == algorithm]
    # The places that tell most come first, so that a budget that ends early leaves out the others.
    ranked = gate_order.order({algorithm: zones}, [zone for _, zone in documents.judging(usual)], grids.SMOKE).work
    settings = list(dict.fromkeys(setting for _, setting in ranked))
    if profile is not None:  # at the same cells; points of scenarios are none
        cells = dict.fromkeys(setting.point for setting in settings if isinstance(setting.point, Cell))
        settings = [documents.profile(profile, cell) for cell in cells]
    settings = settings or [documents.profile(profile or usual, cell) for cell in _WITHOUT_ZONES]
    return ComparedSettings(keys=[(algorithm, setting) for setting in settings], lacking=[])


def _held(both: Sequence[Stack | Results], algorithm: str, grid: str, profile: str | None) -> ComparedSettings:
    """Return the settings that all files hold, as far as they are asked for."""
    held = [side.measured(algorithm) for side in both if isinstance(side, Results)]
    everywhere = [key for key in held[0] if all(key in other for other in held)]
    keys = [key for key in everywhere if not key[1].segments]
    lacking = []
    if paths := len(everywhere) - len(keys):
        lacking.append(f"{algorithm}: {count(paths, 'split path')} not compared")
    if alone := sum(len(of) for of in held) - len(held) * len(everywhere):
        lacking.append(f"{algorithm}: {count(alone, 'place')} not compared, because only one file has results there")
    if grid not in (grids.SMOKE, grids.FULL):
        wanted = {_under(named, place) for named, place in _named(grid, "")}
        keys = [key for key in keys if _under(key[1].profile, key[1].point) in wanted]
    if profile is not None:
        keys = [key for key in keys if key[1].profile == profile]
    return ComparedSettings(keys=keys, lacking=lacking)


def _under(profile: str, place: Point) -> tuple[str | None, Point]:
    """Return a place under its scenario; a cell under None, as cells match under any profile that the files hold."""
    return None if isinstance(place, Cell) else profile, place


def _named(grid: str, profile: str) -> list[tuple[str, Point]]:
    """Return [(profile, place)] of a grid's cells, or of the cells or points of a zone's id. Raises UserError."""
    if "/" in grid:
        zone = documents.zone(documents.shipped_path(grid))
        if not zone.of_cells:
            return [(zone.profile, point) for point in zone.intervals]
    return [(profile, cell) for cell in documents.cells(grid)]


#: cells that are measured on both sides before the next ones, so that a budget that ends leaves no side far behind
_CELLS_AT_A_TIME = 4
#: (algorithm, profile, place)
Where = tuple[str, str, Point]


@dataclasses.dataclass(kw_only=True)
class ComparisonWork:
    """A comparison under way: what is asked for, and what was found so far.

    Features come first, as they cost a known time and name the cause. Networks that change come next, because a
    difference can hide there. Cells are the rest.
    """

    both: tuple[Stack | Results, Stack | Results]
    options: CompareOptions
    #: the settings of networks and applications that change in which both sides are compared
    changes: Collection[Key]
    #: whether all that clauses look at is compared where their networks are
    clauses: bool
    seeds: range
    #: a time of time.monotonic()
    ends_s: float | None
    means: Means
    #: whether each cell gets all trials, even if both sides look alike
    thorough: bool
    values: dict[Quantity, tuple[Values, Values]] = dataclasses.field(default_factory=dict)
    sentences: dict[Quantity, str] = dataclasses.field(default_factory=dict)
    #: how many trials of each side were made of what not all may show
    tried: dict[Quantity, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    #: how trials ended in each place, one for each network there
    ends: dict[Where, list[compare_shares.Ends]] = dataclasses.field(default_factory=dict)
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
        alike = self._features(algorithm) if self.options.features else False
        changing = [key for key in self.changes if key[0] == algorithm]
        self._measure(changing, True, self.unmeasured)
        named = self.options.grid != grids.SMOKE
        self._measure(cells, alike, self.unmeasured if named or not (alike and changing) else self.rest)
        of_algorithm = [ends for (of, *_), here in self.ends.items() if of == algorithm for ends in here]
        self._add(compare_shares.of_all_places(algorithm, of_algorithm))

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
            stacks, given, algorithm, self.seeds, self.means, self.ends_s, under=under, spent=self.spent,
        )  # fmt: skip
        self.problems += problems
        before, after = (features_of[role] for role in ROLES)
        untraced = [c for c in feature_table.cells(algorithm) if not all(features_of[role].get(c) for role in stacks)]
        for cell in feature_table.cells(algorithm):
            place = feature_table.CELLS[cell][0]
            if not given:  # a file keeps no traces that failed
                said = [failed[role].get(cell, {}) for role in ROLES]
                traced = [features_of[role].get(cell, {}) for role in ROLES]
                base, head = (TrialEnds(seeds={*a, *b}, failed=a) for a, b in zip(said, traced, strict=True))
                self._ended(algorithm, feature_table.PROFILE, place, (base, head))
        if not problems:
            self.unmeasured += [(algorithm, feature_table.PROFILE, feature_table.CELLS[c][0]) for c in untraced]
        alike = bool(before) and not untraced
        for feature in by_trial.told(algorithm):
            quantity = by_trial.quantity(feature, algorithm, self.options.matters)
            values = by_trial.values(feature, before), by_trial.values(feature, after)
            seeds = [features_of[role].get(feature.cell, ()) for role in ROLES]
            showing = [by_trial.seeds(feature, side) for side in (before, after)]
            self._keep(quantity, values, showing, seeds)
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
            look = self._measured(few, self.seeds[: comparison.FIRST_LOOK])
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
                    side.bench, list(under_side), seeds, self.means, left_s, role, self.spent
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
        first, second = self._measured(work, self.seeds[: comparison.FIRST_LOOK])
        return [
            key
            for key in work
            if key in first.good and key in second.good
            if [m.outcome for m in first.good[key]] == [m.outcome for m in second.good[key]]
            if all(read(first.good[key]) == read(second.good[key]) for read in self._shown(key).values())
        ]

    def _compare(self, key: Key, measurements: Sequence[Sequence[Measurement]]) -> None:
        """Collect what a setting shows on both sides."""
        base, head = map(TrialEnds.of, measurements)
        self._ended(key[0], key[1].profile, key[1].point, (base, head))
        before = len(self.values) + len(self.one_sided)
        readings = compare_clauses.readings(key, self.options.matters, self.clauses)
        for quantity, read in self._shown(key).items():
            showing, tried = [], []  # of a metric, which each trial that ends has
            if reading := readings.get(quantity):
                showing = [reading.seeds(of) for of in measurements]
                tried = [set(of.seeds) - of.failed.keys() for of in (base, head)]
            self._keep(quantity, (read(measurements[0]), read(measurements[1])), showing, tried)
        for event in events.of(key[1]) & self.never.keys():
            if len(self.values) + len(self.one_sided) > before:
                del self.never[event]
            else:
                self.never[event] = compare_clauses.why_invisible(key, measurements[0])
        self.sentences |= {
            quantity: reading.sentence(measurements[1])
            for quantity, reading in readings.items()
            if quantity in self.values
        }

    def _ended(self, algorithm: str, profile: str, place: Point, ends: compare_shares.Ends) -> None:
        """Collect how the trials of both sides ended in a place.

        Several networks are at one place: what is traced there, and other queues and lengths of the same cell.
        """
        here = self.ends.setdefault((algorithm, profile, place), [])
        here.append(ends)
        self._add(compare_shares.of_place(algorithm, profile, place, compare_shares.together(here)))

    def _add(self, shares: Iterable[compare_shares.ComparedShare]) -> None:
        for quantity, values, sentence in shares:
            self.values[quantity] = values
            self.sentences[quantity] = sentence

    def _shown(self, key: Key) -> dict[Quantity, Callable[[Sequence[Measurement]], Values]]:
        return shown(self.both, key, self.options.matters, self.clauses)

    def _keep(
        self, quantity: Quantity, values: tuple[Values, Values],
        showing: Sequence[Collection[int]], tried: Sequence[Collection[int]],
    ) -> None:  # fmt: skip
        """Collect a quantity that both sides have, and how many trials show it.

        `tried`: the seeds of each side's trials that may show it; none if each does that ends. `showing`: of those that
        do, be they too few for a value. A quantity that only one side has, and whose trials are not counted, is listed
        as one-sided.
        """
        before, after = values
        shares = list(compare_shares.of_showing(quantity, showing, tried)) if tried else []
        self._add(shares)
        if before and after:
            self.values[quantity] = before, after
            if tried:
                self.tried[quantity] = tuple(map(len, tried))
        elif (before or after) and not shares:
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
