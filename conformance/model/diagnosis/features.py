"""Read features of a sender from its Flow: how it starts, reacts to loss, grows, paces and fills the queue.

Each function takes a Flow and returns Samples: values, each with the time at which it was seen. Where there is no
value, there is no sample: missing is never zero. A window is the largest flight in a round trip, in full packets.
Nothing here knows a stack, an algorithm or a limit.
"""

import itertools
from collections.abc import Iterator

import numpy
import numpy.typing

from conformance.model.diagnosis.flow import Floats, Flow, LossEvent, loss_events
from conformance.model.diagnosis.samples import Samples, burst_begins, one, samples, stretches

#: round trips before and after an isolated loss in which nothing else may be lost
_QUIET_BEFORE, _QUIET_AFTER = 4, 3
#: full packets: in a smaller window, one packet more or less is a large share
_LEAST_WINDOW, _SURE_WINDOW = 8, 16
#: a window above this share of its old size has not been reduced
REDUCED = 0.95
#: the fewest round trips of an epoch of growth that show a slope; the fewest that show a shape, and the packets by
#: which it must grow for that
_LEAST_EPOCH, _LEAST_SHAPE, _LEAST_RISE = 4, 10, 5
#: shares of the bottleneck's rate: from the first on, start-up has filled the path; once no round trip is faster than
#: the second, start-up has ended
_FILLED, _FASTER = 0.8, 1.35
#: a dip: a flight below a share of the median flight, for at least _DIP_S seconds. BBRv1 leaves four packets, BBRv3
#: half of the BDP. A loss may leave that as well, so for _DIP_SHARE nothing may be lost in the _DIP_QUIET_S seconds
#: before; for _DEEP_SHARE it may.
_DEEP_SHARE, _DIP_SHARE, _DIP_S, _DIP_QUIET_S = 0.25, 0.6, 0.1, 2
#: bytes of a full Ethernet frame, with an MTU of 1500
_FRAME_BYTES = 1514
#: round trips after the request in which nothing of the response can be acknowledged
FIRST_ROUND = 0.95
#: round trips after the request until start-up is over; and those that show its bursts
_SETTLED, _BEGINNING = 60, 10


def initial_window(flow: Flow) -> Samples:
    """Return what was sent in the round trip after the request, in full packets, before any can be acknowledged.

    A full packet has the size of that time: QUIC's packets grow once a probe for a larger MTU, a single packet, has
    arrived.
    """
    sizes = numpy.sort(_sizes(flow, flow.request_s, flow.request_s + FIRST_ROUND * flow.base_rtt_s))
    if not len(sizes):
        return one(0.0, flow.request_s)
    second = sizes[-2:][0]
    full = second if second > sizes[-1] / 2 else sizes[-1]
    return one(float(sizes.sum() / full), flow.request_s)


def start_up_growth(flow: Flow) -> Samples:
    """Return the ratio of each round trip's packets to the one before's, until the path is full or a packet is lost."""
    rounds = _start_up_rounds(flow)
    return samples([(b / a, at) for (_, a), (at, b) in itertools.pairwise(rounds) if a])


def start_up_time(flow: Flow) -> Samples:
    """Return the round trips from the request until one fills the path to 80 %."""
    return one(len(_start_up_rounds(flow)), flow.request_s)


def start_up_length(flow: Flow) -> Samples:
    """Return the round trips until the rate is no longer above 1.35 times the bottleneck's: it cannot be for long."""
    at, last = flow.request_s, 0
    for count in range(1, int((flow.sent_s[-1] - at) / flow.base_rtt_s) + 1):
        if _rate(flow, at + (count - 1) * flow.base_rtt_s) > _FASTER:
            last = count
        elif count - last > _BEGINNING:
            break
    return one(last or None, at + last * flow.base_rtt_s)


def start_up_losses(flow: Flow) -> Samples:
    """Return what was lost up to two round trips after the first loss was known, in BDP."""
    events = loss_events(flow)
    if not events:
        return one(0.0, flow.request_s)
    until_s = events[0].known_s + 2 * events[0].rtt_s
    lost = sum(event.losses for event in events if event.known_s < until_s)
    return one(lost * flow.full_bytes / flow.bdp_bytes, events[0].known_s)


def start_up_burst(flow: Flow) -> Samples:
    """Return the mean length of the burst that a packet is in, in round trips two to ten."""
    start_s = flow.request_s + flow.base_rtt_s
    return _bursts(flow, start_s, start_s + (_BEGINNING - 1) * flow.base_rtt_s)


def burst(flow: Flow) -> Samples:
    """Return the mean length of the burst that a packet is in, after start-up."""
    return _bursts(flow, _settled_s(flow), flow.sent_s[-1])


def kept(flow: Flow) -> Samples:
    """Return the share of the window that each isolated loss left."""
    return samples([(event.kept, event.known_s) for event in _isolated(flow)])


def trough(flow: Flow) -> Samples:
    """Return the least flight in the three round trips after each isolated loss, divided by the window before.

    The flight is read just before each packet is sent.
    """
    pairs: list[tuple[float, float]] = []
    for event in _isolated(flow):
        a, b = numpy.searchsorted(flow.sent_s, (event.known_s, event.known_s + _QUIET_AFTER * event.rtt_s))
        if b > a:
            pairs.append(((flow.flight[a:b] - flow.bytes[a:b]).min() / flow.full_bytes / event.before, event.known_s))
    return samples(pairs)


def responded(flow: Flow) -> Samples:
    """Return 1 for each loss event that was followed by a smaller window, 0 for others."""
    events = [event for event in loss_events(flow) if event.before >= _SURE_WINDOW and event.after > 0]
    return samples([(float(event.kept < REDUCED), event.known_s) for event in events])


def kept_of_several(flow: Flow) -> Samples:
    """Return the share of the window that events of several lost packets left."""
    events = loss_events(flow)
    return samples(
        [
            (event.kept, event.known_s)
            for event, later in itertools.zip_longest(events, events[1:])
            if event.losses > 1 and event.before >= _LEAST_WINDOW and _quiet(event, later, flow, 2)
        ]
    )


def growth(flow: Flow) -> Samples:
    """Return the packets per round trip by which the window grows between losses, as the slope of each epoch."""
    return samples([(_slope(windows), at) for at, _, windows in _epochs(flow) if len(windows) >= _LEAST_EPOCH])


def doubling(flow: Flow) -> Samples:
    """Return the ratio of the window in the third round trip after a reduction to that in the second."""
    return samples(
        [
            (windows[1] / windows[0], at)
            for at, _, windows in _epochs(flow)
            if len(windows) >= 2 and windows[0] >= _LEAST_WINDOW / 2
        ]
    )


def half_time_share(flow: Flow) -> Samples:
    """Return the share of an epoch's growth reached at half time: 0.5 is linear, more is concave, less is convex."""
    pairs: list[tuple[float, float]] = []
    for at, _, windows in _epochs(flow):
        rise = windows[-1] - windows[0] if len(windows) >= _LEAST_SHAPE else 0
        if rise >= _LEAST_RISE:
            middle = numpy.interp((len(windows) - 1) / 2, range(len(windows)), windows)
            pairs.append(((middle - windows[0]) / rise, at))
    return samples(pairs)


def epoch_s(flow: Flow) -> Samples:
    """Return the seconds from one reduction to the next."""
    times = [event.known_s for event in loss_events(flow)]
    return samples([(b - a, a) for a, b in itertools.pairwise(times)])


def mean_window(flow: Flow) -> Samples:
    """Return the mean flight over time after start-up, in full packets."""
    start_s, end_s = _settled_s(flow), flow.sent_s[-1]
    inside = (flow.sent_s >= start_s) & (flow.sent_s < end_s)
    if inside.sum() < 2:
        return samples([])
    lengths = numpy.diff(flow.sent_s[inside])
    total = lengths.sum()
    return one((flow.flight[inside][:-1] * lengths).sum() / total / flow.full_bytes if total else None, start_s)


def throughput(flow: Flow) -> Samples:
    """Return what left the queue, as a share of what the bottleneck carries, from the request to the end."""
    arrived = ~flow.lost
    took_s = flow.out_s[arrived][-1] - flow.request_s
    return one(flow.bytes[arrived].sum() / flow.bytes_per_s / took_s if took_s > 0 else None, flow.request_s)


def queue_mean(flow: Flow) -> Samples:
    """Return the mean time in the queue after start-up, in base round trips, which is the queue in BDP."""
    waits, times = _waits(flow, _settled_s(flow), flow.sent_s[-1])
    return one(waits.mean() if len(waits) else None, times[0] if len(waits) else 0.0)


def queue_low(flow: Flow) -> Samples:
    """Return the 5th percentile of the time in the queue after start-up, in base round trips: the standing queue."""
    waits, times = _waits(flow, _settled_s(flow), flow.sent_s[-1])
    return one(numpy.percentile(waits, 5) if len(waits) else None, times[0] if len(waits) else 0.0)


def queue_after_start_up(flow: Flow) -> Samples:
    """Return the mean time in the queue in round trips 20 to 60 after the request, in base round trips."""
    middle_s = flow.request_s + _SETTLED / 3 * flow.base_rtt_s
    waits, _ = _waits(flow, middle_s, _settled_s(flow))
    return one(waits.mean() if len(waits) else None, middle_s)


def rate_high(flow: Flow) -> Samples:
    """Return the 95th percentile of the sending rate over a round trip after start-up, relative to the bottleneck's."""
    return _rate_percentile(flow, 95)


def rate_low(flow: Flow) -> Samples:
    """Return the 5th percentile of the same."""
    return _rate_percentile(flow, 5)


def flight_high(flow: Flow) -> Samples:
    """Return the 95th percentile of the flight after start-up, in BDP."""
    a = numpy.searchsorted(flow.sent_s, _settled_s(flow))
    flights = flow.flight[a:] / flow.bdp_bytes
    return one(numpy.percentile(flights, 95) if len(flights) else None, _settled_s(flow))


def dips_per_10_s(flow: Flow) -> Samples:
    """Return how often in 10 s the flight dips for 100 ms or more, as in ProbeRTT.

    In a dip it is below 0.6 of its median with nothing lost before, or below a quarter, whatever is lost.
    """
    start_s, end_s = _settled_s(flow), flow.sent_s[-1]
    inside = flow.sent_s >= start_s
    if end_s - start_s < 10 or not inside.any():
        return samples([])
    flights, times = flow.flight[inside] / numpy.median(flow.flight[inside]), flow.sent_s[inside]
    dips = _stretches(times, flights < _DEEP_SHARE)
    dips += [
        at
        for at in _stretches(times, flights < _DIP_SHARE)
        if not _lost_between(flow, at - _DIP_QUIET_S, at) and all(abs(at - other) > 1 for other in dips)
    ]
    return one(10 * len(dips) / (end_s - start_s), min(dips, default=start_s))


def _stretches(times: Floats, low: numpy.typing.NDArray[numpy.bool_]) -> list[float]:
    """Return when each stretch of `low` samples begins that lasts at least _DIP_S seconds."""
    ends = stretches(low)
    return [times[a] for a, b in ends if b < len(times) and times[b] - times[a] >= _DIP_S]


def packet_fill(flow: Flow) -> Samples:
    """Return the mean size of packets sent after the request, relative to a full packet."""
    a = numpy.searchsorted(flow.sent_s, flow.request_s)
    return one(flow.bytes[a:].mean() / flow.full_bytes if len(flow.bytes) > a else None, flow.request_s)


def payload(flow: Flow) -> Samples:
    """Return the mean payload in bytes of packets larger than half of a full one, as probes and last packets are less.

    For a super-packet of segmentation offload, a full packet of the link less its headers is assumed.
    """
    a = numpy.searchsorted(flow.sent_s, flow.request_s)
    sizes = numpy.minimum(flow.bytes[a:], _FRAME_BYTES)
    large = sizes[sizes > min(flow.full_bytes, _FRAME_BYTES) / 2]
    return one(large.mean() - flow.header_bytes if len(large) else None, flow.request_s)


def ack_ratio(flow: Flow) -> Samples:
    """Return the number of packets from the client for each packet from the server."""
    return one(flow.ack_ratio, flow.request_s)


def _sizes(flow: Flow, start_s: float, end_s: float) -> Floats:
    a, b = numpy.searchsorted(flow.sent_s, (start_s, end_s))
    return flow.bytes[a:b]


def _sent(flow: Flow, start_s: float, end_s: float) -> float:
    return float(_sizes(flow, start_s, end_s).sum()) / flow.full_bytes


def _rate(flow: Flow, start_s: float) -> float:
    """Return the sending rate in the base round trip from `start_s` on, relative to the bottleneck's."""
    return _sent(flow, start_s, start_s + flow.base_rtt_s) * flow.full_bytes / flow.bdp_bytes


def _settled_s(flow: Flow) -> float:
    return flow.request_s + _SETTLED * flow.base_rtt_s


def _start_up_rounds(flow: Flow) -> list[tuple[float, float]]:
    """Return [(time, full packets sent)] of each round trip from the request until one fills the path or loses."""
    lost = numpy.flatnonzero(flow.lost)
    end_s = flow.known_s[lost[0]] if len(lost) else flow.sent_s[-1]
    rounds: list[tuple[float, float]] = []
    at = flow.request_s
    while at < end_s:
        rounds.append((at, _sent(flow, at, at + flow.base_rtt_s)))
        if rounds[-1][1] * flow.full_bytes >= _FILLED * flow.bdp_bytes:
            break
        at += flow.base_rtt_s
    return rounds


def _quiet(event: LossEvent, later: LossEvent | None, flow: Flow, round_trips: float) -> bool:
    """Return whether this number of round trips after a loss shows nothing but the response to it."""
    end_s = event.known_s + round_trips * event.rtt_s
    return end_s < (later.known_s if later else flow.sent_s[-1]) and event.after > 0


def _isolated(flow: Flow) -> Iterator[LossEvent]:
    """Yield the loss events of one packet, in windows that are not small, with nothing else lost around them.

    The first loss event of a flow is left out, as it ends start-up.
    """
    events = loss_events(flow)
    following: list[LossEvent | None] = [*events[2:], None]
    for before, event, later in zip(events, events[1:], following, strict=False):
        alone = event.known_s - before.known_s > _QUIET_BEFORE * event.rtt_s
        if event.losses == 1 and event.before >= _LEAST_WINDOW and alone and _quiet(event, later, flow, _QUIET_AFTER):
            yield event


def _epochs(flow: Flow) -> Iterator[tuple[float, float, Floats]]:
    """Yield (start, seconds of a round trip, window of each round trip) of each time between a recovery and a loss."""
    events = loss_events(flow)
    for event, later in itertools.zip_longest(events, events[1:]):
        # The last round trips of a transfer have no more to send, so they show no window.
        end_s = later.known_s if later else flow.sent_s[-1] - _QUIET_AFTER * event.rtt_s
        at = start_s = event.known_s + event.rtt_s
        flights: list[float] = []
        while True:
            rtt_s = float(numpy.interp(at, flow.sent_s, flow.rtt_s))
            if at + rtt_s > end_s:
                break
            flights.append(flow.window(at, at + rtt_s))
            at += rtt_s
        windows = numpy.array(flights)
        if len(windows) and numpy.all(numpy.isfinite(windows)):
            yield start_s, event.rtt_s, windows


def _slope(windows: Floats) -> float:
    return float(numpy.polyfit(numpy.arange(len(windows)), windows, 1)[0])


def _bursts(flow: Flow, start_s: float, end_s: float) -> Samples:
    """Return the mean, over packets, of the length of the burst that a packet is in."""
    a, b = numpy.searchsorted(flow.sent_s, (start_s, end_s))
    if b - a < 2:
        return samples([])
    lengths = numpy.diff(burst_begins(flow, a, b), append=b - a)
    longest = a + int(numpy.cumsum(lengths)[lengths.argmax()] - lengths.max())
    return one(float((lengths**2).sum() / lengths.sum()), float(flow.sent_s[longest]))


def _waits(flow: Flow, start_s: float, end_s: float) -> tuple[Floats, Floats]:
    """Return (times in the queue in base round trips, sending times) of delivered packets sent in [start_s, end_s)."""
    inside = (flow.sent_s >= start_s) & (flow.sent_s < end_s) & ~flow.lost
    waits = flow.out_s[inside] - flow.sent_s[inside] - flow.forward_s
    return waits / flow.base_rtt_s, flow.sent_s[inside]


def _rate_percentile(flow: Flow, percentile: float) -> Samples:
    start_s = _settled_s(flow)
    starts = numpy.arange(start_s, flow.sent_s[-1] - flow.base_rtt_s, flow.base_rtt_s / 4)
    if len(starts) < 40:
        return samples([])
    rates = numpy.array([_rate(flow, at) for at in starts])
    value = float(numpy.percentile(rates, percentile))
    return one(value, float(starts[numpy.abs(rates - value).argmin()]))


def _lost_between(flow: Flow, start_s: float, end_s: float) -> bool:
    a, b = numpy.searchsorted(flow.sent_s, (start_s, end_s))
    return bool(flow.lost[a:b].any())
