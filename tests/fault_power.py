"""Say in which share of sessions clauses tell a fault of BBRv3, by plays without guests: a row for each pair.

    python tests/fault_power.py [--plays 40] [--sessions 1000] [--program FILE] [FAULTS ...]

FAULTS are deviations (adapters/document/src/deviations.txt), or `honest` for none; by default those below. A session
draws the trials of each look from the plays of a clause's network, and those of the repeat, and judges them as
`pytest -m bbrv3` does. *Decided*: after eight trials.
"""

import random

import click
from record_plays import ALGORITHM, DRAFT, HONEST, NotPlayed, Play

from conformance.catalogue import clauses
from conformance.commands import document_play
from conformance.model.clauses import verdict as clause_verdicts
from conformance.model.clauses.seen import Invisible
from conformance.model.judging.verdict import USUAL_LOOKS, Status

#: {fault: the clauses that may tell it}; all for any other
FAULTS = {
    "loss-ignored": ("BBR401", "BBR402"),
    "loss-threshold-0.015": ("BBR402", "BBR502"),
    "losses-cut-0.7": ("BBR401",),
    "filter-by-round": ("BBR102", "BBR402"),
    "headroom-0.85": ("BBR302", "BBR402"),
    "two-bursts": ("BBR02", "BBR21"),
}
#: so many questions has `pytest -m bbrv3 --stack S`, about; the first seed of the plays; trials of a soon decided one
FAMILY, FIRST_SEED, SOON = 100, 1001, 8


def shown(program, fault, clause, plays):
    """Return what plays of a fault show of a clause, as samples."""
    called = ALGORITHM if fault == HONEST else f"{ALGORITHM}+{fault}"
    setting, samples = clauses.setting(clause.network), []
    for seed in range(FIRST_SEED, FIRST_SEED + plays):
        try:
            view = Play(program=program, called=called, setting=setting, seed=seed).view()
            samples.append(clause.observable.samples(view))
        except (Invisible, NotPlayed):
            continue
    return samples


def judged(clause, samples, chance):
    """Return the verdict on trials drawn from these samples, and after how many it came."""
    pooled, drawn = clause.observable.independent, chance.choices(samples, k=USUAL_LOOKS[-1])
    for look in USUAL_LOOKS:
        of_trials = ([*map(float, of.values)] if pooled else [clause.observable.value(of)] for of in drawn[:look])
        values = [value for of in of_trials for value in of]
        status, *_ = clause_verdicts._compare(clause.bound, values, FAMILY, look < USUAL_LOOKS[-1], True, pooled)
        if status is not Status.INCONCLUSIVE:
            break
    return status, look


@click.command(help=__doc__)
@click.argument("faults", nargs=-1)
@click.option("--plays", default=40)
@click.option("--sessions", default=1000)
@click.option("--program")
def main(faults, plays, sessions, program):
    program = program or str(document_play.program())
    by_id, chance = {clause.id: clause for clause in DRAFT.clauses}, random.Random(1)
    for fault in faults or FAULTS:
        for clause in map(by_id.__getitem__, FAULTS.get(fault, by_id)):
            samples = shown(program, fault, clause, plays)
            if 2 * len(samples) <= plays:
                click.echo(f"| {fault} | {clause.id} | not visible in {plays - len(samples)} of {plays} plays |")
                continue
            pairs = [(judged(clause, samples, chance), judged(clause, samples, chance)) for _ in range(sessions)]
            violate = sum(status is again is Status.VIOLATES for (status, _), (again, _) in pairs) / sessions
            soon = sum(status is not Status.INCONCLUSIVE and look <= SOON for (status, look), _ in pairs) / sessions
            click.echo(f"| {fault} | {clause.id} | {soon:.1%} decided | {violate:.1%} violate |")


if __name__ == "__main__":
    main()
