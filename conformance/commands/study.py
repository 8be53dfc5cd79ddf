"""`conformance study`: repeat the measurements of a published study and judge its claims; list and show studies."""

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from conformance.catalogue import references, studies
from conformance.commands import common
from conformance.commands.measuring import answers
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_outcomes, worst
from conformance.engine import benches
from conformance.engine.benches import Choice, Means
from conformance.kernel import store as kernels
from conformance.lab import job, kernel_variant
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging.session import plan
from conformance.model.networks.scenario import Scenario
from conformance.model.studies import outcome, study_results
from conformance.model.studies.claims import ClaimVerdict, JudgedClaim
from conformance.model.studies.outcome import Judgment
from conformance.model.studies.study import Anchor, Claim, Study, Variant
from conformance.model.studies.study_point import StudyPoint
from conformance.model.trials.trial import Measurement
from conformance.results import store
from conformance.support import limits
from conformance.support.notes import Notes
from conformance.support.record import At, Record


@dataclasses.dataclass(frozen=True, slots=True)
class ShownAnchor:
    """An anchor and the verdict on it."""

    SHOWN = (*(f"{name}=judged.{name}" for name in JudgedClaim.SHOWN), "name=anchor.name", "reason=anchor.reason")

    anchor: Anchor
    judged: JudgedClaim


@dataclasses.dataclass(frozen=True, slots=True)
class ShownClaim:
    """A claim and the verdict on it."""

    SHOWN = (
        *(f"{name}=judged.{name}" for name in JudgedClaim.SHOWN), "id=claim.id", "says=claim.says",
        "place=claim.place", "published=claim.published", "tolerance=claim.tolerance", "difference=claim.difference",
        "figures=claim.figures",
    )  # fmt: skip

    claim: Claim
    judged: JudgedClaim


class StudyTierRecord(Record):
    points: int
    #: Points about which anything is known.
    measured: int
    #: Minutes of one core that their trials took.
    core_minutes: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StudyState(Result):
    """What is known of a study: its verdicts, and how much of it was measured.

    `schemes`: ids of the schemes that were measured. `core_s`: {tier: (measured points, seconds of one core that their
    trials took)}. `failed`: ERROR if trials of this run failed, else DONE.
    """

    SCHEMA = "study-run"
    SHOWN = (
        "study=study.name", "title=study.title", "source=study.source", "scaled=study.scaled", "tier", "points",
        "measured", "referenced", "schemes", "results", "scenarios", "counts", "anchors", "claims",
    )  # fmt: skip

    study: Study
    #: The tier that was run; null if stored results were read.
    tier: str | None
    judgment: Judgment
    #: Points of the full tier.
    points: int
    #: Points about which anything is known.
    measured: int
    #: Further points, about which references of zones say something.
    referenced: int
    schemes: tuple[str, ...]
    results: str
    core_s: Mapping[str, tuple[int, float]] = dataclasses.field(default_factory=dict)
    failed: ExitStatus = ExitStatus.DONE

    @property
    def scenarios(self) -> Annotated[list[Scenario], list[common.TitleRecord]]:
        """The study's own scenarios."""
        return list(self.study.scenarios.values())

    @property
    def counts(self) -> Mapping[ClaimVerdict, int]:
        """Claims by verdict."""
        return self.judgment.counts

    @property
    def anchors(self) -> list[ShownAnchor]:
        """The study's anchors, judged."""
        return [ShownAnchor(anchor, self.judgment.anchors[anchor.name]) for anchor in self.study.anchors]

    @property
    def claims(self) -> list[ShownClaim]:
        """The study's claims, judged."""
        return [ShownClaim(claim, judged) for claim, judged in self.judgment.claims]

    @property
    def tiers(self) -> dict[str, StudyTierRecord]:
        """What is known of each tier."""
        return {
            tier: StudyTierRecord(points=len(self.study.points[tier]), measured=measured, core_minutes=seconds / 60)
            for tier, (measured, seconds) in self.core_s.items()
        }

    @property
    def exit_status(self) -> ExitStatus:
        """ERROR if trials failed, UNKNOWN if a run could judge no claim, else DONE, even if claims differ."""
        counts = self.judgment.counts
        nothing = self.tier is not None and counts[ClaimVerdict.NOT_JUDGED] == sum(counts.values())
        return worst([self.failed, ExitStatus.UNKNOWN if nothing else ExitStatus.DONE])


def run(what: str, tier: str, means: Means, *, trials: int | None, first_seed: int) -> StudyState:
    """Measure those points of a tier that the results file lacks, and judge all claims. Raise UserError."""
    study = studies.find(what)
    chosen = study.points[tier]
    why_not: dict[StudyPoint, str] = {}
    measured: dict[StudyPoint, Sequence[Measurement]] = {}
    schemes: dict[str, None] = {}
    choices = [(Choice(stack=point.stack, client=point.client, kernel=point.kernel), point) for point in chosen]
    benched = grouped(((choice, trials or study.trials_at(point, tier)), point) for choice, point in choices)
    for (choice, number), study_points in benched.items():
        try:
            _make_variant(study, choice.kernel, means.notes)
            bench = benches.find(choice)
        except UserError as error:
            why_not |= dict.fromkeys(study_points, str(error))
            continue
        why_not |= _too_large(study, study_points)
        # Several points may have the same setting.
        work = grouped(((p.algorithm, study.setting(p)), p) for p in study_points if p not in why_not)
        planned = plan(trials=number, first_seed=first_seed, work=work)
        for answer in answers(planned, bench, means):
            measured |= dict.fromkeys(work[answer.key], answer.measurements)
        here = (a for a in dict.fromkeys(a for a, _ in work) if bench.place(a).room is not None)
        schemes |= dict.fromkeys(bench.scheme(algorithm).id for algorithm in here)
    failed = of_outcomes(measurement.outcome for measurements in measured.values() for measurement in measurements)
    known = references.of(study)
    return StudyState(
        study=study, tier=tier, judgment=outcome.judge(study, measured, why_not, known),
        points=len(study.points["full"]), measured=outcome.known(measured),
        referenced=outcome.referenced(measured, known), schemes=tuple(schemes), results=str(means.results),
        failed=failed if failed is ExitStatus.ERROR else ExitStatus.DONE,
    )  # fmt: skip


def _make_variant(study: Study, name: str | None, notes: Notes) -> None:
    """Make the kernel `name` if the study defines it as a variant, a built kernel with parameters. Raise UserError.

    A different kernel with that name on this machine is the user's: it is kept, and a UserError is raised.
    """
    variant = study.variants.get(name or "")
    if name is None or variant is None:
        return
    kernel = kernel_variant.ready(name, variant.of, variant.parameters)
    held = next((kernel for kernel in kernels.kernels() if kernel.name == name), None)
    if held is None:
        kernel_variant.make(name, variant.of, variant.parameters)
        given = ", ".join(f"{parameter}={value}" for parameter, value in variant.parameters.items())
        notes.say(f"made the kernel {name}: {variant.of} with {given}")
    elif held.digest != kernel.digest:
        raise UserError(
            f"kernel {name} is not {variant.of} with the study's parameters", f"make it with `{_how(name, variant)}`"
        )


def _how(name: str, variant: Variant) -> str:
    given = " ".join(f"--parameter {parameter}={value}" for parameter, value in variant.parameters.items())
    return f"conformance kernel variant {name} --of {variant.of} {given}"


def _too_large(study: Study, points: Iterable[StudyPoint]) -> dict[StudyPoint, str]:
    """Return {point: why not} for the points whose guest would not fit into this machine's free memory."""
    free_mb = limits.free_memory_mb()
    too_large = {}
    for point in points:
        needed = job.memory_mb(study.setting(point), point.stack)
        if free_mb is not None and needed > free_mb:
            too_large[point] = f"its guest needs {needed} MB, but only {free_mb} MB are free"
    return too_large


def show(what: str, results: Sequence[str | pathlib.Path]) -> StudyState:
    """Judge a study by stored results; the default file need not exist. Raise UserError."""
    study = studies.find(what)
    there = [
        path for path in map(pathlib.Path, results) if path.exists() or path != pathlib.Path(store.DEFAULT_RESULTS)
    ]
    held = study_results.of(study, store.read(*there))
    return told(study, held, ", ".join(map(str, results)))


def told(study: Study, held: study_results.StudyMeasurements, results: str) -> StudyState:
    """Return what is known of a study from the measurements `found` and the references of zones. Raise UserError."""
    known = references.of(study)
    return StudyState(
        study=study, tier=None, judgment=outcome.judge(study, held.measured, references=known),
        points=len(study.points["full"]), measured=outcome.known(held.measured),
        referenced=outcome.referenced(held.measured, known), schemes=held.schemes, results=results,
        core_s={tier: study_results.core_s(held.measured, points) for tier, points in study.points.items()},
    )  # fmt: skip


class BoardLineRecord(Record):
    study: Annotated[str, At("study.name")]
    title: Annotated[str, At("study.title")]
    claims: Annotated[int, At(lambda state: len(state.study.claims))]
    #: Points of the full tier.
    points: int
    #: Points about which anything is known.
    measured: int
    #: Further points, about which references of zones say something.
    referenced: int
    #: Claims by verdict.
    counts: Annotated[dict[str, int], At("judgment.counts")]
    #: Cost of each tier, estimated from known trials.
    tiers: dict[str, StudyTierRecord]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Board(Result):
    """All studies that ship, and what is known of each."""

    SCHEMA = "study-board"
    SHOWN = ("studies", "counts")

    studies: Annotated[tuple[StudyState, ...], list[BoardLineRecord]]

    @property
    def counts(self) -> Mapping[ClaimVerdict, int]:
        """Claims by verdict."""
        return {verdict: sum(study.judgment.counts[verdict] for study in self.studies) for verdict in ClaimVerdict}


def board(results: Sequence[str | pathlib.Path]) -> Board:
    """Judge all studies that ship, each by all of these results files. Raise UserError."""
    measurements = list(store.read(*map(pathlib.Path, results)))
    shown = ", ".join(map(str, results))
    of = ((study, study_results.of(study, measurements)) for study in map(studies.find, studies.files()))
    return Board(studies=tuple(told(study, held, shown) for study, held in of))


class StudyRecord(Record):
    name: str
    title: str
    claims: Annotated[int, At(lambda study: len(study.claims))]
    points: Annotated[dict[str, int], At(lambda study: {tier: len(points) for tier, points in study.points.items()})]
    trials: dict[str, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StudyList(Result):
    """The studies that ship."""

    SCHEMA = "study-list"

    studies: Annotated[tuple[Study, ...], list[StudyRecord]]


def list_all() -> StudyList:
    """List the studies that ship. Raise UserError."""
    return StudyList(studies=tuple(studies.find(name) for name in studies.files()))
