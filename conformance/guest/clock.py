"""Begin each trial in the same state of clock and kernel, whatever the guest did before it.

The kernel's timer wheel rounds long timers to multiples of up to 512 ms of absolute time, so each trial (and each
calibration) begins at a multiple of 65.536 s of uptime. The kernel keeps no TCP metrics (a sysctl of every profile) and
charges nothing for memory calls, whose number depends on the allocator's past. tests/guest/test_guest.py asserts this
independence, byte for byte.
"""

from __future__ import annotations

import ctypes
import struct
import time

from conformance.guest import netns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: longer than TIME_WAIT, which lasts a minute (net/ipv4/tcp.h: TCP_TIMEWAIT_LEN)
_TIME_WAIT_MS = 61_000
_ALIGN_MS = 65_536
#: seconds between two checks for connections, and how many checks at most: an orphaned socket gives up after eight
#: retransmissions, at most two minutes apart (tcp_orphan_retries, TCP_RTO_MAX)
_SILENCE_S, _MOST_SILENCES = 60, 30
_TIMER_ABSTIME = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_SEED_FILE = "/sys/module/random/parameters/seed"
_CALLS_FILE = "/sys/module/syscall/parameters/count"


class ClockFault(Exception):
    """The trial could not be carried out for a reason that is not the stack's; the message says which."""


def start(net: Any, seed: int) -> None:
    """Wait until old connections have ended, align the clock, and seed the kernel. Raises ClockFault."""
    _await_silence(net)
    align(_ALIGN_MS, _TIME_WAIT_MS)
    with open(_SEED_FILE, "w") as f:
        f.write(str(seed))


def _await_silence(net: Any) -> None:
    """Sleep until no connection of an earlier trial is left. Raises ClockFault if one never ends.

    A connection whose far end was killed first goes on sending its last bytes for minutes. These packets would be in
    the next trial, and the socket itself might be taken for that trial's sender.
    """
    for _ in range(_MOST_SILENCES):
        if not any(netns.has_connections(node) for node in net.hosts):
            return
        time.sleep(_SILENCE_S)
    raise ClockFault("a connection of an earlier trial never ended: run it again, and report it if it happens again")


def align(step_ms: int, at_least_ms: int = 0) -> None:
    """Sleep for `at_least_ms` and then until the next multiple of `step_ms` of uptime, to the nanosecond."""
    step_ns = step_ms * 1_000_000
    target = ((time.monotonic_ns() + at_least_ms * 1_000_000) // step_ns + 1) * step_ns
    deadline = struct.pack("qq", target // 10**9, target % 10**9)
    _LIBC.clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME, deadline, None)


def system_calls(before: int | None = 0) -> int | None:
    """Return how many system calls the whole guest has made beyond `before`; None if its kernel does not count them."""
    try:
        with open(_CALLS_FILE) as f:
            return int(f.read()) - (before or 0)
    except FileNotFoundError:
        return None
