"""Set up DualPI2 (RFC 9332), the queue of L4S, by rtnetlink messages: most systems' tc(8) does not know it yet.

Packets with ECT(1) go to a queue of their own, which marks them from a short delay on. All others go to a queue that
drops them, or marks those with ECT(0), with a probability that is the square of half that of the first queue.
Parameters that are not requested keep the kernel's defaults. Layout: include/uapi/linux/pkt_sched.h.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.model.emulation.netlink_message import CREATE, NESTED, NEWQDISC, attribute, message
from conformance.model.networks.links import DUAL, Queue

_LIMIT, _THRESHOLD_US, _ECN_MASK = 1, 8, 14
_L4S, _ANY = 1, 3
#: the kernel's defaults: limit in packets, and threshold in microseconds
_USUAL_LIMIT, _USUAL_THRESHOLD_US = 10_000, 1000


def line(queue: Queue, handle: int, parent: int) -> str:
    """Return the line for guest/tc.py that adds the queue to {dev}: an rtnetlink message instead of a tc command."""
    words = _words(queue)
    options = attribute(_LIMIT, struct.pack("=I", words["limit"]))
    options += attribute(_THRESHOLD_US, struct.pack("=I", words["step_thresh_us"]))
    options += attribute(_ECN_MASK, struct.pack("=B", words["ecn_mask"]))
    return f"rtnetlink {{dev}} {message(NEWQDISC, handle, parent, DUAL, options, CREATE, NESTED).hex()}"


def problems(queue: Queue, shown: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about parameters of the queue that differ, as the kernel shows them, from the request."""
    options: Mapping[str, Any] = shown.get("options") or {}
    for name, wanted in _words(queue).items():
        if options.get(name) != wanted:
            yield f"{DUAL} has {name} {options.get(name)} instead of {wanted}"


def _words(queue: Queue) -> dict[str, int]:
    return {
        "limit": int(queue.size or _USUAL_LIMIT),
        "step_thresh_us": round(queue.ce_threshold_us or _USUAL_THRESHOLD_US),
        "ecn_mask": _ANY if queue.any_ect else _L4S,
    }
