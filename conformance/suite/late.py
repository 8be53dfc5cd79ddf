"""At the end of a session: what violates only when all cells are taken together is measured again, with fresh seeds, as
every other new violation was.
"""

from collections.abc import Collection

from conformance.commands.measuring import answers
from conformance.engine import benches
from conformance.engine.questions import CellQuestion, Question
from conformance.model.verdict import Status
from conformance.reporting.text.progress import ConsoleNotes
from conformance.suite.cases import cases, matching
from conformance.suite.options import Options, chosen
from conformance.suite.session import plan_of
from conformance.suite.summary import At
from conformance.support.console import Console


def taken_back(option: Options, found: Collection[At]) -> set[At]:
    """Measure again what was found to violate; return what trials with fresh seeds do not show. Raise UserError."""
    asked = [case.question for case in cases(option) if isinstance(case.question, CellQuestion)]
    asked = [question for question in asked if _at(question) in found]
    again = plan_of(asked, option, matching(option)).repeating(asked)
    notes = ConsoleNotes(Console())
    made = answers(again, benches.find(chosen(option)), option.results, option.workers, notes)
    judged = [one for answer in made for one in answer.judged]
    return {_at(one.question) for one in judged if one.status is not Status.VIOLATES}


def _at(question: Question) -> At:
    assert isinstance(question, CellQuestion)
    return question.zone.id, question.place.id
