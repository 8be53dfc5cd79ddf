"""Show what was added to the history of stacks (`conformance dev record`), as text that is Markdown, too."""

from typing import TYPE_CHECKING

import rich.console

from conformance.support.console import count, one_line

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.record import RecordedReleases


def show(recorded: "RecordedReleases", console: rich.console.Console) -> None:
    """Show what each release does otherwise than the one before, and what was not measured."""
    lines = []
    for added in recorded.releases:
        changes = added.changes
        what = f"{count(len(changes), 'change')} since {added.since}" if added.since else "the first on record"
        lines.append(f"- {added.release.stack} {added.release.version}, {added.release.algorithm}: {what}")
        lines += [f"  - {change.asked}: {change.before}, now {change.now}" for change in changes]
    lines += [f"- {name}: nothing new" for name in recorded.known]
    lines += [f"- {name}: not measured: {one_line(why)}" for name, why in recorded.not_measured.items()]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)
