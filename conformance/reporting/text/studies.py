"""How `identify`, `identify-check` and `drift` show what they found: in a terminal, and as Markdown."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.rounding import told
from conformance.model.studies import comparison
from conformance.model.studies.identify import Miss
from conformance.reporting.text import markdown
from conformance.support.console import count

if TYPE_CHECKING:  # a renderer knows what commands find out, not how
    from conformance.commands.drift import Drifted
    from conformance.commands.identify import Checked, Identified
    from conformance.model.studies.identify_rates import Rates


#: of cells in a sentence
_MOST_NAMED = 3
#: of values and bounds, where that is enough to tell them apart
_DIGITS = 3


def show_identified(found: "Identified", console: rich.console.Console) -> None:
    """Show the scores, best first, and the conclusion."""
    if found.trouble:
        outcome, message = found.trouble
        console.print(f"{found.scheme.id}: {outcome}: {message}", soft_wrap=True)
        return
    title = f"{found.scheme.id}: {found.cells} cells x {found.trials} trials"
    table = rich.table.Table(title=title, title_justify="left")
    for name in ("algorithm", "inside", "score", "outside, for example"):
        table.add_column(name, justify="right" if name in ("inside", "score") else "left")
    for score in found.scores:
        inside = f"{score.seen - len(score.misses)} of {score.seen}"
        table.add_row(score.algorithm, inside, f"{score.share:.2f}", _example(score.misses))
    console.print(table)
    if found.exported:
        console.print(f"the kernel says: {', '.join(found.exported)}")
    for rates in found.rates:
        console.print(_rate(rates), soft_wrap=True)
    if found.conclusion is None:
        console.print(_inconclusive(found), style="yellow", soft_wrap=True)
        return
    words = rich.text.Text.assemble(f"{found.scheme.id} behaves like ", (found.conclusion, "bold"))
    if found.contradicted:
        words.append(f", not like the {found.called} it is called", "red")
    console.print(words, soft_wrap=True)


def _rate(rates: "Rates") -> str:
    """Word how often an identification by so many trials is right."""
    who = "an implementation that differs from a reference as honest ones do" if rates.spread else "a reference"
    return (
        f"by simulation, {count(rates.trials, 'trial')} a cell name {who} rightly in {rates.right:.0%} of runs,"
        f" not at all in {rates.inconclusive:.0%}, wrongly in {rates.wrong:.1%}"
    )


def _example(misses: Sequence[Miss]) -> str:
    """Word the feature that is farthest outside, by the width of its interval."""
    if not misses:
        return ""
    worst = max(misses, key=lambda m: max(m.low - m.value, m.value - m.high) / (m.high - m.low))
    return f"{worst.cell.id}: {worst.metric} {told(worst.value, worst.low, worst.high, _DIGITS)}"


def _inconclusive(found: "Identified") -> str:
    best, *others = found.nearest
    seen = f"{best.share:.2f} of the {best.seen} features that were seen (of {best.features})"
    if not others:
        return f"inconclusive: nearest to {best.algorithm}, {seen}"
    names = [score.algorithm for score in (best, *others)]
    about = "" if all(score.share == best.share for score in others) else "about "
    return f"inconclusive: {about}as near to {', '.join(names[:-1])} as to {names[-1]}, {seen}"


def show_checked(found: "Checked", console: rich.console.Console) -> None:
    """Show how often each algorithm was identified rightly, wrongly or not at all."""
    title = f"{found.trials} identifications each, one trial of {found.cells} cells"
    table = rich.table.Table(title=title, title_justify="left")
    for name in ("measured", "right", "inconclusive", "wrong"):
        table.add_column(name, justify="left" if name == "measured" else "right")
    for tally in found.tallies:
        if tally.trouble:
            outcome, message = tally.trouble
            console.print(f"{tally.scheme.algorithm}: {outcome}: {message}", soft_wrap=True)
        else:
            table.add_row(tally.scheme.id, str(tally.right), str(tally.inconclusive), str(tally.wrong))
    console.print(table)


def show_drifted(found: "Drifted", console: rich.console.Console) -> None:
    """Show the cells that moved, farthest first, and those that were left out."""
    table = rich.table.Table()
    for name in _DRIFT:
        table.add_column(name, justify="left" if name == "cell" else "right")
    for row in _moved(found):
        table.add_row(*row)
    if table.row_count:
        console.print(table)
    console.print(drift_summary(found), soft_wrap=True)
    for cell, measurement in sorted(found.left_out.items()):
        text = f"left out {cell.id}: {measurement.outcome}: {measurement.message}"
        console.print(text, style="yellow", soft_wrap=True)


def drift_markdown(found: "Drifted") -> str:
    """Return the same as Markdown."""
    rows = list(_moved(found))
    table = markdown.table(_DRIFT, rows, right=_DRIFT[1:]) if rows else []
    return "\n".join([drift_summary(found), "", *table]) + "\n"


_DRIFT = ("cell", "A", "B", "B - A", "p")


def drift_summary(found: "Drifted") -> str:
    """Word how many cells moved, and between what."""
    first, second = found.sides
    return (
        f"{found.cca}: {len(found.moved)} of {len(found.cells)} cells moved by {found.matters:g} or more of"
        f" utilization, beyond noise ({found.trials} trials a side, family-wise error rate {comparison.ALPHA:g});"
        f" A: {first.variant.name}; B: {second.variant.name}; {_serves(found)}"
    )


def _serves(found: "Drifted") -> str:
    """Word whether one side serves for the other, and if not, where that is open."""
    if found.serves:
        return f"one side serves for the other: less than {found.margin:.0%} apart in every cell (tests at 5 % each)"
    cells = [cell.quantity.cell.id for cell in found.not_shown]
    if not cells:
        return "not shown that one side serves for the other"
    named = ", ".join(cells[:_MOST_NAMED]) + (", ..." if len(cells) > _MOST_NAMED else "")
    return (
        f"not shown that one side serves for the other: {count(len(cells), 'cell')} may be {found.margin:.0%} or more"
        f" apart ({named})"
    )


def _moved(found: "Drifted") -> Iterator[tuple[str, ...]]:
    """Yield a row for each cell that moved, farthest first."""
    for c in found.moved:
        yield c.quantity.cell.id, f"{c.before:.3f}", f"{c.after:.3f}", f"{c.difference:+.3f}", f"{c.p:.1g}"
