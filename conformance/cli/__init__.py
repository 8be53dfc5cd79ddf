"""The `conformance` command: thin; each command calls one function of the engine and prints what it returns.

Exit statuses: 0 all conforms (or done), 1 something violates, 2 the user can mend it, 3 an error of emulator,
guest or adapter, 4 inconclusive or unsupported and nothing worse, 130 interrupted.
"""

from conformance.cli import building, expect, measuring, results, split, testing, zones
from conformance.cli.base import main

for module in (measuring, building, results, expect, split, testing, zones):
    for command in module.COMMANDS:
        main.add_command(command)

__all__ = ["main"]
