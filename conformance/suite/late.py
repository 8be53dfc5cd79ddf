"""Repeat the violations that only all cells taken together show, at the end of a session.

They are measured again with fresh seeds, as every other new violation was.
"""

from collections.abc import Collection

from conformance.commands.measuring import source
from conformance.engine import benches
from conformance.engine.benches import Means
from conformance.model.judging import session
from conformance.model.judging.verdict import Verdict
from conformance.reporting.text.progress import ConsoleNotes
from conformance.suite.cases import cases
from conformance.suite.options import Options, chosen
from conformance.suite.session import plan_of
from conformance.suite.summary import FindingName
from conformance.support.console import Console, count


def repeated(option: Options, names: Collection[FindingName]) -> dict[FindingName, Verdict]:
    """Ask the questions with these names again, with fresh seeds, and return the verdicts. Raise UserError."""
    questions = [case.question for case in cases(option) if case.question.name in names]
    notes = ConsoleNotes(Console())
    notes.say(f"{count(len(questions), 'new violation')}: measuring again with fresh seeds")
    means = Means(results=option.results, workers=option.workers, notes=notes)
    measure = source(benches.find(chosen(option)), means)
    answers = session.repeats(plan_of(questions, option), questions, measure)
    return {answer.question.name: answer.verdict for answer in answers}
