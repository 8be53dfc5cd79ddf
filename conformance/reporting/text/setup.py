"""Show what there is to test with (`doctor`, `adapter list`, `adapter check`, `kernel list`) in a terminal."""

from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.kernel.store import Kernel
from conformance.support.console import table

if TYPE_CHECKING:
    from conformance.commands.adapter_check import CheckedAdapter
    from conformance.commands.doctor import Check
    from conformance.commands.inventory import Adapters, Kernels


def show_check(check: "Check", console: rich.console.Console) -> None:
    """Show one thing that a run needs, and the remedy if it is missing."""
    mark = ("ok   ", "green") if check.ok else ("BAD  ", "red")
    console.print(rich.text.Text.assemble(mark, check.what), soft_wrap=True)
    if not check.ok:
        console.print(f"     fix: {check.mend}", soft_wrap=True)


def show_adapters(adapters: "Adapters", console: rich.console.Console) -> None:
    """Show a line for each adapter, with the algorithms that it offers."""
    names = [*(about.name for about in adapters.adapters), *(closed.name for closed in adapters.not_public)]
    width = max(map(len, names))
    for about in adapters.adapters:
        offered = ", ".join(about.offered()) or ("whatever its image offers" if about.rootfs else "a client only")
        console.print(f"{about.name:{width}}  {about.title}: {offered}", soft_wrap=True)
    for closed in adapters.not_public:
        console.print(f"{closed.name:{width}}  {closed.words}", soft_wrap=True)


def show_kernels(kernels: "Kernels", console: rich.console.Console) -> None:
    """Show a line for each kernel."""
    if not kernels.kernels:
        console.print("no guest kernel is built; run `conformance kernel build`")
    for kernel in kernels.kernels:
        console.print(f"{kernel.name:12} {described(kernel)}", soft_wrap=True)


def described(kernel: Kernel) -> str:
    """Return a kernel's release, digest, source, patches and parameters."""
    added = [*kernel.patches, *(f"{name}={value}" for name, value in kernel.parameters)]
    plus = f" + {', '.join(added)}" if added else ""
    return f"Linux {kernel.release:14} {kernel.digest}  {kernel.source}{plus}"


def show_clauses(checked_adapter: "CheckedAdapter", console: rich.console.Console) -> None:
    """Show a row for each clause of the contract, or why nothing is known."""
    if checked_adapter.fault is not None:
        console.print(f"error: {checked_adapter.fault}", soft_wrap=True)
        return
    scheme = checked_adapter.scheme
    rows = []
    for clause in checked_adapter.clauses:
        mark = {True: ("yes", "green"), False: ("NO", "red"), None: ("left open", "yellow")}[clause.kept]
        rows.append((clause.name, rich.text.Text(*mark), clause.what))
    title = f"{scheme.stack} ({scheme.stack_version}), {scheme.algorithm}"
    console.print(table(("clause", "kept", "seen"), rows, title=title))
