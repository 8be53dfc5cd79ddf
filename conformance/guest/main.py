"""Run one job: build the network, then, cell by cell, calibrate it and make one trial for each seed.

Reads SCRATCH/job.json, appends one JSON object a line to SCRATCH/out.jsonl as it goes, so that what was
measured survives whatever happens next. Events, told apart by "event", each with the clock's "uptime_s": network,
congestion_control, unsupported, cell, calibration, trial, fault, end. As a program: `main.py SCRATCH`, as root, on a
machine whose kernel has netem (the host room).
"""

import contextlib
import importlib.util
import json
import os
import shutil
import sys
import time
import traceback


def run_job(scratch):
    """Returns an exit status: 0 when every trial was carried out, 1 otherwise."""
    with open(os.path.join(scratch, "job.json")) as f:
        job = json.load(f)
    job["virtual"] = os.environ.get("CC_VIRTUAL_TIME") == "1"
    with open(os.path.join(scratch, "out.jsonl"), "a", buffering=1, opener=_private) as out:

        def emit(event, **fields):
            about = {"event": event, "uptime_s": round(time.monotonic(), 3), **fields}
            out.write(json.dumps(about, sort_keys=True) + "\n")
            out.flush()

        try:
            _run(job, scratch, emit)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            emit("fault", message=f"{type(error).__name__}: {error}", where=f"{last.filename}:{last.lineno}")
            traceback.print_exc()
            return 1
        emit("end")
    return 0


def _private(path, flags):
    """For open(): a file that no stack may read."""
    return os.open(path, flags, 0o600)


def _run(job, scratch, emit):
    # Mininet is imported late, so that a machine without it gets a fault event and not a stack trace.
    from conformance.guest import calibrate, netns, probe, proxy, tc
    from conformance.guest.process import kill_descendants, prepare_harness, set_oom_score
    from conformance.guest.trace import run_traced
    from conformance.guest.trial import Fault, fresh_start, read_queues, run_trial

    prepare_harness()
    _allow_all_algorithms()
    job["pki"] = shutil.copytree(job["pki"], os.path.join(job["work_dir"], "pki"))
    topology = _load(os.path.join(scratch, "topology.py"))
    net = topology.build()
    job.update(scratch=scratch, server_address=net["server"].IP())
    # A proxy is the end of connections, and a sender, like the server.
    senders = [net["server"], *([net[topology.ROUTER[0]]] if job["proxy"] else [])]
    rivals = [net[name] for name in topology.RIVAL[:2]] if job["rival"] else []
    ends = [*senders, net["client"], *rivals]
    try:
        sysctls = {node.name: netns.set_sysctls(node, job["sysctls"]) for node in ends}
        name = None
        if job["kernel_algorithms"]:
            name, why_not = _set_kernel_algorithm(netns, net["server"], job["kernel_algorithms"])
            if why_not:
                emit("unsupported", message=why_not)
                return
            for node in senders:
                sysctls[node.name].update(netns.set_sysctls(node, {"net.ipv4.tcp_congestion_control": name}))
        offload = {
            f"{node.name}:{name}": netns.set_offload(node, name, job["offload"])
            for node in net.hosts
            for name in node.intfNames()
        }
        if job["host_queue"]:
            for node in ends:
                tc.run(node, [f"qdisc replace dev {n} root {job['host_queue']}" for n in node.intfNames()])
        if job["port"] < 1024:
            netns.set_sysctls(net["server"], {"net.ipv4.ip_unprivileged_port_start": job["port"]})
        if job["proxy"]:
            proxy.hand_over(net[topology.ROUTER[0]], job["port"], topology.ROUTER[1:])
        emit("network", sysctls=sysctls, offload=offload, kernel=os.uname().release, kernel_algorithm=name)
        _rule_the_processor()
        for node in net.hosts:
            # Without the nodes there is no network: where a stack eats all memory they are not what the kernel kills.
            set_oom_score(node.pid, -1000)
        if job["probe"]:
            cell = job["cells"][0]
            cell["www"] = _payload(job["work_dir"], cell["transfer_bytes"])
            probe.run(net, topology, job, cell, emit)
            return
        emit("congestion_control", found=_warm_up(net, topology, {**job, "trace": None}, run_trial, Fault))
        for index, cell in enumerate(job["cells"]):
            emit("cell", index=index)
            cell["www"] = _payload(job["work_dir"], cell["transfer_bytes"])
            fresh_start(net, topology, {**job, **cell}, job["calibration_seed"])
            observed = [
                calibrate.observe(net[source], net[sink], address, link, job["rate_packets"], job["loss_packets"])
                for (source, sink, address), link in zip(topology.ENDS, cell["links"], strict=True)
            ]
            for link, segment in zip(observed, topology.SEGMENTS, strict=True):
                link["qdiscs"] = read_queues(net, segment)
            emit("calibration", index=index, observed=observed)
            for seed in cell["seeds"]:
                own = {**cell, "tc": cell["tc_by_seed"][str(seed)]}
                try:
                    if job["trace"]:
                        target = os.path.join(scratch, "trace", f"{index}-{seed}")
                        facts = run_traced(net, topology, job, own, seed, target)
                    else:
                        facts = run_trial(net, topology, job, own, seed)
                except Fault as fault:
                    facts = {"seed": seed, "fault": str(fault)}
                emit("trial", index=index, **facts)
    finally:
        if not job["virtual"]:
            net.stop()
            kill_descendants(set())


def _warm_up(net, topology, job, run_trial, Fault):
    """A small transfer that nobody looks at, so that no trial is its guest's first.

    The kernel draws some of its secrets at the first use of what they protect, and caches what it reads:
    without this, the first trial would differ from the same one made later, if only by microseconds.
    Returns what the kernel said the sender's congestion control was, or None.
    """
    cell = {**job["cells"][0], "transfer_bytes": 200_000}
    cell["www"] = _payload(job["work_dir"], cell["transfer_bytes"])
    with contextlib.suppress(Fault):
        facts = run_trial(net, topology, job, cell, job["calibration_seed"])
        return facts.get("sampled", {}).get("congestion_control")
    return None


def _rule_the_processor():
    """The harness runs when it is due, before any process of a stack: who goes first is never left to history."""
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _payload(work_dir, size):
    """A folder with a file of `size` zero bytes, named by its size: a hole, which costs no memory to read."""
    folder = os.path.join(work_dir, "www")
    os.makedirs(folder, mode=0o755, exist_ok=True)
    with open(os.path.join(folder, str(size)), "wb") as f:
        f.truncate(size)
    return folder


def _allow_all_algorithms():
    """In a network namespace even root gets only allowed algorithms; the list is the initial namespace's."""
    folder = "/proc/sys/net/ipv4/"
    with contextlib.suppress(OSError):
        with open(folder + "tcp_available_congestion_control") as f:
            available = f.read()
        with open(folder + "tcp_allowed_congestion_control", "w") as f:
            f.write(available)


def _set_kernel_algorithm(netns, server, names):
    """Set the first of these that the kernel has; returns (its name, None) or (None, why this kernel cannot)."""
    why_not = None
    for name in names:
        try:
            with netns.inside(server), open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as f:
                f.write(name)
            return name, None
        except FileNotFoundError:
            why_not = why_not or f"this kernel has no congestion control named {' or '.join(names)}"
        except PermissionError:
            why_not = (
                f"this kernel does not allow {name} in a namespace: add it to net.ipv4.tcp_allowed_congestion_control"
            )
    return None, why_not


def _load(path):
    spec = importlib.util.spec_from_file_location("topology", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sys.exit(run_job(sys.argv[1]))
