"""The queue of L4S, DualPI2 (RFC 9332), which tc(8) of most systems does not know yet: by rtnetlink's messages.

Packets of ECT(1) go to a queue of their own, which marks them from a short delay on; all others go to one that drops,
or marks ECT(0), by half the square of the first's probability. What is not asked for is as the kernel has it.
Layout: include/uapi/linux/pkt_sched.h.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.model.emulation.netlink_message import CREATE, NESTED, NEWQDISC, attribute, message
from conformance.model.links import DUAL, Queue

_LIMIT, _THRESHOLD_US, _ECN_MASK = 1, 8, 14
_L4S, _ANY = 1, 3
#: what the kernel has where nothing is asked for: packets, and microseconds
_USUAL_LIMIT, _USUAL_THRESHOLD_US = 10_000, 1000


def line(queue: Queue, handle: int, parent: int) -> str:
    """Return what adds the queue to an interface {dev}, as guest/tc.py takes it: a message in place of words for tc."""
    words = _words(queue)
    options = attribute(_LIMIT, struct.pack("=I", words["limit"]))
    options += attribute(_THRESHOLD_US, struct.pack("=I", words["step_thresh_us"]))
    options += attribute(_ECN_MASK, struct.pack("=B", words["ecn_mask"]))
    return f"rtnetlink {{dev}} {message(NEWQDISC, handle, parent, DUAL, options, CREATE, NESTED).hex()}"


def problems(queue: Queue, shown: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the kernel shows of the queue that is not what was asked for."""
    options: Mapping[str, Any] = shown.get("options") or {}
    for name, asked in _words(queue).items():
        if options.get(name) != asked:
            yield f"{name} {options.get(name)} of {DUAL}, asked was {asked}"


def _words(queue: Queue) -> dict[str, int]:
    return {
        "limit": int(queue.size or _USUAL_LIMIT),
        "step_thresh_us": round(queue.ce_threshold_us or _USUAL_THRESHOLD_US),
        "ecn_mask": _ANY if queue.any_ect else _L4S,
    }
