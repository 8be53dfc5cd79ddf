"""The `conformance` command line: each command calls a function of conformance/commands and prints what it returns.

Exit statuses, of every command and of CI's gate (docs/ci.md):

0    conforms, or done
1    something violates; for `gate`: a violation is not expected, or an expected one no longer happens
2    misuse: the user can fix it; the line on standard error says how
3    an error of emulator, guest, adapter or the suite itself: nothing is known about the stack
4    inconclusive, unsupported (for `gate`: or not measured in time) and nothing worse. Without --fail-inconclusive,
     `gate` ignores these as long as half of the smoke verdicts are decided
130  interrupted; the same command again resumes
"""

from conformance.cli import (
    building,
    clause,
    compare,
    expect,
    gate,
    measuring,
    results,
    scenario,
    split,
    study,
    testing,
    zones,
)
from conformance.cli.base import main


@main.group()
def dev() -> None:
    """Maintain the suite: its zones and scores, and what trials cost."""


for module in (measuring, scenario, clause, study, compare, gate, building, results, expect, split, zones, testing):
    for command in getattr(module, "COMMANDS", ()):
        main.add_command(command)
    for command in getattr(module, "DEV_COMMANDS", ()):
        dev.add_command(command)

__all__ = ["main"]
