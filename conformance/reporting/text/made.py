"""Show what commands made, such as files or kernels, with a line for each thing."""

from typing import TYPE_CHECKING

import rich.console

if TYPE_CHECKING:
    from conformance.commands.made_result import Made


def show(built: "Made", console: rich.console.Console) -> None:
    """Print the words of each thing that was made."""
    for item in built.items:
        console.print(item.words, soft_wrap=True)
