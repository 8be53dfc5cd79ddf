"""Record one flow in detail: its sender, the queue of its bottleneck, and the counters of the whole network."""

from __future__ import annotations

import socket

from conformance.guest import netns
from conformance.guest.sampler import Sampler
from conformance.guest.seen import Counters, DetailSeen, Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conformance.guest.network_job import Detail, TrialJob
    from conformance.guest.seen import InterfaceCounters
    from conformance.guest.stage import Stage

_SNMP = (
    "Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPTimeouts", "TcpExt.TCPFastRetrans", "TcpExt.TCPLossProbes",
    "TcpExt.TCPSpuriousRTOs", "TcpExt.TCPDSACKRecv", "TcpExt.TCPHystartTrainDetect",
    "TcpExt.TCPHystartDelayDetect", "Udp.OutDatagrams", "Udp.InErrors", "Tcp.ActiveOpens", "Tcp.PassiveOpens",
)  # fmt: skip


class Detailed:
    """Samples a flow and its bottleneck while the trial runs. Call `seen()`, then `close()`."""

    at_the_end = False

    def __init__(self, stage: Stage, trial_job: TrialJob, detail: Detail) -> None:
        job, net, place = stage.job, stage.net, stage.place
        queue, _ = place.directions[detail.link]
        with netns.inside(net[queue.node]):
            index = socket.if_nametoindex(queue.name)
        self._client = net[place.receivers[trial_job.tested][trial_job.flow].node]
        proxy = net[place.splitters[0].node] if place.splitters else None
        self._sampler = Sampler(
            net[place.senders[trial_job.tested].node], job.port, net[queue.node], index,
            int(job.queue_handle, 16) << 16, proxy=proxy, silence_s=job.silence_s,
        )  # fmt: skip
        self._end_ns, self._due_ns = round(job.timeout_s * 1e9), 0
        self._half_time: dict[str, InterfaceCounters] | None = None

    @property
    def silent(self) -> bool:
        return self._sampler.silent

    def look(self, now_ns: int) -> int:
        """Take a sample. Return when the next one is due; times are in ns after the client started."""
        if self._half_time is None and now_ns > self._end_ns - now_ns:
            self._half_time = netns.interface_counters(self._client)
        self._sampler.look(now_ns)
        self._due_ns = max(self._due_ns + self._sampler.gap_ns, now_ns)
        return self._due_ns

    def seen(self, before: Counters, after: Counters) -> DetailSeen:
        """Return what was seen, with the counters `before` and `after` the transfer."""
        return DetailSeen(
            half_time=self._half_time, sampled=self._sampler.result(), counters=Span(before=before, after=after),
            bursts=None, exchange=None,
        )  # fmt: skip

    def close(self) -> None:
        self._sampler.close()


def counters(stage: Stage) -> Counters:
    """Return the counters of all nodes, as they are now."""
    hosts, place = stage.net.hosts, stage.place
    interfaces = {node.name: netns.interface_counters(node) for node in hosts}
    # In the order of hosts: in virtual time, each file that is read costs time.
    router = place.splitters[0].node if place.splitters else None
    ends = (place.receivers[0][0].node, place.senders[0].node, router)
    snmp = {node.name: netns.snmp_counters(node, _SNMP) for node in hosts if node.name in ends}
    return Counters(
        interfaces=interfaces,
        client=snmp[ends[0]],
        server=snmp[ends[1]],
        router=snmp[router] if router else None,
    )
