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
)
from conformance.model.clauses.seen import Invisible, Observable, View
from conformance.model.diagnosis import features
from conformance.model.diagnosis.flow import Flow, loss_events
from conformance.model.diagnosis.samples import Samples, burst_begins, one, samples

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


def _samples(pairs: list[tuple[float, float]], invisible: str) -> Samples:
    """Return Samples of (value, time) pairs. Raises Invisible if there are none."""
    pairs_kept = samples(pairs)
    if not len(pairs_kept):
        raise Invisible(invisible)
    return pairs_kept


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
    return _samples([(float(packets[at]), float(sent_s[begins[at]]))], "nothing was sent")


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
    return _samples(pairs, "no loss was isolated in a window of 16 packets or more")


def _first_kept(view: View) -> Samples:
    """Return the share of the window that the first loss, which ends start-up, left."""
    events = loss_events(view.flow)
    if not events or not events[0].before or not numpy.isfinite(events[0].after):
        raise Invisible("nothing was lost, or the transfer ended with the loss")
    return _samples([(events[0].kept, events[0].known_s)], "the window at the first loss is not known")


def _kept_low(view: View) -> Samples:
    """Return the lower quartile of the shares of the window that isolated losses left."""
    kept = features.kept(view.flow)
    if len(kept) < _LEAST_OF_QUARTILE:
        raise Invisible(f"a quartile needs {_LEAST_OF_QUARTILE} isolated losses in windows of 8 packets or more")
    at = int(numpy.argsort(kept.values)[len(kept) // 4])
    return one(float(kept.values[at]), float(kept.times_s[at]))


def _ect_1(view: View) -> Samples:
    """Return the share of packets that were sent with ECT(1)."""
    marked = view.packets.ecn_sent == ECT_1
    return _samples([(float(marked.mean()), float(view.sent_s[marked.argmax()]))], "nothing was sent")


_NO_ISOLATED = "no loss was isolated in a window of 8 packets or more"
_PACKETS = "packets"

_ROWS = (
    Observable(
        name="kept", title="share of the window that an isolated loss left", unit="", digits=2,
        of=_feature(features.kept, _NO_ISOLATED), independent=True, of_a_part=True,
    ),
    Observable(
        name="kept_low", title="share of the window that isolated losses left, lower quartile", unit="", digits=2,
        of=_kept_low, of_a_part=True,
    ),
    Observable(
        name="kept_of_several", title="share of the window that a full queue's losses left", unit="", digits=2,
        of=_feature(features.kept_of_several, "no event of several losses was isolated"), of_a_part=True,
    ),
    Observable(
        name="responded", title="share of losses that were followed by a smaller window", unit="", digits=2,
        take="mean", of=_feature(features.responded, "nothing was lost in a window of 16 packets or more"), least=5,
        of_a_part=True,
    ),
    Observable(
        name="returned", title="share of isolated losses after which the old window was back within four round trips",
        unit="", digits=2, take="mean", of=_returned, least=5, of_a_part=True,
    ),
    Observable(
        name="first_kept", title="share of the window that the first loss left", unit="", digits=2, of=_first_kept,
        of_a_part=True,
    ),
    Observable(
        name="growth", title="growth of the window between losses, in packets per round trip", unit=_PACKETS, digits=2,
        of=_feature(features.growth, "there were never four round trips between two losses"), independent=True,
        of_a_part=True,
    ),
    Observable(
        name="doubling", title="growth of the window in the round trip after a recovery", unit="", digits=2,
        of=_feature(features.doubling, "there were never two round trips between two losses"), independent=True,
        of_a_part=True,
    ),
    Observable(
        name="epoch_s", title="seconds from one reduction to the next", unit="s", digits=1,
        of=_feature(features.epoch_s, "fewer than two reductions"), of_a_part=True,
    ),
    Observable(
        name="initial_window", title="full packets sent in the first round trip, less those acknowledged by then",
        unit=_PACKETS, digits=1, of=_initial_window, of_a_part=True,
    ),
    Observable(
        name="start_up_growth", title="packets in a round trip of start-up, relative to the one before", unit="",
        digits=2, of=_feature(features.start_up_growth, "start-up was over in a round trip"), of_a_part=True,
    ),
    Observable(
        name="start_up_losses", title="packets lost at the end of start-up, in BDP", unit="BDP", digits=2,
        of=_feature(features.start_up_losses, "nothing was sent"), of_a_part=True,
    ),
    Observable(
        name="burst", title="packets sent at once: 99 % are in bursts no longer than this", unit=_PACKETS, digits=1,
        of=_burst, of_a_part=True,
    ),
    Observable(
        name="first_burst", title="longest burst in the first round trip", unit=_PACKETS, digits=1, of=_first_burst,
    ),
    Observable(
        name="throughput", title="share of the link's rate that it used", unit="", digits=3,
        of=_feature(features.throughput, "nothing arrived"),
    ),
    Observable(name="ect_1", title="share of packets sent with ECT(1)", unit="", digits=3, of=_ect_1, of_a_part=True),
    *observables_events.ROWS,
    *observables_requests.ROWS,
    *observables_bbr.ROWS,
    *observables_cases.ROWS,
    *observables_conditions.ROWS,
    *observables_growth.ROWS,
    *observables_recovery.ROWS,
)  # fmt: skip

#: {name: Observable}
OBSERVABLES: Mapping[str, Observable] = {row.name: row for row in _ROWS}
