"""List the criteria of sections 5 to 8 of RFC 9743, in the RFC's order and with its titles."""

import dataclasses
from collections.abc import Callable

from conformance.model.network import Network
from conformance.reporting.heatmaps import Series
from conformance.reporting.html import rfc9743_figures as figures

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
    figures: Callable[[Series], dict[str, str]] | None = None
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
              says="Cells with 10 % and more of random loss; outages, and what is sent in them: the factor between "
                   "gaps of probes, and the window once the path has healed."),
    Criterion(section="5.1.2", title="Protection Against Bufferbloat", status=MEASURED, figures=figures.bufferbloat,
              scenarios=("queues",), metrics=("queue_delay_p50_ms", "queue_delay_p95_ms"), network=figures.deep,
              asks="Does it avoid standing queues?",
              says="Mean length of the bottleneck's queue in cells without random loss, and how long packets stand in "
                   "it, behind FIFO queues of 4 bandwidth-delay products and more only: a shorter queue, or one that "
                   "is managed, stays short whatever the sender does."),
    Criterion(section="5.1.3", title="Protection Against High Packet Loss", status=PARTLY, figures=figures.high_loss,
              scenarios=("shallow-queues", "fairness", "ten-flows", "hundred-flows"), metrics=("dropped_pct",),
              clauses=("CL103",), asks="Does it avoid causing high loss, and slow down under it?",
              says="Share of the sender's bytes that never arrived: where none is lost at random, what the flow itself "
                   "causes at the bottleneck; and what several flows of its own make a queue of 0.25 to 1.5 "
                   "bandwidth-delay products drop. The RFC's example of high loss, several flows of BBRv1 in a "
                   "shallow queue, is the control that must show it."),
    Criterion(section="5.1.4", title="Fairness Within the Proposed Congestion Control Algorithm", status=PARTLY,
              figures=figures.share_with_own, shared=True, scenarios=("fairness", "rtt-fairness"),
              metrics=("jain_index", "unequal_pct", "convergence_s", "share"),
              asks="How do flows of the same algorithm share a bottleneck?",
              says="Two to eight flows of the stack, each a second after the one before; two of unlike round trips; "
                   "and the share beside one of the guest kernel's own with the same algorithm."),
    Criterion(section="5.1.5", title="Short Flows", status=PARTLY, figures=figures.short_flows,
              scenarios=("short-flows", "short-bodies"), metrics=("fct_p50_s", "fct_p95_s", "request_p50_s"),
              others=("flow_goodput_mbps",),
              asks="How do short flows affect long ones, and the other way round?",
              says="Transfers of at most one second's worth of data, alone on the link; short ones of the stack "
                   "beside a long one of the same, and what that long one has of its 10 Mbit/s."),
    Criterion(section="5.2", title="Mixed Algorithm Behavior", status=PARTLY, scenarios=("coexistence", "beside-cubic"),
              metrics=("harm_pct", "share"), others=("flow_goodput_mbps", "rtt_p95_ms", "retransmitted_pct"),
              clauses=("CL004",),
              asks="Does it starve others, or harm them by delay and loss, and does the loss of all feedback end in "
                   "backing off?",
              says="What others have less than an equal share of the bottleneck, and what a sender sends once no "
                   "acknowledgement arrives. Harm by delay and loss is what others' round trips and "
                   "retransmissions are beside this sender, as against their row beside Linux's CUBIC."),
    Criterion(section="5.2.1", title="Existing General-Purpose Congestion Control", status=PARTLY,
              figures=figures.share, shared=True, scenarios=("coexistence", "beside-cubic"),
              metrics=("share", "harm_pct"),
              asks="What does it do to flows of Reno, CUBIC and others that share the bottleneck?",
              says="Share of the link beside one or four flows of CUBIC or one of BBR of the guest kernel's, either "
                   "first, at queues of 0.5, 2 and 8 bandwidth-delay products; and the harm to these."),
    Criterion(section="5.2.2", title="Real-Time Congestion Control", status=PARTLY, scenarios=("media",),
              metrics=("link_utilization",), others=("flow_goodput_mbps", "rtt_p95_ms", "retransmitted_pct"),
              asks="Does it coexist with real-time media?",
              says="A flow of 1.5 Mbit/s, paced, which was there first: its rate, round trips and retransmissions "
                   "beside the sender. It is TCP of the guest kernel's; a source that adapts its rate to delay, as "
                   "WebRTC's does, is not there."),
    Criterion(section="5.2.3", title="Short and Long Flows", status=MEASURED, scenarios=("others-short",),
              metrics=("fct_p50_s", "fct_p95_s", "share"), others=("fct_p50_s", "fct_p95_s", "flow_goodput_mbps"),
              asks="Effect on short and long flows of other algorithms.",
              says="Short flows of the guest kernel's CUBIC beside a long one of the stack: their completion times; "
                   "and the other way round, the goodput of the kernel's long one."),
    Criterion(section="5.3.1", title="Differences with Congestion Control Principles", status=PARTLY,
              clauses=_ALL_LOSS_BASED, asks="Deviations from RFC 2914 and RFC 7141.",
              says="Clauses of RFC 5681, RFC 9002 and RFC 9438 about the response to each loss and about growth. The "
                   "explanation that the RFC asks for is the proposal's."),
    Criterion(section="5.3.2", title="Incremental Deployment", status=PARTLY, figures=figures.policed,
              scenarios=("policer",), metrics=("link_utilization", "dropped_pct"),
              asks="Can it be deployed step by step, with today's equipment?",
              says="Behind a policer; the pages about split paths tell of proxies. The discussion that the RFC asks "
                   "for is the proposal's."),
    Criterion(section="6", title="General Use", status=MEASURED, figures=figures.coverage,
              asks="Is it evaluated over a representative range of rates, delays and queue depths?",
              says="Which ranges these results span."),
    Criterion(section="6.1", title="Paths with Tail-drop Queues", status=MEASURED, figures=figures.tail_drop,
              scenarios=("shallow-queues", "ten-flows", "hundred-flows"),
              metrics=("link_utilization", "queue_delay_p95_ms", "dropped_pct"),
              asks="Behaviour at a drop-tail queue.",
              says="Results whose bottleneck was a FIFO (`--queue bfifo:BDPs` or `pfifo:PACKETS`), and several flows "
                   "of the stack at tail-drop queues of 0.1 to 10 bandwidth-delay products."),
    Criterion(section="6.2", title="Tunnel Behavior", status=PARTLY, scenarios=("small-packets",),
              metrics=("link_utilization",), clauses=("CL032",),
              asks="Where signals of the path are hidden by a tunnel.",
              says="A path that drops long packets without a word, and one that takes ECN away from every packet. "
                   "Queues that see one flow of a tunnel in place of many are not measured."),
    Criterion(section="6.3", title="Wired Paths", status=MEASURED, figures=figures.wired,
              asks="The baseline: stable capacity, next to no loss but in queues.",
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
              says="Results whose bottleneck manages its queue, by which discipline; and what marks leave of the "
                   "window. FQ-CoDel and CAKE mark what asks for it, by Linux's default. DualPI2 is L4S's."),
    Criterion(section="7.2", title="Operation with the Envelope Set by Network Circuit Breakers", status=PARTLY,
              figures=figures.policed, scenarios=("policer",), metrics=("dropped_pct",),
              asks="Does it react before equipment on the path ends the flow?",
              says="Loss behind a policer, which a breaker would count. No trial has a breaker that ends flows."),
    Criterion(section="7.3", title="Paths with Varying Delay", status=PARTLY,
              scenarios=("delay-step", "delay-blip", "jitter"), metrics=("link_utilization", "rtt_p95_ms"),
              asks="Is it robust when the minimum delay changes?",
              says="One step of the delay, one short rise of it, and jitter."),
    Criterion(section="7.4", title="Internet of Things and Constrained Nodes", status=PARTLY,
              figures=figures.constrained, clauses=("BBR14", "BBR114"), asks="Very low rates and little power.",
              says="Cells of 1 Mbit/s and less. What power a sender takes is out of reach: computing is free in "
                   "virtual time."),
    Criterion(section="7.5", title="Paths with High Delay", status=PARTLY, figures=figures.high_delay,
              asks="Satellite links and others with delays beyond the usual.",
              says="Utilization at the longest delay of the results; a geostationary satellite's is some 600 ms."),
    Criterion(section="7.6", title="Misbehaving Nodes", status=PARTLY, scenarios=("marks",),
              metrics=("link_utilization", "marked_pct"), clauses=("CL032",),
              asks="Non-compliant senders, receivers, routers; attackers.",
              says="Routers that mark all packets or take ECN off them. Receivers that lie are out of reach: clients "
                   "are the kernel's TCP and a QUIC library, which acknowledge what they got; one that acknowledges "
                   "what it never got needs a QUIC client of our own, and of TCP a program between the two ends."),
    Criterion(section="7.7", title="Extreme Packet Reordering", status=MEASURED, scenarios=("reordering", "bonded"),
              metrics=("link_utilization", "retransmitted_pct"), clauses=("CL016", "CL052"),
              asks="Paths that do not keep packets in order.",
              says="Packets held back by some others or by some time, or dealt to two links, with nothing lost."),
    Criterion(section="7.8", title="Transient Events", status=PARTLY,
              scenarios=("blackout", "rate-step", "handshake-loss", "scripted-loss", "migration"),
              metrics=("link_utilization",),
              clauses=("CL001", "CL002", "CL041", "CL103"), asks="Sudden congestion, routing changes, mobility.",
              says="Outages, steps of the rate, losses of the handshake and of chosen packets, and a client whose port "
                   "or address changes in mid-transfer (scenario migration)."),
    Criterion(section="7.9", title="Sudden Changes in the Path", status=PARTLY,
              scenarios=("path-changes", "rate-step", "delay-step", "recovery"),
              metrics=("link_utilization", "dropped_pct", "queue_delay_p95_ms"),
              asks="Robustness to changes in the path's characteristics.",
              says="Steps of rate and delay; and a path that changes every ten seconds and back, in its rate, its "
                   "delay or both. Utilization is of what the link carries meanwhile."),
    _not("7.10", "Multipath Transport", "Fail-over, and paths that share a bottleneck.",
         "each connection has one path; no stack here is asked for more."),
    Criterion(section="7.11", title="Data Centers", status=PARTLY, figures=figures.data_centers,
              scenarios=("hundred-flows",), metrics=("dropped_pct", "queue_delay_p95_ms"),
              asks="Latencies below 2 ms, bursts of many nodes.",
              says="Round trips of 2 ms and less, and a hundred flows through one queue. Rates beyond 1 Gbit/s and "
                   "marking at a fixed threshold are not measured."),
    _not("8", "Security Considerations", "Does the proposal examine what an attacker can do?",
         "this asks for an argument in a proposal; nodes that misbehave (7.6) are out of the suite's reach."),
)  # fmt: skip
