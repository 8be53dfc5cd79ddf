"""Carry out a job whose flows share a network: set up the hosts, then run the trials of each cell."""

from __future__ import annotations

import contextlib
import dataclasses
import os

from conformance.guest import (
    kernel_flows,
    netns,
    programs,
    protocol,
    proxy,
    shared_trial,
    splitting,
    stack_flows,
    tc,
    trace,
)
from conformance.guest.shared_job import GroupFlows
from conformance.guest.topology import Topology
from conformance.guest.trial import Fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from conformance.guest.shared_job import SharedCell, SharedTrial
    from conformance.guest.shared_stage import SharedStage

#: duration in ns and bytes of each flow in a guest's first trial, which is not recorded (_warm_up)
_WARM_UP_NS, _WARM_UP_BYTES = 1_000_000_000, 20_000
#: bytes of a flow that is recorded in detail in that trial
_DETAILED_BYTES = 200_000
#: of two free ports, the kernel always tries the first one first; of more, it would draw one
_PORTS_A_CLIENT = 2

#: Pages that all TCP sockets of a guest may hold together: more than it has. The kernel's own limit is an eighth of the
#: memory, and flows that reach it stop growing, whatever the network could carry.
_TCP_PAGES = 2**30

#: sysctls that all namespaces share and that can be set in the initial one only. In a guest, this does no harm.
_OF_ALL = frozenset(f"net.core.{name}" for name in ("rmem_default", "rmem_max", "wmem_default", "wmem_max"))

#: has no segments or addresses: the Place of a SharedStage says where everything is
TOPOLOGY = Topology(segments=(), addresses={}, taps={})


def set_up(
    stage: SharedStage, choose_algorithm: Callable[[Any, tuple[str, ...]], tuple[str | None, str]]
) -> protocol.Network | protocol.Unsupported:
    """Configure all hosts as the job says. Return what the kernel then holds, or why it does not support the job."""
    job, net = stage.stage.job, stage.stage.net
    with open("/proc/sys/net/ipv4/tcp_mem", "w") as f:
        f.write(f"{_TCP_PAGES} {_TCP_PAGES} {_TCP_PAGES}")
    sysctls: dict[str, dict[str, str | None]] = {}
    of_all = netns.set_sysctls(None, {name: value for name, value in job.sysctls.items() if name in _OF_ALL})
    of_each = {name: value for name, value in job.sysctls.items() if name not in _OF_ALL}
    name = None
    for group, sender, clients in zip(stage.network.groups, stage.place.senders, stage.place.receivers, strict=True):
        ecn = {} if group.ecn is None else {"net.ipv4.tcp_ecn": str(group.ecn)}
        for host in (sender, *clients):
            node = net[host.node]
            sysctls[host.node] = of_all | netns.set_sysctls(node, {**of_each, **ecn})
            if group.host_queue:
                tc.run(node, [f"qdisc replace dev {own} root {group.host_queue}" for own in node.intfNames()])
        if not group.stack:
            continue
        if job.kernel_algorithms:
            name, why_not = choose_algorithm(net[sender.node], job.kernel_algorithms)
            if name is None:
                return protocol.Unsupported(message=why_not)
            found = netns.set_sysctls(net[sender.node], {"net.ipv4.tcp_congestion_control": name})
            sysctls[sender.node].update(found)
        if job.port < 1024:
            netns.set_sysctls(net[sender.node], {"net.ipv4.ip_unprivileged_port_start": str(job.port)})
        # Queues that tell flows apart do so by ports.
        for number, host in enumerate(clients) if not stage.network.detailed else ():
            first = stack_flows.FIRST_CLIENT_PORT + _PORTS_A_CLIENT * number
            netns.set_sysctls(net[host.node], {"net.ipv4.ip_local_port_range": f"{first} {first + 1}"})
    for at, (splitter, where) in enumerate(zip(stage.network.splitters, stage.place.splitters, strict=True)):
        unknown = [own for own in splitter.algorithms if kernel_flows.first_known((own,)) is None]
        if unknown:
            whose = f"the splitter at {splitter.node}"
            return protocol.Unsupported(message=f"this kernel has no congestion control {unknown[0]} for {whose}")
        node = net[where.node]
        sysctls[where.node] = of_all | netns.set_sysctls(node, of_each)
        if name is not None:
            sysctls[where.node] |= netns.set_sysctls(node, {"net.ipv4.tcp_congestion_control": name})
        for port in splitting.ports(stage.network, at, job.port):
            proxy.hand_over(node, port, (splitting.NEAR, splitting.FAR))
    offload = {
        f"{node.name}:{interface}": netns.set_offload(node, interface, job.offload)
        for node in net.hosts
        for interface in node.intfNames()
    }
    return protocol.Network(sysctls=sysctls, offload=offload, kernel=os.uname().release, kernel_algorithm=name)


def run_cells(stage: SharedStage, cells: Iterable[SharedCell], emit: Callable[[protocol.Event], None]) -> None:
    """Run the trials of each cell that the host feeds, and emit their events."""
    how = stage.stage.job.trace
    for index, cell in enumerate(cells):
        if index == 0 and cell.trials:
            _warm_up(stage, cell.trials[0], emit)
        emit(protocol.CellBegins(index=index))
        if cell.calibrate:
            emit(protocol.Calibration(index=index, observed=shared_trial.calibrated(stage, cell)))
        if cell.probes:
            emit(protocol.HopsTried(index=index, observed=programs.tried(stage, cell.probes)))
        for trial in cell.trials:
            target = os.path.join(stage.stage.scratch, "trace", f"{index}-{trial.seed}")
            logs = trace.log_folders(stage.stage.job) if how else {}
            try:
                facts = shared_trial.run(stage, trial, target, logs if how == "all" else {})
                if logs:
                    group = facts.groups[trial.tested]
                    trace.keep(logs, target, group.server, group.flows[trial.flow].client if group.flows else None)
            except Fault as fault:
                emit(protocol.TrialFailed(index=index, seed=trial.seed, message=str(fault)))
            else:
                emit(protocol.SharedDone(index=index, facts=facts))


def _warm_up(stage: SharedStage, trial: SharedTrial, emit: Callable[[protocol.Event], None]) -> None:
    """Make a trial with short flows that is not recorded, so that no trial is its guest's first one.

    The kernel draws some of its secrets at the first use of what they protect, and caches what it reads. Without a
    warm-up, the first trial would differ from the same trial run later, if only by microseconds. All that is kept is
    the sender's congestion control as the kernel reports it.
    """
    found = None
    with contextlib.suppress(Fault):
        facts = shared_trial.run(stage, _small(trial))
        found = facts.detail.sampled.congestion_control if facts.detail else None
    if stage.network.detailed:
        emit(protocol.CongestionControl(found=found))


def _small(trial: SharedTrial) -> SharedTrial:
    """Return the same trial, but with short flows, and nothing captured."""
    short = {"bytes": _WARM_UP_BYTES, "stop_ns": _WARM_UP_NS} if trial.detail is None else {"bytes": _DETAILED_BYTES}
    groups = tuple(
        GroupFlows(
            algorithms=group.algorithms,
            pace=group.pace,
            flows=tuple(dataclasses.replace(flow, start_ns=0, **short) for flow in group.flows),
            requests=(),
        )
        for group in trial.groups
    )
    detail = trial.detail and dataclasses.replace(trial.detail, bursts=False, exchange=False)
    return dataclasses.replace(trial, groups=groups, captured_bytes=0, detail=detail)
