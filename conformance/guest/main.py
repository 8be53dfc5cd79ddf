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

from conformance.guest import calibrate, netns, probe, protocol, proxy, shared_main, shared_network, tc
from conformance.guest.bursts import run_counting
from conformance.guest.exchange import MOST_BYTES, run_timed
from conformance.guest.process import few_descriptors, prepare_harness, set_oom_score
from conformance.guest.shared_stage import SharedStage
from conformance.guest.stage import Stage, transfer
from conformance.guest.trace import run_traced
from conformance.guest.trial import Fault, fresh_start, read_queues, run_trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from conformance.guest.seen import LinkSeen
    from conformance.guest.shared_job import SharedNetwork

    Emit = Callable[[protocol.Event], None]
    #: what the host feeds a guest: a CellJob or a SharedCell
    C = TypeVar("C")

_WARM_UP_BYTES = 200_000
#: seconds between two checks for the next cell. In virtual time, a check costs the host far longer than that: the
#: guest's clock advances by about as much as the host's does, and each trial begins at a time of its own anyway
#: (trial.py: fresh_start)
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
    if job.network is not None:
        _run_shared(job, job.network, scratch, pki, emit)
        return
    builder = _load(os.path.join(scratch, "topology.py"))
    # This imports Mininet: on a machine without it, the host gets a fault event and not just a stack trace.
    with few_descriptors():
        net = builder.build()
    stage = Stage(job=job, net=net, topology=builder.TOPOLOGY, scratch=scratch, pki=pki)
    network = _set_up(stage)
    emit(network)
    if isinstance(network, protocol.Unsupported):
        return
    _rule_the_processor()
    for node in net.hosts:
        # Without the nodes there is no network: the kernel must not kill them when a stack uses up all memory.
        set_oom_score(node.pid, -1000)
    for index, cell in enumerate(_cells(scratch, protocol.parse_cell)):
        if job.probe:
            probe.run(stage, cell, emit)
            continue
        if index == 0:
            _warm_up(stage, cell, emit)
        _run_cell(stage, index, cell, emit)


def _run_shared(job: protocol.Job, network: SharedNetwork, scratch: str, pki: str, emit: Emit) -> None:
    """Carry out a job whose flows share a network."""
    place = shared_network.place(network)
    with few_descriptors():
        net = shared_network.build(network, place)
    stage = Stage(job=job, net=net, topology=shared_main.TOPOLOGY, scratch=scratch, pki=pki)
    shared = SharedStage(stage=stage, network=network, place=place)
    found = shared_main.set_up(shared, _set_kernel_algorithm)
    emit(found)
    if isinstance(found, protocol.Unsupported):
        return
    _rule_the_processor()
    for node in net.hosts:
        set_oom_score(node.pid, -1000)
    shared_main.run_cells(shared, _cells(scratch, protocol.parse_shared_cell), emit)


def _cells(scratch: str, parse: Callable[[str], C | None]) -> Iterator[C]:
    """Yield the cells that the host feeds this guest, as they come, until it says that no more follow."""
    for index in itertools.count():
        path = os.path.join(scratch, protocol.cell_file(index))
        while not os.path.exists(path):
            time.sleep(_LOOK_S)
        with open(path) as f:
            cell = parse(f.read())
        os.unlink(path)
        if cell is None:
            return
        yield cell


def _set_up(stage: Stage) -> protocol.Network | protocol.Unsupported:
    """Configure all nodes as the job says. Return what the kernel then holds, or why it does not support the job."""
    job, net = stage.job, stage.net
    # Like the server, a proxy terminates connections and sends data.
    senders = [net["server"], *([net[stage.router.node]] if job.proxy else [])]
    rivals = [net[stage.rival.source], net[stage.rival.sink]] if job.rival else []
    ends = [*senders, net["client"], *rivals]
    sysctls = {node.name: netns.set_sysctls(node, job.sysctls) for node in ends}
    name = None
    if job.kernel_algorithms:
        name, why_not = _set_kernel_algorithm(net["server"], job.kernel_algorithms)
        if name is None:
            return protocol.Unsupported(message=why_not)
        for node in senders:
            sysctls[node.name].update(netns.set_sysctls(node, {"net.ipv4.tcp_congestion_control": name}))
    offload = {
        f"{node.name}:{interface}": netns.set_offload(node, interface, job.offload)
        for node in net.hosts
        for interface in node.intfNames()
    }
    if job.host_queue:
        for node in ends:
            tc.run(node, [f"qdisc replace dev {n} root {job.host_queue}" for n in node.intfNames()])
    if job.port < 1024:
        netns.set_sysctls(net["server"], {"net.ipv4.ip_unprivileged_port_start": str(job.port)})
    if job.proxy:
        router = stage.router
        proxy.hand_over(net[router.node], job.port, (router.client_side, router.server_side))
    return protocol.Network(sysctls=sysctls, offload=offload, kernel=os.uname().release, kernel_algorithm=name)


def _warm_up(stage: Stage, cell: protocol.CellJob, emit: Emit) -> None:
    """Make a small transfer that is not recorded, so that no trial is its guest's first transfer.

    The kernel draws some of its secrets at the first use of what they protect, and caches what it reads. Without a
    warm-up, the first trial would differ from the same trial run later, if only by microseconds. All that is kept is
    the sender's congestion control as the kernel reports it.
    """
    small = transfer(stage, cell, stage.job.probing.seed, _WARM_UP_BYTES)
    found = None
    with contextlib.suppress(Fault):
        facts = run_trial(stage, small)
        found = facts.transfer.sampled.congestion_control if facts.transfer else None
    emit(protocol.CongestionControl(found=found))


def _run_cell(stage: Stage, index: int, cell: protocol.CellJob, emit: Emit) -> None:
    job = stage.job
    emit(protocol.CellBegins(index=index))
    usual = transfer(stage, cell, job.probing.seed)
    if cell.calibrate:
        emit(protocol.Calibration(index=index, observed=_calibrate(stage, cell)))
    for trial in cell.trials:
        own = dataclasses.replace(usual, seed=trial.seed, tc=trial.tc)
        try:
            if job.trace:
                target = os.path.join(stage.scratch, "trace", f"{index}-{trial.seed}")
                facts = run_traced(stage, own, target)
            elif job.bursts:
                facts = run_counting(stage, own, cell.rate_mbps)
            elif own.transfer_bytes <= MOST_BYTES:
                facts = run_timed(stage, own)
            else:
                facts = run_trial(stage, own)
        except Fault as fault:
            emit(protocol.TrialFailed(index=index, seed=trial.seed, message=str(fault)))
        else:
            emit(protocol.TrialDone(index=index, facts=facts))


def _calibrate(stage: Stage, cell: protocol.CellJob) -> tuple[LinkSeen, ...]:
    net, segments, probing = stage.net, stage.topology.segments, stage.job.probing
    fresh_start(stage, cell.tc, probing.seed)
    observed = [calibrate.observe(net, segments[p.link].queues[p.way], p, probing) for p in cell.calibrate]
    return tuple(
        dataclasses.replace(seen, qdiscs=tuple(read_queues(net, segments[probe.link])))
        for seen, probe in zip(observed, cell.calibrate, strict=True)
    )


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
