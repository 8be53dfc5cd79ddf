"""Observe a sender under conditions that few networks have: long outages, last packets that are lost, huge windows."""

import numpy

from conformance.model.clauses.observables_events import after_outage, path_healed_s, payload_bytes
from conformance.model.clauses.observables_growth import last_loss, rounds, rounds_after
from conformance.model.clauses.observables_silence import ACKNOWLEDGEMENT_BYTES, is_acknowledgement
from conformance.model.clauses.seen import Invisible, Rows, View
from conformance.model.diagnosis.samples import Samples, one

ROWS = Rows()

#: the fewest rounds that show a slope
_LEAST_ROUNDS = 4
#: the round after an outage whose window shows whether slow start began anew: four doublings
_RESTARTED_ROUND = 4
#: the most packets that are sent in the first round from the least window (CL001)
_LEAST_PACKETS = 6


@ROWS.add("restart_after_s", "seconds from the end of an outage to the first arrival", "s", 1)
def _restart_after_s(view: View) -> Samples:
    """Return the seconds from the end of an outage to the first packet that arrives."""
    end_s = view.event.end_s
    later = view.out_s[view.out_s > end_s]
    if not len(later):
        raise Invisible("nothing arrived after the outage")
    return one(float(later.min()) - end_s, end_s)


@ROWS.add("restart_window", "window in the fifth round after an outage", "packets", 1)
def _restart_window(view: View) -> Samples:
    """Return the window, in full packets, in the fifth round after an outage that left the least window."""
    flow = view.flow
    after = rounds(flow, path_healed_s(view, view.event), float(flow.sent_s[-1]))
    if len(after) <= _RESTARTED_ROUND:
        raise Invisible("the transfer was over too soon after the outage")
    if after_outage(view).values[0] > _LEAST_PACKETS:
        raise Invisible("the outage did not reduce the window to the least")
    return one(after[_RESTARTED_ROUND].packets, after[_RESTARTED_ROUND].begin_s)


def _lost_at(view: View) -> int:
    """Return the number of the first packet that the last entry of the schedule dropped. Raises Invisible."""
    begins_s = view.begins_s(view.entries[-1])
    lost = numpy.flatnonzero(numpy.isnan(view.out_s) & (view.sent_s > begins_s))
    if not len(lost):
        raise Invisible("the packets that were to be lost were never sent")
    return int(lost[0])


@ROWS.add("first_probe_rtts", "silence after the end of a body was lost, in round trips", "round trips", 2)
def _first_probe_rtts(view: View) -> Samples:
    """Return the time from the last packet of a body whose end is lost to the first packet after it, in round trips.

    In between, the sender may acknowledge what the client sent.
    """
    lost_s = float(view.sent_s[_lost_at(view)])
    # What is under way when the end is lost is acknowledged within a round trip; a sender may answer that at once.
    times = view.sent_s[(view.sent_s >= lost_s) & ~is_acknowledgement(view)]
    gaps = numpy.diff(times)
    if not len(gaps):
        raise Invisible("nothing was sent after the end of a body was lost")
    at = int(numpy.argmax(gaps > view.base_rtt_s / 2))
    if not gaps[at] > view.base_rtt_s / 2:
        raise Invisible("it was never silent after the end of a body was lost")
    return one(float(gaps[at]) / view.base_rtt_s, float(times[at]))


@ROWS.add(
    "probe_timeout_rtts", "silence after an answer was lost, until a timer ends it, in round trips", "round trips", 2
)
def _probe_timeout_rtts(view: View) -> Samples:
    """Return first_probe_rtts, if a packet with data ends the silence and the client sent nothing meanwhile.

    What the client sends may tell of the loss, and a small packet may be of another reason than a probe.
    """
    silence = _first_probe_rtts(view)
    begins_s = float(silence.times_s[0])
    ends_s = begins_s + float(silence.values[0]) * view.base_rtt_s
    if view.packets.bytes[numpy.searchsorted(view.sent_s, ends_s - 1e-6)] <= ACKNOWLEDGEMENT_BYTES:
        raise Invisible("what ended the silence carries too little to be known for a probe")
    client_s = view.packets.client_ns / 1e9
    if ((client_s > begins_s + 0.95 * view.base_rtt_s) & (client_s <= ends_s)).any():
        raise Invisible("the client sent something before the sender's timer ran out")
    return silence


@ROWS.add("request_rtts", "round trips from the server's first packet to the request", "round trips", 1)
def _request_rtts(view: View) -> Samples:
    """Return the time from the server's first packet to the request, in round trips: how long a handshake took."""
    return one(view.flow.request_s / view.base_rtt_s, 0.0)


@ROWS.add("handshake_ratio", "sent before a second packet of the client came, relative to the first", "", 1)
def _handshake_ratio(view: View) -> Samples:
    """Return the ratio of the UDP payloads of what was sent before the client's second packet came to its first's."""
    packets = view.packets
    if len(packets.client_ns) < 2:
        raise Invisible("the client sent fewer than two packets")
    sent = packets.bytes[packets.sent_ns < packets.client_ns[1]]
    return one(payload_bytes(sent) / payload_bytes(packets.client_bytes[:1]), 0.0)


@ROWS.add("small_share", "packets that carry no data, relative to full ones", "", 2)
def _small_share(view: View) -> Samples:
    """Return the number of packets that are as small as a bare acknowledgement for each full one."""
    sizes = view.packets.bytes
    full = sizes >= view.flow.full_bytes
    return one(float((sizes <= ACKNOWLEDGEMENT_BYTES).sum() / full.sum()), 0.0)


@ROWS.add("kept_of_last", "share of the window that the last of two losses left", "", 2)
def _kept_of_last(view: View) -> Samples:
    """Return the share of the window that was left by the losses of the schedule's last entry."""
    event = last_loss(view)
    if not numpy.isfinite(event.kept):
        raise Invisible("the transfer was over too soon after the loss")
    return one(event.kept, event.known_s)


@ROWS.add("growth_after_loss", "growth of the window after a loss, in packets per round", "packets", 2)
def _growth_after_loss(view: View) -> Samples:
    """Return the packets per round by which the window grew after the loss of the schedule's last entry.

    It is the median slope between two rounds: in some, the client's flow control leaves less to send.
    """
    after = rounds_after(view, last_loss(view))
    if len(after) < _LEAST_ROUNDS:
        raise Invisible(f"{_LEAST_ROUNDS} rounds after the loss are needed, and {len(after)} were seen")
    packets = numpy.array([at.packets for at in after])
    earlier, later = numpy.triu_indices(len(after), 1)
    slopes = (packets[later] - packets[earlier]) / (later - earlier)
    return one(float(numpy.median(slopes)), after[0].begin_s)
