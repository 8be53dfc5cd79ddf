"""Measure schemes in networks that change, and with an application that pauses, for `why --changes`.

The trials are those of clauses, with their packets kept. There is one trial for each network, because without random
loss, seeds differ only by microseconds.
"""

import pathlib
import tempfile
from collections.abc import Mapping

from conformance.catalogue import clauses
from conformance.commands.measuring import measure
from conformance.engine.benches import Bench
from conformance.model.clauses.changes import NETWORKS, Changed
from conformance.model.clauses.seen import Invisible, View
from conformance.support.notes import Notes


def look(
    schemes: Mapping[str, tuple[Bench, str]], seeds: range, workers: int | None, notes: Notes
) -> dict[str, Changed]:
    """Return {role: what was seen} for {role: (Bench, algorithm)}. Raises UserError."""
    with tempfile.TemporaryDirectory(prefix="conformance-changes-") as folder:
        return {
            role: seen(bench, algorithm, seeds, pathlib.Path(folder, f"{role}.jsonl"), workers, notes)
            for role, (bench, algorithm) in schemes.items()
        }


def seen(
    bench: Bench, algorithm: str, seeds: range, results: pathlib.Path, workers: int | None,
    notes: Notes,
) -> Changed:  # fmt: skip
    """Return what was seen of an algorithm; trials in the results file are not made again. Raises UserError."""
    names = {clauses.setting(network): name for name, network in NETWORKS.items()}
    sightings: dict[str, dict[int, View]] = {}
    problems = []
    work = [(algorithm, setting) for setting in names]
    for (_, setting), measurements in measure(bench, work, seeds, results, workers, notes):
        for measurement in measurements:
            try:
                sightings.setdefault(names[setting], {})[measurement.trial.seed] = View.of(measurement)
            except Invisible as why:
                said = f"{measurement.outcome}: {measurement.message}" if measurement.message else str(why)
                problems.append(
                    f"{measurement.trial.scheme.id} at {names[setting]}, seed {measurement.trial.seed}: {said}"
                )
    return Changed(views=sightings, problems=tuple(problems))
