"""Turn trials into the job that a guest carries out, and the guest's events back into measurements."""

import collections.abc
import dataclasses
import pathlib
import shutil
import typing

from conformance.guest import protocol, seen, shared_job, wire
from conformance.lab import calibrations, captures, pki, proxy, shared, two_passes, version
from conformance.lab.adapter import Adapter
from conformance.lab.room import Batches
from conformance.model.emulation import calibration, congestion, credibility, shaping, shared_facts
from conformance.model.errors import UserError
from conformance.model.networks.proxy import SPLITTER, Proxy
from conformance.model.trials.trial import Measurement, Outcome, Trial
from conformance.support import paths

_READY_TIMEOUT_S = 30
#: limits of a stack: the address space is as large as runtimes like to reserve; threads count as processes, too
_LIMITS = protocol.Limits(memory_bytes=1 << 36, file_bytes=1 << 30, processes=256)
_PROBING = protocol.Probing(loss_packets=2000, seed=1)

#: the part of a Measurement that depends on the machine
Host = collections.abc.Mapping[str, typing.Any]
#: what a guest is fed: trials of one cell, or of one setting whose flows share a network
Fed = protocol.CellJob | shared_job.SharedCell


def write(
    scratch: pathlib.Path,
    adapter: Adapter,
    at: pathlib.Path | str,
    first: Trial,
    probe: bool = False,
    trace: str | None = None,
) -> None:
    """Fill the scratch folder with all but cells: job.json, the topology, the certificates. Raises UserError.

    `first` is any of the trials, which all share its scheme and its profile. `at` is where the guest finds the stack's
    folders: "adapter", "build" (what was compiled for it), "client", "client-build". `probe`: try out the adapter's
    contract in each cell instead of making trials. `trace`: one of protocol.TRACES, to record what happens in each
    trial in the scratch folder's trace/CELL'S INDEX-SEED.
    """
    if first.lab_digest != version.lab_version():
        # A guest reads the suite's files when it starts; its results must not be kept under an earlier version.
        raise UserError("the suite's own code changed while it was measuring", "run the same command again")
    setting = first.setting
    shutil.copytree(pki.ensure(), scratch / "pki")
    network, form = None, setting.cell_form
    if shared.is_detailed(setting) and not probe:
        network = shared.network_of(setting.network, first.scheme.stack, scratch, True)
    elif form is not None:
        shutil.copy(paths.data("topologies", f"{form.topology}.py"), scratch / "topology.py")
    elif probe:
        raise UserError("an adapter is probed in cells only")
    else:
        network = shared.network_of(setting.network, first.scheme.stack, scratch, False)
    job = protocol.Job(
        algorithm=first.scheme.algorithm,
        called=adapter.called(first.scheme.algorithm),
        kernel_algorithms=_tuple(adapter.kernel_names(first.scheme.algorithm)),
        server=_own(adapter, at),
        client=_client(adapter, at),
        transport=adapter.manifest.transport,
        port=adapter.manifest.port,
        hostname=pki.HOSTNAME,
        pki="/run/scratch/pki",
        work_dir="/run/work",
        limits=_LIMITS,
        ready_timeout_s=_READY_TIMEOUT_S,
        timeout_s=setting.timeout_s,
        sysctls=dict(setting.sysctls),
        offload=setting.offload,
        host_queue=setting.network.tested.host_queue,
        queue_handle=shaping.QUEUE_HANDLE,
        proxy=_proxy(form.proxy if form else None, adapter, scratch),
        rival=form.rival if form else None,
        bursts=setting.network.bursts,
        network=network,
        probing=_PROBING,
        probe=probe,
        trace=trace,
    )
    _write(scratch / "job.json", wire.dumps(job))


class Feeder:
    """Feeds cells to a guest by files in its scratch folder, in the order in which the guest carries them out."""

    def __init__(self, scratch: pathlib.Path) -> None:
        self._scratch, self._next = scratch, 0

    def feed(self, cell: Fed | None) -> None:
        """Give the guest one more cell; None says that no more follow."""
        _write(self._scratch / protocol.cell_file(self._next), "null" if cell is None else wire.dumps(cell))
        self._next += 1

    def feed_all(self, cells: collections.abc.Iterable[Fed]) -> None:
        """Give the guest these cells and no more: it ends when they are done."""
        for cell in (*cells, None):
            self.feed(cell)


def _write(target: pathlib.Path, text: str) -> None:
    """Write a file as a whole, as the guest may be waiting for it. No stack may read it: it describes the network."""
    aside = target.with_suffix(".aside")
    aside.touch(mode=0o600)
    aside.write_text(text)
    aside.rename(target)


def _tuple(names: collections.abc.Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _proxy(own: Proxy | None, adapter: Adapter, scratch: pathlib.Path) -> protocol.ProxyProgram | None:
    """Return how to run a proxy, and copy its program to the scratch folder; None if there is none."""
    if own is None:
        return None
    if adapter.manifest.transport != "tcp":
        raise UserError(f"a proxy splits TCP, but {adapter.name} serves over {adapter.manifest.transport}")
    shutil.copy(proxy.program(own), scratch / "proxy")
    options = tuple(proxy.options(own, adapter.manifest.port))
    return protocol.ProxyProgram(file="proxy", ours=own.program == SPLITTER, options=options)


def _own(adapter: Adapter, at: pathlib.Path | str) -> protocol.Program:
    rootfs = f"{at}/rootfs" if adapter.rootfs else None
    return protocol.Program(path=f"{at}/adapter/{adapter.manifest.program}", build_dir=f"{at}/build", rootfs=rootfs)


def _client(adapter: Adapter, at: pathlib.Path | str) -> protocol.Program:
    if adapter.client is None:
        return _own(adapter, at)
    program = f"{at}/client/{adapter.client.manifest.program}"
    return protocol.Program(path=program, build_dir=f"{at}/client-build", rootfs=None)


def cell_of(trials: collections.abc.Sequence[Trial]) -> protocol.CellJob:
    """Return what a guest has to know about the trials of one cell, the calibration included."""
    setting = trials[0].setting
    form, network = setting.cell_form, setting.network
    assert form is not None, "shared.cell_of() is for all other trials"
    # As in the published testbed, the BDP of a whole path sizes the queues of its segments.
    sized = form.links if form.queue_sized_by == "segment" else (form.cell,) * len(form.links)

    def lines(off_ns: collections.abc.Sequence[int]) -> tuple[tuple[str, ...], ...]:
        return tuple(
            tuple(shaping.tc_lines(network, link.data, off, bdp=cell.bdp_bytes))
            for link, off, cell in zip(network.links, off_ns, sized, strict=True)
        )

    links = range(len(network.links))
    return protocol.CellJob(
        calibrate=shared.link_probes(network),
        transfer_bytes=setting.transfer_bytes,
        bottleneck=form.bottleneck,
        rate_mbps=form.links[form.bottleneck].bandwidth_mbps,
        tc=lines([0 for _ in links]),
        trials=tuple(
            protocol.TrialJob(seed=trial.seed, tc=lines([shared.delay_off_ns(trial.seed, at) for at in links]))
            for trial in trials
        ),
    )


class Reader:
    """Turns a guest's events into measurements as they come, and knows which trials are still owed.

    Each owed trial gives one measurement, whatever the events are: events of no owed trial are ignored, and give_up()
    turns trials without an event into errors. `remembers`: calibrations are taken from the user's cache and kept there.
    `traces`: the folder where a guest leaves captures: of first passes, and of settings that ask for packets. `traced`:
    the flow of a scenario whose packets are kept for the user instead. `trace`: as in write().
    """

    def __init__(
        self,
        batches: Batches,
        adapter: Adapter,
        remembers: bool = False,
        traces: pathlib.Path | None = None,
        traced: shared.FlowOf | None = None,
        trace: str | None = None,
    ) -> None:
        self._adapter, self._traces, self._traced, self._trace = adapter, traces, traced, trace
        # If the harness chose the kernel's algorithm, a wrong version is not the stack's fault.
        self._kernels_own = adapter.kernel_algorithms is not None
        self._remembers = remembers
        self._owed: list[dict[int, Trial]] = []
        self._firsts: list[Trial] = []
        #: cells to feed the guest, as add() returns them
        self.cells: list[Fed] = []
        self._at = 0
        #: the guest's uptime at its last event
        self.uptime_s = 0.0
        self._network: protocol.Network | None = None
        self._calibrations: dict[int, calibrations.Observed] = {}
        #: {index of a cell: what its hops did to probe packets}
        self._hops: dict[int, typing.Any] = {}
        for trials in batches:
            self.add(trials)

    def add(self, trials: collections.abc.Sequence[Trial]) -> Fed:
        """Add the trials of one more cell to those that are owed; return the cell to feed to the guest."""
        first = trials[0]
        old = first.setting.cell_form is not None and not shared.is_detailed(first.setting)
        cell = self._calibrated(first, cell_of(trials) if old else shared.cell_of(trials, self._traced, self._trace))
        self._owed.append({trial.seed: trial for trial in trials})
        self._firsts.append(first)
        self.cells.append(cell)
        return cell

    def _calibrated(self, first: Trial, cell: Fed) -> Fed:
        """Return a cell without its calibration if the result of that is remembered."""
        known = calibrations.recall(first, cell, _PROBING) if self._remembers else None
        if known is None:
            return cell
        self._calibrations[len(self.cells)] = known
        return dataclasses.replace(cell, calibrate=())

    @property
    def owed(self) -> list[list[Trial]]:
        """The batches of trials that are still to come, without the empty ones."""
        return [list(batch.values()) for batch in self._owed if batch]

    @property
    def few_owed(self) -> bool:
        """Whether one trial at most is still owed."""
        return sum(map(len, self._owed)) <= 1

    def feed(self, event: protocol.Event, host: Host) -> collections.abc.Iterator[Measurement]:
        """Yield the measurements that one event completes; `host` is what to note about wall time."""
        self.uptime_s = event.uptime_s
        match event:
            case protocol.Network():
                self._network = event
            case protocol.CongestionControl(found=found):
                if why_not := self._kernels_other(wire.to_json(found)):
                    yield from self._unsupported(why_not, host)
            case protocol.CellBegins(index=index) if 0 <= index < len(self._owed):
                self._at = index
            case protocol.Calibration(index=index, observed=observed) if 0 <= index < len(self._owed):
                self._calibrations[index] = observed
                first, cell = self._firsts[index], self.cells[index]
                if self._remembers:
                    calibrations.remember(first, cell, _PROBING, observed)
            case protocol.TrialDone(index=index, facts=facts):
                if trial := self._take(index, facts.seed):
                    captured = facts.transfer.captured if facts.transfer else {}
                    yield self._without_captures(self._done(trial, index, flat(facts), captured, host), index)
            case protocol.SharedDone(index=index, facts=shared_seen):
                if (trial := self._take(index, shared_seen.seed)) and self._network:
                    if problem := self._uncalibrated(index):
                        yield self._error(trial, problem, host)
                        return
                    if shared.is_detailed(trial.setting):
                        done = self._done(trial, index, single(trial, shared_seen), shared_seen.captured, host)
                        yield self._without_captures(done, index)
                        return
                    counted = {} if shared_seen.system_calls is None else {"system_calls": shared_seen.system_calls}
                    known = wire.to_json(self._network)
                    if wrong := shared.hop_problems(trial, self._hops.get(index, ())):
                        yield self._error(trial, "calibration: " + "; ".join(wrong), host)
                        return
                    made = shared_facts.measurement(trial, wire.to_json(shared_seen), known, {**host, **counted})
                    unseen = {side: lost for side, (_, lost) in shared_seen.captured.items()}
                    with_states = self._with_states(made, index, not any(unseen.values()))
                    delivered = self._with_delivery(with_states, index, unseen, shared_seen.elapsed_s)
                    yield self._without_captures(self._with_packets(delivered, index, unseen), index)
            case protocol.HopsTried(index=index, observed=hops):
                self._hops[index] = wire.to_json(hops)
            case protocol.TrialFailed(index=index, seed=seed, message=message):
                if trial := self._take(index, seed):
                    yield self._error(trial, self._uncalibrated(index) or message, host)
            case protocol.Unsupported(message=message):
                yield from self._unsupported(message, host)
            case protocol.Fault(message=message):
                yield from self.give_up(message, host)

    def _with_states(self, found: Measurement, index: int, whole: bool) -> Measurement:
        """Add, to the measurement of a first pass, when the states that its trial waits for began; leave others alone.

        `whole`: all of its packets were captured.
        """
        network, evidence = found.trial.setting.network, found.evidence
        folder = self._captures_of(index, found.trial)
        if not network.states or not evidence or folder is None:
            return found
        try:
            times = two_passes.times(found.trial, folder, self._adapter.manifest.transport, whole)
        except UserError as why:
            return self._error(found.trial, f"first pass: {why}", found.host)
        return dataclasses.replace(found, evidence={**evidence, "states": times})

    def _with_delivery(
        self, found: Measurement, index: int, unseen: collections.abc.Mapping[str, int], elapsed_s: float
    ) -> Measurement:
        """Add when the bytes of the tested group's first flow arrived, if its network asks for that."""
        network = found.trial.setting.network
        if not network.delivery or network.states or self._traced:
            return found
        transport, folder = self._adapter.manifest.transport, self._captures_of(index, found.trial)
        return captures.with_delivery(found, folder, unseen, transport, elapsed_s)

    def give_up(self, why: str, host: Host) -> collections.abc.Iterator[Measurement]:
        """Yield an error for every trial still owed in the cell that was under way; other cells are unharmed."""
        batch = next((b for b in (*self._owed[self._at :][:1], *self._owed) if b), {})
        while batch:
            yield self._error(batch.pop(min(batch)), why, host)

    def _take(self, index: int, seed: int) -> Trial | None:
        """Return an owed trial, which is then owed no longer; None if there is none."""
        return self._owed[index].pop(seed, None) if 0 <= index < len(self._owed) else None

    def _done(
        self, trial: Trial, index: int, facts: Host, captured: collections.abc.Mapping[str, tuple[int, int]], host: Host
    ) -> Measurement:
        if facts.get("system_calls") is not None:
            # This is a cost, not a part of the result: it counts what earlier trials left to do, too.
            host = {**host, "system_calls": facts["system_calls"]}
        # This is checked once more, since the warm-up may have been too short to be sampled.
        if why_not := self._kernels_other(facts["sampled"]["congestion_control"] if facts["ready"] else None):
            return Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why_not, host=dict(host))
        if problem := self._uncalibrated(index):
            return self._error(trial, problem, host)
        found = credibility.measurement(trial, facts, self._seen_network(index), dict(host))
        return self._with_packets(found, index, {name: unseen for name, (_, unseen) in captured.items()})

    def _with_packets(
        self, measurement: Measurement, index: int, unseen: collections.abc.Mapping[str, int]
    ) -> Measurement:
        setting = measurement.trial.setting
        if not setting.packets or setting.network.states:
            return measurement
        transport, folder = self._adapter.manifest.transport, self._captures_of(index, measurement.trial)
        return captures.with_packets(measurement, folder, unseen, transport)

    def _captures_of(self, index: int, trial: Trial) -> pathlib.Path | None:
        return None if self._traces is None else self._traces / f"{index}-{trial.seed}"

    def _without_captures(self, found: Measurement, index: int) -> Measurement:
        if folder := self._captures_of(index, found.trial):
            shutil.rmtree(folder, ignore_errors=True)  # they have been read
        return found

    def _uncalibrated(self, index: int) -> str | None:
        """Return why no measurement of a cell counts; None if its emulators delivered everything."""
        if self._network is None or index not in self._calibrations:
            return "calibration: the guest did not say what the emulators delivered"
        observed = [wire.to_json(link) for link in self._calibrations[index]]
        setting = self._firsts[index].setting
        problems = [*calibration.problems(setting.network, observed)]
        problems += calibration.sysctl_problems(setting, self._network.sysctls)
        return "calibration: " + "; ".join(problems) if problems else None

    def _seen_network(self, index: int) -> dict[str, typing.Any]:
        return {**wire.to_json(self._network), "calibration": wire.to_json(self._calibrations[index])}

    def _kernels_other(self, found: Host | None) -> str | None:
        """Return why the kernel's algorithm, if the harness chose it, is not the one that was requested; or None."""
        if not self._kernels_own or not self._firsts:
            return None
        return congestion.not_as_asked(self._firsts[0].scheme.algorithm, found)

    def _unsupported(self, why: str, host: Host) -> collections.abc.Iterator[Measurement]:
        for batch in self._owed:
            while batch:
                trial = batch.pop(min(batch))
                yield Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why, host=dict(host))

    @staticmethod
    def _error(trial: Trial, why: str, host: Host) -> Measurement:
        return Measurement(trial=trial, outcome=Outcome.ERROR, message=why, host=dict(host))


def flat(facts: seen.TrialFacts) -> dict[str, typing.Any]:
    """Return a trial's facts as conformance/model/emulation reads them: one dictionary, with "ready" in it."""
    found = {**wire.to_json(facts), "ready": facts.transfer is not None, "timed_out": False}
    return {**found, **(found.pop("transfer") or {})}


def single(trial: Trial, facts: shared_job.SharedFacts) -> dict[str, typing.Any]:
    """Return the facts of a trial that records one flow in detail as flat() does."""
    network = trial.setting.network
    group = facts.groups[network.flows.index(network.tested)]
    detail = facts.detail
    found = {
        "seed": facts.seed, "transfer_bytes": trial.setting.transfer_bytes, "virtual_s": facts.virtual_s,
        "server": wire.to_json(group.server), "client": wire.to_json(group.flows[0].client) if group.flows else None,
        "ready": detail is not None, "timed_out": facts.timed_out,
    }  # fmt: skip
    if detail is None:
        return found
    return {
        **found, **wire.to_json(detail), "elapsed_s": facts.elapsed_s, "system_calls": facts.system_calls,
        "qdiscs": [queue for both in facts.links for direction in both for queue in direction.qdiscs],
        "proxy": None, "captured": facts.captured,
    }  # fmt: skip


def probed(events: collections.abc.Iterable[protocol.Event]) -> dict[str, dict[str, typing.Any]]:
    """Return {probe's name: facts}, as contract.clauses() reads them, from the events of a guest that probed."""
    found = {}
    for event in events:
        match event:
            case protocol.Probed(name=name, facts=facts):
                found[name] = wire.to_json(facts)
            case protocol.VisitsProbed(facts=visits):
                found["visits"] = wire.to_json(visits)
            case protocol.TransferProbed(facts=transfer, frames=frames, written_outside=outside):
                found["transfer"] = {
                    **flat(transfer),
                    "frames": wire.to_json(frames),
                    "written_outside": list(outside),
                }
    return found
