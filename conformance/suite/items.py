"""The tests that `pytest` runs: each is about a cell of a zone, or a check of its split part, for the stack and kernel
of this session.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from _pytest._code.code import ExceptionInfo, TerminalRepr

from conformance.catalogue import documents
from conformance.engine.plan import Judged
from conformance.engine.questions import CellQuestion, Measured, SplitQuestion
from conformance.model import expectation
from conformance.model.clauses.verdict import ClauseVerdict
from conformance.model.errors import UserError
from conformance.model.expectation import Expected, Surprise, gone_command
from conformance.model.judging import seeds
from conformance.model.judging.verdict import CONFIDENCE, Status, Verdict
from conformance.model.judging.zone import Basis
from conformance.model.rounding import digits_to_tell
from conformance.model.split.split_zone import Finding, SplitVerdict
from conformance.results import store
from conformance.suite import summary
from conformance.suite.cases import Case
from conformance.suite.options import Options, chosen
from conformance.suite.session import Session
from conformance.support.console import mistake, one_line

#: decimal places of values and bounds in a sentence, unless more are needed to tell them apart
_DIGITS = 3
SESSION = pytest.StashKey[Session]()


class LabFault(Exception):
    """The emulator, guest or adapter failed, so nothing is known about the stack."""


class Violation(AssertionError):
    """The measured value is outside the zone."""


class JudgedItem(pytest.Item):
    """A test that asks its question in its setup, and reports the verdict in its call."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        #: the question and its verdict; None before setup, and after a fault
        self.judged: Judged | None = None
        #: the same for the repeat of a new violation with fresh seeds; None if it was not repeated
        self.again: Judged | None = None
        for marker in case.markers:
            self.add_marker(marker)

    @property
    def zone(self) -> Any:
        return self.case.question.zone

    @property
    def kind(self) -> str:
        return self.case.kind

    @property
    def verdict(self) -> Verdict | SplitVerdict | ClauseVerdict | None:
        return self.judged.verdict if self.judged else None

    @property
    def measured(self) -> Measured | None:
        return self.judged.measured if self.judged else None

    @property
    def expected(self) -> Expected | None:
        """What the stack is known to do here, or None."""
        session = self.config.stash.get(SESSION, None)
        return session.expected[self.case.question] if session else None

    @property
    def family(self) -> int:
        """How many cells share the session's chance of a false alarm."""
        return self.config.stash[SESSION].plan.families[self.case.question]

    @property
    def options(self) -> Options:
        return self.config.option

    @property
    def strict(self) -> bool:
        """Whether verdicts that are inconclusive or not confirmed fail."""
        return bool(self.options.fail_inconclusive or self.config.getini("strict"))

    @property
    def where(self) -> str:
        """The cell, path or grid that the test is about, for people."""
        raise NotImplementedError

    @property
    def grid(self) -> str:
        """The shortest value of --grid that names the test's cells."""
        raise NotImplementedError

    def told(self) -> tuple[str, dict[str, Any]]:
        """Return (name, value) of the report's attribute that tells the session's summary about the verdict."""
        raise NotImplementedError

    def values(self) -> Mapping[str, float]:
        """Return {name: value} of what was measured, for reports."""
        raise NotImplementedError

    def lines(self) -> Sequence[tuple[str, str]]:
        """Return (title, text) of what a person needs to know about the verdict: measured, permitted, basis."""
        raise NotImplementedError

    def headline(self) -> str:
        """Return the first line about a violation: the scheme, the verdict, the zone and the place."""
        v = self.verdict
        assert v is not None and self.measured is not None
        scheme = next(iter(self.measured.values()))[0].trial.scheme
        words = v.words if isinstance(v, Verdict) else v.reason
        return f"{scheme.id} {v.status} zone {self.zone.id} at {self.where}: {words}"

    def selection(self) -> list[str]:
        """Return the words of a command line that select this test."""
        markers = f'-m "{self.zone.algorithm} and {documents.marker(self.kind)}"'
        return [markers, f"--grid {shlex.quote(self.grid)}"]

    @property
    def trials(self) -> int:
        """How many trials its verdict rests on."""
        return self.verdict.n if self.verdict else 0

    def rerun_command(self) -> str:
        """Return the command that judges these trials again: alone, and so in a family of its own."""
        option = self.options
        parts = ["pytest", *self.selection(), f"--trials {self.trials or option.trials}"]
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

    @property
    def surprise(self) -> Surprise:
        """How the verdict compares with what was expected."""
        assert self.verdict is not None  # or its setup has failed
        again = None if self.again is None else self.again.verdict
        return expectation.compare(self.verdict, self.expected, again)

    def runtest(self) -> None:
        verdict, expected = self.verdict, self.expected
        assert verdict is not None  # or its setup has failed
        self.user_properties.extend(self.values().items())
        if expected and self.surprise is Surprise.GONE:
            option = self.options
            command = gone_command(option.stack, option.results, chosen(option).options("stack"))
            mend = f"remove it from expected.json: `{command}`"
            raise Violation(f"{verdict.status}, but {one_line(expected.words)}; {mend}\n{explain(self)}")
        if expected and expected.fits(verdict.status):
            pytest.xfail(one_line(expected.words))
        if verdict.status is Status.UNSUPPORTED:
            pytest.skip(f"unsupported: {verdict.reason}")
        if self.surprise is Surprise.UNCONFIRMED and self.again is not None:
            reason = f"not confirmed: {verdict.status} ({verdict.reason}); again with fresh seeds: {self.again.status}"
            (pytest.fail if self.strict else pytest.skip)(reason)
        if verdict.status is Status.NOT_JUDGED:
            pytest.skip(f"not judged: {verdict.reason}")
        if verdict.status is Status.INCONCLUSIVE and not self.strict:
            pytest.skip("; ".join([f"inconclusive: {verdict.reason}", *(text for _, text in self.lines()[:1])]))
        if not verdict.status.passes:
            raise Violation(explain(self))

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        if isinstance(excinfo.value, Violation):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, None, str]:
        return self.path, None, self.name


class CellItem(JudgedItem):
    """One cell of one zone."""

    @property
    def question(self) -> CellQuestion:
        assert isinstance(self.case.question, CellQuestion)
        return self.case.question

    @property
    def where(self) -> str:
        return self.question.place.id

    @property
    def grid(self) -> str:
        return self.where

    def told(self) -> tuple[str, dict[str, Any]]:
        assert isinstance(self.verdict, Verdict)
        unconfirmed = self.surprise is Surprise.UNCONFIRMED
        own = [m for made in (self.measured or {}).values() for m in made][: self.verdict.n]
        values = [value for m in own if (value := self.zone.value(m)) is not None]
        return summary.TOLD, summary.told(self.verdict, self.expected, self.zone, self.family, unconfirmed, values)

    def values(self) -> Mapping[str, float]:
        assert isinstance(self.verdict, Verdict)
        return {} if self.verdict.value is None else {self.zone.metric: self.verdict.value}

    def lines(self) -> Sequence[tuple[str, str]]:
        v = self.verdict
        assert isinstance(v, Verdict)
        if v.value is None or v.interval is None:
            return ()
        baseline = self.options.baseline
        digits = digits_to_tell((v.value, *v.interval), v.permitted.low, v.permitted.high, _DIGITS)
        interval = _interval(v.interval, digits=digits)
        return (
            ("measured", f"{self.zone.metric} {v.value:.{digits}f} (median of {v.n} trials; {interval})"),
            ("permitted", _permitted(v, "its earlier self" if baseline else "the reference itself", digits)),
            ("basis", f"{_basis(v.permitted.basis, baseline)}; {v.permitted.margin.words}"),
        )


class SplitItem(JudgedItem):
    """One check of the split part: a representative path, or a filter's shares of all paths of a grid."""

    @property
    def question(self) -> SplitQuestion:
        assert isinstance(self.case.question, SplitQuestion)
        return self.case.question

    @property
    def where(self) -> str:
        return self.question.check.name

    @property
    def grid(self) -> str:
        return getattr(self.question.check, "grid", None) or ",".join(s.cell.id for s in self.question.settings)

    def told(self) -> tuple[str, dict[str, Any]]:
        unconfirmed = self.surprise is Surprise.UNCONFIRMED
        return summary.SPLIT_TOLD, summary.split_told(self.question, self.verdict, self.family, unconfirmed)

    def values(self) -> Mapping[str, float]:
        assert isinstance(self.verdict, SplitVerdict)
        return {finding.what: finding.value[0] for finding in self.verdict.findings}

    def lines(self) -> Sequence[tuple[str, str]]:
        # These are all findings that do not pass. The basis of the first is enough to find the others in the zone's
        # file.
        assert isinstance(self.verdict, SplitVerdict)
        wrong = [f for f in self.verdict.findings if not f.status.passes]
        if not wrong:
            return ()
        values = [f"{f.what} {_range(f.value)} ({_interval(f.interval, f.confidence)})" for f in wrong]
        return (
            ("measured", "; ".join(values)),
            ("permitted", "; ".join(map(_permitted, wrong))),
            ("basis", f"{_basis(wrong[0].permitted.basis)}; {wrong[0].permitted.margin.words}"),
        )


def _interval(interval: tuple[float, float], confidence: float = CONFIDENCE, digits: int = _DIGITS) -> str:
    low, high = interval
    if high == math.inf:
        return "too few for an interval"
    if low == -math.inf:
        return f"at most {high:.{digits}f}, as some timed out"
    return f"{100 * confidence:.5g}% interval {low:.{digits}f}..{high:.{digits}f}"


def _permitted(found: Verdict | Finding, who: str = "the reference itself", digits: int = _DIGITS) -> str:
    p = found.p if isinstance(found, Verdict) else None
    chance = "" if p is None else f"; {who} would be so far outside in {p:.1g} of runs"
    return f"{found.permitted.low:.{digits}f}..{found.permitted.high:.{digits}f}{chance}"


def _range(value: tuple[float, float]) -> str:
    return f"{value[0]:.3f}" if value[0] == value[1] else f"{value[0]:.3f} to {value[1]:.3f}"


def _basis(basis: Basis, baseline: str | None = None) -> str:
    what = f"before, in {baseline}" if baseline else basis.reference
    return f"{what}: median {basis.median:.3f} of {basis.n} trials ({basis.min:.3f}..{basis.max:.3f})"


def explain(item: JudgedItem) -> str:
    """Return what a person needs to know about a violation: measured, permitted, basis, and how to see it again."""
    v, option = item.verdict, item.options
    assert v is not None and item.measured is not None
    lines = [item.headline()]
    told = [*item.lines()]
    if item.again is not None:
        first = min(m.trial.seed for found in item.again.measured.values() for m in found)
        said = item.again.verdict
        made = len(next(iter(item.again.measured.values())))
        told.append(("again", f"{said.status} with fresh seeds, from {first}: {said.reason}, {made} trials"))
    told.append(("rerun", item.rerun_command()))
    if v.status is Status.VIOLATES and not option.baseline:
        told.append(("why", f"conformance why {item.case.question.algorithm}{chosen(option).options()}"))
    lines += [f"  {title:10} {text}" for title, text in told]
    return "\n".join(lines)
