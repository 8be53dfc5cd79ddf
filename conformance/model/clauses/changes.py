"""Define the features that `why --changes` adds: of outages, disorder, silence, little to send, marks, steps of rates.

Each feature is an observable of clauses, read in one of the clauses' networks, and reported like the features of
model/diagnosis/feature_table.py. `compare` reads some more.
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping

from conformance.model.clauses.document import Clause, ClauseNetwork
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.clauses.seen import Invisible, View
from conformance.model.diagnosis import stages
from conformance.model.diagnosis.feature_table import ALONE, FEATURES as STEADY_FEATURES, LESS, Feature, label_of
from conformance.model.diagnosis.ranking import Reading, of_samples
from conformance.model.diagnosis.samples import Samples
from conformance.model.errors import UserError
from conformance.model.networks.place import Point, Value


def _at(scenario: str, **point: Value) -> ClauseNetwork:
    """Return the network of a scenario at the point of these values of its axes."""
    return ClauseNetwork(scenario=scenario, point=tuple(sorted(point.items())))


OUTAGE, PROBES, IDLE, SLOW = "outage of 1.5 s", "outage of 5 s", "silence of 6 s", "little to send"
MARKS, RATE_UP, RATE_DOWN = "marks", "rate times ten", "rate by ten"
DISORDER, HELD, LATE = "packets five late", "held packets", "a late packet"
#: {name: the network that features are read in}; these are networks of clauses, so that results of clauses can be used
NETWORKS: Mapping[str, ClauseNetwork] = {
    OUTAGE: _at("events", delay_ms=20, event="outage-1500ms", seconds=6),
    PROBES: _at("events", delay_ms=20, event="outage-5s", seconds=6),
    IDLE: _at("pauses", before="idle-6s", sender="stack", unused_window="decays"),
    SLOW: _at("pauses", before="slow", sender="stack", unused_window="decays"),
    MARKS: _at("events", delay_ms=20, event="marks", seconds=6),
    RATE_UP: _at("bbr-cases", case="rate-up"),
    RATE_DOWN: _at("bbr-cases", case="rate-down"),
    DISORDER: _at("events", delay_ms=20, event="reordered-5", seconds=6),
    LATE: _at("growth-cases", case="late-packet"),
    HELD: _at("growth-cases", case="held"),
}
ALL_MARKED = "marks on all packets"
LONG, TOGETHER, ONCE_KNOWN = "outage of 20 s", "losses together", "losses once a loss is known"
EARLY, SWAPPED, TAIL = "a late packet in start-up", "neighbours swapped", "last packets lost"
ANSWER, SMALL, RARE_ACKS = "first answer lost", "small packets only", "an acknowledgement for 25 packets"
NARROW, NEAR, WIDE = "0.5 Mbit/s", "a round trip of 0.5 ms", "a large window"
MOVED = "another address"
AGAIN, AT_ONCE = "a second connection", "four connections at once"
ANSWER_LOST, LONG_LOST = "an answer is lost", "a long packet is lost"
LATE_ACKS = "an answer is lost, and acknowledgements are late"
FIRST_LOST, HANDSHAKE_LOST = "first packet lost", "second and third packet lost"
CLIENT_LOST = "client's second and third packet lost"
LITTLE_CREDIT, SLOW_READER = "small windows of the client", "a client that reads slowly"
SMALLER, NEW_PORT = "small packets only, later", "another port"
RISING, LOSSY_START, HALF_RATE = "a rate that rises in start-up", "losses in start-up", "half of the rate"
LOSSY_CRUISE, LATE_MANY, SPACED = "losses in CRUISE", "many late packets in CRUISE", "a loss each 50 packets"
SHALLOW = "a queue of half a BDP"
SLOW_LATER, LOSSES = "little to send after a loss", "losses now and then"
LONE_LOSS, DEEP = "a loss on a path of 200 ms", "a queue of four BDP"


#: the networks in which two builds are compared, those of events that fewest other networks show first
COMPARED_NETWORKS: Mapping[str, ClauseNetwork] = {
    OUTAGE: NETWORKS[OUTAGE],
    PROBES: NETWORKS[PROBES],
    DISORDER: NETWORKS[DISORDER],
    LATE: NETWORKS[LATE],
    HELD: NETWORKS[HELD],
    IDLE: NETWORKS[IDLE],
    SLOW: NETWORKS[SLOW],
    MARKS: NETWORKS[MARKS],
    ALL_MARKED: _at("events", delay_ms=20, event="marks-all", seconds=6),
    SLOW_LATER: _at("growth-cases", case="limited-later"),
    LONE_LOSS: _at("growth-cases", case="late-loss"),
    LOSSES: ClauseNetwork(profile="identify", cell="10mbps-20ms-0.3pct", transfer_s=12),
    TOGETHER: _at("conditions", condition="losses-together"),
    ONCE_KNOWN: _at("conditions", condition="lost-once-known"),
    EARLY: _at("conditions", condition="late-in-start-up"),
    TAIL: _at("conditions", condition="last-packets-lost"),
    ANSWER: _at("conditions", condition="first-answer-lost"),
    ANSWER_LOST: _at("conditions", condition="answer-lost"),
    LONG_LOST: _at("conditions", condition="long-packet-lost"),
    LATE_ACKS: _at("conditions", condition="answer-lost-slow-acks"),
    FIRST_LOST: _at("conditions", condition="first-packet-lost"),
    HANDSHAKE_LOST: _at("conditions", condition="handshake-lost"),
    CLIENT_LOST: _at("conditions", condition="client-handshake-lost"),
    SWAPPED: _at("conditions", condition="swapped"),
    LONG: _at("conditions", condition="outage-20s"),
    RARE_ACKS: _at("ack-policy", acks="25"),
    NARROW: _at("conditions", condition="slow-link"),
    NEAR: _at("conditions", condition="short-path"),
    SMALL: _at("conditions", condition="small-path"),
    WIDE: _at("conditions", condition="large-window"),
    MOVED: _at("migration", rebind="address"),
    NEW_PORT: _at("migration", rebind="port"),
    SMALLER: _at("small-packets", largest_bytes=1280),
    LITTLE_CREDIT: _at("client-cases", case="small-windows"),
    SLOW_READER: _at("client-cases", case="reads-slowly"),
    AGAIN: _at("client-cases", case="comes-again"),
    AT_ONCE: _at("connections", connections=4),
    RISING: _at("bbr-cases", case="rising"),
    LOSSY_START: _at("bbr-cases", case="limited-loss"),
    HALF_RATE: _at("bbr-cases", case="half-rate"),
    LOSSY_CRUISE: _at("bbr-cases", case="lossy-cruise"),
    LATE_MANY: _at("bbr-cases", case="late-many"),
    SPACED: _at("spaced-losses", delay_ms=80, every=50),
    SHALLOW: ClauseNetwork(profile="identify", cell="10mbps-40ms-0pct", transfer_s=30, queue="bfifo:0.5"),
    DEEP: ClauseNetwork(profile="identify", cell="10mbps-40ms-0pct", transfer_s=30, queue="bfifo:4"),
    **NETWORKS,
}
#: those of these networks that stay as they are while a transfer goes on
STEADY = frozenset({LOSSES, RARE_ACKS, NARROW, NEAR, SMALL, WIDE, AT_ONCE, SPACED, SHALLOW, DEEP})
# A tolerance is the distance from what a sender that keeps the clause does to the clause's bound.
# fmt: off
FEATURES = (
    Feature(name="after_outage", cell=OUTAGE, label=("persistent_congestion", None), tolerance=4, weight=ALONE,
            only_above=True, digits=0,
            says="once the path healed it sent {value} full packets in a round trip",
            above="a window that an outage does not reduce to its minimum", below="a smaller window"),
    Feature(name="probe_ratio", cell=PROBES, label=("backoff", "backoff"), tolerance=0.3, weight=ALONE, least=2,
            says="each gap between probes was {value} times the one before ({n} gaps)",
            above="a period that grows too fast", below="a period of probes that does not double"),
    Feature(name="burst_after_pause", cell=IDLE, label=("idle_pacing", "idle_pacing"), tolerance=1.4, ratio=True,
            only_above=True, digits=0,
            says="after a silence it sent {value} packets at once",
            above="no pacing after a silence", below="smaller bursts"),
    # Linux reduces a window that is unused for the length of a timeout, QUIC does not: only a larger window is a fault.
    Feature(name="window_after_pause", cell=IDLE, label=("idle_growth", None), tolerance=1.0, only_above=True,
            says="after a silence its window was {value} times the one before",
            above="a window that grows while nothing is sent", below="a window that decays"),
    Feature(name="rate_after_pause", cell=IDLE, label=(None, "idle_restart"), tolerance=0.25,
            says="after a silence it began at {value} times the link's rate",
            above="a restart that is too fast", below="a restart at less than the bandwidth that it knew"),
    Feature(name="unused_growth", cell=SLOW, label=("app_limited", None), tolerance=1.6, ratio=True, only_above=True,
            weight=ALONE, digits=1,
            says="after a time with little to send it sent {value} times the most that had been in flight before",
            above="a window that grows although it is not used", below="less growth"),
    Feature(name="kept_of_mark", cell=MARKS, label=("marks", None), tolerance=0.15, least=2, only_above=True,
            weight=ALONE,
            says="{n} marks left {value} of its window",
            above="no response to marks", below="more of a response to marks"),
    Feature(name="rate_after", cell=RATE_DOWN, label=("rate_step", "rate_step"), tolerance=1.4, ratio=True,
            only_above=True,
            says="two seconds after the rate fell to a tenth it sent {value} times what the path carried",
            above="no response to a rate that falls", below="less"),
    Feature(name="full_after_s", cell=RATE_UP, label=(None, "rate_step"), tolerance=1.6, ratio=True, only_above=True,
            digits=1,
            says="a rate ten times as high was used after {value} s",
            above="a rate that rises is used late", below="a rate that rises is used sooner"),
)
#: the features of which documents permit either: a threshold of reordering may be fixed, and a reduction that was
#: needless may stay. Where a stack differs from the reference in these, it is no suspect.
PERMITTED = (
    Feature(name="during", cell=DISORDER, label=("disorder", "disorder"), tolerance=0.2,
            says="while some packets came five late, {value} of the link's rate arrived",
            above="more of the rate", below="less of the rate"),
    Feature(name="window_after_late", cell=LATE, label=("late_packet", "late_packet"), tolerance=0.2,
            says="after a packet that was late and not lost, its window was {value} times the one before",
            above="a larger window", below="a smaller window"),
    Feature(name="after_held_share", cell=HELD, label=("held_packets", "held_packets"), tolerance=0.2,
            says="after packets had been held and none was lost, its window was {value} times the one before",
            above="a larger window", below="a smaller window"),
    Feature(name="silent_share", cell=PROBES, label=("backoff", "backoff"), tolerance=0.13,
            says="its longest silence took {value} of an outage of 5 s",
            above="probes that come too late, or none", below="more probes"),
    Feature(name="recovered", cell=PROBES, label=("after_outage", "after_outage"), tolerance=0.2,
            says="two seconds after an outage of 5 s, {value} of the link's rate arrived",
            above="more of the rate", below="less of the rate"),
)
#: the features that two builds are compared by. Those that `why` lacks are no deviation from a reference, either: a BBR
#: may ignore marks.
COMPARED = (
    *FEATURES,
    *PERMITTED,
    Feature(name="rate_when_marked", cell=ALL_MARKED, label=(None, "marks"), tolerance=0.2,
            says="while all packets were marked, {value} of the link's rate arrived",
            above="less of a response to marks", below="more of a response to marks"),
    Feature(name="restart_window", cell=OUTAGE, label=("persistent_congestion", None), tolerance=1.6, ratio=True,
            digits=1,
            says="in the fifth round after an outage, {value} packets were in flight",
            above="more growth after an outage", below="less growth after an outage"),
    Feature(name="unused_growth_later", cell=SLOW_LATER, label=("app_limited", None), tolerance=0.4,
            says="after a time with little to send, its window was {value} times the one before",
            above="a window that grows although it is not used", below="less growth"),
    Feature(name="kept_low", cell=LOSSES, label=("beta", None), tolerance=0.07,
            says="a quarter of the losses left {value} of its window or less",
            above="a smaller reduction", below="a larger reduction, at least at some losses"),
    Feature(name="restart_after_s", cell=LONG, label=("backoff", "backoff"), tolerance=2, digits=1,
            says="{value} s after an outage of 20 s, a packet arrived",
            above="probes that come later", below="probes that come sooner"),
    Feature(name="last_probe_ratio", cell=LONG, label=("backoff", "backoff"), tolerance=0.3,
            says="the silence in which an outage of 20 s ended was {value} times the gap between probes before it",
            above="a period that grows too fast", below="a period that a cap limits"),
    Feature(name="window_later", cell=TOGETHER, label=("every_loss", "response"), tolerance=0.2,
            says="after three losses in a row, its window was {value} times the one before",
            above="less of a response", below="several responses to one event"),
    Feature(name="kept_of_last", cell=ONCE_KNOWN, label=("every_loss", "response"), tolerance=0.2,
            says="losses of what it sent first once it knew of a loss left {value} of its window",
            above="less of a response to a second loss", below="more of a response to a second loss"),
    Feature(name="early_throughput", cell=EARLY, label=("disorder", "disorder"), tolerance=0.2,
            says="after a packet came late in start-up, it used {value} of the link's rate",
            above="a start-up that goes on", below="a start-up that ends"),
    Feature(name="first_probe_rtts", cell=TAIL, label=("backoff", "backoff"), tolerance=1.4, ratio=True,
            says="when the end of a body was lost, it was silent for {value} round trips",
            above="a probe that comes later", below="a probe that comes sooner"),
    Feature(name="request_rtts", cell=ANSWER, label=("backoff", "backoff"), tolerance=1.4, ratio=True, digits=1,
            says="when its first answer was lost, a request came {value} round trips later",
            above="probes of a handshake that come later", below="probes of a handshake that come sooner"),
    Feature(name="probe_timeout_rtts", cell=ANSWER_LOST, label=("backoff", "backoff"), tolerance=1.2, ratio=True,
            says="when an answer was lost on a path of 10 ms, it was silent for {value} round trips",
            above="a probe that comes later", below="a probe that comes sooner"),
    Feature(name="first_probe_rtts", cell=LONG_LOST, label=("loss_timer", "loss_timer"), tolerance=1.2, ratio=True,
            says="when a packet before the end of an answer was lost, it was silent for {value} round trips",
            above="a loss that is known later", below="a loss that is known sooner"),
    Feature(name="probe_timeout_rtts", cell=LATE_ACKS, label=("backoff", "backoff"), tolerance=1.2, ratio=True,
            says="when the client may acknowledge 200 ms late, it was silent for {value} round trips",
            above="a probe that comes later", below="a probe that comes sooner"),
    Feature(name="request_rtts", cell=FIRST_LOST, label=("backoff", "backoff"), tolerance=1.4, ratio=True, digits=1,
            says="when its first packet was lost, a request came {value} round trips later",
            above="probes of a handshake that come later", below="probes of a handshake that come sooner"),
    Feature(name="request_rtts", cell=HANDSHAKE_LOST, label=("backoff", "backoff"), tolerance=1.4, ratio=True,
            digits=1,
            says="when its second and third packet were lost, a request came {value} round trips later",
            above="probes of a handshake that come later", below="probes of a handshake that come sooner"),
    Feature(name="request_rtts", cell=CLIENT_LOST, label=("backoff", "backoff"), tolerance=1.4, ratio=True, digits=1,
            says="when the client's second and third packet were lost, a request came {value} round trips later",
            above="probes of a handshake that come later", below="probes of a handshake that come sooner"),
    Feature(name="handshake_ratio", cell=CLIENT_LOST, label=("amplification", "amplification"), tolerance=1.2,
            ratio=True, digits=1,
            says="before a client's second packet came it sent {value} times the first",
            above="more to an address that is not validated", below="less to an address that is not validated"),
    Feature(name="throughput", cell=LITTLE_CREDIT, label=("flow_control", "flow_control"), tolerance=1.2, ratio=True,
            says="with windows of 20,000 bytes of the client it used {value} of the link's rate",
            above="more of the rate", below="less of the rate"),
    Feature(name="small_share", cell=SLOW_READER, label=("flow_control", "flow_control"), tolerance=0.3,
            says="to a client that reads slowly it sent {value} small packets for each full one",
            above="more packets without data", below="fewer packets without data"),
    Feature(name="later_throughput", cell=SMALLER, label=("packet_size", "packet_size"), tolerance=0.1, weight=LESS,
            says="once the path carried packets of 1280 bytes at most, it used {value} of the link's rate",
            above="more of the rate", below="less of the rate"),
    Feature(name="later_throughput", cell=NEW_PORT, label=("move", "move"), tolerance=0.1, weight=LESS,
            says="with another port of the client, it used {value} of the link's rate",
            above="more of the rate", below="less of the rate"),
    Feature(name="after_move", cell=MOVED, label=("move", "move"), tolerance=1.6, ratio=True, only_above=True,
            weight=ALONE,
            says="to another address of the client it sent {value} times what it had sent first of all",
            above="a window that is kept where the address changes", below="a smaller window"),
    Feature(name="next_connection_window", cell=AGAIN, label=("initial_window", "initial_window"), tolerance=1.6,
            ratio=True, weight=ALONE,
            says="a second connection began with {value} times what the first one had",
            above="a window that one connection leaves to the next", below="a smaller window"),
    Feature(name="later_throughput", cell=AT_ONCE, label=("growth", "gains"), tolerance=0.1, weight=LESS,
            says="with four connections beside another client's one, these used {value} of the link's rate",
            above="more of the rate", below="less of the rate"),
    Feature(name="later_lost", cell=AT_ONCE, label=("growth", "gains"), tolerance=0.05, weight=LESS,
            says="with four connections beside another client's one, {value} of their packets were lost",
            above="more losses", below="fewer losses"),
    Feature(name="during", cell=SWAPPED, label=("disorder", "disorder"), tolerance=0.2,
            says="while neighbours were swapped, {value} of the link's rate arrived",
            above="more of the rate", below="less of the rate"),
    Feature(name="later_throughput", cell=RARE_ACKS, label=("growth", "gains"), tolerance=0.1, weight=LESS,
            says="with an acknowledgement for 25 packets, it used {value} of the link's rate",
            above="more of the rate", below="less of the rate"),
    Feature(name="burst", cell=RARE_ACKS, label=("pacing", "pacing"), tolerance=1.4, ratio=True, digits=0,
            says="with an acknowledgement for 25 packets, it sent {value} packets at once",
            above="larger bursts", below="smaller bursts"),
    Feature(name="later_throughput", cell=NARROW, label=("growth", "gains"), tolerance=0.1, weight=LESS,
            says="at 0.5 Mbit/s, it used {value} of the link's rate",
            above="more of the rate", below="less of the rate"),
    Feature(name="later_lost", cell=NARROW, label=("growth", "gains"), tolerance=0.05, weight=LESS,
            says="at 0.5 Mbit/s, it lost {value} of its packets",
            above="more losses", below="fewer losses"),
    # At a low rate, a burst that is one of packets, not of time, is a long queue.
    Feature(name="burst", cell=NARROW, label=("pacing", "pacing"), tolerance=1.4, ratio=True, digits=0,
            says="at 0.5 Mbit/s, it sent {value} packets at once",
            above="larger bursts", below="smaller bursts"),
    Feature(name="later_throughput", cell=NEAR, label=("response", "gains"), tolerance=0.1, weight=LESS,
            says="with a round trip of 0.5 ms, it used {value} of the link's rate",
            above="more of the rate", below="less of the rate"),
    Feature(name="later_lost", cell=NEAR, label=("response", "gains"), tolerance=0.05, weight=LESS,
            says="with a round trip of 0.5 ms, it lost {value} of its packets",
            above="more losses", below="fewer losses"),
    Feature(name="later_throughput", cell=SMALL, label=("packet_size", "packet_size"), tolerance=0.1, weight=LESS,
            says="on a path that carries packets of 1300 bytes at most, it used {value} of the link's rate",
            above="more of the rate", below="less of the rate"),
    Feature(name="kept_of_probe", cell=SMALL, label=("packet_size", "packet_size"), tolerance=0.2, weight=ALONE,
            says="on a path that carries packets of 1300 bytes at most, a lost probe left {value} of its window",
            above="less of a response to a lost probe", below="a lost probe that counts as congestion"),
    Feature(name="start_up_growth", cell=WIDE, label=("slow_start", "slow_start"), tolerance=0.25,
            says="at 500 Mbit/s and 100 ms, start-up sent {value} times as much in each round as in the one before",
            above="a faster start-up", below="a slower start-up"),
    Feature(name="growth_after_loss", cell=WIDE, label=("growth", None), tolerance=1.4, ratio=True, digits=1,
            says="at 500 Mbit/s and 100 ms, its window grew by {value} packets in each round after a loss",
            above="a window that grows faster", below="a window that grows more slowly"),
    Feature(name="regrowth", cell=LONE_LOSS, label=("growth", None), tolerance=0.1,
            says="after a loss its window was back when {value} of CUBIC's K were over",
            above="a window that comes back later", below="a window that comes back sooner"),
    Feature(name="early_throughput", cell=RISING, label=(None, "slow_start"), tolerance=1.25, ratio=True, weight=ALONE,
            says="while the rate rose by a quarter within three rounds, it used {value} times the first one",
            above="a start-up that less growth keeps up", below="a start-up that ends although the rate grows"),
    Feature(name="bbr_bulk_rate", cell=LOSSY_START, label=(None, "slow_start"), tolerance=1.6, ratio=True,
            says="after losses in start-up it sent up to {value} times the link's rate",
            above="a start-up that losses do not end", below="a slower start"),
    Feature(name="flight_later", cell=HALF_RATE, label=(None, "gains"), tolerance=1.25, ratio=True,
            says="14 s after the rate was halved, it had {value} BDP in flight",
            above="a bandwidth that is remembered longer", below="a bandwidth that is forgotten sooner"),
    # Of what these networks show, these three tell deviations of BBR (clauses/plays.json) that no other feature tells.
    Feature(name="flight_sooner", cell=HALF_RATE, label=(None, "gains"), tolerance=1.2, ratio=True,
            says="three to seven seconds after the rate was halved, it had {value} BDP in flight",
            above="a larger window than the bandwidth that it knew needs", below="a smaller window"),
    Feature(name="lost_after", cell=RATE_DOWN, label=(None, "rate_step"), tolerance=0.03,
            says="in four seconds after the rate fell to a tenth, it lost {value} of its packets",
            above="a rate that falls is followed late", below="a rate that falls is followed sooner"),
    Feature(name="rate_soon_after_pause", cell=IDLE, label=(None, "idle_restart"), tolerance=0.25,
            says="in the second to the fourth round trip after a silence, it sent {value} times the link's rate",
            above="a restart that is too fast", below="a restart at less than the bandwidth that it knew"),
    Feature(name="rate_left", cell=LOSSY_CRUISE, label=(None, "response"), tolerance=0.07,
            says="a round of CRUISE in which most packets were lost left {value} of its rate",
            above="less of a response to losses", below="more of a response to losses"),
    Feature(name="flight_soon", cell=LATE_MANY, label=(None, "disorder"), tolerance=1.25, ratio=True,
            says="after many packets came late in CRUISE, it had up to {value} BDP in flight",
            above="another state after packets that were late", below="a reduction that stays"),
    Feature(name="during", cell=SPACED, label=(None, "response"), tolerance=0.1,
            says="while one of 50 packets was lost, it used {value} of the link's rate",
            above="less of a response to losses", below="more of a response to losses"),
    Feature(name="later_lost", cell=SHALLOW, label=(None, "gains"), tolerance=0.01,
            says="behind a queue of half a BDP, it lost {value} of its packets",
            above="probes that lose more", below="probes that lose less"),
    Feature(name="bbr_probe_again", cell=SHALLOW, label=(None, "gains"), tolerance=1.6, ratio=True, digits=1,
            says="behind a queue of half a BDP, the next probe came after {value} s at the least",
            above="no second probe after one that lost", below="a second probe after one that lost"),
    Feature(name="usual_flight", cell=DEEP, label=(None, "gains"), tolerance=0.15,
            says="with a queue of four BDP, it had {value} BDP in flight or less for two thirds of the time",
            above="a path that stays fuller between probes", below="a path that stays emptier between probes"),
)
# fmt: on


def label_of_clause(clause: Clause, algorithm: str) -> str | None:
    """Return what a clause points at for an algorithm: the label of the feature that reads the same observable.

    A feature in the clause's own network comes first. If there is none, features elsewhere must point at one thing; a
    rate, which follows from everything, points at nothing there. None if no feature says so.
    """
    labels = {
        feature: label_of(feature, algorithm)
        for feature in (*COMPARED, *STEADY_FEATURES)
        if feature.name == clause.observable.name and label_of(feature, algorithm)
    }
    here = {label for feature, label in labels.items() if COMPARED_NETWORKS.get(feature.cell) == clause.network}
    shown = here or (set() if stages.is_rate(clause.observable.name) else set(labels.values()))
    return shown.pop() if len(shown) == 1 else None


def is_read_at(feature: Feature, profile: str, place: Point) -> bool:
    """Return whether a feature is read at this place of a profile or scenario."""
    network = COMPARED_NETWORKS.get(feature.cell)
    if network is None:
        return False
    if network.scenario is None:
        return (network.profile, network.cell) == (profile, place.id)
    return (network.scenario, dict(network.point)) == (profile, dict(place.values))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Changed:
    """Trials of a scheme in which its network or its application changes.

    `seen` is {network's name: {seed: Seen}}, `problems` are sentences.
    """

    views: Mapping[str, Mapping[int, View]]
    problems: tuple[str, ...] = ()


def readings(changed: Changed, features: Iterable[Feature] = FEATURES) -> dict[Feature, Reading]:
    """Return {Feature: Reading}, without features that no trial shows."""
    by_feature = {
        feature: of_samples(feature, samples(feature, changed.views.get(feature.cell, {}))) for feature in features
    }
    return {feature: reading for feature, reading in by_feature.items() if reading is not None}


def samples(feature: Feature, sightings: Mapping[int, View]) -> dict[int, Samples]:
    """Return {seed: a feature's samples} of the trials in its network that show it."""
    by_seed: dict[int, Samples] = {}
    for seed, view in sightings.items():
        with contextlib.suppress(Invisible, UserError):
            by_seed[seed] = OBSERVABLES[feature.name].samples(view)
    return by_seed
