"""pytest plugin: collect one test for each cell of each zone, and one for each check of its split part.

The plugin is thin: the engine measures and the model judges. options.py, cases.py, session.py, items.py, summary.py and
late.py have a stage each.

Measuring happens in a test's setup, so that a fault of emulator, guest or adapter is an ERROR. The verdict is reported
in its call, so that only a violation is a FAILURE. Cells are measured in the background, ahead of the tests that wait
for them; under pytest-xdist, each worker measures its own.
"""

import functools
import os
import pathlib
import re
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from conformance.catalogue import clauses, documents
from conformance.lab import building, cores, sources
from conformance.model.errors import UserError
from conformance.suite import late, options, summary, xdist
from conformance.suite.cases import cases, check_mark_expression, matching
from conformance.suite.faults import Faults
from conformance.suite.items import SESSION, JudgedItem, LabFault
from conformance.suite.progress import Ticker
from conformance.suite.session import PytestSession
from conformance.suite.violations import Violations
from conformance.support import files, paths
from conformance.support.console import mistake

_SUITE = paths.PACKAGE / "suite" / "heatmap.py"
_MARKERS = {
    "heatmap": "metric: utilization over bandwidth, delay and loss",
    "loss": "metric: share of the sender's bytes that never arrive, over the same cells",
    "split": "metric: the gain from a connection-splitting proxy, predicted from cells and measured",
    "startup": "metric: round trips that a short transfer takes",
    "competing": "metric: utilization beside a flow of CUBIC",
    "sawtooth": "metric: utilization, mean queue and loss events of a minute through a short queue",
    "identify": "metric: utilization and mean queue of transfers in which algorithms differ most",
    "pacing": "metric: packets that leave the sender back to back",
    "threshold": "metric: utilization below, near and above the loss that BBRv2 and BBRv3 tolerate",
    "smoke": "tier: the few cells that tell the algorithms apart",
    "full": "tier: every cell of the zone",
}
#: printed if a marker of ours finds no test, because neither a checkout's settings nor the arguments name the suite
_ELSEWHERE = "no tests found: outside a checkout of the suite, name its tests: pytest --pyargs conformance.suite -m ..."
_MISTAKE = pytest.StashKey[UserError]()


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    """Refuse to go on without a folder for temporary files, in which pytest itself is about to capture output."""
    try:
        files.temp_folder()
    except UserError as error:
        raise pytest.UsageError(mistake(error)) from None
    cores.Waiting.say = building.Unasked.say = functools.partial(_print, _uncaptured())
    return (yield)


@functools.cache
def _uncaptured() -> int:
    """Return a file descriptor for stderr that pytest, which has not begun to capture output yet, leaves alone."""
    return os.dup(2)


def _print(descriptor: int, line: str) -> None:
    os.write(descriptor, f"\n{line}\n".encode())


def pytest_configure(config: pytest.Config) -> None:
    try:
        options.settle_first_seed(config)
    except UserError as error:
        raise pytest.UsageError(mistake(error)) from None
    if getattr(config.option, "allure_report_dir", None):
        from conformance.suite import allure_report

        config.pluginmanager.register(allure_report.Describer(config), "conformance-allure")
    of_scenarios = {name: f"flows that share a network: {what}" for name, what in documents.scenario_markers().items()}
    for name, what in (_MARKERS | of_scenarios | clauses.markers()).items():
        config.addinivalue_line("markers", f"{name}: {what}")
    for name in sorted(documents.algorithms()):
        config.addinivalue_line("markers", f"{name}: algorithm: cells of zone {name}")


def _known_markers(config: pytest.Config) -> set[str]:
    return {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | pytest.ExitCode | None:
    """Start pytest again with `--stack=PATH` instead of `--stack PATH`.

    Before pytest knows our options, it takes such a path for that of a test. It then looks for its settings there and
    not here, and would keep its cache there, which changes the stack.
    """
    given = list(config.invocation_params.args)
    joined = options.joined(given)
    return None if joined == given else pytest.main(joined, config.invocation_params.plugins)


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> pytest.Collector | None:
    return _SuiteFile.from_parent(parent, path=file_path) if file_path == _SUITE else None


class _SuiteFile(pytest.File):
    """The collector for all zones; its items are the cases of this session's stack."""

    def collect(self) -> Iterator[pytest.Item]:
        # pytest shows exceptions of a collector with a traceback, so a user's mistake waits for
        # pytest_collection_finish.
        option = self.config.option
        known = _known_markers(self.config)
        try:
            if option.baseline is None:
                check_mark_expression(option.markexpr or "", known)
            for case in cases(option):
                for marker in {*case.markers} - known:
                    self.config.addinivalue_line("markers", f"{marker}: algorithm: cells of the baseline")
                    known.add(marker)
                yield JudgedItem.from_parent(self, name=case.name, case=case)
        except UserError as error:
            self.config.stash[_MISTAKE] = error


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell the session's summary about the verdict, and put a lab fault into words.

    pytest asks an item for its words only in the call phase, but a lab fault happens in setup.
    """
    report = yield
    if isinstance(item, JudgedItem) and item.verdict:
        setattr(report, summary.FINDING, summary.pack(item.finding))
    if isinstance(item, JudgedItem) and call.excinfo is not None and isinstance(call.excinfo.value, LabFault):
        report.longrepr = f"error: {call.excinfo.value}\n  rerun      {item.rerun_command()}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    questions = [item.case.question for item in session.items if isinstance(item, JudgedItem)]
    try:
        if _MISTAKE in config.stash:
            raise config.stash[_MISTAKE]
        if questions and not config.option.collectonly:
            planned = matching(config.option)
            config.stash[SESSION] = PytestSession(config.option, questions, planned, hasattr(config, "workerinput"))
    except UserError as error:
        # The process that started the workers of pytest-xdist refuses the same mistake (xdist.py).
        if not hasattr(config, "workerinput"):
            raise pytest.UsageError(mistake(error)) from None


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Return the lines to print before the first test, also under -q, which has no header."""
    pytest_session = config.stash.get(SESSION, None)
    if pytest_session:
        return pytest_session.notes
    if items or _has_suite(config):
        return []
    return [_ELSEWHERE] if documents.algorithms().intersection(re.findall(r"\w+", config.option.markexpr or "")) else []


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    config.pluginmanager.register(Faults(), "conformance-faults")
    if hasattr(config, "workerinput"):
        return
    option = config.option
    zones = summary.Zones(
        functools.partial(late.repeated, option) if option.confirm else None,
        lambda: options.chosen(option).options(),  # a mistake in them is reported at the collection
        is_smoke=bool(re.search(r"(?<!not )\bsmoke\b", option.markexpr or "")),
    )
    plugins: dict[str, Any] = {
        "conformance-ticker": Ticker(config),
        "conformance-collected": xdist.Collected(config, _known_markers(config)),
        "conformance-zones": zones,
        "conformance-first-verdict": summary.FirstVerdict(zones),
    }
    # With a baseline, the stack is compared with its earlier self, but `why` compares with the reference.
    why_too = not (option.no_why or option.baseline)
    if option.keep_traces or not option.baseline:
        plugins["conformance-violations"] = Violations(config, why_too, blame_too=why_too and not option.no_blame)
    for name, plugin in plugins.items():
        config.pluginmanager.register(plugin, name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    pytest_session = session.config.stash.get(SESSION, None)
    if pytest_session is not None:
        pytest_session.close()


def _has_suite(config: pytest.Config) -> bool:
    """Return whether arguments, or a checkout's settings, tell pytest where our tests are."""
    return any("conformance" in str(argument) for argument in config.args)


def pytest_report_header(config: pytest.Config) -> str | None:
    if _has_suite(config):
        kernel = config.option.kernel or "as the algorithm requires"
        trees = config.option.source or filter(None, [os.environ.get(sources.VARIABLE)])
        with_trees = "".join(f" with {text}" for text in trees)  # not checked yet: a mistake in it is reported later
        return f"conformance: stack {config.option.stack}{with_trees}, kernel {kernel}"
    return None
