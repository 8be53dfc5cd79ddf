"""Run programs of conformance/load for the kernel's flows of a group and the watch of a queue; read their output."""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import struct
import subprocess

from conformance.guest.flow_looks import FLOW_COLUMNS, table
from conformance.guest.netlink import BBR_INFO_BYTES, NO_RTT_US, parse_bbr_info
from conformance.guest.netns import inside
from conformance.guest.seen import BbrSeen, CongestionControlSeen, FlowSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.guest.netns import Node
    from conformance.guest.network_job import GroupFlows
    from conformance.guest.topology import Host

#: ns between two samples of flows and queues
LOOK_NS = 100_000_000
PORT, FIRST_LOCAL_PORT = 5001, 20_000
#: bytes that a watch writes about a connection (conformance/load/trips.h)
_TRIPS_BYTES = 48
#: bytes of a flow without an end of its own
_ENDLESS_BYTES = 1 << 50
#: ns: a flow of the kernel begins when it is due; if it begins later than this, the guest was late
_LATE_NS = 5_000_000
_QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


class Program:
    """One of the suite's programs, run on a node with its output in a file; it inherits the descriptors `fds`."""

    def __init__(self, node: Node, command: Sequence[str], output: str, fds: Sequence[int] = ()) -> None:
        self._output = open(output, "w+b", buffering=0)
        with open(f"{output}.err", "wb") as errors, inside(node):
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=errors, start_new_session=True,
                pass_fds=fds,
            )  # fmt: skip
        self._name, self._errors = os.path.basename(command[0]), f"{output}.err"
        self.pidfd = os.pidfd_open(self._process.pid)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def status(self) -> int | None:
        """Its exit status, minus the signal's number where a signal ended it; None while it runs."""
        return self._process.poll()

    @property
    def words(self) -> str:
        """The last words of its error messages."""
        with open(self._errors, errors="replace") as f:
            return " ".join(f.read().split())[-200:]

    def stop(self) -> bytes:
        """Send it SIGTERM, wait until it ends, and return its output. Raises RuntimeError with its error message."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        status = self._process.wait()
        if status not in (0, -signal.SIGTERM):
            raise RuntimeError(f"{self._name}: {self.words or f'it ended with status {status}'}")
        self._output.seek(0)
        return self._output.read()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self.pidfd)
        self._output.close()


def first_known(names: Sequence[str]) -> str | None:
    """Return the first of these congestion controls that the kernel has; None if it has none of them."""
    for name in names:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            except FileNotFoundError:
                continue
            return name
    return None


def write_lines(folder: str, host: Host, kind: str, lines: Sequence[str]) -> str:
    """Write "requests" or "connections" of the clients of a host to a file that anyone may read. Return its path."""
    path = f"{folder}/{host.node}.{kind}"
    with open(path, "w") as f:
        f.writelines(f"{line}\n" for line in lines)
    return path


class KernelGroup:
    """The kernel's flows of one group, which begin at `begin_ns` of the clock or later. Call `end()`.

    `reads`: whether its receiver reads what comes at once (load/flows.c).
    """

    def __init__(
        self, program: str, folder: str, nodes: tuple[Node, Node], hosts: tuple[Host, Host], group: GroupFlows,
        algorithm: str, begin_ns: int, reads: bool,
    ) -> None:  # fmt: skip
        (sender, receiver), (source, sink) = nodes, hosts
        self._group, self._begin_ns, self._algorithm = group, begin_ns, algorithm
        flows_path = f"{folder}/{source.node}.flows"
        with open(flows_path, "w") as f:
            for flow in group.flows:
                stop_ns = begin_ns + flow.stop_ns if flow.stop_ns else 0
                size = 0 if group.requests else flow.bytes or _ENDLESS_BYTES
                f.write(f"{begin_ns + flow.start_ns} {size} {stop_ns} {group.pace}\n")
        # With requests, the receiving program asks for bodies, and the senders send what they are asked for.
        plan = [write_lines(folder, sink, "requests", group.requests)] if group.requests else []
        self._receiver = Program(
            receiver,
            [program, "read" if reads else "receive", sink.address, str(PORT), *plan],
            f"{folder}/{sink.node}.out",
        )
        self._sender = Program(
            sender,
            [program, "send", sink.address, str(PORT), algorithm, str(FIRST_LOCAL_PORT), str(LOOK_NS), flows_path],
            f"{folder}/{source.node}.out",
        )
        #: whether all flows have an end of their own
        self.ends = bool(group.requests) or all(flow.bytes or flow.stop_ns for flow in group.flows)

    @property
    def pidfd(self) -> int:
        return self._sender.pidfd

    @property
    def running(self) -> bool:
        return self._sender.running

    def stop(self) -> tuple[FlowSeen, ...]:
        """End the flows that still run, and return what was seen of each flow. Raises RuntimeError."""
        lines = self._sender.stop().decode().splitlines()
        heard = self._receiver.stop().decode().splitlines()
        flows = [json.loads(line) for line in lines]
        if len(flows) != len(self._group.flows):
            raise RuntimeError("flows: some of them reported nothing")
        requests_by_port = {served["port"]: served["requests"] for served in map(json.loads, heard)}
        return tuple(
            self._seen(sent, flow.start_ns, requests_by_port.get(FIRST_LOCAL_PORT + at))
            for at, (sent, flow) in enumerate(zip(flows, self._group.flows, strict=True))
        )

    def _seen(self, sent: dict[str, object], start_ns: int, requests: list[list[int]] | None) -> FlowSeen:
        def since(name: str) -> float | None:
            at_ns = sent[name]
            return round((at_ns - self._begin_ns) / 1e9, 9) if isinstance(at_ns, int) and at_ns else None

        began_s = since("connect_ns")
        if began_s is not None and began_s * 1e9 - start_ns > _LATE_NS:
            raise RuntimeError("flows: they began late")
        looks = sent["looks"]
        if not isinstance(looks, dict):
            raise RuntimeError("flows: no samples were reported")
        rows: list[tuple[float | None, ...]] = [
            (round((at - self._begin_ns) / 1e9, 6), max(acked - 1, 0), rtt_us / 1000, cwnd)
            for at, acked, rtt_us, cwnd in zip(
                looks["at_ns"], looks["acked_bytes"], looks["rtt_us"], looks["cwnd_segments"], strict=True
            )
        ]
        counts = {name: value for name in _COUNTS if isinstance(value := sent[name], int)}
        min_rtt_us = sent["min_rtt_us"]
        return FlowSeen(
            start_s=began_s if began_s is not None else start_ns / 1e9,
            connected_s=since("connected_ns"), end_s=since("end_ns"), complete=sent["complete"] is True,
            min_rtt_ms=min_rtt_us / 1000 if isinstance(min_rtt_us, int) and min_rtt_us < NO_RTT_US else None,
            arrived_bytes=None, looks=table(FLOW_COLUMNS, rows), client=None,
            congestion_control=self._congestion_control(bytes.fromhex(str(sent["own"]))),
            requests=None if requests is None else tuple(self._request(*request) for request in requests), **counts,
        )  # fmt: skip

    def _request(
        self, size: int, made_ns: int, first_ns: int, end_ns: int
    ) -> tuple[int, float, float | None, float | None]:
        first_s, end_s = (round((at - self._begin_ns) / 1e9, 9) if at else None for at in (first_ns, end_ns))
        return size, round((made_ns - self._begin_ns) / 1e9, 9), first_s, end_s

    def _congestion_control(self, info: bytes) -> CongestionControlSeen:
        bbr = None
        if self._algorithm.startswith("bbr") and len(info) >= BBR_INFO_BYTES:
            parsed = parse_bbr_info(info)
            bbr = BbrSeen(
                info_bytes=parsed["info_bytes"], version=parsed["version"],
                pacing_gains=(parsed["pacing_gain"],), cwnd_gains=(parsed["cwnd_gain"],),
            )  # fmt: skip
        return CongestionControlSeen(name=self._algorithm, names=(self._algorithm,), bbr=bbr)

    def end(self) -> None:
        self._sender.end()
        self._receiver.end()


_COUNTS = (
    "acked_bytes", "sent_bytes", "retransmitted_bytes", "out_segments", "retransmitted_segments", "marked_segments",
)  # fmt: skip


class Watch:
    """A watch of how long packets stand in the queue of an interface and, with `trips`, of their round trips.

    Call `stop()`, then `end()`.
    """

    def __init__(self, program: str, folder: str, node: Node, interface: str, mask: int, trips: bool = False) -> None:
        command = [program, interface, str(mask), *(["trips"] if trips else [])]
        self._program = Program(node, command, f"{folder}/{interface}.watch")
        #: what it wrote about each connection (round_trips.py)
        self.trips = b""

    def stop(self) -> tuple[int, dict[str, float] | None, int]:
        """End it. Return (packets watched through the queue, quantiles of their delays in ms, unmatched packets).

        From then on, `trips` holds what was seen of round trips.
        """
        data = self._program.stop()
        _, left, lost, connections = struct.unpack_from("QQQQ", data)
        begin = struct.calcsize("QQQQ")
        end = begin + connections * _TRIPS_BYTES
        self.trips = data[begin:end]
        stood = array.array("q", data[end:])[1::2]
        unmatched = left + lost - len(stood)
        if not stood:
            return 0, None, unmatched
        in_order = sorted(stood)
        rtts: dict[str, float] = {
            name: in_order[min(int(share * len(in_order)), len(in_order) - 1)] for name, share in _QUANTILES
        }
        rtts |= {"min": in_order[0], "max": in_order[-1], "mean": sum(in_order) / len(in_order)}
        return len(in_order), {name: round(value / 1e6, 6) for name, value in rtts.items()}, unmatched

    def end(self) -> None:
        self._program.end()
