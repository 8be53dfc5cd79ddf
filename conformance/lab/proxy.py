"""Choose the splitting proxy that runs on a path's router, its program and its options."""

import hashlib
import pathlib
import shutil
from typing import Any

from conformance.lab.own_program import OwnProgram
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.model.networks.proxy import PEPSAL, SPLITTER, Proxy
from conformance.support import paths

PROGRAM = OwnProgram("splitting-proxy", paths.PACKAGE / "proxy")
_LETTERS = {
    "to_client": "c", "to_server": "s", "send_buffer_bytes": "S", "receive_buffer_bytes": "R", "unsent_bytes": "L",
    "back_pressure_bytes": "b",
}  # fmt: skip


def choose(name: str, **options: Any) -> Proxy | None:
    """Return the Proxy of a name: SPLITTER, PEPSAL if it is on PATH, or None for "none". Raises UserError."""
    if name == "none":
        if any(value is not None for value in options.values()):
            raise UserError("options of a proxy were given, but no proxy", f"choose {SPLITTER}")
        return None
    digest = _digest(_pepsal()) if name == PEPSAL else None
    return Proxy(program=name, digest=digest, **options)


def program(proxy: Proxy) -> pathlib.Path:
    """Return the path of a proxy's program; build it now if necessary. Raises UserError."""
    if proxy.program == PEPSAL:
        path = _pepsal()
        if _digest(path) != proxy.digest:
            raise UserError(f"{path} has changed since it was chosen", "run the same command again")
        return path
    return PROGRAM.ensure() / "splitter"


def options(proxy: Proxy, port: int | None = None) -> list[str]:
    """Return the arguments of a proxy's program; without a port, all others."""
    words = [] if port is None else ["-p", str(port)]
    for name, letter in _LETTERS.items():
        value = getattr(proxy, name)
        if value is not None:
            words += [f"-{letter}", str(value)]
    return words


def _pepsal() -> pathlib.Path:
    path = shutil.which(PEPSAL)
    if not path:
        raise UserError(f"{PEPSAL} is not on PATH", f"install it, or use the suite's own: --proxy {SPLITTER}")
    return pathlib.Path(path)


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[: digests.DIGITS]
