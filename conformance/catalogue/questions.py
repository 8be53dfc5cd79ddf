"""Ask about documents that ship: a zone at some of its places, the checks of its split part."""

from collections.abc import Iterable

from conformance.catalogue import documents, scenarios
from conformance.model.judging.question import Question
from conformance.model.judging.verdict import ask
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Point
from conformance.model.split.split_zone import SplitCheck


def cell_questions(zone: Zone, at: Iterable[Point]) -> list[Question]:
    """Return a zone's questions at those of the places `at` that it has, under its own profile. Raise UserError."""
    return [ask(zone, scenarios.setting(zone.profile, place)) for place in at if place in zone.intervals]


def split_questions(checks: Iterable[SplitCheck], within: Iterable[Point]) -> list[Question]:
    """Return the questions of those checks of a zone's split part that need no other cells than those `within`."""
    known = frozenset(within)
    return [_split_question(check) for check in checks if known.issuperset(check.cells)]


def _split_question(check: SplitCheck) -> Question:
    settings = tuple(documents.profile(check.heatmap.profile, cell) for cell in check.cells)
    return Question(rule=check, algorithm=check.heatmap.algorithm, settings=settings)
