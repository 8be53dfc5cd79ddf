"""Add names, labels, parameters and pictures to the report of `pytest --alluredir DIR`.

allure-pytest reports errors in setup as broken, violations as failed and the rest as skipped, as it should. But it
takes all cells of a zone for retries of one test, unless parameters tell them apart.
"""

import html
from collections.abc import Mapping, Sequence

import allure
import pytest

from conformance.model.judging import statistics
from conformance.model.judging.verdict import Status
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Scheme
from conformance.reporting import heatmaps
from conformance.reporting.html import trace_picture
from conformance.results.store import dumps
from conformance.suite.items import JudgedItem, explain
from conformance.support import extras

_SPECIFICATIONS = {
    "cubic": ("RFC 9438", "https://www.rfc-editor.org/rfc/rfc9438.html"),
    "reno": ("RFC 5681", "https://www.rfc-editor.org/rfc/rfc5681.html"),
    "bbrv3": ("draft-ietf-ccwg-bbr", "https://datatracker.ietf.org/doc/draft-ietf-ccwg-bbr/"),
}
_SVG, _PNG = allure.attachment_type.SVG, allure.attachment_type.PNG


class Describer:
    """Describes a test in its teardown, the one phase that every test has and that comes after all names were given."""

    def __init__(self, config: pytest.Config) -> None:
        self._choice = config.option
        self._measured: dict[str, dict[Setting, Sequence[Measurement]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        if not isinstance(item, JudgedItem):
            return
        scheme = next(iter(item.measured.values()))[0].trial.scheme if item.measured else None
        stack = scheme.stack if scheme else self._choice.stack
        _name(item, stack, scheme)
        _links(item)
        status = item.verdict.status if item.verdict else Status.ERROR
        allure.dynamic.description_html(f"<pre>{html.escape(_words(item, status))}</pre>")
        if item.measured:
            _attach_trials(item, status)
            self._measured.setdefault(item.case.question.algorithm, {}).update(item.measured)
        last = not isinstance(nextitem, JudgedItem) or nextitem.case.question.algorithm != item.case.question.algorithm
        if last and item.case.question.algorithm in self._measured:
            _attach_heatmaps(self._measured.pop(item.case.question.algorithm))


def _name(item: JudgedItem, stack: str, scheme: Scheme | None) -> None:
    rule, algorithm = item.rule, item.case.question.algorithm
    allure.dynamic.title(f"{algorithm} {item.case.kind} at {rule.where}, {stack}")
    allure.dynamic.parent_suite(algorithm)
    allure.dynamic.suite(f"{rule.id}, {stack}")
    allure.dynamic.sub_suite(f"{item.case.question.settings[0].cell.bandwidth_mbps:g} Mbit/s")
    for name, value in (("algorithm", algorithm), ("stack", stack), ("zone", rule.id), ("metric", item.case.kind)):
        allure.dynamic.label(name, value)
    allure.dynamic.feature(rule.version or algorithm)
    for name, value in (("algorithm", algorithm), ("where", rule.where), ("stack", stack)):
        allure.dynamic.parameter(name, value)
    if scheme:
        # Results of a new build or kernel belong to the history of the same test.
        for name in ("stack_version", "kernel_release", "kernel_digest"):
            allure.dynamic.parameter(name, getattr(scheme, name), excluded=True)


def _links(item: JudgedItem) -> None:
    if item.case.question.algorithm in _SPECIFICATIONS:
        name, url = _SPECIFICATIONS[item.case.question.algorithm]
        allure.dynamic.link(url, name=name)
    # An entry's link may be a file's name or any other text; only web addresses become links.
    link = item.expected.link if item.expected else None
    if link and link.startswith(("https://", "http://")):
        allure.dynamic.issue(link, name="known deviation")


def _words(item: JudgedItem, status: Status) -> str:
    verdict = item.verdict
    if verdict is None:
        return f"error\n  rerun      {item.rerun_command()}"
    if status in (Status.ERROR, Status.UNSUPPORTED) or not (verdict.values or verdict.parts):
        return f"{status}: {verdict.reason}\n  rerun      {item.rerun_command()}"
    return explain(item)


def _attach_trials(item: JudgedItem, status: Status) -> None:
    """Attach a picture of the trial nearest to the median and, if the test does not conform, all trials' lines."""
    for setting, measurements in item.measured.items():
        of_trials = [(utilization, m) for m in measurements if (utilization := m.utilization) is not None]
        if of_trials and item.finding.values:
            middle = statistics.median(utilization for utilization, _ in of_trials)
            _, nearest = min(of_trials, key=lambda pair: (abs(pair[0] - middle), pair[1].trial.seed))
            picture = trace_picture.svg(nearest)
            if picture:
                allure.attach(picture, f"trace, seed {nearest.trial.seed}", _SVG)
        if not status.passes:
            lines = b"".join(map(dumps, measurements))
            allure.attach(lines.decode(), f"result lines {setting.id}", allure.attachment_type.TEXT, "jsonl")


def _attach_heatmaps(measured: Mapping[Setting, Sequence[Measurement]]) -> None:
    """Attach heatmaps of all cells of an algorithm that this process has measured, to the last of its tests."""
    if not extras.installed("figures"):
        return
    from conformance.reporting import charts

    for series in heatmaps.all_series([m for measurements in measured.values() for m in measurements]):
        for drawn in series.heatmaps:
            chart = charts.heatmap(drawn)
            allure.attach(charts.render(chart, "svg"), f"heatmap of {drawn.metric}", _SVG)
            allure.attach(charts.render(chart, "png"), f"heatmap of {drawn.metric}", _PNG)
