"""`conformance dev document play`: what the document's controller does over a modelled path, without a guest."""

import dataclasses
import json
import pathlib
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.catalogue import documents
from conformance.commands.result import Result
from conformance.lab import adapter
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement
from conformance.results import store

STACK, ALGORITHM = "document", "bbrv3"
#: a transfer takes as long at the link's rate, as in the profiles atc25 and packets
_SECONDS_AT_RATE = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlayedRow:
    """Medians of the plays of a cell, and of what was measured in guests there, where results have it."""

    SHOWN = ("cell", "utilization", "lost_pct", "measured", "ratio")

    cell: Cell
    #: Median of the plays.
    utilization: float
    #: Median share of packets that the path lost or the queue dropped, in percent.
    lost_pct: float
    #: Median of what the results have of the stack in guests, in the profile packets; null if they have nothing.
    measured: float | None

    @property
    def ratio(self) -> float | None:
        """The play's utilization by the measured one."""
        return self.utilization / self.measured if self.measured else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Played(Result):
    """What the draft's controller does over modelled paths."""

    SCHEMA = "document-play"

    #: bbrv3, or bbrv3+ and deviations.
    called: str
    #: Plays of each cell.
    trials: int
    rows: Sequence[PlayedRow]


def compute(
    name: str, deviations: Sequence[str], trials: int, results: Sequence[pathlib.Path] = (), options: Sequence[str] = ()
) -> Played:
    """Play the cells of a grid, each so many times. Raises UserError.

    `options`: further KEY=VALUE of the program's verb `play`, such as queue=bdp:4. `results`: what to show beside.
    """
    called = "+".join((ALGORITHM, *deviations))
    cells = grid.cells(name)
    measured = _measured(store.read(*results), cells) if results else {}
    rows = []
    for cell in cells:
        plays = _plays(program(), [*_path(cell), f"called={called}", f"seeds=1:{trials}", *options])
        utilization, lost = (statistics.median(play[word] for play in plays) for word in ("utilization", "lost_pct"))
        rows.append(PlayedRow(cell=cell, utilization=utilization, lost_pct=lost, measured=measured.get(cell)))
    return Played(called=called, trials=trials, rows=rows)


def program() -> pathlib.Path:
    """Return the built adapter's program. Raises UserError."""
    built = adapter.load(STACK, adapter.OWN)
    return (built.build or built.manifest.folder) / STACK


def _path(cell: Cell) -> list[str]:
    """Return the play's words for a cell of the profile packets, in which ACKs are lost, too."""
    bytes_ = round(cell.bandwidth_mbps * 1e6 / 8 * _SECONDS_AT_RATE)
    return [
        f"rate_mbps={cell.bandwidth_mbps}", f"rtt_ms={2 * cell.one_way_delay_ms}", f"loss_pct={cell.loss_pct}",
        f"ack_loss_pct={cell.loss_pct}", f"write=0:{bytes_}",
    ]  # fmt: skip


def _plays(executable: pathlib.Path, words: Sequence[str]) -> list[dict[str, Any]]:
    done = subprocess.run([executable, "play", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise UserError(f"{executable.name} play: {said[-1]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _measured(measurements: Iterable[Measurement], cells: Iterable[Cell]) -> Mapping[Cell, float]:
    values_of: dict[Setting, list[float]] = {documents.profile("packets", cell): [] for cell in cells}
    for measurement in measurements:
        scheme, setting = measurement.scheme, measurement.setting
        if scheme.stack == STACK and scheme.algorithm == ALGORITHM and setting in values_of and measurement.metrics:
            values_of[setting].append(measurement.metrics["utilization"])
    return {setting.cell: statistics.median(values) for setting, values in values_of.items() if values}
