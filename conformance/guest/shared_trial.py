"""Run one trial of flows that share a network: set queues and a seed, run all groups, and return what was seen.

It records facts and judges nothing. As in trial.py, a trial must not depend on what the guest did before it. In
addition, each client of the stack has a host of its own with two ports to connect from, of which the kernel always
tries the same one first: queues that tell flows apart do so by ports.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import select
import time
import types

from conformance.guest import bonding, calibrate, detailed, folders, programs, round_trips, tc, trial, watched
from conformance.guest.kernel_flows import LOOK_NS, KernelGroup, first_known
from conformance.guest.outgoing import Outgoing
from conformance.guest.process import kill_descendants
from conformance.guest.shared_job import DirectionSeen, GroupSeen, SharedFacts
from conformance.guest.shared_network import is_chain
from conformance.guest.stack_flows import StackGroup
from conformance.guest.stage import payload
from conformance.guest.trial import Fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from conformance.guest.capture import Capture
    from conformance.guest.flow_looks import QueueLooks
    from conformance.guest.hop import Hop
    from conformance.guest.kernel_flows import Watch
    from conformance.guest.seen import LinkSeen
    from conformance.guest.shared_job import SharedCell, SharedTrial
    from conformance.guest.shared_stage import SharedStage

    class Looks(Protocol):
        """What samples a trial while it runs."""

        def look(self, now_ns: int) -> int: ...


#: ns from when all is ready until the trial begins, longer than the programs of all groups take to start; and the step
#: in ns that its begin is rounded up to
_LEAD_NS, _STEP_NS = 500_000_000, 128_000_000
#: s within which what an earlier trial's senders have queued on their own hosts has left these
_DRAIN_S = 1


def run(
    stage: SharedStage, asked: SharedTrial, target: str = "", logs: Mapping[str, str] = types.MappingProxyType({})
) -> SharedFacts:
    """Carry out one trial, and return what was seen of it; write its captures to the folder `target`. Raises Fault.

    `logs`: for each role the folder that the programs of the captured flow may write logs to, if any.
    """
    # Opening captures takes virtual time, but the clock is not aligned yet: a trial with captures is the same as one
    # without.
    with contextlib.ExitStack() as opened:
        captures = programs.captures(stage, asked)
        if captures and asked.detail:
            os.makedirs(target, exist_ok=True)
        watch = None if captures else watched.Watched.of(stage, asked)
        for capture in (*captures.values(), *([watch.capture] if watch else [])):
            opened.callback(capture.close)
        facts = _carry_out(stage, asked, target, logs, captures)
        if captures:
            written = {name: one.write(os.path.join(target, f"{name}.pcap")) for name, one in captures.items()}
            facts = dataclasses.replace(facts, captured=written)
        if watch and facts.detail:
            facts = dataclasses.replace(facts, detail=watch.examined(facts.detail))
        return facts


def _carry_out(
    stage: SharedStage, asked: SharedTrial, target: str, logs: Mapping[str, str], captures: Mapping[str, Capture]
) -> SharedFacts:
    net, job, detail = stage.stage.net, stage.stage.job, asked.detail
    outgoing = _fresh_start(stage, asked)
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(lambda: kill_descendants(trial.own_pids(net)))
        began_ns, calls = time.monotonic_ns(), None if detail else trial.system_calls()
        stacks = {
            at: StackGroup(stage, at, group, cleanup, asked.flow, logs if at == asked.tested else {}, bool(detail))
            for at, group in enumerate(asked.groups)
            if stage.network.groups[at].stack
        }
        if not all(group.ready for group in stacks.values()):
            unknown = GroupSeen(algorithm=None, server=None, ready=True, flows=())
            return SharedFacts(
                seed=asked.seed, virtual_s=_s(time.monotonic_ns() - began_ns), elapsed_s=0.0, timed_out=False,
                system_calls=None, links=_links(stage, [], [], {}), changes=(), captured={}, bond=None, splitters=(),
                sent=(), detail=None,
                groups=tuple(
                    stacks[at].seen() if at in stacks else unknown for at in range(len(asked.groups))
                ),
            )  # fmt: skip
        try:
            splitters = programs.splitters(stage, asked, cleanup)
        except RuntimeError as error:
            raise Fault(str(error)) from error
        alone = detail is not None and len(asked.groups) == 1
        begin_ns = (time.monotonic_ns() + (0 if alone else _LEAD_NS)) // _STEP_NS * _STEP_NS + _STEP_NS
        hops = programs.hops(stage, asked, begin_ns, cleanup)
        bond = programs.bond(stage, asked, cleanup)
        kernels = _kernel_groups(stage, asked, begin_ns, cleanup)
        watches: list[tuple[Watch, int] | None] = []
        queues: list[tuple[QueueLooks, QueueLooks]] = []
        if detail is None:
            watches, queues = programs.watches(stage, asked, cleanup)
            looks: Looks = _Looks(list(stacks.values()), [queue for both in queues for queue in both])
        changes = programs.changes(stage, asked, begin_ns, cleanup)
        opened_ns = time.monotonic_ns()
        if captures and not detail:
            os.makedirs(target, exist_ok=True)
        # A trial with captures is the same as one without, so it lasts no longer.
        began_ns += time.monotonic_ns() - opened_ns
        for capture in captures.values():
            capture.epoch_ns = begin_ns + time.time_ns() - time.monotonic_ns()
        if detail is None:
            _sleep_until(begin_ns)
        else:
            if not alone:
                _sleep_until(begin_ns + asked.groups[asked.tested].flows[0].start_ns)
            before, calls = detailed.counters(stage), trial.system_calls()
            looks = detailed.Detailed(stage, asked, detail)
            cleanup.callback(looks.close)
            trial.align_clock(trial.CLIENT_ALIGN_MS)
            stacks[asked.tested].start(0, 0)
            # Its clock begins when its client has started.
            begin_ns = time.monotonic_ns()
        most_ns = round(job.timeout_s * 1e9)
        timed_out = _follow(begin_ns, most_ns, list(stacks.values()), kernels, looks)
        elapsed_ns = time.monotonic_ns() - begin_ns
        # In virtual time each query costs time: their order and number affect every result.
        seen = {at: group.seen() for at, group in stacks.items()}
        in_detail = None
        if isinstance(looks, detailed.Detailed):
            counted = trial.system_calls(calls)
            in_detail = looks.seen(before, detailed.counters(stage))
        try:
            for at, kernel in kernels.items():
                if not kernel[0].ends and not kernel[0].running:
                    raise RuntimeError(f"the flows of group {stage.network.groups[at].name} ended during the trial")
                seen[at] = GroupSeen(algorithm=kernel[1], server=None, ready=True, flows=kernel[0].stop())
            links = _links(stage, watches, queues, hops, asked.trips)
            changed = changes.stop() if changes else ()
            bonded = bond.stop() if bond else None
            split = tuple(one for splitter in splitters for one in splitter.stop())
        except RuntimeError as error:
            raise Fault(str(error)) from error
        virtual_s = _s(time.monotonic_ns() - began_ns)
        return SharedFacts(
            seed=asked.seed, virtual_s=virtual_s, elapsed_s=_s(elapsed_ns), timed_out=timed_out,
            system_calls=trial.system_calls(calls) if in_detail is None else counted, links=links, changes=changed,
            captured={}, bond=bonded, splitters=split, detail=in_detail,
            groups=tuple(seen[at] for at in range(len(asked.groups))),
            # It is read last, since reading takes virtual time.
            sent=outgoing.seen() if outgoing else (),
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
        alike = not any(other.link == probe.link and other is not probe for other in cell.calibrate)
        queues = [
            queue
            for own in (stage.place.directions[probe.link] if alike else (egress,))
            for queue in tc.read_qdiscs(net[own.node], [own.name])
        ]
        found.append(dataclasses.replace(seen, qdiscs=tuple(queues)))
    return tuple(found)


def _fresh_start(stage: SharedStage, asked: SharedTrial) -> Outgoing | None:
    """Recreate folders, set queues, and start the clock. Return what counts the packets of the trial's senders."""
    for group, sender, clients in zip(stage.network.groups, stage.place.senders, stage.place.receivers, strict=True):
        for host in (sender, *clients) if group.stack else ():
            folders.renew(stage.of_host(host, sender))
    lines = _tc_lines(stage, asked.tc, asked.delay_tc)
    for flows in asked.groups if asked.detail else ():
        for flow in flows.flows:
            payload(stage.stage.job.work_dir, flow.bytes)
    if stage.place.bond is not None and asked.bond is not None:
        for node, own in bonding.fresh_start(stage.place.bond, asked.bond).items():
            lines.setdefault(node, []).extend(own)
    pairs = zip(stage.network.groups, stage.place.senders, strict=True)
    nodes = [host.node for group, host in pairs if group.stack] + [place.node for place in stage.place.splitters]
    # The clock is not aligned yet, so this takes no time of the trial.
    time.sleep(_DRAIN_S)
    outgoing = None if asked.detail else Outgoing([stage.stage.net[node] for node in nodes])
    trial.start_clock(stage.stage, asked.seed)
    _set(stage, lines)
    return outgoing


def _tc_lines(
    stage: SharedStage, links: Sequence[tuple[Sequence[str], Sequence[str]]], delays: Sequence[Sequence[str]]
) -> dict[str, list[str]]:
    """Return {node: the tc commands that set new queues} of both directions of links, and of senders with a delay."""
    lines: dict[str, list[str]] = {}
    pairs = list(zip(itertools.chain(*stage.place.directions), itertools.chain(*links), strict=True))
    if not is_chain(stage.network):
        pairs += zip([sender.port for sender in stage.place.senders], delays, strict=False)
    for interface, chain in pairs:
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
    folder = "" if asked.detail else programs.folder(stage)
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


class _Looks:
    """Samples all flows of the stack and all queues, every 100 ms of the trial's clock."""

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
    looks: Looks,
) -> bool:
    """Start and stop the stack's flows, and sample, until all with an end have ended. Return whether time ran out."""
    poll = select.poll()
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
        if done and isinstance(looks, detailed.Detailed):
            return False
        while due and due[0][0] <= now_ns:
            _, _, group_at, number, starts = due.pop(0)
            group = next(group for group in stacks if group.at == group_at)
            if starts:
                poll.register(group.start(number, now_ns), select.POLLIN)
            else:
                group.kill(number)
        if now_ns >= look_ns:
            look_ns = looks.look(now_ns)
        if done:
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
    names = [interface.name for both in stage.place.directions for interface in both]
    shown: dict[str, list[dict[str, object]]] = {}
    for at, interfaces in enumerate(stage.place.directions):
        both = []
        for way, interface in enumerate(interfaces):
            watch = watches[at] if watches and way == 0 else None
            count, quantiles, unmatched = watch[0].stop() if watch else (None, None, None)
            if interface.node not in shown or not stage.network.detailed:
                shown[interface.node] = tc.read_qdiscs(stage.stage.net[interface.node], names)
            both.append(
                DirectionSeen(
                    qdiscs=tuple(one for one in shown[interface.node] if one["dev"] == interface.name),
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
