"""The programs that make the kernel's flows, watch queues, change links and impair packets: in C, built on demand."""

import pathlib

from conformance.lab.own_program import OwnProgram
from conformance.support import paths

PROGRAM = OwnProgram("kernel-flows", paths.PACKAGE / "load")
#: what the build makes
FLOWS, WATCH, CHANGE, HOP = "flows", "watch", "change", "hop"

#: what bonds two links, of its own
BOND_PROGRAM = OwnProgram("bond", paths.PACKAGE / "bond")
BOND = "bond"


def bond() -> pathlib.Path:
    """Return the path of the program that bonds two links, built now if need be. Raises UserError."""
    return BOND_PROGRAM.ensure() / BOND


def programs() -> dict[str, pathlib.Path]:
    """Return {program: its path}, built now if need be. Raises UserError."""
    folder = PROGRAM.ensure()
    return {name: folder / name for name in (FLOWS, WATCH, CHANGE, HOP)}
