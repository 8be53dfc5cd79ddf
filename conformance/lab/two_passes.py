"""Run trials in two passes: one finds when a state begins; the other, with the same seed, changes the network then.

Trials are deterministic, so until the change, the second pass is the same as the first. The first pass is the trial
whose schedule waits for states, with the changes that wait due after its end (job.py); its captures tell when the
states began. The second pass is the same trial with these times instead of the states.
"""

import collections
import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from conformance.lab import captures
from conformance.lab.room import Batches
from conformance.model.diagnosis import pcap
from conformance.model.errors import UserError
from conformance.model.networks.schedule import STATES
from conformance.model.trials.trial import Measurement, Outcome, Trial

#: in the guest (kernel_flows.py): the first port of the kernel's flows
_FIRST_LOCAL_PORT = 20_000
#: the source port in a Packet's identity
_SOURCE_PORT = slice(20, 22)
#: {state: (when it began in s of the trial, the path's round trip in s)}, without states that never came
Times = Mapping[str, tuple[float, float]]


def run(once: Callable[[Batches], Iterator[Measurement]], batches: Batches) -> Iterator[Measurement]:
    """Yield the measurements of trials, made in one pass or two; `once` makes each trial that it gets in one pass."""
    seconds: collections.deque[Sequence[Trial]] = collections.deque()
    second_passes: dict[str, tuple[Trial, Times]] = {}
    rest = iter(batches)
    waited_for: set[str] = set()

    def supply() -> Iterator[Sequence[Trial]]:
        while True:
            if seconds:
                yield seconds.popleft()
            elif (batch := next(rest, None)) is not None:
                waited_for.update(trial.key for trial in batch if _states(trial))
                yield batch
            elif waited_for:
                yield ()
            else:
                return

    for measurement in once(supply()):
        if measurement.trial.key in second_passes:
            trial, began = second_passes.pop(measurement.trial.key)
            yield _second(trial, measurement, began)
        elif not _states(measurement.trial) or measurement.outcome not in (Outcome.OK, Outcome.TIMEOUT):
            waited_for.discard(measurement.trial.key)
            yield measurement
        else:
            waited_for.discard(measurement.trial.key)
            began = measurement.evidence["states"]
            try:
                then = second_pass(measurement.trial, began)
            except UserError as why:
                never = [state for state in _states(measurement.trial) if state not in began]
                yield Measurement(
                    trial=measurement.trial, outcome=Outcome.ERROR, message=str(why), host=measurement.host,
                    evidence={"never_came": never} if never else {},
                )  # fmt: skip
            else:
                second_passes[then.key] = measurement.trial, began
                seconds.append([then])


def _states(trial: Trial) -> tuple[str, ...]:
    return trial.setting.network.states


def second_pass(trial: Trial, times: Times) -> Trial:
    """Return a trial with times instead of states. Raises UserError if a state never came, or came too late."""
    setting, network = trial.setting, trial.setting.network
    for state in network.states:
        if state not in times:
            raise UserError(f"state {state} never came in the first pass: {STATES[state]}", "wait for another")
    return dataclasses.replace(trial, setting=dataclasses.replace(setting, network=network.at(times)))


def _second(trial: Trial, measurement: Measurement, times: Times) -> Measurement:
    """Return the measurement of a second pass as that of the trial that was requested."""
    evidence = measurement.evidence
    if measurement.outcome in (Outcome.OK, Outcome.TIMEOUT):
        evidence = {**evidence, "triggered": {state: times[state][0] for state in _states(trial)}}
    return dataclasses.replace(measurement, trial=trial, evidence=evidence)


def times(trial: Trial, folder: pathlib.Path, transport: str, whole: bool) -> Times:
    """Return when the states that a trial waits for began, from the captures of its first pass in a folder.

    `whole`: all packets were captured. Raises UserError if the captures are missing, or too incomplete to tell.
    """
    from conformance.model.captures import states
    from conformance.model.diagnosis import flow as flows

    network = trial.setting.network
    tested = network.tested
    where = captures.captures_of(trial.setting, trial.scheme.stack)
    protocol = captures.PROTOCOLS[transport if tested.is_stack else "tcp"]
    sent, answers = _captured(folder / f"{where.sent}.pcap", protocol, where)
    came, _ = _captured(folder / f"{where.came}.pcap", protocol, where)
    if not tested.is_stack:
        sent, came = ([packet for packet in of if _is_first(packet)] for of in (sent, came))
    rtt_s, back_s = network.rtt_s(tested), network.back_s(tested)
    # Not by flows.delays_s(): a state found a microsecond later would be another trial.
    flow = flows.flow(
        sent, came, answers, forward_s=rtt_s - back_s, back_s=back_s,
        bytes_per_s=(network.rate_mbps(tested) or 0) * 1e6 / 8,
    )  # fmt: skip
    began = {state: states.BEGINS_S[state](flow) for state in network.states}
    if None in began.values() and not whole:
        raise UserError("the memory for captures was full", "use a lower rate or a shorter time")
    return {state: (round(flow.began_s + at_s, 9), rtt_s) for state, at_s in began.items() if at_s is not None}


def _is_first(packet: pcap.Packet) -> bool:
    """Return whether a packet is of the first of the kernel's flows, which have one receiver."""
    return int.from_bytes(packet.identity[_SOURCE_PORT], "big") == _FIRST_LOCAL_PORT


def _captured(
    path: pathlib.Path, protocol: int, where: captures.Captures
) -> tuple[list[pcap.Packet], list[pcap.Packet]]:
    try:
        data = path.read_bytes()
    except OSError:
        raise UserError("the first pass left no capture", "run the same command again") from None
    path.unlink()
    return pcap.packets(data, protocol, where.server, where.clients, where.moves)
