"""pytest plugin: one test for each cell of each zone, one for each check of its split part. Thin: the engine measures,
the model judges, conformance/suite/ has the tests and their measuring.

Measuring happens in a test's setup, so that a fault of emulator, guest or adapter is an ERROR; judging
happens in its call, so that only a violation is a FAILURE. Cells are measured in the background, ahead of
the tests that wait for them; under pytest-xdist each worker measures its own.
"""

import collections
import pathlib
import re
import time

import pytest

from conformance.catalogue import baseline, documents, expectations
from conformance.commands import trace
from conformance.engine import benches
from conformance.lab import manifest
from conformance.model import grid as grids
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.verdict import Status, refuse_blind
from conformance.results import store
from conformance.suite import session as campaign
from conformance.suite import summary
from conformance.suite.items import CAMPAIGN, CellItem, JudgedItem, LabFault, SplitItem, chosen, rerun_command
from conformance.support import paths
from conformance.support.console import Console, duration, one_line

#: the kind of tests, and of zone files, that are about paths and not about cells
_SPLIT = "split"
_SUITE = paths.PACKAGE / "suite" / "heatmap.py"
_TICK_S = 10.0


def pytest_addoption(parser):
    group = parser.getgroup("conformance", "congestion-control conformance")
    group.addoption("--stack", default="linux-tcp", help="adapter's name, or path of an adapter.json")
    group.addoption("--client", default="common", help="who fetches: common (default), own, or an adapter's name")
    group.addoption("--interop-rootfs", default=None, help="in the place of --stack: an exported interop runner image")
    group.addoption("--trials", type=int, default=5, help="trials of each cell, to begin with (default: 5)")
    group.addoption("--max-trials", type=int, default=None, help="of a cell that is unclear (default: 20, or --trials)")
    group.addoption(
        "--grid",
        default=None,
        help="full, 10mbps ... (what zones have at a bandwidth), or cells such as 10mbps-20ms-1pct, with commas"
        " (default: full; for a zone's split part 10mbps)",
    )
    group.addoption("--lab", default="virtual", help="virtual (default) or host")
    group.addoption("--kernel", default=None, help="name of the guest kernel (default: the one that has the algorithm)")
    group.addoption("--results", default=store.DEFAULT_RESULTS, help=f"results file (default: {store.DEFAULT_RESULTS})")
    group.addoption("--baseline", default=None, help="results file to gate on: fail on change from it, not on the zone")
    group.addoption("--workers", type=int, default=None, help="guests at a time (default: one for each core)")
    group.addoption("--keep-traces", default=None, metavar="DIR", help="packets and qlog of a few cells that violate")
    group.addoption("--no-why", action="store_true", help="do not trace what violates to say what looks wrong")
    group.addoption("--fail-inconclusive", action="store_true", help="an inconclusive cell fails (--strict, too)")


def pytest_configure(config):
    if getattr(config.option, "allure_report_dir", None):
        from conformance.suite import allure_report

        config.pluginmanager.register(allure_report.Describer(config), "conformance-allure")
    config.stash[_MARKERS] = {
        *map(documents.marker, (*documents.KINDS, *documents.FURTHER_KINDS)),
        _SPLIT,
        "smoke",
        "full",
    }
    config.addinivalue_line("markers", "heatmap: metric: utilization over bandwidth, delay and loss")
    config.addinivalue_line(
        "markers", "loss: metric: share of the sender's bytes that never arrive, over the same cells"
    )
    config.addinivalue_line(
        "markers", "split: metric: what a connection-splitting proxy would bring, predicted from cells and measured"
    )
    config.addinivalue_line("markers", "startup: metric: round trips that a short transfer takes")
    config.addinivalue_line("markers", "competing: metric: utilization beside a flow of CUBIC")
    config.addinivalue_line("markers", "sawtooth: metric: utilization and mean queue of a minute through a short queue")
    config.addinivalue_line(
        "markers", "identify: metric: utilization and mean queue of transfers in which algorithms differ most"
    )
    config.addinivalue_line("markers", "smoke: tier: the few cells that tell the algorithms apart")
    config.addinivalue_line("markers", "full: tier: every cell of the zone")
    for path in documents.zone_files():
        config.stash[_MARKERS].add(path.parent.name)
        config.addinivalue_line("markers", f"{path.parent.name}: algorithm: cells of zone {path.parent.name}")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Begin again with `--stack=PATH` in the place of `--stack PATH`.

    Before it knows our options, pytest takes such a path for that of a test: it looks for its settings there and not
    here, and would keep its cache there, which changes the stack.
    """
    given = list(config.invocation_params.args)
    joined = _joined(given)
    return None if joined == given else pytest.main(joined, config.invocation_params.plugins)


def _joined(arguments):
    """The same arguments, with an equals sign where what may be a path, now or later, follows an option of ours."""
    joined = []
    for word in map(str, arguments):
        if joined and joined[-1] in _MAY_BE_PATHS and not word.startswith("-"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


_MAY_BE_PATHS = ("--stack", "--client", "--interop-rootfs", "--results", "--baseline", "--keep-traces")
_MARKERS = pytest.StashKey[set]()
_MISTAKE = pytest.StashKey[UserError]()


def pytest_collect_file(file_path, parent):
    if file_path == _SUITE:
        return _SuiteFile.from_parent(parent, path=file_path)
    return None


class _SuiteFile(pytest.File):
    """Stands for all zones; its items are their cells."""

    def collect(self):
        # pytest shows what a collector raises with a traceback; a user's mistake waits for pytest_collection_finish.
        option = self.config.option
        try:
            if option.baseline == "":
                raise UserError("--baseline is empty", "name a results file, or leave it out")
            if not option.baseline:
                _check_mark_expression(self.config)
            profile, stack = _profile(option), _stack_name(option)
            grid, zones = _grid_and_zones(option, profile)
            by_algorithm = {}
            for kind, zone in zones:
                by_algorithm.setdefault(zone.algorithm, []).append((kind, zone))
            for algorithm in by_algorithm.keys() - self.config.stash[_MARKERS]:
                self.config.addinivalue_line("markers", f"{algorithm}: algorithm: cells of the baseline")
            splits = {}
            if not option.baseline:
                splits = {
                    zone.algorithm: zone for zone in map(documents.split_zone, documents.zone_files(_SPLIT, profile))
                }
            for algorithm in sorted(by_algorithm.keys() | splits.keys()):
                yield from self._items(by_algorithm.get(algorithm, []), grid, stack)
                if algorithm in splits:
                    yield from self._split_items(splits[algorithm], option, stack)
        except UserError as error:
            self.config.stash[_MISTAKE] = error

    def _items(self, zones, grid, stack):
        """Cell by cell, because what is judged by several zones is measured once."""
        for cell in dict.fromkeys(cell for _, zone in zones for cell in grids.within(grid, zone.cells)):
            for kind, zone in zones:
                if cell in zone.intervals:
                    name = f"{kind}[{zone.algorithm}-{cell.id}-{stack}]"
                    yield CellItem.from_parent(self, name=name, kind=kind, zone=zone, cell=cell)

    def _split_items(self, zone, option, stack):
        """The paths there are in a grid. Cells that heatmaps have measured are not measured again."""
        for check in zone.checks_within(grids.cells(zone.default_grid if option.grid is None else option.grid)):
            name = f"{_SPLIT}[{zone.algorithm}-{check.id}-{stack}]"
            yield SplitItem.from_parent(self, name=name, kind=_SPLIT, zone=zone, check=check, unsplit=_unsplit(option))


def _zones(option, profile):
    """(kind, Zone) of all that ship for a profile, or of what a stack did in the baseline's results."""
    if option.baseline:
        return baseline.read(option.baseline, _stack_name(option), profile)
    return documents.judging(profile)


def _grid_and_zones(option, profile):
    """The grid that is asked for, and (kind, Zone) of what it is a part of. Raises UserError where it is of none."""
    grid, zones = grids.FULL if option.grid is None else option.grid, _zones(option, profile)
    grids.check(grid, [zone for _, zone in zones])
    return grid, zones


def _profile(option):
    """The profile that the stack is judged under; an interop image's is that of its adapter."""
    return documents.PROFILES[_manifest(option).transport]


def _manifest(option):
    return manifest.read("interop" if option.interop_rootfs else option.stack)


def _stack_name(option):
    """What results, and so the ids of tests, call the stack."""
    image = option.interop_rootfs
    return _manifest(option).named(image and pathlib.Path(image).expanduser().resolve())


def _unsplit(option):
    """Why this stack's connections cannot be split here, or None."""
    if _profile(option) != documents.PROFILES["tcp"]:
        return "no proxy can split what is not TCP"
    return None if option.lab == "virtual" else "split paths are measured in the virtual lab only"


def _check_mark_expression(config):
    """`pytest -m cubik` must not pass by running nothing."""
    known = config.stash[_MARKERS]
    registered = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    for word in re.findall(r"[A-Za-z_][\w.]*", config.option.markexpr or ""):
        if word not in known | registered | {"and", "or", "not", "True", "False"}:
            algorithms = ", ".join(sorted(p.parent.name for p in documents.zone_files()))
            raise UserError(f"-m {word}: no such algorithm, metric or tier; there are zones for {algorithms}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Tell the session's summary; and pytest asks an item for its words only in the call phase, but a lab fault
    happens in setup.
    """
    report = yield
    if isinstance(item, JudgedItem) and item.verdict:
        setattr(report, *item.told())
    if isinstance(item, JudgedItem) and call.excinfo is not None and isinstance(call.excinfo.value, LabFault):
        report.longrepr = f"error: {call.excinfo.value}\n  rerun      {rerun_command(item)}"
    return report


def pytest_collection_finish(session):
    config = session.config
    items = [item for item in session.items if isinstance(item, JudgedItem)]
    try:
        if _MISTAKE in config.stash:
            raise config.stash[_MISTAKE]
        if items and not config.option.collectonly:
            config.stash[CAMPAIGN] = campaign.Campaign(config, items)
    except UserError as error:
        raise pytest.UsageError(one_line(str(error))) from None


def pytest_sessionfinish(session):
    made = session.config.stash.get(CAMPAIGN, None)
    if made is not None:
        made.close()


class _Ticker:
    """Every ten seconds a line: what is done, how long the rest will take. After an interrupt: that nothing is lost."""

    def __init__(self, config):
        self._config, self._began, self._last = config, None, 0.0
        self._done, self._total, self._interrupted = 0, 0, False

    def pytest_collection_finish(self, session):
        self._total = sum(isinstance(item, JudgedItem) for item in session.items) or self._total
        self._began = self._last = time.monotonic()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        self._total = len(ids)
        self._began = self._last = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid, location):
        self._done += any(f"::{kind}[" in nodeid for kind in (*documents.KINDS, *documents.FURTHER_KINDS, _SPLIT))
        now = time.monotonic()
        if self._began is None or not self._done or now - self._last < _TICK_S or self._done >= self._total:
            return
        self._last = now
        left = (now - self._began) / self._done * (self._total - self._done)
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"{self._done} of {self._total} tests, about {duration(left)} left")

    def pytest_keyboard_interrupt(self, excinfo):
        # Others end a session by this hook, too: `-x` under xdist, and what pytest.exit() refuses.
        self._interrupted = excinfo.type is KeyboardInterrupt

    def pytest_terminal_summary(self, terminalreporter):
        if self._interrupted and self._total:
            results = self._config.option.results
            terminalreporter.write_line(f"what was measured is kept in {results}: the same command resumes")


def _check_before_workers_start(config):
    """Under xdist only workers collect, and what they raise is shown with a traceback, once for each."""
    words = set(re.findall(r"\w+", config.option.markexpr or ""))
    if not words & {path.parent.name for path in documents.zone_files()}:
        return
    try:
        _check_mark_expression(config)
        _grid_and_zones(config.option, _profile(config.option))
        campaign.seeds(config.option)
        bench = benches.find(chosen(config.option))
        store.Store(config.option.results)
        if not config.option.baseline:
            expectations.of(bench)
    except UserError as error:
        raise pytest.UsageError(one_line(str(error))) from None


class _Blind:
    """Under xdist, where only workers have the items: refuse once what the Campaign refuses elsewhere."""

    def __init__(self, config):
        self._option, self._asked = config.option, False

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        if self._asked:  # all workers collect the same
            return
        self._asked = True
        most = campaign.seeds(self._option)[1][-1]
        count = collections.Counter(re.findall(r"::([a-z-]+)\[([a-z0-9]+)-", "\n".join(ids)))
        for kind, zone in _zones(self._option, _profile(self._option)):
            try:
                if n := count[kind, zone.algorithm]:
                    refuse_blind(zone, n, most)
            except UserError as error:
                pytest.exit(one_line(str(error)), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    config = session.config
    if hasattr(config, "workerinput"):
        return
    if getattr(config.option, "numprocesses", None) and "::" not in "".join(config.args):
        _check_before_workers_start(config)
    config.pluginmanager.register(_Ticker(config), "conformance-ticker")
    config.pluginmanager.register(_Blind(config), "conformance-blind")
    config.pluginmanager.register(summary.Zones(), "conformance-zones")
    # What did the same before is compared with what it did, not with the reference.
    why_too = config.option.lab == "virtual" and not (config.option.no_why or config.option.baseline)
    if config.option.keep_traces or why_too:
        config.pluginmanager.register(_Violations(config, why_too), "conformance-violations")


class _Violations:
    """When all is over, of tests that failed because they violate: what looks wrong, and `--keep-traces`."""

    def __init__(self, config, why_too):
        self._option, self._why_too, self._cells = config.option, why_too, {}

    def pytest_runtest_logreport(self, report):
        zone_id, cell_id, status, *_ = getattr(report, summary.TOLD, None) or (None,) * 3
        if report.failed and status == Status.VIOLATES:
            self._cells[zone_id, Cell.parse(cell_id)] = None

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter):
        if not self._cells:
            return
        option, choice = self._option, chosen(self._option)
        # A baseline's zones do not ship; its profile is the stack's.
        profiles = {zone_id: documents.profile_of(zone_id) or _profile(option) for zone_id, _ in self._cells}
        cells = dict.fromkeys((zone_id.split("/")[0], profiles[zone_id], cell) for zone_id, cell in self._cells)
        console = Console()
        if self._why_too:
            from conformance.commands import why  # late: it draws, and what draws takes seconds to import

            terminalreporter.section("what looks wrong")
            why.of_violations([algorithm for algorithm, _, _ in cells], choice, console)
        if option.keep_traces:
            terminalreporter.section("traces")
            trace.keep_some(cells, choice, option.keep_traces, console)


def pytest_report_header(config):
    if any("conformance" in str(a) for a in config.args):
        kernel = config.option.kernel or "as the algorithm asks"
        return f"conformance: stack {config.option.stack}, lab {config.option.lab}, kernel {kernel}"
    return None
