"""Judge lines of files by all zones, and show those at points of scenarios, which heatmaps cannot: a row for each."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping

from conformance.catalogue.questions import zone_questions
from conformance.model.groups import grouped
from conformance.model.judging.question import MeasuredSettings, Named, Question
from conformance.model.judging.session import Finding, stored
from conformance.model.judging.verdict import Status, Verdict, ask
from conformance.model.judging.zone import Zone, judges
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting
from conformance.model.rounding import digits_to_tell
from conformance.model.trials.trial import Measurement, Outcome, RunKey, Scheme


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """The verdict of a zone on a scheme at a point of a scenario."""

    scheme: Scheme
    zone: Zone
    verdict: Verdict

    @property
    def status(self) -> Status:
        return self.verdict.status

    @property
    def title(self) -> str:
        """The title of the metric."""
        return METRICS[self.zone.metric].title

    @property
    def measured(self) -> str:
        """The median with its unit; "none" if it is not known."""
        return METRICS[self.zone.metric].text(self.verdict.value, self._more_digits)

    @property
    def permitted(self) -> str:
        """The bounds, in the metric's unit, and the margin."""
        metric, more = METRICS[self.zone.metric], self._more_digits
        low, high = (metric.text(bound, more) for bound in (self.verdict.permitted.low, self.verdict.permitted.high))
        return f"{low.removesuffix(metric.suffix)} to {high} ({self.verdict.permitted.margin.words})"

    @property
    def _more_digits(self) -> int:
        """How many more digits than usual tell the median from the bounds."""
        digits, permitted = METRICS[self.zone.metric].digits, self.verdict.permitted
        values = [] if self.verdict.value is None else [self.verdict.value]
        return digits_to_tell(values, permitted.low, permitted.high, digits) - digits


def findings(measurements: Iterable[Measurement], zones: Iterable[Zone]) -> dict[RunKey, list[tuple[Zone, Finding]]]:
    """Return the findings of each run, with their zones: of these zones at all cells and points, in one family.

    If a zone judges kinds of cells (kinds.py), the kinds are members of the family, and their findings come last. Its
    cells are then details outside of the family, which are judged at least as strictly. Raises UserError.
    """
    by_setting = grouped(((m.trial.run, m.setting), m) for m in measurements)
    by_run: dict[RunKey, dict[str, tuple[Zone, dict[Setting, list[Measurement]]]]] = collections.defaultdict(dict)
    by_algorithm = grouped((zone.algorithm, zone) for zone in zones)
    for (run, setting), of_setting in by_setting.items():
        for zone in by_algorithm.get(run[0].algorithm, ()):
            if not judges(zone, setting, setting.point):
                continue
            # Lines that were published for a study lack counters, from which some metrics are computed.
            telling = [m for m in of_setting if m.counted or m.outcome is not Outcome.OK or zone.value(m) is not None]
            if telling:
                by_run[run].setdefault(zone.id, (zone, {}))[1][setting] = telling
    return {run: _of_run(run[0].algorithm, of_zones.values()) for run, of_zones in by_run.items()}


def _of_run(algorithm: str, of_zones: Iterable[tuple[Zone, MeasuredSettings]]) -> list[tuple[Zone, Finding]]:
    """Return the findings of one run, by zones and the measurements that each judges."""
    members: dict[Question, MeasuredSettings] = {}
    details: dict[Question, MeasuredSettings] = {}
    zones: dict[Question, Zone] = {}
    for zone, measured in of_zones:
        questions = zone_questions(zone, measured, algorithm)
        members |= {question: {setting: measured[setting] for setting in question.settings} for question in questions}
        cells = [ask(zone, setting, algorithm) for setting in measured] if zone.by_kind else []
        details |= {question: {question.setting: measured[question.setting]} for question in cells}
        zones |= dict.fromkeys((*questions, *cells), zone)
    counted = stored(members)
    every = [*stored(details, family=counted[0].family), *counted]
    return [(zones[question], finding) for question, finding in zip((*details, *members), every, strict=True)]


def rows(findings: Mapping[RunKey, Iterable[tuple[Zone, Finding]]]) -> list[PointRow]:
    """Return a PointRow for each finding at a point, in order of scheme and zone; heatmaps show cells and kinds."""
    judged = [
        PointRow(scheme=run[0], zone=zone, verdict=finding.confirmed)
        for run, of_run in findings.items()
        for zone, finding in of_run
        if not isinstance(finding.verdict.place, Cell | Named)
    ]
    return sorted(judged, key=lambda row: (row.scheme.id, row.zone.id, row.verdict.place))
