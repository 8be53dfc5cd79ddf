"""Find out, instead of assuming, which congestion control a sender uses: from what the kernel says of its socket.

All generations of BBR have been shipped under the name "bbr". What the kernel exports, and the gains that the sender
was seen to use, tell which one it is. The kernel answers INET_DIAG_BBRINFO with struct tcp_bbr_info: 20 bytes in
mainline (version 1); Google's BBRv2 and BBRv3 append bounds and, at offset 39, their version.
"""

import re
from collections.abc import Mapping
from typing import Any

#: the sampler's record of a sender (conformance/guest/seen.py: CongestionControlSeen), if it has one
Found = Mapping[str, Any] | None

#: a transfer that is shorter than this, in s, may fall between two samples of its socket
_SAMPLED_S = 0.1
#: {generation of BBR: its pacing gains}: start-up, drain, probe up, probe down, cruise (tcp_bbr.c, tcp_bbr2.c)
_PACING_GAINS = {
    1: {739 / 256, 88 / 256, 1.25, 0.75, 1.0},
    2: {739 / 256, 88 / 256, 1.25, 0.75, 1.0},
    3: {710 / 256, 88 / 256, 1.25, 232 / 256, 1.0},
}
#: {generation of BBR: its cwnd gains}: BBRv3 has one of its own while it probes up, BBRv1 and BBRv2 in start-up
_CWND_GAINS = {1: {739 / 256, 2.0, 1.0}, 2: {739 / 256, 2.0, 1.0}, 3: {2.0, 2.25, 1.0}}


def exported_generation(control: Found) -> int | None:
    """Return the generation of BBR that the kernel exports: 1, 2 or 3; None if it is not BBR or nothing is known."""
    bbr = control and control["bbr"]
    if not bbr:
        return None
    version: int | None = bbr["version"]
    return 1 if version is None else version


def seen_generations(control: Found) -> list[int] | None:
    """Return the generations of BBR that use all gains that were seen, as a list; None if no BBR was seen.

    Several may fit: a short transfer may never leave start-up, and versions 1 and 2 share their gains.
    """
    bbr = control and control["bbr"]
    if not bbr:
        return None
    return [
        generation
        for generation in (1, 2, 3)
        if set(bbr["pacing_gains"]) <= _PACING_GAINS[generation] and set(bbr["cwnd_gains"]) <= _CWND_GAINS[generation]
    ]


def not_as_asked(algorithm: str, control: Found) -> str | None:
    """Return why the kernel's congestion control is not the BBR that `algorithm` ("bbrv3") names, or None."""
    version = re.fullmatch(r"bbrv(\d)", algorithm)
    if not version or not control:
        return None
    generation = exported_generation(control)
    if generation == int(version[1]):
        return None
    what = f"BBR version {generation}" if generation else f"{control['name']}, not a BBR"
    return f"{algorithm} was asked for, but this kernel's {control['name']} is {what}"


def not_as_set(name: str | None, control: Found, elapsed_s: float) -> str | None:
    """Return why the sender did not use the algorithm `name` that the harness set in its kernel, or None.

    A program may choose another one for its socket. If the transfer's socket was never sampled, nothing rules that out.
    """
    if name is None:
        return None
    if control is None:
        return (
            f"had no connection from its port, so nothing shows that it used {name}" if elapsed_s > _SAMPLED_S else None
        )
    others = [other for other in control["names"] if other != name]
    return f"sent with {', '.join(others)} instead of {name}" if others else None


def describe(control: Found) -> dict[str, Any] | None:
    """Return a result's evidence: name, generations of BBR, and what they rest on; None if nothing is known."""
    if not control:
        return None
    about: dict[str, Any] = {"name": control["name"]}
    if control["bbr"]:
        about["bbr"] = {
            "exported_version": exported_generation(control),
            "versions_with_the_gains_seen": seen_generations(control),
            **control["bbr"],
        }
    return about
