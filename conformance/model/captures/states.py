"""Find when a sender comes into a state that a schedule may wait for, from its packets alone: no stack is asked.

Each state is found by a pure function of a Flow (model/diagnosis/flow.py), which returns a time in seconds since the
flow's first packet, or None if the state never came.
"""

from collections.abc import Callable, Mapping

import numpy

from conformance.model.diagnosis.flow import Floats, Flow, loss_events

#: start-up ends with BBR's full pipe (draft-ietf-ccwg-bbr, 5.3.1.2) as seen from outside: delivery grows by less than a
#: quarter in each of three round trips. It also ends, like slow start, with a loss after which the flight falls
#: (RFC 5681, 3.1)
_GROWS, _ROUNDS, _FELL = 1.25, 3, 0.9
#: a sender that sends more than this many times what its bottleneck carries probes for more (the draft's gain is 1.25)
_PROBES = 1.1
#: a sender that then sends less than this many times what its bottleneck carries drains what it probed with (the
#: draft's gain is 0.9)
_DRAINS = 0.96
#: start-up has filled the path when it sends this share of what the path carries, and drains it below that (the draft's
#: gain is 0.5)
_FILLED = 0.8
#: a sender lets the path run empty if its flight falls to this share, for so many seconds (the draft has 200 ms), of
#: what it was in the middle of the second before
_EMPTIES, _EMPTY_S, _BEFORE_S = 0.6, 0.15, 1.0
#: as much is sent as is delivered, to within this share, in so many stretches together; in each, to within the share or
#: so many packets, since a short one counts few. A stretch is a round trip, or as long as the link needs for so many
#: packets, and uses that share of the link at least: a sender that is stuck at a tenth does not cruise
_EVEN, _STRETCHES, _EVEN_PACKETS, _LEAST_PACKETS, _USED = 0.05, 4, 2, 8, 0.5


def request(flow: Flow) -> float | None:
    """Return when the sender was asked for the transfer."""
    return flow.request_s


def first_loss(flow: Flow) -> float | None:
    """Return when the sender can know of its first loss."""
    lost = numpy.flatnonzero(flow.lost)
    return float(flow.known_s[lost].min()) if len(lost) else None


def start_up_ends(flow: Flow) -> float | None:
    """Return when delivery stops growing, or when a loss makes the flight fall, whichever comes first."""
    fell = (event.known_s for event in loss_events(flow) if event.before and event.kept < _FELL)
    ends = [end_s for end_s in (_pipe_is_full(flow), next(fell, None)) if end_s is not None]
    return min(ends, default=None)


def _pipe_is_full(flow: Flow) -> float | None:
    times, total = _delivered(flow)
    at_s, most, without = float(flow.request_s), 0.0, 0
    while at_s < times[-1]:
        end_s = at_s + _rtt_s(flow, at_s)
        rate = (_until(times, total, end_s) - _until(times, total, at_s)) / (end_s - at_s)
        if rate >= most * _GROWS:
            most, without = max(rate, most), 0
        else:
            without += 1
        at_s = end_s
        if without == _ROUNDS:
            return at_s if at_s < times[-1] else None
    return None


def drain(flow: Flow) -> float | None:
    """Return when a round trip begins in which less is sent than the bottleneck carries, after one that filled it."""
    filled_s = _first_sent(flow, flow.request_s, lambda share: share >= _FILLED)
    return _first_sent(flow, filled_s, lambda share: share < _FILLED)


def probe_up(flow: Flow) -> float | None:
    """Return when, after start-up, a round trip begins in which more is sent than the bottleneck carries."""
    # Start-up sends more than that, too, and goes on for a moment after delivery has stopped growing.
    calm_s = _first_sent(flow, start_up_ends(flow), lambda share: share <= 1)
    return _first_sent(flow, calm_s, lambda share: share > _PROBES)


def probe_down(flow: Flow) -> float | None:
    """Return when, after it has probed, a round trip begins in which less is sent than the bottleneck carries."""
    return _first_sent(flow, probe_up(flow), lambda share: share < _DRAINS)


def _first_sent(flow: Flow, start_s: float | None, holds: Callable[[float], bool]) -> float | None:
    """Return when the first round trip after `start_s` begins of which `holds` is true; None if there is none.

    `holds` is asked about what was sent in the round trip, over what the bottleneck carries in it. One is tried every
    quarter of a round trip.
    """
    if start_s is None:
        return None
    begins = numpy.arange(start_s, flow.sent_s[-1] - flow.base_rtt_s, flow.base_rtt_s / 4)
    total = numpy.concatenate(([0], numpy.cumsum(flow.bytes)))
    before, after = (total[numpy.searchsorted(flow.sent_s, at)] for at in (begins, begins + flow.base_rtt_s))
    shares = (after - before) / flow.bdp_bytes
    return next((float(at) for at, share in zip(begins, shares, strict=True) if holds(float(share))), None)


def cruise(flow: Flow) -> float | None:
    """Return when, after start-up, the first of four round trips begins in which as much is sent as is delivered."""
    start_s = start_up_ends(flow)
    if start_s is None or not flow.bytes_per_s:
        return None
    times, total = _delivered(flow)
    sent = numpy.cumsum(flow.bytes)
    step_s = max(flow.base_rtt_s, _LEAST_PACKETS * flow.full_bytes / flow.bytes_per_s)
    edges = numpy.arange(start_s, times[-1], step_s)
    went = numpy.diff([_until(flow.sent_s, sent, edge) for edge in edges])
    came = numpy.diff([_until(times, total, edge) for edge in edges])
    even = abs(went - came) <= numpy.maximum(_EVEN * came, _EVEN_PACKETS * flow.full_bytes)
    even &= came >= _USED * step_s * flow.bytes_per_s
    for at in range(len(even) - _STRETCHES + 1):
        row = slice(at, at + _STRETCHES)
        if even[row].all() and abs(went[row].sum() - came[row].sum()) <= _EVEN * came[row].sum():
            return float(edges[at])
    return None


def probe_rtt(flow: Flow) -> float | None:
    """Return when, after start-up and without a loss, the flight falls far and stays low for as long as in ProbeRTT.

    What start-up and probes put in flight beyond what the path carries drains without that.
    """
    start_s = start_up_ends(flow)
    if start_s is None:
        return None
    first = int(numpy.searchsorted(flow.sent_s, start_s + _BEFORE_S))
    lost_s = numpy.sort(flow.known_s[flow.lost])
    for at in range(first, len(flow.sent_s)):
        if flow.flight[at] > _EMPTIES * flow.bdp_bytes:
            continue
        now_s = float(flow.sent_s[at])
        begin, lost_before, lost = (
            int(numpy.searchsorted(times, when))
            for times, when in ((flow.sent_s, now_s - _BEFORE_S), (lost_s, now_s - _BEFORE_S), (lost_s, now_s))
        )
        if begin == at or lost_before < lost:
            continue
        low = _EMPTIES * min(float(numpy.median(flow.flight[begin:at])), flow.bdp_bytes)
        end_s = now_s + _EMPTY_S
        if flow.flight[at] <= low >= flow.window(now_s, end_s) * flow.full_bytes and end_s < flow.sent_s[-1]:
            # A sender with a smaller window is silent first, until less is in flight.
            return float(flow.sent_s[at - 1])
    return None


def _delivered(flow: Flow) -> tuple[Floats, Floats]:
    """Return when packets left the queue, in order, and how many bytes had left it by then."""
    came = flow.out_s[~flow.lost]
    order = numpy.argsort(came, kind="stable")
    return came[order], numpy.cumsum(flow.bytes[~flow.lost][order])


def _until(times: Floats, total: Floats, at_s: float) -> float:
    """Return the total of bytes before a time."""
    at = int(numpy.searchsorted(times, at_s))
    return float(total[at - 1]) if at else 0.0


def _rtt_s(flow: Flow, at_s: float) -> float:
    at = min(int(numpy.searchsorted(flow.sent_s, at_s)), len(flow.sent_s) - 1)
    return max(float(flow.rtt_s[at]), flow.base_rtt_s)


#: state -> the function that finds when a flow first comes into it; schedule.STATES describes each
BEGINS_S: Mapping[str, Callable[[Flow], float | None]] = {
    "request": request,
    "first_loss": first_loss,
    "start_up_ends": start_up_ends,
    "drain": drain,
    "probe_up": probe_up,
    "probe_down": probe_down,
    "cruise": cruise,
    "probe_rtt": probe_rtt,
}
