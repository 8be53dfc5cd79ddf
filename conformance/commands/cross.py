"""`conformance dev cross`: judge each algorithm by the zones of each; only the diagonal should conform."""

import dataclasses
from collections.abc import Mapping, Sequence

from conformance.catalogue import documents
from conformance.catalogue.questions import zone_questions
from conformance.commands.measuring import amount, source
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_verdicts
from conformance.engine import benches
from conformance.engine.benches import Choice, Means
from conformance.model.errors import UserError
from conformance.model.judging.question import Question
from conformance.model.judging.session import Session, plan
from conformance.model.judging.verdict import ALPHA, Status, Verdict, overall
from conformance.model.judging.zone import Zone, id_parts
from conformance.model.networks.place import Cell
from conformance.support.record import Record


class CrossedRecord(Record):
    #: The algorithm that was measured.
    measured: str
    scheme: str
    #: The algorithm whose zones judge.
    zones_of: str
    verdict: Status
    #: Cells by verdict.
    count: dict[str, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cross(Result):
    """Verdicts on each algorithm by the zones of each.

    `verdicts`: {(algorithm that was measured, algorithm whose zones judge): verdicts on all cells}.
    """

    SCHEMA = "cross"
    SHOWN = ("cells", "trials", "false_alarms_of_a_zone", "judged")
    false_alarms_of_a_zone = ALPHA

    algorithms: tuple[str, ...]
    #: {algorithm: id of the scheme that was measured}
    schemes: Mapping[str, str]
    cells: tuple[Cell, ...]
    trials: int
    verdicts: Mapping[tuple[str, str], tuple[Verdict, ...]]

    @property
    def judged(self) -> list[CrossedRecord]:
        """The verdicts of each pair of algorithms."""
        return [
            CrossedRecord(
                measured=measured, scheme=self.schemes[measured], zones_of=zones_of, verdict=overall(verdicts),
                count={str(s): n for s in Status if (n := sum(verdict.status is s for verdict in verdicts))},
            )
            for (measured, zones_of), verdicts in self.verdicts.items()
        ]  # fmt: skip

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if the diagonal conforms and all else violates, VIOLATES if not, ERROR or UNKNOWN if it is not known."""
        return of_verdicts(
            of.verdict if of.measured == of.zones_of or not (of.verdict.passes or of.verdict is Status.VIOLATES)
            else Status.VIOLATES if of.verdict.passes else Status.CONFORMS
            for of in self.judged
        )  # fmt: skip


def compute(algorithms: Sequence[str], choice: Choice, means: Means, *, trials: int, first_seed: int) -> Cross:
    """Measure every algorithm in the smoke cells of all, and judge each by the zones of each. Raises UserError."""
    bench = benches.find(choice)
    zones = {
        algorithm: [documents.zone_of(algorithm, kind, bench.profile) for kind in documents.KINDS]
        for algorithm in algorithms
    }
    questions = _questions(zones)
    # The zones of one algorithm give one overall verdict on another, so their questions are one family.
    planned = plan(questions, trials=trials, first_seed=first_seed, family=_pair)
    means.notes.say(f"cross: {bench.adapter.name}, {', '.join(algorithms)}: {amount(planned)}")
    findings = Session(plan=planned, confirms=False).findings(source(bench, means))
    judged = {finding.name: finding.verdict for finding in findings}
    return Cross(
        algorithms=tuple(algorithms),
        schemes={algorithm: bench.scheme(algorithm).id for algorithm in algorithms},
        cells=tuple(sorted({setting.cell for question in questions for setting in question.settings})),
        trials=trials,
        verdicts={
            (algorithm, other): tuple(
                judged[question.name] for question in questions if _pair(question) == (algorithm, other)
            )
            for algorithm in algorithms
            for other in algorithms
        },
    )


def _pair(question: Question) -> tuple[str, str]:
    """Return the family of a question: (algorithm that runs, algorithm whose zone judges it)."""
    return question.algorithm, id_parts(question.id)[0]


def _questions(zones: Mapping[str, Sequence[Zone]]) -> list[Question]:
    """Return the questions of each algorithm to each zone, in the smoke cells of all zones. Raises UserError."""
    everything = [zone for zones in zones.values() for zone in zones]
    if len({zone.profile_digest for zone in everything}) != 1:
        raise UserError("these zones were measured under different profiles", "cross zones of one profile")
    features = sorted({(zone.metric, cell) for zone in everything for cell in zone.smoke if isinstance(cell, Cell)})
    if not features:
        raise UserError("these zones have no smoke cells", "choose them with `conformance dev zones smoke`")
    for zone in everything:
        for metric, cell in features:
            if metric == zone.metric and cell not in zone.intervals:
                raise UserError(f"{zone.id} lacks {cell.id}", "cross zones of the same grid")
    cells = {metric: [cell for of, cell in features if of == metric] for metric, _ in features}
    return [
        question
        for algorithm in zones
        for zone in everything
        for question in zone_questions(
            zone, [documents.profile(zone.profile, cell) for cell in cells.get(zone.metric, ())], algorithm
        )
    ]
