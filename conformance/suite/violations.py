"""At the end of a session, of tests that failed because they violate: what looks wrong, and `--keep-traces`."""

import pytest

from conformance.commands import trace
from conformance.model.setting import Cell
from conformance.model.verdict import Status
from conformance.suite import summary
from conformance.suite.options import chosen
from conformance.support.console import Console


class Violations:
    """Collects them. `why_too`: trace what violates, to say what looks wrong."""

    def __init__(self, config: pytest.Config, why_too: bool) -> None:
        self._option, self._why_too = config.option, why_too
        #: (algorithm, profile, cell), in the order they were found
        self._cells: dict[tuple[str, str, Cell], None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = getattr(report, summary.TOLD, None)
        if told and report.failed:
            one = summary.Told(**told)
            if one.status == Status.VIOLATES and not one.unconfirmed:
                self._cells[one.algorithm, one.profile, Cell.parse(one.place)] = None

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._cells:
            return
        try:
            self._look(terminalreporter)
        except KeyboardInterrupt:
            terminalreporter.write_line(
                "interrupted while looking for what looks wrong: the verdicts above are complete;"
                f" `conformance why ALGORITHM{chosen(self._option).options()}` looks again"
            )

    def _look(self, terminalreporter: pytest.TerminalReporter) -> None:
        choice, console = chosen(self._option), Console()
        if self._why_too:
            from conformance.commands import why  # late: it draws, and what draws takes seconds to import

            terminalreporter.section("what looks wrong")
            why.of_violations([algorithm for algorithm, _, _ in self._cells], choice, console)
        if self._option.keep_traces:
            terminalreporter.section("traces")
            trace.keep_some(self._cells, choice, self._option.keep_traces, console)
