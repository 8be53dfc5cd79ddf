"""Check, by numbered packets that passed a hop (guest/hop_probe.py), that the hop did what it was asked to do.

What a hop has to do is expressed here a second time, and differently from conformance/load/hop.c, so that a mistake
there shows. An impairment that the hop did not make, or made without being asked, makes every trial of the cell an
error.
"""

import bisect
import collections
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.emulation.calibration import LOSS_P_VALUE, binomial_p_value
from conformance.model.networks.impairments import ALL_CE, BLEACHED, NEWEST, Chosen, Impairments

#: what was seen of a hop (guest/network_job.py: HopSeen)
Seen = Mapping[str, Any]
_ECT0, _CE = 2, 3
#: time in ns that the hop and the probe take for a packet, and for each further one that leaves at the same time
_LATE_NS, _EACH_NS = 60_000, 3_000
_ACK_BYTES, _GIVE_UP_NS = 120, 10**9
#: how many standard deviations a count may be off by chance
_SIGMAS = 5.5


def problems(impairments: Impairments, sizes: Sequence[int], observed: Seen) -> list[str]:
    """Return what a hop did without being asked, or did not do. `sizes`: sizes of packets in turn, in bytes of IP."""
    return list(_problems(impairments, sizes, observed))


def _problems(impairments: Impairments, sizes: Sequence[int], observed: Seen) -> Iterator[str]:
    count = len(observed["sent_ns"])
    bytes_of = [sizes[number % len(sizes)] for number in range(count)]
    copies: collections.Counter[int] = collections.Counter(observed["numbers"])
    missing = {number for number in range(count) if number not in copies}
    too_long = {n for n in range(count) if impairments.largest_bytes and bytes_of[n] > impairments.largest_bytes}
    chosen = _numbers(impairments.lose, bytes_of, too_long)
    for what, gone in (("too long", too_long), ("chosen for loss", chosen)):
        if passed := gone - missing:
            yield f"{len(passed)} of {len(gone)} packets that are {what} passed the hop"
    others = [n for n in range(count) if n not in too_long and n not in chosen]
    newest = impairments.slots is not None and impairments.slots.keep == NEWEST
    lost = [n for n in missing if n not in too_long and n not in chosen and not (newest and bytes_of[n] <= _ACK_BYTES)]
    yield from _losses(impairments, len(others), len(lost))
    held = _numbers(impairments.hold, bytes_of, missing)
    twice, once = sum(copies.values()) - len(copies), _in_order(impairments, len(copies) - len(held))
    yield from _share("arrived twice", impairments.duplicate_pct, twice, once)
    yield from _marks(impairments, observed["ecn"])
    yield from _times(impairments, held, observed)


def _numbers(chosen: Chosen | None, bytes_of: Sequence[int], without: set[int]) -> set[int]:
    """Return the numbers of the chosen packets. Packets in `without` do not count."""
    if chosen is None:
        return set()
    counted = [n for n, size in enumerate(bytes_of) if size >= chosen.at_least_bytes and n not in without]
    among = counted[chosen.first - 1 : chosen.first - 1 + chosen.span]
    return {n for at, n in enumerate(among) if at % (chosen.every or 1) < chosen.of}


def _in_order(impairments: Impairments, came: int) -> int:
    """Return how many of the packets that came, and were not held, could have come twice: those not displaced.

    If they are drawn at random, this is an estimate.
    """
    share = (impairments.reorder.share_pct or 0) / 100 if impairments.reorder else 0
    if impairments.reorder and impairments.reorder.every:
        share = 1 / impairments.reorder.every
    return round(came * (1 - share))


def _share(what: str, percent: float, hits: int, of: int) -> Iterator[str]:
    if binomial_p_value(hits, of, percent / 100) < LOSS_P_VALUE:
        yield f"{hits} of {of} packets {what} instead of {percent:g} %"


def _losses(impairments: Impairments, of: int, lost: int) -> Iterator[str]:
    burst = impairments.burst_loss
    if burst is None:
        if lost:
            yield f"{lost} of {of} packets were lost, and none should have been"
        return
    share = burst.mean_pct / 100
    # Adjacent packets are lost together, which makes the variance up to this many times that of independent losses.
    stays = max(1 - (burst.enter_pct + burst.leave_pct) / 100, 0)
    deviation = math.sqrt(of * share * (1 - share) * (1 + stays) / (1 - stays)) if stays < 1 else of
    none_by_chance = (1 - burst.enter_pct * burst.loss_pct / 10_000) ** of
    if (not lost and none_by_chance < LOSS_P_VALUE) or abs(lost - of * share) > _SIGMAS * deviation + 1 / (
        burst.leave_pct / 100
    ):
        yield f"{lost} of {of} packets were lost in bursts instead of {100 * share:g} %"


def _marks(impairments: Impairments, ecn: Sequence[int]) -> Iterator[str]:
    fields = collections.Counter(ecn)
    if impairments.ecn == BLEACHED or impairments.ecn == ALL_CE:
        wanted = 0 if impairments.ecn == BLEACHED else _CE
        if fields.keys() - {wanted}:
            yield f"ECN fields {sorted(fields)} passed a hop that should leave {wanted} only"
    elif fields.keys() - {_ECT0, _CE}:
        yield f"ECN fields {sorted(fields)} passed a hop that only marks"
    else:
        yield from _share("were marked", impairments.mark_pct, fields[_CE], len(ecn))


def _times(impairments: Impairments, held: set[int], observed: Seen) -> Iterator[str]:
    """Yield what is wrong with the times and the order in which packets arrived."""
    sent: Sequence[int] = observed["sent_ns"]
    arrived: dict[int, int] = {}
    order: list[int] = []
    for number, at in zip(observed["numbers"], observed["arrived_ns"], strict=True):
        if number not in arrived:
            arrived[number] = at
            order.append(number)
    late = {number: at - sent[number] for number, at in arrived.items()}
    if any(value < 0 for value in late.values()):
        yield "packets arrived before they were sent"
        return
    if impairments.hold is not None:
        hold_ns = (impairments.hold.by_ms or 0) * 1e6
        if wrong := [n for n in held if not hold_ns <= late[n] <= hold_ns + _waits_ns(impairments) + _LATE_NS]:
            yield f"{len(wrong)} of {len(held)} packets were not held for {impairments.hold.by_ms:g} ms"
    order = [n for n in order if n not in held]
    passed_by = _passed_by(order)
    moved = {n for n in order if passed_by[n]}
    most_ns, followed, reorder = _waits_ns(impairments), len(sent), impairments.reorder
    if reorder and reorder.by_ms is not None:
        # Others pass only those that are held until the next one comes.
        moved = {n for n in order if late[n] >= reorder.by_ms * 1e6}
    elif reorder and reorder.by_packets is not None:
        followed -= reorder.by_packets  # too few packets follow the last ones to pass one that is held back
    yield from _displaced(impairments, moved, passed_by, late)
    rest = [late[n] for n in order if n not in moved and n < followed]
    if rest and max(rest) > most_ns + _LATE_NS + _EACH_NS * 100:
        yield f"a packet was {max(rest) / 1e6:g} ms late, but none should be later than {most_ns / 1e6:g}"
    if impairments.jitter_ms and rest and max(rest) < 0.8 * impairments.jitter_ms * 1e6:
        wanted_ms = impairments.jitter_ms
        yield f"no packet was later than {max(rest) / 1e6:g} ms, although up to {wanted_ms:g} were requested"
    if impairments.slots is not None:
        yield from _slots(impairments.slots.every_ms, [arrived[n] for n in order if n not in moved])


def _waits_ns(impairments: Impairments) -> float:
    """Return the longest time in ns that a packet waits if it is neither held nor displaced."""
    return (impairments.slots.every_ms * 1e6 if impairments.slots else 0) + impairments.jitter_ms * 1e6


def _passed_by(order: Sequence[int]) -> Mapping[int, int]:
    """Return {packet: how many packets that were sent later arrived before it}."""
    overtaken: dict[int, int] = {}
    before: list[int] = []  # sorted by number
    for number in order:
        at = bisect.bisect(before, number)
        overtaken[number] = len(before) - at
        before.insert(at, number)
    return overtaken


def _displaced(
    impairments: Impairments, moved: set[int], passed_by: Mapping[int, int], late: Mapping[int, int]
) -> Iterator[str]:
    """Yield what is wrong with the packets that `moved`, of all that arrived and were not held (`passed_by`)."""
    reorder = impairments.reorder
    if reorder is None:
        if moved:
            yield f"{len(moved)} packets were passed by others, and none should have been"
        return
    if reorder.by_packets is not None and (
        wrong := [n for n in moved if passed_by[n] != reorder.by_packets and late[n] < _GIVE_UP_NS]
    ):
        yield f"{len(wrong)} of {len(moved)} packets were not passed by {reorder.by_packets} others"
    if reorder.every is not None:
        due = sum((n + 1) % reorder.every == 0 for n in passed_by)
        if abs(len(moved) - due) > max(2, 0.02 * due):
            yield f"{len(moved)} packets were displaced instead of {due}, every {reorder.every}th"
    else:
        yield from _share("were displaced", reorder.share_pct or 0, len(moved), len(passed_by))


def _slots(every_ms: float, arrived: Sequence[int]) -> Iterator[str]:
    """Yield a problem unless packets arrive in groups that are a multiple of the slot apart."""
    every_ns = every_ms * 1e6
    groups = [at for at, before in zip(arrived, (-(10**12), *arrived), strict=False) if at - before > every_ns / 2]
    apart = [(later - earlier) / every_ns for earlier, later in itertools.pairwise(groups)]
    if any(abs(slot - round(slot)) * every_ns > _LATE_NS for slot in apart) or not apart:
        yield f"packets did not arrive in groups every {every_ms:g} ms"
