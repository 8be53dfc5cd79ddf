"""`conformance identify`: which algorithm and version a stack behaves like, whatever name the stack gives it."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence

from conformance.catalogue import documents
from conformance.commands import common, tracing
from conformance.commands.measuring import measure
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_outcomes, worst
from conformance.engine import benches, runs
from conformance.engine.benches import Choice, Means
from conformance.model.diagnosis import feature_table, ranking
from conformance.model.diagnosis.feature_table import Feature
from conformance.model.diagnosis.ranking import Reading
from conformance.model.errors import UserError
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting
from conformance.model.studies import identify as identify_model
from conformance.model.studies.identify import IdentifyScore, Miss
from conformance.model.studies.identify_rates import IdentificationRates, rates
from conformance.model.trials.trial import Measurement, Outcome, Scheme
from conformance.support.console import count


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Identified(Result):
    """The scores of a scheme."""

    SCHEMA = "identify"
    SHOWN = (
        "called", "scheme", "cells", "trials", "conclusion", "contradicted", "unchecked", "nearest", "scores",
        "not_compared", "exported", "trouble", "rates",
    )  # fmt: skip

    #: The name by which it was requested.
    called: str
    scheme: Scheme
    cells: int
    #: Trials of each cell.
    trials: int
    #: Best first; none if trials failed or were not supported.
    scores: tuple[IdentifyScore, ...] = ()
    #: Algorithms that it was not compared with, because they could not be traced here.
    not_compared: tuple[str, ...] = ()
    #: The algorithm that it behaves like; null if none fits clearly better than the others.
    conclusion: str | None = None
    #: What the kernel says about its congestion control.
    exported: tuple[str, ...] = ()
    #: Why it could not be measured, or null.
    trouble: common.Trouble | None = None
    #: How often an identification with this many trials per cell is right, by simulation from the references' trials:
    #: first for a reference itself, then for an implementation that differs from it as honest ones do. Empty if nothing
    #: was identified.
    rates: tuple[IdentificationRates, ...] = ()

    @property
    def contradicted(self) -> bool:
        """Whether it behaves unlike the algorithm that it is called."""
        if self.conclusion is None or self.unchecked:
            return False
        return identify_model.contradicts(self.called, self.conclusion, [score.algorithm for score in self.scores])

    @property
    def unchecked(self) -> bool:
        """Whether nothing shows how an algorithm of this name behaves, so that the name is not checked."""
        known = [score.algorithm for score in self.scores]
        return bool(known) and (self.called in self.not_compared or not identify_model.checkable(self.called, known))

    @property
    def nearest(self) -> list[str]:
        """The best algorithm, and those that it leads by fewer than two features. Of equals, its namesake is first."""
        return [score.algorithm for score in identify_model.nearest(self.scores)] if self.scores else []

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if the stack behaves as its name says, VIOLATES if like another algorithm, UNKNOWN if none fits or
        nothing is known of the name.
        """
        if self.trouble:
            return of_outcomes([self.trouble.outcome])
        if self.conclusion is None or self.unchecked:
            return ExitStatus.UNKNOWN
        return ExitStatus.VIOLATES if self.contradicted else ExitStatus.DONE


def zones() -> list[Zone]:
    """Return the zones that identification rests on: one profile, and the same cells for each algorithm.

    Raises UserError if there are none, or if they differ in their profiles or cells.
    """
    of_kinds: list[Zone] = documents.all_zones("identify-*")
    if not of_kinds:
        raise UserError("this suite ships no zones to identify algorithms by", "derive them (docs/add-a-zone.md)")
    if len({zone.profile_digest for zone in of_kinds}) != 1:
        raise UserError("the identify zones belong to several profiles", "derive them from runs under one profile")
    for zone in of_kinds:
        every = {cell for other in of_kinds if other.metric == zone.metric for cell in other.cells}
        if lacking := sorted(every - set(zone.cells)):
            raise UserError(f"zone {zone.id} lacks {lacking[0].id}", "measure its reference there and derive it again")
    return of_kinds


def _cells(zones: Sequence[Zone]) -> list[Cell]:
    """Return every cell of these zones once, in the zones' order."""
    return list(dict.fromkeys(cell for zone in zones for cell in zone.cells))


def compute(cca: str, choice: Choice, means: Means, *, trials: int, first_seed: int) -> Identified:
    """Measure a stack and score it against every algorithm. Raises UserError."""
    ours = zones()
    cells = _cells(ours)
    bench = benches.find(choice)
    common.require_offered(bench, cca)
    work = [(cca, documents.profile(ours[0].profile, cell)) for cell in cells]
    measured = measure(bench, work, runs.seeds(trials, first_seed), means)
    by_cell = {setting.cell: measurements for (_, setting), measurements in measured}
    identified = Identified(called=cca, scheme=bench.scheme(cca), cells=len(cells), trials=trials)
    for outcome in common.BAD:
        bad = collections.Counter(m.message for ms in by_cell.values() for m in ms if m.outcome is outcome)
        if bad:
            trouble = common.Trouble(outcome=outcome, message=str(bad.most_common(1)[0][0]))
            return dataclasses.replace(identified, trouble=trouble)
    scores = identify_model.scores(ours, by_cell, cca)
    exported = {_exported(m) for measurements in by_cell.values() for m in measurements}
    return dataclasses.replace(
        identified,
        scores=tuple(scores),
        conclusion=identify_model.conclusion(scores),
        exported=tuple(sorted(filter(None, exported))),
        rates=tuple(rates(ours, trials, spread) for spread in (False, True)),
    )


def of_flow(
    cca: str, choice: Choice, means: Means, *, point: str, profile: str, flow: str | None, trials: int, first_seed: int,
) -> Identified:  # fmt: skip
    """Trace a flow at a point of a scenario, and each Linux algorithm in its place; score by features.

    Raises UserError, also if traces at this point cannot show enough features to name an algorithm. `flow`: GROUP/N,
    None for the first flow of the judged group.
    """
    where, of = tracing.at_point(profile, point, flow)
    ((cell, setting),) = where.items()
    bench, usual = benches.find(choice), benches.find(Choice())
    common.require_offered(bench, cca)
    known = {zone.algorithm for zone in zones()}
    most = max(len(feature_table.readable(cell, name)) for name in known)
    if most < identify_model.LEAST_FEATURES:
        raise UserError(
            f"{setting.id}: with this much random loss, a trace shows at most {count(most, 'feature')}, and naming an"
            f" algorithm takes {identify_model.LEAST_FEATURES}", "choose a point without random loss",
        )  # fmt: skip
    roles = {"": (bench, cca)} | {name: (usual, name) for name in sorted(known) if not tracing.why_not(usual, name)}
    plan = dict.fromkeys(where, runs.seeds(trials, first_seed))
    with means.notes.bar("tracing", total=trials * len(roles), unit="traces") as bar:
        traced = tracing.traced_all(
            roles, dict.fromkeys(roles, plan), bar=bar, workers=means.workers, under=dict.fromkeys(roles, where),
            of=of,
        )  # fmt: skip
    identified = Identified(called=cca, scheme=bench.scheme(cca), cells=1, trials=trials)
    stack = traced.pop("")
    if why_not := stack.unsupported or (None if stack.flows else "; ".join(stack.problems) or "no trace was made"):
        outcome = Outcome.UNSUPPORTED if stack.unsupported else Outcome.ERROR
        return dataclasses.replace(identified, trouble=common.Trouble(outcome=outcome, message=why_not))
    ours = ranking.readings(stack.flows)
    scores = [_alike(name, cell, setting, ours, reference) for name, reference in traced.items() if reference.flows]
    scores.sort(key=lambda score: (-score.share, score.algorithm != cca, score.algorithm))
    conclusion = identify_model.conclusion(scores) if scores else None
    missing = tuple(sorted(known - {score.algorithm for score in scores}))
    return dataclasses.replace(identified, scores=tuple(scores), not_compared=missing, conclusion=conclusion)


def _alike(
    algorithm: str, cell: str, setting: Setting, ours: Mapping[Feature, Reading], reference: tracing.Traced
) -> IdentifyScore:
    """Return how many features of a flow are those of a reference in its place, of all that the cell may show."""
    theirs = ranking.readings(reference.flows)
    readable = feature_table.readable(cell, algorithm)
    both = [feature for feature in readable if feature in ours and feature in theirs]
    misses = tuple(
        Miss(
            zone_id=reference.name, metric=feature.id, cell=setting.point, value=ours[feature].value,
            low=theirs[feature].value, high=theirs[feature].value,
        )
        for feature in both
        if ranking.difference(feature, ours[feature], theirs[feature]) >= 1
    )  # fmt: skip
    return IdentifyScore(algorithm=algorithm, features=len(readable), visible=len(both), misses=misses)


def _exported(measurement: Measurement) -> str | None:
    about = measurement.evidence.get("congestion_control")
    if about is None:
        return None
    name = str(about["name"])
    bbr = about.get("bbr")
    if not bbr:
        return name
    versions = bbr["versions_with_the_gains_seen"]
    gains = f"gains of version {' or '.join(map(str, versions))}" if versions else "gains of no known version"
    return f"{name}, version {bbr['exported_version']} (with {gains})"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyTally:
    """How often one algorithm was identified correctly, not at all, and wrongly; `trouble`: why it was not measured."""

    scheme: Scheme
    right: int = 0
    inconclusive: int = 0
    wrong: int = 0
    trouble: common.Trouble | None = None

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if the algorithm was ever taken for another."""
        if self.trouble:
            return of_outcomes([self.trouble.outcome])
        return ExitStatus.VIOLATES if self.wrong else ExitStatus.DONE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyCounts(Result):
    """Counts of correct and wrong identifications of every known algorithm."""

    SCHEMA = "identify-check"

    trials: int
    cells: int
    algorithms: tuple[IdentifyTally, ...]

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if no identification was wrong and every algorithm was measured."""
        return worst(tally.exit_status for tally in self.algorithms)


def compute_check(choice: Choice, means: Means, *, trials: int, first_seed: int) -> IdentifyCounts:
    """Identify every algorithm that has identify zones `trials` times, from one trial a cell; count the results.

    Raises UserError.
    """
    ours = zones()
    algorithms = sorted({zone.algorithm for zone in ours})
    cells = _cells(ours)
    bench = benches.find(choice)
    work = [(algorithm, documents.profile(ours[0].profile, cell)) for algorithm in algorithms for cell in cells]
    measured = measure(bench, work, runs.seeds(trials, first_seed), means)
    by_algorithm = {(algorithm, setting.cell): measurements for (algorithm, setting), measurements in measured}
    tallies = []
    for algorithm in algorithms:
        by_cell = {cell: by_algorithm[algorithm, cell] for cell in cells}
        tallies.append(_tally(ours, algorithm, bench.scheme(algorithm), by_cell, trials))
    return IdentifyCounts(trials=trials, cells=len(cells), algorithms=tuple(tallies))


def _tally(
    zones: Sequence[Zone], algorithm: str, scheme: Scheme, by_cell: dict[Cell, Sequence[Measurement]], trials: int
) -> IdentifyTally:
    if bad := common.bad(m for measurements in by_cell.values() for m in measurements):
        return IdentifyTally(scheme=scheme, trouble=common.Trouble(outcome=bad.outcome, message=bad.message or ""))
    names = collections.Counter(
        identify_model.conclusion(
            identify_model.scores(zones, {cell: [measurements[at]] for cell, measurements in by_cell.items()})
        )
        for at in range(trials)
    )
    right, none = names[algorithm], names[None]
    return IdentifyTally(scheme=scheme, right=right, inconclusive=none, wrong=names.total() - right - none)
