"""`conformance why`: find what looks wrong with an implementation, by comparing its traces with the reference's.

Both are traced in a few telling cells, at the same time, each in a guest of its own. The reference is Linux TCP's
algorithm of the same name, on the kernel that has it. If that kernel is not built, features that were recorded of the
reference are used instead, or else what the documents say, as far as it goes.

With --changes, both are also measured in networks that change, and with an application that pauses. The trials are
those of clauses, with their packets kept. There is one trial for each network, because without random loss, seeds
differ only by microseconds.
"""

import dataclasses
import functools
import json
import pathlib
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from conformance.catalogue import clauses, documents, recorded_features
from conformance.catalogue.recorded_features import Recorded
from conformance.commands import clause, common, tracing
from conformance.commands.blame import Violation
from conformance.commands.clause import FailingClauses
from conformance.commands.measuring import measure
from conformance.commands.result import Result, printed
from conformance.commands.status import ExitStatus
from conformance.commands.tracing import Traced
from conformance.engine import benches, runs
from conformance.engine.benches import Bench, Choice, Means
from conformance.lab import job
from conformance.model.clauses import changes as clause_changes
from conformance.model.clauses.changes import NETWORKS, Changed
from conformance.model.clauses.seen import Invisible, View
from conformance.model.diagnosis import blame as _blame, explaining, feature_table, features, ranking
from conformance.model.diagnosis.blame import Blame
from conformance.model.diagnosis.explaining import Difference
from conformance.model.diagnosis.feature_table import FEW, MANY, Feature
from conformance.model.diagnosis.ranking import Reading
from conformance.model.errors import UserError
from conformance.model.metrics.metric import RELATIVE_MARGIN
from conformance.model.metrics.table import UTILIZATION
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting
from conformance.reporting.text import why as why_text
from conformance.support import extras, files
from conformance.support.notes import Notes
from conformance.support.record import At, Record

#: how many traces of each cell are made unless the user asks for another number (see tracing.plan)
USUAL_TRIALS = 3
_MOST_ALGORITHMS = 2
#: the feature that is the rate of a whole transfer
_RATE = "throughput"


class Untraced(Exception):
    """Raised with the reason if there is nothing to compare. `exit_status`: ERROR, or UNKNOWN if unsupported."""

    def __init__(self, exit_status: ExitStatus, why_not: str) -> None:
        super().__init__(why_not)
        self.exit_status = exit_status


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NotTraced(Result):
    """Why there is no report on an algorithm."""

    SCHEMA = "why-untraced"
    SHOWN = ("untraced",)

    #: Why there is nothing to compare.
    untraced: str
    exit_status: ExitStatus


def compute(
    algorithm: str, choice: Choice, *, trials: int, first_seed: int, target: pathlib.Path | None, workers: int | None,
    changes: bool, notes: Notes, point: str | None = None, profile: str | None = None, flow: str | None = None,
) -> "Report | NotTraced":  # fmt: skip
    """Trace an algorithm and its reference, and compare; everything is kept in `target`, if given. Raises UserError.

    `changes`: compare them in networks that change, and with an application that pauses, too. `point`, `profile`: of
    the scenario in which they are traced instead of the telling cells, and `flow` the GROUP/N of it.
    """
    where, of = (None, None) if profile is None else tracing.at_point(profile, point or "", flow)
    try:
        report = look(algorithm, choice, runs.seeds(trials, first_seed), target, notes, workers, where, of)
        if changes:
            schemes = {"stack": (benches.find(choice), algorithm)}
            if report.reference:
                schemes["reference"] = (benches.find(Choice()), algorithm)
            report = dataclasses.replace(
                report, changed=look_at_changes(schemes, runs.seeds(1, first_seed), workers, notes)
            )
    except Untraced as why_not:
        return NotTraced(untraced=str(why_not), exit_status=why_not.exit_status)
    if target:
        write(report, target / "why.json", target / "why.svg")
    return report


def write(report: "Report", document: pathlib.Path, drawing: pathlib.Path) -> None:
    """Write the Report to a document of schemas/why.json, and to an SVG if figures can be drawn. Raises UserError."""
    text = json.dumps(printed(report), indent=1, sort_keys=True) + "\n"
    files.write(document, text, files.OTHER_FOLDER)
    if extras.installed("figures"):
        files.write(drawing, why_text.svg(report), files.OTHER_FOLDER)


def look(
    algorithm: str, choice: Choice, seeds: Sequence[int], target: pathlib.Path | None, notes: Notes,
    workers: int | None = None, where: Mapping[str, Setting] | None = None, of: job.FlowOf | None = None,
) -> "Report":  # fmt: skip
    """Return the Report on an algorithm; the trials' files are kept in the folder `target`, if given.

    `where`, `of`: the setting and the flow that are traced instead of the telling cells. Raises UserError, Untraced.
    """
    if target:
        files.check_empty(target)
    bench = benches.find(choice)
    why_not = tracing.why_not(bench, algorithm)
    if why_not:
        if algorithm not in documents.algorithms():
            common.require_offered(bench, algorithm)  # a name that no algorithm has is a mistake
        raise Untraced(ExitStatus.UNKNOWN, f"unsupported: {why_not}")
    roles = {"stack": bench}
    usual = benches.find(Choice())
    no_reference = tracing.why_not(usual, algorithm)
    if not no_reference:
        roles["reference"] = usual
    plan = tracing.plan(algorithm, seeds) if where is None else dict.fromkeys(where, seeds)
    total = sum(map(len, plan.values())) * len(roles)
    with notes.bar("tracing", total=total, unit="traces") as bar:
        schemes = {role: (b, algorithm) for role, b in roles.items()}
        under = dict.fromkeys(roles, where) if where else {}
        traced = tracing.traced_all(schemes, dict.fromkeys(roles, plan), target, bar, workers, under=under, of=of)
    ours, reference = traced["stack"], traced.get("reference")
    if ours.unsupported or not ours.flows:
        raise Untraced(
            ExitStatus.UNKNOWN if ours.unsupported else ExitStatus.ERROR,
            ours.unsupported or _words(ours.troubles) or "no trace was made",
        )
    if reference is not None and not reference.flows:
        why_not = _words(reference.troubles) or reference.unsupported
        raise Untraced(ExitStatus.ERROR, f"the reference: {why_not}")
    return Report(
        algorithm=algorithm, stack=ours, reference=reference, no_reference=no_reference,
        recorded=recorded_features.find(algorithm) if no_reference and where is None else None,
        clauses=clause.failing(ours.scheme, choice),
    )  # fmt: skip


def _words(problems: Sequence[str]) -> str:
    """Return in words why there is no trace: the first problem, as the others are mostly like it."""
    more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else ""


def of_violations(
    algorithms: Iterable[str],
    choice: Choice,
    notes: Notes,
    show: Callable[["Report"], None],
    violations: Iterable[Violation] = (),
) -> dict[str, "Report"]:
    """Return {algorithm: Report} for the first few of these algorithms, which violate a zone.

    `violations`: what the Reports are to explain. `show` is called with each Report as soon as it is known; progress
    goes to `notes`.

    A Report that cannot be made is only noted: it must neither fail the command nor hide the violation. An interrupt
    ends the search, and the Reports made by then are returned: the verdicts are complete without them.
    """
    algorithms, reports, violations = list(dict.fromkeys(algorithms)), {}, list(violations)
    for at, algorithm in enumerate(algorithms):
        again = f"`conformance why {algorithm}{choice.options()}`"
        if at == _MOST_ALGORITHMS:
            notes.say(f"not examined: {', '.join(algorithms[at:])}; begin with {again}")
            break
        try:
            report = look(algorithm, choice, runs.seeds(USUAL_TRIALS), None, notes)
            of_algorithm = tuple(violation for violation in violations if violation.zone.algorithm == algorithm)
            reports[algorithm] = dataclasses.replace(report, violations=of_algorithm)
            show(reports[algorithm])
        except (UserError, Untraced) as why_not:
            notes.say(f"{algorithm}: what looks wrong is not known: {why_not}")
        except KeyboardInterrupt:
            notes.say(f"{algorithm}: interrupted; run {again} to try again")
            break
    return reports


class SeenAtRecord(Record):
    cell: str
    seed: int
    #: seconds since the first frame of the capture
    pcap_s: float


class EvidenceRecord(Record):
    feature: str
    #: in units of the permitted difference
    score: float
    sentence: str
    seen: list[SeenAtRecord]


class SuspectRecord(Record):
    label: str
    weight: float
    evidence: list[EvidenceRecord]


@dataclasses.dataclass(frozen=True, slots=True)
class ReadFeature:
    """What was read of a feature on both sides."""

    stack: Reading
    reference: Reading | None


class UnexplainedRecord(Record):
    #: The cell.
    where: Annotated[str, At("0.where")]
    #: The share of the link's rate.
    ours: Annotated[float, At("0.ours")]
    theirs: Annotated[float, At("0.theirs")]
    #: The longer start-up's share of the longer transfer, at most; null if it is not known.
    start_up: Annotated[float | None, At("0.start_up")]
    #: Why each suspect cannot explain it, by the suspect's label.
    why_not: Annotated[dict[str, str], At("1")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report(Result):
    """The readings of a stack and of its reference, and the suspects. `no_reference`: why no reference was traced.

    `violations`: what is to be explained, if a session or gate found it.
    """

    SCHEMA = "why"
    SHOWN = (
        "scheme=stack.scheme", "reference=reference.scheme", "recorded=recorded.scheme", "suspects=told_suspects",
        "features",
        #: Why the rate in the cell `blamed_cell` differs from the reference's (docs/blame.md); null if no reference was
        #: traced. Factors of the reference's rate: total = recovery x packet_size x control, control = response x rest.
        "blame",
        "blamed_cell", "unexplained", "clauses", "problems",
    )  # fmt: skip

    algorithm: str
    stack: Traced
    #: null if documents took its place
    reference: Traced | None
    no_reference: str | None = None
    #: The id of the recorded scheme that takes the reference's place if its kernel is not built; else null.
    recorded: Recorded | None = None
    #: {role: what was seen in networks that change and with an application that pauses}; empty if not requested
    changed: Mapping[str, Changed] = dataclasses.field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    #: The clauses that the stack's algorithm fails, as recorded in clauses/record.json; null if nobody asked.
    clauses: FailingClauses | None = None

    @property
    def blamed_cell(self) -> str:
        """The cell with many losses."""
        return (self.stack.under[MANY] if MANY in self.stack.under else tracing.settings()[MANY]).id

    @property
    def features(self) -> dict[str, ReadFeature]:
        """What was read of each feature."""
        ours, theirs = ({**of, **self._permitted(r)} for of, r in ((self.ours, "stack"), (self.theirs, "reference")))
        return {feature.id: ReadFeature(reading, theirs.get(feature)) for feature, reading in ours.items()}

    @property
    def told_suspects(self) -> list[SuspectRecord]:
        """The suspects, and where to look for the evidence."""
        return [
            SuspectRecord(
                label=suspect.label, weight=round(suspect.weight, 2),
                evidence=[self._evidence(evidence) for evidence in suspect.evidence],
            )
            for suspect in self.suspects
        ]  # fmt: skip

    def _evidence(self, evidence: ranking.Evidence) -> EvidenceRecord:
        places = [SeenAtRecord(cell=cell, seed=seed, pcap_s=round(at, 6)) for cell, seed, at in self.pcap_s(evidence)]
        return EvidenceRecord(
            feature=evidence.feature.id,
            score=round(evidence.score, 2),
            sentence=evidence.sentence,
            seen=places,
        )

    @functools.cached_property
    def ours(self) -> Mapping[Any, Any]:
        """What was read from the stack's traces: {Feature: Reading}."""
        return dict(ranking.readings(self.stack.flows)) | self._of_changes("stack")

    @functools.cached_property
    def theirs(self) -> Mapping[Any, Any]:
        """What was read from the reference's traces, now or when they were recorded, or what the documents say."""
        if self.reference is None:
            return dict(self.recorded.readings if self.recorded else ranking.documented(self.algorithm))
        return dict(ranking.readings(self.reference.flows)) | self._of_changes("reference")

    @functools.cached_property
    def permitted(self) -> Sequence[ranking.Evidence]:
        """Where the stack differs from the reference as documents permit, the largest difference first."""
        sides = [self._permitted(role) for role in ("stack", "reference")]
        differing = ranking.suspects(self.algorithm, *sides)
        return [evidence for suspect in differing for evidence in suspect.evidence]

    def _permitted(self, role: str) -> dict[Feature, Reading]:
        changed = self.changed.get(role)
        return clause_changes.readings(changed, clause_changes.PERMITTED) if changed else {}

    @property
    def not_looked_at(self) -> list[str]:
        """The networks in which only `compare` looks at the algorithm; none if the report is about one point."""
        if len(self.stack.under) == 1:
            return []
        looked_at = self.changed["stack"].views if "stack" in self.changed else {}
        telling = (f for f in clause_changes.COMPARED if feature_table.label_of(f, self.algorithm) is not None)
        return [name for name in dict.fromkeys(feature.cell for feature in telling) if name not in looked_at]

    def _of_changes(self, role: str) -> dict[Any, Any]:
        return dict(clause_changes.readings(self.changed[role])) if role in self.changed else {}

    @functools.cached_property
    def suspects(self) -> Sequence[ranking.Suspect]:
        """What looks wrong, the likeliest cause first."""
        return list(ranking.suspects(self.algorithm, self.ours, self.theirs))

    @functools.cached_property
    def unexplained(self) -> Annotated[Sequence[tuple[Difference, Mapping[str, str]]], list[UnexplainedRecord]]:
        """Rates that differ from the reference's, and that no suspect explains (docs/why.md)."""
        differences = self._violated() if self.violations else self._traced()
        reasons = [(difference, explaining.unexplained(difference, self.suspects)) for difference in differences]
        return [(difference, why_not) for difference, why_not in reasons if why_not is not None]

    def _violated(self) -> Iterator[Difference]:
        """Yield the rates of lone flows that violate a zone, beside its basis."""
        for violation in self.violations:
            if violation.zone.metric == UTILIZATION.name and violation.why_not is None:
                ours = statistics.median(violation.values)
                theirs = violation.zone.intervals[violation.place].basis.median
                yield self._difference(violation.setting.cell, violation.setting.transfer_s, ours, theirs)

    def _traced(self) -> Iterator[Difference]:
        """Yield the rates of the traced cells that differ beyond noise, and by more than zones permit."""
        for feature in self.ours.keys() & self.theirs.keys():
            if feature.name != _RATE:
                continue
            ours, theirs = self.ours[feature], self.theirs[feature]
            setting = self.stack.under[feature.cell]
            difference = self._difference(setting.cell, setting.transfer_s, ours.value, theirs.value)
            if difference.size > RELATIVE_MARGIN and ranking.difference(feature, ours, theirs) >= 1:
                yield difference

    def _difference(self, cell: Cell, seconds: float, ours: float, theirs: float) -> Difference:
        readings = [{feature.id: reading for feature, reading in of.items()} for of in (self.ours, self.theirs)]
        return explaining.difference(cell.id, cell, seconds, ours, theirs, readings)

    @functools.cached_property
    def blame(self) -> Annotated[Blame | None, Blame | None]:
        """The parts of the difference in rate where losses are many; None if no reference was traced."""
        if self.reference is None:
            return None
        sides = [_side(traced) for traced in (self.stack, self.reference)]
        if not all(side.values and side.sightings for side in sides):
            return None
        ours, theirs = sides
        middle = statistics.median(theirs.values)
        permitted = (middle * (1 - RELATIVE_MARGIN), middle * (1 + RELATIVE_MARGIN))
        return _blame.blame(self.algorithm, UTILIZATION.name, ours, theirs, permitted)

    @property
    def problems(self) -> list[str]:
        """Traces that could not be examined, and other problems, as sentences."""
        traced = self.stack.troubles + (self.reference.troubles if self.reference else [])
        return traced + [problem for changed in self.changed.values() for problem in changed.problems]

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if anything looks wrong; UNKNOWN if nothing, or not everything, could be compared; else DONE."""
        if self.suspects:
            return ExitStatus.VIOLATES
        return ExitStatus.DONE if self.compared and not self.not_shown else ExitStatus.UNKNOWN

    @property
    def not_shown(self) -> list[str]:
        """What only the reference shows where both were looked at, as label and name of each feature."""
        looked_at = {cell for cell, flows in self.stack.flows.items() if flows}
        if "stack" in self.changed:
            looked_at |= {name for name, views in self.changed["stack"].views.items() if views}
        return [
            f"{label}: {feature.name.replace('_', ' ')}"
            for feature in self.theirs
            if feature not in self.ours and feature.cell in looked_at
            if (label := feature_table.label_of(feature, self.algorithm))
        ]

    @property
    def against(self) -> str:
        """What the stack was compared with, in words."""
        if self.reference:
            return f"the reference {self.reference.name}"
        if self.recorded:
            return f"the recorded features of {self.recorded.scheme} (no reference here: {self.no_reference})"
        return f"what the documents say (no reference: {self.no_reference})"

    @property
    def compared(self) -> int:
        """How many features that say something about the algorithm were read from both stack and reference."""
        both = self.ours.keys() & self.theirs.keys()
        return sum(feature_table.label_of(feature, self.algorithm) is not None for feature in both)

    def pcap_s(self, evidence: ranking.Evidence) -> list[tuple[str, int, float]]:
        """Return where to look in captures of what the stack sent: (cell's id, seed, seconds since the first frame).

        For a network that changes: (its name, seed, seconds since the first packet of the flow).
        """
        name = evidence.feature.cell
        if name in clause_changes.NETWORKS:
            return [(name, seed, at) for seed, at in evidence.ours.sightings]
        flows = self.stack.flows[name]
        return [(self.stack.under[name].id, seed, flows[seed].began_s + at) for seed, at in evidence.ours.sightings]


def _side(traced: Traced) -> _blame.Side:
    """Return what a scheme's traces show of its rate where losses are many, and of its response where they are few."""
    many, few = (list(traced.flows.get(name, {}).values()) for name in (MANY, FEW))
    return _blame.Side(
        values=[float(value) for flow in many for value in features.throughput(flow).values],
        sightings=[sight for flow in many if (sight := _blame.seen(flow))],
        responses=[response for flow in few if (response := _blame.response(flow))],
    )


def look_at_changes(
    schemes: Mapping[str, tuple[Bench, str]], seeds: range, workers: int | None, notes: Notes
) -> dict[str, Changed]:
    """Return {role: what was seen} for {role: (Bench, algorithm)}. Raises UserError."""
    with tempfile.TemporaryDirectory(prefix="conformance-changes-") as folder:
        means = {
            role: Means(results=pathlib.Path(folder, f"{role}.jsonl"), workers=workers, notes=notes) for role in schemes
        }
        return {role: seen(*scheme, seeds, means[role]) for role, scheme in schemes.items()}


def seen(bench: Bench, algorithm: str, seeds: range, means: Means) -> Changed:
    """Return what was seen of an algorithm; trials in the results file are not made again. Raises UserError."""
    names = {clauses.setting(network): name for name, network in NETWORKS.items()}
    sightings: dict[str, dict[int, View]] = {}
    problems = []
    work = [(algorithm, setting) for setting in names]
    for (_, setting), measurements in measure(bench, work, seeds, means):
        for measurement in measurements:
            try:
                sightings.setdefault(names[setting], {})[measurement.trial.seed] = View.of(measurement)
            except Invisible as why:
                said = f"{measurement.outcome}: {measurement.message}" if measurement.message else str(why)
                problems.append(f"{measurement.scheme.id} at {names[setting]}, seed {measurement.trial.seed}: {said}")
    return Changed(views=sightings, problems=tuple(problems))
