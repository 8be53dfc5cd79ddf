"""A gate's findings in cells and points, zone by zone, and the evidence that it rests on."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.commands.blame import Violation
from conformance.model.judging.session import Finding, Plan
from conformance.model.judging.verdict import Status
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Point


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
class GateEvidence:
    """The verdicts that a gate rests on: those at smoke places or, if it was asked for none of these, all.

    Verdicts on places that do not count are left out.
    """

    SHOWN = ("smoke", "asked=chosen", "decided")

    smoke: bool
    chosen: int
    #: the zones and places without a clear verdict
    undecided: tuple[tuple[Zone, Point], ...]

    @property
    def decided(self) -> int:
        return self.chosen - len(self.undecided)

    @property
    def enough(self) -> bool:
        """Whether a gate may pass: at least half is decided."""
        return 0 < self.chosen <= 2 * self.decided


def evidence(results: Sequence[ZoneResult]) -> GateEvidence:
    """Return the GateEvidence in these zones."""
    smoke = {(r.zone.algorithm, r.zone.profile, place) for r in results for place in r.zone.smoke}
    every = [(r.zone, place, False) for r in results for place in r.unmeasured]
    every += [
        (r.zone, f.verdict.place, f.decided)
        for r in results
        for f in r.findings
        if f.verdict.status is not Status.NOT_JUDGED
    ]
    at_smoke = [suspect for suspect in every if (suspect[0].algorithm, suspect[0].profile, suspect[1]) in smoke]
    chosen = at_smoke or every
    undecided = tuple((zone, place) for zone, place, decided in chosen if not decided)
    return GateEvidence(smoke=bool(at_smoke), chosen=len(chosen), undecided=undecided)


def failing(results: Iterable[ZoneResult]) -> list[Violation]:
    """Return the violations that fail a gate, each with its median."""
    return [
        Violation(zone=result.zone, place=finding.at, values=finding.values)
        for result in results
        for finding in result.findings
        if finding.surprise.fails and finding.last.status is Status.VIOLATES and finding.at is not None
    ]


def by_zone(
    plan: Plan, findings: Iterable[Finding], zones: Iterable[Zone], schemes: Mapping[str, str]
) -> Iterator[ZoneResult]:
    """Yield a ZoneResult for each of these zones that a Plan asks about. `schemes`: {algorithm: scheme's id}."""
    by_name = {finding.name: finding for finding in findings}
    for zone in zones:
        questions = [question for question in plan.questions if question.id == zone.id]
        if questions:
            yield ZoneResult(
                zone=zone,
                scheme_id=schemes[zone.algorithm],
                findings=tuple(by_name[question.name] for question in questions if question.name in by_name),
                unmeasured=tuple(question.place for question in questions if question.name not in by_name),
            )
