"""Translate impairments into rules for conformance/load/hop.c, and check its counters against what was requested."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from conformance.model.emulation.calibration import LOSS_P_VALUE, binomial_p_value
from conformance.model.networks.impairments import ADDRESS, ALL_CE, BLEACHED, NEWEST, PORT, Chosen, Impairments

_NOTHING = Impairments()
#: largest permissible lateness of a packet, in ns: it leaves on time unless others are due at the same time, each of
#: which takes two system calls
_MOST_LATE_NS = 1_000_000


def rule(impairments: Impairments | None, at_ns: int, later: Callable[[int], int] = lambda every: 0) -> str:
    """Return the line of hop.c's rules, the fields of its struct rule, that is in force from `at_ns` on.

    `later`: how many packets later a pattern of so many packets begins.
    """
    asked = impairments or _NOTHING
    reorder, burst, slots = asked.reorder, asked.burst_loss, asked.slots
    numbers = [
        at_ns,
        _ppb(reorder.share_pct if reorder else None),
        reorder.every or 0 if reorder else 0,
        reorder.by_packets or 0 if reorder else 0,
        _ns(reorder.by_ms if reorder else None),
        _ppb(asked.duplicate_pct),
        *([_ppb(burst.enter_pct), _ppb(burst.leave_pct), _ppb(burst.loss_pct), _ppb(burst.loss_between_pct)]
          if burst else [0] * 4),
        _ns(asked.jitter_ms),
        _ns(slots.every_ms if slots else None),
        int(slots is not None and slots.keep == NEWEST),
        _ppb(asked.mark_pct),
        {None: 0, BLEACHED: 1, ALL_CE: 2}[asked.ecn],
        asked.largest_bytes or 0,
        *_chosen(asked.lose, later),
        asked.lose.again if asked.lose else 0,
        *_chosen(asked.hold, later),
        _ns(asked.hold.by_ms if asked.hold else None),
        {None: 0, PORT: 1, ADDRESS: 2}[asked.rebind],
    ]  # fmt: skip
    return " ".join(map(str, numbers))


def _chosen(chosen: Chosen | None, later: Callable[[int], int]) -> Sequence[int]:
    if chosen is None:
        return (0, 0, 0, 1, 1)
    every = chosen.every or 1
    return (chosen.first + later(every), chosen.span, chosen.at_least_bytes, every, chosen.of)


def _ppb(percent: float | None) -> int:
    return round((percent or 0) * 1e7)


def _ns(ms: float | None) -> int:
    return round((ms or 0) * 1e6)


def longest_ms(asked: Impairments) -> float:
    """Return the longest time that a packet waits, in ms, unless it waits for other packets to pass."""
    slots = asked.slots.every_ms if asked.slots else 0
    displaced = (asked.reorder.by_ms or 0) if asked.reorder else 0
    return slots + asked.jitter_ms + displaced + ((asked.hold.by_ms or 0) if asked.hold else 0)


def problems(held: Sequence[Impairments | None], seen: Mapping[str, int]) -> Iterator[str]:
    """Yield sentences about what hop.c did without being asked, or was asked to do and did not.

    `held`: the impairments that were in force during the trial, in order. Shares are checked only if the same
    impairments were in force throughout. A correct share fails once in a million trials.
    """
    lost = sum(seen[name] for name in ("too_long", "chosen", "again", "burst", "not_markable", "thinned"))
    # hop.c reports these counters only if a rule rebinds clients, so that records of other trials stay as they were.
    rebound, stale = (seen.get(name, 0) for name in ("rebound", "stale"))
    out = seen["came"] + seen["other"] + seen["duplicated"] - lost - stale - seen["waiting"]
    if seen["left"] != out:
        yield f"{seen['left']} packets left the hop, but {out} should have"
    if seen["late_ns"] > _MOST_LATE_NS:
        yield f"a packet left the hop {seen['late_ns'] / 1e6:g} ms late"
    each = [asked or _NOTHING for asked in held]
    for count, asked_for in (
        ("reordered", any(one.reorder for one in each)),
        ("duplicated", any(one.duplicate_pct for one in each)),
        ("burst", any(one.burst_loss for one in each)),
        ("thinned", any(one.slots and one.slots.keep == NEWEST for one in each)),
        ("marked", any(one.mark_pct or one.ecn == ALL_CE for one in each)),
        ("not_markable", any(one.mark_pct for one in each)),
        ("bleached", any(one.ecn == BLEACHED for one in each)),
        ("too_long", any(one.largest_bytes for one in each)),
        ("chosen", any(one.lose for one in each)),
        ("again", any(one.lose and one.lose.again for one in each)),
        ("held", any(one.hold for one in each)),
    ):
        if seen[count] and not asked_for:
            yield f"{seen[count]} packets were counted as {count.replace('_', ' ')}, and none should have been"
    # Whether a requested move met any packet can only be told from both directions together (moves.py).
    if rebound and not any(one.rebind for one in each):
        yield f"{rebound} packets were rebound, and none should have been"
    if len(each) == 1:
        yield from _shares(each[0], seen)


def _shares(asked: Impairments, seen: Mapping[str, int]) -> Iterator[str]:
    passed = seen["came"] - seen["too_long"] - seen["chosen"] - seen["again"]
    left = passed - seen["burst"] - seen["not_markable"]
    in_order = left - seen["held"] - seen["reordered"]
    checks = [("duplicated", seen["duplicated"], in_order, asked.duplicate_pct)]
    if asked.reorder and asked.reorder.share_pct is not None and not asked.hold:
        checks.append(("reordered", seen["reordered"], left, asked.reorder.share_pct))
    if asked.burst_loss and asked.burst_loss.loss_between_pct == 0 and not (asked.lose or asked.largest_bytes):
        checks.append(("lost in the bad state", seen["burst"], seen["in_bad"], asked.burst_loss.loss_pct))
    if asked.mark_pct and asked.ecn is None:
        checks.append(
            ("marked", seen["marked"] + seen["not_markable"], passed - seen["burst"], asked.mark_pct)
        )  # fmt: skip
    for what, count, of, percent in checks:
        if binomial_p_value(count, of, percent / 100) < LOSS_P_VALUE:
            yield f"{count} of {of} packets were {what} instead of {percent:g} %"
    if asked.lose is not None and not asked.lose.at_least_bytes:
        least, most = _due(asked.lose, seen["came"] - seen["too_long"])
        if not least <= seen["chosen"] <= most:
            due = str(least) if least == most else f"{least} to {most}"
            yield f"{seen['chosen']} chosen packets were lost, but {due} should have been"


def _due(chosen: Chosen, came: int) -> tuple[int, int]:
    """Return the fewest and the most of so many packets that are chosen, whenever the pattern begins."""
    every = chosen.every or 1
    counts = []
    for later in (every - 1, 0):
        whole, rest = divmod(max(0, min(chosen.span, came - chosen.first - later + 1)), every)
        counts.append(whole * chosen.of + min(rest, chosen.of))
    return counts[0], counts[1]
