"""Observe silence: what a sender sends while nothing is outstanding, and how long it sends nothing although it could.

A packet is outstanding until its sender knows what became of it. Here that is the latest time at which it can know:
when the acknowledgement is as late as RFC 9000, 18.2 permits and, of a lost packet, when the timer of RFC 9002, 6.1.2
has run out, too. A packet that no packet of the client answers is a bare acknowledgement if it is small, and otherwise
outstanding until a later one is acknowledged. So what counts here as sent, or as silence, while nothing was outstanding
was so for the sender.
"""

import itertools
from collections.abc import Iterator

import numpy
import numpy.typing

from conformance.model.clauses.seen import Invisible, Rows, View
from conformance.model.diagnosis.flow import Floats
from conformance.model.diagnosis.samples import Samples, one

ROWS = Rows()

#: max_ack_delay, unless the peer gives another (RFC 9000, 18.2), and what a client's timer may be late
_ACK_DELAY_S = 0.025 + 0.002
#: kTimeThreshold (RFC 9002, 6.1.2)
_TIME_THRESHOLD = 9 / 8
#: more bytes than arrive in any handshake here, as a certificate is short
_RESPONSE_BYTES = 6000
#: the most bytes of a packet that has only an acknowledgement
ACKNOWLEDGEMENT_BYTES = 128
#: seconds in which a server that acknowledges at once does so
_REPLY_S = 0.002
#: a silence that only a probe ends, in round trips: other losses are known after 9/8, and what a client delays
_PROBED_RTTS = 2
#: seconds by which a packet leaves after the timer that sends it
_LATE_S = 0.001


def _arrivals(view: View) -> numpy.typing.NDArray[numpy.intp]:
    """Return the numbers of the packets that arrived, in the order in which they did."""
    arrived = numpy.flatnonzero(~numpy.isnan(view.out_s))
    return arrived[numpy.argsort(view.out_s[arrived], kind="stable")]


def _replies(view: View) -> tuple[Floats, Floats]:
    """Return when an acknowledgement of each packet can be back, and when the client's first packet from then on came.

    Both are infinite where there is none.
    """
    client_s = numpy.append(view.packets.client_ns / 1e9, numpy.inf)
    back_s = numpy.where(numpy.isnan(view.out_s), numpy.inf, view.out_s + view.base_rtt_s / 2)
    return back_s, client_s[numpy.searchsorted(client_s, back_s - _LATE_S).clip(max=len(client_s) - 1)]


def _answered(view: View) -> numpy.typing.NDArray[numpy.bool_]:
    """Return whether each packet came to the client, and a packet of the client followed as an acknowledgement does."""
    back_s, first_s = _replies(view)
    answered: numpy.typing.NDArray[numpy.bool_] = numpy.isfinite(first_s) & (first_s <= back_s + _ACK_DELAY_S)
    return answered


def _bare(view: View) -> numpy.typing.NDArray[numpy.bool_]:
    """Return whether each packet is a bare acknowledgement: it arrived, is small, and the client answered nothing."""
    return ~numpy.isnan(view.out_s) & ~_answered(view) & (view.packets.bytes <= ACKNOWLEDGEMENT_BYTES)


def is_acknowledgement(view: View) -> numpy.typing.NDArray[numpy.bool_]:
    """Return whether each packet is small, and no packet of the client says that it asked for an acknowledgement.

    What the client sends once a later, larger packet can have come to it may be about that one.
    """
    small = view.packets.bytes <= ACKNOWLEDGEMENT_BYTES
    back_s, first_s = _replies(view)
    larger_s = numpy.minimum.accumulate(numpy.where(small, numpy.inf, back_s)[::-1])[::-1]
    bare: numpy.typing.NDArray[numpy.bool_] = small & ~(_answered(view) & (first_s <= larger_s - _LATE_S))
    return bare


def _answers(view: View) -> numpy.typing.NDArray[numpy.bool_]:
    """Return whether each packet acknowledges a probe of the client: it is small, and leaves as that comes."""
    client_s = numpy.concatenate(([-numpy.inf], view.packets.client_ns / 1e9))
    last_s = client_s[numpy.searchsorted(client_s, view.sent_s, side="right") - 1]
    answers: numpy.typing.NDArray[numpy.bool_] = view.sent_s <= last_s + _REPLY_S
    return answers & (view.packets.bytes <= ACKNOWLEDGEMENT_BYTES)


def _acknowledged_s(view: View) -> Floats:
    """Return when the client's first packet that can acknowledge each packet comes; infinite if none does."""
    return numpy.where(_answered(view), _replies(view)[1], numpy.inf)


def _surely_acknowledged_s(view: View) -> Floats:
    """Return when an acknowledgement of each packet comes at the latest; infinite if none does."""
    return numpy.where(_answered(view), view.out_s + view.base_rtt_s / 2 + _ACK_DELAY_S, numpy.inf)


def _settled_s(view: View, acked_s: Floats) -> Floats:
    """Return the time at which, after each packet, nothing is outstanding any more; infinite if it never is.

    `acked_s`: when each packet is acknowledged, infinite if it is not.
    """
    one_way_s = view.base_rtt_s / 2
    answered, lost = numpy.isfinite(acked_s), numpy.isnan(view.out_s)
    # A loss is known once a later packet is acknowledged, and the timer has run out.
    first_later_s = numpy.minimum.accumulate(acked_s[::-1])[::-1]
    travel_s = numpy.fmax.accumulate(numpy.where(lost, 0.0, view.out_s - view.sent_s))
    timer_s = view.sent_s + _TIME_THRESHOLD * (travel_s + one_way_s + _ACK_DELAY_S)
    settled_s = numpy.where(answered, acked_s, numpy.maximum(first_later_s, timer_s))
    # A bare acknowledgement is never outstanding, and tells nothing of others.
    settled_s[_bare(view)] = 0.0
    return numpy.maximum.accumulate(settled_s)


def _rests(view: View) -> Iterator[tuple[float, float]]:
    """Yield the (begin, end) of each time between two bodies, from when all of a body arrived to the next request.

    Only those count before which a probe ended a silence: only then may a timer go on by mistake.
    """
    if len(view.requests) < 2:
        raise Invisible("the client asks for one body, so the sender always has data")
    order = _arrivals(view)
    total = numpy.concatenate(([0], numpy.cumsum(view.packets.bytes[order])))
    for (begin_s, size), (end_s, _) in itertools.pairwise(view.requests):
        before = int(numpy.searchsorted(view.out_s[order], begin_s))
        whole = int(numpy.searchsorted(total, total[before] + size)) - 1
        if whole == len(order):
            continue
        over_s = float(view.out_s[order[whole]])
        if over_s < end_s and _is_probed(view, begin_s, over_s):
            yield over_s, end_s + view.base_rtt_s / 2 - _LATE_S


def _is_probed(view: View, begin_s: float, end_s: float) -> bool:
    """Return whether in this time a packet was lost, and the next came later than a loss is known without a probe."""
    asking = ~_bare(view)
    times, lost = view.sent_s[asking], numpy.isnan(view.out_s[asking])
    waits = lost[:-1] & (numpy.diff(times) > _PROBED_RTTS * view.base_rtt_s)
    return bool((waits & (times[:-1] > begin_s) & (times[1:] < end_s)).any())


@ROWS.add("probes_at_rest", "probes sent while nothing was outstanding", "probes", 0)
def _probes_at_rest(view: View) -> Samples:
    """Return how often something that the client acknowledged was sent while nothing was outstanding or asked for."""
    rests = list(_rests(view))
    if not rests:
        raise Invisible("no body that needed a probe was over before the next was asked for")
    at = numpy.flatnonzero(view.sent_s[1:] > _settled_s(view, _acknowledged_s(view))[:-1] + _LATE_S) + 1
    resting = numpy.zeros(len(at), bool)
    for begin_s, end_s in rests:
        resting |= (view.sent_s[at] > begin_s) & (view.sent_s[at] < end_s)
    # Only what elicits an acknowledgement is a probe: a bare acknowledgement needs no timer.
    probes = at[resting & _answered(view)[at]]
    return one(float(len(probes)), float(view.sent_s[probes[0]]) if len(probes) else rests[0][0])


@ROWS.add("response_rtts", "round trips until a response begins to arrive", "round trips", 0)
def _response_rtts(view: View) -> Samples:
    """Return the time from the server's first packet until more arrived than a handshake has, in round trips."""
    order = _arrivals(view)
    at = int(numpy.searchsorted(numpy.cumsum(view.packets.bytes[order]), _RESPONSE_BYTES))
    if at == len(order):
        raise Invisible("no response arrived")
    begins_s = float(view.out_s[order[at]])
    return one(begins_s / view.base_rtt_s, begins_s)


@ROWS.add("silent_share", "longest silence in an outage, relative to the outage", "", 2)
def _silent_share(view: View) -> Samples:
    """Return the longest time in an outage in which nothing but answers was sent, as a share of it."""
    begin_s, end_s = view.event
    if view.over_s < end_s:
        raise Invisible("the transfer was over before the outage was")
    sent_s = view.sent_s[~_answers(view)]
    inside = sent_s[(sent_s > begin_s) & (sent_s < end_s)]
    times = numpy.concatenate(([begin_s], inside, [end_s]))
    gaps = numpy.diff(times)
    at = int(gaps.argmax())
    return one(float(gaps[at] / (end_s - begin_s)), float(times[at]))


@ROWS.add("idle_rtts", "longest silence with data and nothing outstanding", "round trips", 1)
def _idle_rtts(view: View) -> Samples:
    """Return the longest time in which nothing was outstanding or sent although data were left, in round trips."""
    if len(view.requests) > 1:
        raise Invisible("the client asks for several bodies, so the sender may have no data")
    begins_s = view.flow.request_s
    sent = numpy.flatnonzero((view.sent_s >= begins_s) & ~_bare(view))
    if not len(sent):
        raise Invisible("nothing was sent")
    times = view.sent_s[sent]
    # What was settled before the next packet that elicits an acknowledgement: bare ones between them change nothing.
    idle_s = numpy.append(times[1:], view.over_s) - _settled_s(view, _surely_acknowledged_s(view))[sent]
    at = int(idle_s.argmax())
    return one(max(float(idle_s[at]), 0.0) / view.base_rtt_s, float(times[at]))
