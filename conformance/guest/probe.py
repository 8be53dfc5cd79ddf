"""Try out an adapter's side of the contract: what its programs do on wrong requests, interruptions or false settings.

Each probe starts from a fresh network, leaves nothing running, and returns facts;
conformance/model/emulation/contract.py judges them.
"""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import socket
import time

from conformance.guest import netns, trial
from conformance.guest.kernel_flows import write_lines
from conformance.guest.process import NOBODY, StackProcess, kill_descendants
from conformance.guest.protocol import Probed, TransferProbed, VisitsProbed
from conformance.guest.seen import FramesSeen, ProbeFacts, ProcessSeen, VisitFacts
from conformance.guest.stack_flows import wait_for_port
from conformance.guest.stage import make_body
from conformance.guest.trial import fresh_queues, own_pids, renew_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.guest.network_job import CellJob, TrialJob
    from conformance.guest.protocol import Event
    from conformance.guest.stage import Stage

UNKNOWN_ALGORITHM = "nosuchalgorithm"
_SEED = 7
#: how many frames of the transfer are examined for plain text
_FRAMES = 400
_ETH_P_ALL = 0x0003
#: what one client requests on one connection: at intervals, and after pauses (docs/contract.md, CC_REQUESTS); 20, as a
#: server may have a slot for each stream and never free one
_SEVERAL = (*("20000 every 0.1",) * 18, "30000 pause 1", "100000 pause 0")
#: folders outside its scratch folder that a stack could write to if it were allowed to
_WRITABLE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/log")


def run(stage: Stage, cell: CellJob, emit: Callable[[Event], None]) -> None:
    """Make the probes in a cell, and emit an event for each."""
    before = _files()
    (trial_job,) = cell.trials
    trial_job = dataclasses.replace(trial_job, seed=_SEED, tc=cell.tc)
    probes: tuple[Callable[[], Event], ...] = (
        lambda: Probed(name="unknown_algorithm", facts=_unknown_algorithm(_Pair(stage, trial_job))),
        lambda: _transfer(stage, trial_job, before),
        lambda: Probed(name="wrong_port", facts=_wrong_port(_Pair(stage, trial_job))),
        lambda: Probed(name="wrong_authority", facts=_wrong_authority(_Pair(stage, trial_job))),
        lambda: Probed(name="server_killed", facts=_server_killed(_Pair(stage, trial_job))),
        lambda: _visits(stage, trial_job),
        lambda: Probed(name="server_ends", facts=_server_ends(_Pair(stage, trial_job))),
    )
    for probe in probes:
        renew_folders(stage)
        make_body(stage.job, _bytes(trial_job))
        fresh_queues(stage, trial_job.tc, _SEED)
        emit(probe())


def _bytes(trial_job: TrialJob) -> int:
    return trial_job.groups[trial_job.tested].flows[trial_job.flow].bytes


class _Pair:
    """A server and a client of the adapter, started with the environment that a probe needs."""

    def __init__(self, stage: Stage, trial_job: TrialJob) -> None:
        self.stage, self._bytes = stage, _bytes(trial_job)
        self._processes: dict[str, StackProcess] = {}

    def start(self, role: str, **changes: str) -> StackProcess:
        """Start the program of a role, with these changes of its environment."""
        seat = self.stage.seat(0, role)
        variables = {**seat.environment(self._bytes), **changes}
        process = StackProcess(seat.node, seat.command, variables, seat.folder, self.stage.job.limits)
        self._processes[role] = process
        return process

    def start_server(self, **changes: str) -> tuple[StackProcess, bool]:
        """Start the server. Return it, and whether it was ready."""
        server = self.start("server", **changes)
        return server, wait_for_port(self.stage, self.stage.place.senders[0], server)

    def wait(self, process: StackProcess, seconds: float) -> int | None:
        """Wait for up to `seconds` of virtual time. Return the process's exit status, or None if it still runs."""
        poll = select.poll()
        poll.register(process.pidfd, select.POLLIN)
        poll.poll(seconds * 1000)
        return process.exit_status

    def visit(self, server: StackProcess, seconds: float, **changes: str) -> ProcessSeen:
        """Run a client for up to `seconds` of virtual time. Return what was seen of it; kill it if it still runs."""
        client = self.start("client", **changes)
        self.wait(client, seconds)
        observed = client.seen()
        kill_descendants(own_pids(self.stage.net) | {server.pid})
        client.end()
        del self._processes["client"]
        return observed

    def side_by_side(self, server: StackProcess, seconds: float) -> tuple[ProcessSeen, ...]:
        """Run two clients at once, and wait for each up to `seconds` of virtual time. Return what was seen of them."""
        clients = [self.start("client")]
        # The second client has its own folder, so that the two do not write to the same log.
        seat = self.stage.seat(0, "client")
        seat = dataclasses.replace(seat, folder=os.path.join(seat.stage.job.work_dir, "beside"))
        os.makedirs(seat.folder, exist_ok=True)
        os.chown(seat.folder, NOBODY, NOBODY)
        variables, limits = seat.environment(self._bytes), self.stage.job.limits
        clients.append(StackProcess(seat.node, seat.command, variables, seat.folder, limits))
        for client in clients:
            self.wait(client, seconds)
        process_seens = tuple(client.seen() for client in clients)
        kill_descendants(own_pids(self.stage.net) | {server.pid})
        for client in clients:
            client.end()
        del self._processes["client"]
        return process_seens

    def end(self) -> tuple[ProcessSeen | None, ProcessSeen | None]:
        """End both. Return what was seen of client and server before that, None for one that was not started."""
        client, server = (self._processes.get(role) for role in ("client", "server"))
        programs = client.seen() if client else None, server.seen() if server else None
        for process in (client, server):
            if process is not None:
                process.end()
        kill_descendants(own_pids(self.stage.net))
        return programs


def _facts(
    pair: _Pair,
    ready: bool,
    ended: bool | None = None,
    early: int | None = None,
    after_s: float | None = None,
) -> ProbeFacts:
    """End the pair, and return the facts of a probe."""
    client, server = pair.end()
    return ProbeFacts(ready=ready, server=server, client=client, ended=ended, early=early, after_s=after_s)


def _unknown_algorithm(pair: _Pair) -> ProbeFacts:
    """Check that the server, or the client if it asks for the algorithm, ends with status 127 on an unknown one."""
    _, ready = pair.start_server(CC_ALGORITHM=UNKNOWN_ALGORITHM, CC_CALLED=UNKNOWN_ALGORITHM)
    if ready:
        pair.wait(pair.start("client", CC_ALGORITHM=UNKNOWN_ALGORITHM, CC_CALLED=UNKNOWN_ALGORITHM), 60)
    return _facts(pair, ready)


def _transfer(stage: Stage, trial_job: TrialJob, files_before: set[str]) -> TransferProbed:
    """Make one transfer like any trial, and examine its frames and the files that it leaves behind."""
    queue, _ = stage.place.directions[trial_job.detail.link if trial_job.detail else 0]
    with netns.inside(stage.net[queue.node]):
        capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(_ETH_P_ALL))
        capture.bind((queue.name, 0))
    facts = trial.run(stage, trial_job)
    frames = _look_at(capture)
    capture.close()
    return TransferProbed(facts=facts, frames=frames, written_outside=tuple(sorted(_files() - files_before)[:5]))


def _look_at(capture: socket.socket) -> FramesSeen:
    """Examine the first frames that were captured."""
    runs: list[int] = []
    while len(runs) < _FRAMES:
        try:
            frame = capture.recv(1 << 16)
        except BlockingIOError:
            break
        if len(frame) > 200:
            runs.append(_longest_run(frame[54:]))
    return FramesSeen(frames=len(runs), median_run=sorted(runs)[len(runs) // 2] if runs else None)


def _longest_run(data: bytes) -> int:
    longest = at = 0
    while at < len(data):
        end = at + 1
        while end < len(data) and data[end] == data[at]:
            end += 1
        longest, at = max(longest, end - at), end
    return longest


def _files() -> set[str]:
    """Return the files in the folders of _WRITABLE, without those in scratch folders."""
    names: set[str] = set()
    for top in _WRITABLE:
        for folder, folders, files in os.walk(top):
            if folder == "/run":
                folders.clear()
            # A stack may give a file any name, but events are UTF-8.
            names.update(os.fsencode(os.path.join(folder, name)).decode(errors="replace") for name in files)
    return names


def _wrong_port(pair: _Pair) -> ProbeFacts:
    """Check that a client that is sent to a port without a listener fails and prints no result."""
    return _misled(pair, CC_PORT=str(pair.stage.job.port + 1))


def _wrong_authority(pair: _Pair) -> ProbeFacts:
    """Check that a client that trusts another certificate authority refuses the server."""
    return _misled(pair, CC_CA=pair.stage.pki + "/other-ca.crt")


def _misled(pair: _Pair, **changes: str) -> ProbeFacts:
    """Start a working server, and a client with false settings (`changes`)."""
    _, ready = pair.start_server()
    if not ready:
        return _facts(pair, ready)
    client = pair.start("client", **changes)
    ended = pair.wait(client, 120) is not None
    return _facts(pair, ready, ended)


def _server_killed(pair: _Pair) -> ProbeFacts:
    """Check that a client whose server is killed half-way fails, and does not report the whole transfer."""
    server, ready = pair.start_server()
    if not ready:
        return _facts(pair, ready)
    client = pair.start("client")
    pair.wait(client, 2)
    early = client.exit_status
    os.kill(server.pid, signal.SIGKILL)
    pair.wait(server, 1)
    kill_descendants(own_pids(pair.stage.net) | {client.pid})
    ended = pair.wait(client, 300) is not None
    return _facts(pair, ready, ended, early)


def _visits(stage: Stage, trial_job: TrialJob) -> VisitsProbed:
    """Let clients visit one server, one after the other, and return how it answered them.

    They request a body that does not exist, interrupt a transfer, complete one, make two at once, and request several
    bodies on one connection.
    """
    pair = _Pair(stage, trial_job)
    server, ready = pair.start_server()
    if not ready:
        pair.end()
        return VisitsProbed(facts=VisitFacts(ready=False))
    missing = pair.visit(server, 60, CC_BYTES=str(_bytes(trial_job) + 1))
    dotted = _status_of_dotted(stage, trial_job) if stage.job.transport == "tcp" else None
    pair.visit(server, 1)
    whole = pair.visit(server, 120)
    both = pair.side_by_side(server, 240)
    several = pair.visit(server, 60, CC_REQUESTS=_requests(stage))
    pair.end()
    visit_facts = VisitFacts(
        ready=True, missing=missing, status_of_dotted=dotted, whole=whole, side_by_side=both, several=several,
        requested=_SEVERAL,
    )  # fmt: skip
    return VisitsProbed(facts=visit_facts)


def _requests(stage: Stage) -> str:
    """Write what one client requests on one connection, and these bodies. Return the path of the requests' file."""
    for line in _SEVERAL:
        make_body(stage.job, int(line.split()[0]))
    return write_lines(stage.job.work_dir, stage.place.receivers[0][0], "requests", _SEVERAL)


def _status_of_dotted(stage: Stage, trial_job: TrialJob) -> int | None:
    """Return the status for a path that leads to the body by ".."; None if the server does not speak HTTP/1.1."""
    import ssl  # late: only this clause needs it

    variables = stage.seat(0, "client").environment(_bytes(trial_job))
    context = ssl.create_default_context(cafile=variables["CC_CA"])
    host, www = variables["CC_HOSTNAME"], variables["CC_WWW"]
    path = f"/../{os.path.basename(www)}/{_bytes(trial_job)}"
    try:
        with netns.inside(stage.node(stage.place.receivers[0][0])):
            plain = socket.create_connection((variables["CC_ADDRESS"], int(variables["CC_PORT"])), timeout=10)
        with plain, context.wrap_socket(plain, server_hostname=host) as secure:
            secure.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return int(secure.recv(1 << 12).split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _server_ends(pair: _Pair) -> ProbeFacts:
    """Check that a server that is asked to end (SIGTERM) does so within a second."""
    server, ready = pair.start_server()
    if not ready:
        return _facts(pair, ready)
    os.kill(server.pid, signal.SIGTERM)
    began = time.monotonic()
    ended = pair.wait(server, 1) is not None
    after_s = round(time.monotonic() - began, 3)
    return _facts(pair, ready, ended, after_s=after_s)
