"""Repeat the violations that only all cells taken together show, at the end of a session.

They are measured again with fresh seeds, as every other new violation was.
"""

import dataclasses
from collections.abc import Mapping

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


def repeated(option: Options, families: Mapping[FindingName, int]) -> dict[FindingName, Verdict]:
    """Ask the questions with these names again, with fresh seeds, and return the verdicts. Raise UserError.

    `families`: {name: the size of its family in the session}.
    """
    questions = [case.question for case in cases(option) if case.question.name in families]
    notes = ConsoleNotes(Console())
    notes.say(f"{count(len(questions), 'new violation')}: measuring again with fresh seeds")
    means = Means(results=option.results, workers=option.workers, notes=notes)
    measure = source(benches.find(chosen(option)), means)
    planned = plan_of(questions, option)
    planned = dataclasses.replace(planned, families={q: families[q.name] for q in planned.questions})
    answers = session.repeats(planned, questions, measure)
    return {answer.question.name: answer.verdict for answer in answers}
