"""The programs that make the kernel's flows, watch queues, change links and impair packets: in C, built on demand."""

import pathlib

from conformance.lab.own_program import OwnProgram
from conformance.support import paths

PROGRAM = OwnProgram("kernel-flows", paths.PACKAGE / "load")
#: what the build makes
FLOWS, WATCH, CHANGE, HOP = "flows", "watch", "change", "hop"


def programs() -> dict[str, pathlib.Path]:
    """Return {program: its path}, built now if need be. Raises UserError."""
    folder = PROGRAM.ensure()
    return {name: folder / name for name in (FLOWS, WATCH, CHANGE, HOP)}
