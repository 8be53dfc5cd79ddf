"""Build on demand the C programs that make the kernel's flows, watch queues, change links and impair packets."""

import pathlib

from conformance.lab.own_program import OwnProgram
from conformance.support import paths

PROGRAM = OwnProgram("kernel-flows", paths.PACKAGE / "load")
#: programs that the build makes
PROGRAMS = FLOWS, WATCH, CHANGE, HOP = "flows", "watch", "change", "hop"

#: the program that bonds two links, which has a build of its own
BOND_PROGRAM = OwnProgram("bond", paths.PACKAGE / "bond")
BOND = "bond"


def bond() -> pathlib.Path:
    """Return the path of the program that bonds two links; build it now if necessary. Raises UserError."""
    return BOND_PROGRAM.ensure() / BOND


def programs() -> dict[str, pathlib.Path]:
    """Return {program: its path}; build them now if necessary. Raises UserError."""
    folder = PROGRAM.ensure()
    return {name: folder / name for name in PROGRAMS}
