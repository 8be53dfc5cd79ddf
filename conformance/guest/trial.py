"""One trial: fresh queues, a seed, a server, a client, and what was seen. Facts only; the engine judges.

A trial must not depend on the trials before it in the same guest. So, in virtual time, each starts at a
multiple of 65.536 s of uptime (the kernel's timer wheel rounds long timers to multiples of up to 512 ms
of absolute time), with its own seed, fresh queues and fresh processes; the kernel keeps no TCP metrics
(a sysctl of every profile). tests/emulation asserts it byte for byte.
"""

import os
import select
import socket
import time

from conformance.guest import netns
from conformance.guest.process import StackProcess, kill_descendants
from conformance.guest.sampler import Sampler

_ALIGN_S = 65.536
_SEED_FILE = "/sys/module/random/parameters/seed"
_SNMP = (
    "Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPTimeouts", "TcpExt.TCPFastRetrans", "TcpExt.TCPLossProbes",
    "TcpExt.TCPSpuriousRTOs", "TcpExt.TCPDSACKRecv", "TcpExt.TCPHystartTrainDetect",
    "TcpExt.TCPHystartDelayDetect", "Udp.OutDatagrams", "Udp.InErrors",
)  # fmt: skip


class Fault(Exception):
    """The trial could not be carried out for a reason that is not the stack's; the message says which."""


def run_trial(net, topology, job, seed):
    """Carry out one trial of `job` (see main.py) with `seed`; returns a dict of facts."""
    server, client = net["server"], net["client"]
    if job["virtual"]:
        _align_clock()
    reset_queues(net, topology, job)
    if job["virtual"]:
        with open(_SEED_FILE, "w") as f:
            f.write(str(seed))
    processes = []
    sampler = None
    spare = {node.pid for node in net.hosts}
    try:
        at_start = time.monotonic()
        server_process = _start(server, "server", job)
        processes.append(server_process)
        if not _wait_for_port(server, server_process, job):
            return _facts(job, seed, server_process, None, ready=False, virtual_s=time.monotonic() - at_start)
        before = _counters(net)
        node, interface = topology.BOTTLENECK
        with netns.inside(net[node]):
            index = socket.if_nametoindex(interface)
        sampler = Sampler(server, job["port"], net[node], index, int(job["queue_handle"], 16) << 16)
        client_process = _start(client, "client", job)
        processes.append(client_process)
        elapsed_s, timed_out = _watch(client_process, sampler, job["timeout_s"])
        facts = _facts(job, seed, server_process, client_process, ready=True, timed_out=timed_out)
        facts["elapsed_s"] = round(elapsed_s, 6)
        facts["sampled"] = sampler.result()
        facts["counters"] = {"before": before, "after": _counters(net)}
        facts["qdiscs"] = netns.read_qdiscs(net[node], [i for n, i in topology.SHAPED if n == node])
        facts["virtual_s"] = round(time.monotonic() - at_start, 6)
        return facts
    finally:
        for process in reversed(processes):
            process.end()
        if sampler:
            sampler.close()
        kill_descendants(spare)


def _align_clock():
    now = time.monotonic()
    time.sleep((now // _ALIGN_S + 1) * _ALIGN_S - now)


def reset_queues(net, topology, job):
    by_node = {}
    for node, interface in topology.SHAPED:
        lines = by_node.setdefault(node, [])
        if job.get("queues_set"):
            lines.append(f"qdisc del dev {interface} root")
        lines += [line.replace("{dev}", interface) for line in job["tc"]]
    for node, lines in by_node.items():
        netns.run_tc(net[node], lines)
    job["queues_set"] = True


def _environment(role, job, directory):
    server_address = job["server_address"]
    return {
        **{k: v for k, v in os.environ.items() if k in ("PATH", "LC_ALL", "OPENSSL_ia32cap")},
        "HOME": directory,
        "TMPDIR": directory,
        "CC_ROLE": role,
        "CC_ALGORITHM": job["algorithm"],
        "CC_ADDRESS": server_address,
        "CC_HOSTNAME": job["hostname"],
        "CC_PORT": str(job["port"]),
        "CC_BYTES": str(job["transfer_bytes"]),
        "CC_CERT": job["pki"] + "/server.crt",
        "CC_KEY": job["pki"] + "/server.key",
        "CC_CA": job["pki"] + "/ca.crt",
        "CC_SCRATCH": directory,
    }


def _start(node, role, job):
    directory = f"/tmp/conformance-{os.getpid()}-{role}"
    command = [os.path.join(job["adapter_dir"], job["program"]), role]
    try:
        return StackProcess(node, command, _environment(role, job, directory), directory, job["limits"])
    except OSError as error:
        raise Fault(f"cannot start {job['program']} {role}: {error.strerror or error}") from error


def _wait_for_port(server, process, job):
    deadline = time.monotonic() + job["ready_timeout_s"]
    while time.monotonic() < deadline:
        if netns.port_is_bound(server, job["port"], job["transport"]):
            return True
        if process.exit_status is not None:
            return False
        time.sleep(0.005)
    return False


def _watch(client_process, sampler, timeout_s):
    """Sample until the client ends or the time is over; returns (elapsed seconds, timed out)."""
    poll = select.poll()
    poll.register(client_process.pidfd, select.POLLIN)
    start = time.monotonic()
    due = start
    while True:
        now = time.monotonic()
        if now - start >= timeout_s:
            return now - start, True
        sampler.look(now)
        due = max(due + sampler.gap_s, now)
        wait_s = min(due, start + timeout_s) - time.monotonic()
        if poll.poll(max(wait_s, 0) * 1000):
            return time.monotonic() - start, False


def _counters(net):
    return {
        "interfaces": {node.name: netns.interface_counters(node) for node in net.hosts},
        "server": netns.snmp_counters(net["server"], _SNMP),
        "client": netns.snmp_counters(net["client"], _SNMP),
    }


def _facts(job, seed, server_process, client_process, *, ready, timed_out=False, virtual_s=None):
    def of(process):
        if process is None:
            return None
        return {"exit_status": process.exit_status, **process.output()}

    return {
        "seed": seed,
        "ready": ready,
        "timed_out": timed_out,
        "transfer_bytes": job["transfer_bytes"],
        "server": of(server_process),
        "client": of(client_process),
        "virtual_s": virtual_s,
    }
