"""List the criteria of sections 5 to 8 of RFC 9743, in the RFC's order and with its titles."""

import dataclasses
from collections.abc import Callable

from conformance.model.networks.network import Network
from conformance.reporting.html import rfc9743_figures as figures
from conformance.reporting.html.rfc9743_figures import FigureTexts

MEASURED, PARTLY, NOT = "measured", "measured in part", "not measured"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criterion:
    """A criterion. `title` is the RFC's; `asks` is what it asks, in our words.

    `figures` maps a Series to {column: text}, or to {} if the series does not bear on the criterion. `shared`: whether
    it is about series with a rival, which bear on no other criterion. `scenarios` and `metrics`: figures of flows that
    share a network, if `network` returns True for it; `others`: metrics of the flows beside them, which are not judged.
    `clauses`: ids of the clauses that bear on it.
    """

    section: str
    title: str
    asks: str
    status: str
    says: str
    figures: FigureTexts | None = None
    shared: bool = False
    scenarios: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    network: Callable[[Network], bool] = lambda network: True
    clauses: tuple[str, ...] = ()

    @property
    def has_figures(self) -> bool:
        """Whether any results could bear on it."""
        return bool(self.figures or self.scenarios or self.clauses)

    @property
    def command(self) -> str:
        """The command whose results would bear on it."""
        if self.scenarios:
            return f"conformance scenario run {self.scenarios[0]} --stack STACK"
        return f"conformance clause run {' '.join(self.clauses)} --stack STACK" if self.clauses else "conformance run"


def _not(section: str, title: str, asks: str, why: str) -> Criterion:
    return Criterion(section=section, title=title, asks=asks, status=NOT, says=f"Not measured: {why}")


_ALL_LOSS_BASED = ("CL010", "CL012", "CL013", "CL018", "CL019", "CL020", "CL022")

CRITERIA = (
    Criterion(section="5.1.1", title="Protection Against Congestion Collapse", status=PARTLY,
              figures=figures.collapse, scenarios=("blackout", "burst-loss"),
              metrics=("link_utilization", "retransmitted_pct"),
              clauses=("CL001", "CL003", "CL004", "CL040", "CL041"),
              asks="Does a sender stop, or back off to less than a packet per round trip, when drops are extreme and "
                   "persist?",
              says="Cells with 10 % of random loss or more; outages, and what is sent during them: the factor by which "
                   "the gaps between probes grow, and the window once the path has recovered."),
    Criterion(section="5.1.2", title="Protection Against Bufferbloat", status=MEASURED, figures=figures.bufferbloat,
              scenarios=("queues",), metrics=("queue_delay_p50_ms", "queue_delay_p95_ms"), network=figures.deep,
              asks="Does it avoid standing queues?",
              says="Mean length of the bottleneck's queue in cells without random loss, and how long packets wait in "
                   "it. Only FIFO queues of 4 bandwidth-delay products or more count: a shorter queue, or one that "
                   "is managed, stays short whatever the sender does."),
    Criterion(section="5.1.3", title="Protection Against High Packet Loss", status=PARTLY, figures=figures.high_loss,
              scenarios=("shallow-queues", "fairness", "ten-flows", "hundred-flows"), metrics=("dropped_pct",),
              clauses=("CL103",), asks="Does it avoid causing high loss, and slow down under it?",
              says="Share of the sender's bytes that never arrived: in cells without random loss, what the flow itself "
                   "causes at the bottleneck; and how much a queue drops if two to eight flows of the stack, or ten "
                   "or a hundred of the guest kernel with the same algorithm, share it. The RFC's example of high "
                   "loss, several flows of BBRv1 in a shallow queue, is the control, which must show it."),
    Criterion(section="5.1.4", title="Fairness Within the Proposed Congestion Control Algorithm", status=PARTLY,
              figures=figures.share_with_own, shared=True, scenarios=("fairness", "rtt-fairness"),
              metrics=("jain_index", "unequal_pct", "convergence_s", "share"),
              asks="How do flows of the same algorithm share a bottleneck?",
              says="Two to eight flows of the stack, each a second after the one before; two with different round-trip "
                   "times; and the share beside a flow of the guest kernel with the same algorithm."),
    Criterion(section="5.1.5", title="Short Flows", status=PARTLY, figures=figures.short_flows,
              scenarios=("short-flows", "short-bodies"), metrics=("fct_p50_s", "fct_p95_s", "request_p50_s"),
              others=("flow_goodput_mbps",),
              asks="How do short flows affect long ones, and vice versa?",
              says="Transfers of at most one second's worth of data, alone on the link; short flows of the stack "
                   "beside a long one of the same stack, and what the long one gets of the link's 10 Mbit/s."),
    Criterion(section="5.2", title="Mixed Algorithm Behavior", status=PARTLY, scenarios=("coexistence", "beside-cubic"),
              metrics=("harm_pct", "share"), others=("flow_goodput_mbps", "rtt_p95_ms", "retransmitted_pct"),
              clauses=("CL004",),
              asks="Does it starve others, or harm them by delay and loss? Does it back off when all feedback is lost?",
              says="How much less goodput others have than beside their own kind, and what a sender sends once no "
                   "acknowledgement arrives. To see harm by delay and loss, compare others' round-trip times and "
                   "retransmissions beside this sender with those in the row of Linux's CUBIC."),
    Criterion(section="5.2.1", title="Existing General-Purpose Congestion Control", status=PARTLY,
              figures=figures.share, shared=True, scenarios=("coexistence", "beside-cubic"),
              metrics=("share", "harm_pct"),
              asks="What does it do to flows of Reno, CUBIC and others that share the bottleneck?",
              says="Share of the link beside one or four flows of the guest kernel's CUBIC or one of its BBR, with "
                   "either side first, at queues of 0.5, 2 and 8 bandwidth-delay products; and the harm to them."),
    Criterion(section="5.2.2", title="Real-Time Congestion Control", status=PARTLY, scenarios=("media",),
              metrics=("link_utilization",), others=("flow_goodput_mbps", "rtt_p95_ms", "retransmitted_pct"),
              asks="Does it coexist with real-time media?",
              says="A paced flow of 1.5 Mbit/s that started first: its rate, round-trip times and retransmissions "
                   "beside the sender. It is the guest kernel's TCP; there is no source that adapts its rate to "
                   "delay, as WebRTC does."),
    Criterion(section="5.2.3", title="Short and Long Flows", status=MEASURED, scenarios=("others-short",),
              metrics=("fct_p50_s", "fct_p95_s", "share"), others=("fct_p50_s", "fct_p95_s", "flow_goodput_mbps"),
              asks="How does it affect short and long flows of other algorithms?",
              says="Short flows of the guest kernel's CUBIC beside a long one of the stack: their completion times; "
                   "and vice versa, the goodput of the kernel's long flow."),
    Criterion(section="5.3.1", title="Differences with Congestion Control Principles", status=PARTLY,
              clauses=_ALL_LOSS_BASED, asks="Does it deviate from RFC 2914 and RFC 7141?",
              says="Clauses of RFC 5681, RFC 9002 and RFC 9438 about the response to each loss and about growth. The "
                   "explanation that the RFC asks for is up to the proposal."),
    Criterion(section="5.3.2", title="Incremental Deployment", status=PARTLY, figures=figures.policed,
              scenarios=("policer",), metrics=("link_utilization", "dropped_pct"),
              asks="Can it be deployed step by step, with today's equipment?",
              says="Results behind a policer; for proxies, see the pages about split paths. The discussion that the "
                   "RFC asks for is up to the proposal."),
    Criterion(section="6", title="General Use", status=MEASURED, figures=figures.coverage,
              asks="Is it evaluated over a representative range of rates, delays and queue depths?",
              says="The ranges that these results span."),
    Criterion(section="6.1", title="Paths with Tail-drop Queues", status=MEASURED, figures=figures.tail_drop,
              scenarios=("shallow-queues", "ten-flows", "hundred-flows"),
              metrics=("link_utilization", "queue_delay_p95_ms", "dropped_pct"),
              asks="How does it behave at a tail-drop queue?",
              says="Results whose bottleneck was a FIFO (`--queue bfifo:BDPs` or `pfifo:PACKETS`), and several flows "
                   "of the stack, or of the guest kernel, at tail-drop queues of 0.1 to 10 bandwidth-delay products."),
    Criterion(section="6.2", title="Tunnel Behavior", status=PARTLY, scenarios=("small-packets",),
              metrics=("link_utilization",), clauses=("CL032",),
              asks="How does it behave if a tunnel hides signals of the path?",
              says="A path that silently drops long packets, and one that clears the ECN field of every packet. "
                   "Queues that see one flow of a tunnel instead of many are not measured."),
    Criterion(section="6.3", title="Wired Paths", status=MEASURED, figures=figures.wired,
              asks="The baseline: stable capacity, and almost no loss except in queues.",
              says="Utilization of the cells without random loss."),
    Criterion(section="6.4", title="Wireless Paths", status=PARTLY, figures=figures.wireless,
              scenarios=("jitter", "burst-loss", "rate-trace", "ack-slots"), metrics=("link_utilization",),
              asks="Loss that is not congestion, capacity that varies, jitter.",
              says="Utilization of the cells with random loss, and under jitter, loss in bursts, a trace of rates, and "
                   "acknowledgements that wait for slots."),
    Criterion(section="7.1", title="Active Queue Management (AQM)", status=PARTLY, figures=figures.aqm,
              scenarios=("queues", "marks", "l4s", "l4s-dctcp"),
              metrics=("link_utilization", "queue_delay_p95_ms", "marked_pct", "share"),
              clauses=("CL030", "CL077", "BBR31"),
              asks="Behaviour under FQ-CoDel, PIE, L4S and others, and the response to ECN marks.",
              says="Results whose bottleneck manages its queue, with the discipline; and how much of the window is "
                   "left after marks. By Linux's default, FQ-CoDel and CAKE mark packets that can be marked. DualPI2 "
                   "is the queue of L4S."),
    Criterion(section="7.2", title="Operation with the Envelope Set by Network Circuit Breakers", status=PARTLY,
              figures=figures.policed, scenarios=("policer",), metrics=("dropped_pct",),
              asks="Does it react before equipment on the path ends the flow?",
              says="Loss behind a policer, which a circuit breaker would count. No trial has one that ends flows."),
    Criterion(section="7.3", title="Paths with Varying Delay", status=PARTLY,
              scenarios=("delay-step", "delay-blip", "jitter"), metrics=("link_utilization", "rtt_p95_ms"),
              asks="Is it robust when the minimum delay changes?",
              says="One step of the delay, one short rise, and jitter."),
    Criterion(section="7.4", title="Internet of Things and Constrained Nodes", status=PARTLY,
              figures=figures.constrained, clauses=("BBR14", "BBR114"), asks="Very low rates and little power.",
              says="Cells of 1 Mbit/s or less. The power that a sender uses cannot be measured: computing is free in "
                   "virtual time."),
    Criterion(section="7.5", title="Paths with High Delay", status=PARTLY, figures=figures.high_delay,
              asks="Satellite links and others with unusually long delays.",
              says="Utilization at the longest round trip of the results; that of a geostationary satellite is about "
                   "600 ms."),
    Criterion(section="7.6", title="Misbehaving Nodes", status=PARTLY, scenarios=("marks",),
              metrics=("link_utilization", "marked_pct"), clauses=("CL032",),
              asks="Non-compliant senders, receivers, routers; attackers.",
              says="Routers that mark all packets or clear their ECN field. Receivers that lie are out of reach: "
                   "clients are the kernel's TCP and a QUIC library, which acknowledge what they received. To "
                   "acknowledge what never arrived would take a QUIC client of our own and, for TCP, a program "
                   "between the two ends."),
    Criterion(section="7.7", title="Extreme Packet Reordering", status=MEASURED, scenarios=("reordering", "bonded"),
              metrics=("link_utilization", "retransmitted_pct"), clauses=("CL016", "CL052"),
              asks="Paths that do not keep packets in order.",
              says="Packets held back until others have passed or for some time, or dealt to two links, without loss."),
    Criterion(section="7.8", title="Transient Events", status=PARTLY,
              scenarios=("blackout", "rate-step", "handshake-loss", "scripted-loss", "migration"),
              metrics=("link_utilization",),
              clauses=("CL001", "CL002", "CL041", "CL103"), asks="Sudden congestion, routing changes, mobility.",
              says="Outages, steps of the rate, losses in the handshake and of chosen packets, and a client whose port "
                   "or address changes in mid-transfer (scenario migration)."),
    Criterion(section="7.9", title="Sudden Changes in the Path", status=PARTLY,
              scenarios=("path-changes", "rate-step", "delay-step", "recovery"),
              metrics=("link_utilization", "dropped_pct", "queue_delay_p95_ms"),
              asks="Robustness to changes in the path's characteristics.",
              says="Steps of rate and delay; and a path whose rate, delay or both change every ten seconds, there and "
                   "back. Utilization is relative to what the link can carry in that time."),
    _not("7.10", "Multipath Transport", "Fail-over, and paths that share a bottleneck.",
         "each connection has one path, and no stack here is asked to use more."),
    Criterion(section="7.11", title="Data Centers", status=PARTLY, figures=figures.data_centers,
              scenarios=("hundred-flows",), metrics=("dropped_pct", "queue_delay_p95_ms"),
              asks="Latencies below 2 ms, bursts from many nodes.",
              says="Round trips of 2 ms or less, and a hundred flows through one queue. Rates above 1 Gbit/s and "
                   "marking at a fixed threshold are not measured."),
    _not("8", "Security Considerations", "Does the proposal examine what an attacker can do?",
         "this asks for an argument in a proposal; receivers that misbehave (7.6) are out of the suite's reach."),
)  # fmt: skip
