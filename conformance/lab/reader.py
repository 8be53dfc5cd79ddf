"""Turn a guest's events into measurements."""

import dataclasses
import pathlib
import shutil
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.guest import protocol, seen, wire
from conformance.guest.network_job import CellJob
from conformance.lab import calibrations, captures, job, two_passes
from conformance.lab.adapter import Adapter
from conformance.lab.room import Batches
from conformance.model.emulation import calibration, congestion, facts as trial_facts
from conformance.model.errors import UserError
from conformance.model.trials.trial import Measurement, Outcome, Trial

#: the part of a Measurement that depends on the machine
Host = Mapping[str, typing.Any]


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
        traced: job.FlowOf | None = None,
        trace: str | None = None,
    ) -> None:
        self._adapter, self._traces, self._traced, self._trace = adapter, traces, traced, trace
        # If the harness chose the kernel's algorithm, a wrong version is not the stack's fault.
        self._kernels_own = adapter.kernel_algorithms is not None
        self._remembers = remembers
        self._owed: list[dict[int, Trial]] = []
        self._firsts: list[Trial] = []
        #: cells to feed the guest, as add() returns them
        self.cells: list[CellJob] = []
        self._at = 0
        #: the guest's uptime at its last event
        self.uptime_s = 0.0
        self._network: protocol.NetworkUp | None = None
        self._calibrations: dict[int, calibrations.Observed] = {}
        #: {index of a cell: what its hops did to probe packets}
        self._hops: dict[int, typing.Any] = {}
        for trials in batches:
            self.add(trials)

    def add(self, trials: Sequence[Trial]) -> CellJob:
        """Add the trials of one more cell to those that are owed; return the cell to feed to the guest."""
        first = trials[0]
        cell = self._calibrated(first, job.cell_of(trials, self._traced, self._trace))
        self._owed.append({trial.seed: trial for trial in trials})
        self._firsts.append(first)
        self.cells.append(cell)
        return cell

    def _calibrated(self, first: Trial, cell: CellJob) -> CellJob:
        """Return a cell without its calibration if the result of that is remembered."""
        known = calibrations.recall(first, cell, job.PROBING) if self._remembers else None
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

    def feed(self, event: protocol.Event, host: Host) -> Iterator[Measurement]:
        """Yield the measurements that one event completes; `host` is what to note about wall time."""
        self.uptime_s = event.uptime_s
        match event:
            case protocol.NetworkUp():
                self._network = event
            case protocol.CongestionControl(observed=shown):
                if why_not := self._kernels_other(shown):
                    yield from self._unsupported(why_not, host)
            case protocol.CellBegins(index=index) if 0 <= index < len(self._owed):
                self._at = index
            case protocol.Calibration(index=index, observed=observed) if 0 <= index < len(self._owed):
                self._calibrations[index] = observed
                first, cell = self._firsts[index], self.cells[index]
                if self._remembers:
                    calibrations.remember(first, cell, job.PROBING, observed)
            case protocol.TrialDone(index=index, facts=facts):
                if trial := self._take(index, facts.seed):
                    yield self._without_captures(self._done(trial, index, facts, host), index)
            case protocol.HopsTried(index=index, observed=hops):
                self._hops[index] = wire.to_json(hops)
            case protocol.TrialFailed(index=index, seed=seed, message=message):
                if trial := self._take(index, seed):
                    yield self._error(trial, self._uncalibrated(index) or message, host)
            case protocol.Unsupported(message=message):
                yield from self._unsupported(message, host)
            case protocol.Fault(message=message):
                yield from self.give_up(message, host)

    def _with_states(self, measurement: Measurement, index: int, whole: bool) -> Measurement:
        """Add, to the measurement of a first pass, when the states that its trial waits for began; leave others alone.

        `whole`: all of its packets were captured.
        """
        network, evidence = measurement.trial.setting.network, measurement.evidence
        folder = self._captures_of(index, measurement.trial)
        if not network.states or not evidence or folder is None:
            return measurement
        try:
            times = two_passes.times(measurement.trial, folder, self._adapter.manifest.transport, whole)
        except UserError as why:
            return self._error(measurement.trial, f"first pass: {why}", measurement.host)
        return dataclasses.replace(measurement, evidence={**evidence, "states": times})

    def _with_delivery(
        self, measurement: Measurement, index: int, unseen: Mapping[str, int], elapsed_s: float
    ) -> Measurement:
        """Add when the bytes of the tested group's first flow arrived, if its network asks for that."""
        network = measurement.trial.setting.network
        if not network.delivery or network.states or self._traced:
            return measurement
        transport, folder = self._adapter.manifest.transport, self._captures_of(index, measurement.trial)
        return captures.with_delivery(measurement, folder, unseen, transport, elapsed_s)

    def give_up(self, why: str, host: Host) -> Iterator[Measurement]:
        """Yield an error for every trial still owed in the cell that was under way; other cells are unharmed."""
        batch = next((b for b in (*self._owed[self._at :][:1], *self._owed) if b), {})
        while batch:
            yield self._error(batch.pop(min(batch)), why, host)

    def _take(self, index: int, seed: int) -> Trial | None:
        """Return an owed trial, which is then owed no longer; None if there is none."""
        return self._owed[index].pop(seed, None) if 0 <= index < len(self._owed) else None

    def _done(self, trial: Trial, index: int, facts: seen.TrialFacts, host: Host) -> Measurement:
        if facts.system_calls is not None:
            # This is a cost, not a part of the result: it counts what earlier trials left to do, too.
            host = {**host, "system_calls": facts.system_calls}
        if problem := self._uncalibrated(index):
            return self._error(trial, problem, host)
        if wrong := job.hop_problems(trial, self._hops.get(index, ())):
            return self._error(trial, "calibration: " + "; ".join(wrong), host)
        unseen = {side: lost for side, (_, lost) in facts.captured.items()}
        if not _says_what_became(trial, facts):
            return self._error(trial, "the guest did not say what became of the stack's programs", host)
        network = {**wire.to_json(self._network), "calibration": wire.to_json(self._calibrations[index])}
        measurement = trial_facts.measurement(trial, wire.to_json(facts), network, host)
        with_states = self._with_states(measurement, index, not any(unseen.values()))
        return self._with_packets(self._with_delivery(with_states, index, unseen, facts.elapsed_s), index, unseen)

    def _with_packets(self, measurement: Measurement, index: int, unseen: Mapping[str, int]) -> Measurement:
        setting = measurement.trial.setting
        if not setting.packets or setting.network.states:
            return measurement
        transport, folder = self._adapter.manifest.transport, self._captures_of(index, measurement.trial)
        return captures.with_packets(measurement, folder, unseen, transport)

    def _captures_of(self, index: int, trial: Trial) -> pathlib.Path | None:
        return None if self._traces is None else self._traces / f"{index}-{trial.seed}"

    def _without_captures(self, measurement: Measurement, index: int) -> Measurement:
        if folder := self._captures_of(index, measurement.trial):
            shutil.rmtree(folder, ignore_errors=True)  # they have been read
        return measurement

    def _uncalibrated(self, index: int) -> str | None:
        """Return why no measurement of a cell counts; None if its emulators delivered everything."""
        if self._network is None or index not in self._calibrations:
            return "calibration: the guest did not say what the emulators delivered"
        observed = [wire.to_json(link) for link in self._calibrations[index]]
        setting = self._firsts[index].setting
        problems = [*calibration.problems(setting.network, observed)]
        problems += calibration.sysctl_problems(setting, self._network.sysctls)
        return "calibration: " + "; ".join(problems) if problems else None

    def _kernels_other(self, shown: seen.CongestionControlSeen | None) -> str | None:
        """Return why the kernel's algorithm, if the harness chose it, is not the one that was requested; or None."""
        if not self._kernels_own or not self._firsts:
            return None
        return congestion.not_as_asked(self._firsts[0].scheme.algorithm, wire.to_json(shown))

    def _unsupported(self, why: str, host: Host) -> Iterator[Measurement]:
        for batch in self._owed:
            while batch:
                trial = batch.pop(min(batch))
                yield Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why, host=dict(host))

    @staticmethod
    def _error(trial: Trial, why: str, host: Host) -> Measurement:
        return Measurement(trial=trial, outcome=Outcome.ERROR, message=why, host=dict(host))


def _says_what_became(trial: Trial, facts: seen.TrialFacts) -> bool:
    """Return whether a guest reports what its setting asks for of the stack's programs."""
    network, stack = trial.setting.network, trial.scheme.stack
    if len(facts.groups) != len(network.flows) or len(facts.links) != len(network.links):
        return False
    of_stack = [of for group, of in zip(network.flows, facts.groups, strict=True) if job.is_by_stack(group, stack)]
    ended = [flow for of in of_stack for flow in of.flows if of.ready and flow.complete]
    return all(of.server and of.flows for of in of_stack) and all(flow.client for flow in ended)


def probed(events: Iterable[protocol.Event]) -> dict[str, dict[str, typing.Any]]:
    """Return {probe's name: facts}, as contract.clauses() reads them, from the events of a guest that probed."""
    by_name = {}
    for event in events:
        match event:
            case protocol.Probed(name=name, facts=facts):
                by_name[name] = wire.to_json(facts)
            case protocol.VisitsProbed(facts=visits):
                by_name["visits"] = wire.to_json(visits)
            case protocol.TransferProbed(facts=transfer, frames=frames, written_outside=outside):
                by_name["transfer"] = {
                    **wire.to_json(transfer),
                    "frames": wire.to_json(frames),
                    "written_outside": list(outside),
                }
    return by_name
