"""Run the flows of a group of the stack under test: a server, and a client for each flow on a host of its own."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time

from conformance.guest import kernel_flows, netns
from conformance.guest.clock import ClockFault
from conformance.guest.flow_looks import FLOW_COLUMNS, Algorithm, Connections, table
from conformance.guest.process import StackProcess
from conformance.guest.seen import FlowSeen, GroupSeen
from conformance.guest.topology import by_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from conformance.guest.network_job import GroupFlows
    from conformance.guest.stage import Stage
    from conformance.guest.topology import Host

#: clients connect from this port on, each from ports of its own
FIRST_CLIENT_PORT = 40_000


class StackGroup:
    """A group of the stack under test: its server, and a client for each flow.

    `logs`: the folders that the server and the client of `flow` may write logs to, if any. `detailed`: its one flow is
    sampled elsewhere (detailed.py), so that nothing is asked of the kernel here.
    """

    def __init__(
        self, stage: Stage, at: int, group: GroupFlows, cleanup: contextlib.ExitStack, flow: int,
        logs: Mapping[str, str], detailed: bool,
    ) -> None:  # fmt: skip
        self._detailed = detailed
        self._logs = {("server", 0): logs["server"], ("client", flow): logs["client"]} if logs else {}
        flows = group.flows
        self.at, self._stage, self._flows, self._cleanup = at, stage, flows, cleanup
        self._host, self._clients = stage.place.senders[at], stage.place.receivers[at]
        self._variables = {**group.variables, **self._lists(group)}
        self._rows: list[list[tuple[float | None, ...]]] = [[] for _ in flows]
        self._infos: list[dict[str, Any] | None] = [None for _ in flows]
        self._algorithms = [Algorithm() for _ in flows]
        self._processes: list[StackProcess | None] = [None for _ in flows]
        self._starts: list[int | None] = [None for _ in flows]
        self._ends: list[int | None] = [None for _ in flows]
        self._killed: set[int] = set()
        self._numbers = by_address(self._clients)
        #: the address that each client first connected from; a hop may give it another one
        self._addresses: dict[int, str] = {}
        self._before = [] if detailed else [self._arrived(host) for host in self._clients]
        self._server = self._run("server", 0, max(flow.bytes for flow in flows))
        cleanup.callback(self._server.end)
        self.ready = wait_for_port(stage, self._host, self._server)
        self._tcp: Connections | None = None
        if stage.job.transport == "tcp" and not detailed:
            with netns.inside(stage.node(self._host)):
                self._tcp = Connections()
            cleanup.callback(self._tcp.close)

    def _run(self, role: str, number: int, size: int) -> StackProcess:
        seat = self._stage.seat(self.at, role, number)
        environment = seat.environment(size, self._logs.get((role, number)))
        if role == "client":
            environment |= self._variables
        try:
            return StackProcess(seat.node, seat.command, environment, seat.folder, self._stage.job.limits)
        except BlockingIOError as error:
            most = self._stage.job.limits.processes
            raise ClockFault(f"cannot start the {role}: the stack already runs {most} processes, its limit") from error
        except OSError as error:
            raise ClockFault(f"cannot start {' '.join(seat.command)}: {error.strerror or error}") from error

    def _lists(self, group: GroupFlows) -> dict[str, str]:
        """Write what clients are told in files. Return {variable: path}."""
        lists = {"CC_REQUESTS": ("requests", group.requests), "CC_CONNECTIONS": ("connections", group.connections)}
        folder = self._stage.job.work_dir
        return {
            name: kernel_flows.write_lines(folder, self._host, kind, lines)
            for name, (kind, lines) in lists.items()
            if lines
        }

    def events(self) -> list[tuple[int, int, int, int, bool]]:
        """Return (time in ns, order, group, flow, whether it starts) of each start and stop of its flows."""
        starts = [
            (flow.start_ns, 0, self.at, number, True)
            for number, flow in enumerate(self._flows)
            if self._starts[number] is None
        ]
        return starts + [(f.stop_ns, 1, self.at, number, False) for number, f in enumerate(self._flows) if f.stop_ns]

    def start(self, number: int, now_ns: int) -> int:
        """Start the client of a flow. Return its pidfd."""
        process = self._run("client", number, self._flows[number].bytes)
        self._cleanup.callback(process.end)
        self._processes[number], self._starts[number] = process, now_ns
        return process.pidfd

    def kill(self, number: int) -> None:
        """Kill the client of a flow whose time is over, unless it has ended."""
        process = self._processes[number]
        if process is not None and self._ends[number] is None:
            self._killed.add(number)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def ended(self, pidfd: int, now_ns: int) -> None:
        """Note that the process of a pidfd has ended, if it is a client of this group."""
        for number, process in enumerate(self._processes):
            if process is not None and process.pidfd == pidfd:
                self._ends[number] = now_ns

    @property
    def running(self) -> list[int]:
        """The pidfds of its clients that have started and not ended."""
        pairs = zip(self._processes, self._ends, strict=True)
        return [process.pidfd for process, end in pairs if process is not None and end is None]

    @property
    def done(self) -> bool:
        return all(end is not None for end in self._ends)

    def look(self, t_s: float) -> None:
        if self._tcp is None:
            for number, host in enumerate(self._clients):
                if self._starts[number] is not None:
                    self._rows[number].append((t_s, self._arrived(host) - self._before[number], None, None))
            return
        for address, info in self._tcp.of_clients(self._stage.job.port):
            number = self._numbers.get(address, -1)
            if number >= 0 and self._addresses.setdefault(number, address) == address:
                self._infos[number] = info
                self._algorithms[number].see(info)
                # Of several connections, the busiest comes last.
                if self._rows[number] and self._rows[number][-1][0] == t_s:
                    del self._rows[number][-1]
                self._rows[number].append((t_s, info["acked_bytes"], info["rtt_ms"], info["cwnd_segments"]))

    def _arrived(self, host: Host) -> int:
        return sum(counters.rx_bytes for counters in netns.interface_counters(self._stage.node(host)).values())

    def seen(self) -> GroupSeen:
        server = self._server.seen()
        if self.ready and not self._detailed:
            # Sample once more, for what happened since the last sample, unless the connections are gone; keep no rows.
            known = [len(rows) for rows in self._rows]
            self.look(math.inf)
            for rows, count in zip(self._rows, known, strict=True):
                del rows[count:]
        names = ("acked_bytes", "sent_bytes", "retransmitted_bytes", "out_segments", "retransmitted_segments",
                 "marked_segments", "min_rtt_ms")  # fmt: skip
        flows = []
        for number, process in enumerate(self._processes):
            info, start, end = self._infos[number] or {}, self._starts[number], self._ends[number]
            arrived = None if self._detailed else self._arrived(self._clients[number]) - self._before[number]
            flows.append(
                FlowSeen(
                    start_s=_s(start if start is not None else self._flows[number].start_ns), connected_s=None,
                    end_s=None if end is None else _s(end), complete=end is not None and number not in self._killed,
                    arrived_bytes=arrived,
                    looks=table(FLOW_COLUMNS, self._rows[number]),
                    client=process.seen() if process else None,
                    congestion_control=self._algorithms[number].found(),
                    requests=None,
                    **{name: info.get(name) for name in names},
                )
            )  # fmt: skip
        return GroupSeen(algorithm=None, server=server, ready=self.ready, flows=tuple(flows))


def wait_for_port(stage: Stage, host: Host, server: StackProcess) -> bool:
    """Wait until a server has bound its port. Return whether it did, before it ended or took too long."""
    job, node = stage.job, stage.node(host)
    began_ns = time.monotonic_ns()
    while (waited_ns := time.monotonic_ns() - began_ns) < job.ready_timeout_s * 10**9:
        if netns.port_is_bound(node, job.port, job.transport):
            return True
        if server.exit_status is not None:
            return False
        time.sleep(0.005 if waited_ns < 10**9 else 0.1)
    return False


def _s(ns: int) -> float:
    return round(ns / 1e9, 6)
