"""`conformance dev proxy check`: what becomes of connections when a proxy or its links fail, beside end to end."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.lab import manifest, proxy, proxy_network
from conformance.model.errors import UserError
from conformance.model.networks.proxy import PEPSAL, SPLITTER
from conformance.support import paths

#: how long a section is down, in s
DOWN_S = (1, 5, 20)
#: bounds of back-pressure (None: no back-pressure) and receive buffers (None: the splitter's own choice, as large as
#: the bound) to try, in bytes
BOUNDS: tuple[tuple[int | None, int | None], ...] = (
    (None, None), (262_144, None), (65_536, None), (16_384, None), (65_536, 16_384), (16_384, 65_536),
)  # fmt: skip
#: After an outage, TCP waits at most as long again, because its timeouts double. _LATE_S is added to that for the first
#: timeout and for a busy machine. _SERVED_S: how soon a restarted proxy must serve new connections. Both in s.
_LATE_S, _SERVED_S = 1.5, 5.0
_LONGEST_S = 120
SECTIONS = {proxy_network.TO_CLIENT: "client's", proxy_network.TO_SERVER: "server's"}
#: in place of a proxy's name: connections without a proxy
END_TO_END = "end to end"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProxyRow:
    """A case, with a proxy or end to end: what was done, what was observed, and whether that is as required."""

    case: str
    #: The proxy, or end to end.
    via: str
    about: str
    #: Times in seconds, null if the event never happened; `how` an end learnt of the failure: end, reset, nothing or
    #: the kernel's words.
    observed: Mapping[str, Any]
    #: What is required; null if a number is only reported.
    required: str | None
    holds: bool | None
    #: Why no conclusion is possible; else null.
    trouble: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checked(Result):
    """All cases."""

    SCHEMA = "proxy-check"

    #: The proxies that were tried.
    proxy: str
    rows: tuple[ProxyRow, ...]
    #: Why pepsal was not tried in addition to the suite's own; else null.
    left_out: str | None = None

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if a proxy fails a requirement; ERROR if a case has no result or fails even end to end."""
        if any(row.trouble or (row.via == END_TO_END and row.holds is False) for row in self.rows):
            return ExitStatus.ERROR
        return ExitStatus.VIOLATES if any(row.holds is False for row in self.rows) else ExitStatus.DONE


def compute(name: str | None = None, down_s: Sequence[float] = DOWN_S) -> Checked:
    """Try the proxy with this name (lab/proxy.py: choose), all cases at once. Raises UserError.

    Without a name, try the suite's own proxy, and pepsal if it is on PATH.
    """
    left_out = None
    if why_not := proxy_network.allowed():
        raise UserError(f"cannot check proxies without unprivileged user namespaces: {why_not}")
    commands = {proxy: _command(proxy) for proxy in ([SPLITTER] if name is None else [name])}
    if name is None:
        try:
            commands[PEPSAL] = _command(PEPSAL)
        except UserError as error:
            left_out = str(error)
    cases = list(_cases(commands, down_s))
    with ThreadPoolExecutor(len(cases)) as pool:
        return Checked(proxy=", ".join(commands), rows=tuple(pool.map(_row, cases)), left_out=left_out)


def _command(name: str) -> list[str]:
    chosen = proxy.choose(name)
    if chosen is None:
        raise UserError("nothing to check: no proxy", f"choose {SPLITTER} or {PEPSAL}")
    return [str(proxy.program(chosen))]


def _cases(commands: Mapping[str, list[str]], down_s: Sequence[float]) -> Iterator[dict[str, Any]]:
    via = {**commands, END_TO_END: []}
    for case in ("killed", "restarted"):
        for who, command in via.items():
            yield {"case": case, "via": who, "command": command, "options": []}
    for name, command in commands.items():
        for bound, receive in BOUNDS if name == SPLITTER else BOUNDS[:1]:
            options = [text for letter, value in (("b", bound), ("R", receive)) if value is not None
                       for text in (f"-{letter}", str(value))]  # fmt: skip
            most = None if bound is None else most_undelivered(bound, receive)
            yield {"case": "undelivered", "via": name, "command": command, "options": options, "most": most}
    yield {"case": "undelivered", "via": END_TO_END, "command": [], "options": [], "most": 0}
    for seconds in down_s:
        for section in SECTIONS:
            for who, command in via.items():
                about = {"case": "down", "via": who, "command": command, "options": []}
                yield {**about, "section": section, "seconds": seconds}


def most_undelivered(bound: int, receive: int | None = None) -> int:
    """Return how many bytes the splitter may have acknowledged to a sender and never deliver, given -b and -R.

    The splitter reads only while its pipe and the unacknowledged bytes in its sending socket (SIOCOUTQ) together hold
    less than `bound` bytes, and never more than is left, so the two hold at most `bound`. Bytes that the kernel has
    acknowledged and the splitter has not read are in the receive buffer. Its size is SO_RCVBUF, which the kernel sets
    to twice the requested value (socket(7)). The kernel advertises no larger window than fits into that buffer, so it
    acknowledges no more.
    """
    return bound + 2 * (bound if receive is None else receive)


def _row(case: Mapping[str, Any]) -> ProxyRow:
    program = [*proxy_network.UNSHARE, sys.executable, "-m", "conformance.lab.proxy_failures", json.dumps(case)]
    about = {"case": case["case"], "via": case["via"], "about": _about(case)}
    try:
        done = subprocess.run(
            program, capture_output=True, text=True, timeout=_LONGEST_S, cwd=paths.PACKAGE.parent, check=False,
            env={**os.environ, "PATH": manifest.search_path()},  # tc is in sbin
        )  # fmt: skip
        observed = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        late = isinstance(error, subprocess.TimeoutExpired)
        why = f"it took longer than {_LONGEST_S} s" if late else (done.stderr.strip().splitlines() or ["no output"])[-1]
        return ProxyRow(**about, observed={}, required=None, holds=None, trouble=why)
    must, holds = judged(case, observed)
    return ProxyRow(**about, observed=observed, required=must, holds=holds)


def _about(case: Mapping[str, Any]) -> str:
    if case["case"] == "down":
        return f"the {SECTIONS[case['section']]} section for {case['seconds']:g} s"
    if case["case"] == "undelivered":
        return " ".join(case["options"]) or ("no back-pressure" if case["command"] else "")
    return ""


def judged(case: Mapping[str, Any], observed: Mapping[str, Any]) -> tuple[str | None, bool | None]:
    """Return (the requirement of a case in words, whether it is met); (None, None) if it has none."""
    match case["case"]:
        case "killed" if case.get("via") == END_TO_END:
            return "nothing happens to the connection, and the stream goes on", observed["goes_on"] and observed[
                "right"
            ]
        case "killed":
            noticed = observed["client_noticed_s"] is not None and observed["server_noticed_s"] is not None
            whole = "end" in (observed["client_how"], observed["server_how"])
            must = "both ends notice, and do not take it for the normal end of the stream"
            return must, noticed and not whole and observed["right"]
        case "restarted":
            served = observed["served_s"] is not None and observed["served_s"] <= _SERVED_S
            if case.get("via") == END_TO_END:
                goes_on = observed["client_how"] == observed["server_how"] == "nothing"
                return "new connections are served throughout, and the old one goes on", served and (
                    observed["served_meanwhile"] and goes_on
                )
            return f"new connections are served within {_SERVED_S:g} s", served
        case "undelivered" if case["most"] is not None:
            return f"at most {case['most']} bytes", observed["undelivered_bytes"] <= case["most"]
        case "down":
            most_s = case["seconds"] + _LATE_S
            resumed = observed["resumed_s"] is not None and observed["resumed_s"] <= most_s
            return f"the stream goes on within {most_s:g} s, and is whole", resumed and observed["whole"]
    return None, None
