"""Measure what clauses tell of the document's deviations, in guests, and keep it in clauses/deviations.json.

    python tests/record_deviations.py [--trials 8] [--clause BBR03 ...] [--results results/deviations.jsonl] [NAMES ...]
    python tests/record_deviations.py --first-seed 10001 --clause BBR03 [NAMES ...]

NAMES are deviations (adapters/document/src/deviations.txt), or `honest` for the document's stack without one; by
default all. Without --clause, each is measured by the clauses that have told it, and what was never told by all. A
clause's network serves all clauses that are judged in it. Seeds begin at 101, as for other mutants. With --first-seed,
nothing is kept: it prints which of these clauses tell each deviation at these seeds, too.
"""

import dataclasses
import json

import click
import rich.console

from conformance.catalogue import clauses, deviation_record, deviations
from conformance.commands import mutants
from conformance.commands.measuring import answers
from conformance.engine import benches
from conformance.model.clauses.seen import Invisible
from conformance.model.clauses.verdict import ask
from conformance.model.judging import statistics
from conformance.model.judging.session import plan
from conformance.model.judging.verdict import CONFIDENCE
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import files

ALGORITHM, FIRST_SEED, DIGITS = "bbrv3", 101, 4
DRAFT = clauses.first_for(ALGORITHM)


def measured(name, wanted, trials, results, notes, first_seed=FIRST_SEED):
    """Return {clause: values} of a deviation, for all clauses whose network serves one of those that are wanted."""
    bench = benches.find(benches.Choice(stack=str(mutants.folder() / "document" / "adapter.json")))
    called = ALGORITHM if name == deviation_record.HONEST else f"{ALGORITHM}+{name}"
    every = [ask(clause, clauses.setting(clause.network), called) for clause in DRAFT.clauses]
    keys = {question.key for question in every if question.id in wanted}
    questions = [question for question in every if question.key in keys]
    planned = dataclasses.replace(
        plan(questions, trials=trials, first_seed=first_seed), looks=(trials,), glances=False
    )  # fmt: skip
    means = benches.Means(results=results, notes=notes)
    by_key = {answer.key: answer.measurements for answer in answers(planned, bench, means)}
    values = {}
    for question in questions:
        observable = question.rule.clause.observable
        looks = [observable.look(measurement) for measurement in by_key[question.key]]
        if of_clause := [observable.value(look) for look in looks if not isinstance(look, Invisible)]:
            values[question.id] = [round(float(number), DIGITS) for number in of_clause]
    return values


def side(clause, values):
    """Return on which side of a clause's bound these values surely are; None if on neither."""
    low, high = statistics.median_interval(values, CONFIDENCE)
    return "above" if low > clause.bound.high else "below" if high < clause.bound.low else None


def write(recorded):
    """Write the record, a line for each deviation, as deviations.txt lists them."""
    names = [deviation_record.HONEST, *deviations.load()]
    ids = [clause.id for clause in DRAFT.clauses]
    ordered = {
        name: {of: recorded[name][of] for of in ids if of in recorded[name]} for name in names if name in recorded
    }
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(values)}" for name, values in ordered.items())
    head = '{\n  "$schema": "../conformance/schemas/deviation-record.json",\n  "deviations": {\n'
    files.write(deviation_record.path(), f"{head}{rows}\n  }}\n}}\n", files.OTHER_FOLDER)


def show(name, values, wanted):
    """Print on which side of their bounds some clauses' values are."""
    for clause in DRAFT.clauses:
        if clause.id in wanted:
            of_clause = tuple(sorted(values.get(clause.id, ())))
            where = side(clause, of_clause) or "within" if of_clause else "not visible"
            click.echo(f"{clause.id} {name}: {where}, {clause.bound.words(3)}: {', '.join(map(str, of_clause))}")


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--trials", default=8)
@click.option("--clause", "wanted", multiple=True)
@click.option("--results", default="results/deviations.jsonl")
@click.option("--first-seed", default=FIRST_SEED)
def main(names, trials, wanted, results, first_seed):
    notes = ConsoleNotes(rich.console.Console(stderr=True))
    recorded = {name: dict(values) for name, values in deviation_record.load().items()}
    for name in names or [deviation_record.HONEST, *deviations.load()]:
        told = {c.id for c in DRAFT.clauses if side(c, recorded.get(name, {}).get(c.id, ()))}
        chosen = set(wanted) or told or {clause.id for clause in DRAFT.clauses}
        if first_seed != FIRST_SEED:
            if of_wanted := (chosen & told) or (chosen if name == deviation_record.HONEST else None):
                show(name, measured(name, of_wanted, trials, results, notes, first_seed), of_wanted)
            continue
        recorded[name] = recorded.get(name, {}) | measured(name, chosen, trials, results, notes)
        write(recorded)


if __name__ == "__main__":
    main()
