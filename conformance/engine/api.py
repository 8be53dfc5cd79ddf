"""Two functions of the package's public interface: load a zone by name, and judge existing measurements by it."""

import collections
import pathlib
from collections.abc import Iterable

from conformance.catalogue import documents
from conformance.model.errors import UserError
from conformance.model.judging.session import by_zone, stored
from conformance.model.judging.verdict import ZoneVerdict, ask
from conformance.model.judging.zone import Zone, judges
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Measurement


def load_zone(named: str | pathlib.Path) -> Zone:
    """Return a zone that ships, by an id such as cubic/heatmap, or the zone in a JSON file. Raise UserError."""
    path = pathlib.Path(named)
    return documents.zone(path if path.suffix == ".json" else documents.shipped_path(str(named)))


def judge(zone: Zone, measurements: Iterable[Measurement]) -> ZoneVerdict:
    """Judge measurements of one scheme by a zone, all places as one family; places that the zone lacks are ignored.

    Raise UserError if there is nothing to judge, and for measurements of more than one scheme or another profile.
    """
    by_place: dict[Point, list[Measurement]] = collections.defaultdict(list)
    for measurement in measurements:
        place = measurement.trial.setting.point
        if judges(zone, measurement.trial.setting, place):
            by_place[place].append(measurement)
    if not by_place:
        raise UserError(f"no measurement is of a {zone.noun} of zone {zone.id} under its profile {zone.profile}")
    by_question = {
        ask(zone, measurements[0].trial.setting): {measurements[0].trial.setting: measurements}
        for measurements in by_place.values()
    }
    return by_zone(stored(by_question))[zone.id]
