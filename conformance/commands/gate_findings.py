"""A gate's findings in cells and points: compare verdicts with known deviations, and repeat new violations."""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.commands.blame import Violation
from conformance.engine.plan import Plan
from conformance.engine.questions import CellQuestion, Key
from conformance.model import expectation
from conformance.model.diagnosis.blame import Blame, NotAttributed
from conformance.model.expectation import Expected, Surprise
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Measurement, Outcome


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """The verdict on one cell or point of a zone, and the known deviation of the stack there, if any."""

    verdict: Verdict
    expected: Expected | None
    #: how many transfers timed out
    timeouts: int = 0
    #: the verdict on trials that repeat a new violation with fresh seeds; None if it was not repeated
    again: Verdict | None = None
    #: what a violation is due to; None if it was not examined
    blame: Blame | NotAttributed | None = None

    @property
    def surprise(self) -> Surprise:
        return expectation.compare(self.verdict, self.expected, self.again)

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is a known deviation."""
        return self.expected is not None and self.expected.fits(self.verdict.status)

    @property
    def last(self) -> Verdict:
        """The verdict that counts: the one on fresh seeds, if it was repeated."""
        return self.verdict if self.again is None else self.again

    @property
    def status(self) -> Status:
        """The status of the last verdict."""
        return self.last.status

    @property
    def decided(self) -> bool:
        """Whether it says what the stack does: it is neither open, nor a violation that fresh seeds did not show."""
        judged = self.status.passes or self.status is Status.VIOLATES
        return self.as_expected or (judged and self.surprise is not Surprise.UNCONFIRMED)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZoneResult:
    """A zone's cells of this run: those that were measured in time or cannot be judged, and those that were not."""

    zone: Zone
    scheme_id: str
    findings: tuple[Finding, ...]
    unmeasured: tuple[Point, ...]

    def count(self) -> collections.Counter[Status]:
        return collections.Counter(finding.verdict.status for finding in self.findings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """The verdicts that a gate rests on: those at smoke places or, if it was asked for none of these, all.

    Verdicts on places that do not count are left out.
    """

    smoke: bool
    asked: int
    #: the zones and places without a clear verdict
    undecided: tuple[tuple[Zone, Point], ...]

    @property
    def decided(self) -> int:
        return self.asked - len(self.undecided)

    @property
    def enough(self) -> bool:
        """Whether a gate may pass: at least half is decided."""
        return 0 < self.asked <= 2 * self.decided


def evidence(results: Sequence[ZoneResult]) -> Evidence:
    """Return the Evidence in these zones."""
    smoke = {(r.zone.algorithm, r.zone.profile, place) for r in results for place in r.zone.smoke}
    every = [(r.zone, place, False) for r in results for place in r.unmeasured]
    every += [
        (r.zone, f.verdict.place, f.decided)
        for r in results
        for f in r.findings
        if f.verdict.status is not Status.NOT_JUDGED
    ]
    at_smoke = [one for one in every if (one[0].algorithm, one[0].profile, one[1]) in smoke]
    chosen = at_smoke or every
    undecided = tuple((zone, place) for zone, place, decided in chosen if not decided)
    return Evidence(smoke=bool(at_smoke), asked=len(chosen), undecided=undecided)


def failing(results: Iterable[ZoneResult]) -> list[Violation]:
    """Return the violations that fail a gate, each with its median."""
    return [
        Violation(zone=result.zone, place=finding.verdict.place, values=(finding.last.value,))
        for result in results
        for finding in result.findings
        if finding.surprise.fails and finding.last.status is Status.VIOLATES and finding.last.value is not None
    ]


def judged(
    asked: Plan,
    measured: Mapping[Key, Sequence[Measurement]],
    known: Sequence[Expected],
    schemes: Mapping[str, str],
) -> Iterator[ZoneResult]:
    """Yield a ZoneResult for each zone of a Plan. `schemes`: {algorithm: scheme's id}."""
    judged = {
        (question.zone.id, question.place): asked.judge(question, {question.setting: measured[question.key]}).measured[
            question.setting
        ]
        for question in _of_cells(asked)
        if question.key in measured
    }
    verdicts = asked.zone_verdicts(measured)
    for _, group in itertools.groupby(_of_cells(asked), lambda question: question.zone.id):
        own = list(group)
        zone = own[0].zone
        yield ZoneResult(
            zone=zone,
            scheme_id=schemes[zone.algorithm],
            findings=tuple(
                Finding(
                    verdict=verdicts[zone.id].verdicts[question.place],
                    expected=expectation.find(known, zone.id, question.place),
                    timeouts=sum(m.outcome is Outcome.TIMEOUT for m in judged.get((zone.id, question.place), ())),
                )
                for question in own
                if question.key in measured or not question.judgeable
            ),
            unmeasured=tuple(q.place for q in own if q.key not in measured and q.judgeable),
        )


def _of_cells(asked: Plan) -> list[CellQuestion]:
    return [question for question in asked.questions if isinstance(question, CellQuestion)]


def repeating(asked: Plan, results: Sequence[ZoneResult]) -> Plan | None:
    """Return the plan that repeats new violations with fresh seeds; None if there are none."""
    new = {
        (result.zone.id, finding.verdict.place)
        for result in results
        for finding in result.findings
        if finding.surprise is Surprise.NEW
    }
    questions = [question for question in _of_cells(asked) if (question.zone.id, question.place) in new]
    return asked.repeating(questions) if questions else None


def confirmed(
    again: Plan, measured: Mapping[Key, Sequence[Measurement]], results: Iterable[ZoneResult]
) -> Iterator[ZoneResult]:
    """Yield the same results with the verdicts on repeats that were made in time. Raises UserError.

    A repeat that the budget ended before it was clear does not count: its violation fails as if it was not repeated.
    """
    found: dict[tuple[str, Point], Verdict] = {}
    for question in _of_cells(again):
        if question.key in measured:
            judged = again.judge(question, {question.setting: measured[question.key]})
            assert isinstance(judged.verdict, Verdict)
            if not again.next_look(judged):
                found[question.zone.id, question.place] = judged.verdict
    for result in results:
        findings = (
            dataclasses.replace(finding, again=found.get((result.zone.id, finding.verdict.place)))
            for finding in result.findings
        )
        yield dataclasses.replace(result, findings=tuple(findings))
