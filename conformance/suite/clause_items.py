"""A test of one clause of a document, for one algorithm of the stack of this session."""

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.engine.questions import ClauseQuestion
from conformance.model.clauses.verdict import ClauseVerdict
from conformance.model.expectation import Surprise
from conformance.reporting.text import clause as shown
from conformance.suite import summary
from conformance.suite.items import JudgedItem


class ClauseItem(JudgedItem):
    """One clause, for one algorithm."""

    @property
    def question(self) -> ClauseQuestion:
        assert isinstance(self.case.question, ClauseQuestion)
        return self.case.question

    @property
    def verdict(self) -> ClauseVerdict | None:
        found = self.judged.verdict if self.judged else None
        assert found is None or isinstance(found, ClauseVerdict)
        return found

    @property
    def where(self) -> str:
        return self.question.clause.network.words

    def headline(self) -> str:
        assert self.verdict is not None and self.measured is not None
        scheme = self.measured[self.question.setting][0].trial.scheme
        return shown.headline(scheme.id, self.question.clause, self.verdict)

    def selection(self) -> list[str]:
        clause = self.question.clause
        return [f'-m "{self.question.algorithm} and {clause.specification}"', f"-k {clause.id}"]

    @property
    def trials(self) -> int:
        return self.verdict.trials if self.verdict else 0

    def told(self) -> tuple[str, dict[str, Any]]:
        assert self.verdict is not None
        unconfirmed = self.surprise is Surprise.UNCONFIRMED
        told = summary.clause_told(self.question, self.verdict, self.expected, self.family, unconfirmed)
        return summary.SPLIT_TOLD, told

    def values(self) -> Mapping[str, float]:
        assert self.verdict is not None
        value = self.verdict.value
        return {} if value is None else {self.question.clause.observable.name: value}

    def lines(self) -> Sequence[tuple[str, str]]:
        assert self.verdict is not None
        return shown.lines(self.question.clause, self.verdict)
