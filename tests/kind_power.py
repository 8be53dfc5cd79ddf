"""Say how kinds of cells judge made-up BBRv3s: a row for each kind, a column for each factor (docs/verdicts.md).

    python tests/kind_power.py [--sessions 400] [FACTORS ...]

A trial is one of the reference's own in each cell, times what QUIC has beside TCP, times the factor, and at most a full
link. A cell says in which share of sessions the kind violates, or else conforms, and the median number of trials. There
is no repeat.
"""

import random
import statistics

import click
from fault_power import FAMILY, of_kind

from conformance.catalogue import documents
from conformance.model.judging import kinds
from conformance.model.judging.verdict import USUAL_LOOKS, Status

#: 10 Mbit/s with the headers of QUIC's packets
FULL = 0.957
FACTORS = (1.0, 0.88, 0.85, 1.15)


def judged(rule, factor, chance):
    """Return the verdict on a kind in a session, and after how many trials it came."""
    bases = [rule.zone.intervals[cell].basis for cell in rule.cells]
    return of_kind(
        rule,
        [
            [min(chance.choice(basis.values) * factor, FULL) / basis.median for basis in bases]
            for _ in range(USUAL_LOOKS[-1])
        ],
        FAMILY,
    )


def words(sessions):
    violate = [look for status, look in sessions if status is Status.VIOLATES]
    conform = [look for status, look in sessions if status is Status.CONFORMS]
    if not violate + conform:
        return "none decided"
    verdict, looks = ("violate", violate) if violate else ("conform", conform)
    return f"{len(looks) / len(sessions):.0%} {verdict}, {statistics.median(looks):.0f} trials"


@click.command(help=__doc__)
@click.argument("factors", nargs=-1, type=float)
@click.option("--sessions", default=400)
def main(factors, sessions):
    factors = factors or FACTORS
    click.echo(f"| kind | {' | '.join(map(str, factors))} |")
    for name in ("heatmap-packets", "spaced-losses"):
        zone = documents.zone(documents.zone_path(f"bbrv3/{name}"))
        for rule in kinds.rules(zone, zone.places):
            if isinstance(rule, kinds.Amount) and rule.judgeable:
                chance = random.Random(1)
                row = [words([judged(rule, factor, chance) for _ in range(sessions)]) for factor in factors]
                click.echo(f"| {rule.kind} | {' | '.join(row)} |")


if __name__ == "__main__":
    main()
