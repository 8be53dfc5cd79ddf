"""Observe what a sender does in the round trips after a loss, a mark, a late packet or a timeout."""

import itertools
from collections.abc import Callable, Iterator

import numpy

from conformance.model.clauses.observables_events import require_ect, require_no_other_loss
from conformance.model.clauses.observables_growth import rounds
from conformance.model.clauses.seen import Invisible, Rows, View, shown
from conformance.model.diagnosis import features
from conformance.model.diagnosis.flow import Flow, LossEvent, loss_events
from conformance.model.diagnosis.samples import Samples, one

ROWS = Rows()

#: the most packets in flight when slow start has just begun anew
_RESTARTS = 4
#: packets: in a smaller window, one packet more or less is a large share
_LEAST_WINDOW = 16
#: (from, to) in round trips after an event: where its effect shows, as packets under way are acknowledged before
_LATER = (2, 4)
#: seconds in which a timer has run out: 1 s at least (RFC 6298, 2.4), and twice a round trip that a queue makes longer
_TIMER_S = 3.0
#: the least factor by which a round of slow start grows: 1.5 where each second packet is acknowledged and counts as one
#: (RFC 5681, 3.1, equation 2)
_SLOW_START = 1.25


def _isolated(flow: Flow) -> Iterator[LossEvent]:
    """Yield the isolated losses in windows of at least _LEAST_WINDOW."""
    alone = {float(at) for at in features.kept(flow).times_s}
    for event in loss_events(flow):
        if event.known_s in alone and event.before >= _LEAST_WINDOW:
            yield event


def _sent(flow: Flow, start_s: float, end_s: float) -> float:
    """Return what was sent in [start_s, end_s), in full packets."""
    a, b = numpy.searchsorted(flow.sent_s, (start_s, end_s))
    return float(flow.bytes[a:b].sum() / flow.full_bytes)


def _left(flow: Flow, event: LossEvent) -> float:
    """Return the window in the third round trip after a loss, when recovery is over."""
    return flow.window_after(event.known_s + 2 * event.rtt_s, event.known_s + 3 * event.rtt_s)


def _in_recovery(by: Callable[[Flow, LossEvent], float]) -> Callable[[View], Samples]:
    """Return an observable: what was sent in the round trip after each isolated loss, divided by `by(flow, loss)`."""

    def observe(view: View) -> Samples:
        flow = view.flow
        pairs: list[tuple[float | None, float]] = [
            (_sent(flow, event.known_s, event.known_s + event.rtt_s) / by(flow, event), event.known_s)
            for event in _isolated(flow)
            if by(flow, event) > 0
        ]
        return shown(pairs, "no loss was isolated in a window of 16 packets or more")

    return observe


def _window_before(view: View) -> tuple[float, float]:
    """Return the window in the round trip before the event, and when its sender can know of it: a round trip later."""
    flow, begin_s = view.flow, view.event.begin_s
    rtt_s = float(flow.rtt_s[max(int(numpy.searchsorted(flow.sent_s, begin_s)) - 1, 0)])
    return flow.window(begin_s - rtt_s, begin_s), begin_s + rtt_s


def _window_later(view: View, reductions: int = 0) -> Samples:
    """Return the ratio of the largest window in the third and fourth round trip after an event to that before it.

    `reductions`: for how many the event's losses call. Raises Invisible if there are other losses.
    """
    before, known_s = _window_before(view)
    rtt_s = known_s - view.event.begin_s
    from_s, to_s = (known_s + rtts * rtt_s for rtts in _LATER)
    after = view.flow.window_after(from_s, to_s)
    if not before >= _LEAST_WINDOW or not numpy.isfinite(after):
        raise Invisible("the window before was below 16 packets, or the transfer was over too soon after")
    require_no_other_loss(view, rtt_s, to_s, reductions)
    return one(after / before, known_s)


@ROWS.add("window_least", "least window up to three seconds after an event, relative to that before it", "", 2)
def _window_least(view: View) -> Samples:
    """Return the ratio of the least window of a round trip in three seconds after a loss to that before it.

    A sender may learn only by its timer, after a second or more, that what it sent again was lost, too.
    """
    flow = view.flow
    before, known_s = _window_before(view)
    rtt_s = known_s - view.event.begin_s
    start_s, end_s = known_s + _LATER[0] * rtt_s, known_s + _TIMER_S
    if not before >= _LEAST_WINDOW or end_s > float(flow.sent_s[-1]):
        raise Invisible("the window before was below 16 packets, or the transfer was over too soon after")
    require_no_other_loss(view, rtt_s, start_s, reductions=2)
    windows = [(flow.window_after(at_s, at_s + rtt_s) / before, at_s) for at_s in numpy.arange(start_s, end_s, rtt_s)]
    return one(*min(windows))


ROWS.add("window_later", "window two round trips after a loss, relative to that before it", "", 2)(
    lambda view: _window_later(view, reductions=1)
)
ROWS.add("window_after_late", "window two round trips after a packet came late, relative to that before it", "", 2)(
    lambda view: _window_later(view)
)


@ROWS.add(
    "window_after_marks", "window two round trips after marks, relative to that before them", "", 2, optional=True
)
def _window_after_marks(view: View) -> Samples:
    """Return the ratio of the window two round trips after marks to that before. Raises Absent if no packet has ECT."""
    require_ect(view)
    return _window_later(view)


@ROWS.add("restart_end", "window at which slow start ended after an outage, relative to that before it", "", 2)
def _restart_end(view: View) -> Samples:
    """Return the ratio of the window at which slow start ended after an outage to the window before the outage."""
    flow, event = view.flow, view.event
    before = flow.window(event.begin_s - flow.base_rtt_s, event.begin_s)
    healed = numpy.flatnonzero((flow.sent_s >= event.begin_s) & (flow.out_s > event.end_s))
    if not len(healed):
        raise Invisible("nothing arrived after the outage")
    start_s = float(flow.sent_s[healed[0]])
    # A loss would end slow start, too. Until the outage's losses are known, the lost packets count as in flight.
    lost = flow.known_s[flow.lost & (flow.sent_s > start_s)]
    after = rounds(flow, start_s, float(lost.min()) if len(lost) else float(flow.sent_s[-1]))
    grown = list(itertools.dropwhile(lambda at: at.packets > _RESTARTS, after))
    for at, later in itertools.pairwise(grown):
        if later.packets < _SLOW_START * at.packets:
            return one(later.packets / before, later.begin_s)
    raise Invisible("slow start after the outage went on until a loss, or until the end")


ROWS.add(
    "sent_in_recovery",
    "sent in the round trip after an isolated loss, relative to the window that it left",
    "",
    2,
    independent=True,
)(_in_recovery(_left))
ROWS.add(
    "sent_after_loss",
    "sent in the round trip after an isolated loss, relative to the window before it",
    "",
    2,
    independent=True,
)(_in_recovery(lambda flow, event: event.before))
