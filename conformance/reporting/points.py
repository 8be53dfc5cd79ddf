"""Judge flows that share a network, a row for each zone and point: heatmaps cannot show points of scenarios."""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

from conformance.catalogue import documents
from conformance.model.judging.question import Measured, Question
from conformance.model.judging.session import stored
from conformance.model.judging.verdict import Status, Verdict, ask
from conformance.model.judging.zone import Zone
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.setting import Setting
from conformance.model.rounding import digits_to_tell
from conformance.model.trials.trial import Measurement, Scheme

#: what trials that are judged together have in common: scheme, room, lab's digest
Run = tuple[Scheme, str, str]
_Measured = Mapping[Point, Sequence[Measurement]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
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


def sizes(measurements: Iterable[Measurement]) -> dict[Run, int]:
    """Return {run: how many questions share its limit on false alarms}: counted cells and points together.

    Runs without points are left out: all their results are cells of heatmaps. Raises UserError.
    """
    settings: dict[Run, set[Setting]] = collections.defaultdict(set)
    for m in measurements:
        if not m.trial.setting.segments:
            settings[m.trial.run].add(m.trial.setting)
    return {
        run: sum(map(_counted, itertools.repeat(run[0].algorithm), here))
        for run, here in settings.items()
        if not all(isinstance(setting.point, Cell) for setting in here)
    }


def _counted(algorithm: str, setting: Setting) -> int:
    at = setting.point
    permitted = (zone.intervals.get(at) for zone in documents.zones_for(algorithm, setting))
    return sum(interval is not None and interval.counted for interval in permitted)


def rows(measurements: Iterable[Measurement]) -> list[Row]:
    """Return a Row for each zone at each of its points that was measured, in order of scheme and zone.

    All verdicts on one scheme, cells included, are one family. Raises UserError.
    """
    known = list(measurements)
    family = sizes(known)
    held: dict[Run, dict[str, tuple[Zone, dict[Point, list[Measurement]]]]] = collections.defaultdict(dict)
    for setting, of_setting in _by_setting(known).items():
        zones = {a: documents.zones_for(a, setting) for a in {m.trial.scheme.algorithm for m in of_setting}}
        for m in of_setting:
            for zone in zones[m.trial.scheme.algorithm]:
                _, found = held[m.trial.run].setdefault(zone.id, (zone, collections.defaultdict(list)))
                found[setting.point].append(m)
    made = []
    for run, by_zone in held.items():
        judged: list[tuple[Zone, _Measured]] = list(by_zone.values())
        findings = stored(asked(judged), family[run])
        made += [Row(scheme=run[0], zone=by_zone[one.verdict.zone_id][0], verdict=one.confirmed) for one in findings]
    return sorted(made, key=lambda row: (row.scheme.id, row.zone.id, row.verdict.place))


def asked(judged: Iterable[tuple[Zone, _Measured]]) -> dict[Question, Measured]:
    """Return the questions of zones about places, each with its measurements."""
    found: dict[Question, Measured] = {}
    for zone, measured in judged:
        for made in measured.values():
            setting = made[0].trial.setting
            found[ask(zone, setting, made[0].trial.scheme.algorithm)] = {setting: made}
    return found


def _by_setting(measurements: Iterable[Measurement]) -> dict[Setting, list[Measurement]]:
    """Return {setting: its measurements} of flows that share a network."""
    found: dict[Setting, list[Measurement]] = collections.defaultdict(list)
    for m in measurements:
        if not m.trial.setting.of_profile:
            found[m.trial.setting].append(m)
    return found
