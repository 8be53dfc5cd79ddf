"""Run one job: build the network, then calibrate each cell and run its trials.

It reads SCRATCH/job.json and the cells that the host feeds it. It appends the events of protocol.py to
SCRATCH/out.jsonl as they happen, so that measurements survive whatever happens next.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import itertools
import os
import shutil
import time
import traceback

from conformance.guest import (
    kernel_flows,
    netns,
    probe,
    programs,
    protocol,
    proxy,
    splitting,
    tc,
    trace,
    trial,
)
from conformance.guest.clock import ClockFault
from conformance.guest.process import few_descriptors, prepare_harness, set_oom_score
from conformance.guest.stack_flows import FIRST_CLIENT_PORT
from conformance.guest.stage import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from conformance.guest.network_job import CellJob, TrialJob

    Emit = Callable[[protocol.Event], None]

#: duration in ns and bytes of each flow in a guest's first trial, which is not recorded (_warm_up)
_WARM_UP_NS, _WARM_UP_BYTES = 1_000_000_000, 20_000
#: bytes of a flow that is recorded in detail in that trial
_DETAILED_BYTES = 200_000

#: Pages that all TCP sockets of a guest may hold together: more than it has. The kernel's own limit is an eighth of the
#: memory, and flows that reach it stop growing, whatever the network could carry.
_TCP_PAGES = 2**30

#: sysctls that all namespaces share and that can be set in the initial one only. In a guest, this does no harm.
_OF_ALL = frozenset(f"net.core.{name}" for name in ("rmem_default", "rmem_max", "wmem_default", "wmem_max"))
#: seconds between two checks for the next cell. In virtual time, a check costs the host far longer than that: the
#: guest's clock advances by about as much as the host's does, and each trial begins at a time of its own anyway
#: (clock.py)
_LOOK_S = 0.001


def run_job(scratch: str) -> int:
    """Carry out the job of a scratch folder. Return 0 if it came to its end, 1 after a fault."""
    with open(os.path.join(scratch, "out.jsonl"), "a", buffering=1, opener=_private) as out:

        def emit(event: protocol.Event) -> None:
            out.write(protocol.event_line(event))
            out.flush()

        try:
            with open(os.path.join(scratch, "job.json")) as f:
                job = protocol.parse_job(f.read())
            _run(job, scratch, emit)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {error}"
            emit(protocol.Fault(message=message, where=f"{last.filename}:{last.lineno}"))
            traceback.print_exc()
            return 1
        emit(protocol.End())
    return 0


def _private(path: str, flags: int) -> int:
    """Open a file that no stack may read: an opener for open()."""
    return os.open(path, flags, 0o600)


def _run(job: protocol.Job, scratch: str, emit: Emit) -> None:
    prepare_harness()
    _allow_all_algorithms()
    pki = shutil.copytree(job.pki, os.path.join(job.work_dir, "pki"))
    builder = _load(os.path.join(scratch, "topology.py"))
    place = builder.place(job.network)
    # This imports Mininet: on a machine without it, the host gets a fault event and not just a stack trace.
    with few_descriptors():
        net = builder.build(job.network, place)
    stage = Stage(job=job, net=net, place=place, scratch=scratch, pki=pki)
    network = _set_up(stage)
    emit(network)
    if isinstance(network, protocol.Unsupported):
        return
    _rule_the_processor()
    for node in net.hosts:
        # Without the nodes there is no network: the kernel must not kill them when a stack uses up all memory.
        set_oom_score(node.pid, -1000)
    if job.probe:
        for cell in _cells(scratch):
            probe.run(stage, cell, emit)
    else:
        _run_cells(stage, _cells(scratch), emit)


def _cells(scratch: str) -> Iterator[CellJob]:
    """Yield the cells that the host feeds this guest, as they come, until it says that no more follow."""
    for index in itertools.count():
        path = os.path.join(scratch, protocol.cell_file(index))
        while not os.path.exists(path):
            time.sleep(_LOOK_S)
        with open(path) as f:
            cell = protocol.parse_cell(f.read())
        os.unlink(path)
        if cell is None:
            return
        yield cell


def _set_up(stage: Stage) -> protocol.NetworkUp | protocol.Unsupported:
    """Configure all hosts as the job says. Return what the kernel then holds, or why it does not support the job."""
    job, net, network = stage.job, stage.net, stage.job.network
    with open("/proc/sys/net/ipv4/tcp_mem", "w") as f:
        f.write(f"{_TCP_PAGES} {_TCP_PAGES} {_TCP_PAGES}")
    if not (job.server.rootfs or job.client.rootfs):
        # In a user namespace, nobody may mount a tmpfs without bounds. Only images need one; some kernels have none.
        with contextlib.suppress(FileNotFoundError), open("/proc/sys/user/max_user_namespaces", "w") as f:
            f.write("0")
    sysctls: dict[str, dict[str, str | None]] = {}
    of_all = netns.set_sysctls(None, {name: value for name, value in job.sysctls.items() if name in _OF_ALL})
    of_each = {name: value for name, value in job.sysctls.items() if name not in _OF_ALL}
    name = None
    for group, sender, clients in zip(network.groups, stage.place.senders, stage.place.receivers, strict=True):
        ecn = {} if group.ecn is None else {"net.ipv4.tcp_ecn": str(group.ecn)}
        for host in (sender, *clients):
            node = net[host.node]
            sysctls[host.node] = of_all | netns.set_sysctls(node, {**of_each, **ecn})
            if group.host_queue:
                tc.run(node, [f"qdisc replace dev {intfName} root {group.host_queue}" for intfName in node.intfNames()])
        if not group.stack:
            continue
        if job.kernel_algorithms:
            name, why_not = _set_kernel_algorithm(net[sender.node], job.kernel_algorithms)
            if name is None:
                return protocol.Unsupported(message=why_not)
            settings = netns.set_sysctls(net[sender.node], {"net.ipv4.tcp_congestion_control": name})
            sysctls[sender.node].update(settings)
        if job.port < 1024:
            netns.set_sysctls(net[sender.node], {"net.ipv4.ip_unprivileged_port_start": str(job.port)})
        # Queues that tell flows apart do so by ports.
        for number, host in enumerate(clients) if not network.detailed else ():
            first = FIRST_CLIENT_PORT + group.ports * number
            netns.set_sysctls(net[host.node], {"net.ipv4.ip_local_port_range": f"{first} {first + group.ports - 1}"})
    for at, (splitter, where) in enumerate(zip(network.splitters, stage.place.splitters, strict=True)):
        unknown = [algorithm for algorithm in splitter.algorithms if kernel_flows.first_known((algorithm,)) is None]
        if unknown:
            whose = f"the splitter at {splitter.node}"
            return protocol.Unsupported(message=f"this kernel has no congestion control {unknown[0]} for {whose}")
        node = net[where.node]
        sysctls[where.node] = of_all | netns.set_sysctls(node, of_each)
        if name is not None:
            sysctls[where.node] |= netns.set_sysctls(node, {"net.ipv4.tcp_congestion_control": name})
        # Like a server, a splitter sends data.
        for queue in {group.host_queue for group in network.groups if at in group.splitters and group.host_queue}:
            tc.run(node, [f"qdisc replace dev {intfName} root {queue}" for intfName in node.intfNames()])
        for port in splitting.ports(network, at, job.port):
            proxy.hand_over(node, port, (where.near.interface, where.far.interface))
    offload = {
        f"{node.name}:{interface}": netns.set_offload(node, interface, job.offload)
        for node in net.hosts
        for interface in node.intfNames()
    }
    return protocol.NetworkUp(sysctls=sysctls, offload=offload, kernel=os.uname().release, kernel_algorithm=name)


def _run_cells(stage: Stage, cells: Iterable[CellJob], emit: Emit) -> None:
    """Run the trials of each cell that the host feeds, and emit their events."""
    for index, cell in enumerate(cells):
        if index == 0 and cell.trials:
            _warm_up(stage, cell.trials[0], emit)
        emit(protocol.CellBegins(index=index))
        if cell.calibrate:
            emit(protocol.Calibration(index=index, observed=trial.calibrated(stage, cell)))
        if cell.probes:
            emit(protocol.HopsTried(index=index, observed=programs.tried(stage, cell.probes)))
        for trial_job in cell.trials:
            target = os.path.join(stage.scratch, "trace", f"{index}-{trial_job.seed}")
            logs = trace.log_folders(stage.job) if stage.job.trace == "all" else {}
            try:
                facts = trial.run(stage, trial_job, target, logs)
                if logs:
                    group = facts.groups[trial_job.tested]
                    trace.keep(logs, target, group.server, group.flows[trial_job.flow].client if group.flows else None)
            except ClockFault as fault:
                emit(protocol.TrialFailed(index=index, seed=trial_job.seed, message=str(fault)))
            else:
                emit(protocol.TrialDone(index=index, facts=facts))


def _warm_up(stage: Stage, trial_job: TrialJob, emit: Emit) -> None:
    """Make a trial with short flows that is not recorded, so that no trial is its guest's first one.

    The kernel draws some of its secrets at the first use of what they protect, and caches what it reads. Without a
    warm-up, the first trial would differ from the same trial run later, if only by microseconds. All that is kept is
    the sender's congestion control as the kernel reports it.
    """
    control = None
    with contextlib.suppress(ClockFault):
        facts = trial.run(stage, _small(trial_job))
        control = facts.detail.sampled.congestion_control if facts.detail else None
    if stage.job.network.detailed:
        emit(protocol.CongestionControl(observed=control))


def _small(trial_job: TrialJob) -> TrialJob:
    """Return the same trial, but with short flows, and nothing captured."""
    short = (
        {"bytes": _WARM_UP_BYTES, "stop_ns": _WARM_UP_NS} if trial_job.detail is None else {"bytes": _DETAILED_BYTES}
    )
    groups = tuple(
        dataclasses.replace(
            group,
            flows=tuple(dataclasses.replace(flow, start_ns=0, **short) for flow in group.flows),
            requests=(),
            connections=(),
            variables={},
        )
        for group in trial_job.groups
    )
    detail = trial_job.detail and dataclasses.replace(trial_job.detail, bursts=False, exchange=False)
    return dataclasses.replace(trial_job, groups=groups, captured_bytes=0, detail=detail)


def _rule_the_processor() -> None:
    """Schedule the harness before all processes of a stack, so that their order never depends on the past."""
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _allow_all_algorithms() -> None:
    """Allow all algorithms: in other namespaces, even root may use only those on the initial namespace's list."""
    folder = "/proc/sys/net/ipv4/"
    with contextlib.suppress(OSError):
        with open(folder + "tcp_available_congestion_control") as f:
            available = f.read()
        with open(folder + "tcp_allowed_congestion_control", "w") as f:
            f.write(available)


def _set_kernel_algorithm(server: Any, names: Sequence[str]) -> tuple[str | None, str]:
    """Set the first of `names` that the kernel has. Return (that name, ""), or (None, why this kernel cannot)."""
    why_not = ""
    for name in names:
        try:
            with netns.inside(server), open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as f:
                f.write(name)
            return name, ""
        except FileNotFoundError:
            why_not = why_not or f"this kernel has no congestion control named {' or '.join(names)}"
        except PermissionError:
            why_not = (
                f"this kernel does not allow {name} in a namespace: add it to net.ipv4.tcp_allowed_congestion_control"
            )
    return None, why_not


def _load(path: str) -> Any:
    """Import the job's topology from its path."""
    spec = importlib.util.spec_from_file_location("topology", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
