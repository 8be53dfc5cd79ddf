"""Observe how a window grows: in start-up while the delay rises, and after the loss of a chosen packet."""

import itertools
from typing import NamedTuple

import numpy

from conformance.model.clauses.seen import Invisible, Rows, View
from conformance.model.diagnosis.flow import Flow, LossEvent, loss_events
from conformance.model.diagnosis.samples import Samples, one

ROWS = Rows()

#: RFC 9438, 4.1: C in packets per cubic second, and beta, the share of the window that a loss leaves
_C, _BETA = 0.4, 0.7
#: shares of the window before a loss: from the first on, a window is back; from the second on, it has grown on
_BACK, _BEYOND = 0.95, 1.05
#: K after which a window that is not back is late: with the plateau at the old window, and with one at 0.85 of it
_LATE_K, _LATE_LOW_K = 0.8, 1.75
#: the share of the window at which fast convergence has its plateau (RFC 9438, 4.7)
_LOWERED = (1 + _BETA) / 2
#: K after which a window is back by RFC 9438, 4.2, from 0.7 of it on: with the plateau at the window, and lowered
_CURVES_K = (
    1 - ((1 - _BACK) / (1 - _BETA)) ** (1 / 3),
    ((_LOWERED - _BETA) / (1 - _BETA)) ** (1 / 3) + ((_BACK - _LOWERED) / (1 - _BETA)) ** (1 / 3),
)
#: the fewest round trips that show a slope
_LEAST_ROUNDS = 6
#: the least factor by which a round of slow start grows, which doubles; and the rounds after it that may grow slowly
_SLOW_START, _CSS_ROUNDS = 1.6, 4
#: a sender that grows by less in a round has left slow start: congestion avoidance adds a packet
_LEFT = 1.06


class Round(NamedTuple):
    """A packet-timed round trip: its begin, its largest flight in packets, and its smallest round-trip time."""

    begin_s: float
    packets: float
    rtt_s: float


def rounds(flow: Flow, begin_s: float, end_s: float) -> list[Round]:
    """Return the rounds that begin and end between two times."""
    listed = []
    while begin_s < end_s:
        a = int(numpy.searchsorted(flow.sent_s, begin_s))
        if a == len(flow.sent_s):
            break
        # A round ends when the first packet that was sent in it is acknowledged.
        last_s = max(float(flow.known_s[a]), begin_s + flow.base_rtt_s / 2)
        b = int(numpy.searchsorted(flow.sent_s, last_s))
        if b > a and last_s <= end_s:
            packets = float(flow.flight[a:b].max() / flow.full_bytes)
            listed.append(Round(begin_s, packets, float(flow.rtt_s[a:b].min())))
        begin_s = last_s
    return listed


def _start_up(flow: Flow) -> list[Round]:
    """Return the rounds from the request on, until the first loss is known or the transfer ends."""
    lost = numpy.flatnonzero(flow.lost)
    return rounds(flow, flow.request_s, float(flow.known_s[lost[0]] if len(lost) else flow.sent_s[-1]))


def last_loss(view: View) -> LossEvent:
    """Return the loss that the schedule's last entry caused. Raises Invisible."""
    # A loss that is known by then happened earlier; what this entry drops is known to be lost a round trip later.
    begin_s = view.begins_s(view.entries[-1])
    loss_event = next((event for event in loss_events(view.flow) if event.known_s > begin_s), None)
    if loss_event is None:
        raise Invisible("the packets that were to be lost were never sent")
    if not numpy.isfinite(loss_event.before) or not loss_event.before:
        raise Invisible("the window before the loss is not known")
    return loss_event


def rounds_after(view: View, event: LossEvent) -> list[Round]:
    """Return the rounds after a loss, until the next loss, or until the transfer has no more to send."""
    flow = view.flow
    later = [other.known_s for other in loss_events(flow) if other.known_s > event.known_s]
    end_s = min(later, default=float(flow.sent_s[-1]) - 3 * event.rtt_s)
    return rounds(flow, event.known_s + event.rtt_s, end_s)


def _regrowth(view: View, late_k: float) -> Samples:
    """Return the time from a loss until the window is back at 0.95 of its old size, in units of K.

    If the window is not back after `late_k`, the value is the last time that is seen.
    """
    event = last_loss(view)
    k_s = (event.before * (1 - _BETA) / _C) ** (1 / 3)
    grown = rounds_after(view, event)
    if not grown:
        raise Invisible("the transfer was over too soon after the loss")
    back = next((at for at in grown if at.packets >= _BACK * event.before), None)
    if back is None and grown[-1].begin_s - event.known_s < late_k * k_s:
        raise Invisible("another loss, or the end of the transfer, came before the window was back")
    return one(((back or grown[-1]).begin_s - event.known_s) / k_s, event.known_s)


@ROWS.add("regrowth", "time from a loss until 0.95 of the window is back, in units of its K", "K", 2)
def _regrowth_of_whole(view: View) -> Samples:
    """Return _regrowth() after a loss in a window that was what it was at the loss before."""
    return _regrowth(view, _LATE_K)


@ROWS.add("regrowth_late", "by how much the window is back later after a second loss than a plateau says", "K", 2)
def _regrowth_late(view: View) -> Samples:
    """Return by how much later than by the nearer of two curves 0.95 of the window is back, in units of its K.

    The loss is in a smaller window than the one before. One curve has its plateau at that window, and one lower.
    """
    back = _regrowth(view, _LATE_LOW_K)
    return one(min((float(back.values[0]) - curve for curve in _CURVES_K), key=abs), float(back.times_s[0]))


@ROWS.add(
    "growth_beyond", "growth of the window beyond its size before a loss, in packets per round trip", "packets", 2
)
def _growth_beyond(view: View) -> Samples:
    """Return the packets per round trip by which the window grew once it was larger than before the loss."""
    event = last_loss(view)
    beyond = [at for at in rounds_after(view, event) if at.packets >= _BEYOND * event.before]
    if len(beyond) < _LEAST_ROUNDS:
        raise Invisible("fewer than six round trips show a window larger than before the loss")
    slope = numpy.polyfit(range(len(beyond)), [at.packets for at in beyond], 1)[0]
    return one(float(slope), beyond[0].begin_s)


@ROWS.add("growth_after", "window in the third round after the event, relative to the second", "", 2)
def _growth_after(view: View) -> Samples:
    """Return the ratio of the window in the third round after an event to that in the second, in start-up.

    Raises Invisible if start-up was over before: a packet was lost, or the window had stopped doubling.
    """
    # Packets that were sent in the event are known a round trip later. So what is sent in it shows the sender before,
    # and in the first round after it and in a part of the second, the sender cannot know yet that it is over.
    flow, event = view.flow, view.event
    listed = rounds(flow, flow.request_s, float(flow.sent_s[-1]))
    before = [at.packets for at in listed if at.begin_s < event.end_s]
    after = [at for at in listed if at.begin_s >= event.end_s][:3]
    if len(before) < 2 or len(after) < 3:
        raise Invisible("the event came too soon, or the transfer was over too soon after it")
    if numpy.any(flow.known_s[flow.lost] < after[2].begin_s) or before[-1] < _SLOW_START * before[-2]:
        raise Invisible("start-up was over before the event could end it")
    return one(_not_left(after[2].packets / after[1].packets), after[2].begin_s)


def _not_left(grew: float) -> float:
    """Return by how much a round grew. Raises Invisible if that is no slow start, and no conservative one either."""
    if grew < _LEFT:
        raise Invisible("it left slow start at once, so it has no conservative slow start")
    return grew


@ROWS.add(
    "rise_ignored",
    "largest rise of the delay in a round of start-up that was followed by doubling",
    "ms",
    1,
    of_a_part=True,
)
def _rise_ignored(view: View) -> Samples:
    """Return the largest rise of a start-up round's minimum round trip, in ms, after which the window still doubled."""
    start_up = _start_up(view.flow)
    rises = [
        (1000 * (at.rtt_s - before.rtt_s), at.begin_s)
        for before, at, after in zip(start_up, start_up[1:], start_up[2:], strict=False)
        if after.packets >= _SLOW_START * at.packets
    ]
    if not rises:
        raise Invisible("start-up was over in three round trips")
    return one(*max(rises))


@ROWS.add("slow_growth", "growth in a round after the last round of start-up that doubled", "", 2, of_a_part=True)
def _slow_growth(view: View) -> Samples:
    """Return the median growth factor of the four rounds after the last that doubled, in start-up before any loss."""
    start_up = _start_up(view.flow)
    growth = [(after.packets / before.packets, after.begin_s) for before, after in itertools.pairwise(start_up)]
    doubled = [number for number, (times, _) in enumerate(growth) if times >= _SLOW_START]
    rest = growth[doubled[-1] + 1 :][:_CSS_ROUNDS] if doubled else []
    if len(rest) < _CSS_ROUNDS:
        raise Invisible("start-up doubled until a loss, or was over in a round trip")
    return one(_not_left(float(numpy.median([times for times, _ in rest]))), rest[0][1])
