"""A session's estimate of its duration: by trials if it makes them itself, by tests if its workers make them."""

import types

import pytest

from conformance.suite import progress
from conformance.suite.items import SESSION


def ticker(session):
    made = progress.Ticker(types.SimpleNamespace(stash={SESSION: session} if session else {}))
    made._pace = types.SimpleNamespace(remaining_s=lambda tests: 100.0 + tests)
    made._total, made._done = 30, 20
    return made


@pytest.mark.parametrize(("ahead", "seconds"), [(True, 7.0), (False, 110.0)])
def test_trials_made_ahead_tell_how_long_it_takes(ahead, seconds):
    session = types.SimpleNamespace(measures_ahead=ahead, remaining_s=lambda: 7.0)
    assert ticker(session)._left_s() == seconds


def test_tests_tell_it_where_xdists_workers_make_the_trials():
    assert ticker(None)._left_s() == 110.0
