"""The one table of what clauses are judged by: pure functions over a trial's packets.

Where `why` reads the same (model/diagnosis/features.py), its function serves.
"""

from collections.abc import Callable, Mapping

import numpy

from conformance.model.clauses.seen import Invisible, Observable, Seen
from conformance.model.diagnosis import features
from conformance.model.diagnosis.features import Samples
from conformance.model.diagnosis.flow import Flow


def _feature(of: Callable[[Flow], Samples], invisible: str) -> Callable[[Seen], Samples]:
    """Return a feature of flows as an observable; `invisible`: why there are no samples, where there are none."""

    def observe(seen: Seen) -> Samples:
        found = of(seen.flow)
        if not len(found):
            raise Invisible(invisible)
        return found

    return observe


_NO_ISOLATED = "no loss stood alone in a window of 8 packets or more"

#: packets closer than this share of their time at the bottleneck were sent at once (guest/bursts.py)
_AT_ONCE = 0.1


def _longest_burst(seen: Seen) -> Samples:
    """Return the packets of the longest burst after the first round trip, in full packets."""
    flow = seen.flow
    first = int(numpy.searchsorted(flow.sent_s, flow.request_s + 0.95 * flow.base_rtt_s))
    if len(flow.sent_s) - first < 2:
        raise Invisible("nothing was sent after the first round trip")
    sent_s, sizes = flow.sent_s[first:], flow.bytes[first:]
    apart = numpy.flatnonzero(numpy.diff(sent_s) > _AT_ONCE * flow.full_bytes / flow.bytes_per_s) + 1
    begins = numpy.concatenate(([0], apart))
    packets = numpy.add.reduceat(sizes, begins) / flow.full_bytes
    at = int(packets.argmax())
    return Samples(values=packets[at : at + 1], times_s=sent_s[begins[at : at + 1]])


#: by name
OBSERVABLES: Mapping[str, Observable] = {
    row.name: row
    for row in (
        Observable(
            name="kept", title="share of the window that an isolated loss left", unit="", digits=2,
            of=_feature(features.kept, _NO_ISOLATED), independent=True,
        ),
        Observable(
            name="kept_of_several", title="share of the window that a full queue's losses left", unit="", digits=2,
            of=_feature(features.kept_of_several, "no event of several losses stood alone"),
        ),
        Observable(
            name="responded", title="share of losses that a smaller window followed", unit="", digits=2,
            of=_feature(features.responded, "nothing was lost in a window of 16 packets or more"),
        ),
        Observable(
            name="initial_window", title="full packets sent in the first round trip", unit="packets", digits=1,
            of=_feature(features.initial_window, "nothing was sent in the first round trip"),
        ),
        Observable(
            name="growth", title="packets a round trip by which the window grew between losses", unit="packets",
            digits=2, of=_feature(features.growth, "no four round trips between two losses"), independent=True,
        ),
        Observable(
            name="longest_burst", title="packets of the longest burst", unit="packets", digits=0, of=_longest_burst,
        ),
        Observable(
            name="burst", title="packets sent at once after start-up, as a packet sees it", unit="packets", digits=1,
            of=_feature(features.burst, "too little was sent after start-up"),
        ),
        Observable(
            name="start_up_burst", title="packets sent at once in start-up, as a packet sees it", unit="packets",
            digits=1, of=_feature(features.start_up_burst, "too little was sent in start-up"),
        ),
    )
}  # fmt: skip
