"""Sample the sender and the bottleneck's queue while a transfer runs, and the proxy's sender if a proxy splits it.

At first, a sample is taken every 20 ms of virtual time. The gap doubles after each 64 samples, up to 2.56 s: a
10-second transfer gets about 180 samples, a 1000-second one about 750. The trace that is kept is thinned evenly to at
most `points` points; peak and mean of the queue use every sample.
"""

from __future__ import annotations

import math

from conformance.guest import netlink, seen
from conformance.guest.netns import inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from conformance.guest.netns import Node

#: columns about the sender, known if it is the kernel's TCP, and about the bottleneck's queue, known for every stack
_TCP_COLUMNS = ("cwnd_segments", "rtt_ms", "in_flight_segments", "bytes_acked")
_QUEUE_COLUMNS = ("queue_bytes", "queue_out_bytes", "queue_dropped_packets", "dropped_packets")
_FIRST_GAP_NS, _LAST_GAP_NS, _LOOKS_PER_GAP = 20_000_000, 2_560_000_000, 64


class Sampler:
    """Call `look(now_ns)` until the transfer ends, then `result()` and `close()`."""

    def __init__(
        self,
        server: Node,
        port: int,
        bottleneck: Node,
        interface_index: int,
        handle: int,
        points: int = 128,
        proxy: Node | None = None,
        silence_s: float = math.inf,
    ) -> None:
        with inside(server):
            self._tcp = netlink.TcpInfoReader()
        self._proxy_tcp: netlink.TcpInfoReader | None = None
        self._proxy_info: dict[str, Any] | None = None
        if proxy is not None:
            with inside(proxy):
                self._proxy_tcp = netlink.TcpInfoReader()
        with inside(bottleneck):
            self._queue = netlink.QueueStatistics(interface_index, handle)
        self._port = port
        self._points = points
        self._trace: list[list[float | None]] = []
        self._looks, self._keep_every = 0, 1
        self._queue_ns_bytes = self._queue_ns = 0
        self._queue_peak = (0, 0)
        #: the backlog in the last sample of the queue, and when that was taken
        self._last_queue: tuple[int, int] | None = None
        self._last_at_ns = 0
        #: what the queue had passed on and lost in the last sample, and since when
        self._passed: tuple[int, int] | None = None
        self._passed_at_ns, self._silence_ns = 0, silence_s * 1e9
        #: whether the queue has neither passed on nor lost a packet for `silence_s`
        self.silent = False
        self._tcp_info: dict[str, Any] | None = None
        self._bbr: dict[str, Any] | None = None
        self._congestion_controls: list[str] = []
        self._pacing_gains: set[float] = set()
        self._cwnd_gains: set[float] = set()

    @property
    def gap_ns(self) -> int:
        return min(_FIRST_GAP_NS << (self._looks // _LOOKS_PER_GAP), _LAST_GAP_NS)

    def look(self, now_ns: int) -> None:
        """Take one sample; `now_ns` counts from the start of the client."""
        info = self._tcp.busiest(self._port)
        queue = self._queue.read()
        backlog = queue["backlog"] if queue else None
        passed = (queue["out_bytes"], queue["chain_dropped_packets"]) if queue else None
        if passed != self._passed or backlog != (0, 0):
            self._passed, self._passed_at_ns = passed, now_ns
        self.silent = now_ns - self._passed_at_ns >= self._silence_ns
        if info is not None:
            self._see_congestion_control(info.pop("congestion_control", None))
            self._see_bbr(info.pop("bbr", None))
            self._tcp_info = info
        if self._proxy_tcp is not None:
            # The proxy is transparent: its port towards the client is the server's.
            self._proxy_info = self._proxy_tcp.busiest(self._port) or self._proxy_info
        if backlog is not None:
            if self._last_queue is not None:
                self._queue_ns_bytes += self._last_queue[0] * (now_ns - self._last_at_ns)
                self._queue_ns += now_ns - self._last_at_ns
            self._last_queue, self._last_at_ns = backlog, now_ns
            peak_bytes, peak_packets = self._queue_peak
            self._queue_peak = max(peak_bytes, backlog[0]), max(peak_packets, backlog[1])
        if self._looks % self._keep_every == 0:
            self._trace.append(self._point(now_ns / 1e9, info, queue))
            if len(self._trace) > self._points:
                self._trace = self._trace[::2]
                self._keep_every *= 2
        self._looks += 1

    def _see_congestion_control(self, name: str | None) -> None:
        if name is not None and name not in self._congestion_controls:
            self._congestion_controls.append(name)

    def _see_bbr(self, bbr: dict[str, Any] | None) -> None:
        if bbr is not None:
            self._bbr = bbr
            if bbr["pacing_gain"]:  # zero before the connection is established
                self._pacing_gains.add(bbr["pacing_gain"])
                self._cwnd_gains.add(bbr["cwnd_gain"])

    def _found(self) -> seen.CongestionControlSeen | None:
        """Return what the kernel says the sender's congestion control is, and the gains BBR was seen to use."""
        if not self._congestion_controls:
            return None
        bbr = self._bbr and seen.BbrSeen(
            info_bytes=self._bbr["info_bytes"],
            version=self._bbr["version"],
            pacing_gains=tuple(sorted(self._pacing_gains)),
            cwnd_gains=tuple(sorted(self._cwnd_gains)),
        )
        names = tuple(self._congestion_controls)
        return seen.CongestionControlSeen(name=names[-1], names=names, bbr=bbr or None)

    @staticmethod
    def _point(t: float, info: dict[str, Any] | None, queue: dict[str, Any] | None) -> list[float | None]:
        info, queue = info or {}, queue or {}
        return [
            round(t, 4),
            *(info.get(name) for name in _TCP_COLUMNS),
            queue["backlog"][0] if queue else None,
            queue.get("out_bytes"),
            queue.get("dropped_packets"),
            queue.get("chain_dropped_packets"),
        ]

    def result(self) -> seen.Sampled:
        """Return what was seen. What is missing is None: a stack that is not the kernel's TCP has no tcp_info."""
        columns = ["t_s", *_TCP_COLUMNS, *_QUEUE_COLUMNS]
        mean = self._queue_ns_bytes / self._queue_ns if self._queue_ns else None
        looked = self._last_queue is not None
        return seen.Sampled(
            trace=dict(zip(columns, zip(*self._trace, strict=True), strict=False)),
            tcp_info=seen.TcpInfo(**self._tcp_info) if self._tcp_info else None,
            congestion_control=self._found(),
            proxy=self._of_proxy(),
            queue_mean_bytes=None if mean is None else round(mean, 1),
            queue_peak_bytes=self._queue_peak[0] if looked else None,
            queue_peak_packets=self._queue_peak[1] if looked else None,
        )

    def _of_proxy(self) -> seen.ProxyTcpInfo | None:
        if self._proxy_info is None:
            return None
        return seen.ProxyTcpInfo(**{name: value for name, value in self._proxy_info.items() if name != "bbr"})

    def close(self) -> None:
        self._tcp.close()
        if self._proxy_tcp is not None:
            self._proxy_tcp.close()
        self._queue.close()
