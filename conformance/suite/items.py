"""The tests that `pytest` runs: each asks one question about the stack and kernel of this session."""

import shlex
from collections.abc import Mapping
from typing import Any

import pytest
from _pytest._code.code import ExceptionInfo, TerminalRepr

from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.judging.expectation import Expected, Surprise, gone_command
from conformance.model.judging.question import MeasuredSettings, Rule
from conformance.model.judging.session import Finding, Judged
from conformance.model.judging.verdict import Status, Verdict
from conformance.results import store
from conformance.suite.cases import QuestionCase
from conformance.suite.options import Options, chosen
from conformance.suite.session import PytestSession
from conformance.support.console import mistake, one_line

SESSION = pytest.StashKey[PytestSession]()


class LabFault(Exception):
    """The emulator, guest or adapter failed, so nothing is known about the stack."""


class OutsideZone(AssertionError):
    """The measured value is outside the zone."""


class JudgedItem(pytest.Item):
    """A test that asks its question in its setup, and reports the verdict in its call."""

    def __init__(self, *, case: QuestionCase, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        #: the question and its verdict; None before setup, and after a fault
        self.judged: Judged | None = None
        #: the same for the repeat of a new violation with fresh seeds; None if it was not repeated
        self.again: Judged | None = None
        for marker in case.markers:
            self.add_marker(marker)

    @property
    def rule(self) -> Rule:
        return self.case.question.rule

    @property
    def verdict(self) -> Verdict | None:
        return self.judged.verdict if self.judged else None

    @property
    def measured(self) -> MeasuredSettings:
        """What its verdict rests on; nothing before setup, and where nothing can be judged."""
        return (
            {setting: measurements for setting, measurements in self.judged.measured.items() if measurements}
            if self.judged
            else {}
        )

    @property
    def expected(self) -> Expected | None:
        """What the stack is known to do here, or None."""
        session = self.config.stash.get(SESSION, None)
        return session.session.expected(self.case.question) if session else None

    @property
    def finding(self) -> Finding:
        """What the session says of it."""
        assert self.judged is not None  # or its setup has failed
        return self.config.stash[SESSION].session.finding(self.judged, self.again)

    @property
    def options(self) -> Options:
        return self.config.option

    @property
    def strict(self) -> bool:
        """Whether verdicts that are inconclusive or not confirmed fail."""
        return bool(self.options.fail_inconclusive or self.config.getini("strict"))

    def values(self) -> Mapping[str, float]:
        """Return {name: value} of what was measured, for reports."""
        verdict = self.finding.verdict
        return {verdict.what: verdict.values[0] for verdict in verdict.parts or (verdict,) if verdict.values}

    def headline(self) -> str:
        """Return the first line about a violation: the scheme, the verdict, the zone and the place."""
        finding = self.finding
        # A place that the baseline lost is not measured.
        scheme = finding.scheme or f"{finding.algorithm}/{self.options.stack}"
        return self.rule.headline(scheme, finding.verdict)

    def lines(self) -> list[tuple[str, str]]:
        """Return (title, text) of what a person needs to know about the verdict: measured, permitted, basis."""
        return self.rule.lines(self.finding.verdict, self.options.baseline)

    def selection(self) -> list[str]:
        """Return the words of a command line that select this test."""
        algorithm, marker, *_ = self.case.markers
        option, value = self.rule.selection
        return [f'-m "{algorithm} and {marker}"', f"{option} {shlex.quote(value)}"]

    @property
    def trials(self) -> int:
        """How many trials its verdict rests on."""
        return self.verdict.n if self.verdict else 0

    def rerun_command(self) -> str:
        """Return the command that judges these trials again: alone, and so in a family of its own."""
        option = self.options
        # Elsewhere than in a checkout, pytest does not know the suite's folder.
        suite = ["--pyargs", "conformance.suite"] if self.config.option.pyargs else []
        parts = ["pytest", *suite, *self.selection(), f"--trials {self.trials or option.trials}"]
        if option.first_seed != seeds.JUDGED:
            parts.append(f"--first-seed {option.first_seed}")
        if option.baseline:
            parts.append(f"--baseline {shlex.quote(option.baseline)}")
        if option.results != store.DEFAULT_RESULTS:
            parts.append(f"--results {shlex.quote(str(option.results))}")
        return " ".join(parts) + chosen(option).options()

    def setup(self) -> None:
        session = self.config.stash[SESSION]
        try:
            self.judged = session.ask(self.case.question)
            self.again = session.repeat(self.judged)
        except UserError as error:
            raise LabFault(mistake(error)) from None
        verdict = self.judged.verdict
        self.user_properties += [("verdict", str(verdict.status)), ("trials", self.trials)]
        if self.again is not None:
            self.user_properties.append(("verdict with fresh seeds", str(self.again.status)))
        last = verdict if self.again is None else self.again.verdict
        if last.status is Status.ERROR:
            raise LabFault(last.reason)

    def runtest(self) -> None:
        finding = self.finding
        verdict, expected = finding.verdict, finding.expected
        self.user_properties.extend(self.values().items())
        if expected and finding.surprise is Surprise.GONE:
            option = self.options
            command = gone_command(option.stack, option.results, chosen(option).options("stack"))
            mend = f"remove it from expected.json: `{command}`"
            raise OutsideZone(f"{verdict.status}, but {one_line(expected.words)}; {mend}\n{explain(self)}")
        if expected and expected.fits(verdict):
            pytest.xfail(one_line(expected.words))
        if verdict.status is Status.UNSUPPORTED:
            pytest.skip(f"unsupported: {verdict.reason}")
        if finding.unconfirmed and self.again is not None:
            reason = f"not confirmed: {verdict.status} ({verdict.reason}); again with fresh seeds: {self.again.status}"
            (pytest.fail if self.strict else pytest.skip)(reason)
        if verdict.status is Status.NOT_JUDGED:
            pytest.skip(f"not judged: {verdict.reason}")
        if verdict.status is Status.INCONCLUSIVE and not self.strict:
            pytest.skip("; ".join([f"inconclusive: {verdict.reason}", *(text for _, text in self.lines()[:1])]))
        if not verdict.status.passes:
            raise OutsideZone(explain(self))

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        if isinstance(excinfo.value, OutsideZone):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, None, str]:
        return self.path, None, self.name


def explain(item: JudgedItem) -> str:
    """Return what a person needs to know about a violation: measured, permitted, basis, and how to see it again."""
    v, option = item.verdict, item.options
    assert v is not None
    lines = [item.headline()]
    rows = [*item.lines()]
    if item.again is not None:
        first = min(m.trial.seed for measurements in item.again.measured.values() for m in measurements)
        said = item.again.verdict
        repeated = len(next(iter(item.again.measured.values())))
        rows.append(("again", f"{said.status} with fresh seeds, from {first}: {said.reason}, {repeated} trials"))
    rows.append(("rerun", item.rerun_command()))
    if v.status.against and not option.baseline:
        rows.append(("why", f"conformance why {item.case.question.algorithm}{chosen(option).options()}"))
    lines += [f"  {title:10} {text}" for title, text in rows]
    return "\n".join(lines)
