"""Trace Linux's BBRv2 and BBRv3 in the heatmap's cells, and keep in zones/features.json what blame reads of them.

    python tests/record_traits.py [--workers 2] [bbrv2 | bbrv3] ...

Users have to build these kernels themselves; what is recorded here stands in for them (docs/blame.md).
"""

import collections

import click
import score_why

from conformance.catalogue import documents, scenarios
from conformance.commands import blame, tracing
from conformance.engine import benches, runs
from conformance.model.diagnosis import blame as model
from conformance.support import files

PROFILE = "packets"
#: of the share of a time, and of bytes
DIGITS = 6


def settings(algorithm):
    """Return {cell's id: Setting} of the heatmap."""
    zone = documents.zone_of(algorithm, "heatmap", PROFILE)
    return {cell.id: scenarios.setting(PROFILE, cell) for cell in zone.cells}


def traits(algorithm, workers):
    """Return {cell's id: [the numbers of a trial's FlowTraits]}, traced now. Raises UserError."""
    cells, rows = settings(algorithm), collections.defaultdict(dict)
    parts = {str(first): {name: cells[name] for name in list(cells)[first::workers]} for first in range(workers)}

    def keep(trial, flow):
        of = model.seen(flow)
        numbers = (of.waiting, of.payload_bytes, of.window_limited)
        rows[trial.setting.point.id][trial.seed] = [float(f"{number:.{DIGITS}g}") for number in numbers]

    traced = tracing.traced_all(
        dict.fromkeys(parts, (benches.find(), algorithm)),
        {part: dict.fromkeys(of, runs.seeds(blame.TRIALS)) for part, of in parts.items()},
        workers=workers, on_flow=keep, under=parts,
    )  # fmt: skip
    if troubles := [trouble for part in traced.values() for trouble in part.troubles]:
        raise click.ClickException("; ".join(troubles))
    return {name: [rows[name][seed] for seed in sorted(rows[name])] for name in cells}


@click.command()
@click.argument("algorithms", nargs=-1, type=click.Choice(score_why.OWN_KERNELS))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1))
def main(algorithms, workers):
    """Replace what zones/features.json has of the trials of ALGORITHMS, by default of both."""
    kept = score_why.kept_references()
    for algorithm in algorithms or score_why.OWN_KERNELS:
        kept[algorithm]["traits"] = {PROFILE: traits(algorithm, workers)}
    files.write(score_why.REFERENCES, score_why.references_text(kept))


if __name__ == "__main__":
    main()
