"""Try out an adapter's side of the contract: what it does when asked wrongly, interrupted, or lied to. Facts only.

Each probe starts from a fresh network and leaves nothing running; conformance/model/emulation/contract.py judges
the facts.
"""

import os
import select
import signal
import socket
import time

from conformance.guest import netns
from conformance.guest.process import StackProcess, kill_descendants
from conformance.guest.trial import environment, fresh_start, own_pids, run_trial, wait_for_port

UNKNOWN_ALGORITHM = "nosuchalgorithm"
_SEED = 7
#: frames of the transfer that are looked at for plain text
_FRAMES = 400
_ETH_P_ALL = 0x0003
#: where a stack could write outside its scratch folder, were it let
_WRITABLE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/log")


def run(net, topology, job, cell, emit):
    """Emit one "probe" event for each clause of the contract."""
    before = _files()
    job = {**job, **cell}
    for name, probe in (
        ("unknown_algorithm", _unknown_algorithm),
        ("transfer", _transfer),
        ("wrong_port", _wrong_port),
        ("wrong_authority", _wrong_authority),
        ("server_killed", _server_killed),
        ("visits", _visits),
        ("server_ends", _server_ends),
    ):
        fresh_start(net, topology, job, _SEED)
        emit("probe", name=name, facts=probe(_Pair(net, topology, job, before)))


class _Pair:
    """A server and a client of the adapter, started with whatever environment a probe wants."""

    def __init__(self, net, topology, job, files_before):
        self.net, self.topology, self.job, self.files_before = net, topology, job, files_before
        self.server = self.client = None

    def start(self, role, **changes):
        directory = os.path.join(self.job["work_dir"], role)
        command = [self.job[role]["program"], role]
        variables = {**environment(role, self.job, directory), **changes}
        process = StackProcess(self.net[role], command, variables, directory, self.job["limits"])
        setattr(self, role, process)
        return process

    def ready(self):
        return wait_for_port(self.net["server"], self.server, self.job)

    def wait(self, process, seconds):
        """Its exit status, or None when it still runs after so many virtual seconds."""
        poll = select.poll()
        poll.register(process.pidfd, select.POLLIN)
        poll.poll(seconds * 1000)
        return process.exit_status

    def visit(self, seconds, **changes):
        """Return status and words of a client after so many virtual seconds; where it still runs, break it off."""
        client = self.start("client", **changes)
        facts = {"exit_status": self.wait(client, seconds), **client.output()}
        kill_descendants(own_pids(self.net) | {self.server.pid})
        client.end()
        self.client = None
        return facts

    def facts(self):
        """Exit status and words of both; ends them."""
        found = {}
        for role in ("client", "server"):
            process = getattr(self, role)
            if process is not None:
                found[role] = {"exit_status": process.exit_status, **process.output()}
        self.end()
        return found

    def end(self):
        for process in (self.client, self.server):
            if process is not None:
                process.end()
        kill_descendants(own_pids(self.net))


def _unknown_algorithm(pair):
    """The server, or the client where that is who asks for the algorithm, must end with status 127."""
    pair.start("server", CC_ALGORITHM=UNKNOWN_ALGORITHM, CC_CALLED=UNKNOWN_ALGORITHM)
    ready = pair.ready()
    if ready:
        pair.wait(pair.start("client", CC_ALGORITHM=UNKNOWN_ALGORITHM, CC_CALLED=UNKNOWN_ALGORITHM), 60)
    return {"ready": ready, **pair.facts()}


def _transfer(pair):
    """One transfer as any trial, with its frames looked at, and what it leaves behind."""
    node, interface = pair.topology.SEGMENTS[pair.job["bottleneck"]][0]
    with netns.inside(pair.net[node]):
        capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(_ETH_P_ALL))
        capture.bind((interface, 0))
    facts = run_trial(pair.net, pair.topology, pair.job, {}, _SEED)
    facts["frames"] = _look_at(capture)
    capture.close()
    facts["written_outside"] = sorted(_files() - pair.files_before)[:5]
    return facts


def _look_at(capture):
    """Of the first frames through the bottleneck: how many, and the median of the longest run of one byte in each."""
    runs = []
    while len(runs) < _FRAMES:
        try:
            frame = capture.recv(1 << 16)
        except BlockingIOError:
            break
        if len(frame) > 200:
            runs.append(_longest_run(frame[54:]))
    return {"seen": len(runs), "median_run": sorted(runs)[len(runs) // 2] if runs else None}


def _longest_run(data):
    longest = at = 0
    while at < len(data):
        end = at + 1
        while end < len(data) and data[end] == data[at]:
            end += 1
        longest, at = max(longest, end - at), end
    return longest


def _files():
    """What lies in the folders that anyone may write to, scratch folders apart."""
    found = set()
    for top in _WRITABLE:
        for folder, folders, files in os.walk(top):
            if folder == "/run":
                folders.clear()
            found.update(os.path.join(folder, name) for name in files)
    return found


def _wrong_port(pair):
    """A client that is sent where nobody listens must fail, and say no result."""
    return _misled(pair, CC_PORT=str(pair.job["port"] + 1))


def _wrong_authority(pair):
    """A client that trusts another authority must refuse the server."""
    return _misled(pair, CC_CA=pair.job["pki"] + "/other-ca.crt")


def _misled(pair, **changes):
    """A good server, and a client that is told something wrong."""
    pair.start("server")
    if not pair.ready():
        return {"ready": False, **pair.facts()}
    client = pair.start("client", **changes)
    ended = pair.wait(client, 120) is not None
    return {"ready": True, "ended": ended, **pair.facts()}


def _server_killed(pair):
    """A client whose server is killed half-way must fail, and not report the whole transfer."""
    pair.start("server")
    if not pair.ready():
        return {"ready": False, **pair.facts()}
    client = pair.start("client")
    pair.wait(client, 2)
    early = client.exit_status
    os.kill(pair.server.pid, signal.SIGKILL)
    pair.wait(pair.server, 1)
    kill_descendants(own_pids(pair.net) | {client.pid})
    ended = pair.wait(client, 300) is not None
    return {"ready": True, "early": early, "ended": ended, **pair.facts()}


def _visits(pair):
    """Have one server asked for what is not there, have a transfer broken off, and then one made to its end."""
    pair.start("server")
    if not pair.ready():
        return {"ready": False, **pair.facts()}
    missing = pair.visit(60, CC_BYTES=str(pair.job["transfer_bytes"] + 1))
    dotted = _status_of_dotted(pair) if pair.job["transport"] == "tcp" else None
    broken_off = pair.visit(1)
    whole = pair.visit(120)
    return {
        "ready": True, "missing": missing, "status_of_dotted": dotted, "broken_off": broken_off, "whole": whole,
        **pair.facts(),
    }  # fmt: skip


def _status_of_dotted(pair):
    """Return the status of a path that leads by ".." to the body; None where the server answers no HTTP/1.1."""
    import ssl  # late: only this clause needs it

    job = pair.job
    context = ssl.create_default_context(cafile=job["pki"] + "/ca.crt")
    path = f"/../{os.path.basename(job['www'])}/{job['transfer_bytes']}"
    try:
        with netns.inside(pair.net["client"]):
            plain = socket.create_connection((job["server_address"], job["port"]), timeout=10)
        with plain, context.wrap_socket(plain, server_hostname=job["hostname"]) as secure:
            secure.sendall(f"GET {path} HTTP/1.1\r\nHost: {job['hostname']}\r\nConnection: close\r\n\r\n".encode())
            return int(secure.recv(1 << 12).split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _server_ends(pair):
    """A server that is asked to end (SIGTERM) should do so within a second."""
    pair.start("server")
    if not pair.ready():
        return {"ready": False, **pair.facts()}
    os.kill(pair.server.pid, signal.SIGTERM)
    began = time.monotonic()
    ended = pair.wait(pair.server, 1) is not None
    return {"ready": True, "ended": ended, "after_s": round(time.monotonic() - began, 3), **pair.facts()}
