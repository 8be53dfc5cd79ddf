"""Collect the features of both sides of a comparison, trial by trial; trace those that no file beside results holds.

If both sides have the same samples in the first two trials of a cell, its other trials need not be traced: trials are
deterministic, and a build that behaves differently almost always shows it in two transfers of thousands of packets.
"""

import time
import types
from collections.abc import Mapping, Sequence

from conformance.commands import compare_clauses, compare_measured, tracing
from conformance.commands.compare_measured import TrialCost
from conformance.commands.tracing import TracedPlace
from conformance.engine import runs
from conformance.engine.benches import Bench, Means
from conformance.model.diagnosis import by_trial, feature_table
from conformance.model.diagnosis.flow import Flow
from conformance.model.groups import grouped
from conformance.model.networks.setting import Setting
from conformance.model.studies import comparison
from conformance.model.trials.trial import Trial
from conformance.results.features import Features, TrialFeatures

#: {cell's name: {seed: samples}}, which by_trial reads
SideSamples = dict[str, dict[int, by_trial.FeatureSamples]]
#: of a side: {cell's name: {seed: what the stack's programs said}} of trials in which the stack failed
FailedSeeds = dict[str, dict[int, str]]
#: {cell's name: the Setting in which it is traced}
Under = Mapping[str, Setting]


def both(
    benches: Mapping[str, Bench], given: Mapping[str, SideSamples], algorithm: str, plan: tracing.SeedsByCell,
    means: Means, ends_s: float | None = None, *,
    under: Mapping[str, Under] = types.MappingProxyType({}), spent: TrialCost | None = None,
    failed: Mapping[str, FailedSeeds] = types.MappingProxyType({}), places: Mapping[str, TracedPlace] | None = None,
    kept: Features | None = None,
) -> tuple[dict[str, SideSamples], dict[str, FailedSeeds], list[str]]:  # fmt: skip
    """Return ({role: SideSamples}, {role: FailedSeeds}, problems as sentences) of a plan, also for roles in `given`.

    Sides in `given` were read from files and are not traced. A single role is traced for later comparisons. Nothing is
    traced after `ends_s`, a time of time.monotonic(). `under`: {role: {cell's name: Setting}} of roles that are not
    traced in tracing.settings(). What is traced is added to `spent`. `failed`: the trials of which it is known already,
    which are not traced again. `places`: {name in the plan: where that is}, by default the telling cells; at a point of
    a scenario, all are of one flow. `kept`: what was traced before, by default beside the results. Raises UserError.
    """
    kept, places = kept or Features(means.results), places or tracing.telling_places()
    failed_by_role: dict[str, FailedSeeds] = {
        role: {cell: dict(of) for cell, of in failed.get(role, {}).items()} for role in (*benches, *given)
    }
    under = {role: {name: place.setting for name, place in places.items()} for role in benches} | dict(under)
    spent = spent or TrialCost()
    problems = _trace(benches, plan, under, places, algorithm, kept, means, ends_s, spent, failed_by_role)
    traced = {role: _stored(bench, algorithm, plan, under[role], kept) for role, bench in benches.items()}
    return {**given, **traced}, failed_by_role, list(dict.fromkeys(problems))


def level(sides: Mapping[str, SideSamples]) -> dict[str, SideSamples]:
    """Return the sides, reduced to their common trials in each cell that shows no difference.

    One side may have more trials, from an earlier comparison. Readings of all its trials together would then differ.
    """
    levelled = {role: dict(side) for role, side in sides.items()}
    for cell in next(iter(sides.values())):
        if alike(sides, cell):
            common = sorted(set.intersection(*(set(side[cell]) for side in sides.values())))
            for role, side in sides.items():
                levelled[role][cell] = {seed: side[cell][seed] for seed in common}
    return levelled


def alike(sides: Mapping[str, SideSamples], cell: str) -> bool:
    """Return whether all sides have the same samples in the first trials of a cell."""
    first, *others = (side.get(cell, {}) for side in sides.values())
    if not others:
        return False
    looked_at = sorted(set(first).intersection(*others))[: comparison.FIRST_LOOK]
    return len(looked_at) == comparison.FIRST_LOOK and all(
        first[seed] == other[seed] for seed in looked_at for other in others
    )


def _trace(
    benches: Mapping[str, Bench], plan: tracing.SeedsByCell, under: Mapping[str, Under],
    places: Mapping[str, TracedPlace], algorithm: str, kept: Features, means: Means, ends_s: float | None,
    spent: TrialCost, failed: Mapping[str, FailedSeeds],
) -> list[str]:  # fmt: skip
    """Trace the planned trials that are not kept yet, and keep their features; return problems as sentences.

    Trials in which a stack failed are added to `failed`, and not traced again.
    """
    missing: dict[str, dict[str, list[int]]] = {}
    roles: dict[str, str] = {}
    for role, bench in benches.items():
        trials = _trials(bench, algorithm, plan, under[role])
        roles |= {trial.key: role for of in trials.values() for trial in of}
        lacking = {
            cell: [t.seed for t in of if not kept.find(t) and t.seed not in failed[role].get(cell, {})]
            for cell, of in trials.items()
        }
        if any(lacking.values()):
            missing[role] = lacking
    left_s = None if ends_s is None else ends_s - time.monotonic()
    total = sum(len(of) for lacking in missing.values() for of in lacking.values())
    if not total or (left_s is not None and left_s <= 0):
        return []
    names = {setting: name for settings in under.values() for name, setting in settings.items()}

    def keep(trial: Trial, flow: Flow) -> None:
        cell = places[names[trial.setting]].cell
        kept.add(TrialFeatures(trial=trial, cell=cell, sampled=by_trial.sampled(cell, flow)))
        kept_bar.advance(f"{roles[trial.key]} at {trial.setting.id}, seed {trial.seed}")

    began_s = time.monotonic()
    with means.notes.bar("tracing", total=total, unit="traces", budget_s=left_s) as kept_bar:
        kept_bar.stage(f"starting a guest for {' and one for '.join(missing)}")
        schemes = {role: (benches[role], algorithm) for role in missing}
        traced = tracing.traced_all(
            schemes, missing, workers=means.workers, budget_s=left_s, on_flow=keep, under=under,
            of=places[next(iter(plan))].of,
        )  # fmt: skip
    for name, scheme in traced.items():
        for cell, of in scheme.failed.items():
            failed[name].setdefault(cell, {}).update(of)
    traced_trials = sum(len(seeds) for role in traced.values() for seeds in role.flows.values())
    spent.add(traced_trials, began_s)
    return [
        problem
        for role in traced.values()
        for problem in (*role.problems, *([f"{role.name}: {role.unsupported}"] if role.unsupported else []))
    ]


def _stored(bench: Bench, algorithm: str, plan: tracing.SeedsByCell, under: Under, kept: Features) -> SideSamples:
    """Return the features that are kept of a plan's trials."""
    return {
        cell: {trial.seed: trial_features.sampled for trial in trials if (trial_features := kept.find(trial))}
        for cell, trials in _trials(bench, algorithm, plan, under).items()
    }


def _trials(bench: Bench, algorithm: str, plan: tracing.SeedsByCell, under: Under) -> dict[str, list[Trial]]:
    return {cell: bench.trials(algorithm, under[cell], seeds) for cell, seeds in plan.items()}


def side_of(trial_features: Sequence[TrialFeatures]) -> SideSamples:
    """Return the features that a file holds of one scheme, as a SideSamples."""
    by_cell = grouped((features.cell, (features.trial.seed, features.sampled)) for features in trial_features)
    return {cell: dict(sampled) for cell, sampled in by_cell.items()}


def record(bench: Bench, algorithm: str, means: Means, budget_s: float | None, first_seed: int) -> None:
    """Measure an algorithm for later comparisons, with the fewest trials that can show that one of its features moved.

    It is traced, and then measured in networks that change.
    """
    events = compare_clauses.changing(algorithm)
    of_events = sum(len(compare_clauses.readings(key, comparison.MATTERS, with_clauses=False)) for key in events)
    seeds = runs.seeds(comparison.fewest_trials(len(by_trial.told(algorithm)) + of_events), first_seed)
    ends_s = None if budget_s is None else time.monotonic() + budget_s
    _, _, problems = both(
        {"head": bench}, {}, algorithm, dict.fromkeys(feature_table.cells(algorithm), seeds), means, ends_s
    )
    left_s = None if ends_s is None else max(ends_s - time.monotonic(), 0)
    compare_measured.measured(bench, events, seeds, means, left_s, "head", TrialCost())
    for problem in problems:
        means.notes.warn(f"not looked at: {problem}")
