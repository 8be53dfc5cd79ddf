"""Two functions of the package's public interface: load a zone by name, and judge existing measurements by it."""

import pathlib
from collections.abc import Iterable

from conformance.catalogue import documents
from conformance.catalogue.questions import zone_questions
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging.session import by_zone, stored
from conformance.model.judging.verdict import ZoneVerdict
from conformance.model.judging.zone import Zone, judges
from conformance.model.trials.trial import Measurement


def load_zone(named: str | pathlib.Path) -> Zone:
    """Return a zone that ships, by an id such as cubic/heatmap, or the zone in a JSON file. Raise UserError."""
    path = pathlib.Path(named)
    in_file = isinstance(named, pathlib.Path) or path.suffix == ".json" or path.is_file()
    return documents.zone(path if in_file else documents.shipped_path(str(named)))


def judge(zone: Zone, measurements: Iterable[Measurement]) -> ZoneVerdict:
    """Judge measurements of one scheme by a zone, all in one family; places that the zone lacks are ignored.

    Raise UserError if there is nothing to judge, and for measurements of more than one scheme or another profile.
    """
    measured = grouped((m.setting, m) for m in measurements if judges(zone, m.setting, m.setting.point))
    if not measured:
        raise UserError(f"no measurement is of a {zone.noun} of zone {zone.id} under its profile {zone.profile}")
    questions = zone_questions(zone, measured)
    by_question = {question: {setting: measured[setting] for setting in question.settings} for question in questions}
    return by_zone(stored(by_question))[zone.id]
