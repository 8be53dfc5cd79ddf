"""Observe cases of draft-ietf-ccwg-bbr in which the network changes, or the application has little to send.

r is what was sent in a base round trip, divided by what the link carries in that time. F is the flight, in BDP. Both
refer to the path before any change.
"""

import itertools

import numpy

from conformance.model.clauses.observables_bbr import count_rounds, rates
from conformance.model.clauses.observables_requests import body_begins_s, bulk_begins_s
from conformance.model.clauses.seen import Invisible, Rows, View, shown
from conformance.model.diagnosis import features
from conformance.model.diagnosis.flow import Flow
from conformance.model.diagnosis.samples import Samples, one

ROWS = Rows()

#: round trips of a large body in which start-up would show
_SOON = 10
#: r below which Drain has begun, and r above which it is over; relative to the link's old rate
_DRAINS, _DRAINED = 0.8, 0.7
#: the longest wait from one probe to the next, in seconds
_WAIT_S = 3.0
#: r that REFILL and UP exceed, and DOWN does not; and the round trips over which it is read, so that a packet more is
#: not much
_REFILL, _REFILL_RTTS = 0.95, 3
#: round trips that any wait exceeds, whether 62 rounds or two seconds end it (5.3.3.5)
_WAITS_RTTS = 4
#: r that a probe for bandwidth exceeds
_PROBES = 1.05
#: share of the rate that counts as all of it
_FULL = 0.9
#: (from, to) in seconds after a change: where its effect shows
_AFTER_S = (2.0, 4.0)
#: (from, to) in seconds after a change: where two cycles of probing are not over yet, and where they surely are
_SOONER_S, _LATER_S = (3.0, 7.0), (14.0, 18.0)
#: seconds after a change within which a probe for bandwidth comes; and seconds over which a rate is read
_MOST_S, _HALF_S = 5.0, 0.5
#: (from, to) in round trips after packets came late: where the rate is back
_BACK = (3, 7)
#: (from, to) in round trips after losses began: where the rate shows that they left, and before them
_LEFT, _BEFORE = (3.8, 7.8), (-1.7, 0.8)
#: share of the link's rate that is used before losses, if what they leave is to tell
_USED = 0.9
#: share of the link's rate that some round trip in so many seconds before a change uses, if what follows is to tell
_USED_BEFORE, _BEFORE_S = 0.8, 1.0
#: packets of an initial window that do not fill a path three rounds before its rate first grows; usual are ten
_MOST_INITIAL = 13
#: seconds between two paced requests that only a client that has to wait leaves
_WAITED_S = 1.0
#: seconds within which a probe that goes on, or is repeated, shows
_PROBE_S = 1.0
#: seconds after which the sender's estimate shows; and bytes of a body that fills a round trip
_LONG_S, _BODY_BYTES = 3.0, 200_000


def _window(flow: Flow, start_s: float, end_s: float) -> float:
    """Return r from `start_s` to `end_s`. Raises Invisible if the transfer ends before that."""
    if end_s > float(flow.sent_s[-1]):
        raise Invisible("the transfer was over too soon after the change")
    a, b = numpy.searchsorted(flow.sent_s, (start_s, end_s))
    return float(flow.bytes[a:b].sum() / flow.bytes_per_s / (end_s - start_s))


def _most(flow: Flow, start_s: float, end_s: float, what: str) -> Samples:
    """Return the largest r from `start_s` to `end_s`. Raises Invisible if `what` was over within a round trip."""
    at, rate = rates(flow, start_s, end_s)
    if not len(rate):
        raise Invisible(f"{what} was over within a round trip")
    return one(float(rate.max()), float(at[rate.argmax()]))


@ROWS.add(
    "bbr_bulk_rate", "most sent in one of the first ten round trips of a large body, relative to the link's rate", "", 2
)
def _bulk_rate(view: View) -> Samples:
    """Return the largest r in the first ten round trips of the last body, which is a large one.

    Raises Invisible if the client had to wait with its requests for bodies: the application was not the limit then.
    """
    flow, begin_s = view.flow, bulk_begins_s(view)
    requested_s = [at_s for at_s, _ in view.requests]
    if any(after_s - before_s > _WAITED_S for before_s, after_s in itertools.pairwise(requested_s)):
        raise Invisible("the sender was slower than its application, which had to wait")
    return _most(flow, begin_s, begin_s + (_SOON + 1) * flow.base_rtt_s, "the last body")


@ROWS.add("bbr_drain_rounds", "rounds that Drain took on a path that had become slower", "rounds", 0)
def _drain_rounds(view: View) -> Samples:
    """Return how many packet-timed rounds Drain took on a path that had become slower.

    If the sender fell silent in Drain, each round trip until the transfer was over counts as a round.
    """
    flow, event = view.flow, view.event
    at, rate = rates(flow, event.begin_s - 2 * flow.base_rtt_s, float(flow.sent_s[-1]))
    low = numpy.flatnonzero(rate < _DRAINS)
    if not len(low):
        raise Invisible("it never sent slower than the link after start-up, so nothing shows when start-up ended")
    high = numpy.flatnonzero((rate > _DRAINED) & (numpy.arange(len(rate)) > low[0]))
    begin_s = float(at[low[0]])
    if len(high):
        return one(count_rounds(flow, begin_s, float(at[high[0]])), begin_s)
    last_s = float(flow.sent_s[-1])
    silent = max(0.0, view.over_s - float(flow.known_s[-1])) // float(flow.rtt_s[-1])
    return one(count_rounds(flow, begin_s, last_s) + silent, begin_s)


@ROWS.add("bbr_down_s", "seconds from the end of a probe, on a path that does not drain, to the next", "s", 1)
def _down_s(view: View) -> Samples:
    """Return the seconds from the end of probing, on a path that does not drain, until as much is sent as before.

    If the path drains nevertheless, or the transfer ends, return the seconds until then.
    """
    flow, begin_s = view.flow, view.event.begin_s
    last_s = float(flow.sent_s[-1])
    at = numpy.arange(begin_s + flow.base_rtt_s, last_s - _REFILL_RTTS * flow.base_rtt_s, flow.base_rtt_s / 4)
    refills = (time for time in at if _window(flow, time, time + _REFILL_RTTS * flow.base_rtt_s) > _REFILL)
    drained = flow.sent_s[(flow.sent_s > begin_s + flow.base_rtt_s) & (flow.flight <= flow.bdp_bytes)]
    drained_s = float(drained[0]) if len(drained) else last_s
    refills_s = next(refills, last_s)
    if refills_s - begin_s < _WAITS_RTTS * flow.base_rtt_s:
        raise Invisible("it sent less for a round trip or two only, whatever the path did: it waits for nothing")
    end_s = min(refills_s, drained_s)
    if end_s == drained_s and end_s - begin_s < _WAIT_S:
        raise Invisible("the path drained, or the transfer was over, within three seconds")
    return one(end_s - begin_s, begin_s)


@ROWS.add("most_rate", "most sent in a round trip of the first two seconds, relative to the link's rate", "", 2)
def _most_rate(view: View) -> Samples:
    """Return the largest r in the first two seconds."""
    return _most(view.flow, view.flow.request_s, view.flow.request_s + _AFTER_S[0], "the transfer")


@ROWS.add("early_throughput", "share of the link's rate used from the tenth round trip to two seconds", "", 3)
def _early(view: View) -> Samples:
    """Return the share of the link's rate that arrived in the first two seconds, without the first ten round trips."""
    flow = view.flow
    start_s, end_s = flow.request_s + _SOON * flow.base_rtt_s, flow.request_s + _AFTER_S[0]
    inside = ~flow.lost & (flow.out_s >= start_s) & (flow.out_s < end_s)
    if float(flow.sent_s[-1]) < end_s:
        raise Invisible("the transfer was over within two seconds")
    return one(float(flow.bytes[inside].sum() / flow.bytes_per_s / (end_s - start_s)), start_s)


def _changed(view: View) -> float:
    """Return the ratio of the link's rate after the change to that before."""
    fields = dict(view.entry.set)
    if "rate_mbps" not in fields:
        raise Invisible("the rate does not change")
    return float(fields["rate_mbps"]) * 1e6 / 8 / view.bytes_per_s


@ROWS.add("growing_throughput", "share of the link's first rate used while the rate grows, until two seconds", "", 3)
def _growing(view: View) -> Samples:
    """Return what _early() does. Raises Invisible if a large initial window filled the path long before it grew."""
    if float(features.initial_window(view.flow).values[0]) > _MOST_INITIAL:
        raise Invisible("its initial window filled the path three rounds before the rate first grew")
    return _early(view)


def _used_before(view: View) -> float:
    """Return when an event begins. Raises Invisible if the sender did not use the link in the second before it."""
    flow, begin_s = view.flow, view.event.begin_s
    _, rate = rates(flow, max(flow.request_s, begin_s - _BEFORE_S), begin_s)
    if not len(rate) or rate.max() < _USED_BEFORE:
        raise Invisible("it did not use the link before the path changed, so nothing shows how it follows")
    return begin_s


@ROWS.add("full_after_s", "seconds until a higher rate is used", "s", 1)
def _full_after_s(view: View) -> Samples:
    """Return the seconds from a rise of the rate until a round trip uses nine tenths of it, or the transfer ends."""
    flow, begin_s = view.flow, _used_before(view)
    at, rate = rates(flow, begin_s, float(flow.sent_s[-1]))
    full = numpy.flatnonzero(rate >= _FULL * _changed(view))
    end_s = float(at[full[0]]) if len(full) else view.over_s
    return one(end_s - begin_s, end_s)


@ROWS.add(
    "rate_after", "sent from two to four seconds after the rate changed, relative to what the link carries", "", 2
)
def _rate_after(view: View) -> Samples:
    """Return what was sent from two to four seconds after the rate changed, divided by what the link carried."""
    begin_s = _used_before(view)
    return one(_window(view.flow, begin_s + _AFTER_S[0], begin_s + _AFTER_S[1]) / _changed(view), begin_s + _AFTER_S[0])


@ROWS.add("lost_after", "share of packets lost in four seconds after the rate changed", "", 3)
def _lost_after(view: View) -> Samples:
    """Return the share of the packets sent in the first four seconds after the rate changed that was lost."""
    flow, begin_s = view.flow, _used_before(view)
    a, b = numpy.searchsorted(flow.sent_s, (begin_s, begin_s + _AFTER_S[1]))
    if b == len(flow.sent_s) or a == b:
        raise Invisible("the transfer was over too soon after the change")
    return one(float(flow.lost[a:b].mean()), begin_s)


def _flight_from(view: View, start_s: float, end_s: float) -> Samples:
    """Return the median flight between two times after the rate changed, in BDP of the path as it is then."""
    flow, begin_s = view.flow, _used_before(view)
    a, b = numpy.searchsorted(flow.sent_s, (begin_s + start_s, begin_s + end_s))
    if b == len(flow.sent_s) or a == b:
        raise Invisible("the transfer was over too soon after the change")
    return one(float(numpy.median(flow.flight[a:b]) / flow.bdp_bytes / _changed(view)), begin_s + start_s)


@ROWS.add("flight_sooner", "median flight from three to seven seconds after the rate changed", "BDP", 2)
def _flight_sooner(view: View) -> Samples:
    """Return the flight while the bandwidth before the change is still remembered."""
    return _flight_from(view, *_SOONER_S)


@ROWS.add("flight_later", "median flight from 14 to 18 seconds after the rate changed", "BDP", 2)
def _flight_later(view: View) -> Samples:
    """Return the flight when the bandwidth before the change is forgotten."""
    return _flight_from(view, *_LATER_S)


def _most_flight(view: View, start_s: float, end_s: float) -> Samples:
    """Return the largest flight between two times after an event, in BDP of the path before it."""
    flow, begin_s = view.flow, _used_before(view)
    a, b = numpy.searchsorted(flow.sent_s, (begin_s + start_s, begin_s + end_s))
    if b == len(flow.sent_s) or a == b:
        raise Invisible("the transfer was over too soon after the change")
    at = a + int(flow.flight[a:b].argmax())
    return one(float(flow.flight[at] / flow.bdp_bytes), float(flow.sent_s[at]))


@ROWS.add("flight_most", "most in flight in five seconds after a change, but for four round trips", "BDP", 2)
def _flight_most(view: View) -> Samples:
    """Return the largest flight from four round trips to five seconds after an event."""
    return _most_flight(view, 4 * view.base_rtt_s, _MOST_S)


@ROWS.add("flight_soon", "most in flight from three to seven round trips after a change", "BDP", 2)
def _flight_soon(view: View) -> Samples:
    """Return the largest flight from three to seven round trips after an event."""
    return _most_flight(view, _BACK[0] * view.base_rtt_s, _BACK[1] * view.base_rtt_s)


@ROWS.add("full_again_s", "seconds until nine tenths of the rate are used again", "s", 1)
def _full_again_s(view: View) -> Samples:
    """Return the seconds from an event until half a second begins in which nine tenths of the rate arrive.

    The first second does not count: what was in flight still arrives.
    """
    begin_s, over_s = _used_before(view), view.over_s
    arrived = ~numpy.isnan(view.out_s)
    times = numpy.sort(view.out_s[arrived])
    total = numpy.concatenate(([0], numpy.cumsum(view.packets.bytes[arrived][numpy.argsort(view.out_s[arrived])])))
    at = numpy.arange(begin_s + 1, over_s - _HALF_S, _HALF_S / 10)
    came = total[numpy.searchsorted(times, at + _HALF_S)] - total[numpy.searchsorted(times, at)]
    full = numpy.flatnonzero(came >= _FULL * view.bytes_per_s * _HALF_S)
    end_s = float(at[full[0]]) if len(full) else over_s
    return one(end_s - begin_s, end_s)


@ROWS.add(
    "rate_back", "sent from three to seven round trips after packets were late, relative to the link's rate", "", 2
)
def _rate_back(view: View) -> Samples:
    """Return r from three to seven round trips after packets were late.

    The round trips count from the end of the schedule's entry, or from its begin if it has no end.
    """
    rtt_s, event = view.base_rtt_s, view.event
    late_s = event.begin_s if view.entry.for_s is None else event.end_s
    return one(_window(view.flow, late_s + _BACK[0] * rtt_s, late_s + _BACK[1] * rtt_s), late_s)


@ROWS.add("rate_left", "sent in four round trips after a burst of losses, relative to what was sent before", "", 2)
def _rate_left(view: View) -> Samples:
    """Return the rate from two to six round trips after losses ended, divided by that before them.

    They last for 1.8 round trips, and hit packets that were sent half of a round trip before.
    """
    rtt_s, begin_s = view.base_rtt_s, view.event.begin_s
    before, left = (_window(view.flow, begin_s + a * rtt_s, begin_s + b * rtt_s) for a, b in (_BEFORE, _LEFT))
    if before < _USED:
        raise Invisible("it did not use nine tenths of the link before the losses")
    return one(left / before, begin_s)


def _require_probing(view: View) -> float:
    """Return when the sender can know what happened to its probe. Raises Invisible if it no longer probes then."""
    # An impaired packet has half of the path still before it.
    known_s = view.event.begin_s + view.base_rtt_s / 2
    if _window(view.flow, known_s - view.base_rtt_s / 2, known_s) <= _PROBES:
        raise Invisible("it no longer probed when it could know what had happened")
    return known_s


@ROWS.add("bbr_probe_flight", "most in flight in a second, soon after something happened to a probe", "BDP", 2)
def _probe_flight(view: View) -> Samples:
    """Return the largest F in the second that begins two round trips after the sender could know about its probe.

    By then, what was in flight is acknowledged.
    """
    flow, begin_s = view.flow, _require_probing(view) + 2 * view.base_rtt_s
    a, b = numpy.searchsorted(flow.sent_s, (begin_s, begin_s + _PROBE_S))
    if b == len(flow.sent_s):
        raise Invisible("the transfer was over too soon after the change")
    if a == b:
        return one(0.0, begin_s)  # it fell silent
    at = a + int(flow.flight[a:b].argmax())
    return one(float(flow.flight[at] / flow.bdp_bytes), float(flow.sent_s[at]))


@ROWS.add(
    "bbr_probe_ends_rtts", "round trips for which it went on probing once it could know of a loss", "round trips", 1
)
def _probe_ends_rtts(view: View) -> Samples:
    """Return the round trips for which the sender went on probing after it could know of a loss."""
    flow, known_s = view.flow, _require_probing(view)
    at, rate = rates(flow, known_s, float(flow.sent_s[-1]))
    ends = numpy.flatnonzero(rate <= 1)
    if not len(ends):
        raise Invisible("the transfer was over while it probed")
    return one((float(at[ends[0]]) - known_s) / flow.base_rtt_s, known_s)


@ROWS.add("rate_of_bodies", "sent in the first round trip of each body, relative to the link's rate", "", 2)
def _rate_of_bodies(view: View) -> Samples:
    """Return r in the first round trip of each large body that is asked for after three seconds."""
    flow = view.flow
    pairs: list[tuple[float | None, float]] = []
    for requested_s, size in view.requests:
        begins_s = body_begins_s(view, requested_s)
        if size >= _BODY_BYTES and requested_s >= _LONG_S and begins_s is not None:
            pairs.append((_window(flow, begins_s, begins_s + flow.base_rtt_s), begins_s))
    return shown(pairs, "no large body was asked for after three seconds")
