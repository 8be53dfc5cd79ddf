"""A kind of cells is judged as one: how much, and how even."""

import dataclasses
import random

import pytest
from helpers import as_read, measurement, of_trial

from conformance.catalogue import documents
from conformance.model.judging import failing, kinds
from conformance.model.judging.session import Session, plan, stored
from conformance.model.judging.statistics import chi_squared_above
from conformance.model.judging.verdict import USUAL_LOOKS, Status
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Control, Outcome

ZONE = documents.zone_of("bbrv3", "heatmap", "packets")
CELLS = {kind: cells for kind, cells in kinds.by_kind(ZONE, ZONE.cells).items()}
LOSSY = "up to 2 % of loss"


def trials(cell, factor, number=5, first_seed=1001, outcome=Outcome.OK):
    """Return trials drawn from the reference's own, each multiplied."""
    drawn = random.Random(f"{cell.id} {first_seed}")
    where = setting_of(cell)
    return where, [
        in_setting(where, drawn.choice(ZONE.intervals[cell].basis.values) * factor, first_seed + at, outcome)
        for at in range(number)
    ]


def setting_of(cell):
    return documents.profile("packets", cell)


def in_setting(where, utilization, seed, outcome):
    lone = measurement(utilization, seed, outcome, algorithm="bbrv3")
    return of_trial(lone, setting=where)


def judged(factor=lambda cell: 1.0, kind=LOSSY, number=5, first_seed=1001, family=100, cells=None):
    """Return {place: verdict} of a kind's two questions, on trials that are the reference's times factor(cell)."""
    measured = dict(trials(cell, factor(cell), number, first_seed) for cell in cells or CELLS[kind])
    asked = kinds.ask(ZONE, measured)
    findings = stored({question: measured for question in asked}, family=family)
    return {finding.verdict.place.id: finding for finding in findings}


def named(zone, name):
    """Return a zone whose first reference has another name, by which its trials meet otherwise."""
    intervals = {}
    for cell, permitted in zone.intervals.items():
        first, *rest = permitted.bases
        intervals[cell] = dataclasses.replace(permitted, bases=(dataclasses.replace(first, reference=name), *rest))
    return dataclasses.replace(zone, intervals=intervals)


def test_what_is_permitted_hardly_depends_on_which_trials_of_a_reference_meet():
    zone = documents.zone_of("bbrv2", "heatmap", "packets")
    cells = kinds.by_kind(zone, zone.cells)[LOSSY]
    ends = [kinds.Amount(named(zone, f"linux-{at}"), LOSSY, cells).permitted for at in range(6)]
    for end in ("low", "high"):
        values = [getattr(permitted, end) for permitted in ends]
        assert max(values) / min(values) < 1.008  # up to 1.014 by one pairing


@pytest.mark.parametrize("seed", range(1001, 1031))
def test_what_the_reference_does_conforms_after_five_trials(seed):
    found = judged(first_seed=seed)
    assert (found["up-to-2pct"].verdict.status, found["up-to-2pct"].verdict.n) == (Status.CONFORMS, 5)
    assert found["up-to-2pct-even"].verdict.status is not Status.VIOLATES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "factor", "least"), [(LOSSY, 0.85, 38), (LOSSY, 1.17, 36), ("no random loss", 0.85, 40)]
)
def test_fifteen_per_cent_less_and_a_little_more_are_told(kind, factor, least):
    name = kinds.slug(kind)
    found = [judged(lambda cell: factor, kind, number=20, first_seed=seed)[name] for seed in range(1, 41)]
    assert sum(one.verdict.status is Status.VIOLATES for one in found) >= least


def test_opposite_deviations_do_not_cancel():
    def opposite(cell):
        return 1.3 if cell.one_way_delay_ms > 50 else 0.75

    found = judged(opposite)
    assert found["up-to-2pct"].verdict.status is not Status.VIOLATES
    uneven = found["up-to-2pct-even"]
    assert uneven.verdict.status is Status.VIOLATES and uneven.verdict.reason.startswith(
        "uneven (measured / reference): "
    )
    assert uneven.at in CELLS[LOSSY] and uneven.values


@pytest.mark.slow
def test_honest_unevenness_is_no_violation():
    """Honest stacks' ratios have a standard deviation of 0.04."""
    for seed in range(1, 41):
        drawn = random.Random(seed)
        by = {cell: drawn.lognormvariate(0, 0.04) for cell in CELLS[LOSSY]}
        assert judged(by.get, first_seed=seed)["up-to-2pct-even"].verdict.status is not Status.VIOLATES


@pytest.mark.parametrize(
    ("kind", "sd", "least"), [("no random loss", 0.1, 10), ("no random loss", 0.15, 10), (LOSSY, 0.12, 1)]
)
def test_what_stays_open_however_many_trials_follow_gets_none_and_no_violation_is_lost(kind, sd, least):
    rule = kinds.Evenness(ZONE, kind, CELLS[kind])
    statuses, fewer = [], 0
    for seed in range(1, 31):
        drawn = random.Random(f"{kind} {sd} {seed}")
        by = {cell: drawn.lognormvariate(0, sd) for cell in CELLS[kind]}
        measured = dict(trials(cell, by[cell], 20, seed) for cell in by)
        at = {n: rule.judge({s: of[:n] for s, of in measured.items()}, 100, True) for n in USUAL_LOOKS}
        patient = next((n for n in USUAL_LOOKS if at[n].status is not Status.INCONCLUSIVE), USUAL_LOOKS[-1])
        stopped = next((n for n in USUAL_LOOKS if at[n].status is not Status.INCONCLUSIVE or at[n].hidden), patient)
        statuses.append(at[patient].status)
        fewer += stopped < patient
        assert at[stopped].status is at[patient].status
        assert not at[stopped].hidden or at[stopped].reason.endswith("more trials would not help")
    assert Status.VIOLATES in statuses or sd < 0.15
    assert fewer >= least


def test_random_loss_above_two_per_cent_is_shown_and_not_judged():
    (question,) = kinds.ask(ZONE, [documents.profile("packets", cell) for cell in CELLS["more than 2 % of loss"]])
    assert not question.rule.judgeable
    asked = plan([question, *kinds.ask(ZONE, [documents.profile("packets", cell) for cell in CELLS[LOSSY]])], trials=5)
    assert asked.family == 2 and {setting.cell for _, setting in asked.work} == set(CELLS[LOSSY])
    (finding,) = Session(plan=plan([question], trials=5)).findings(lambda _: ())
    assert finding.verdict.status is Status.NOT_JUDGED and "tells little" in finding.verdict.reason


def test_spaced_losses_are_one_kind_where_trials_spread_little_and_shown_elsewhere():
    spaced = documents.zone(documents.zone_path("bbrv3/spaced-losses"))
    by_kind = kinds.by_kind(spaced, spaced.places)
    assert {kind: {place["delay_ms"] for place in places} for kind, places in by_kind.items()} == {
        "spaced losses at 80 and 100 ms": {80, 100},
        "spaced losses at 20 and 40 ms": {20, 40},
    }
    assert [rule.place.id for rule in kinds.rules(spaced, spaced.places) if rule.judgeable] == [
        "spaced-losses-at-80-and-100-ms", "spaced-losses-at-80-and-100-ms-even",
    ]  # fmt: skip


def test_a_cell_that_is_missing_or_failed_makes_the_kind_an_error():
    measured = dict(trials(cell, 1.0) for cell in CELLS[LOSSY])
    first = next(iter(measured))
    question, _ = kinds.ask(ZONE, measured)
    lacking = question.rule.judge({**measured, first: []}, 1, False)
    assert (lacking.status, lacking.reason) == (Status.ERROR, "nothing was measured")
    failed = dict([trials(first.cell, 1.0, outcome=Outcome.ERROR)])
    assert question.rule.judge({**measured, **failed}, 1, False).status is Status.ERROR


def test_a_transfer_that_timed_out_cannot_make_a_kind_conform():
    measured = dict(trials(cell, 1.0) for cell in CELLS[LOSSY])
    late = dict([trials(next(iter(measured)).cell, 1.0, outcome=Outcome.TIMEOUT)])
    question, _ = kinds.ask(ZONE, measured)
    assert question.rule.judge({**measured, **late}, 1, True).status is Status.INCONCLUSIVE


def test_few_trials_say_nothing_of_evenness():
    """The spread of fewer than five trials is not known, and is not none."""
    few = judged(number=4)["up-to-2pct-even"].verdict
    assert (few.status, few.n) == (Status.INCONCLUSIVE, 4) and "too few" in few.reason
    evenness = [question for question in kinds.ask(ZONE, map(setting_of, CELLS[LOSSY])) if "even" in question.place.id]
    assert [question.rule.fewest(1, 1) for question in evenness] == [5]


@pytest.mark.parametrize("utilization", [0.5, None])
def test_where_a_transfer_timed_out_only_bounds_are_known(utilization):
    measured = dict(trials(cell, 1.0) for cell in CELLS[LOSSY])
    first = setting_of(CELLS[LOSSY][0])
    late = in_setting(first, 0.5, 1001, Outcome.TIMEOUT)
    if utilization is None:
        late = as_read(late, metrics={}, evidence={})
    measured[first] = [late, *measured[first][1:]]
    verdicts = [finding.verdict for finding in stored({q: measured for q in kinds.ask(ZONE, measured)})]
    assert "timed out" in verdicts[-1].reason and verdicts[-1].status is Status.INCONCLUSIVE
    assert all(verdict.status is not Status.ERROR for verdict in verdicts)


def test_a_stack_that_fails_throughout_a_cell_fails_the_kind():
    measured = dict(trials(cell, 1.0, 8) for cell in CELLS[LOSSY])
    first = setting_of(CELLS[LOSSY][0])
    beside = Control(scheme="bbrv3/other/1.0", trials={m.trial.seed: Outcome.OK for m in measured[first]})
    measured[first] = [
        as_read(m, outcome=Outcome.FAILED, message="it ended", metrics={}, evidence={}, control=beside)
        for m in measured[first]
    ]
    statuses = [failing.judge(q.rule, measured, 1, False).status for q in kinds.ask(ZONE, measured)]
    assert statuses == [Status.FAILS, Status.FAILS]


def test_the_witness_is_the_cell_that_is_farthest_out():
    slow = Cell(10, 40, 2)
    found = judged(lambda cell: 0.5 if cell == slow else 0.8, number=8)["up-to-2pct"]
    assert found.verdict.status is Status.VIOLATES and found.at == slow and len(found.values) in (5, 8)


def test_a_known_deviation_may_be_of_a_kind():
    for name in judged():
        assert kinds.named(name) is not None
    assert kinds.named("10mbps-20ms-1pct") is None


def test_few_cells_have_no_evenness():
    assert list(judged(cells=CELLS[LOSSY][:3])) == ["up-to-2pct"]


@pytest.mark.parametrize(
    ("x", "degrees", "chance"), [(3.841, 1, 0.05), (16.919, 9, 0.05), (18.307, 10, 0.05), (0, 4, 1)]
)
def test_chi_squared_is_as_in_tables(x, degrees, chance):
    assert chi_squared_above(x, degrees) == pytest.approx(chance, abs=1e-4)
