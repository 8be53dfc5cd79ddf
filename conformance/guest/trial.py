"""One trial: fresh queues, a seed, a server, a client, and what was seen. Facts only; the engine judges.

A trial must not depend on what the guest did before it. So, in virtual time, `fresh_start` begins each one
(and each calibration) at a multiple of 65.536 s of uptime, because the kernel's timer wheel rounds long timers
to multiples of up to 512 ms of absolute time; with its own seed; with fresh queues and, but for tc (tc.py), fresh
processes. The kernel keeps no TCP metrics (a sysctl of every profile) and charges nothing for memory calls, whose
number depends on the allocator's past. tests/guest/test_guest.py asserts it, byte for byte.
"""

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

#: TIME_WAIT lasts a minute (net/ipv4/tcp.h: TCP_TIMEWAIT_LEN)
_TIME_WAIT_MS = 61_000
_ALIGN_MS, _CLIENT_ALIGN_MS = 65_536, 128
_TIMER_ABSTIME = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_SEED_FILE = "/sys/module/random/parameters/seed"
_CALLS_FILE = "/sys/module/syscall/parameters/count"
_SNMP = (
    "Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPTimeouts", "TcpExt.TCPFastRetrans", "TcpExt.TCPLossProbes",
    "TcpExt.TCPSpuriousRTOs", "TcpExt.TCPDSACKRecv", "TcpExt.TCPHystartTrainDetect",
    "TcpExt.TCPHystartDelayDetect", "Udp.OutDatagrams", "Udp.InErrors", "Tcp.ActiveOpens", "Tcp.PassiveOpens",
)  # fmt: skip


class Fault(Exception):
    """The trial could not be carried out for a reason that is not the stack's; the message says which."""


def run_trial(net, topology, job, cell, seed):
    """Carry out one trial of `job` (see main.py) in `cell` with `seed`; returns a dict of facts."""
    server, client = net["server"], net["client"]
    job = {**job, **cell}
    fresh_start(net, topology, job, seed)
    processes = []
    sampler = proxy = rival = None
    try:
        began_ns = time.monotonic_ns()
        server_process = _start(server, "server", job)
        processes.append(server_process)
        if not wait_for_port(server, server_process, job):
            return _facts(job, seed, server_process, None, ready=False, virtual_s=_since(began_ns))
        router = None
        if job["proxy"]:
            router = net[topology.ROUTER[0]]
            proxy = Proxy(router, job)
            processes.append(proxy)
            _wait_for_proxy(router, proxy, job)
        if job["rival"]:
            rival = _start_rival(net, topology, job)
            processes.append(rival)
            head_start(seed)
        before, calls_before = _counters(net), _system_calls()
        node, interface = topology.SEGMENTS[job["bottleneck"]][0]
        with netns.inside(net[node]):
            index = socket.if_nametoindex(interface)
        sampler = Sampler(server, job["port"], net[node], index, int(job["queue_handle"], 16) << 16, proxy=router)
        if job["virtual"]:
            _align_clock(_CLIENT_ALIGN_MS)
        client_process = _start(client, "client", job)
        processes.append(client_process)
        watched = [client_process, *([proxy] if proxy else [])]
        elapsed_s, timed_out, half_time = _watch(client, watched, sampler, job["timeout_s"])
        facts = _facts(job, seed, server_process, client_process, ready=True, timed_out=timed_out)
        facts["elapsed_s"] = round(elapsed_s, 6)
        facts["half_time"] = half_time
        facts["sampled"] = sampler.result()
        facts["system_calls"] = _system_calls(calls_before)
        facts["counters"] = {"before": before, "after": _counters(net)}
        facts["qdiscs"] = [queue for segment in topology.SEGMENTS for queue in read_queues(net, segment)]
        facts["proxy"] = proxy.facts() if proxy else None
        if rival and not rival.running:
            raise Fault("the rival's transfer ended during the trial: run it again, and report it if it happens again")
        facts["virtual_s"] = _since(began_ns)
        return facts
    finally:
        for process in reversed(processes):
            process.end()
        if sampler:
            sampler.close()
        kill_descendants(own_pids(net))


def fresh_start(net, topology, job, seed):
    """Fresh folders, and queues as job["tc"] says; in virtual time also a round clock and a seeded kernel."""
    folders.renew(job)
    by_node = {}
    for segment, chain in zip(topology.SEGMENTS, job["tc"], strict=True):
        for node, interface in segment:
            lines = by_node.setdefault(node, [])
            # Deleting what is not there is an error; so there is something.
            lines.append(f"qdisc replace dev {interface} root handle 99: pfifo limit 1000")
            lines.append(f"qdisc del dev {interface} root")
            lines += [line.replace("{dev}", interface) for line in chain]
    if job["virtual"]:
        _align_clock(_ALIGN_MS, _TIME_WAIT_MS)
        with open(_SEED_FILE, "w") as f:
            f.write(str(seed))
    for node, lines in by_node.items():
        tc.run(net[node], lines)


def own_pids(net):
    """Of the harness's own processes, which outlive a trial."""
    return {node.pid for node in net.hosts} | tc.pids()


def read_queues(net, segment):
    """tc.read_qdiscs() of the interfaces of a segment."""
    nodes = dict.fromkeys(node for node, _ in segment)
    return [q for at in nodes for q in tc.read_qdiscs(net[at], [name for node, name in segment if node == at])]


def _align_clock(step_ms, at_least_ms=0):
    """Sleep `at_least_ms`, and on to the next multiple of `step_ms` of uptime, to the nanosecond."""
    step_ns = step_ms * 1_000_000
    target = ((time.monotonic_ns() + at_least_ms * 1_000_000) // step_ns + 1) * step_ns
    deadline = struct.pack("qq", target // 10**9, target % 10**9)
    _LIBC.clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME, deadline, None)


def environment(role, job, directory):
    """The contract's variables for a server or client that works in `directory`."""
    server_address = job["server_address"]
    return {
        **{k: v for k, v in os.environ.items() if k in ("PATH", "LC_ALL", "OPENSSL_ia32cap")},
        "HOME": directory,
        "TMPDIR": directory,
        "CC_ROLE": role,
        "CC_ALGORITHM": job["algorithm"],
        "CC_CALLED": job["called"],
        "CC_ADDRESS": server_address,
        "CC_HOSTNAME": job["hostname"],
        "CC_PORT": str(job["port"]),
        "CC_BYTES": str(job["transfer_bytes"]),
        "CC_WWW": job["www"],
        "CC_CERT": job["pki"] + "/server.crt",
        "CC_KEY": job["pki"] + "/server.key",
        "CC_CA": job["pki"] + "/ca.crt",
        "CC_SCRATCH": directory,
        "CC_BUILD": job[role]["build_dir"],
        **_trace_variables(role, job),
        **({"CC_ROOTFS": job[role]["rootfs"]} if job[role]["rootfs"] else {}),
    }


def _trace_variables(role, job):
    """Where to write qlog and TLS secrets; set only in a trial that is traced."""
    folder = (job.get("trace") or {}).get(role)
    return {"CC_QLOG": f"{folder}/qlog", "SSLKEYLOGFILE": f"{folder}/keys.log"} if folder else {}


def _start(node, role, job):
    directory = os.path.join(job["work_dir"], role)
    command = [job[role]["program"], role]
    try:
        return StackProcess(node, command, environment(role, job, directory), directory, job["limits"])
    except BlockingIOError as error:
        most = job["limits"]["processes"]
        raise Fault(f"cannot start the {role}: the stack runs {most} processes, as many as it may") from error
    except OSError as error:
        raise Fault(f"cannot start {job[role]['program']} {role}: {error.strerror or error}") from error


def wait_for_port(server, process, job):
    """True once `process` has bound its port; False when it ended or took too long."""
    began_ns = time.monotonic_ns()
    while (waited_ns := time.monotonic_ns() - began_ns) < job["ready_timeout_s"] * 10**9:
        if netns.port_is_bound(server, job["port"], job["transport"]):
            return True
        if process.exit_status is not None:
            return False
        time.sleep(0.005 if waited_ns < 10**9 else 0.1)
    return False


def _wait_for_proxy(router, proxy, job):
    began_ns = time.monotonic_ns()
    while not netns.port_is_bound(router, job["port"], "tcp"):
        facts = proxy.facts()
        if facts["exit_status"] is not None:
            words = " ".join(facts["stderr"].split())[-300:] or "it printed nothing"
            raise Fault(f"the proxy ended with status {facts['exit_status']} before it was ready: {words}")
        if time.monotonic_ns() - began_ns > job["ready_timeout_s"] * 10**9:
            raise Fault("the proxy was never ready")
        time.sleep(0.005)


def _start_rival(net, topology, job):
    source, sink, address = topology.RIVAL
    try:
        return Rival(net[source], net[sink], address, job["rival"])
    except FileNotFoundError as error:
        why_not = f"this kernel has no congestion control {job['rival']} for the rival"
        raise Fault(f"{why_not}: name one that it has (cubic, reno, bbr)") from error
    except OSError as error:
        raise Fault(f"cannot start the rival: {error.strerror or error}") from error


def _watch(client, watched, sampler, timeout_s):
    """Sample until one of the `watched` processes ends or the time is over: (elapsed seconds, timed out, at half time).

    The last is the client's interface counters when half of the time was over; None where it never was.
    """
    poll = select.poll()
    for process in watched:
        poll.register(process.pidfd, select.POLLIN)
    # Integers: a rounding error that depends on the uptime would move a look, and with it everything.
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


def _system_calls(before=0):
    """System calls of the whole guest since it had made `before`; None where the kernel does not count them."""
    try:
        with open(_CALLS_FILE) as f:
            return int(f.read()) - (before or 0)
    except FileNotFoundError:
        return None


def _since(began_ns):
    return round((time.monotonic_ns() - began_ns) / 1e9, 6)


def _counters(net):
    ends = [node for node in net.hosts if node.name in ("client", "router", "server")]
    return {
        "interfaces": {node.name: netns.interface_counters(node) for node in net.hosts},
        **{node.name: netns.snmp_counters(node, _SNMP) for node in ends},
    }


def _facts(job, seed, server_process, client_process, *, ready, timed_out=False, virtual_s=None):
    def of(process):
        if process is None:
            return None
        about = {"exit_status": process.exit_status, "ran_out_of_memory": process.ran_out_of_memory}
        return {**about, **process.output()}

    return {
        "seed": seed,
        "ready": ready,
        "timed_out": timed_out,
        "transfer_bytes": job["transfer_bytes"],
        "server": of(server_process),
        "client": of(client_process),
        "virtual_s": virtual_s,
    }
