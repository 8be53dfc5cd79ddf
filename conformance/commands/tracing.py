"""Trace schemes in the telling cells (feature_table.py) and read their flows, for `why`, `compare`, `gate --features`.

Each scheme is traced in a guest of its own, several at the same time.
"""

import concurrent.futures
import contextlib
import dataclasses
import pathlib
import threading
import types
from collections.abc import Callable, Mapping, Sequence

from conformance.catalogue import documents
from conformance.commands import trace
from conformance.engine.benches import Bench
from conformance.lab import captures as captured_at, job, virtual
from conformance.lab.captures import PROTOCOLS, Captures
from conformance.model.diagnosis import by_trial, feature_table, flow as flows, pcap
from conformance.model.diagnosis.feature_table import Feature
from conformance.model.errors import UserError
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome, Scheme, Trial
from conformance.support import limits
from conformance.support.notes import Bar

#: the seeds to trace: {cell's name: seeds}
SeedsByCell = Mapping[str, Sequence[int]]
#: header bytes of a full packet, by IP protocol: Ethernet, IP, TCP with timestamps; Ethernet, IP, UDP and some 30 bytes
# of QUIC (short header, connection ID, packet number, the head of a STREAM frame, authentication tag: RFC 9000, 17.3.1;
# RFC 9001, 5.3)
_HEADER_BYTES = {6: 66, 17: 72}


def captures(under: Mapping[str, Setting] | None = None) -> Captures:
    """Return the Captures of the telling cells, or of `under`, which all have one topology. Raises UserError."""
    return captured_at.captures_of(next(iter((under or settings()).values())))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TracedPlace:
    """Where features are read from traces; `cell`: the name of the telling cell that it is, or is like.

    `of`: the flow that is traced at a point of a scenario; None in a cell.
    """

    cell: str
    setting: Setting
    of: job.FlowOf | None = None

    def features(self, algorithm: str) -> list[Feature]:
        """Return the features of an algorithm that are read there; at a point alone, none that another place scales."""
        if self.of is not None:
            return feature_table.readable(self.cell, algorithm)
        return [feature for feature in by_trial.told(algorithm) if feature.cell == self.cell]


@dataclasses.dataclass(kw_only=True)
class Traced:
    """The traces of one scheme: `flows` is {cell's name: {seed: Flow}}, `problems` are sentences."""

    scheme: Scheme
    flows: dict[str, dict[int, flows.Flow]]
    problems: list[str]
    #: {cell's name: where it was traced}
    under: Mapping[str, Setting] = dataclasses.field(default_factory=lambda: settings())
    unsupported: str | None = None
    #: {cell's name: {seed: what the stack's programs said}} of trials in which the stack failed
    failed: dict[str, dict[int, str]] = dataclasses.field(default_factory=dict)
    #: the kernel's name if it has patches or parameters, so that its release does not identify it
    kernel: str | None = None

    @property
    def troubles(self) -> list[str]:
        """Why there are no traces of some trials, as sentences: the stack's failures, and problems."""
        return self.problems + [
            f"{self.name} at {self.under[cell].id}, seed {seed}: failed: {message}"
            for cell, of in self.failed.items()
            for seed, message in of.items()
        ]

    @property
    def name(self) -> str:
        """The scheme's id, with the name of its kernel if `kernel` is set."""
        return f"{self.scheme.id} on kernel {self.kernel}" if self.kernel else str(self.scheme.id)


def traced_all(
    schemes: Mapping[str, tuple[Bench, str]], plans: Mapping[str, SeedsByCell], target: pathlib.Path | None = None,
    bar: Bar | None = None, workers: int | None = None, budget_s: float | None = None,
    on_flow: Callable[[Trial, flows.Flow], None] = lambda trial, flow: None,
    under: Mapping[str, Mapping[str, Setting]] = types.MappingProxyType({}), of: job.FlowOf | None = None,
) -> dict[str, Traced]:  # fmt: skip
    """Return {role: Traced} for {role: (Bench, algorithm)}, each in a guest of its own, at most `workers` at a time.

    Without `workers`, as many guests run as this process may run at once.

    `plans`: {role: SeedsByCell}. `under`: {role: {cell's name: Setting}} of roles that are not traced in the telling
    cells; all settings of a role have the same profile, because a guest has only one. `of`: the flow to trace at points
    of scenarios, by default the first one of each setting's judged group. After `budget_s` seconds, the guests are
    ended, and what was traced by then is returned. An exception here, such as an interrupt, ends the guests at once.
    `on_flow` is called with each trial and its flow.
    """
    stop = threading.Event()
    guests: list[virtual.Group] = []

    def end() -> None:
        stop.set()
        for guest in guests:
            guest.end()

    def started(guest: virtual.Group) -> None:
        guests.append(guest)
        if stop.is_set():
            guest.end()

    alarm = threading.Timer(budget_s, end) if budget_s is not None else None
    with concurrent.futures.ThreadPoolExecutor(min(len(schemes), workers or limits.workers())) as executor:
        if alarm:
            alarm.start()
        futures = {
            role: executor.submit(
                traced,
                bench,
                algorithm,
                plans[role],
                target / role if target else None,
                bar,
                stop,
                started,
                on_flow,
                under.get(role),
                of,
            )
            for role, (bench, algorithm) in schemes.items()
        }
        try:
            return {role: future.result() for role, future in futures.items()}
        except UserError:
            # When the time is up, a guest that still waits for a core raises UserError: it has traced nothing.
            if not stop.is_set():
                end()
                raise
            done = {role: future for role, future in futures.items() if not future.exception()}
            return {role: future.result() for role, future in done.items()}
        except BaseException:
            end()
            raise
        finally:
            if alarm:
                alarm.cancel()


def traced(
    bench: Bench, algorithm: str, plan: SeedsByCell, target: pathlib.Path | None = None,
    bar: Bar | None = None, stop: threading.Event | None = None,
    on_start: Callable[[virtual.Group], None] = lambda guest: None,
    on_flow: Callable[[Trial, flows.Flow], None] = lambda trial, flow: None,
    under: Mapping[str, Setting] | None = None, of: job.FlowOf | None = None,
) -> Traced:  # fmt: skip
    """Trace an algorithm in the telling cells, or in those of `under`, in one guest. Raises UserError.

    `target`: the folder that keeps the trials' files. `under`: {cell's name: Setting}, all of one profile. `of`: the
    flow to trace at a point of a scenario, by default the first one of the judged group.
    """
    under = settings() if under is None else under
    first = next(iter(under.values()))
    of = of or (None if job.is_detailed(first) else trace.flow_of(first, None))
    names = {setting: name for name, setting in under.items()}
    batches = [bench.trials(algorithm, under[name], of) for name, of in plan.items() if of]
    kernel = bench.place(algorithm).kernel
    special = kernel.name if kernel.patches or kernel.parameters else None
    under_way = Traced(scheme=bench.scheme(algorithm), flows={}, problems=[], kernel=special, under=under)
    if stop and stop.is_set():
        return under_way
    how = "packets" if target else "heads"
    with contextlib.closing(trace.take(kernel, bench.adapter, batches, how, stop, on_start, of)) as traces:
        for measurement, captured, folder in traces:
            if stop and stop.is_set():
                break
            setting, seed = measurement.setting, measurement.trial.seed
            if measurement.outcome is Outcome.UNSUPPORTED:
                under_way.unsupported = f"unsupported: {measurement.message}"
                break
            where = f"{setting.id}, seed {seed}"
            if measurement.outcome is Outcome.FAILED:
                under_way.failed.setdefault(names[setting], {})[seed] = str(measurement.message)
            else:
                try:
                    flow, full_s = _flow(measurement, captured, folder, PROTOCOLS[bench.adapter.manifest.transport], of)
                except UserError as why:
                    under_way.problems.append(f"{under_way.name} at {where}: {why}")
                else:
                    under_way.flows.setdefault(names[setting], {})[seed] = flow
                    on_flow(measurement.trial, flow)
                    if full_s:
                        too_many = "the memory for captures was full"
                        under_way.problems.append(f"{under_way.name} at {where}, after {full_s:.1f} s: {too_many}")
            if target:
                trace.keep(folder, target / f"{setting.id}-{seed}", measurement)
            if bar:
                bar.advance(f"{under_way.name} at {where}")
    return under_way


def settings() -> dict[str, Setting]:
    """Return {cell's name: Setting} of the telling cells. Raises UserError."""
    return {
        name: documents.profile(feature_table.PROFILE, cell, transfer_s=transfer_s)
        for name, (cell, transfer_s) in feature_table.CELLS.items()
    }


def telling_places() -> dict[str, TracedPlace]:
    """Return {cell's name: TracedPlace} of the telling cells. Raises UserError."""
    return {name: TracedPlace(cell=name, setting=setting) for name, setting in settings().items()}


def at_point(profile: str, point: str, flow: str | None) -> tuple[dict[str, Setting], job.FlowOf]:
    """Return ({name of the telling cell that is like it: Setting}, the flow) of a point of a scenario.

    `flow`: GROUP/N, None for the first flow of the judged group. Raises UserError.
    """
    setting = trace.setting_at(point, profile)
    of = trace.flow_of(setting, flow)
    group = setting.network.flows[of[0]]
    if not group.is_stack and group.count > 1:
        why = f"the packets of {flow} cannot be told from those of its group's other flows"
        raise UserError(why, "choose a flow of the stack")
    return {feature_table.like(setting.network.loss_pct(group)): setting}, of


def plan(algorithm: str, seeds: Sequence[int]) -> SeedsByCell:
    """Return {cell's name: seeds} for the cells that an algorithm is traced in.

    Without random loss, one seed is enough for a loss-based sender: its traces differ only by microseconds of delay.
    BBR draws random numbers of its own: when BBRv2 and BBRv3 probe, and with which phase BBRv1 begins.
    """
    once = not feature_table.is_bbr(algorithm)
    return {
        name: seeds[:1] if once and feature_table.CELLS[name][0].loss_pct == 0 else seeds
        for name in feature_table.cells(algorithm)
    }


def _flow(
    measurement: Measurement,
    captured: Mapping[str, tuple[int, int]],
    folder: pathlib.Path | None,
    protocol: int,
    of: job.FlowOf | None = None,
) -> tuple[flows.Flow, float | None]:
    """Return the flow of one trace, and when its capture buffer was full, in seconds (None if it never was).

    A sender that never reduces its window fills the memory for captures; the packets after that are missing. Raises
    UserError if there is no flow.
    """
    if measurement.outcome not in (Outcome.OK, Outcome.TIMEOUT):
        raise UserError(f"{measurement.outcome}: {measurement.message}")
    trial = measurement.trial
    sent_name, came_name, server, clients, moves = captured_at.captures_of(trial.setting, trial.scheme.stack, of)
    if folder is None or not captured.keys() >= {sent_name, came_name}:
        raise UserError("nothing was captured")
    entered, left = ((folder / f"{name}.pcap").read_bytes() for name in (sent_name, came_name))
    sent, requested = pcap.packets(entered, protocol, server, clients, moves)
    came, acknowledged = pcap.packets(left, protocol, server, clients, moves)
    sides = ((sent_name, sent, requested), (came_name, came, acknowledged))
    until_s = min((pcap.last_s(side) for name, *side in sides if captured[name][1]), default=None)
    if until_s is not None:
        sent, came, requested = ([p for p in packets if p.seconds <= until_s] for packets in (sent, came, requested))
    network = trial.setting.network
    group = network.tested if of is None else network.flows[of[0]]
    off_ns = sum(
        job.delay_off_ns(trial.seed, network.links.index(link))
        for link, way in network.towards_server(group)
        if link.direction(way).delay_ms
    )
    forward_s, back_s = flows.delays_s(network, group, off_ns / 1e9)
    first_s, bytes_per_s = pcap.first_s(entered), (network.rate_mbps(group) or 0) * 1e6 / 8
    flow = flows.flow(
        sent, came, requested, forward_s=forward_s, back_s=back_s, bytes_per_s=bytes_per_s, first_s=first_s,
        header_bytes=_HEADER_BYTES[protocol],
    )  # fmt: skip
    return flow, until_s and until_s - first_s


def why_not(bench: Bench, algorithm: str) -> str | None:
    """Return why an algorithm cannot be traced; None if it can."""
    reason: str | None = bench.adapter.why_not(algorithm) or bench.place(algorithm).why_not
    return reason
