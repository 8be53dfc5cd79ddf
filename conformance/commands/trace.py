"""`conformance trace`: make one trial of a cell or a point and keep packets and logs, for Wireshark, qvis or reading.

OUT/measurement.json               the measurement that a run would have recorded
OUT/emulator-to_client.pcap        packets as they leave the bottleneck's queue; acknowledgements before their queue
OUT/emulator-to_server.pcap        packets as the server sends them, before the queue
OUT/sent.pcap, OUT/came.pcap       of a flow of a scenario: packets at its server, and at its client
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
from typing import Annotated, Any

from conformance.catalogue import documents, scenarios
from conformance.commands import common
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_outcomes
from conformance.engine import benches
from conformance.engine.benches import Choice
from conformance.guest import protocol
from conformance.lab import allowance, endings, job, virtual
from conformance.lab.reader import Reader
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Trial
from conformance.support import files, limits
from conformance.support.notes import Notes
from conformance.support.record import At, Record

_WALL_TIMEOUT_S = 600
#: how many cells keep_some() traces at most
_MOST_KEPT = 3


class CaptureRecord(Record):
    file: Annotated[str, At(lambda capture: f"{capture[0]}.pcap")]
    frames: Annotated[int, At("1.0")]
    #: Frames that were lost because memory was short.
    did_not_fit: Annotated[int, At("1.1")]


class TraceFileRecord(Record):
    file: str
    bytes: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeptTrace(Result):
    """A traced trial, kept in the folder `target`. `captured`: {pcap file: (frames, frames that did not fit)}."""

    SCHEMA = "trace"
    SHOWN = (
        "scheme=measurement.scheme",
        #: The cell, or the point of a scenario.
        "cell=measurement.setting.id",
        #: The profile, or the scenario.
        "profile=measurement.setting.profile",
        "flow", "seed=measurement.trial.seed", "outcome=measurement.outcome", "message=measurement.message",
        #: Null if nothing ran.
        "utilization=measurement.utilization",
        "folder=target", "captures", "files",
    )  # fmt: skip

    measurement: Measurement
    #: GROUP/N.
    flow: str
    captured: Mapping[str, tuple[int, int]]
    target: pathlib.Path

    @property
    def captures(self) -> Annotated[list[tuple[str, tuple[int, int]]], list[CaptureRecord]]:
        """The captures, by name."""
        return sorted(self.captured.items())

    @property
    def files(self) -> list[TraceFileRecord]:
        """All other files that the trial left."""
        others = [path for path in sorted(self.target.rglob("*")) if path.is_file() and path.suffix != ".pcap"]
        return [TraceFileRecord(file=str(path.relative_to(self.target)), bytes=path.stat().st_size) for path in others]

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if the trial was measured, ERROR if it failed, UNKNOWN if the algorithm is not supported."""
        return of_outcomes([self.measurement.outcome])


def compute(
    algorithm: str, choice: Choice, *, point: str, seed: int, profile: str | None, packets_only: bool,
    target: pathlib.Path, notes: Notes, flow: str | None = None,
) -> KeptTrace:  # fmt: skip
    """Make the trial and keep its files in the folder `target`; progress goes to `notes`. Raises UserError.

    `point`: a cell of a profile, or a point of a scenario. `flow`: GROUP/N of a scenario's flow, None for the first
    flow of the judged group.
    """
    target = pathlib.Path(target)
    files.check_empty(target)
    bench = benches.find(choice)
    place = bench.place(algorithm)
    common.require_offered(bench, algorithm)
    if place.why_not:
        raise UserError(place.why_not)
    setting = setting_at(point, profile or bench.profile)
    traced = flow_of(setting, flow)
    if why := job.why_not(setting, bench.adapter):
        raise UserError(why)
    trials = bench.trials(algorithm, setting, [seed])
    notes.say(f"tracing {trials[0].scheme.id} at {setting.id}, seed {seed}")
    how = "packets" if packets_only else "all"
    with contextlib.closing(take(place.kernel, bench.adapter, [trials], how, traced=traced)) as traces:
        measurement, captured, folder = next(traces)
        keep(folder, target, measurement)
    name = f"{setting.network.flows[traced[0]].name}/{traced[1]}"
    return KeptTrace(measurement=measurement, flow=name, captured=captured, target=target)


def setting_at(place: str, profile: str) -> Setting:
    """Return the setting of a profile at a cell, or of a scenario at a point. Raises UserError."""
    if profile not in documents.profile_names():
        scenario = scenarios.find(profile)
        return scenario.setting(scenario.parse(place))
    cells = grids.cells(place)
    if len(cells) != 1:
        raise UserError(f"{place} is not a single cell", "name one cell, such as 10mbps-20ms-1pct")
    return documents.profile(profile, cells[0])


def flow_of(setting: Setting, flow: str | None) -> job.FlowOf:
    """Return the flow of a network that GROUP/N names, by default the judged group's first. Raises UserError."""
    network = setting.network
    if network.states:
        raise UserError(f"{setting.profile} waits for a state, which takes two trials", "trace another scenario")
    # In a cell, one flow is recorded, in detail.
    flows = [network.tested] if job.is_detailed(setting) else network.flows
    groups = {group.name: (network.flows.index(group), group.count) for group in flows}
    name, _, number = (flow or f"{network.tested.name}/0").partition("/")
    at, count = groups.get(name, (0, 0))
    if not number.isdecimal() or int(number) >= count:
        known = ", ".join(f"{group}/{n - 1}" if n == 1 else f"{group}/0 to {n - 1}" for group, (_, n) in groups.items())
        raise UserError(f"there is no flow {flow!r}", f"choose of {known}")
    return at, int(number)


def take(
    kernel: Any, adapter: Any, batches: Sequence[Sequence[Trial]], how: str, cancelled: threading.Event | None = None,
    on_start: Callable[[virtual.Group], None] = lambda guest: None, traced: job.FlowOf | None = None,
) -> Generator[tuple[Measurement, Mapping[str, tuple[int, int]], pathlib.Path | None], None, None]:  # fmt: skip
    """Make traced trials in one guest, which ends with this generator.

    Yield (measurement, captured, folder) as they come. `batches`: lists of trials, one list for each cell. `how`: one
    of protocol.TRACES. `captured`: {pcap file: (frames, frames that did not fit)}, empty if nothing was captured.
    `folder` has the files that this module's docstring lists, until the next trial is requested; it is None if there
    are none. Trials that the guest does not finish are errors. `on_start` is called with the guest. `traced`: the flow
    whose packets are kept, if trials are of a scenario. Raises UserError.
    """
    reader = Reader(batches, adapter, traced=traced, trace=how)
    largest = max((trials[0] for trials in batches), key=lambda trial: allowance.needed_mb(trial, how, traced))
    with virtual.one_guest(kernel, adapter, largest, cancelled, traced, how) as (guest, scratch):
        job.Feeder(scratch).feed_all(reader.cells)
        on_start(guest)
        killed = limits.killed_for_memory()
        for event in virtual.events(guest, scratch, _WALL_TIMEOUT_S * len(batches)):
            for measurement in reader.feed(event, {}):
                if not isinstance(event, protocol.TrialDone):
                    yield measurement, {}, None
                    continue
                folder = scratch / "trace" / f"{event.index}-{event.facts.seed}"
                yield measurement, event.facts.captured, folder if folder.exists() else None
                shutil.rmtree(folder, ignore_errors=True)
        while reader.owed:
            for measurement in reader.give_up(endings.why_it_ended(guest.exit_status, scratch, killed), {}):
                yield measurement, {}, None


def keep(folder: pathlib.Path | None, target: pathlib.Path, measurement: Measurement) -> None:
    """Copy the folder that take() yielded to `target`, and write the measurement there. Raises UserError."""
    with files.folder(target, files.OTHER_FOLDER) as temporary:
        if folder:
            shutil.copytree(folder, temporary, dirs_exist_ok=True)
        files.write(temporary / "measurement.json", json.dumps(measurement.to_json(), indent=1, sort_keys=True) + "\n")


def keep_some(
    places: Iterable[tuple[str, str, Point]], choice: Choice, folder: str | pathlib.Path, seed: int, notes: Notes,
    show: Callable[[KeptTrace], None], flow: str | None = None,
) -> None:  # fmt: skip
    """Trace this seed in the first few of `places`, (algorithm, profile, point), into FOLDER/ALGORITHM-POINT.

    `show` is called with each trace as soon as it is kept; progress goes to `notes`. `flow`: see compute().

    Traces under a profile other than the grid's go into FOLDER/ALGORITHM-POINT-PROFILE. Only a few are kept, because
    the packets of one trial take tens of megabytes. Existing traces are left alone. No UserError is raised: a trace
    that cannot be kept must not hide the violation.
    """
    every = list(places)
    for algorithm, profile, at in every[:_MOST_KEPT]:
        profile_suffix = "" if profile in documents.PROFILES.values() else f"-{profile}"
        target = pathlib.Path(folder) / f"{algorithm}-{at.id}{profile_suffix}"
        if target.exists():
            notes.say(f"trace already kept: {target}")
            continue
        try:
            traced = compute(
                algorithm, choice, point=at.id, seed=seed, profile=profile, packets_only=False, target=target,
                notes=notes, flow=flow,
            )  # fmt: skip
        except UserError as error:
            notes.say(f"no trace kept: {error}")
            return
        show(traced)
    if len(every) > _MOST_KEPT:
        notes.say(f"kept traces of {_MOST_KEPT} of the {len(every)} points that violate")
