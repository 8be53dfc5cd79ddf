"""Show what a search found (`conformance dev search`), in a terminal."""

from typing import TYPE_CHECKING

import rich.console

from conformance.support.console import count, one_line

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.search import Searched, Sought


def show(searched: "Searched", console: rich.console.Console) -> None:
    """Show each finding with the commands that look at it, what did not repeat, and how far the search came."""
    for sought in searched.sought:
        console.print(_line(searched, sought), style="bold" if sought.repeated else "", soft_wrap=True, markup=False)
        for message in sought.messages:
            console.print(f"  it says: {one_line(message)}", soft_wrap=True, markup=False)
        if sought.scenario is not None:
            options = f"{searched.choice.options()} --scenario {sought.scenario}"
            console.print(f"  conformance trace {searched.algorithm}{options}", soft_wrap=True, markup=False)
            console.print(f"  conformance why {searched.algorithm}{options}", soft_wrap=True, markup=False)
    best = ", ".join(f"{goal} {score:.1f}" for goal, score in searched.best.items())
    console.print(
        f"{count(searched.tries, 'scenario')} tried of {searched.scheme} against {searched.against}, seed"
        f" {searched.seed}: {count(len(searched.findings), 'finding')}. Best scores, where 1 is the least that counts:"
        f" {best or 'none'}",
        soft_wrap=True, markup=False,
    )  # fmt: skip


def _line(searched: "Searched", sought: "Sought") -> str:
    goal = sought.goal
    if sought.compared is None:
        return f"{goal.title}: its repeats show nothing"
    medians = (sought.compared.after, sought.compared.before)
    ours, theirs = (f"{median:.{goal.digits}f} {goal.unit}".strip() for median in medians)
    said = f"{goal.title}: {searched.scheme} {ours}, {searched.against} {theirs}"
    repeat = f"p = {sought.compared.p:.2g} with {sought.n} fresh seeds each"
    return f"{said} ({repeat})" if sought.repeated else f"{said}: it did not repeat ({repeat})"
