"""Judge a study by measurements: look up what was seen of its quantities, and judge its anchors and claims."""

import dataclasses
import functools
from collections.abc import Hashable, Mapping, Sequence

from conformance.model.metrics import delivery_metrics
from conformance.model.metrics.metric import Timeout
from conformance.model.metrics.table import METRICS, UTILIZATION
from conformance.model.studies import claims, predicted
from conformance.model.studies.claims import ClaimVerdict, Estimate, JudgedClaim, NotSeen
from conformance.model.studies.study import Claim, Study
from conformance.model.studies.study_point import StudyPoint, StudyQuantity
from conformance.model.studies.study_results import anything_known
from conformance.model.trials.trial import Measurement, Outcome

MeasuredPoints = Mapping[StudyPoint, Sequence[Measurement]]
#: {point: {metric of a single transfer: what the reference of a zone has there}}
References = Mapping[StudyPoint, Mapping[str, Estimate]]
#: the reason for a point that was not asked for in this run
_NOT_MEASURED = "not measured"
_ANY = (Outcome.OK, Outcome.TIMEOUT)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judgment:
    """The verdicts on a study: {anchor's name: JudgedClaim}, and (claim, JudgedClaim) in the document's order."""

    anchors: Mapping[str, JudgedClaim]
    claims: tuple[tuple[Claim, JudgedClaim], ...]

    @property
    def counts(self) -> dict[ClaimVerdict, int]:
        """The number of claims with each verdict."""
        return claims.counts(judged for _, judged in self.claims)


def known(measured: MeasuredPoints) -> int:
    """Return the number of points about which anything is known."""
    return sum(map(anything_known, measured.values()))


def referenced(measured: MeasuredPoints, references: References) -> int:
    """Return the number of points that were not measured, and of which a zone's reference is known."""
    return sum(not measured.get(point) for point in references)


def judge(
    study: Study, measured: MeasuredPoints, why_not: Mapping[StudyPoint, str] = {},
    references: Mapping[StudyPoint, Mapping[str, Estimate]] = {},
) -> Judgment:  # fmt: skip
    """Judge a study by what was measured. `why_not`: why a point was not measured, if that is known.

    `references` stand in for points that were not measured.
    """
    look = looker(study, measured, why_not, references)
    anchors = {anchor.name: claims.judge(anchor.instances, look) for anchor in study.anchors}

    def of(claim: Claim) -> JudgedClaim:
        if claim.not_judged is not None:
            return JudgedClaim(verdict=ClaimVerdict.NOT_JUDGED, why=claim.not_judged)
        return claims.judge(claim.instances, look, anchors)

    return Judgment(anchors=anchors, claims=tuple((claim, of(claim)) for claim in study.claims))


def looker(
    study: Study, measured: MeasuredPoints, why_not: Mapping[StudyPoint, str] = {},
    references: Mapping[StudyPoint, Mapping[str, Estimate]] = {},
) -> claims.Lookup:  # fmt: skip
    """Return the function that returns what was seen of a StudyQuantity."""

    @functools.cache
    def look(quantity: Hashable) -> Estimate | NotSeen:
        if not isinstance(quantity, StudyQuantity):
            raise TypeError(f"{quantity!r} is not a quantity of a study")
        return _look(study, measured, why_not, references, quantity)

    return look


def _look(
    study: Study,
    measured: MeasuredPoints,
    why_not: Mapping[StudyPoint, str],
    references: References,
    quantity: StudyQuantity,
) -> Estimate | NotSeen:
    if quantity.requested or quantity.metric in predicted.ASKED:
        by_cell = {study.setting(point).cell: measured[point] for point in quantity.points if measured.get(point)}
        lacking = (point for point in quantity.points if study.setting(point).cell not in by_cell)
        utilizations = {study.setting(point).cell: references.get(point, {}).get(UTILIZATION.name) for point in lacking}
        others = {cell: estimate for cell, estimate in utilizations.items() if estimate is not None}
        return predicted.predict(quantity.metric, dict(quantity.requested), by_cell, others)
    (point,) = quantity.points
    measurements = measured.get(point)
    if (
        not measurements
        and quantity.group is None
        and quantity.phase is None
        and quantity.metric in references.get(point, {})
    ):
        return references[point][quantity.metric]
    if not measurements:
        return NotSeen(why_not.get(point, _NOT_MEASURED))
    if quantity.phase is not None:
        phased = [
            (measurement, delivery_metrics.in_phase(measurement.flows, quantity.phase))
            for measurement in measurements
            if measurement.outcome in _ANY
        ]
        if any(flows is None for _, flows in phased):
            return NotSeen("a trial ended before that phase")
        measurements = [
            *(measurement for measurement in measurements if measurement.outcome not in _ANY),
            *(dataclasses.replace(measurement, flows=flows) for measurement, flows in phased if flows is not None),
        ]
    return seen(measurements, quantity.metric, quantity.group)


def seen(measurements: Sequence[Measurement], name: str, group: str | None) -> Estimate | NotSeen:
    """Return what trials say about a metric of a group; NotSeen with the reason if a trial failed or lacks it."""
    metric = METRICS[name]
    if bad := next((measurement for measurement in measurements if measurement.outcome not in _ANY), None):
        return NotSeen(bad.message or str(bad.outcome))
    values = [metric.of(measurement, group) for measurement in measurements]
    late = next((measurement for measurement in measurements if measurement.outcome is Outcome.TIMEOUT), None)
    if late is not None and metric.timeout is Timeout.UNKNOWN:
        return NotSeen(late.message or "the transfer timed out")
    there = [value for value in values if value is not None]
    if len(there) < len(values):
        return NotSeen(metric.missing or f"{metric.title} has no value in some trials")
    estimate = Estimate.of(there)
    # A trial that timed out has this value or a smaller one.
    return estimate if late is None else dataclasses.replace(estimate, low=metric.least)
