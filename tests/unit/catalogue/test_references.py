"""References of zones, from which values at a study's points are known without a measurement."""

import dataclasses
import math

from helpers import measurement

from conformance.catalogue import documents, references, studies
from conformance.model.networks.place import Cell
from conformance.model.studies import outcome, predicted
from conformance.model.studies.claims import ClaimVerdict, Estimate
from conformance.model.trials.trial import Outcome

ATC25 = studies.find("atc25-splitting")
KNOWN = references.of(ATC25)


def of(algorithm, cell):
    """Return the study's point of Linux TCP in a cell."""
    return next(
        point for point in ATC25.points["full"]
        if (point.scenario, point.stack, point.algorithm) == ("atc25", "linux-tcp", algorithm)
        and ATC25.setting(point).cell == cell
    )  # fmt: skip


def test_a_zone_s_reference_is_known_of_the_very_setting_it_was_measured_in():
    cell = Cell(50, 20, 2)
    values = documents.zone_of("cubic").intervals[cell].basis.values
    known = KNOWN[of("cubic", cell)]
    assert known["utilization"] == Estimate.of(values)
    assert known["utilization"].n == len(values) >= 20
    assert known["lost_pct"] == Estimate.of(documents.zone_of("cubic", "loss").intervals[cell].basis.values)


def test_nothing_is_known_of_other_stacks_profiles_and_paths():
    assert {(point.scenario, point.stack) for point in KNOWN} == {("atc25", "linux-tcp")}
    assert references.of(studies.find("tng")) == {}
    usual = of("cubic", Cell(50, 20, 2))
    others = tuple(dataclasses.replace(usual, **one) for one in ({"kernel": "slow"}, {"client": "own"}))
    assert references.of(dataclasses.replace(ATC25, points={"full": (usual, *others)})).keys() == {usual}


def test_what_a_zone_multiplies_for_quic_is_not_what_tcp_has():
    packets = dataclasses.replace(of("bbrv3", Cell(10, 20, 1)), scenario="packets")
    known = references.of(dataclasses.replace(ATC25, points={"full": (packets,)}))
    assert known[packets].keys() == {"lost_pct"}


def test_no_reference_is_counted_where_trials_failed():
    usual, failed = of("cubic", Cell(50, 20, 2)), [measurement(outcome=Outcome.ERROR)]
    assert outcome.referenced({usual: failed}, {usual: KNOWN[usual]}) == outcome.known({usual: failed}) == 0


def test_claims_about_many_cells_are_judged_by_references_where_nothing_was_measured():
    verdicts = {claim.id: found.verdict for claim, found in outcome.judge(ATC25, {}, references=KNOWN).claims}
    assert {name: verdicts[name] for name in ("A14", "A20")} == dict.fromkeys(("A14", "A20"), ClaimVerdict.REPRODUCED)
    assert verdicts["A23"] is ClaimVerdict.NOT_JUDGED
    without = {found.verdict for _, found in outcome.judge(ATC25, {}).claims}
    assert without == {ClaimVerdict.NOT_JUDGED}
    assert outcome.referenced({}, KNOWN) == len(KNOWN)


def test_a_prediction_has_the_bounds_of_what_is_known_of_its_cells():
    one, two = Cell(10, 20, 0), Cell(10, 20, 1)
    known = {cell: Estimate(median=0.5, low=low, high=0.6, n=20) for cell, low in ((one, 0.4), (two, 0.3))}
    found = predicted.predict("predicted_split", {"path": f"{one.id}+{two.id}"}, {}, known)
    assert math.isclose(found.median, 0.5) and (found.low, found.high, found.n) == (0.3, 0.6, 20)
