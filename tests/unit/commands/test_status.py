"""Exit statuses: every verdict and outcome has one, and there is one precedence."""

import itertools

import pytest

from conformance.commands.status import ExitStatus, of_outcomes, of_verdicts, worst
from conformance.model.judging.verdict import Status
from conformance.model.trials.trial import Outcome


def test_the_numbers_are_those_that_are_documented():
    import conformance.cli

    for status in ExitStatus:
        assert f"\n{int(status)} " in conformance.cli.__doc__


@pytest.mark.parametrize("status", Status)
def test_every_verdict_has_a_status(status):
    assert of_verdicts([status]) in ExitStatus
    assert (of_verdicts([status]) is ExitStatus.DONE) == (status.passes or status is Status.NOT_JUDGED)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_status(outcome):
    says_something = outcome in (Outcome.OK, Outcome.TIMEOUT)
    assert (of_outcomes([outcome]) is ExitStatus.DONE) == says_something


def test_the_order_does_not_matter_and_nothing_is_done():
    assert worst([]) is ExitStatus.DONE
    for first, second in itertools.combinations(ExitStatus, 2):
        assert worst([first, second]) is worst([second, first])


def test_a_violation_is_certain_whatever_failed_beside_it():
    assert of_verdicts([Status.ERROR, Status.VIOLATES, Status.CONFORMS]) is ExitStatus.VIOLATES
    assert of_verdicts([Status.INCONCLUSIVE, Status.ERROR]) is ExitStatus.ERROR
    assert of_verdicts([Status.CONFORMS, Status.INCONCLUSIVE]) is ExitStatus.UNKNOWN
