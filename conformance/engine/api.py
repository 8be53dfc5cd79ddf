"""Two conveniences of the package's face: a zone by its name, and the verdict on measurements that are there."""

import collections
import pathlib
from collections.abc import Iterable

from conformance.catalogue import documents
from conformance.model.errors import UserError
from conformance.model.family import judge_zones
from conformance.model.setting import Cell
from conformance.model.trial import Measurement
from conformance.model.verdict import ZoneVerdict
from conformance.model.zone import Zone


def load_zone(named: str | pathlib.Path) -> Zone:
    """Return a zone that ships, by id such as cubic/heatmap, or the one in a file. Raise UserError."""
    path = pathlib.Path(named)
    return documents.zone(path if path.suffix == ".json" else documents.shipped_path(str(named)))


def judge(zone: Zone, measurements: Iterable[Measurement]) -> ZoneVerdict:
    """Judge measurements of one scheme by a zone, its cells taken together; cells that it lacks do not count.

    Raise UserError where there is nothing to judge, and for measurements of more than one scheme or another profile.
    """
    by_cell: dict[Cell, list[Measurement]] = collections.defaultdict(list)
    for measurement in measurements:
        setting = measurement.trial.setting
        if setting.cell in zone.intervals and setting.profile_digest == zone.profile_digest:
            by_cell[setting.cell].append(measurement)
    if not by_cell:
        raise UserError(f"no measurement is about a cell of zone {zone.id}, under its profile {zone.profile}")
    return judge_zones([(zone, by_cell)])[0]
