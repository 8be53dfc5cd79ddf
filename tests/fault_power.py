"""Say in which share of sessions clauses tell a fault of BBRv3, by plays without guests: a row for each fault.

    python tests/fault_power.py [--plays 100] [--sessions 1000] [--first-seed 1001] [--each] [FAULTS ...]

FAULTS are deviations (adapters/document/src/deviations.txt), or `honest` for none; by default those of FAULTS below. A
session draws the trials of each look from the plays of a clause's network, and those of the repeat from others, and
judges them as `pytest -m bbrv3` does; so it does with the kind of spaced losses, of which a play is its share of the
zone's reference. A session tells a fault if a question is violated both times. *Soon*: within eight trials. Intervals
are exact, at 95 %.
"""

import dataclasses
import functools
import random
import statistics

import click
from record_plays import ALGORITHM, DRAFT, HONEST, NotPlayed, Play
from scipy.stats import binomtest

from conformance.catalogue import clauses, documents, scenarios
from conformance.commands import document_play
from conformance.model.clauses.seen import Invisible
from conformance.model.clauses.verdict import compare
from conformance.model.judging import kinds
from conformance.model.judging.verdict import USUAL_LOOKS, Status

#: the question about the kind of cells with spaced losses
ZONE = documents.zone(documents.zone_path("bbrv3/spaced-losses"))
SPACED = next(rule for rule in kinds.rules(ZONE, ZONE.places) if rule.judgeable)
KIND = SPACED.place.id
#: a clause that the play of the document itself does not keep, since it paces no initial window; in guests it does
OTHERWISE = {"BBR522"}
#: {fault: the questions that may tell it}; all for any other
FAULTS = {
    HONEST: (),
    "loss-ignored": ("BBR401", "BBR402"),
    "loss-threshold-0.03": ("BBR402", "BBR502", KIND),
    "loss-threshold-0.015": ("BBR402", "BBR502", KIND),
    "loss-threshold-0.01": ("BBR402", "BBR502", KIND),
    "beta-0.5": ("BBR401",),
    "losses-cut-0.7": ("BBR401",),
    "filter-by-round": ("BBR102", "BBR402"),
    "headroom-0.85": ("BBR302", "BBR402"),
    "two-bursts": ("BBR21",),
}
#: so many questions does `pytest -m bbrv3 --stack S` collect, of which not all count; trials of a soon decided one
FAMILY, SOON = 154, 8


def shown(program, fault, asked, seeds):
    """Return {clause: what each play of a fault shows of it, as samples}. Clauses of one network share its plays."""
    called = ALGORITHM if fault == HONEST else f"{ALGORITHM}+{fault}"
    by_clause = {clause: [] for clause in asked}
    for network in dict.fromkeys(clause.network for clause in asked):
        setting = clauses.setting(network)
        for seed in seeds:
            try:
                view = Play(program=program, called=called, setting=setting, seed=seed).view()
            except NotPlayed:
                break
            except Invisible:
                continue
            for clause in asked:
                if clause.network == network:
                    try:
                        by_clause[clause].append(clause.observable.samples(view))
                    except Invisible:
                        continue
    return by_clause


def ratios(program, fault, seeds):
    """Return, for each cell of the kind, what each play sends after the change, relative to the reference's median."""
    called = ALGORITHM if fault == HONEST else f"{ALGORITHM}+{fault}"
    rows = []
    for cell in SPACED.cells:
        setting = dataclasses.replace(scenarios.setting(ZONE.profile, cell), packets=True)
        views = [Play(program=program, called=called, setting=setting, seed=seed).view() for seed in seeds]
        reference = statistics.median(ZONE.intervals[cell].basis.values)
        rows.append([used_later(view) / reference for view in views])
    return rows


def used_later(view):
    """Return later_utilization: what the link sent after the change, of what it could have sent."""
    later = view.packets.bytes[view.out_s >= view.event.begin_s].sum()
    return float(later / view.bytes_per_s / (view.ended_s - view.event.begin_s))


@dataclasses.dataclass(frozen=True)
class Tried:
    """How sessions judge a question: whether each decided soon, and whether it violated, the repeat included."""

    soon: list[bool]
    violate: list[bool]


def of_clause(clause, drawn):
    """Return the verdict on trials with these samples, and after how many of them it came."""
    pooled = clause.observable.independent
    of_trials = [[*map(float, of.values)] if pooled else [clause.observable.value(of)] for of in drawn]
    for look in USUAL_LOOKS:
        values = [value for of in of_trials[:look] for value in of]
        status, *_ = compare(clause.bound, values, FAMILY, look < USUAL_LOOKS[-1], twice=True, pooled=pooled)
        if status is not Status.INCONCLUSIVE:
            break
    return status, look


def of_kind(rule, drawn, family):
    """Return the verdict on a kind of cells in trials with these ratios, and after how many of them it came."""
    for look in USUAL_LOOKS:
        rows = zip(*drawn[:look], strict=True)
        status = rule.compare([*rows], [False] * look, family, look < USUAL_LOOKS[-1]).status
        if status is not Status.INCONCLUSIVE:
            break
    return status, look


def tried(plays, first, repeat, sessions, chance):
    """Return how so many sessions judge a question by these plays; `first`, `repeat`: see of_clause()."""
    soon, violate = [], []
    for _ in range(sessions):
        drawn = chance.sample(plays, 2 * USUAL_LOOKS[-1])  # no play is in a session twice
        status, look = first(drawn[: USUAL_LOOKS[-1]])
        soon.append(status is not Status.INCONCLUSIVE and look <= SOON)
        again = status is Status.VIOLATES and repeat(drawn[USUAL_LOOKS[-1] :])[0]
        violate.append(again is Status.VIOLATES)
    return Tried(soon, violate)


def share(of, every):
    """Return a share with its interval, in words."""
    low, high = binomtest(of, every).proportion_ci(0.95, "exact")
    return f"{of / every:.1%} ({low:.1%} to {high:.1%})"


@click.command(help=__doc__)
@click.argument("faults", nargs=-1)
@click.option("--plays", default=100, type=click.IntRange(2 * USUAL_LOOKS[-1]))
@click.option("--sessions", default=1000)
@click.option("--first-seed", default=1001)
@click.option("--each", is_flag=True, help="Also print a row for each question.")
@click.option("--program")
def main(faults, plays, sessions, first_seed, each, program):
    program = program or str(document_play.program())
    chance = random.Random(1)
    for fault in faults or FAULTS:
        chosen = FAULTS.get(fault) or {clause.id for clause in DRAFT.clauses} - OTHERWISE | {KIND}
        asked = [clause for clause in DRAFT.clauses if clause.id in chosen]
        seeds = range(first_seed, first_seed + plays)
        visible = {
            clause: samples
            for clause, samples in shown(program, fault, asked, seeds).items()
            if len(samples) >= 2 * USUAL_LOOKS[-1]
        }
        rows = {}
        for clause, samples in visible.items():
            judged = functools.partial(of_clause, clause)
            rows[clause.id] = tried(samples, judged, judged, sessions, chance)
        if KIND in chosen:
            by_trial = [*zip(*ratios(program, fault, seeds), strict=True)]
            first, repeat = (functools.partial(of_kind, SPACED, family=family) for family in (FAMILY, 1))
            rows[KIND] = tried(by_trial, first, repeat, sessions, chance)
        for name, row in rows.items() if each else ():
            soon = sum(row.soon) / sessions
            click.echo(f"| {fault} | {name} | {share(sum(row.violate), sessions)} | {soon:.1%} soon |")
        told = sum(map(any, zip(*(row.violate for row in rows.values()), strict=True)))
        by = [name for name, row in rows.items() if 2 * sum(row.violate) > sessions]
        soon = sum(2 * sum(row.soon) > sessions for row in rows.values())
        hidden = [clause.id for clause in asked if clause not in visible]
        words = f"{soon} of {len(rows)} decided soon" + (f", not played: {', '.join(hidden)}" if hidden else "")
        click.echo(f"| {fault} | {', '.join(by)} | {share(told, sessions)} | {words} |")


if __name__ == "__main__":
    main()
