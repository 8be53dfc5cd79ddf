"""Run one trial of flows that share a network: set queues and a seed, run all groups, and return what was seen.

It records facts and judges nothing. As in trial.py, a trial must not depend on what the guest did before it. In
addition, each client of the stack has a host of its own with two ports to connect from, of which the kernel always
tries the same one first: queues that tell flows apart do so by ports.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import select
import signal
import time
import types

from conformance.guest import bonding, calibrate, folders, kernel_flows, netns, programs, round_trips, tc, trial
from conformance.guest.flow_looks import FLOW_COLUMNS, Algorithm, Connections, table
from conformance.guest.kernel_flows import LOOK_NS, KernelGroup, first_known
from conformance.guest.outgoing import Outgoing
from conformance.guest.process import StackProcess, kill_descendants
from conformance.guest.shared_job import DirectionSeen, FlowSeen, GroupSeen, SharedFacts
from conformance.guest.shared_network import by_address
from conformance.guest.stage import Transfer, payload
from conformance.guest.trial import Fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from conformance.guest.flow_looks import QueueLooks
    from conformance.guest.hop import Hop
    from conformance.guest.kernel_flows import Watch
    from conformance.guest.seen import LinkSeen
    from conformance.guest.shared_job import GroupFlows, SharedCell, SharedTrial
    from conformance.guest.shared_stage import SharedStage
    from conformance.guest.topology import Host

#: ns from when all is ready until the trial begins, longer than the programs of all groups take to start; and the step
#: in ns that its begin is rounded up to
_LEAD_NS, _STEP_NS = 500_000_000, 128_000_000
#: s within which what an earlier trial's senders have queued on their own hosts has left these
_DRAIN_S = 1
#: clients connect from this port on, each from ports of its own
FIRST_CLIENT_PORT = 40_000


def run(stage: SharedStage, asked: SharedTrial, logs: Mapping[str, str] = types.MappingProxyType({})) -> SharedFacts:
    """Carry out one trial, and return what was seen of it. Raises Fault.

    `logs`: for each role the folder that the programs of the captured flow may write logs to, if any.
    """
    net, job = stage.stage.net, stage.stage.job
    outgoing = _fresh_start(stage, asked)
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(lambda: kill_descendants(trial.own_pids(net)))
        began_ns, calls = time.monotonic_ns(), trial.system_calls()
        stacks = [
            _StackGroup(stage, at, group, cleanup, asked.flow, logs if at == asked.tested else {})
            if stage.network.groups[at].stack
            else None
            for at, group in enumerate(asked.groups)
        ]
        if not all(group.ready for group in stacks if group):
            return SharedFacts(
                seed=asked.seed, virtual_s=_s(time.monotonic_ns() - began_ns), elapsed_s=0.0, timed_out=False,
                system_calls=trial.system_calls(calls), links=_links(stage, [], [], {}), changes=(), captured={},
                bond=None, splitters=(), sent=(),
                groups=tuple(group.seen() if group else GroupSeen(algorithm=None, server=None, ready=True, flows=())
                             for group in stacks),
            )  # fmt: skip
        try:
            splitters = programs.splitters(stage, asked, cleanup)
        except RuntimeError as error:
            raise Fault(str(error)) from error
        begin_ns = (time.monotonic_ns() + _LEAD_NS) // _STEP_NS * _STEP_NS + _STEP_NS
        hops = programs.hops(stage, asked, begin_ns, cleanup)
        bond = programs.bond(stage, asked, cleanup)
        kernels = _kernel_groups(stage, asked, begin_ns, cleanup)
        watches, queues = programs.watches(stage, asked, cleanup)
        changes = programs.changes(stage, asked, begin_ns, cleanup)
        opened_ns = time.monotonic_ns()
        captures = programs.captures(stage, asked, begin_ns) if asked.captured_bytes else {}
        # A trial with captures is the same as one without, so it lasts no longer.
        began_ns += time.monotonic_ns() - opened_ns
        _sleep_until(begin_ns)
        timed_out = _follow(begin_ns, round(job.timeout_s * 1e9), [g for g in stacks if g], kernels, queues)
        elapsed_ns = time.monotonic_ns() - begin_ns
        seen = [group.seen() if group else None for group in stacks]
        try:
            for at, kernel in kernels.items():
                seen[at] = GroupSeen(algorithm=kernel[1], server=None, ready=True, flows=kernel[0].stop())
            links = _links(stage, watches, queues, hops, asked.trips)
            changed = changes.stop() if changes else ()
            bonded = bond.stop() if bond else None
            split = tuple(one for splitter in splitters for one in splitter.stop())
        except RuntimeError as error:
            raise Fault(str(error)) from error
        return SharedFacts(
            seed=asked.seed, virtual_s=_s(time.monotonic_ns() - began_ns), elapsed_s=_s(elapsed_ns),
            timed_out=timed_out, system_calls=trial.system_calls(calls), links=links, changes=changed,
            captured={name: capture.write(path) for path, (name, capture) in captures.items()}, bond=bonded,
            splitters=split,
            groups=tuple(group for group in seen if group),
            # It is read last, since reading takes virtual time.
            sent=outgoing.seen(),
        )  # fmt: skip


def _s(ns: int) -> float:
    return round(ns / 1e9, 6)


def _sleep_until(at_ns: int) -> None:
    while (left_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)


def calibrated(stage: SharedStage, cell: SharedCell) -> tuple[LinkSeen, ...]:
    """Set the queues of a cell's links, and return what its probes measure."""
    net, probing = stage.stage.net, stage.stage.job.probing
    lines = _tc_lines(stage, cell.tc, ())
    trial.start_clock(stage.stage, probing.seed)
    _set(stage, lines)
    found = []
    for probe in cell.calibrate:
        egress = stage.place.directions[probe.link][probe.way]
        seen = calibrate.observe(net, egress, probe, probing)
        found.append(dataclasses.replace(seen, qdiscs=tuple(tc.read_qdiscs(net[egress.node], [egress.name]))))
    return tuple(found)


def _fresh_start(stage: SharedStage, asked: SharedTrial) -> Outgoing:
    """Recreate folders, set queues, and start the clock. Return what counts the packets of the trial's senders."""
    for group, sender, clients in zip(stage.network.groups, stage.place.senders, stage.place.receivers, strict=True):
        for host in (sender, *clients) if group.stack else ():
            folders.renew(stage.of_host(host, sender))
    lines = _tc_lines(stage, asked.tc, asked.delay_tc)
    if stage.place.bond is not None and asked.bond is not None:
        for node, own in bonding.fresh_start(stage.place.bond, asked.bond).items():
            lines.setdefault(node, []).extend(own)
    pairs = zip(stage.network.groups, stage.place.senders, strict=True)
    nodes = [host.node for group, host in pairs if group.stack] + [place.node for place in stage.place.splitters]
    # The clock is not aligned yet, so this takes no time of the trial.
    time.sleep(_DRAIN_S)
    outgoing = Outgoing([stage.stage.net[node] for node in nodes])
    trial.start_clock(stage.stage, asked.seed)
    _set(stage, lines)
    return outgoing


def _tc_lines(
    stage: SharedStage, links: Sequence[tuple[Sequence[str], Sequence[str]]], delays: Sequence[Sequence[str]]
) -> dict[str, list[str]]:
    """Return {node: the tc commands that set new queues} of both directions of links, and of senders with a delay."""
    lines: dict[str, list[str]] = {}
    pairs = list(zip(itertools.chain(*stage.place.directions), itertools.chain(*links), strict=True))
    for interface, chain in [*pairs, *zip([sender.port for sender in stage.place.senders], delays, strict=False)]:
        own = lines.setdefault(interface.node, [])
        # Deleting a qdisc that does not exist is an error, so one is created first.
        own.append(f"qdisc replace dev {interface.name} root handle 99: pfifo limit 1000")
        own.append(f"qdisc del dev {interface.name} root")
        own += [line.replace("{dev}", interface.name) for line in chain]
    return lines


def _set(stage: SharedStage, lines: Mapping[str, list[str]]) -> None:
    for node, own in lines.items():
        tc.run(stage.stage.net[node], own)


def _kernel_groups(
    stage: SharedStage, asked: SharedTrial, begin_ns: int, cleanup: contextlib.ExitStack
) -> dict[int, tuple[KernelGroup, str]]:
    """Start the kernel's groups, which wait until the trial begins. Return {group: (its flows, their algorithm)}."""
    found = {}
    folder = programs.folder(stage)
    for at, group in enumerate(asked.groups):
        if stage.network.groups[at].stack:
            continue
        algorithm = first_known(group.algorithms)
        if algorithm is None:
            raise Fault(f"this kernel has no congestion control {' or '.join(group.algorithms)} for group "
                        f"{stage.network.groups[at].name}: choose one that it has (cubic, reno, bbr)")  # fmt: skip
        hosts = stage.place.senders[at], stage.place.receivers[at][0]
        nodes = stage.node(hosts[0]), stage.node(hosts[1])
        program = os.path.join(stage.stage.scratch, stage.network.flows)
        found[at] = KernelGroup(program, folder, nodes, hosts, group, algorithm, begin_ns), algorithm
        cleanup.callback(found[at][0].end)
    return found


def _follow(
    begin_ns: int,
    most_ns: int,
    stacks: Sequence[_StackGroup],
    kernels: dict[int, tuple[KernelGroup, str]],
    queues: Sequence[tuple[QueueLooks, QueueLooks]],
) -> bool:
    """Start and stop the stack's flows, and sample, until all with an end have ended. Return whether time ran out."""
    poll = select.poll()
    with_end = [group for group, _ in kernels.values() if group.ends]
    for kernel in with_end:
        poll.register(kernel.pidfd, select.POLLIN)
    due = sorted(event for group in stacks for event in group.events())
    look_ns = 0
    while True:
        now_ns = time.monotonic_ns() - begin_ns
        if now_ns >= most_ns:
            return True
        while due and due[0][0] <= now_ns:
            _, _, group_at, number, starts = due.pop(0)
            group = next(group for group in stacks if group.at == group_at)
            if starts:
                poll.register(group.start(number, now_ns), select.POLLIN)
            else:
                group.kill(number)
        if now_ns >= look_ns:
            for queue in (queue for both in queues for queue in both):
                queue.look(look_ns / 1e9)
            for group in stacks:
                group.look(look_ns / 1e9)
            look_ns += LOOK_NS
        if all(group.done for group in stacks) and not any(group.running for group in with_end):
            return False
        next_ns = min(look_ns, most_ns, due[0][0] if due else most_ns)
        wait_ns = begin_ns + next_ns - time.monotonic_ns()
        for fd, _ in poll.poll(max(-(-wait_ns // 1_000_000), 0)):
            poll.unregister(fd)
            for group in stacks:
                group.ended(fd, time.monotonic_ns() - begin_ns)


def _links(
    stage: SharedStage,
    watches: Sequence[tuple[Watch, int] | None],
    queues: Sequence[tuple[QueueLooks, QueueLooks]],
    hops: Mapping[tuple[int, int], Hop],
    trips: bool = False,
) -> tuple[tuple[DirectionSeen, DirectionSeen], ...]:
    found = []
    stacks = [group.stack for group in stage.network.groups]
    for at, interfaces in enumerate(stage.place.directions):
        both = []
        for way, interface in enumerate(interfaces):
            watch = watches[at] if watches and way == 0 else None
            count, quantiles, unmatched = watch[0].stop() if watch else (None, None, None)
            both.append(
                DirectionSeen(
                    qdiscs=tuple(tc.read_qdiscs(stage.stage.net[interface.node], [interface.name])),
                    looks=queues[at][way].table() if queues else {},
                    delays=count,
                    delays_ms=quantiles,
                    watched_one_in=watch[1] if watch else None,
                    unmatched=unmatched,
                    hop=hops[at, way].stop() if (at, way) in hops else None,
                    trips=tuple(round_trips.of_flows(stage.place, stacks, watch[0].trips)) if watch and trips else None,
                )
            )
        found.append((both[0], both[1]))
    return tuple(found)


class _StackGroup:
    """A group of the stack under test: its server, and a client for each flow.

    `logs`: the folders that the server and the client of `flow` may write logs to, if any.
    """

    def __init__(
        self, stage: SharedStage, at: int, asked: GroupFlows, cleanup: contextlib.ExitStack, flow: int,
        logs: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._logs = {stage.place.senders[at].node: logs, stage.place.receivers[at][flow].node: logs} if logs else {}
        flows = asked.flows
        self.at, self._stage, self._flows, self._cleanup = at, stage, flows, cleanup
        self._host, self._clients = stage.place.senders[at], stage.place.receivers[at]
        self._requests = self._write_requests(asked.requests)
        self._rows: list[list[tuple[float | None, ...]]] = [[] for _ in flows]
        self._infos: list[dict[str, Any] | None] = [None for _ in flows]
        self._algorithms = [Algorithm() for _ in flows]
        self._processes: list[StackProcess | None] = [None for _ in flows]
        self._starts: list[int | None] = [None for _ in flows]
        self._ends: list[int | None] = [None for _ in flows]
        self._killed: set[int] = set()
        self._numbers = by_address(self._clients)
        #: the address that each client first connected from; a hop may give it another one
        self._addresses: dict[int, str] = {}
        self._before = [self._arrived(host) for host in self._clients]
        self._server = self._run("server", self._host, max(flow.bytes for flow in flows))
        cleanup.callback(self._server.end)
        self.ready = self._wait_until_ready()
        self._tcp: Connections | None = None
        if stage.stage.job.transport == "tcp":
            with netns.inside(stage.node(self._host)):
                self._tcp = Connections()
            cleanup.callback(self._tcp.close)

    def _run(self, role: str, host: Host, size: int) -> StackProcess:
        own = self._stage.of_host(host, self._host)
        www = payload(self._stage.stage.job.work_dir, size)
        transfer = Transfer(seed=0, transfer_bytes=size, slowest=0, tc=(), www=www, logs=self._logs.get(host.node, {}))
        program, directory = own.program(role).path, own.folder(role)
        environment = trial.environment(own, role, transfer)
        if role == "client" and self._requests:
            environment["CC_REQUESTS"] = self._requests
        try:
            return StackProcess(self._stage.node(host), [program, role], environment, directory, own.job.limits)
        except OSError as error:
            raise Fault(f"cannot start {program} {role}: {error.strerror or error}") from error

    def _write_requests(self, lines: Sequence[str]) -> str | None:
        """Write the clients' requests, and bodies of these sizes. Return the requests' path; None if there are none."""
        if not lines:
            return None
        for size in {int(line.split()[0]) for line in lines}:
            payload(self._stage.stage.job.work_dir, size)
        return kernel_flows.write_requests(self._stage.stage.job.work_dir, self._host, lines)

    def _wait_until_ready(self) -> bool:
        job, node = self._stage.stage.job, self._stage.node(self._host)
        for flow in self._flows:
            payload(job.work_dir, flow.bytes)
        until_ns = time.monotonic_ns() + round(job.ready_timeout_s * 1e9)
        while time.monotonic_ns() < until_ns:
            if netns.port_is_bound(node, job.port, job.transport):
                return True
            if self._server.exit_status is not None:
                return False
            time.sleep(0.005)
        return False

    def events(self) -> list[tuple[int, int, int, int, bool]]:
        """Return (time in ns, order, group, flow, whether it starts) of each start and stop of its flows."""
        starts = [(flow.start_ns, 0, self.at, number, True) for number, flow in enumerate(self._flows)]
        return starts + [(f.stop_ns, 1, self.at, number, False) for number, f in enumerate(self._flows) if f.stop_ns]

    def start(self, number: int, now_ns: int) -> int:
        """Start the client of a flow. Return its pidfd."""
        process = self._run("client", self._clients[number], self._flows[number].bytes)
        self._cleanup.callback(process.end)
        self._processes[number], self._starts[number] = process, now_ns
        return process.pidfd

    def kill(self, number: int) -> None:
        """Kill the client of a flow whose time is over, unless it has ended."""
        process = self._processes[number]
        if process is not None and self._ends[number] is None:
            self._killed.add(number)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def ended(self, pidfd: int, now_ns: int) -> None:
        """Note that the process of a pidfd has ended, if it is a client of this group."""
        for number, process in enumerate(self._processes):
            if process is not None and process.pidfd == pidfd:
                self._ends[number] = now_ns

    @property
    def done(self) -> bool:
        return all(end is not None for end in self._ends)

    def look(self, t_s: float) -> None:
        if self._tcp is None:
            for number, host in enumerate(self._clients):
                if self._starts[number] is not None:
                    self._rows[number].append((t_s, self._arrived(host) - self._before[number], None, None))
            return
        for address, info in self._tcp.of_clients(self._stage.stage.job.port):
            number = self._numbers.get(address, -1)
            if number >= 0 and self._addresses.setdefault(number, address) == address:
                self._infos[number] = info
                self._algorithms[number].see(info)
                if not self._rows[number] or self._rows[number][-1][0] != t_s:
                    self._rows[number].append((t_s, info["acked_bytes"], info["rtt_ms"], info["cwnd_segments"]))

    def _arrived(self, host: Host) -> int:
        return sum(found.rx_bytes for found in netns.interface_counters(self._stage.node(host)).values())

    def seen(self) -> GroupSeen:
        if self.ready:
            # Sample once more, for what happened since the last sample, unless the connections are gone; keep no rows.
            known = [len(rows) for rows in self._rows]
            self.look(math.inf)
            for rows, count in zip(self._rows, known, strict=True):
                del rows[count:]
        names = ("acked_bytes", "sent_bytes", "retransmitted_bytes", "out_segments", "retransmitted_segments",
                 "marked_segments", "min_rtt_ms")  # fmt: skip
        flows = []
        for number, process in enumerate(self._processes):
            info, start, end = self._infos[number] or {}, self._starts[number], self._ends[number]
            flows.append(
                FlowSeen(
                    start_s=_s(start if start is not None else self._flows[number].start_ns), connected_s=None,
                    end_s=None if end is None else _s(end), complete=end is not None and number not in self._killed,
                    arrived_bytes=self._arrived(self._clients[number]) - self._before[number],
                    looks=table(FLOW_COLUMNS, self._rows[number]),
                    client=process.seen() if process else None,
                    congestion_control=self._algorithms[number].found(),
                    requests=None,
                    **{name: info.get(name) for name in names},
                )
            )  # fmt: skip
        return GroupSeen(algorithm=None, server=self._server.seen(), ready=self.ready, flows=tuple(flows))
