"""List all observables by which clauses are judged; each is a pure function of a trial's packets.

If `why` reads the same number (model/diagnosis/features.py), its function is used here, too. Observables of outages,
BBR's states and the like are in the modules observables_*.py.
"""

from collections.abc import Callable, Mapping

import numpy

from conformance.model.captures.packets import ECT_1
from conformance.model.clauses import (
    observables_bbr,
    observables_cases,
    observables_conditions,
    observables_events,
    observables_growth,
    observables_recovery,
    observables_requests,
    observables_silence,
)
from conformance.model.clauses.seen import Invisible, Observable, Rows, View, shown
from conformance.model.diagnosis import features
from conformance.model.diagnosis.flow import Flow, loss_events
from conformance.model.diagnosis.samples import Samples, burst_begins, one

ROWS = Rows()

#: share of packets that are in bursts no longer than the reported one: a single longer burst says little
_USUAL = 0.99
#: a window above this share of its old size counts as the old one
_AS_BEFORE = 0.95
#: round trips after a loss within which the old window is back only if the reduction was undone
_SOON = 4
#: smaller packets of the handshake carry acknowledgements alone, and open no window
_ACKNOWLEDGEMENT_BYTES = 128
#: packets: in a smaller window, one packet more or less is a large share
_LEAST_WINDOW = 16
#: isolated losses of a trial
_LEAST_OF_QUARTILE = 8


def _feature(of: Callable[[Flow], Samples], invisible: str) -> Callable[[View], Samples]:
    """Return a feature of flows as an observable; `invisible` is the reason if there are no samples."""

    def observe(view: View) -> Samples:
        samples = of(view.flow)
        if not len(samples):
            raise Invisible(invisible)
        return samples

    return observe


@ROWS.add(
    "initial_window", "full packets sent in the first round trip, less those acknowledged by then", "packets", 1,
    of_a_part=True,
)  # fmt: skip
def _initial_window(view: View) -> Samples:
    """Return the full packets sent in the first round trip, less the packets of the handshake acknowledged by then.

    Each of these may open the window by a packet (RFC 5681, 3.1; by its bytes in RFC 9002, 7.3.1).
    """
    flow = view.flow
    sent = features.initial_window(flow)
    if not sent.values[0]:
        raise Invisible("nothing was sent in the first round trip")
    known = flow.known_s <= flow.request_s + features.FIRST_ROUND * flow.base_rtt_s
    opening = (flow.sent_s < flow.request_s) & ~flow.lost & known & (flow.bytes > _ACKNOWLEDGEMENT_BYTES)
    return one(max(float(sent.values[0]) - int(opening.sum()), 0.0), flow.request_s)


@ROWS.add("burst", "packets sent at once: 99 % are in bursts no longer than this", "packets", 1, of_a_part=True)
def _burst(view: View) -> Samples:
    """Return the burst length, in full packets, that the bursts of 99 % of packets do not exceed.

    Packets of the first round trip are left out.
    """
    flow = view.flow
    first = int(numpy.searchsorted(flow.sent_s, flow.request_s + 0.95 * flow.base_rtt_s))
    if len(flow.sent_s) - first < 2:
        raise Invisible("nothing was sent after the first round trip")
    sent_s, sizes = flow.sent_s[first:], flow.bytes[first:]
    begins = burst_begins(flow, first, len(flow.sent_s))
    packets = numpy.add.reduceat(sizes, begins) / flow.full_bytes
    order = numpy.argsort(packets, kind="stable")
    within = numpy.searchsorted(numpy.cumsum(packets[order]), _USUAL * packets.sum())
    at = order[min(int(within), len(order) - 1)]
    return shown([(float(packets[at]), float(sent_s[begins[at]]))], "nothing was sent")


@ROWS.add("first_burst", "longest burst in the first round trip", "packets", 1)
def _first_burst(view: View) -> Samples:
    """Return the longest burst in the first round trip after the request, in full packets."""
    flow = view.flow
    a, b = numpy.searchsorted(flow.sent_s, (flow.request_s - 1e-9, flow.request_s + 0.95 * flow.base_rtt_s))
    if b - a < 2:
        raise Invisible("nothing was sent in the first round trip")
    begins = burst_begins(flow, a, b)
    packets = numpy.add.reduceat(flow.bytes[a:b], begins) / flow.full_bytes
    at = int(packets.argmax())
    return one(float(packets[at]), float(flow.sent_s[a:b][begins[at]]))


@ROWS.add(
    "returned",
    "share of isolated losses after which the old window was back within four round trips",
    "",
    2,
    take="mean",
    least=5,
    of_a_part=True,
)
def _returned(view: View) -> Samples:
    """Return 1 for each isolated loss after which the window was soon back at its old size, 0 for others."""
    flow = view.flow
    isolated = {float(at) for at in features.kept(flow).times_s}
    pairs = []
    for event in loss_events(flow):
        if event.known_s in isolated and event.before >= _LEAST_WINDOW:
            end_s = event.known_s + _SOON * event.rtt_s
            later = flow.window(event.known_s + event.rtt_s, end_s)
            pairs.append((float(later > _AS_BEFORE * event.before), event.known_s))
    return shown(pairs, "no loss was isolated in a window of 16 packets or more")


@ROWS.add("first_kept", "share of the window that the first loss left", "", 2, of_a_part=True)
def _first_kept(view: View) -> Samples:
    """Return the share of the window that the first loss, which ends start-up, left."""
    events = loss_events(view.flow)
    if not events or not events[0].before or not numpy.isfinite(events[0].after):
        raise Invisible("nothing was lost, or the transfer ended with the loss")
    return shown([(events[0].kept, events[0].known_s)], "the window at the first loss is not known")


@ROWS.add("kept_low", "share of the window that isolated losses left, lower quartile", "", 2, of_a_part=True)
def _kept_low(view: View) -> Samples:
    """Return the lower quartile of the shares of the window that isolated losses left."""
    kept = features.kept(view.flow)
    if len(kept) < _LEAST_OF_QUARTILE:
        raise Invisible(f"a quartile needs {_LEAST_OF_QUARTILE} isolated losses in windows of 8 packets or more")
    at = int(numpy.argsort(kept.values)[len(kept) // 4])
    return one(float(kept.values[at]), float(kept.times_s[at]))


@ROWS.add("ect_1", "share of packets sent with ECT(1)", "", 3, of_a_part=True)
def _ect_1(view: View) -> Samples:
    """Return the share of packets that were sent with ECT(1)."""
    marked = view.packets.ecn_sent == ECT_1
    return shown([(float(marked.mean()), float(view.sent_s[marked.argmax()]))], "nothing was sent")


ROWS.add("kept", "share of the window that an isolated loss left", "", 2, independent=True, of_a_part=True)(
    _feature(features.kept, "no loss was isolated in a window of 8 packets or more")
)
ROWS.add("kept_of_several", "share of the window that a full queue's losses left", "", 2, of_a_part=True)(
    _feature(features.kept_of_several, "no event of several losses was isolated")
)
ROWS.add(
    "responded", "share of losses that were followed by a smaller window", "", 2, take="mean", least=5, of_a_part=True
)(_feature(features.responded, "nothing was lost in a window of 16 packets or more"))
ROWS.add(
    "growth",
    "growth of the window between losses, in packets per round trip",
    "packets",
    2,
    independent=True,
    of_a_part=True,
)(_feature(features.growth, "there were never four round trips between two losses"))
ROWS.add(
    "doubling", "growth of the window in the round trip after a recovery", "", 2, independent=True, of_a_part=True
)(_feature(features.doubling, "there were never two round trips between two losses"))
ROWS.add("epoch_s", "seconds from one reduction to the next", "s", 1, of_a_part=True)(
    _feature(features.epoch_s, "fewer than two reductions")
)
ROWS.add("start_up_growth", "packets in a round trip of start-up, relative to the one before", "", 2, of_a_part=True)(
    _feature(features.start_up_growth, "start-up was over in a round trip")
)
ROWS.add("throughput", "share of the link's rate that it used", "", 3)(_feature(features.throughput, "nothing arrived"))

#: {name: Observable}
OBSERVABLES: Mapping[str, Observable] = {
    **ROWS,
    **observables_events.ROWS,
    **observables_requests.ROWS,
    **observables_bbr.ROWS,
    **observables_cases.ROWS,
    **observables_conditions.ROWS,
    **observables_growth.ROWS,
    **observables_recovery.ROWS,
    **observables_silence.ROWS,
}
