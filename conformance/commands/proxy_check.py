"""`conformance proxy check`: what a proxy's failures, and its links', do to connections, beside the same end to end."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus
from conformance.lab import proxy, proxy_network
from conformance.model.errors import UserError
from conformance.model.proxy import SPLITTER
from conformance.support import paths

#: how long a section is down, and the bounds of back-pressure that are tried
DOWN_S, BOUNDS = (1, 5, 20), (None, 262_144, 65_536, 16_384)
#: After an outage TCP waits at most as long again, as timeouts double; the first one comes late by a timeout, and this
#: machine may be busy.
_LATE_S, _SERVED_S = 1.5, 5.0
_LONGEST_S = 120
SECTIONS = {proxy_network.TO_CLIENT: "client's", proxy_network.TO_SERVER: "server's"}
#: what stands instead of a proxy: nothing
END_TO_END = "end to end"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A case with a proxy, or end to end: what was done, what came of it, and whether that is as it must be.

    `asked`: what must be, None where a figure is only told. `trouble`: why nothing is known.
    """

    case: str
    via: str
    about: str
    seen: Mapping[str, Any]
    asked: str | None
    holds: bool | None
    trouble: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checked:
    """All cases."""

    proxy: str
    rows: tuple[Row, ...]

    @property
    def exit_status(self) -> ExitStatus:
        """Say whether the proxy does what it must; where the same fails end to end, nothing is known."""
        if any(row.trouble or (row.via == END_TO_END and row.holds is False) for row in self.rows):
            return ExitStatus.ERROR
        return ExitStatus.VIOLATES if any(row.holds is False for row in self.rows) else ExitStatus.DONE

    def to_json(self) -> Document:
        """Return a document of schemas/proxy-check.json."""
        rows = [{**dataclasses.asdict(row), "seen": dict(row.seen)} for row in self.rows]
        return document("proxy-check", self.exit_status, proxy=self.proxy, rows=rows)


def compute(name: str, down_s: Sequence[float] = DOWN_S) -> Checked:
    """Try a proxy of this name (lab/proxy.py: choose), all cases at once. Raises UserError."""
    chosen = proxy.choose(name)
    if chosen is None:
        raise UserError("nothing to check: no proxy", f"choose {SPLITTER} or pepsal")
    if why_not := proxy_network.allowed():
        raise UserError(f"a proxy is checked in namespaces of an unprivileged user: {why_not}")
    asked = list(_cases(name, [str(proxy.program(chosen))], down_s))
    with ThreadPoolExecutor(len(asked)) as pool:
        return Checked(proxy=name, rows=tuple(pool.map(_row, asked)))


def _cases(name: str, command: Sequence[str], down_s: Sequence[float]) -> Iterator[dict[str, Any]]:
    via = {name: list(command), END_TO_END: []}
    yield {"case": "killed", "via": name, "command": via[name], "options": []}
    yield {"case": "restarted", "via": name, "command": via[name], "options": []}
    for bound in BOUNDS if name == SPLITTER else (None,):
        options = [] if bound is None else ["-b", str(bound)]
        yield {"case": "undelivered", "via": name, "command": via[name], "options": options, "bound": bound}
    yield {"case": "undelivered", "via": END_TO_END, "command": [], "options": [], "bound": 0}
    for seconds in down_s:
        for section in SECTIONS:
            for who, own in via.items():
                about = {"case": "down", "via": who, "command": own, "options": []}
                yield {**about, "section": section, "seconds": seconds}


def _row(asked: Mapping[str, Any]) -> Row:
    program = [*proxy_network.UNSHARE, sys.executable, "-m", "conformance.lab.proxy_failures", json.dumps(asked)]
    about = {"case": asked["case"], "via": asked["via"], "about": _about(asked)}
    try:
        done = subprocess.run(
            program, capture_output=True, text=True, timeout=_LONGEST_S, cwd=paths.PACKAGE.parent, check=False
        )
        seen = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        late = isinstance(error, subprocess.TimeoutExpired)
        why = f"it took longer than {_LONGEST_S} s" if late else (done.stderr.strip().splitlines() or ["no word"])[-1]
        return Row(**about, seen={}, asked=None, holds=None, trouble=why)
    must, holds = judged(asked, seen)
    return Row(**about, seen=seen, asked=must, holds=holds)


def _about(asked: Mapping[str, Any]) -> str:
    if asked["case"] == "down":
        return f"the {SECTIONS[asked['section']]} section for {asked['seconds']:g} s"
    if asked["case"] == "undelivered":
        return f"-b {asked['bound']}" if asked["bound"] else "no back-pressure" if asked["command"] else ""
    return ""


def judged(asked: Mapping[str, Any], seen: Mapping[str, Any]) -> tuple[str | None, bool | None]:
    """Return what must be in a case, and whether it is; (None, None) where nothing must."""
    match asked["case"]:
        case "killed":
            noticed = seen["client_noticed_s"] is not None and seen["server_noticed_s"] is not None
            whole = seen["client_how"] == "end"
            return "both ends notice, and no end passes for the stream's own", noticed and not whole and seen["right"]
        case "restarted":
            served = seen["served_s"] is not None and seen["served_s"] <= _SERVED_S
            return f"new connections are served within {_SERVED_S:g} s", served
        case "undelivered" if asked["bound"] is not None:
            # What may be in the proxy and on its way, and a receive buffer, which the kernel doubles (socket(7)).
            most = 3 * asked["bound"]
            return f"at most {most} bytes", seen["undelivered_bytes"] <= most
        case "down":
            most_s = asked["seconds"] + _LATE_S
            resumed = seen["resumed_s"] is not None and seen["resumed_s"] <= most_s
            return f"it goes on within {most_s:g} s, and is whole", resumed and seen["whole"]
    return None, None
