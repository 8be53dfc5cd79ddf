"""Run one trial: set queues and a seed, run all groups of flows, and return what was seen.

It records facts and judges nothing. A trial must not depend on what the guest did before it: it begins in a state of
its own (clock.py), has its own seed, fresh queues and, except for tc (tc.py), fresh processes.

If flows share the network, each client of the stack has a host of its own with two ports to connect from, of which the
kernel always tries the same one first: queues that tell flows apart do so by ports.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import select
import time
import types

from conformance.guest import bonding, calibrate, clock, detailed, folders, programs, round_trips, tc, watched
from conformance.guest.clock import ClockFault
from conformance.guest.kernel_flows import LOOK_NS, KernelGroup, first_known
from conformance.guest.outgoing import Outgoing
from conformance.guest.process import kill_descendants
from conformance.guest.seen import DirectionSeen, GroupSeen, TrialFacts
from conformance.guest.stack_flows import StackGroup
from conformance.guest.stage import make_body, remove_bodies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any, Protocol

    from conformance.guest.capture import Capture
    from conformance.guest.flow_looks import QueueLooks
    from conformance.guest.hop import Hop
    from conformance.guest.kernel_flows import Watch
    from conformance.guest.network_job import CellJob, TrialJob
    from conformance.guest.seen import LinkSeen
    from conformance.guest.stage import Stage

    class TrialLooks(Protocol):
        """What samples a trial while it runs.

        `at_the_end`: also when all flows have ended, if a sample is due then. `silent`: nothing happens any more, so
        the trial's time is over.
        """

        @property
        def at_the_end(self) -> bool: ...

        @property
        def silent(self) -> bool: ...

        def look(self, now_ns: int) -> int: ...


#: ns from when all is ready until the trial begins, longer than the programs of all groups take to start; and the step
#: in ns that its begin is rounded up to
_LEAD_NS, _STEP_NS = 500_000_000, 128_000_000
#: s within which what an earlier trial's senders have queued on their own hosts has left these
_DRAIN_S = 1


def run(
    stage: Stage, trial_job: TrialJob, target: str = "", logs: Mapping[str, str] = types.MappingProxyType({})
) -> TrialFacts:
    """Carry out one trial, and return what was seen of it; write its captures to `target`. Raises ClockFault.

    `logs`: for each role the folder that the programs of the captured flow may write logs to, if any.
    """
    # Opening captures takes virtual time, but the clock is not aligned yet: a trial with captures is the same as one
    # without.
    with contextlib.ExitStack() as opened:
        captures = programs.captures(stage, trial_job)
        watch = None if captures else watched.Watched.of(stage, trial_job)
        for capture in (*captures.values(), *([watch.capture] if watch else [])):
            opened.callback(capture.close)
        facts = _carry_out(stage, trial_job, logs, captures)
        if captures:
            os.makedirs(target, exist_ok=True)
            written = {name: capture.write(os.path.join(target, f"{name}.pcap")) for name, capture in captures.items()}
            facts = dataclasses.replace(facts, captured=written)
        if watch and facts.detail:
            facts = dataclasses.replace(facts, detail=watch.examined(facts.detail))
        return facts


def _carry_out(
    stage: Stage, trial_job: TrialJob, logs: Mapping[str, str], captures: Mapping[str, Capture]
) -> TrialFacts:
    net, job, detail = stage.net, stage.job, trial_job.detail
    outgoing = _fresh_start(stage, trial_job)
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(lambda: kill_descendants(own_pids(net)))
        began_ns = time.monotonic_ns()
        stacks = {
            at: StackGroup(
                stage, at, group, cleanup, trial_job.flow, logs if at == trial_job.tested else {}, bool(detail)
            )
            for at, group in enumerate(trial_job.groups)
            if job.network.groups[at].stack
        }
        if not all(group.ready for group in stacks.values()):
            return _not_ready(stage, trial_job, stacks, began_ns)
        try:
            splitters = programs.splitters(stage, trial_job, cleanup)
        except RuntimeError as error:
            raise ClockFault(str(error)) from error
        # A lone flow waits for no program that takes time to start.
        lead_ns = 0 if detail and len(trial_job.groups) == 1 else _LEAD_NS
        begin_ns = (time.monotonic_ns() + lead_ns) // _STEP_NS * _STEP_NS + _STEP_NS
        for capture in captures.values():
            capture.epoch_ns = begin_ns + time.time_ns() - time.monotonic_ns()
        hops = programs.hops(stage, trial_job, begin_ns, cleanup)
        bond = programs.bond(stage, trial_job, cleanup)
        kernels = _kernel_groups(stage, trial_job, begin_ns, cleanup)
        changes = programs.changes(stage, trial_job, begin_ns, cleanup)
        watches: list[tuple[Watch, int] | None] = []
        queues: list[tuple[QueueLooks, QueueLooks]] = []
        if detail is None:
            watches, queues = programs.watches(stage, trial_job, cleanup)
            calls = clock.system_calls()
            looks: TrialLooks = _Looks(list(stacks.values()), [queue for both in queues for queue in both])
            _sleep_until(begin_ns)
        else:
            if lead_ns:
                _sleep_until(begin_ns + trial_job.groups[trial_job.tested].flows[trial_job.flow].start_ns)
            before, calls = detailed.counters(stage), clock.system_calls()
            looks = detailed.Detailed(stage, trial_job, detail)
            cleanup.callback(looks.close)
            clock.align(_STEP_NS // 1_000_000)
            stacks[trial_job.tested].start(trial_job.flow, 0)
            # Its clock begins when its client has started.
            begin_ns = time.monotonic_ns()
        whole = [fd for splitter in splitters for fd in splitter.pidfds]
        most_ns = round(job.timeout_s * 1e9)
        timed_out = _follow(begin_ns, most_ns, list(stacks.values()), kernels, whole, looks)
        elapsed_ns = time.monotonic_ns() - begin_ns
        # In virtual time each query costs time: their order and number affect every result.
        groups = {at: group.seen() for at, group in stacks.items()}
        counted = clock.system_calls(calls)
        in_detail = None
        if isinstance(looks, detailed.Detailed):
            in_detail = looks.seen(before, detailed.counters(stage))
        try:
            for at, (kernel, algorithm) in kernels.items():
                if detail and not kernel.ends and not kernel.running:
                    raise RuntimeError(f"the flows of group {job.network.groups[at].name} ended during the trial")
                groups[at] = GroupSeen(algorithm=algorithm, server=None, ready=True, flows=kernel.stop())
            links = _links(stage, watches, queues, hops, trial_job.trips)
            changed = changes.stop() if changes else ()
            bonded = bond.stop() if bond else None
            split = tuple(connections for splitter in splitters for connections in splitter.stop())
        except RuntimeError as error:
            raise ClockFault(str(error)) from error
        return TrialFacts(
            seed=trial_job.seed, virtual_s=_s(time.monotonic_ns() - began_ns), elapsed_s=_s(elapsed_ns),
            timed_out=timed_out, system_calls=counted, links=links, changes=changed, captured={}, bond=bonded,
            splitters=split, detail=in_detail, groups=tuple(groups[at] for at in range(len(trial_job.groups))),
            # It is read last, since reading takes virtual time.
            sent=outgoing.seen() if outgoing else (),
        )  # fmt: skip


def _not_ready(stage: Stage, trial_job: TrialJob, stacks: Mapping[int, StackGroup], began_ns: int) -> TrialFacts:
    """Return what was seen of a trial in which a server was never ready."""
    unknown = GroupSeen(algorithm=None, server=None, ready=True, flows=())
    return TrialFacts(
        seed=trial_job.seed, virtual_s=_s(time.monotonic_ns() - began_ns), elapsed_s=0.0, timed_out=False,
        system_calls=None, links=_links(stage, [], [], {}), changes=(), captured={}, bond=None, splitters=(),
        sent=(), detail=None,
        groups=tuple(stacks[at].seen() if at in stacks else unknown for at in range(len(trial_job.groups))),
    )  # fmt: skip


def own_pids(net: Any) -> set[int]:
    """Return the process ids of the harness's own processes, which outlive a trial."""
    return {node.pid for node in net.hosts} | tc.pids()


def _s(ns: int) -> float:
    return round(ns / 1e9, 6)


def _sleep_until(at_ns: int) -> None:
    while (left_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)


def fresh_queues(stage: Stage, links: Sequence[tuple[Sequence[str], Sequence[str]]], seed: int) -> None:
    """Start the clock, and set the queues of all links."""
    lines = _tc_lines(stage, links, ())
    clock.start(stage.net, seed)
    _set(stage, lines)


def calibrated(stage: Stage, cell: CellJob) -> tuple[LinkSeen, ...]:
    """Set the queues of a cell's links, and return what its probes measure."""
    net, probing = stage.net, stage.job.probing
    fresh_queues(stage, cell.tc, probing.seed)
    directions = []
    for probe in cell.calibrate:
        egress = stage.place.directions[probe.link][probe.way]
        observed = calibrate.observe(net, egress, probe, probing)
        alike = not any(other.link == probe.link and other is not probe for other in cell.calibrate)
        queues = [
            queue
            for interface in (stage.place.directions[probe.link] if alike else (egress,))
            for queue in tc.read_chain(net[interface.node], interface.name)
        ]
        directions.append(dataclasses.replace(observed, qdiscs=tuple(queues)))
    return tuple(directions)


def _fresh_start(stage: Stage, trial_job: TrialJob) -> Outgoing | None:
    """Recreate folders, set queues, and start the clock. Return what counts the packets of the trial's senders."""
    renew_folders(stage)
    remove_bodies(stage.job)
    for flows in trial_job.groups:
        for size in {flow.bytes for flow in flows.flows} | {int(line.split()[0]) for line in flows.requests}:
            make_body(stage.job, size)
    lines = _tc_lines(stage, trial_job.tc, trial_job.delay_tc)
    if stage.place.bond is not None and trial_job.bond is not None:
        for node, commands in bonding.fresh_start(stage.place.bond, trial_job.bond).items():
            lines.setdefault(node, []).extend(commands)
    # The clock is not aligned yet, so this takes no time of the trial.
    time.sleep(_DRAIN_S)
    pairs = zip(stage.job.network.groups, stage.place.senders, strict=True)
    nodes = [host.node for group, host in pairs if group.stack] + [place.node for place in stage.place.splitters]
    outgoing = None if trial_job.detail else Outgoing([stage.net[node] for node in nodes])
    clock.start(stage.net, trial_job.seed)
    _set(stage, lines)
    return outgoing


def renew_folders(stage: Stage) -> None:
    """Empty the folders of all programs of the stack."""
    groups = [at for at, group in enumerate(stage.job.network.groups) if group.stack]
    seats = [stage.seat(at, "server") for at in groups]
    seats += [stage.seat(at, "client", number) for at in groups for number in range(len(stage.place.receivers[at]))]
    folders.renew(seat.folder for seat in seats)


def _tc_lines(
    stage: Stage, links: Sequence[tuple[Sequence[str], Sequence[str]]], delays: Sequence[Sequence[str]]
) -> dict[str, list[str]]:
    """Return {node: the tc commands that set new queues} of both directions of links, and of senders with a delay."""
    lines: dict[str, list[str]] = {}
    pairs = list(zip(itertools.chain(*stage.place.directions), itertools.chain(*links), strict=True))
    if not stage.place.chain:
        pairs += zip([sender.port for sender in stage.place.senders], delays, strict=False)
    for interface, chain in pairs:
        commands = lines.setdefault(interface.node, [])
        # Deleting a qdisc that does not exist is an error, so one is created first.
        commands.append(f"qdisc replace dev {interface.name} root handle 99: pfifo limit 1000")
        commands.append(f"qdisc del dev {interface.name} root")
        commands += [line.replace("{dev}", interface.name) for line in chain]
    return lines


def _set(stage: Stage, lines: Mapping[str, list[str]]) -> None:
    for node, commands in lines.items():
        tc.run(stage.net[node], commands)


def _kernel_groups(
    stage: Stage, trial_job: TrialJob, begin_ns: int, cleanup: contextlib.ExitStack
) -> dict[int, tuple[KernelGroup, str]]:
    """Start the kernel's groups, which wait until the trial begins. Return {group: (its flows, their algorithm)}."""
    by_group = {}
    for at, group in enumerate(trial_job.groups):
        if stage.job.network.groups[at].stack:
            continue
        algorithm = first_known(group.algorithms)
        if algorithm is None:
            raise ClockFault(f"this kernel has no congestion control {' or '.join(group.algorithms)} for group "
                        f"{stage.job.network.groups[at].name}: choose one that it has (cubic, reno, bbr)")  # fmt: skip
        hosts = stage.place.senders[at], stage.place.receivers[at][0]
        nodes = stage.node(hosts[0]), stage.node(hosts[1])
        program = os.path.join(stage.scratch, stage.job.network.flows)
        by_group[at] = (
            KernelGroup(
                program, programs.folder(stage), nodes, hosts, group, algorithm, begin_ns, trial_job.detail is not None
            ),
            algorithm,
        )
        cleanup.callback(by_group[at][0].end)
    return by_group


class _Looks:
    """Samples all flows of the stack and all queues, every 100 ms of the trial's clock."""

    at_the_end = True
    #: their trials are short: none goes on for longer than a silence would take to show
    silent = False

    def __init__(self, stacks: Sequence[StackGroup], queues: Sequence[QueueLooks]) -> None:
        self._queues, self._stacks, self._at_ns = queues, stacks, 0

    def look(self, now_ns: int) -> int:
        """Take samples. Return when the next ones are due; times are in ns after the trial's begin."""
        for queue in self._queues:
            queue.look(self._at_ns / 1e9)
        for group in self._stacks:
            group.look(self._at_ns / 1e9)
        self._at_ns += LOOK_NS
        return self._at_ns


def _follow(
    begin_ns: int,
    most_ns: int,
    stacks: Sequence[StackGroup],
    kernels: dict[int, tuple[KernelGroup, str]],
    whole: Collection[int],
    looks: TrialLooks,
) -> bool:
    """Start and stop the stack's flows, and sample, until all with an end have ended. Return whether time ran out.

    `whole`: pidfds of programs without which the trial ends.
    """
    poll = select.poll()
    for fd in whole:
        poll.register(fd, select.POLLIN)
    with_end = [group for group, _ in kernels.values() if group.ends]
    for kernel in with_end:
        poll.register(kernel.pidfd, select.POLLIN)
    for group in stacks:
        for fd in group.running:
            poll.register(fd, select.POLLIN)
    due = sorted(event for group in stacks for event in group.events())
    look_ns = 0
    while True:
        now_ns = time.monotonic_ns() - begin_ns
        if now_ns >= most_ns:
            return True
        done = all(group.done for group in stacks) and not any(group.running for group in with_end)
        while due and due[0][0] <= now_ns:
            _, _, group_at, number, starts = due.pop(0)
            group = next(group for group in stacks if group.at == group_at)
            if starts:
                poll.register(group.start(number, now_ns), select.POLLIN)
            else:
                group.kill(number)
        if now_ns >= look_ns and (looks.at_the_end or not done):
            look_ns = looks.look(now_ns)
        if done:
            return False
        if looks.silent:
            return True
        next_ns = min(look_ns, most_ns, due[0][0] if due else most_ns)
        wait_ns = begin_ns + next_ns - time.monotonic_ns()
        for fd, _ in poll.poll(max(-(-wait_ns // 1_000_000), 0)):
            if fd in whole:
                return False
            poll.unregister(fd)
            for group in stacks:
                group.ended(fd, time.monotonic_ns() - begin_ns)


def _links(
    stage: Stage,
    watches: Sequence[tuple[Watch, int] | None],
    queues: Sequence[tuple[QueueLooks, QueueLooks]],
    hops: Mapping[tuple[int, int], Hop],
    trips: bool = False,
) -> tuple[tuple[DirectionSeen, DirectionSeen], ...]:
    pairs = []
    stacks = [group.stack for group in stage.job.network.groups]
    names = [interface.name for both in stage.place.directions for interface in both]
    shown: dict[str, list[dict[str, object]]] = {}
    for at, interfaces in enumerate(stage.place.directions):
        both = []
        for way, interface in enumerate(interfaces):
            watch = watches[at] if watches and way == 0 else None
            count, quantiles, unmatched = watch[0].stop() if watch else (None, None, None)
            if interface.node not in shown:
                shown[interface.node] = tc.read_qdiscs(stage.net[interface.node], names)
            both.append(
                DirectionSeen(
                    qdiscs=tuple(queue for queue in shown[interface.node] if queue["dev"] == interface.name),
                    looks=queues[at][way].table() if queues else {},
                    delays=count,
                    delays_ms=quantiles,
                    watched_one_in=watch[1] if watch else None,
                    unmatched=unmatched,
                    hop=hops[at, way].stop() if (at, way) in hops else None,
                    trips=tuple(round_trips.of_flows(stage.place, stacks, watch[0].trips)) if watch and trips else None,
                )
            )
        pairs.append((both[0], both[1]))
    return tuple(pairs)
