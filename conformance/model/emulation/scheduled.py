"""Check, by the kernel's own counters, that a link's direction did what was requested from each change to the next.

After each change, the guest asks which parameters are in force and how many packets left or were dropped so far. So an
outage in which packets came and none was lost is an error, and so is a change that the kernel accepted but did not
make.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.emulation import queue_counts, rtnl, shaping
from conformance.model.emulation.calibration import binomial_p_value
from conformance.model.networks.links import WAYS, Direction
from conformance.model.networks.network import Network
from conformance.model.networks.schedule import Change

#: p-value below which losses are an error. Every trial is tested, and a correct one must not fail, so it is lower than
#: that of a calibration, which is made once for a setting.
_P_VALUE = 1e-9
_MOST_U32 = 0xFFFFFFFF
#: permissible error of a delay, in ns: each trial's delays differ by up to 10 us, and a netem before a limiter always
#: has at least 1 us
_OFF_NS = 12_500
#: A queue's rate is checked between two samples, a tenth of a second apart, if more stood in the queue than leaves in
#: that time: permissible error of the rate, and the bytes of a frame and of a super-packet.
_RATE_SLACK, _FRAME_BYTES, _SUPER_BYTES = 0.02, 1514, 65_536
#: A sample is due in the same loop that starts clients, which takes 0.2 ms for each, but is stamped with the time when
#: it was due. So one that is due from this much before to this much after a start, in s, may be late.
_BEFORE_START_S, _AFTER_START_S = 0.001, 0.01
#: how late a change may be, in ns: of many changes at one time, each costs a microsecond
_MOST_LATE_NS = 50_000
#: queues that drop packets only on arrival, and count each once
_PLAIN = ("bfifo", "pfifo")

Facts = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counted:
    """Packets counted until `at_ns` of a trial: those that left, were lost before the queue, or were dropped by it.

    `standing`: those that were in the whole chain at that time.
    """

    at_ns: int
    out: int
    lost: int
    dropped: int
    standing: int


def looked_at_s(facts: Facts) -> float:
    """Return when, in s, the guest read its links: after the flows had ended and after all changes, even later ones."""
    times = [change["at_ns"] / 1e9 for change in facts["changes"]]
    return max([float(facts["elapsed_s"]), *(math.nextafter(at_s, math.inf) for at_s in times)])


def behind_changes(facts: Facts, link: int, way: int) -> list[Facts]:
    """Return what the kernel told the guest about a direction after each of its changes, in order."""
    return [
        {**counts, "at_ns": change["at_ns"]}
        for change in facts["changes"]
        for counts in change["counts"]
        if (counts["link"], counts["way"]) == (link, way)
    ]


def change_problems(network: Network, facts: Facts) -> Iterator[str]:
    """Yield sentences about changes that were not made, that the kernel refused, or that came late."""
    reported = {change["at_ns"] for change in facts["changes"]}
    for link in network.links:
        for way in WAYS:
            for due in network.changes(link, way, min(facts["elapsed_s"], network.latest_end_s)):
                if due.at_ns not in reported and rtnl.messages(network, due.direction, due.before, 0, 0):
                    yield f"the change at {due.at_ns / 1e9:g} s was not made ({link.name}, {way})"
    for change in facts["changes"]:
        at_s, late_ns = change["at_ns"] / 1e9, change["done_ns"] - change["at_ns"]
        if change["error"]:
            yield f"the kernel refused the change at {at_s:g} s with error {change['error']}"
        elif not 0 <= late_ns <= _MOST_LATE_NS:
            yield f"the change at {at_s:g} s came {late_ns} ns late"


def problems(
    direction: Direction,
    changes: Sequence[Change],
    shown: Facts,
    counted: Sequence[Facts],
    elapsed_s: float,
    offload: bool,
    starts_s: Sequence[float] = (),
) -> Iterator[str]:
    """Yield sentences about what a direction did that was not requested.

    `counted`: what the guest reports after each of its changes (seen.CountsSeen), with at_ns. `shown`: what tc and
    samples of its queue show (DirectionSeen). `starts_s`: when clients were started.
    """
    after = {change.at_ns: change.direction for change in changes}
    for counts in counted:
        if counts["at_ns"] in after:
            at_s = counts["at_ns"] / 1e9
            yield from (f"{why} from {at_s:g} s on" for why in _in_force(after[counts["at_ns"]], counts))
    if _counts_losses(direction, bool(changes)):
        yield from _losses(direction, after, [*map(_counted, counted), _last(shown, elapsed_s)], offload)
    yield from _rates(direction, changes, shown, offload, starts_s)


def _in_force(requested: Direction, counts: Facts) -> Iterator[str]:
    """Yield parameters that are in force in a direction after a change and differ from those requested."""
    if counts["delay_ns"] is not None and requested.limiter != "netem":
        requested_ns = shaping.delay_ns(requested, 0)
        if abs(counts["delay_ns"] - requested_ns) > _OFF_NS:
            yield f"a delay of {counts['delay_ns'] / 1e6:g} ms instead of {requested.delay_ms:g}"
    if counts["loss"] is not None and abs(counts["loss"] - round(requested.loss_pct / 100 * _MOST_U32)) > 1:
        yield f"a loss of {100 * counts['loss'] / _MOST_U32:g} % instead of {requested.loss_pct:g}"
    limited = (
        requested.limiter == "htb"
        and requested.rate_mbps
        and not (requested.queue and requested.queue.kind == "policer")
    )
    if limited and counts["rate_bytes_per_s"] is not None:
        rate_mbps = counts["rate_bytes_per_s"] * 8 / 1e6
        # tc is given six digits of a rate.
        if not math.isclose(rate_mbps, requested.rate_mbps or 0, rel_tol=1e-5, abs_tol=1e-5):
            yield f"a rate of {rate_mbps:g} Mbit/s instead of {requested.rate_mbps:g}"


# --- losses


def _counts_losses(direction: Direction, changed: bool) -> bool:
    """Return whether the kernel's counters tell random losses from a queue's drops.

    The limiter's count is read when the trial is over; after changes, the queue's is, which lacks what a policer drops.
    """
    if direction.rate_mbps is None:
        return direction.delay_packets is None
    known = not changed or (direction.queue is not None and direction.queue.kind in _PLAIN)
    return direction.limiter == "htb" and known


def _counted(counts: Facts) -> Counted | None:
    if counts["out_packets"] is None:
        return None
    dropped = counts["queue_dropped_packets"] or 0
    return Counted(
        at_ns=counts["at_ns"], out=counts["out_packets"], lost=counts["dropped_packets"] - dropped, dropped=dropped,
        standing=counts["standing_packets"],
    )  # fmt: skip


def _last(shown: Facts, elapsed_s: float) -> Counted | None:
    """Return the counts that tc showed when the trial was over; None if some are missing."""
    queues: Sequence[Facts] = shown["qdiscs"]
    root = queue_counts.root(queues)
    limiter = queue_counts.limiter(queues)
    # Without a queue, all drops are random losses.
    dropped: Any = limiter.get("drops") if limiter or len(queues) > 1 else 0
    counts = [dropped, *(root.get(name) for name in ("packets", "drops", "qlen"))]
    if root.get("kind") != "netem" or not all(isinstance(count, int) for count in counts):
        return None
    return Counted(
        at_ns=round(elapsed_s * 1e9), out=root["packets"], lost=root["drops"] - dropped, dropped=dropped,
        standing=root["qlen"],
    )  # fmt: skip


def _losses(
    direction: Direction, after: Mapping[int, Direction], counted: Sequence[Counted | None], offload: bool
) -> Iterator[str]:
    """Yield phases in which the share of packets that were lost differs from the one requested."""
    if any(counts is None for counts in counted):
        return
    known = [
        Counted(at_ns=0, out=0, lost=0, dropped=0, standing=0),
        *(counts for counts in counted if counts is not None),
    ]
    for before, until in itertools.pairwise(known):
        direction = after.get(before.at_ns, direction)
        lost = until.lost - before.lost
        came = lost + until.out - before.out + until.dropped - before.dropped + until.standing - before.standing
        # A super-packet that is lost counts as one packet, one that leaves as many.
        if offload and 0 < direction.loss_pct < 100:
            continue
        if came > 0 and binomial_p_value(lost, max(came, lost), direction.loss_pct / 100) < _P_VALUE:
            yield (
                f"{lost} of {came} packets were lost from {before.at_ns / 1e9:g} to {until.at_ns / 1e9:g} s"
                f" instead of {direction.loss_pct:g} %"
            )


# --- rates


def _rates(
    direction: Direction, changes: Sequence[Change], shown: Facts, offload: bool, starts_s: Sequence[float]
) -> Iterator[str]:
    """Yield intervals between samples in which a queue that was never empty let out less than the rate in force."""
    if direction.rate_mbps is None or direction.limiter == "netem" or not direction.queue:
        return
    if direction.queue.kind == "policer":
        return
    looks, frame = shown["looks"], _SUPER_BYTES if offload else _FRAME_BYTES
    rows = list(
        zip(
            *(looks.get(name) or () for name in ("t_s", "queue_bytes", "out_bytes", "dropped_packets")),
            strict=False,
        )
    )
    edges = [change.at_ns / 1e9 for change in changes]
    for (from_s, standing, out, dropped), (to_s, _, out_then, dropped_then) in itertools.pairwise(rows):
        if any(from_s <= edge <= to_s for edge in edges):
            continue
        if any(-_BEFORE_START_S <= at_s - start_s <= _AFTER_START_S for at_s in (from_s, to_s) for start_s in starts_s):
            continue
        rate = next(
            (change.direction.rate_mbps for change in reversed(changes) if change.at_ns / 1e9 < from_s),
            direction.rate_mbps,
        )
        carries = (rate or 0) * 1e6 / 8 * (to_s - from_s)
        left = out_then - out
        if not rate and left > 2 * frame:
            yield f"{left} bytes left the queue from {from_s:g} to {to_s:g} s, but none should have"
            return
        # What stood in the queue at the first sample, less what may have been dropped of it, kept it busy until the
        # second.
        if standing - (dropped_then - dropped) * frame >= carries and left < carries * (1 - _RATE_SLACK) - 2 * frame:
            yield f"only {left} bytes left a full queue from {from_s:g} to {to_s:g} s, at {rate:g} Mbit/s"
            return
