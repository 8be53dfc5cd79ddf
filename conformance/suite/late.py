"""Repeat the violations that only all cells taken together show, at the end of a session.

They are measured again with fresh seeds, as every other new violation was.
"""

from collections.abc import Collection

from conformance.commands.measuring import answers
from conformance.engine import benches
from conformance.engine.questions import CellQuestion, Question
from conformance.model.judging.verdict import Verdict
from conformance.reporting.text.progress import ConsoleNotes
from conformance.suite.cases import cases
from conformance.suite.options import Options, chosen
from conformance.suite.session import plan_of
from conformance.suite.summary import At
from conformance.support.console import Console, count


def repeated(option: Options, found: Collection[At]) -> dict[At, Verdict]:
    """Measure the cells in `found` again with fresh seeds, and return the verdicts on these trials. Raise UserError."""
    asked = [case.question for case in cases(option) if isinstance(case.question, CellQuestion)]
    asked = [question for question in asked if _at(question) in found]
    again = plan_of(asked, option).repeating(asked)
    notes = ConsoleNotes(Console())
    notes.say(f"{count(len(asked), 'new violation')}: measuring again with fresh seeds")
    made = answers(again, benches.find(chosen(option)), option.results, option.workers, notes)
    judged = [one for answer in made for one in answer.judged]
    return {_at(one.question): one.verdict for one in judged if isinstance(one.verdict, Verdict)}


def _at(question: Question) -> At:
    assert isinstance(question, CellQuestion)
    return question.zone.id, question.place.id
