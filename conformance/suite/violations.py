"""Explain violations at the end of a session: what they are due to, what looks wrong, which clauses the stack fails.

With `--keep-traces`, traces of some are kept, too.
"""

from collections.abc import Collection

import pytest
from _pytest.junitxml import xml_key

from conformance.catalogue import clauses, documents
from conformance.commands import blame, clause as clause_command, trace
from conformance.engine import benches
from conformance.model.clauses.verdict import ClauseRule
from conformance.model.errors import UserError
from conformance.model.judging.verdict import Status
from conformance.model.networks.place import Point
from conformance.reporting.text import clause
from conformance.reporting.text.progress import ConsoleNotes
from conformance.reporting.text.trace import show as show_trace
from conformance.suite import summary
from conformance.suite.options import chosen
from conformance.support.console import Console


class Violations:
    """Collects violations. `why_too`: trace them to say what looks wrong; `blame_too`: say what they are due to."""

    def __init__(self, config: pytest.Config, why_too: bool, blame_too: bool) -> None:
        self._config, self._option, self._why_too, self._blame_too = config, config.option, why_too, blame_too
        #: (algorithm, profile or scenario, place), in the order they were found
        self._places: dict[tuple[str, str, Point], None] = {}
        self._violations: list[blame.Violation] = []
        self._blamed: blame.Found = {}
        #: algorithms whose violations of clauses say what is wrong, so that no trace is made to find out
        self._explained: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        finding = summary.unpack(report)
        if finding and report.failed and finding.noun == ClauseRule.noun and clauses.first_for(finding.algorithm):
            self._explained.add(finding.algorithm)
        # What is no zone's, such as a clause, has no values.
        if (
            finding
            and report.failed
            and finding.at
            and finding.verdict.status is Status.VIOLATES
            and not finding.unconfirmed
        ):
            place = finding.at
            self._places[finding.algorithm, finding.profile, place] = None
            if self._why_too:
                zone = documents.zone(documents.zone_path(finding.verdict.zone_id))
                self._violations.append(blame.Violation(zone=zone, place=place, values=finding.values))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Find what violations are due to, before JUnit's XML is written."""
        if not (self._violations and self._blame_too) or exitstatus == pytest.ExitCode.INTERRUPTED:
            return
        self._violations = [
            violation for violation in self._violations if violation.zone.algorithm not in self._explained
        ]
        self._blamed = blame.of_violations(
            self._violations, chosen(self._option), ConsoleNotes(Console()), workers=self._option.workers
        )
        if junit := self._config.stash.get(xml_key, None):
            for (zone_id, place), cause in self._blamed.items():
                junit.add_global_property(f"blame of {zone_id} at {place.id}", cause.sentence)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._blamed:
            terminalreporter.section("what violations are due to")
            for (zone_id, place), cause in self._blamed.items():
                terminalreporter.write_line(f"{zone_id} at {place.id}: {cause.sentence}")
            left = len(self._violations) - len(self._blamed)
            if left:
                terminalreporter.write_line(f"and {left} more, which were not examined")
        if not self._places:
            return
        try:
            explained = self._look(terminalreporter)
            self._point_to_clauses(terminalreporter, explained)
        except KeyboardInterrupt:
            terminalreporter.write_line(
                "interrupted while looking for what looks wrong: the verdicts above are complete;"
                f" `conformance why ALGORITHM{chosen(self._option).options()}` looks again"
            )

    def _point_to_clauses(self, terminalreporter: pytest.TerminalReporter, explained: Collection[str]) -> None:
        """Name the clauses that fail for each algorithm that violates; reports on the `explained` ones did so."""
        known = self._explained.union(explained)
        left = [a for a in dict.fromkeys(algorithm for algorithm, _, _ in self._places) if a not in known]
        if not left:
            return
        terminalreporter.section("clauses")
        choice = chosen(self._option)
        for algorithm in left:
            try:
                scheme = benches.find(choice).scheme(algorithm)
                terminalreporter.write_line(clause.failing(clause_command.failing(scheme, choice)))
            except UserError as why_not:
                terminalreporter.write_line(f"{algorithm}: which clauses fail is not known: {why_not}")

    def _look(self, terminalreporter: pytest.TerminalReporter) -> Collection[str]:
        """Say what looks wrong, and keep traces, as far as asked; return the algorithms that were looked at."""
        explained: Collection[str] = ()
        choice, console = chosen(self._option), Console()
        notes = ConsoleNotes(console)
        if self._why_too and self._explained.issuperset(algorithm for algorithm, _, _ in self._places):
            explained = self._explained
        elif self._why_too:
            from conformance.commands import why  # late: the code that draws takes seconds to import
            from conformance.reporting.text.why import show as show_why

            terminalreporter.section("what looks wrong")
            algorithms = [algorithm for algorithm, _, _ in self._places if algorithm not in self._explained]
            explained = why.of_violations(
                algorithms, choice, notes, lambda report: show_why(report, console), self._violations
            )
        if self._option.keep_traces:
            terminalreporter.section("traces")
            folder = self._option.keep_traces
            seed, flow = self._option.first_seed, self._option.flow
            trace.keep_some(self._places, choice, folder, seed, notes, lambda kept: show_trace(kept, console), flow)
        return explained
