"""Observe how a sender sends a large body after it was silent, or had little to send, on the same connection."""

import numpy

from conformance.model.clauses.observables_events import ALMOST_FULL, INITIAL_PACKETS
from conformance.model.clauses.seen import Invisible, Rows, View
from conformance.model.diagnosis.flow import Flow
from conformance.model.diagnosis.samples import Samples, burst_begins, one

ROWS = Rows()

#: seconds without sending after which a sender counts as silent
_SILENT_S = 0.5
#: the fewest bytes of a large body
_LARGE_BYTES = 1_000_000
#: round trips after a pause in which the window shows
_SOON = 3
#: round trips in which a window shows at the begin of a body, or at its end, of which a queue may take most
_LATE = 8
#: packets: a smaller window is used even if there is little to send
_LEAST_WINDOW = 40


def bulk_begins_s(view: View) -> float:
    """Return when the sender begins the last body. Raises Invisible if that is not large, or its time is not known."""
    if not view.requests:
        raise Invisible("it is not known when bodies were asked for")
    start_s, size = view.requests[-1]
    if size < _LARGE_BYTES:
        raise Invisible("the last body is too small")
    begins_s = body_begins_s(view, start_s)
    if begins_s is None:
        raise Invisible("the last body was never sent")
    return begins_s


def body_begins_s(view: View, requested_s: float, least_bytes: float = 0) -> float | None:
    """Return when the sender begins the body that was asked for at `requested_s`; None if it never does.

    `least_bytes`: smaller packets do not begin it.
    """
    # The client's request takes half of a round trip to arrive.
    arrives_s = requested_s + view.base_rtt_s / 2
    later = numpy.flatnonzero((view.sent_s >= arrives_s - 1e-3) & (view.packets.bytes >= least_bytes))
    return float(view.sent_s[later[0]]) if len(later) else None


def _paused(view: View) -> tuple[float, float]:
    """Return when the sender fell silent, and when it began again. Raises Invisible if it was never silent."""
    bulk_s = bulk_begins_s(view)
    before = view.sent_s[view.sent_s < bulk_s - 1e-9]
    if not len(before):
        raise Invisible("nothing was sent before the last body")
    large = before[view.packets.bytes[: len(before)] > view.flow.full_bytes / 2]
    if not len(large) or bulk_s - large[-1] < _SILENT_S:
        raise Invisible("the sender was not silent")
    return float(large[-1]), bulk_s


def _first_round_packets(flow: Flow, begins_s: float) -> float:
    """Return the full packets sent in 0.95 of a round trip, in which no acknowledgement releases any."""
    a, b = numpy.searchsorted(flow.sent_s, (begins_s - 1e-9, begins_s + 0.95 * flow.base_rtt_s))
    return float(flow.bytes[a:b].sum()) / flow.full_bytes


@ROWS.add("burst_after_pause", "longest burst after a silence", "packets", 1)
def _burst_after_pause(view: View) -> Samples:
    """Return the longest burst in the two round trips after a silence, in full packets."""
    _, bulk_s = _paused(view)
    flow = view.flow
    a, b = numpy.searchsorted(flow.sent_s, (bulk_s - 1e-9, bulk_s + 2 * flow.base_rtt_s))
    times, sizes = flow.sent_s[a:b], flow.bytes[a:b]
    if len(times) < 2:
        raise Invisible("nothing was sent after the silence")
    begins = burst_begins(flow, a, b)
    packets = numpy.add.reduceat(sizes, begins) / flow.full_bytes
    at = int(packets.argmax())
    return one(float(packets[at]), float(times[begins[at]]))


@ROWS.add("packets_after_pause", "full packets sent in the first round trip after a silence", "packets", 1)
def _packets_after_pause(view: View) -> Samples:
    """Return what was sent in the first round trip after a silence, in full packets.

    A sender that paces keeps its bursts short, whatever its window.
    """
    _, bulk_s = _paused(view)
    return one(_first_round_packets(view.flow, bulk_s), bulk_s)


@ROWS.add(
    "next_connection_window",
    "sent in the first round trip of a second connection, relative to that of the first, or to ten packets", "", 2,
)  # fmt: skip
def _next_connection_window(view: View) -> Samples:
    """Return what the last connection's body began with, relative to the first connection's, or to ten packets.

    Both are what was sent in 0.95 of a round trip from the first packet that is almost full. The first connection's is
    the sender's own initial window; RFC 9002, 7.2, permits ten packets.
    """
    if len(view.connections) < 2:
        raise Invisible("the client opened no second connection")
    # What ends a handshake may be sent before the body.
    large_bytes = ALMOST_FULL * view.flow.full_bytes
    first_s, last_s = (body_begins_s(view, view.connections[at], large_bytes) for at in (0, -1))
    if first_s is None or last_s is None:
        raise Invisible("a connection carried no body")
    first, last = (_first_round_packets(view.flow, at_s) for at_s in (first_s, last_s))
    return one(last / max(first, INITIAL_PACKETS), last_s)


@ROWS.add("window_after_pause", "flight soon after a silence, relative to that before it", "", 2)
def _window_after_pause(view: View) -> Samples:
    """Return the ratio of the largest flight in the three round trips after a silence to that before it."""
    silent_s, bulk_s = _paused(view)
    flow = view.flow
    before = flow.window(silent_s - 4 * flow.base_rtt_s, silent_s + 1e-6)
    after = flow.window(bulk_s, bulk_s + _SOON * flow.base_rtt_s)
    if not before or numpy.isnan(before) or numpy.isnan(after):
        raise Invisible("the window before the silence is not known")
    return one(after / before, bulk_s)


@ROWS.add("reduced_window_after_pause", "flight soon after a silence, relative to the reduced one before it", "", 2)
def _reduced_window_after_pause(view: View) -> Samples:
    """Return window_after_pause, of a sender that a loss has taken out of slow start.

    Without a loss, it may be in conservative slow start, which ends where round trips are short again, as they are
    after a silence (RFC 9406, 4.2).
    """
    silent_s, _ = _paused(view)
    if not (view.flow.known_s[view.flow.lost] < silent_s).any():
        raise Invisible("no loss had ended start-up before the silence")
    return _window_after_pause(view)


@ROWS.add("rate_after_pause", "rate in the round trip after a silence, relative to the link's", "", 2)
def _rate_after_pause(view: View) -> Samples:
    """Return what was sent in the round trip after a silence, divided by what the link carries in that time."""
    _, bulk_s = _paused(view)
    flow = view.flow
    a, b = numpy.searchsorted(flow.sent_s, (bulk_s - 1e-9, bulk_s + flow.base_rtt_s))
    return one(float(flow.bytes[a:b].sum() / flow.bdp_bytes), bulk_s)


@ROWS.add(
    "rate_soon_after_pause",
    "rate in the second to the fourth round trip after a silence, relative to the link's",
    "",
    2,
)
def _rate_soon_after_pause(view: View) -> Samples:
    """Return the rate in the second to the fourth round trip after a silence, divided by the link's."""
    _, bulk_s = _paused(view)
    flow = view.flow
    a, b = numpy.searchsorted(flow.sent_s, (bulk_s + flow.base_rtt_s, bulk_s + 4 * flow.base_rtt_s))
    return one(float(flow.bytes[a:b].sum() / flow.bdp_bytes / 3), bulk_s)


@ROWS.add("unused_growth", "sent in the first round trip of a large body, relative to the most in flight before", "", 2)
def _unused_growth(view: View) -> Samples:
    """Return what was sent in the first round trip of a large body, divided by the largest flight before it."""
    bulk_s = bulk_begins_s(view)
    flow = view.flow
    before = flow.window(flow.request_s, bulk_s - 1e-6)
    if numpy.isnan(before) or before < 1:
        raise Invisible("nothing was in flight before the large body")
    return one(_first_round_packets(flow, bulk_s) / before, bulk_s)


@ROWS.add(
    "unused_growth_later", "flight soon in a large body, relative to that before a time with little to send", "", 2
)
def _unused_growth_later(view: View) -> Samples:
    """Return the largest flight soon in the last body, divided by that at the end of the first.

    Clients begin each body with a small window of flow control, so more than a round trip is looked at.
    """
    bulk_s = bulk_begins_s(view)
    if len(view.requests) < 3:
        raise Invisible("there was no time with little to send")
    little_s = body_begins_s(view, view.requests[1][0])
    flow = view.flow
    before = numpy.nan if little_s is None else flow.window(little_s - _LATE * flow.base_rtt_s, little_s - 1e-6)
    after = flow.window(bulk_s, bulk_s + _LATE * flow.base_rtt_s)
    if numpy.isnan(after) or numpy.isnan(before) or before < _LEAST_WINDOW:
        raise Invisible("the window of the first body was too small, or is not known")
    return one(after / before, bulk_s)
