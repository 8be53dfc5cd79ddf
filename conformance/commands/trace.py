"""`conformance trace`: make one trial of a cell and keep packets and logs, for Wireshark, qvis or reading.

OUT/measurement.json               the measurement that a run would have recorded
OUT/emulator-to_client.pcap        packets as they leave the bottleneck's queue; acknowledgements before their queue
OUT/emulator-to_server.pcap        packets as the server sends them, before the queue
OUT/client/keys.log, server/...    TLS secrets, from programs that write them
OUT/server/qlog/, client/qlog/     qlog, from stacks that write it
OUT/server/stderr.txt ...          what the programs printed

A stack that writes logs makes system calls, which cost virtual time, so its trial differs slightly from the one that
was measured. Capturing only packets changes nothing: that trial is the same to the byte.
"""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

from conformance.catalogue import documents
from conformance.commands import common
from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus, of_outcomes
from conformance.engine import benches
from conformance.engine.benches import Choice
from conformance.guest import protocol
from conformance.lab import allowance, endings, job, virtual
from conformance.model import grid as grids
from conformance.model.errors import UserError
from conformance.model.place import Cell, Point
from conformance.model.trial import Measurement, Trial
from conformance.support import files, limits
from conformance.support.notes import Notes

_WALL_TIMEOUT_S = 600
#: how many cells keep_some() traces at most
_MOST_KEPT = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A traced trial, kept in the folder `target`. `captured`: {pcap file: (frames, frames that did not fit)}."""

    measurement: Measurement
    captured: Mapping[str, tuple[int, int]]
    target: pathlib.Path

    @property
    def files(self) -> list[pathlib.Path]:
        """The files that the trial left besides its captures, sorted."""
        return [p for p in sorted(self.target.rglob("*")) if p.is_file() and p.suffix != ".pcap"]

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if the trial was measured, ERROR if it failed, UNKNOWN if the algorithm is not supported."""
        return of_outcomes([self.measurement.outcome])

    def to_json(self) -> Document:
        """Return a document of schemas/trace.json."""
        m = self.measurement
        return document(
            "trace", self.exit_status, scheme=common.scheme_json(m.trial.scheme), cell=m.trial.setting.cell.id,
            profile=m.trial.setting.profile, seed=m.trial.seed, outcome=str(m.outcome), message=m.message,
            utilization=m.utilization, folder=str(self.target),
            captures=[
                {"file": f"{name}.pcap", "frames": frames, "did_not_fit": lost}
                for name, (frames, lost) in sorted(self.captured.items())
            ],
            files=[
                {"file": str(path.relative_to(self.target)), "bytes": path.stat().st_size} for path in self.files
            ],
        )  # fmt: skip


def compute(
    algorithm: str, choice: Choice, *, cell: str, seed: int, profile: str | None, packets_only: bool,
    target: pathlib.Path, notes: Notes,
) -> Traced:  # fmt: skip
    """Make the trial and keep its files in the folder `target`; progress goes to `notes`. Raises UserError."""
    cells = grids.cells(cell)
    if len(cells) != 1:
        raise UserError(f"{cell} is not a single cell", "name one cell, such as 10mbps-20ms-1pct")
    target = pathlib.Path(target)
    files.check_empty(target)
    bench = benches.find(choice)
    place = bench.place(algorithm)
    common.require_offered(bench, algorithm)
    if place.why_not:
        raise UserError(place.why_not)
    trials = bench.trials(algorithm, documents.profile(profile or bench.profile, cells[0]), [seed])
    notes.say(f"tracing {trials[0].scheme.id} at {cells[0].id}, seed {seed}")
    how = "packets" if packets_only else "all"
    with contextlib.closing(take(place.kernel, bench.adapter, [trials], how)) as traces:
        measurement, captured, folder = next(traces)
        keep(folder, target, measurement)
    return Traced(measurement=measurement, captured=captured, target=target)


def take(
    kernel: Any, adapter: Any, batches: Sequence[Sequence[Trial]], how: str, cancelled: threading.Event | None = None,
    on_start: Callable[[virtual.Group], None] = lambda guest: None,
) -> Generator[tuple[Measurement, Mapping[str, tuple[int, int]], pathlib.Path | None], None, None]:  # fmt: skip
    """Make traced trials in one guest, which ends with this generator.

    Yield (measurement, captured, folder) as they come. `batches`: lists of trials, one list for each cell. `how`: one
    of protocol.TRACES. `captured`: {pcap file: (frames, frames that did not fit)}, empty if nothing was captured.
    `folder` has the files that this module's docstring lists, until the next trial is requested; it is None if there
    are none. Trials that the guest does not finish are errors. `on_start` is called with the guest. Raises UserError.
    """
    reader = job.Reader(batches, adapter)
    memory = virtual.CAPTURING_MEMORY
    largest = max((trials[0] for trials in batches), key=lambda trial: allowance.needed_mb(trial, how))
    with virtual.one_guest(kernel, adapter, largest, cancelled, memory=memory, trace=how) as (guest, scratch):
        job.Feeder(scratch).feed_all(reader.cells)
        on_start(guest)
        killed = limits.killed_for_memory()
        for event in virtual.events(guest, scratch, _WALL_TIMEOUT_S * len(batches)):
            for measurement in reader.feed(event, {}):
                if not isinstance(event, protocol.TrialDone):
                    yield measurement, {}, None
                    continue
                folder = scratch / "trace" / f"{event.index}-{event.facts.seed}"
                captured = event.facts.transfer.captured if event.facts.transfer else {}
                yield measurement, captured, folder if folder.exists() else None
                shutil.rmtree(folder, ignore_errors=True)
        while reader.owed:
            for measurement in reader.give_up(endings.why_it_ended(guest.exit_status, scratch, killed), {}):
                yield measurement, {}, None


def keep(folder: pathlib.Path | None, target: pathlib.Path, measurement: Measurement) -> None:
    """Copy the folder that take() yielded to `target`, and write the measurement there. Raises UserError."""
    with files.folder(target, files.OTHER_FOLDER) as made:
        if folder:
            shutil.copytree(folder, made, dirs_exist_ok=True)
        files.write(made / "measurement.json", json.dumps(measurement.to_json(), indent=1, sort_keys=True) + "\n")


def keep_some(
    places: Iterable[tuple[str, str, Point]], choice: Choice, folder: str | pathlib.Path, seed: int, notes: Notes,
    show: Callable[[Traced], None],
) -> None:  # fmt: skip
    """Trace this seed in the first few of `places`, (algorithm, profile, Cell), into FOLDER/ALGORITHM-CELL.

    `show` is called with each trace as soon as it is kept; progress goes to `notes`.

    Points of scenarios are left out, because their trials cannot be traced yet. Traces under a profile other than the
    grid's go into FOLDER/ALGORITHM-CELL-PROFILE. Only a few are kept, because the packets of one trial take tens of
    megabytes. Existing traces are left alone. No UserError is raised: a trace that cannot be kept must not hide the
    violation.
    """
    cells = [(algorithm, profile, at) for algorithm, profile, at in places if isinstance(at, Cell)]
    for algorithm, profile, cell in cells[:_MOST_KEPT]:
        own = "" if profile in documents.PROFILES.values() else f"-{profile}"
        target = pathlib.Path(folder) / f"{algorithm}-{cell.id}{own}"
        if target.exists():
            notes.say(f"trace already kept: {target}")
            continue
        try:
            found = compute(
                algorithm, choice, cell=cell.id, seed=seed, profile=profile, packets_only=False, target=target,
                notes=notes,
            )  # fmt: skip
        except UserError as error:
            notes.say(f"no trace kept: {error}")
            return
        show(found)
    if len(cells) > _MOST_KEPT:
        notes.say(f"kept traces of {_MOST_KEPT} of the {len(cells)} cells that violate")
