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
    wanted = impairments or _NOTHING
    reorder, burst, slots = wanted.reorder, wanted.burst_loss, wanted.slots
    numbers = [
        at_ns,
        _ppb(reorder.share_pct if reorder else None),
        reorder.every or 0 if reorder else 0,
        reorder.by_packets or 0 if reorder else 0,
        _ns(reorder.by_ms if reorder else None),
        _ppb(wanted.duplicate_pct),
        *([_ppb(burst.enter_pct), _ppb(burst.leave_pct), _ppb(burst.loss_pct), _ppb(burst.loss_between_pct)]
          if burst else [0] * 4),
        _ns(wanted.jitter_ms),
        _ns(slots.every_ms if slots else None),
        int(slots is not None and slots.keep == NEWEST),
        _ppb(wanted.mark_pct),
        {None: 0, BLEACHED: 1, ALL_CE: 2}[wanted.ecn],
        wanted.largest_bytes or 0,
        *_chosen(wanted.lose, later),
        wanted.lose.again if wanted.lose else 0,
        *_chosen(wanted.hold, later),
        _ns(wanted.hold.by_ms if wanted.hold else None),
        {None: 0, PORT: 1, ADDRESS: 2}[wanted.rebind],
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


def longest_ms(impairments: Impairments) -> float:
    """Return the longest time that a packet waits, in ms, unless it waits for other packets to pass."""
    slots = impairments.slots.every_ms if impairments.slots else 0
    displaced = (impairments.reorder.by_ms or 0) if impairments.reorder else 0
    return slots + impairments.jitter_ms + displaced + ((impairments.hold.by_ms or 0) if impairments.hold else 0)


def problems(held: Sequence[Impairments | None], counts: Mapping[str, int]) -> Iterator[str]:
    """Yield sentences about what hop.c did without being asked, or was asked to do and did not.

    `held`: the impairments that were in force during the trial, in order. Shares are checked only if the same
    impairments were in force throughout. A correct share fails once in a million trials.
    """
    lost = sum(counts[name] for name in ("too_long", "chosen", "again", "burst", "not_markable", "thinned"))
    # hop.c reports these counters only if a rule rebinds clients, so that records of other trials stay as they were.
    rebound, stale = (counts.get(name, 0) for name in ("rebound", "stale"))
    out = counts["came"] + counts["other"] + counts["duplicated"] - lost - stale - counts["waiting"]
    if counts["left"] != out:
        yield f"{counts['left']} packets left the hop, but {out} should have"
    if counts["late_ns"] > _MOST_LATE_NS:
        yield f"a packet left the hop {counts['late_ns'] / 1e6:g} ms late"
    each = [impairments or _NOTHING for impairments in held]
    for count, expected in (
        ("reordered", any(impairments.reorder for impairments in each)),
        ("duplicated", any(impairments.duplicate_pct for impairments in each)),
        ("burst", any(impairments.burst_loss for impairments in each)),
        ("thinned", any(impairments.slots and impairments.slots.keep == NEWEST for impairments in each)),
        ("marked", any(impairments.mark_pct or impairments.ecn == ALL_CE for impairments in each)),
        ("not_markable", any(impairments.mark_pct for impairments in each)),
        ("bleached", any(impairments.ecn == BLEACHED for impairments in each)),
        ("too_long", any(impairments.largest_bytes for impairments in each)),
        ("chosen", any(impairments.lose for impairments in each)),
        ("again", any(impairments.lose and impairments.lose.again for impairments in each)),
        ("held", any(impairments.hold for impairments in each)),
    ):
        if counts[count] and not expected:
            yield f"{counts[count]} packets were counted as {count.replace('_', ' ')}, and none should have been"
    # Whether a requested move met any packet can only be told from both directions together (moves.py).
    if rebound and not any(impairments.rebind for impairments in each):
        yield f"{rebound} packets were rebound, and none should have been"
    if len(each) == 1:
        yield from _shares(each[0], counts)


def _shares(impairments: Impairments, counts: Mapping[str, int]) -> Iterator[str]:
    passed = counts["came"] - counts["too_long"] - counts["chosen"] - counts["again"]
    left = passed - counts["burst"] - counts["not_markable"]
    in_order = left - counts["held"] - counts["reordered"]
    checks = [("duplicated", counts["duplicated"], in_order, impairments.duplicate_pct)]
    if impairments.reorder and impairments.reorder.share_pct is not None and not impairments.hold:
        checks.append(("reordered", counts["reordered"], left, impairments.reorder.share_pct))
    if (
        impairments.burst_loss
        and impairments.burst_loss.loss_between_pct == 0
        and not (impairments.lose or impairments.largest_bytes)
    ):
        checks.append(("lost in the bad state", counts["burst"], counts["in_bad"], impairments.burst_loss.loss_pct))
    if impairments.mark_pct and impairments.ecn is None:
        checks.append(
            ("marked", counts["marked"] + counts["not_markable"], passed - counts["burst"], impairments.mark_pct)
        )  # fmt: skip
    for what, count, of, percent in checks:
        if binomial_p_value(count, of, percent / 100) < LOSS_P_VALUE:
            yield f"{count} of {of} packets were {what} instead of {percent:g} %"
    if impairments.lose is not None and not impairments.lose.at_least_bytes:
        least, most = _due(impairments.lose, counts["came"] - counts["too_long"])
        if not least <= counts["chosen"] <= most:
            due = str(least) if least == most else f"{least} to {most}"
            yield f"{counts['chosen']} chosen packets were lost, but {due} should have been"


def _due(chosen: Chosen, came: int) -> tuple[int, int]:
    """Return the fewest and the most of so many packets that are chosen, whenever the pattern begins."""
    every = chosen.every or 1
    counts = []
    for later in (every - 1, 0):
        whole, rest = divmod(max(0, min(chosen.span, came - chosen.first - later + 1)), every)
        counts.append(whole * chosen.of + min(rest, chosen.of))
    return counts[0], counts[1]
