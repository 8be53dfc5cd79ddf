"""Refuse a user's mistakes under pytest-xdist in the process that starts its workers.

Only the workers collect tests, and exceptions in them are shown with a traceback, once for each worker. So a mistake is
refused in the process that started them, after they have collected and before they run anything.
"""

from typing import Any

import pytest

from conformance.catalogue import expectations
from conformance.engine import benches
from conformance.model.errors import UserError
from conformance.results.store import Store
from conformance.suite.cases import cases, check_mark_expression, matching
from conformance.suite.options import chosen
from conformance.suite.session import kernel_notes, plan_of
from conformance.support.console import mistake


class Collected:
    """Does once what workers leave out: refuse a user's mistake and tests that could only pass, and print notes about
    kernels. `markers`: all that pytest knows.
    """

    def __init__(self, config: pytest.Config, markers: set[str]) -> None:
        self._option, self._plugins, self._asked = config.option, config.pluginmanager, False
        self._markers = markers

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        if self._asked:  # all workers collect the same
            return
        self._asked = True
        names = {node_id.rpartition("::")[2] for node_id in ids}
        option = self._option
        try:
            if not names and not option.baseline:
                check_mark_expression(option.markexpr or "", self._markers)
            plan = plan_of((c.question for c in cases(option) if c.name in names), option, matching(option))
            plan.refuse_blind()
            notes = []
            if plan.questions:
                bench = benches.find(chosen(option))
                notes = kernel_notes(plan, option, bench, Store(option.results))
                if not option.baseline:
                    expectations.of(bench)
        except UserError as error:
            raise pytest.UsageError(mistake(error)) from None
        if reporter := self._plugins.get_plugin("terminalreporter"):
            for line in notes:
                reporter.ensure_newline()
                reporter.write_line(line)
