"""Observe what a sender does when its path changes: outages, marks, reordering, steps of rate and delay.

The scenario's schedule says when the path changes. Times are in seconds since the first packet was sent.
"""

import itertools

import numpy

from conformance.model.captures.packets import CE, NOT_ECT, Integers
from conformance.model.clauses.seen import Absent, EventTimes, Invisible, Rows, View, shown
from conformance.model.diagnosis import features
from conformance.model.diagnosis.flow import Floats, Flow, in_flight, loss_events
from conformance.model.diagnosis.samples import Samples, one

ROWS = Rows()

#: packets less than this many seconds apart belong to one probe
_TOGETHER_S = 0.005
#: round trips of an outage in which acknowledgements that were under way may still release packets
_LAST_RTTS = 2.5
#: the share of a full packet from which on a packet is large: after a move, paths are probed for their size anew
ALMOST_FULL = 0.8
#: packets of an initial window (RFC 9002, 7.2)
INITIAL_PACKETS = 10.0
#: bytes of a frame that are not of its UDP datagram's payload: Ethernet, IPv4 and UDP
_HEADER_BYTES = 14 + 20 + 8
#: packets: in a smaller window, one packet more or less is a large share
_LEAST_WINDOW = 12
#: round trips before and after a mark, a lost probe or another event in which nothing else may be lost or marked
_QUIET_BEFORE, _QUIET_AFTER = 2, 3


def _rtt_s(view: View, at_s: float) -> float:
    """Return the round-trip time just before a time, queue included."""
    rtts_s: Floats = view.flow.rtt_s
    number = int(numpy.searchsorted(view.flow.sent_s, at_s)) - 1
    return float(rtts_s[max(number, 0)])


def require_no_other_loss(view: View, rtt_s: float, until_s: float, reductions: int = 0) -> None:
    """Raise Invisible if losses beside the event's own call for a reduction, from two round trips before it on.

    `until_s`: when they end to count; `reductions`: for how many the event's own losses call.
    """
    known_s = [event.known_s for event in loss_events(view.flow)]
    if sum(view.event.begin_s - _QUIET_BEFORE * rtt_s < at_s < until_s for at_s in known_s) > reductions:
        raise Invisible("packets were lost beside what happened to the path")


def path_healed_s(view: View, event: EventTimes) -> float:
    """Return when the sender can know that packets arrive again. Raises Invisible if none did.

    An arrival after which nothing is sent for a round trip told the sender nothing: it was no more than an
    acknowledgement, which the client does not acknowledge.
    """
    later = numpy.flatnonzero((view.sent_s >= event.begin_s) & ~numpy.isnan(view.out_s) & (view.out_s > event.end_s))
    if not len(later):
        raise Invisible("nothing arrived after the outage")
    known_s = [float(at_s) + view.flow.back_s for at_s in view.out_s[later]]
    return next((at_s for at_s in known_s if _sent(view, at_s, at_s + 0.95 * view.base_rtt_s)), known_s[0])


def _sent(view: View, start_s: float, end_s: float) -> float:
    """Return what was sent in [start_s, end_s), in full packets."""
    a, b = numpy.searchsorted(view.sent_s, (start_s, end_s))
    return float(view.packets.bytes[a:b].sum()) / view.flow.full_bytes


@ROWS.add("after_outage", "full packets sent in the round trip after the path healed", "packets", 1)
def after_outage(view: View) -> Samples:
    """Return what was sent in the round trip after the sender can know that the path healed, in full packets."""
    healed_s = path_healed_s(view, view.event)
    return shown([(_sent(view, healed_s, healed_s + 0.95 * view.base_rtt_s), healed_s)], "nothing was sent")


def _arrived(view: View, start_s: float, end_s: float) -> Integers:
    """Return the bytes of each frame that was sent in [start_s, end_s) and arrived: those to an old address do not."""
    return view.packets.bytes[(view.sent_s >= start_s) & (view.sent_s < end_s) & ~numpy.isnan(view.out_s)]


def _validated_s(view: View) -> float:
    """Return a time up to which no address of a client that moved can be validated: a round trip, but for a little."""
    return view.event.begin_s + 0.95 * view.base_rtt_s


@ROWS.add(
    "after_move", "sent in the first round trip to another address, relative to the first of all, or to ten packets",
    "", 2,
)  # fmt: skip
def _after_move(view: View) -> Samples:
    """Return what was sent to the new address in 0.95 of a round trip, from when it may be validated.

    The round trip begins with the first packet that is almost full, as senders may begin with smaller ones again. It is
    relative to what was sent in the first round trip of all, which is the sender's own initial window, or part of it
    where the handshake or the application took time: RFC 9002, 7.2, permits ten packets.
    """
    large = (view.sent_s >= _validated_s(view)) & (view.packets.bytes >= ALMOST_FULL * view.flow.full_bytes)
    sent_s = view.sent_s[large & ~numpy.isnan(view.out_s)]
    if not len(sent_s):
        raise Invisible("nothing was sent to the new address")
    at_s = float(sent_s[0])
    amount = float(_arrived(view, at_s, at_s + 0.95 * view.base_rtt_s).sum()) / view.flow.full_bytes
    initial = max(float(features.initial_window(view.flow).values[0]), INITIAL_PACKETS)
    return shown([(amount / initial, at_s)], "nothing was sent to the new address")


@ROWS.add(
    "before_validation", "sent to another address before it can be validated, relative to what came from it", "", 1
)
def _before_validation(view: View) -> Samples:
    """Return the ratio of UDP payload from when the sender must know of a move until an address may be validated.

    What came is counted from the move on, which is earlier.
    """
    known_s, end_s = view.event.begin_s + view.flow.back_s, _validated_s(view)
    client_s = view.packets.client_ns / 1e9
    came = view.packets.client_bytes[(client_s >= view.event.begin_s) & (client_s < end_s)]
    if not len(_arrived(view, known_s, view.over_s)):
        raise Invisible("nothing was sent to the new address")
    ratios = [(payload_bytes(_arrived(view, known_s, end_s)) / payload_bytes(came), known_s)] if len(came) else []
    return shown(ratios, "nothing came from the client in the round trip after its move")


def payload_bytes(frames: Integers) -> float:
    """Return the bytes of the UDP payload of frames of these sizes."""
    return float((frames - _HEADER_BYTES).sum())


@ROWS.add("after_outage_share", "window soon after an outage, relative to that before it", "", 2)
def _after_outage_share(view: View) -> Samples:
    """Return the ratio of the largest window in round trips two to four after an outage to that before it.

    What the outage lost counts as in flight until three later packets arrive, and the sender may know sooner. So of
    what is in flight after the outage, only packets sent since then count.
    """
    event = view.event
    flow, healed_s, rtt_s = view.flow, path_healed_s(view, event), _rtt_s(view, event.begin_s)
    require_no_other_loss(view, rtt_s, healed_s + 4 * rtt_s, reductions=1)
    before = flow.window(event.begin_s - rtt_s, event.begin_s)
    if not numpy.isfinite(before) or before < _LEAST_WINDOW:
        raise Invisible("the window before the outage was too small")
    since = flow.sent_s >= event.end_s
    sent_s = flow.sent_s[since]
    flight = in_flight(sent_s, flow.bytes[since], flow.known_s[since]) / flow.full_bytes
    a, b = numpy.searchsorted(sent_s, (healed_s + view.base_rtt_s, healed_s + 4 * view.base_rtt_s))
    after = [(float(flight[a:b].max()) / before, healed_s)] if b > a else []
    return shown(after, "nothing was sent after the outage")


@ROWS.add("after_held_share", "window soon after packets were held, relative to that before", "", 2)
def _after_held_share(view: View) -> Samples:
    """Return the ratio of the largest window in round trips two to four after packets were held to that before.

    Packets that are held have a round trip that is longer by that time. So the last one that left before tells how long
    round trips are.
    """
    event = view.event
    flow, healed_s = view.flow, path_healed_s(view, event)
    travels_s = (flow.out_s - flow.sent_s)[flow.out_s < event.begin_s]
    rtt_s = float(travels_s[-1]) + flow.back_s if len(travels_s) else view.base_rtt_s
    require_no_other_loss(view, rtt_s, healed_s + 4 * rtt_s)
    before = flow.window(event.begin_s - rtt_s, event.begin_s)
    after = flow.window(healed_s + rtt_s, healed_s + 4 * rtt_s)
    if not numpy.isfinite(before) or before < _LEAST_WINDOW:
        raise Invisible("the window before packets were held was too small")
    return shown([(after / before, healed_s)], "nothing was sent after packets were held")


def _probes(view: View) -> tuple[Floats, Floats]:
    """Return (times, packets in each) of an outage's probes: what is sent together when acknowledgements have ended.

    A client probes as well, and what answers it is no probe. So small packets count only if no others are sent.
    """
    event = view.event
    silent_s = event.begin_s + _LAST_RTTS * _rtt_s(view, event.begin_s)
    a, b = numpy.searchsorted(view.sent_s, (silent_s, event.end_s))
    times, sizes = view.sent_s[a:b], view.packets.bytes[a:b]
    if not len(times):
        raise Invisible("nothing was sent in the outage")
    large = sizes > view.packets.bytes.max() / 2
    if large.any():
        times = times[large]
    begins = numpy.flatnonzero(numpy.diff(times, prepend=-1.0) > _TOGETHER_S)
    return times[begins], numpy.diff(numpy.append(begins, len(times))).astype(float)


@ROWS.add("probe_ratio", "gap between two probes, relative to the one before", "", 2)
def _probe_ratio(view: View) -> Samples:
    """Return the ratio of each gap between probes to the one before."""
    times, _ = _probes(view)
    gaps = numpy.diff(times)
    pairs = [(float(b / a), float(at)) for (a, b), at in zip(itertools.pairwise(gaps), times[2:], strict=True)]
    return shown(pairs, f"a ratio of two gaps needs three probes, not {len(times)}")


@ROWS.add("last_probe_ratio", "last gap between two probes, relative to the one before", "", 2)
def _last_probe_ratio(view: View) -> Samples:
    """Return the ratio of the silence in which an outage ends to the gap between its last two probes.

    The sender cannot know that the outage is over, so the next probe ends that silence. These periods are the longest,
    which a cap limits.
    """
    times, _ = _probes(view)
    large = view.packets.bytes > view.packets.bytes.max() / 2
    after = view.sent_s[(view.sent_s >= view.event.end_s) & large]
    if len(times) < 2 or not len(after):
        raise Invisible(f"a ratio of two gaps needs two probes and a packet after the outage, not {len(times)}")
    gap_s, silence_s = numpy.diff([*times[-2:], after[0]])
    return one(float(silence_s / gap_s), float(times[-1]))


@ROWS.add("probe_packets", "packets in a probe", "packets", 0, take="most")
def _probe_packets(view: View) -> Samples:
    """Return the number of packets of each probe."""
    times, packets = _probes(view)
    return shown([(float(n), float(at)) for n, at in zip(packets, times, strict=True)], "no probe was sent")


@ROWS.add("late_in_outage", "packets sent in the second half of the outage", "packets", 0)
def _late_in_outage(view: View) -> Samples:
    """Return what was sent in the second half of an outage, in full packets."""
    event = view.event
    middle_s = (event.begin_s + event.end_s) / 2
    return shown([(_sent(view, middle_s, event.end_s), middle_s)], "nothing was sent")


@ROWS.add("recovered", "share of the link's rate from two seconds after the event on", "", 2)
def _recovered(view: View) -> Samples:
    """Return the share of the link's rate that arrived in up to three seconds, from two seconds after the event on."""
    event = view.event
    start_s = event.end_s + 2
    end_s = view.over_s - 0.2
    if end_s - start_s < 0.5:
        raise Invisible("the transfer was over too soon after the event")
    end_s = min(end_s, start_s + 3)
    inside = (view.out_s >= start_s) & (view.out_s < end_s)
    return shown(
        [(float(view.packets.bytes[inside].sum() / view.bytes_per_s / (end_s - start_s)), start_s)], "nothing arrived"
    )


@ROWS.add("during", "share of the link's rate while the event lasts", "", 2)
def _during(view: View) -> Samples:
    """Return the share of the link's rate that arrived while the event lasted, without its first second."""
    event = view.event
    start_s, end_s = event.begin_s + 1, min(event.end_s, view.over_s - 0.2)
    if end_s - start_s < 0.5:
        raise Invisible("the event was over too soon")
    inside = (view.out_s >= start_s) & (view.out_s < end_s)
    return shown(
        [(float(view.packets.bytes[inside].sum() / view.bytes_per_s / (end_s - start_s)), start_s)], "nothing arrived"
    )


def require_ect(view: View) -> None:
    """Raise Absent if no packet is sent with ECT."""
    if not (view.packets.ecn_sent != NOT_ECT).any():
        raise Absent("it sends no packet with ECT, so none is marked")


@ROWS.add("rate_when_marked", "share of the link's rate while packets are marked", "", 2, optional=True)
def _rate_when_marked(view: View) -> Samples:
    """Return the result of _during(). Raises Absent if no packet can be marked."""
    require_ect(view)
    return _during(view)


@ROWS.add("kept_of_probe", "share of the window that the loss of a probe for larger packets left", "", 2, optional=True)
def _kept_of_probe(view: View) -> Samples:
    """Return the share of the window that was left by each lost packet larger than all that arrived.

    No other packet may be lost around it.
    """
    flow = view.flow
    largest = view.packets.bytes[~numpy.isnan(view.out_s)].max()
    probes = numpy.flatnonzero(flow.lost & (flow.bytes > largest))
    if not len(probes):
        raise Absent("it sends no packet larger than what the path carries")
    goes_on = flow.known_s[probes] + _QUIET_AFTER * flow.rtt_s[probes] < flow.sent_s[-1]
    pairs = _kept_of_isolated(flow, probes[goes_on], flow.known_s[flow.lost])
    return shown(pairs, "no probe was lost by itself in a window of 12 packets or more, before the end")


def _kept_of_isolated(flow: Flow, numbers: Integers, events_s: Floats) -> list[tuple[float, float]]:
    """Return (share of the window that was left, time) of each packet with no other event around what became of it.

    `numbers`: the packets; `events_s`: when the sender can know of each event, theirs among them.
    """
    pairs = []
    for at_s, rtt_s in zip(flow.known_s[numbers], flow.rtt_s[numbers], strict=True):
        around = (events_s > at_s - _QUIET_BEFORE * rtt_s) & (events_s < at_s + _QUIET_AFTER * rtt_s)
        before, after = flow.window(at_s - rtt_s, at_s), flow.window_after(at_s + rtt_s, at_s + 2 * rtt_s)
        if around.sum() <= 1 and before >= _LEAST_WINDOW and numpy.isfinite(after):
            pairs.append((float(after / before), float(at_s)))
    return pairs


@ROWS.add("kept_of_mark", "share of the window that an isolated mark left", "", 2, independent=True, optional=True)
def _kept_of_mark(view: View) -> Samples:
    """Return the share of the window that was left by each mark that had no loss or other mark around it."""
    require_ect(view)
    flow = view.flow
    marked = numpy.flatnonzero(view.packets.ecn_out[: len(flow.sent_s)] == CE)
    events_s = numpy.concatenate([flow.known_s[marked], flow.known_s[flow.lost]])
    pairs = _kept_of_isolated(flow, marked, events_s)
    return shown(pairs, "no mark was isolated in a window of 12 packets or more")


@ROWS.add("window_when_marked", "flight while every packet is marked", "packets", 1, optional=True)
def _window_when_marked(view: View) -> Samples:
    """Return the median flight in full packets, from two seconds after marking of all packets began."""
    require_ect(view)
    event = view.event
    flow = view.flow
    inside = flow.sent_s >= event.begin_s + 2
    if inside.sum() < 5:
        raise Invisible("the transfer was over within two seconds after marking began")
    return shown([(float(numpy.median(flow.flight[inside]) / flow.full_bytes), event.begin_s + 2)], "nothing was sent")


@ROWS.add("ect_late", "share of packets with ECT in the last second", "", 2, optional=True)
def _ect_late(view: View) -> Samples:
    """Return the share of packets with ECT in the last second of the transfer."""
    require_ect(view)
    late = view.sent_s >= float(view.sent_s[-1]) - 1
    share = float((view.packets.ecn_sent[late] != NOT_ECT).mean())
    return shown([(share, float(view.sent_s[-1]) - 1)], "nothing was sent")


@ROWS.add("growth_most", "largest growth of the window in a round trip, after a loss", "", 2, take="most")
def _growth_most(view: View) -> Samples:
    """Return the factors by which the window grew from each round trip to the next, after the last loss was repaired.

    Windows that are small, or larger than the BDP, are left out.
    """
    flow = view.flow
    lost = numpy.flatnonzero(flow.lost)
    if not len(lost):
        raise Invisible("nothing was lost")
    at = float(flow.known_s[lost[-1]]) + 1.5 * view.base_rtt_s
    windows: list[tuple[float, float]] = []
    while at + view.base_rtt_s < float(flow.sent_s[-1]) - view.base_rtt_s:
        windows.append((flow.window(at, at + view.base_rtt_s), at))
        at += view.base_rtt_s
    pairs = [
        (float(b[0] / a[0]), b[1])
        for a, b in itertools.pairwise(windows)
        if a[0] >= _LEAST_WINDOW and b[0] * flow.full_bytes < flow.bdp_bytes
    ]
    return shown(pairs, "the window never grew between 12 packets and what the path holds")
