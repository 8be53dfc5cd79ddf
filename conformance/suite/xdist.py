"""pytest-xdist: only its workers collect tests, and what they raise is shown with a traceback, once for each. So what
can be refused is refused in the process that starts them.
"""

from typing import Any

import pytest

from conformance.catalogue import expectations
from conformance.engine import benches
from conformance.model.errors import UserError
from conformance.results.store import Store
from conformance.suite.cases import cases, check_mark_expression, grid_and_zones, matching
from conformance.suite.options import Options, chosen
from conformance.suite.session import kernel_notes, plan_of
from conformance.support.console import mistake


def check_before_workers_start(option: Options, markers: set[str], algorithms: set[str]) -> None:
    """Raise pytest.UsageError for a mistake in the options of a session that is ours, as its `-m` says."""
    if not algorithms & set((option.markexpr or "").replace("(", " ").replace(")", " ").split()):
        return
    try:
        if not option.baseline:
            check_mark_expression(option.markexpr or "", markers)
        grid_and_zones(option)
        plan_of((), option)
        bench = benches.find(chosen(option))
        Store(option.results)
        if not option.baseline:
            expectations.of(bench)
    except UserError as error:
        raise pytest.UsageError(mistake(error)) from None


class Collected:
    """Does, once, what sessions elsewhere leave out: refuse tests that could only pass, and say what there is to say
    of kernels.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._option, self._plugins, self._asked = config.option, config.pluginmanager, False

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        if self._asked:  # all workers collect the same
            return
        self._asked = True
        names = {node_id.rpartition("::")[2] for node_id in ids}
        option = self._option
        try:
            plan = plan_of((c.question for c in cases(option) if c.name in names), option, matching(option))
            plan.refuse_blind()
            notes = []
            if plan.questions:
                notes = kernel_notes(plan, option, benches.find(chosen(option)), Store(option.results))
        except UserError as error:
            pytest.exit(mistake(error), returncode=pytest.ExitCode.USAGE_ERROR)
        if reporter := self._plugins.get_plugin("terminalreporter"):
            for line in notes:
                reporter.ensure_newline()
                reporter.write_line(line)
