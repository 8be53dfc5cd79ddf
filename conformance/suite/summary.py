"""Print the verdict of a whole session at its end, all cells of all zones taken together.

A test judges one cell alone. When all are known, session.settle() may find one in violation that its own test had to
call inconclusive. Such a cell is then repeated with fresh seeds, as any new violation is.
"""

import base64
import collections
import dataclasses
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

import pytest
from _pytest.junitxml import xml_key

from conformance.catalogue import clauses
from conformance.model.clauses.verdict import ClauseRule
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging import session as judging
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import Status, Verdict, false_alarms
from conformance.model.networks.place import Point
from conformance.reporting.text import first_verdict
from conformance.support.console import mistake, one_line

#: see Finding.name
FindingName = tuple[str, str, Point]
#: The report's attribute that holds a test's Finding: no user property, because those are in JUnit's XML, and text, so
#: that xdist's workers can send it.
FINDING = "conformance_finding"
NOT_CONFIRMED = "not confirmed"
_CLAUSES = ClauseRule.noun
_SUITE = "conformance/suite/heatmap.py"
#: the labels of verdicts that say something about the stack
_SAYING = {*(str(status) for status in Status if status.decided), NOT_CONFIRMED}


def pack(finding: Finding) -> str:
    """Return a Finding as text."""
    return base64.b64encode(pickle.dumps(finding)).decode()


def unpack(report: pytest.TestReport) -> Finding | None:
    """Return the Finding of a report; None if it has none."""
    packed = getattr(report, FINDING, None)
    finding: Finding | None = packed and pickle.loads(base64.b64decode(packed))
    return finding


def _label(finding: Finding) -> str:
    """Return the word under which the summary counts it."""
    return NOT_CONFIRMED if finding.unconfirmed else str(finding.verdict.status)


def _at(finding: Finding) -> str:
    """Return its place within its group."""
    verdict = finding.verdict
    return verdict.place.id if verdict.zone_id == finding.group else f"{verdict.zone_id} {verdict.place.id}"


class Zones:
    """Collects the verdicts of a session, including those of its workers.

    `repeat` repeats violations with fresh seeds, given {name: size of its family}, and returns the verdicts on these;
    it is None if nothing is to be repeated. `options` returns those that choose the stack. `is_smoke`: whether only the
    smoke tier was asked.
    """

    def __init__(
        self, repeat: Callable[[Mapping[FindingName, int]], Mapping[FindingName, Verdict]] | None = None,
        options: Callable[[], str] = str, is_smoke: bool = False,
    ) -> None:  # fmt: skip
        self._measure_again, self._options, self._is_smoke = repeat, options, is_smoke
        self._not_repeated: list[str] = []
        self._findings: dict[FindingName, Finding] = {}
        self._again: dict[FindingName, Verdict] = {}
        #: whether any test, of this suite or not, ran to its end
        self._ran = False
        #: whether the session ends without saying anything about the stack
        self._nothing = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._ran |= report.when == "call" and (report.passed or hasattr(report, "wasxfail"))
        if finding := unpack(report):
            self._findings[finding.name] = finding

    def settled(self) -> list[Finding]:
        """Return the findings now that all are known, with what came of repeats."""
        return [
            dataclasses.replace(finding, again=self._again.get(finding.name, finding.again))
            for finding in judging.settle(self._findings.values())
        ]

    def _changed(self) -> list[Finding]:
        """Return what is judged otherwise now that all verdicts are known."""
        return [f for f in self.settled() if f.verdict != self._findings[f.name].verdict]

    def _upgraded(self) -> list[Finding]:
        """Return what violates only now that all verdicts are known, unless its repeat takes that back."""
        return [f for f in self._changed() if f.verdict.status.against and not f.unconfirmed]

    def _new(self) -> list[Finding]:
        """Return what is _upgraded(), and not known to violate."""
        return [finding for finding in self._upgraded() if not finding.known]

    def lines(self) -> Iterator[str]:
        """Yield one line for each zone, with why cells say nothing about the stack, and one for the session.

        If no test says anything, yield all reasons once, at the end.
        """
        upgraded = self._upgraded()
        groups = grouped(((finding.group, finding.noun), finding) for finding in self.settled())
        # Clauses come before zones, also in the alphabet.
        for (group, noun), findings in sorted(groups.items(), key=lambda pair: (pair[0][1], pair[0][0])):
            here = [finding for finding in findings if finding in upgraded]
            count = collections.Counter(map(_label, findings))
            again = [_at(finding) for finding in findings if finding.unconfirmed]
            yield (
                f"{noun} {group}: {_words(count)}"
                + (f"; violates, all cells taken together: {', '.join(map(_at, here))}" if here else "")
                + (f"; not confirmed with fresh seeds: {', '.join(again)}" if again else "")
            )
            if not self._nothing:
                yield from _reasons((finding for finding in findings if finding not in here), most=1)
        for failures in judging.failures(self._findings.values()):
            yield f"{failures.algorithm} fails, all tests taken together: {one_line(failures.words)}"
        yield f"the session: {false_alarms(max(finding.family for finding in self._findings.values()))}"
        yield from self._not_repeated
        if self._nothing:
            yield f"nothing was judged, so the exit status is {int(pytest.ExitCode.NO_TESTS_COLLECTED)}:"
            yield from _reasons(self._findings.values())

    def first_verdicts(self) -> Iterator[tuple[str, Iterator[str]]]:
        """Yield each algorithm that a document's clauses judge first, and the lines about it."""
        algorithms = dict.fromkeys(finding.algorithm for finding in self._findings.values() if finding.noun == _CLAUSES)
        for algorithm in algorithms:
            if specification := clauses.first_for(algorithm):
                findings = [finding for finding in self.settled() if finding.algorithm == algorithm]
                lines = first_verdict.lines(specification, algorithm, findings, self._options(), self._is_smoke)
                yield algorithm, lines

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._findings:
            return
        terminalreporter.section("zones")
        for line in self.lines():
            terminalreporter.write_line(line)

    @pytest.hookimpl(trylast=True)  # when the guests of the session have ended
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        complete = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if complete and not (session.shouldfail or session.shouldstop):  # as after -x
            self._repeat()
        new = self._new()
        wrong = {
            f"{finding.verdict.zone_id} at {finding.verdict.place.id}": finding.verdict.reason
            for finding in self._changed()
            if finding in new or finding.verdict.status is Status.ERROR
        }
        wrong |= {failures.algorithm: failures.words for failures in judging.failures(self._findings.values())}
        _add_to_junit(session.config, wrong)
        if wrong and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        said = self._ran or any(_label(finding) in _SAYING for finding in self._findings.values())
        if self._findings and not said and session.exitstatus == pytest.ExitCode.OK:
            self._nothing, session.exitstatus = True, pytest.ExitCode.NO_TESTS_COLLECTED

    def _repeat(self) -> None:
        """Repeat violations that only all cells taken together show. One that cannot be repeated stays a violation."""
        new = {finding.name: finding for finding in self._new()}
        if not new or self._measure_again is None:
            return
        try:
            again = self._measure_again({name: finding.family for name, finding in new.items()})
        except UserError as error:
            self._not_repeated.append(f"not repeated with fresh seeds: {mistake(error)}")
            return
        except KeyboardInterrupt:
            self._not_repeated.append("interrupted while violations were being repeated with fresh seeds: they stand")
            return
        for name, verdict in again.items():
            if verdict.status is Status.ERROR:
                what = f"{new[name].noun} {name[1]} at {name[2].id}"
                self._not_repeated.append(one_line(f"{what}: not repeated with fresh seeds: {verdict.reason}"))
            else:
                self._again[name] = verdict


def _add_to_junit(config: pytest.Config, wrong: Mapping[str, str]) -> None:
    """Add what only all tests taken together show to JUnit's XML, if there is any: it is written before that is known.

    `wrong`: {place or algorithm: why}.
    """
    junit = config.stash.get(xml_key, None)
    if junit is None or not wrong:
        return
    for name, why in wrong.items():
        title = f"{name}, all tests taken together"
        report = pytest.TestReport(
            nodeid=f"{_SUITE}::{title}", location=(_SUITE, None, title), keywords={}, outcome="failed", longrepr=why,
            when="call",
        )  # fmt: skip
        junit.pytest_runtest_logreport(report)
    junit.pytest_sessionfinish()


class FirstVerdict:
    """Prints the first verdicts of a session at the very end: after pytest's list of failures, which may be long."""

    def __init__(self, zones: Zones) -> None:
        self._zones = zones

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own, which lists failures last
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        yield
        for algorithm, lines in self._zones.first_verdicts():
            terminalreporter.section(f"{algorithm}: what is not kept")
            for line in lines:
                terminalreporter.write_line(line)


def _reasons(findings: Iterable[Finding], most: int | None = None) -> Iterator[str]:
    """Yield a line for each reason why verdicts say nothing; of each kind, at most the `most` most common reasons."""
    by_label: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for finding in findings:
        if _label(finding) not in _SAYING and finding.verdict.reason:
            by_label[_label(finding)][finding.verdict.reason] += 1
    for label, reasons in by_label.items():
        shown = reasons.most_common(most)
        left = reasons.total() - sum(n for _, n in shown)
        for reason, n in shown:
            remedy = " (--max-trials allows more)" if reason.endswith("more trials needed") else ""
            others = f"; {left} for other reasons, which -rs lists" if left else ""
            yield one_line(f"  {n} {label}: {reason}{remedy}{others}")


def _words(count: Mapping[str, int]) -> str:
    named = [*map(str, Status), NOT_CONFIRMED]
    return ", ".join(f"{count[name]} {name}" for name in named if count[name])
