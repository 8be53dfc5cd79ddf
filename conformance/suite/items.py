"""What `pytest` runs: a cell of a zone, or a check of its split part, for the stack and kernel of this session."""

import dataclasses
import math
import shlex

import pytest

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.model import expectation
from conformance.model.errors import UserError
from conformance.model.expectation import Surprise, gone_command
from conformance.model.split import split_zone
from conformance.model.verdict import CONFIDENCE, Status, judge
from conformance.results import store
from conformance.suite import summary
from conformance.support.console import one_line

#: measures for the items: has `numbers` of trials, rising, and measure(algorithm, settings, number of trials at least)
#: -> {setting: measurements}
CAMPAIGN = pytest.StashKey()


def chosen(option):
    """The Choice that pytest's options make."""
    return benches.Choice(**{field.name: getattr(option, field.name) for field in dataclasses.fields(benches.Choice)})


class LabFault(Exception):
    """Nothing is known about the stack: emulator, guest or adapter failed."""


class Violation(AssertionError):
    """The measured value is outside the zone."""


class JudgedItem(pytest.Item):
    """Measures in its setup, judges in its call. `settings` is what it needs measured, of which `cells` are cells."""

    def __init__(self, *, kind, zone, cells, markers, **kwargs):
        super().__init__(**kwargs)
        self.kind, self.zone, self.cells = kind, zone, cells
        self.settings = [documents.profile(zone.profile, cell) for cell in cells]
        #: {setting: measurements}, and the verdict on them
        self.measured = self.verdict = None
        #: how many settings the tests of its zone rest on in this session
        self.family = 1
        #: what the stack is known to do here, or None
        self.expected = None
        for marker in (zone.algorithm, documents.marker(kind), *markers):
            self.add_marker(marker)

    def judge(self, measured):
        """The verdict on {setting: measurements}."""
        raise NotImplementedError

    def told(self):
        """(name, value) of what the session's summary is told of the verdict, as an attribute of reports."""
        raise NotImplementedError

    def values(self):
        """{name: value} of what was measured, as reports keep it."""
        raise NotImplementedError

    def lines(self):
        """(title, text) of what a person needs to know of the verdict: measured, permitted, basis."""
        raise NotImplementedError

    def setup(self):
        campaign = self.config.stash[CAMPAIGN]
        try:
            for number in campaign.numbers:
                measured = campaign.measure(self.zone.algorithm, self.settings, number)
                if measured == self.measured:
                    continue  # of cells with tests of their own there are no more trials
                self.measured, self.verdict = measured, self.judge(measured)
                if self.verdict.status is not Status.INCONCLUSIVE:
                    break
        except UserError as error:
            self.verdict = None  # an earlier look's
            raise LabFault(str(error)) from None
        self.user_properties += [("verdict", str(self.verdict.status)), ("trials", self.verdict.n)]
        if self.verdict.status is Status.ERROR:
            raise LabFault(self.verdict.reason)

    def runtest(self):
        verdict = self.verdict
        self.user_properties.extend(self.values().items())
        surprise = expectation.compare(verdict, self.expected)
        if surprise is Surprise.GONE:
            option = self.config.option
            options = chosen(option).options("stack")
            mend = f"take that out of expected.json: `{gone_command(option.stack, option.results, options)}`"
            raise Violation(f"{verdict.status}, but {one_line(self.expected.words)}; {mend}\n{explain(self)}")
        if self.expected and verdict.status is self.expected.verdict:
            pytest.xfail(one_line(self.expected.words))
        if verdict.status is Status.UNSUPPORTED:
            pytest.skip(f"unsupported: {verdict.reason}")
        strict = self.config.option.fail_inconclusive or self.config.getini("strict")
        if verdict.status is Status.INCONCLUSIVE and not strict:
            pytest.skip("; ".join([f"inconclusive: {verdict.reason}", *(text for _, text in self.lines()[:1])]))
        if verdict.status is not Status.CONFORMS:
            raise Violation(explain(self))

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, Violation):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


class CellItem(JudgedItem):
    """One cell of one zone."""

    def __init__(self, *, zone, cell, **kwargs):
        markers = ("full", "smoke") if cell in zone.smoke else ("full",)
        super().__init__(zone=zone, cells=[cell], markers=markers, **kwargs)
        self.cell = cell

    where = property(lambda self: self.cell.id)
    place = property(lambda self: self.cell)

    def judge(self, measured):
        (measurements,) = measured.values()
        return judge(self.zone, self.cell, measurements, self.family)

    def told(self):
        return summary.TOLD, summary.told(self.verdict, self.expected)

    def values(self):
        return {} if self.verdict.value is None else {self.zone.metric: self.verdict.value}

    def lines(self):
        v = self.verdict
        if v.value is None:
            return ()
        return (
            ("measured", f"{self.zone.metric} {v.value:.3f} (median of {v.n} trials; {_interval(v.interval)})"),
            ("permitted", _permitted(v, "its earlier self" if self.config.option.baseline else "the reference itself")),
            ("basis", f"{_basis(v.permitted.basis, self.config.option.baseline)}; {self.zone.margin_rule['text']}"),
        )


class SplitItem(JudgedItem):
    """One check of the split part: a representative path, or a filter's shares of all paths of a grid.

    `unsplit`: why this stack's connections cannot be split here, or None. Then a path is judged by predictions alone.
    """

    def __init__(self, *, zone, check, unsplit=None, **kwargs):
        super().__init__(zone=zone, cells=check.cells, markers=("full",), **kwargs)
        self.check = check
        self.path_setting = None
        if check.measured and not unsplit:
            self.path_setting = documents.split_path(zone.profile, check.path.segments)
            self.settings.append(self.path_setting)
        self._unsplit = unsplit if isinstance(check, split_zone.PathCheck) else None

    where = property(lambda self: self.check.name)
    place = property(lambda self: self.check.id)

    def judge(self, measured):
        cells = {setting.cell: m for setting, m in measured.items() if setting != self.path_setting}
        return split_zone.judge(self.zone, self.check, cells, measured.get(self.path_setting), self.family)

    def told(self):
        return summary.SPLIT_TOLD, summary.split_told(self.zone, self.check, self.verdict, self.family, self._unsplit)

    def values(self):
        return {finding.what: finding.value[0] for finding in self.verdict.findings}

    def lines(self):
        # All that is not conforming; of these the first basis is enough to find the others in the zone's file.
        wrong = [f for f in self.verdict.findings if f.status is not Status.CONFORMS]
        if not wrong:
            return ()
        values = [f"{f.what} {_range(f.value)} ({_interval(f.interval, f.confidence)})" for f in wrong]
        return (
            ("measured", "; ".join(values)),
            ("permitted", "; ".join(map(_permitted, wrong))),
            ("basis", f"{_basis(wrong[0].permitted.basis)}; {self.zone.margin_rule['text']}"),
        )


def _interval(interval, confidence=CONFIDENCE):
    low, high = interval
    if high == math.inf:
        return "too few for an interval"
    if low == -math.inf:
        return f"at most {high:.3f}, as some timed out"
    return f"{100 * confidence:.5g}% interval {low:.3f}..{high:.3f}"


def _permitted(found, who="the reference itself"):
    chance = "" if found.p is None else f"; {who} would be so far outside in {found.p:.1g} of runs"
    return f"{found.permitted.low:.3f}..{found.permitted.high:.3f}{chance}"


def _range(value):
    return f"{value[0]:.3f}" if value[0] == value[1] else f"{value[0]:.3f} to {value[1]:.3f}"


def _basis(basis, baseline=None):
    what = f"before, in {baseline}" if baseline else basis["reference"]
    return f"{what}: median {basis['median']:.3f} of {basis['n']} trials ({basis['min']:.3f}..{basis['max']:.3f})"


def explain(item):
    """What a person needs to know about a violation: measured, permitted, basis, how to see it again."""
    v = item.verdict
    scheme = next(iter(item.measured.values()))[0].trial.scheme
    lines = [f"{scheme.id} {v.status} zone {item.zone.id} at {item.where}: {v.reason}"]
    told = [*item.lines(), ("rerun", rerun_command(item))]
    option = item.config.option
    if v.status is Status.VIOLATES and option.lab == "virtual" and not option.baseline:
        told.append(("why", f"conformance why {item.zone.algorithm}{chosen(option).options()}"))
    lines += [f"  {title:10} {text}" for title, text in told]
    return "\n".join(lines)


def rerun_command(item):
    option = item.config.option
    parts = [
        f'pytest -m "{item.zone.algorithm} and {documents.marker(item.kind)}"',
        f"--grid {_grid(item)}",
        f"--trials {getattr(item.verdict, 'n', 0) or option.trials}",
    ]
    if option.baseline:
        parts.append(f"--baseline {shlex.quote(option.baseline)}")
    if option.results != store.DEFAULT_RESULTS:
        parts.append(f"--results {shlex.quote(str(option.results))}")
    return " ".join(parts) + chosen(option).options()


def _grid(item):
    """The shortest way to name the cells of an item."""
    grid = getattr(getattr(item, "check", None), "grid", None)
    return grid or ",".join(cell.id for cell in item.cells)
