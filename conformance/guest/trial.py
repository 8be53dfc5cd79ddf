"""Run one trial: set fresh queues and a seed, run a server and a client, and return what was seen.

It returns facts, which the engine judges. A trial must not depend on what the guest did before it.
`fresh_start` therefore begins each trial (and each calibration) at a multiple of 65.536 s of uptime, because the
kernel's timer wheel rounds long timers to multiples of up to 512 ms of absolute time. A trial has its own seed, fresh
queues and, except for tc (tc.py), fresh processes. The kernel keeps no TCP metrics (a sysctl of every profile) and
charges nothing for memory calls, whose number depends on the allocator's past. tests/guest/test_guest.py asserts this
independence, byte for byte.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import socket
import struct
import time

from conformance.guest import folders, netns, tc
from conformance.guest.process import StackProcess, kill_descendants
from conformance.guest.proxy import Proxy
from conformance.guest.rival import Rival, head_start
from conformance.guest.sampler import Sampler
from conformance.guest.seen import Counters, Span, TransferSeen, TrialFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from conformance.guest.netns import Node
    from conformance.guest.seen import InterfaceCounters
    from conformance.guest.stage import Stage, Transfer
    from conformance.guest.topology import Segment

#: longer than TIME_WAIT, which lasts a minute (net/ipv4/tcp.h: TCP_TIMEWAIT_LEN)
_TIME_WAIT_MS = 61_000
_ALIGN_MS, CLIENT_ALIGN_MS = 65_536, 128
#: seconds between two checks for connections, and how many checks at most: an orphaned socket gives up after eight
#: retransmissions, at most two minutes apart (tcp_orphan_retries, TCP_RTO_MAX)
_SILENCE_S, _MOST_SILENCES = 60, 30
_TIMER_ABSTIME = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_SEED_FILE = "/sys/module/random/parameters/seed"
_CALLS_FILE = "/sys/module/syscall/parameters/count"
SNMP = (
    "Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPTimeouts", "TcpExt.TCPFastRetrans", "TcpExt.TCPLossProbes",
    "TcpExt.TCPSpuriousRTOs", "TcpExt.TCPDSACKRecv", "TcpExt.TCPHystartTrainDetect",
    "TcpExt.TCPHystartDelayDetect", "Udp.OutDatagrams", "Udp.InErrors", "Tcp.ActiveOpens", "Tcp.PassiveOpens",
)  # fmt: skip


class Fault(Exception):
    """The trial could not be carried out for a reason that is not the stack's; the message says which."""


def run_trial(stage: Stage, transfer: Transfer) -> TrialFacts:
    """Carry out one trial, and return what was seen of it. Raises Fault."""
    fresh_start(stage, transfer.tc, transfer.seed)
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(lambda: kill_descendants(own_pids(stage.net)))
        began_ns = time.monotonic_ns()
        server = _start(stage, "server", transfer, cleanup)
        if not wait_for_port(stage, server):
            return TrialFacts(
                seed=transfer.seed, transfer_bytes=transfer.transfer_bytes, virtual_s=_since(began_ns),
                server=server.seen(), client=None, transfer=None,
            )  # fmt: skip
        proxy = _start_proxy(stage, cleanup) if stage.job.proxy else None
        rival = _start_rival(stage, stage.job.rival, transfer.seed, cleanup) if stage.job.rival else None
        before, calls_before = _counters(stage), system_calls()
        sampler = _sampler(stage, transfer)
        cleanup.callback(sampler.close)
        align_clock(CLIENT_ALIGN_MS)
        client = _start(stage, "client", transfer, cleanup)
        watched = [client.pidfd, *([proxy.pidfd] if proxy else [])]
        elapsed_s, timed_out, half_time = _watch(stage.net["client"], watched, sampler, stage.job.timeout_s)
        # In virtual time each query costs time: their order and number affect every result.
        seen = server.seen(), client.seen()
        found = TransferSeen(
            timed_out=timed_out,
            elapsed_s=round(elapsed_s, 6),
            half_time=half_time,
            sampled=sampler.result(),
            system_calls=system_calls(calls_before),
            counters=Span(before=before, after=_counters(stage)),
            qdiscs=tuple(q for segment in stage.topology.segments for q in read_queues(stage.net, segment)),
            proxy=proxy.seen() if proxy else None,
            captured={},
            bursts=None,
            exchange=None,
        )
        if rival and not rival.running:
            raise Fault("the rival's transfer ended during the trial: run it again, and report it if it happens again")
        return TrialFacts(
            seed=transfer.seed, transfer_bytes=transfer.transfer_bytes, virtual_s=_since(began_ns), server=seen[0],
            client=seen[1], transfer=found,
        )  # fmt: skip


def fresh_start(stage: Stage, tc_lines: Sequence[Sequence[str]], seed: int) -> None:
    """Recreate folders, set queues by `tc_lines`, align the clock and seed the kernel."""
    folders.renew(stage)
    by_node: dict[str, list[str]] = {}
    for segment, chain in zip(stage.topology.segments, tc_lines, strict=True):
        for queue in segment.queues:
            lines = by_node.setdefault(queue.node, [])
            # Deleting a qdisc that does not exist is an error, so one is created first.
            lines.append(f"qdisc replace dev {queue.name} root handle 99: pfifo limit 1000")
            lines.append(f"qdisc del dev {queue.name} root")
            lines += [line.replace("{dev}", queue.name) for line in chain]
    start_clock(stage, seed)
    for node, lines in by_node.items():
        tc.run(stage.net[node], lines)


def start_clock(stage: Stage, seed: int) -> None:
    """Wait until old connections have ended, align the clock, and seed the kernel."""
    _await_silence(stage.net)
    align_clock(_ALIGN_MS, _TIME_WAIT_MS)
    with open(_SEED_FILE, "w") as f:
        f.write(str(seed))


def _await_silence(net: Any) -> None:
    """Sleep until no connection of an earlier trial is left. Raises Fault if one never ends.

    A connection whose far end was killed first goes on sending its last bytes for minutes. These packets would be in
    the next trial, and the socket itself might be taken for that trial's sender.
    """
    for _ in range(_MOST_SILENCES):
        if not any(netns.has_connections(node) for node in net.hosts):
            return
        time.sleep(_SILENCE_S)
    raise Fault("a connection of an earlier trial never ended: run it again, and report it if it happens again")


def own_pids(net: Any) -> set[int]:
    """Return the process ids of the harness's own processes, which outlive a trial."""
    return {node.pid for node in net.hosts} | tc.pids()


def read_queues(net: Any, segment: Segment) -> list[dict[str, object]]:
    """Return what tc shows of the interfaces of a segment."""
    names: dict[str, list[str]] = {}
    for queue in segment.queues:
        names.setdefault(queue.node, []).append(queue.name)
    return [found for node, of in names.items() for found in tc.read_qdiscs(net[node], of)]


def align_clock(step_ms: int, at_least_ms: int = 0) -> None:
    """Sleep for `at_least_ms` and then until the next multiple of `step_ms` of uptime, to the nanosecond."""
    step_ns = step_ms * 1_000_000
    target = ((time.monotonic_ns() + at_least_ms * 1_000_000) // step_ns + 1) * step_ns
    deadline = struct.pack("qq", target // 10**9, target % 10**9)
    _LIBC.clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME, deadline, None)


def environment(stage: Stage, role: str, transfer: Transfer) -> dict[str, str]:
    """Return the environment variables of the contract for the server or client of a transfer."""
    job, program, directory = stage.job, stage.program(role), stage.folder(role)
    return {
        **{k: v for k, v in os.environ.items() if k in ("PATH", "LC_ALL", "OPENSSL_ia32cap")},
        "HOME": directory,
        "TMPDIR": directory,
        "CC_ROLE": role,
        "CC_ALGORITHM": job.algorithm,
        "CC_CALLED": job.called,
        "CC_ADDRESS": stage.topology.addresses["server"],
        "CC_HOSTNAME": job.hostname,
        "CC_PORT": str(job.port),
        "CC_BYTES": str(transfer.transfer_bytes),
        "CC_WWW": transfer.www,
        "CC_CERT": stage.pki + "/server.crt",
        "CC_KEY": stage.pki + "/server.key",
        "CC_CA": stage.pki + "/ca.crt",
        "CC_SCRATCH": directory,
        "CC_BUILD": program.build_dir,
        **_trace_variables(transfer.logs.get(role)),
        **({"CC_ROOTFS": program.rootfs} if program.rootfs else {}),
    }


def _trace_variables(folder: str | None) -> dict[str, str]:
    """Return the variables that say where to write qlog and TLS secrets; none if the trial is not traced."""
    return {"CC_QLOG": f"{folder}/qlog", "SSLKEYLOGFILE": f"{folder}/keys.log"} if folder else {}


def _start(stage: Stage, role: str, transfer: Transfer, cleanup: contextlib.ExitStack) -> StackProcess:
    program, limits, directory = stage.program(role).path, stage.job.limits, stage.folder(role)
    try:
        process = StackProcess(stage.net[role], [program, role], environment(stage, role, transfer), directory, limits)
    except BlockingIOError as error:
        most = limits.processes
        raise Fault(f"cannot start the {role}: the stack already runs {most} processes, its limit") from error
    except OSError as error:
        raise Fault(f"cannot start {program} {role}: {error.strerror or error}") from error
    cleanup.callback(process.end)
    return process


def wait_for_port(stage: Stage, process: StackProcess) -> bool:
    """Wait until the server `process` has bound its port. Return whether it did, before it ended or took too long."""
    job, server = stage.job, stage.net["server"]
    began_ns = time.monotonic_ns()
    while (waited_ns := time.monotonic_ns() - began_ns) < job.ready_timeout_s * 10**9:
        if netns.port_is_bound(server, job.port, job.transport):
            return True
        if process.exit_status is not None:
            return False
        time.sleep(0.005 if waited_ns < 10**9 else 0.1)
    return False


def _start_proxy(stage: Stage, cleanup: contextlib.ExitStack) -> Proxy:
    """Start the proxy on the router, and wait until it listens. Raises Fault if it never does."""
    router = stage.net[stage.router.node]
    proxy = Proxy(router, stage)
    cleanup.callback(proxy.end)
    began_ns = time.monotonic_ns()
    while not netns.port_is_bound(router, stage.job.port, "tcp"):
        seen = proxy.seen()
        if seen.exit_status is not None:
            words = " ".join(seen.stderr.split())[-300:] or "it printed nothing"
            raise Fault(f"the proxy ended with status {seen.exit_status} before it was ready: {words}")
        if time.monotonic_ns() - began_ns > stage.job.ready_timeout_s * 10**9:
            raise Fault("the proxy was never ready")
        time.sleep(0.005)
    return proxy


def _start_rival(stage: Stage, algorithm: str, seed: int, cleanup: contextlib.ExitStack) -> Rival:
    """Start the rival's transfer, and give it its head start. Raises Fault if the kernel lacks its algorithm."""
    flow = stage.rival
    try:
        rival = Rival(stage.net[flow.source], stage.net[flow.sink], flow.address, algorithm)
    except FileNotFoundError as error:
        why_not = f"this kernel has no congestion control {algorithm} for the rival"
        raise Fault(f"{why_not}: choose one that it has (cubic, reno, bbr)") from error
    except OSError as error:
        raise Fault(f"cannot start the rival: {error.strerror or error}") from error
    cleanup.callback(rival.end)
    head_start(seed)
    return rival


def _sampler(stage: Stage, transfer: Transfer) -> Sampler:
    """Return the Sampler of a transfer's server, its proxy if any, and the queue of its bottleneck."""
    job, net = stage.job, stage.net
    queue = stage.bottleneck(transfer)
    with netns.inside(net[queue.node]):
        index = socket.if_nametoindex(queue.name)
    router = net[stage.router.node] if job.proxy else None
    return Sampler(net["server"], job.port, net[queue.node], index, int(job.queue_handle, 16) << 16, proxy=router)


def _watch(
    client: Node, watched: Sequence[int], sampler: Sampler, timeout_s: float
) -> tuple[float, bool, dict[str, InterfaceCounters] | None]:
    """Sample until a process (pidfd) of `watched` ends or the time is over.

    Return (elapsed seconds, whether the time ran out, the client's interface counters after half of it, or None).
    """
    poll = select.poll()
    for pidfd in watched:
        poll.register(pidfd, select.POLLIN)
    # Integers: a rounding error that depends on the uptime would shift a sample and everything after it.
    start_ns = due_ns = time.monotonic_ns()
    end_ns = start_ns + round(timeout_s * 1e9)
    half_time = None
    while True:
        now_ns = time.monotonic_ns()
        if now_ns >= end_ns:
            return (now_ns - start_ns) / 1e9, True, half_time
        if half_time is None and now_ns - start_ns > end_ns - now_ns:
            half_time = netns.interface_counters(client)
        sampler.look(now_ns - start_ns)
        due_ns = max(due_ns + sampler.gap_ns, now_ns)
        wait_ns = min(due_ns, end_ns) - time.monotonic_ns()
        if poll.poll(max(-(-wait_ns // 1_000_000), 0)):
            return (time.monotonic_ns() - start_ns) / 1e9, False, half_time


def system_calls(before: int | None = 0) -> int | None:
    """Return how many system calls the whole guest has made beyond `before`; None if its kernel does not count them."""
    try:
        with open(_CALLS_FILE) as f:
            return int(f.read()) - (before or 0)
    except FileNotFoundError:
        return None


def _since(began_ns: int) -> float:
    return round((time.monotonic_ns() - began_ns) / 1e9, 6)


def _counters(stage: Stage) -> Counters:
    hosts, router = stage.net.hosts, stage.topology.router
    interfaces = {node.name: netns.interface_counters(node) for node in hosts}
    # In the order of hosts: in virtual time, each file that is read costs time.
    ends = ("client", "server", *([router.node] if router else []))
    snmp = {node.name: netns.snmp_counters(node, SNMP) for node in hosts if node.name in ends}
    return Counters(
        interfaces=interfaces,
        client=snmp["client"],
        server=snmp["server"],
        router=snmp[router.node] if router else None,
    )
