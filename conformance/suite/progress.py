"""Print how far a session is, every ten seconds; after an interrupt, print that nothing is lost."""

import time
from typing import Any

import pytest

from conformance.suite.cases import CLAUSE, kinds
from conformance.suite.items import SESSION, JudgedItem
from conformance.support.console import duration
from conformance.support.pace import Pace

_TICK_S = 10.0


class Ticker:
    """Counts tests as they end, including those of pytest-xdist's workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._last = config, 0.0
        self._done, self._total, self._interrupted = 0, 0, False
        self._pace = Pace()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._begin(sum(isinstance(item, JudgedItem) for item in session.items) or self._total)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._begin(len(ids))

    def _begin(self, total: int) -> None:
        self._total, self._last = total, time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self._done += any(f"::{kind}[" in nodeid for kind in (*kinds(), CLAUSE))
        self._pace.reached(self._done)
        now = time.monotonic()
        if not self._done or now - self._last < _TICK_S or self._done >= self._total:
            return
        self._last = now
        left_s = self._left_s()
        left = "" if left_s is None else f", about {duration(left_s)} left"
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"{self._done} of {self._total} tests{left}")

    def _left_s(self) -> float | None:
        """Return the seconds that are left, or None.

        If trials are made in this process, their number decides and not that of tests, which may share trials.
        """
        session = self._config.stash.get(SESSION, None)
        if session is not None and session.measures_ahead:
            return session.remaining_s()
        return self._pace.remaining_s(self._total - self._done)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        # Other causes end a session by this hook, too: `-x` under xdist, and pytest.exit().
        self._interrupted = excinfo.type is KeyboardInterrupt

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._interrupted and self._total:
            results = self._config.option.results
            terminalreporter.write_line(f"what was measured is kept in {results}: the same command resumes")
