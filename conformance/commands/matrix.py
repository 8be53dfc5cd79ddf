"""`conformance matrix`: for every adapter and algorithm, whether it is built, its verdict and the seconds of a trial.

The verdict is on the smoke cells of its zones, or on a grid.
"""

import collections
import dataclasses
import statistics
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from conformance.catalogue import clauses, documents, expectations, scenarios
from conformance.catalogue.questions import zone_questions
from conformance.commands import common
from conformance.commands.measuring import source
from conformance.commands.result import Result
from conformance.engine import benches
from conformance.engine.benches import Choice, Means
from conformance.lab import manifest
from conformance.lab.manifest import Manifest
from conformance.model.clauses.verdict import ClauseRule
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging import grid as grids, seeds
from conformance.model.judging.question import Key, Question
from conformance.model.judging.session import Answer, Finding, Plan, Session, plan
from conformance.model.judging.verdict import ALPHA, Status, overall
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Outcome
from conformance.reporting.text.overview import words
from conformance.support.console import count

#: where an algorithm without a zone is measured, to show that it runs
_ANY_CELL = Cell(10, 20, 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One adapter and algorithm, and its worst verdict."""

    stack: str
    algorithm: str
    #: The stack's own name for the algorithm.
    called: str
    verdict: Status
    #: How many verdicts there are of each status, and cells that have the worst; or why there are none.
    what: str
    #: How many verdicts there are of each status.
    count: Mapping[Status, int] = dataclasses.field(default_factory=dict)
    #: Median wall seconds of a trial.
    wall_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Matrix(Result):
    """The verdicts on many stacks."""

    SCHEMA = "matrix"
    SHOWN = ("grid", "false_alarms_of_a_row", "rows")
    #: Upper bound on the share of runs in which a row has any false alarm.
    false_alarms_of_a_row: ClassVar[float] = ALPHA

    #: Name of the grid, or null for the smoke cells of each zone.
    grid: str | None
    rows: tuple[MatrixRow, ...]


def compute(
    stacks: Sequence[str],
    choice: Choice,
    means: Means,
    *,
    grid: str | None,
    trials: int,
    most_trials: int,
    first_seed: int = seeds.JUDGED,
) -> Matrix:
    """Measure and judge `stacks`, or all that ship if it is empty. Raise UserError.

    As in a session of pytest, an unclear cell gets up to `most_trials`, and violations that are not known deviations
    are repeated with fresh seeds.
    """
    wanted = grids.cells(grid) if grid else None
    rows: list[MatrixRow] = []
    for about in [manifest.read(stack) for stack in stacks] or manifest.shipped():
        if about.offered():
            rows += _rows(about, stacks, choice, wanted, (trials, most_trials), first_seed, means)
    return Matrix(grid=grid, rows=tuple(rows))


def _rows(
    about: Manifest,
    stacks: Sequence[str],
    choice: Choice,
    wanted: Sequence[Cell] | None,
    trials: tuple[int, int],
    first_seed: int,
    means: Means,
) -> Iterator[MatrixRow]:
    name = next((s for s in stacks if manifest.read(s) == about), about.name)
    try:
        bench = benches.find(dataclasses.replace(choice, stack=name))
    except UserError as error:
        for algorithm in about.offered():
            called = about.called(algorithm)
            yield MatrixRow(
                stack=about.name, algorithm=algorithm, called=called, verdict=Status.UNSUPPORTED, what=str(error)
            )
        return
    plan = _plan(about, bench.profile, wanted, trials, first_seed)
    means.notes.say(f"{about.name}: {count(len(about.offered()), 'algorithm')}, {count(len(plan.work), 'cell')}")
    known = expectations.of(bench)
    session = Session(plan=plan, known=known)
    events = list(session.events(source(bench, means, new=session.is_new)))
    findings = grouped((event.algorithm, event) for event in events if isinstance(event, Finding))
    for algorithm in about.offered():
        answers = (event for event in events if isinstance(event, Answer) and event.algorithm == algorithm)
        measured = {answer.key: answer.measurements for answer in answers}
        yield _row(about, algorithm, findings.get(algorithm, []), measured)


def _plan(
    about: Manifest, profile: str, wanted: Sequence[Cell] | None, trials: tuple[int, int], first_seed: int
) -> Plan:
    """Return the plan of a stack: the cells `wanted`, or the smoke clauses and the smoke cells of its zones.

    `trials`: of a cell at first, and at most. A row is one verdict, so all of its cells are one family, whatever their
    zone.
    """
    questions: list[Question] = []
    work: list[Key] = []
    smoke = clauses.smoke() if wanted is None else ()
    for algorithm in about.offered():
        for clause, _ in clauses.firsts(about.transport, [algorithm]):
            if clause.id in smoke:
                questions.append(clauses.question(clause, about, algorithm))
                work += [questions[-1].key] if questions[-1].rule.judgeable else []
        of_algorithm = [
            question
            for zone in _zones(algorithm, profile)
            for question in zone_questions(zone, [scenarios.setting(profile, cell) for cell in wanted or zone.smoke])
        ]
        judged = dict.fromkeys(setting.cell for question in of_algorithm for setting in question.settings)
        cells = wanted or list(judged) or [_ANY_CELL]
        questions += of_algorithm
        work += [(algorithm, documents.profile(profile, cell)) for cell in cells]
    first, most = trials
    return plan(
        questions, trials=first, most_trials=most, first_seed=first_seed, work=work,
        family=lambda question: question.algorithm,
    )  # fmt: skip


def _zones(algorithm: str, profile: str) -> list[Zone]:
    try:
        return [documents.zone_of(algorithm, kind, profile) for kind in documents.KINDS]
    except UserError:
        return []


def _row(
    about: Manifest, algorithm: str, findings: Sequence[Finding], by_key: Mapping[Key, Sequence[Measurement]]
) -> MatrixRow:
    measurements = [m for measurements in by_key.values() for m in measurements]
    cells = [m for m in measurements if not m.setting.packets]
    walls = [m.host["wall_s"] for m in cells if "wall_s" in m.host]
    wall_s = statistics.median(walls) if walls else None

    def row(status: Status, what: str, count: Mapping[Status, int] = types.MappingProxyType({})) -> MatrixRow:
        return MatrixRow(
            stack=about.name, algorithm=algorithm, called=about.called(algorithm), verdict=status, what=what,
            count=count, wall_s=wall_s,
        )  # fmt: skip

    if findings:
        of_draft = [finding.confirmed for finding in findings if finding.noun == ClauseRule.noun]
        of_zones = [finding.confirmed for finding in findings if finding.noun != ClauseRule.noun]
        parts = [f"draft: {words(of_draft)}"] if of_draft else []
        what = "; ".join([*parts, *([words(of_zones)] if of_zones else [])])
        verdicts = of_draft + of_zones
        return row(overall(verdicts), what, collections.Counter(verdict.status for verdict in verdicts))
    bad = common.bad(measurements)
    if bad is not None:
        # No zone judges it, so no other stack's failures were counted.
        status = Status.UNSUPPORTED if bad.outcome is Outcome.UNSUPPORTED else Status.ERROR
        return row(status, bad.message or "")
    key = next((key for key in by_key if key[1].cell == _ANY_CELL), next(iter(by_key)))
    median = statistics.median(m.utilization for m in by_key[key] if m.utilization is not None)
    return row(Status.NOT_JUDGED, f"no zone; utilization {median:.3f} at {key[1].cell.id}")
