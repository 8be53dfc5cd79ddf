"""Trace Linux's BBRv2 in the heatmap's cells, and keep in zones/features.json what blame reads of a reference there.

    python tests/record_traits.py [--workers 2]

Users have to build that kernel themselves; what is recorded here stands in for it (docs/blame.md).
"""

import collections

import click
import score_why

from conformance.catalogue import documents, scenarios
from conformance.commands import blame, tracing
from conformance.engine import benches, runs
from conformance.model.diagnosis import blame as model
from conformance.support import files

ALGORITHM, PROFILE = "bbrv2", "packets"
#: of the share of a time, and of bytes
DIGITS = 6


def settings(algorithm):
    """Return {cell's id: Setting} of the heatmap."""
    zone = documents.zone_of(algorithm, "heatmap", PROFILE)
    return {cell.id: scenarios.setting(PROFILE, cell) for cell in zone.cells}


@click.command()
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1))
def main(workers):
    """Replace what zones/features.json has of BBRv2's trials."""
    cells, rows = settings(ALGORITHM), collections.defaultdict(dict)
    parts = {str(first): {name: cells[name] for name in list(cells)[first::workers]} for first in range(workers)}

    def keep(trial, flow):
        traits = model.seen(flow)
        numbers = (traits.waiting, traits.payload_bytes, traits.window_limited)
        rows[trial.setting.point.id][trial.seed] = [float(f"{number:.{DIGITS}g}") for number in numbers]

    traced = tracing.traced_all(
        dict.fromkeys(parts, (benches.find(), ALGORITHM)),
        {part: dict.fromkeys(of, runs.seeds(blame.TRIALS)) for part, of in parts.items()},
        workers=workers, on_flow=keep, under=parts,
    )  # fmt: skip
    if troubles := [trouble for part in traced.values() for trouble in part.troubles]:
        raise click.ClickException("; ".join(troubles))
    kept = score_why.kept_references()
    kept[ALGORITHM]["traits"] = {PROFILE: {name: [rows[name][seed] for seed in sorted(rows[name])] for name in cells}}
    files.write(score_why.REFERENCES, score_why.references_text(kept))


if __name__ == "__main__":
    main()
