"""Read BBR's states from packets alone, for clauses about the states of draft-ietf-ccwg-bbr.

r is what was sent in a base round trip, divided by what the link carries in that time. F is the flight, in BDP.
"""

import itertools
import math

import numpy
import numpy.typing

from conformance.model.clauses.seen import Invisible, Rows, View, shown
from conformance.model.diagnosis.flow import Floats, Flow
from conformance.model.diagnosis.samples import Samples, one, stretches

ROWS = Rows()

#: r from which on start-up has filled the path, and r below which the sender drains
_FILLED, _DRAINING = 0.8, 0.8
#: F at which Drain is over (BBRCheckDrain: the BDP, and what is on its way)
_DRAINED = 1.05
#: seconds of each stretch of ProbeBW in which the rate of cruising is read
_BLOCK_S = 2
#: round trips after which start-up is over
_SETTLED_RTTS = 60
#: percent of the packets that REFILL and CRUISE send, at least
_MOSTLY = 67
#: r above which a phase of ProbeBW is UP, and r below which it is DOWN; packets more in a time that are no phase yet,
#: as so many may be released together (CL086); and the share of r that these may be
_UP, _DOWN, _TOGETHER, _COARSE = 1.08, 0.96, 4.5, 0.15
#: round trips within which DOWN follows UP
_FOLLOWS_RTTS = 2
#: round trips over which the rate of cruising is read, so that what is released together is not much
_CRUISE_RTTS = 4
#: probes for bandwidth that are needed to say when the next one comes
_FEW_PROBES = 3
#: ProbeRTT: the flight is below this share of its median for at least this many seconds
_DIP, _DIP_S = 0.72, 0.1
#: seconds within which a ProbeRTT must come: five, up to five more if a lower RTT puts it off (5.3.4.1), and rounds
_OVERDUE_S = 10.2


def rates(flow: Flow, start_s: float, end_s: float, rtts: int = 1) -> tuple[Floats, Floats]:
    """Return (times, r over the `rtts` base round trips from each time on), with four times in each round trip."""
    step, over_s = flow.base_rtt_s / 4, rtts * flow.base_rtt_s
    at = numpy.arange(start_s, min(end_s, float(flow.sent_s[-1])) - over_s, step)
    total = numpy.concatenate(([0], numpy.cumsum(flow.bytes)))
    sent = total[numpy.searchsorted(flow.sent_s, at + over_s)] - total[numpy.searchsorted(flow.sent_s, at)]
    return at, sent / flow.bdp_bytes / rtts


def _flight(flow: Flow, at: Floats) -> Floats:
    """Return F at these times."""
    number = numpy.clip(numpy.searchsorted(flow.sent_s, at, side="right") - 1, 0, len(flow.sent_s) - 1)
    flights: Floats = flow.flight[number] / flow.bdp_bytes
    return flights


def _settled_s(flow: Flow) -> float:
    return flow.request_s + _SETTLED_RTTS * flow.base_rtt_s


def _start_up(flow: Flow) -> tuple[float, float]:
    """Return when start-up had filled the path, and when it began to drain. Raises Invisible if either never was."""
    at, rate = rates(flow, flow.request_s, _settled_s(flow))
    filled = numpy.flatnonzero(rate >= _FILLED)
    if not len(filled):
        raise Invisible("start-up never filled the path")
    drains = numpy.flatnonzero((rate < _DRAINING) & (numpy.arange(len(rate)) > filled[0]))
    if not len(drains):
        raise Invisible("it never sent slower than the link after start-up, so nothing shows when start-up ended")
    return float(at[filled[0]]), float(at[drains[0]])


def count_rounds(flow: Flow, start_s: float, end_s: float) -> int:
    """Return how many packet-timed rounds begin between two times.

    A round ends when the first packet that was sent in it is acknowledged (a packet-timed round trip of the BBR draft).
    """
    rounds = 0
    while start_s < end_s:
        number = int(numpy.searchsorted(flow.sent_s, start_s))
        if number >= len(flow.known_s):
            break
        start_s = max(float(flow.known_s[number]), start_s + flow.base_rtt_s / 2)
        rounds += 1
    return rounds


@ROWS.add(
    "bbr_start_up_rounds", "rounds for which start-up went on once it had filled the path", "rounds", 0, of_a_part=True
)
def _start_up_rounds(view: View) -> Samples:
    """Return the packet-timed rounds for which start-up went on after it had filled the path."""
    filled_s, end_s = _start_up(view.flow)
    return one(count_rounds(view.flow, filled_s, end_s), end_s)


@ROWS.add("bbr_start_up_flight", "most in flight in start-up", "BDP", 2, of_a_part=True)
def _start_up_flight(view: View) -> Samples:
    """Return the largest flight in start-up, in BDP."""
    flow = view.flow
    _, end_s = _start_up(flow)
    inside = flow.sent_s < end_s + flow.base_rtt_s
    at = int(flow.flight[inside].argmax())
    return one(float(flow.flight[at] / flow.bdp_bytes), float(flow.sent_s[at]))


@ROWS.add("bbr_drain_rate", "rate in Drain, relative to the link's", "", 2)
def _drain_rate(view: View) -> Samples:
    """Return the median r in Drain, the time after start-up in which more than a BDP is in flight."""
    flow = view.flow
    _, begin_s = _start_up(flow)
    at, rate = rates(flow, begin_s, _settled_s(flow))
    low = numpy.flatnonzero((_flight(flow, at + flow.base_rtt_s) <= _DRAINED) | (rate > _DRAINING))
    inside = rate[: low[0]] if len(low) else rate
    if not len(inside):
        raise Invisible("it drained within a round trip")
    return one(float(numpy.median(inside)), begin_s)


@ROWS.add("bbr_drained_rtts", "round trips until what start-up put in flight is a BDP", "round trips", 1)
def _drained_rtts(view: View) -> Samples:
    """Return the base round trips from the most that is in flight in start-up until no more than a BDP is."""
    flow = view.flow
    inside = flow.sent_s < _settled_s(flow)
    most = int(flow.flight[inside].argmax())
    if flow.flight[most] <= _DRAINED * flow.bdp_bytes:
        raise Invisible("start-up put no more than a BDP in flight")
    low = numpy.flatnonzero(flow.flight[most:] <= _DRAINED * flow.bdp_bytes)
    begin_s = float(flow.sent_s[most])
    end_s = float(flow.sent_s[most + low[0]]) if len(low) else view.over_s
    return one((end_s - begin_s) / flow.base_rtt_s, begin_s)


@ROWS.add("usual_flight", "flight that two thirds of the packets do not exceed after start-up", "BDP", 2)
def _usual_flight(view: View) -> Samples:
    """Return the flight after start-up that two thirds of the packets do not exceed, in BDP."""
    flow = view.flow
    first = int(numpy.searchsorted(flow.sent_s, _settled_s(flow)))
    if len(flow.sent_s) - first < 2:
        raise Invisible("the transfer was over too soon after start-up")
    return one(float(numpy.percentile(flow.flight[first:], _MOSTLY) / flow.bdp_bytes), _settled_s(flow))


@ROWS.add("bbr_cruise_rate", "median rate after start-up, relative to the link's", "", 3, independent=True)
def _cruise_rate(view: View) -> Samples:
    """Return the median r of each stretch of two seconds after start-up."""
    flow = view.flow
    at, rate = rates(flow, _settled_s(flow), float(flow.sent_s[-1]), _CRUISE_RTTS)
    blocks = max(int((at[-1] - at[0]) / _BLOCK_S), 0) if len(at) else 0
    parts = zip(numpy.array_split(at, blocks), numpy.array_split(rate, blocks), strict=True) if blocks else ()
    pairs = [(float(numpy.median(of_part)), float(times[0])) for times, of_part in parts]
    return shown(pairs, "the transfer was over too soon after start-up")


def _phases(view: View, up: bool) -> list[tuple[float, float, float]]:
    """Return (begin, end, median r) of the phases of ProbeBW that are faster (`up`) or slower than the link.

    r is read over so many round trips that what is released together is not much. Slower ones follow a faster one.
    """
    flow = view.flow
    together = _TOGETHER * flow.full_bytes / flow.bdp_bytes
    rtts = math.ceil(together / _COARSE)
    at, rate = rates(flow, _settled_s(flow), float(flow.sent_s[-1]), rtts)
    around = [(a - rtts * flow.base_rtt_s, b + 3 * flow.base_rtt_s) for a, b in dips(view)]
    inside = (rate > max(_UP, 1 + together / rtts)) if up else ((rate < _DOWN) & (rate > 0.6))
    for begin_s, end_s in around:
        inside &= (at < begin_s) | (at > end_s)
    phases = [
        (float(at[first]), float(at[last - 1]) + rtts * flow.base_rtt_s, float(numpy.median(rate[first:last])))
        for first, last in stretches(inside)
        if last - first >= 4  # a round trip and more
    ]
    if up:
        return phases
    follows_s = _FOLLOWS_RTTS * flow.base_rtt_s
    ends = [(begin, end + follows_s) for begin, end, _ in _phases(view, up=True)]
    return [phase for phase in phases if any(begin < phase[0] <= end for begin, end in ends)]


@ROWS.add("bbr_up_rate", "rate while it probes for bandwidth, relative to the link's", "", 2, independent=True)
def _up_rate(view: View) -> Samples:
    """Return r of each phase that probes for bandwidth."""
    pairs = [(rate, begin) for begin, _, rate in _phases(view, up=True)]
    return shown(pairs, "it never sent faster than the link for a round trip once start-up was over")


@ROWS.add("bbr_up_flight", "most in flight while it probes for bandwidth", "BDP", 2, independent=True)
def _up_flight(view: View) -> Samples:
    """Return the largest flight in each phase that probes for bandwidth, in BDP."""
    flow = view.flow
    pairs = []
    for begin, end, _ in _phases(view, up=True):
        a, b = numpy.searchsorted(flow.sent_s, (begin, end))
        pairs.append((float(flow.flight[a:b].max() / flow.bdp_bytes), begin))
    return shown(pairs, "it never sent faster than the link for a round trip once start-up was over")


def _probe_gaps(view: View) -> list[tuple[float, float]]:
    """Return (seconds, begin) from the begin of each phase that probes for bandwidth to the next one's."""
    begins = [begin for begin, _, _ in _phases(view, up=True)]
    if len(begins) < _FEW_PROBES:
        raise Invisible(f"{len(begins)} probes for bandwidth: too few to say how soon the next one comes")
    return [(b - a, a) for a, b in itertools.pairwise(begins)]


@ROWS.add("bbr_probe_interval", "seconds from one probe to the next", "s", 2)
def _probe_interval(view: View) -> Samples:
    """Return the median of the seconds from one probe to the next."""
    return one(float(numpy.median([gap for gap, _ in _probe_gaps(view)])), _settled_s(view.flow))


@ROWS.add("bbr_probe_again", "least seconds from one probe to the next", "s", 2)
def _probe_again(view: View) -> Samples:
    """Return the seconds from a probe to the next where that comes soonest."""
    return one(*min(_probe_gaps(view)))


@ROWS.add("bbr_down_rate", "rate while it drains what it probed with, relative to the link's", "", 2, independent=True)
def _down_rate(view: View) -> Samples:
    """Return r of each phase that drains the queue that probing left."""
    pairs = [(rate, begin) for begin, _, rate in _phases(view, up=False)]
    return shown(pairs, "once start-up was over, it never sent slower than the link for a round trip after a probe")


def dips(view: View) -> list[tuple[float, float]]:
    """Return (begin, end) of each time in which the flight is low for 100 ms or more, as in ProbeRTT."""
    flow = view.flow
    inside = flow.sent_s >= _settled_s(flow)
    if inside.sum() < 2:
        return []
    flights, times = flow.flight[inside], flow.sent_s[inside]
    low = flights < _DIP * numpy.median(flights)
    ends = stretches(low)
    return [(float(times[a]), float(times[b])) for a, b in ends if b < len(times) and times[b] - times[a] >= _DIP_S]


def _overdue(view: View) -> list[tuple[float, float]]:
    """Return (begin, seconds) of each stretch after start-up that has no dip and in which a ProbeRTT was overdue."""
    flow = view.flow
    probes = dips(view)
    begins = [_settled_s(flow), *(end for _, end in probes)]
    ends = [*(begin for begin, _ in probes), float(flow.sent_s[-1])]
    return [(a, b - a) for a, b in zip(begins, ends, strict=True) if b - a > _OVERDUE_S]


def _require_dips(view: View) -> list[tuple[float, float]]:
    """Return the dips, or none if a ProbeRTT was overdue. Raises Invisible if the transfer was too short for either."""
    probes = dips(view)
    if not probes and not _overdue(view):
        raise Invisible("the flight showed no dip like ProbeRTT's, and none was overdue")
    return probes


@ROWS.add("bbr_dip_interval", "least seconds from one ProbeRTT to the next", "s", 1, take="least")
def _dip_interval(view: View) -> Samples:
    """Return the seconds from one dip to the next, and the lengths of stretches in which one was overdue."""
    begins = [begin for begin, _ in dips(view)]
    pairs = [(b - a, a) for a, b in itertools.pairwise(begins)]
    # A stretch between two dips is among the intervals already.
    pairs += [(length, a) for a, length in _overdue(view) if not begins or not begins[0] < a < begins[-1]]
    return shown(pairs, f"dips of the flight like ProbeRTT's: {len(begins)} seen, and none was overdue")


@ROWS.add("bbr_dip_depth", "least in flight in ProbeRTT", "BDP", 2, independent=True)
def _dip_depth(view: View) -> Samples:
    """Return the least flight in each dip, in BDP; if there is no dip, the flight that _lowest() finds."""
    flow = view.flow
    pairs = []
    for begin, end in _require_dips(view):
        a, b = numpy.searchsorted(flow.sent_s, (begin, end))
        pairs.append((float(flow.flight[a:b].min() / flow.bdp_bytes), begin))
    return shown(pairs, "") if pairs else one(*_lowest(flow))


def _lowest(flow: Flow) -> tuple[float, float]:
    """Return the lowest F that was not exceeded for the length of a dip, after start-up, and when that was."""
    first = int(numpy.searchsorted(flow.sent_s, _settled_s(flow)))
    ends = numpy.searchsorted(flow.sent_s, flow.sent_s[first:] + _DIP_S)
    most = [(float(flow.flight[at:end].max()), at) for at, end in enumerate(ends, first) if end < len(flow.sent_s)]
    if not most:
        raise Invisible("the transfer ended within the length of a dip after start-up")
    flight, at = min(most)
    return flight / flow.bdp_bytes, float(flow.sent_s[at])


@ROWS.add("flight_least", "least in flight for a tenth of a second", "packets", 1)
def _flight_least(view: View) -> Samples:
    """Return the lowest flight that was not exceeded for the length of a dip, after start-up, in full packets.

    Raises Invisible if there was no ProbeRTT and none was overdue.
    """
    flow = view.flow
    _require_dips(view)
    least, at_s = _lowest(flow)
    return one(least * flow.bdp_bytes / flow.full_bytes, at_s)


@ROWS.add("later_rate", "rate that a quarter of the round trips exceed after start-up, relative to the link's", "", 2)
def _later_rate(view: View) -> Samples:
    """Return the r that three quarters of the base round trips after start-up do not exceed."""
    flow = view.flow
    _, rate = rates(flow, _settled_s(flow), float(flow.sent_s[-1]))
    if not len(rate):
        raise Invisible("the transfer was over too soon after start-up")
    return one(float(numpy.percentile(rate, 75)), _settled_s(flow))


@ROWS.add("bbr_dip_length", "length of ProbeRTT", "s", 2, independent=True)
def _dip_length(view: View) -> Samples:
    """Return how long each dip lasted, in seconds; zero if there was none although one was overdue."""
    pairs = [(b - a, a) for a, b in _require_dips(view)]
    return shown(pairs, "") if pairs else one(0.0, _settled_s(view.flow))


def _later(view: View, times: Floats) -> tuple[numpy.typing.NDArray[numpy.bool_], float]:
    """Return which of the `times` are in the second half of the transfer, and the half's begin, which is its length."""
    end_s = float(numpy.nanmax(times)) if view.ended_s is None else view.ended_s
    return (times >= end_s / 2) & (times <= end_s), end_s / 2


@ROWS.add("flight_packets", "95th percentile of the flight", "packets", 1)
def _flight_packets(view: View) -> Samples:
    """Return the 95th percentile of the flight in the second half, in full packets."""
    flow = view.flow
    inside, _ = _later(view, flow.sent_s)
    if inside.sum() < 20:
        raise Invisible("the transfer was over too soon")
    return one(float(numpy.percentile(flow.flight[inside], 95) / flow.full_bytes), float(flow.sent_s[inside][0]))


@ROWS.add("later_lost", "share of packets lost in the second half", "", 3)
def _later_lost(view: View) -> Samples:
    """Return the share of packets of the second half that were lost."""
    flow = view.flow
    inside, begin_s = _later(view, flow.sent_s)
    if not inside.any():
        raise Invisible("nothing was sent in the second half")
    return one(float(flow.lost[inside].mean()), begin_s)


@ROWS.add("later_throughput", "share of the link's rate used in the second half", "", 3)
def _later_throughput(view: View) -> Samples:
    """Return what arrived in the second half, divided by what the link carries in that time."""
    flow = view.flow
    inside, half_s = _later(view, flow.out_s)
    return one(float(flow.bytes[inside].sum() / flow.bytes_per_s / half_s), half_s)


@ROWS.add(
    "bbr_growth_after_dip", "highest share of the link's rate within seven seconds of a ProbeRTT in start-up", "", 2
)
def _growth_after_dip(view: View) -> Samples:
    """Return whether start-up went on after a dip: the largest r from five to twelve seconds after the request."""
    flow = view.flow
    at, rate = rates(flow, flow.request_s, float(flow.sent_s[-1]))
    before, after = rate[at < flow.request_s + 5], rate[(at >= flow.request_s + 5) & (at < flow.request_s + 12)]
    if not len(before) or not len(after) or before.max() <= 0:
        raise Invisible("the transfer was over before ProbeRTT")
    if before.max() >= _FILLED:
        raise Invisible("start-up was over before five seconds")
    return one(float(after.max()), flow.request_s + 5)
