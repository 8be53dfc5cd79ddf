"""Violations that only all tests taken together show are repeated as those that their own tests show."""

import argparse

import fake_room
import pytest

from conformance.model.judging import session
from conformance.suite import late
from conformance.suite.cases import CLAUSE, cases


@pytest.mark.slow
def test_a_clause_is_repeated_in_the_family_of_its_session(monkeypatch, tmp_path):
    """Its first trials showed half of a violation in that family; the repeat has to show the other half in the same."""
    option = argparse.Namespace(
        markexpr="rfc9438", grid=None, baseline=None, stack="linux-tcp", source=None, client="common", kernel=None,
        interop_rootfs=None, confirm=True, workers=1, trials=5, max_trials=None, first_seed=1001,
        results=tmp_path / "r.jsonl",
    )  # fmt: skip
    question = next(case.question for case in cases(option) if case.kind == CLAUSE and case.question.rule.judgeable)
    plans = []
    monkeypatch.setattr(session, "repeats", lambda plan, questions, source: plans.append(plan) or [])
    fake_room.install("good", patch=monkeypatch.setattr)
    late.repeated(option, {question.name: 40})
    (asked,) = plans
    assert question.rule.twice and asked.repeating(asked.questions).families == {question: 40}
