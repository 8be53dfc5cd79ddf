"""Ask about documents that ship: zones at some of their places or in kinds of cells, the checks of split parts."""

from collections.abc import Iterable

from conformance.catalogue import documents, scenarios
from conformance.model.errors import UserError
from conformance.model.judging import kinds
from conformance.model.judging.question import Question
from conformance.model.judging.verdict import ask
from conformance.model.judging.zone import Zone, judges
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.split.split_zone import SplitCheck


def cell_questions(zone: Zone, at: Iterable[Point | str]) -> list[Question]:
    """Return a zone's questions at those of the places `at` that it has, under its own profile.

    Raise UserError for a place that is given by an id and that the zone lacks.
    """
    places = [_place(zone, place) if isinstance(place, str) else place for place in at]
    return [ask(zone, scenarios.setting(zone.profile, place)) for place in places if place in zone.intervals]


def _place(zone: Zone, name: str) -> Point:
    place = Point.parse(name)
    if place not in zone.intervals:
        raise UserError(f"zone {zone.id} has no {zone.noun} {name}", f"`conformance zones show {zone.id}` lists them")
    return place


def zone_questions(zone: Zone, settings: Iterable[Setting], algorithm: str | None = None) -> list[Question]:
    """Return the questions by which a zone judges these settings, those that it has: kind by kind, or each alone."""
    there = [setting for setting in settings if judges(zone, setting, setting.point)]
    if zone.by_kind:
        return kinds.ask(zone, there, algorithm)
    return [ask(zone, setting, algorithm) for setting in there]


def split_questions(checks: Iterable[SplitCheck], within: Iterable[Point]) -> list[Question]:
    """Return the questions of those checks of a zone's split part that need no other cells than those `within`."""
    known = frozenset(within)
    return [_split_question(check) for check in checks if known.issuperset(check.cells)]


def _split_question(check: SplitCheck) -> Question:
    settings = tuple(documents.profile(check.heatmap.profile, cell) for cell in check.cells)
    return Question(rule=check, algorithm=check.heatmap.algorithm, settings=settings)
