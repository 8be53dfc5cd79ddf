"""Look at the sender and at the bottleneck's queue while a transfer runs; where a proxy splits it, at its sender too.

One look every 20 ms of virtual time at first, half as often after each 64 looks, down to every 2.56 s: a 10-second
transfer gets about 180 looks, a 1000-second one about 750. The trace that is kept has at most `points` points, evenly
thinned; peak and mean of the queue use every look.
"""

from conformance.guest.netlink import QueueStatistics, TcpInfo
from conformance.guest.netns import inside

#: what of the sender is known where it is the kernel's TCP, and what of the bottleneck's queue, of every stack
_TCP_COLUMNS = ("cwnd_segments", "rtt_ms", "in_flight_segments", "bytes_acked")
_QUEUE_COLUMNS = ("queue_bytes", "queue_out_bytes", "queue_dropped_packets", "dropped_packets")
_FIRST_GAP_NS, _LAST_GAP_NS, _LOOKS_PER_GAP = 20_000_000, 2_560_000_000, 64


class Sampler:
    """`look(now_ns)` until the transfer ends, then `result()`."""

    def __init__(self, server, port, bottleneck, interface_index, handle, points=128, proxy=None):
        with inside(server):
            self._tcp = TcpInfo()
        self._proxy_tcp = self._proxy_info = None
        if proxy is not None:
            with inside(proxy):
                self._proxy_tcp = TcpInfo()
        with inside(bottleneck):
            self._queue = QueueStatistics(interface_index, handle)
        self._port = port
        self._points, self._trace = points, []
        self._looks, self._keep_every = 0, 1
        self._queue_ns_bytes = self._queue_ns = 0
        self._queue_peak = (0, 0)
        self._last_queue = self._last_at_ns = None
        self._tcp_info = self._bbr = None
        self._congestion_controls = []
        self._pacing_gains, self._cwnd_gains = set(), set()

    @property
    def gap_ns(self):
        return min(_FIRST_GAP_NS << (self._looks // _LOOKS_PER_GAP), _LAST_GAP_NS)

    def look(self, now_ns):
        """Look once; `now_ns` counts from the start of the client."""
        info = self._tcp.busiest(self._port)
        queue = self._queue.read()
        backlog = queue["backlog"] if queue else None
        if info is not None:
            self._see_congestion_control(info.pop("congestion_control", None))
            self._see_bbr(info.pop("bbr", None))
            self._tcp_info = info
        if self._proxy_tcp is not None:
            # Transparent: towards the client its port is the server's.
            self._proxy_info = self._proxy_tcp.busiest(self._port) or self._proxy_info
        if backlog is not None:
            if self._last_queue is not None:
                self._queue_ns_bytes += self._last_queue[0] * (now_ns - self._last_at_ns)
                self._queue_ns += now_ns - self._last_at_ns
            self._last_queue, self._last_at_ns = backlog, now_ns
            self._queue_peak = tuple(max(pair) for pair in zip(self._queue_peak, backlog, strict=True))
        if self._looks % self._keep_every == 0:
            self._trace.append(self._point(now_ns / 1e9, info, queue))
            if len(self._trace) > self._points:
                self._trace = self._trace[::2]
                self._keep_every *= 2
        self._looks += 1

    def _see_congestion_control(self, name):
        if name is not None and name not in self._congestion_controls:
            self._congestion_controls.append(name)

    def _see_bbr(self, bbr):
        if bbr is not None:
            self._bbr = bbr
            if bbr["pacing_gain"]:  # zero before the connection is established
                self._pacing_gains.add(bbr["pacing_gain"])
                self._cwnd_gains.add(bbr["cwnd_gain"])

    def _found(self):
        """What the kernel says the sender's congestion control is, and the gains BBR was seen to use."""
        if not self._congestion_controls:
            return None
        bbr = self._bbr and {
            "info_bytes": self._bbr["info_bytes"],
            "version": self._bbr["version"],
            "pacing_gains": sorted(self._pacing_gains),
            "cwnd_gains": sorted(self._cwnd_gains),
        }
        return {"name": self._congestion_controls[-1], "names": self._congestion_controls, "bbr": bbr}

    @staticmethod
    def _point(t, info, queue):
        info, queue = info or {}, queue or {}
        return [
            round(t, 4),
            *(info.get(name) for name in _TCP_COLUMNS),
            queue["backlog"][0] if queue else None,
            queue.get("out_bytes"),
            queue.get("dropped_packets"),
            queue.get("chain_dropped_packets"),
        ]

    def result(self):
        """Missing is None: a stack that is not the kernel's TCP has no tcp_info."""
        columns = ["t_s", *_TCP_COLUMNS, *_QUEUE_COLUMNS]
        mean = self._queue_ns_bytes / self._queue_ns if self._queue_ns else None
        return {
            "trace": {
                name: list(values) for name, values in zip(columns, zip(*self._trace, strict=True), strict=False)
            },
            "tcp_info": self._tcp_info,
            "congestion_control": self._found(),
            "proxy": self._proxy_info,
            "queue_mean_bytes": None if mean is None else round(mean, 1),
            "queue_peak_bytes": self._queue_peak[0] if self._last_queue is not None else None,
            "queue_peak_packets": self._queue_peak[1] if self._last_queue is not None else None,
        }

    def close(self):
        self._tcp.close()
        if self._proxy_tcp is not None:
            self._proxy_tcp.close()
        self._queue.close()
