"""A stack that fails where another one gets through: how many failures it takes, and what else a verdict says."""

import dataclasses

import pytest
from helpers import as_read, line, measurement, measurements, setting, zone

from conformance.model.judging import failing
from conformance.model.judging.expectation import Expected, Known, Surprise, compare
from conformance.model.judging.session import Finding, Session, failures, plan, settle
from conformance.model.judging.verdict import LOOKS, Status as S, ZoneAt, ask, level
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Control, Measurement, Outcome
from conformance.support import schema

WHY = "the server of linux-tcp died with status 3 during the transfer: assertion failed"
QUESTION = ask(zone(), setting())


def control(seeds, failures=(), scheme="cubic/other/1.0"):
    ended = {seed: Outcome.FAILED if seed in failures else Outcome.OK for seed in seeds}
    return Control(scheme=scheme, trials=ended)


def failed(seed, beside=None):
    return as_read(measurement(seed=seed, outcome=Outcome.FAILED, message=WHY), metrics={}, control=beside)


def trials(fail, n, values=0.5, beside=True, failures=()):
    """Return n measurements, of which those with the seeds in `fail` failed."""
    other = control(range(1, n + 1), failures) if beside else None
    return [failed(m.trial.seed, other) if m.trial.seed in fail else m for m in measurements([values] * n)]


def judge(made, family=1, more=False):
    return failing.judge(ZoneAt(zone(), setting().point), {setting(): made}, family, more)


def test_a_failed_trial_is_written_and_read_with_its_control():
    failure = failed(3, control([3, 4], [4]))
    schema.check("measurement", failure.to_json(), "test")
    assert Measurement.from_json(failure.to_json()) == failure
    assert failure.settled and failure.control.failures == {4}
    # It is made again as soon as there is another stack.
    assert not failed(3).settled


@pytest.mark.parametrize(
    ("n", "k", "theirs", "p"),
    [(5, 5, 0, 1 / 252), (8, 8, 0, 1 / 12870), (5, 0, 0, 1.0), (5, 5, 5, 1.0), (20, 5, 0, 0.0236)],
)
def test_the_chance_is_fishers(n, k, theirs, p):
    assert failing.more_failures_p(k, n, theirs, n) == pytest.approx(p, rel=0.02)


def test_who_fails_everywhere_fails_after_eight_trials():
    five, eight = judge(trials(range(1, 6), 5), more=True), judge(trials(range(1, 9), 8))
    assert five.status is S.INCONCLUSIVE and five.p == pytest.approx(2 / 252) and not five.hidden
    assert eight.status is S.FAILS and eight.value is None and eight.p == pytest.approx(2 / 12870)
    assert eight.reason == f"{WHY} (8 of 8 trials failed; cubic/other/1.0 gets through there)"


def test_in_a_large_family_it_takes_more_trials():
    eight, thirteen = trials(range(1, 9), 8), trials(range(1, 14), 13)
    family = 1000
    assert level(family) < 2 / 12870
    assert judge(eight, family).status is S.INCONCLUSIVE
    assert judge(thirteen, family).status is S.FAILS


@pytest.mark.parametrize(("value", "status"), [(0.5, S.CONFORMS), (0.05, S.VIOLATES)])
def test_few_failures_leave_the_other_trials_to_be_judged(value, status):
    verdict = judge(trials([2], 8, value))
    assert verdict.status is status
    assert verdict.n == 7 and "1 of 8 trials failed" in verdict.reason


@pytest.mark.parametrize(
    ("failures", "of", "status"), [(1, 5, S.INCONCLUSIVE), (2, 13, S.INCONCLUSIVE), (2, 20, S.CONFORMS)]
)
def test_more_than_one_failure_in_eight_keeps_a_stack_from_conforming(failures, of, status):
    verdict = judge(trials(range(1, failures + 1), of), family=400)
    assert verdict.status is status
    assert verdict.leaning is (S.FAILS if status is S.INCONCLUSIVE else S.VIOLATES)


def test_where_the_control_fails_too_nothing_is_known_about_the_stack():
    verdict = judge(trials(range(1, 9), 8, failures=range(1, 9)))
    assert verdict.status is S.ERROR
    assert "cubic/other/1.0 does not get through either" in verdict.reason


def test_without_another_stack_nothing_is_known_about_the_stack():
    verdict = judge(trials(range(1, 9), 8, beside=False))
    assert verdict.status is S.ERROR and "none is built" in verdict.reason
    assert judge(trials([2], 8, beside=False)).status is S.ERROR


def source(by_seed):
    """Return a Source of the trials that a plan asks for, look by look."""

    def events(asked):
        (question,) = asked.questions
        made = []
        for n in asked.looks:
            made = [by_seed(seed) for seed in list(asked.seeds)[:n]]
            judged = asked.judge(question, {question.setting: made})
            if not asked.next_look(judged):
                break
        yield judged

    return events


def test_a_session_looks_further_and_repeats_failures():
    def by_seed(seed):
        return failed(seed, control([seed]))

    (finding,) = Session(plan=plan([QUESTION], trials=5, most_trials=20)).findings(source(by_seed))
    assert (finding.verdict.status, finding.verdict.n, finding.surprise) == (S.FAILS, 8, Surprise.NEW)
    assert finding.again.status is S.FAILS


def test_failures_that_do_not_come_again_are_not_confirmed():
    def by_seed(seed):
        return failed(seed, control([seed])) if seed < 2000 else measurement(seed=seed)

    (finding,) = Session(plan=plan([QUESTION], trials=5, most_trials=20)).findings(source(by_seed))
    assert finding.unconfirmed and finding.confirmed.status is S.INCONCLUSIVE


def test_a_known_violation_does_not_hide_a_failure():
    verdict = judge(trials(range(1, 9), 8))
    entry = Expected(zone_id=zone().id, cells=None, verdict=Known.VIOLATES, reason="known")
    assert compare(verdict, entry) is Surprise.NEW
    assert compare(verdict, dataclasses.replace(entry, verdict=Known.FAILS)) is Surprise.NONE
    assert compare(judge(measurements([0.5] * 20)), dataclasses.replace(entry, verdict=Known.FAILS)) is Surprise.GONE


@pytest.mark.parametrize("n", [5, 8, 13, 20])
def test_sound_stacks_that_fail_now_and_then_are_rarely_said_to_fail(n):
    """Of two stacks that fail equally often, the exact test says `fails` in at most half of a look's share."""
    from math import comb

    rate, share = 0.3, level(1)
    chance = sum(
        comb(n, a) * comb(n, b) * rate ** (a + b) * (1 - rate) ** (2 * n - a - b)
        for a in range(n + 1)
        for b in range(n + 1)
        if 2 * failing.more_failures_p(a, n, b, n) <= share
    )
    assert chance <= share / 2 and LOOKS * chance <= 0.005


def everywhere(fail, places=30, failures=(), **about):
    """Return findings about places in each of which eight trials were made, and those with seeds in `fail` failed."""
    made = {setting(Cell(10, 20 + at, 1)): trials(fail, 8, failures=failures) for at in range(places)}
    ends = [failing.ended({place: measurements}) for place, measurements in made.items()]
    return [Finding(verdict=judge(trials([], 8)), algorithm="cubic", ends=of, **about) for of in ends]


def test_who_fails_now_and_then_in_every_place_fails_in_all_together():
    """No place by itself says so: one failed trial of eight lets it pass."""
    found = everywhere([3])
    (together,) = failures([*found, *found])  # questions of two zones, about the same trials
    assert (together.failed, together.trials, together.others_failed, together.others) == (30, 240, 0, 240)
    assert together.p < 1e-8 and together.words.startswith("30 of 240 trials of cubic failed, and none of 240 of")
    assert not failures(everywhere([3], failures=[5])), "the other stack fails as often"
    assert not failures([*everywhere([3], 2), *everywhere([], 28)]), "chance explains so few"
    assert not failures(everywhere([]))


def test_where_a_stack_fails_by_itself_or_is_known_to_it_is_not_said_again():
    known = Expected(zone_id="cubic/heatmap", cells=None, verdict=Known.FAILS, reason="it is so")
    assert not failures(everywhere([3], expected=known))
    alone = [dataclasses.replace(f, verdict=judge(trials(range(1, 9), 8))) for f in everywhere(range(1, 9))]
    assert alone[0].verdict.status is S.FAILS and not failures(alone)


def test_lines_of_files_say_the_same(tmp_path):
    from conformance.model.judging.session import stored

    made = [Measurement.from_json(m.to_json()) for m in trials(range(1, 9), 8)]
    assert line(made[0])
    (finding,) = stored({QUESTION: {setting(): made}})
    assert finding.verdict.status is S.FAILS


def test_where_a_zone_only_shows_nothing_fails():
    shown = dataclasses.replace(zone().intervals[setting().point], counted=False)
    rule = ZoneAt(zone(intervals={setting().point: shown}), setting().point)
    assert not rule.judgeable
    verdict = failing.judge(rule, {setting(): trials(range(1, 9), 8)}, 1, False)
    assert verdict.status is S.NOT_JUDGED and verdict.p is None


def test_pytest_calls_a_failure_that_holm_settles_a_failure():
    """Without Holm's procedure, eight failures of eight are too few in such a family."""
    family = 17
    while judge(trials(range(1, 9), 8), family).status is S.FAILS:
        family += 1
    eight = judge(trials(range(1, 9), 8), family)
    assert eight.leaning is S.FAILS
    certain = [dataclasses.replace(eight, status=S.VIOLATES, p=1e-12)] * (family - 1)
    settled = settle([Finding(verdict=verdict, family=family) for verdict in (eight, *certain)])
    assert [finding.verdict.status for finding in settled[:2]] == [S.FAILS, S.VIOLATES]


def test_an_error_of_the_emulator_takes_no_violation_back():
    outside, error = judge(trials([], 8, 0.05)), judge(trials(range(1, 6), 5, beside=False))
    clear = judge(trials([], 8))
    assert (outside.status, error.status, clear.status) == (S.VIOLATES, S.ERROR, S.CONFORMS)
    assert Finding(verdict=outside, again=error).confirmed is outside
    assert Finding(verdict=outside, again=clear).confirmed.status is S.INCONCLUSIVE


def test_what_is_offered_in_one_trial_is_offered_in_all():
    """Status 127 in one trial of a bad cell made the whole cell unsupported."""
    lacks = as_read(measurement(seed=5, outcome=Outcome.UNSUPPORTED, message="not offered"), metrics={})
    found = judge([*measurements([0.1] * 4), lacks])
    assert found.status is S.ERROR
    assert found.reason == "not offered, although it does in other trials (1 of 5 trials)"
    assert judge([failed(1, control([1])), lacks]).status is S.ERROR
    assert judge([lacks]).status is S.UNSUPPORTED
    # A repeat's first trials violated, so they ran.
    assert plan([QUESTION], trials=1).repeating([QUESTION]).judge(QUESTION, {setting(): [lacks]}).status is S.ERROR


@pytest.mark.parametrize(
    ("message", "status"), [("linux-tcp does not offer cubic: no", S.ERROR), ("may not migrate", S.UNSUPPORTED)]
)
def test_what_is_offered_in_one_cell_is_offered_in_all(message, status):
    elsewhere = Cell(10, 40, 1)
    lacks = [
        as_read(m, outcome=Outcome.UNSUPPORTED, message=message, metrics={})
        for m in measurements([0.5] * 5, cell=elsewhere)
    ]
    measured = {setting(): measurements([0.5] * 5), setting(elsewhere): lacks}
    asked = plan([ask(zone(cell=at.cell), at) for at in measured], trials=5)
    session = Session(plan=asked)
    alone = [session.finding(asked.judge(question, measured)) for question in asked.questions]
    assert [finding.verdict.status for finding in alone] == [S.CONFORMS, S.UNSUPPORTED]
    assert [finding.verdict.status for finding in settle(alone)] == [S.CONFORMS, status]
    found = session.findings(lambda planned: [planned.judge(question, measured) for question in planned.questions])
    assert [finding.verdict.status for finding in found] == [S.CONFORMS, status]
    assert settle(alone[1:])[0].verdict.status is S.UNSUPPORTED
