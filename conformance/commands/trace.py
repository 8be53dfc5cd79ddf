"""`conformance trace`: one trial of a cell with everything written down, for Wireshark, qvis and one's own eyes.

OUT/measurement.json               what a run would have recorded
OUT/emulator-to_client.pcap        what came out of the bottleneck's queue, and the acknowledgements before theirs
OUT/emulator-to_server.pcap        what the server put on its link, before the queue
OUT/client/keys.log, server/...    TLS secrets, from whoever writes them
OUT/server/qlog/, client/qlog/     qlog, from stacks that write it
OUT/server/stderr.txt ...          what the programs printed

A stack that writes logs makes system calls, which cost virtual time: its trial differs a little from the one that was
measured. Packets alone are captured without a trace of the capture: the trial is the same to the byte.
"""

import contextlib
import json
import pathlib
import shutil

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.guest import protocol
from conformance.lab import job, virtual
from conformance.model import grid as grids
from conformance.model.errors import UserError
from conformance.model.trial import Outcome
from conformance.support import files

_WALL_TIMEOUT_S = 600
#: captures are kept in the guest's memory until the trial is over
_MEMORY = "1G"
#: cells whose traces keep_some() takes
_MOST_KEPT = 3


def run(algorithm, choice, *, cell, seed, profile, packets_only, target, console):
    """Returns the exit status: 0 measured, 3 an error, 4 unsupported. Raises UserError."""
    cells = grids.cells(cell)
    if len(cells) != 1:
        raise UserError(f"{cell} is not one cell", "name one, such as 10mbps-20ms-1pct")
    if choice.lab != "virtual":
        raise UserError("traces are taken in the virtual room only", "leave --lab out")
    target = pathlib.Path(target)
    files.check_empty(target)
    bench = benches.find(choice)
    place = bench.place(algorithm)
    why_not = bench.adapter.why_not(algorithm) or place.why_not
    if why_not:
        raise UserError(why_not)
    trials = bench.trials(algorithm, documents.profile(profile or bench.profile, cells[0]), [seed])
    console.print(f"tracing {trials[0].scheme.id} at {cells[0].id}, seed {seed}")
    how = "packets" if packets_only else "all"
    with contextlib.closing(take(place.kernel, bench.adapter, [trials], how)) as traces:
        measurement, captured, folder = next(traces)
        keep(folder, target, measurement)
    return _show(measurement, captured, target, console)


def take(kernel, adapter, batches, how):
    """Make traced trials in one guest, which ends with this generator; yield (measurement, captured, folder) as they
    come.

    `batches`: lists of trials, one list for each cell. `how`: "packets" or "all". `captured`: {pcap file: (frames,
    frames that did not fit)}, empty where nothing was. `folder` holds what this module's head says, as long as it is
    not asked for the next; it is None where there is nothing. What a guest leaves undone is an error. Raises
    UserError.
    """
    reader = job.Reader(batches, adapter)
    with virtual.one_guest(kernel, adapter, batches, memory=_MEMORY, trace=how) as (guest, scratch):
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
            for measurement in reader.give_up(virtual.why_it_ended(guest.exit_status, scratch), {}):
                yield measurement, {}, None


def keep(folder, target, measurement):
    """Copy what take() left to the folder `target`, and the measurement. Raises UserError."""
    with files.folder(target, files.OTHER_FOLDER) as made:
        if folder:
            shutil.copytree(folder, made, dirs_exist_ok=True)
        files.write(made / "measurement.json", json.dumps(measurement.to_json(), indent=1, sort_keys=True) + "\n")


def keep_some(cells, choice, folder, console):
    """Trace the first seed of some of `cells`, (algorithm, profile, Cell), into FOLDER/ALGORITHM-CELL, and say so.

    Of a profile other than the grid's, into FOLDER/ALGORITHM-CELL-PROFILE.

    Bounded: packets of one trial are tens of megabytes. What was kept before is left alone. What cannot be kept is no
    reason to hide the violation.
    """
    cells = list(cells)
    if cells and choice.lab != "virtual":
        console.print("no traces kept: they are taken in the virtual room only", soft_wrap=True)
        return
    for algorithm, profile, cell in cells[:_MOST_KEPT]:
        own = "" if profile in documents.PROFILES.values() else f"-{profile}"
        target = pathlib.Path(folder) / f"{algorithm}-{cell.id}{own}"
        if target.exists():
            console.print(f"trace kept before: {target}", soft_wrap=True)
            continue
        try:
            run(
                algorithm, choice, cell=cell.id, seed=1, profile=profile, packets_only=False, target=target,
                console=console,
            )  # fmt: skip
        except UserError as error:
            console.print(f"no trace kept: {error}", soft_wrap=True)
            return
    if len(cells) > _MOST_KEPT:
        console.print(f"traces of {_MOST_KEPT} cells kept, of {len(cells)} that violate", soft_wrap=True)


def _show(measurement, captured, target, console):
    for name, (frames, lost) in sorted(captured.items()):
        console.print(f"{name}.pcap: {frames} frames" + (f", {lost} more did not fit" if lost else ""))
    others = [p for p in sorted(target.rglob("*")) if p.is_file() and p.suffix != ".pcap"]
    for path in others:
        console.print(f"{path.relative_to(target)}: {path.stat().st_size} bytes")
    if measurement.outcome in (Outcome.OK, Outcome.TIMEOUT):
        console.print(f"utilization {measurement.utilization:.4f}, {measurement.metrics['virtual_s']:.2f} s; {target}")
        return 0
    console.print(f"{measurement.outcome}: {measurement.message}", soft_wrap=True)
    return 4 if measurement.outcome is Outcome.UNSUPPORTED else 3
