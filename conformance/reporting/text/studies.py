"""Show the results of `conformance identify` and `dev identify-check` in a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.rounding import told
from conformance.model.studies.identify import Miss
from conformance.support.console import count, table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.identify import Identified, IdentifyCounts
    from conformance.model.studies.identify_rates import IdentificationRates


#: decimals of values and bounds; there are more if these do not tell them apart
_DIGITS = 3


def show_identified(identified: "Identified", console: rich.console.Console) -> None:
    """Show the scores, best first, and the conclusion."""
    if identified.trouble:
        console.print(f"{identified.scheme.id}: {identified.trouble}", soft_wrap=True)
        return
    title = f"{identified.scheme.id}: {count(identified.cells, 'cell')} x {count(identified.trials, 'trial')}"
    rows = (
        (s.algorithm, f"{s.visible - len(s.misses)} of {s.visible}", f"{s.share:.2f}", _example(s.misses))
        for s in identified.scores
    )
    header = ("algorithm", "inside", "score", "outside, for example")
    console.print(table(header, rows, ("inside", "score"), title=title))
    if identified.exported:
        console.print(f"the kernel reports: {', '.join(identified.exported)}")
    for rates in identified.rates:
        console.print(_rate(rates), soft_wrap=True)
    if identified.not_compared:
        missing = ", ".join(identified.not_compared)
        console.print(f"not compared, as they cannot be traced here: {missing}", soft_wrap=True)
    if identified.conclusion is None:
        console.print(_inconclusive(identified), style="yellow", soft_wrap=True)
        return
    words = rich.text.Text.assemble(f"{identified.scheme.id} behaves like ", (identified.conclusion, "bold"))
    if identified.contradicted:
        words.append(f", although it is called {identified.called}", "red")
    if identified.unchecked:
        words.append(f"; nothing shows here how {identified.called} behaves, so that the name is not checked", "yellow")
    console.print(words, soft_wrap=True)


def _rate(rates: "IdentificationRates") -> str:
    """Return in words how often an identification by this many trials is right."""
    who = "an implementation that differs from a reference as much as honest ones do" if rates.spread else "a reference"
    return (
        f"in simulation, {count(rates.trials, 'trial')} a cell identify {who} correctly in {rates.right:.0%} of runs,"
        f" not at all in {rates.inconclusive:.0%}, and wrongly in {rates.wrong:.1%}"
    )


def _example(misses: Sequence[Miss]) -> str:
    """Return in words the feature that is farthest outside its interval, relative to the interval's width."""
    if not misses:
        return ""
    worst = max(misses, key=lambda m: max(m.low - m.value, m.value - m.high) / max(m.high - m.low, 1e-9))
    return f"{worst.cell.id}: {worst.metric} {told(worst.value, worst.low, worst.high, _DIGITS)}"


def _inconclusive(identified: "Identified") -> str:
    best, *others = [score for score in identified.scores if score.algorithm in identified.nearest]
    words = f"inside for {best.share:.2f} of the {best.visible} features seen ({best.features} in all)"
    if not others:
        return f"inconclusive: nearest to {best.algorithm}, {words}"
    names = [score.algorithm for score in (best, *others)]
    about = "" if all(score.share == best.share for score in others) else "about "
    return f"inconclusive: {about}as near to {', '.join(names[:-1])} as to {names[-1]}, {words}"


def show_checked(checked: "IdentifyCounts", console: rich.console.Console) -> None:
    """Show how often each algorithm was identified rightly, wrongly or not at all."""
    title = f"{checked.trials} identifications each, from one trial of {checked.cells} cells"
    numbers, rows = ("right", "inconclusive", "wrong"), []
    for tally in checked.algorithms:
        if tally.trouble:
            console.print(f"{tally.scheme.algorithm}: {tally.trouble}", soft_wrap=True)
        else:
            rows.append((tally.scheme.id, str(tally.right), str(tally.inconclusive), str(tally.wrong)))
    console.print(table(("measured", *numbers), rows, numbers, title=title))
