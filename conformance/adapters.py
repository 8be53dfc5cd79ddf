"""`conformance adapter build`: compile what adapters need, into the cache, under a bar."""

import time

import rich.progress

from conformance.engine import duration
from conformance.lab import adapter
from conformance.model.errors import UserError


def build(stacks, again, console):
    """Build one after the other; one that fails does not keep the others from it. Returns the exit status."""
    failed = 0
    for stack in stacks:
        try:
            _build(stack, again, console)
        except UserError as error:
            failed += 1
            console.print(f"conformance: {error}", style="red", soft_wrap=True)
    return 2 if failed else 0


def _build(stack, again, console):
    columns = (
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(20),
        rich.progress.TaskProgressColumn(),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TimeRemainingColumn(),
        rich.progress.TextColumn("{task.fields[line]}", markup=False),
    )
    began = time.monotonic()
    with rich.progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"building {stack}", total=None, line="")
        if not console.is_terminal:
            console.print(f"building {stack}")

        def progress(done, total, line):
            bar.update(task, completed=done or 0, total=total, line=line[:60])

        folder = adapter.build(stack, again, progress)
    if folder is None:
        console.print(f"{stack}: there is nothing to build")
        return
    # Asked what it is: a build that does not run is no build.
    version = adapter.load(stack, adapter.OWN).version
    console.print(f"{stack}: {version}, built in {duration(time.monotonic() - began)}, {folder}", soft_wrap=True)
