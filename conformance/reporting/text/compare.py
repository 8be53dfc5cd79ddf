"""Show the result of `conformance compare`, the largest changes first, in a terminal and as Markdown."""

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import rich.console
import rich.table

from conformance.model.clauses import changes
from conformance.model.diagnosis import feature_table
from conformance.model.diagnosis.feature_table import Feature
from conformance.model.metrics.table import METRICS
from conformance.model.studies.comparison import ALPHA, CONFIDENCE, FIRST_LOOK, Compared, Movement, Quantity
from conformance.reporting.text import markdown
from conformance.support.console import count, duration, one_line

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.compare_result import Comparison

_HEADER = ("", "what", "where", "base", "head", "head - base", "p")
_RIGHT = _HEADER[3:]
#: columns that wrap in a narrow terminal, but not to one letter a line, nor within the name of a cell
_LEAST_WIDTH = {"what": 12, "where": len("10mbps-20ms-0.3pct")}
#: most unclear quantities in a table, and most unmeasured places in a note; the JSON has all
_MOST_UNCLEAR, _MOST_NAMED = 10, 6
#: most quantities named in the sentence on whether one side serves for the other
_MOST_OPEN = 3
#: a budget that is proposed is the estimate times this: other work on the machine makes trials slower
_DOUBT = 1.5
_NEED_NOT_BE = "; as nothing else differs, it does not count"


def show(comparison: "Comparison", console: rich.console.Console) -> None:
    """Show what moved and what is unclear, then a summary of one line."""
    for line in sentences(comparison):
        console.print(line, soft_wrap=True)
    rows = list(_rows(comparison, _MOST_UNCLEAR))
    left = _left_out(comparison)
    if rows:
        table = rich.table.Table()
        for name in _HEADER:
            table.add_column(
                name, justify="right" if name in _RIGHT else "left", overflow="fold", no_wrap=name not in _LEAST_WIDTH,
                min_width=_LEAST_WIDTH.get(name),
            )  # fmt: skip
        for row in rows:
            table.add_row(*row)
        console.print(table)
    if named := features_legend(comparison):
        console.print(named, soft_wrap=True, style="dim")
    if left:
        console.print(left)
    for note in notes(comparison):
        console.print(note, style="yellow", soft_wrap=True)
    console.print(one_line(summary(comparison)), soft_wrap=True)


def lines(comparison: "Comparison") -> list[str]:
    """Return the same as Markdown, without a heading; text from stacks and users is in code spans."""
    parts = [markdown.span(summary(comparison)), ""]
    parts += [f"- {markdown.span(line)}" for line in sentences(comparison)]
    rows = list(_rows(comparison, _MOST_UNCLEAR))
    if rows:
        parts += ["", *markdown.table(_HEADER, rows, right=_RIGHT)]
    if left := _left_out(comparison):
        parts += ["", left]
    same = comparison.of(Movement.SAME)
    if same:
        names = ", ".join(dict.fromkeys(title(c.quantity) for c in same))
        parts += ["", f"<details><summary>the same: {len(same)}</summary>", "", markdown.span(names), "", "</details>"]
    parts += [f"- {markdown.span(note)}" for note in ["", *notes(comparison)] if note]
    legends = filter(None, (legend(comparison), features_legend(comparison)))
    return [*parts, *(line for text in legends for line in ("", markdown.span(text)))]


def render(comparison: "Comparison") -> str:
    """Return a comment for a pull request."""
    return "\n".join([f"### Congestion control: {ending(comparison)}", "", *lines(comparison)]) + "\n"


def title(quantity: Quantity) -> str:
    """Return a quantity's name in tables."""
    if quantity.label is None:
        return METRICS[quantity.name].title
    name = quantity.name.replace("_", " ")
    return name if name.startswith(quantity.label.replace("_", " ")) else f"{quantity.label}: {name}"


def sentences(comparison: "Comparison") -> Iterator[str]:
    """Yield a sentence for each feature that moved: what it points at and is, both values, and what head does."""
    for c in comparison.of(Movement.MOVED):
        q = c.quantity
        if q.label is None:
            continue
        sentence = comparison.sentences.get(q, "")
        moved = f"moved from {_number(c, c.before)} to {_number(c, c.after)}"
        yield f"{q.algorithm}: {title(q)} {moved}: on head, {sentence}"


def _change(c: Compared) -> str:
    """Return a quantity with its values on base and head."""
    return f"{title(c.quantity)} {_number(c, c.before)} -> {_number(c, c.after)} at {c.quantity.place.id}"


def _listed(events: Iterable[str]) -> str:
    *others, last = events
    return f"{', '.join(others)} and {last}" if others else last


def notes(comparison: "Comparison") -> Iterator[str]:
    """Yield what was not compared and why, and whether the kernel, not the stack, may have moved something."""
    for base, head in zip(*(side.schemes for side in comparison.sides), strict=True):
        deliberate = comparison.margin is not None or (base.in_kernel and head.in_kernel)
        if base.kernel_digest != head.kernel_digest and not deliberate:
            kernels = f"base on Linux {base.kernel_release}, head on Linux {head.kernel_release}"
            yield f"{head.algorithm}: {kernels}: the kernel may have caused what moved"
    for quantity, side in comparison.one_sided:
        yield f"{quantity.algorithm}: {title(quantity)} at {quantity.place.id} was seen on {side} only: unclear"
    for left in comparison.left_out:
        m = left.measurement
        yield f"left out {m.scheme.algorithm} at {left.place.id}: {left.side}: {m.outcome}: {m.message}"
    for late, what in (
        (comparison.late, "not measured in time and not compared"),
        (comparison.rest if comparison.identical else (), f"not measured in time{_NEED_NOT_BE}"),
        (comparison.begun, f"measured in only {FIRST_LOOK} trials a side, which cannot show that anything moved"),
    ):
        if late:
            named = ", ".join(place.id for _, _, place in late[:_MOST_NAMED])
            more = ", ..." if len(late) > _MOST_NAMED else ""
            yield f"{what}: {count(len(late), 'place')} ({named}{more})"
    yield from (f"not looked at: {problem}" for problem in comparison.problems)
    yield from comparison.lacking
    if comparison.compared:
        untried = [event for event, why in comparison.never.items() if not why]
        can = "; --changes makes them happen" if comparison.can_change else ""
        if untried:
            yield f"never happened in what was compared: {', '.join(untried)}{can}"
        yield from (f"{event} never happened: {why}" for event, why in comparison.never.items() if why)
    if comparison.blind:
        yield f"these trials are too few to show that any of {comparison.family} quantities moved"
    yield from further(comparison)


def further(comparison: "Comparison") -> Iterator[str]:
    """Yield what would decide, and how long that takes, if nothing is known to have moved."""
    if comparison.further is None:
        return
    leading, trials, seconds = comparison.further.leading, comparison.further.trials, comparison.further.seconds
    if trials is None:
        yield "more than a hundred trials a side would be needed to decide; make the change larger, or --matters"
        return
    more = (
        f"--trials {trials} " if leading is not None and trials > min(leading.n) and trials > comparison.trials else ""
    )
    if seconds is None:
        yield f"no trial ended in time: run it again with {more}and a longer --budget"
        return
    budget_m = math.ceil(seconds * _DOUBT / 60)
    what = f"{title(leading.quantity)}" if leading else "the rest"
    yield (
        f"about {duration(seconds)} more would decide {what}: run it again with {more}--budget {budget_m}m; what was"
        " measured is kept"
    )


def ending(comparison: "Comparison") -> str:
    """Return the result in a few words."""
    moved, same, unclear = len(comparison.of(Movement.MOVED)), len(comparison.of(Movement.SAME)), comparison.undecided
    if not comparison.compared:
        return "nothing can differ" if comparison.same_build else "nothing was compared"
    if comparison.identical:
        never = f"; {_listed(comparison.never)} never happened" if comparison.never else ""
        result = (
            "undecided: every difference so far"
            if comparison.late or comparison.begun
            else "nothing moved: every difference"
        )
        return f"{result} is exactly zero{never}"
    if moved:
        return f"{moved} moved, {same} the same, {unclear} unclear"
    if not unclear:
        return f"nothing moved: {same} the same"
    leading = comparison.further and comparison.further.leading
    candidate = f"; the leading candidate is {_change(leading)} (p {leading.p:.1g})" if leading else ""
    return f"undecided: {unclear} unclear, {same} the same{candidate}"


def summary(comparison: "Comparison") -> str:
    """Return one line that says what moved, between which sides, and at which error rate."""
    base, head = comparison.sides
    parts = []
    if comparison.same_build:
        parts.append(
            f"{', '.join(comparison.same_build)}: both sides are the same build on the same kernel; trials are"
            " deterministic, so nothing can differ and nothing was measured"
        )
    if comparison.compared or not comparison.same_build:
        parts.append(f"base {base.name}, head {head.name}: {ending(comparison)}")
    if comparison.compared:
        rate = f"family-wise error rate {ALPHA:.0%} over {comparison.family} quantities"
        parts[-1] += f" (at most {comparison.trials} trials a side; {rate})"
    if comparison.margin is not None:
        parts.append(serving(comparison))
    return "; ".join(parts)


def serving(comparison: "Comparison") -> str:
    """Return, for two kernels, whether one side serves for the other; if that is not shown, name the open values."""
    if comparison.serves:
        words = f"one side serves for the other: in every cell they differ by less than {_permitted(comparison)}"
        return f"{words} (tests at 5 % each)"
    open_ = "not shown that one side serves for the other"
    if comparison.of(Movement.MOVED) or not comparison.not_shown:
        return open_
    named = ", ".join(f"{title(q)} at {q.place.id}" for q in comparison.not_shown[:_MOST_OPEN])
    more = ", ..." if len(comparison.not_shown) > _MOST_OPEN else ""
    values = count(len(comparison.not_shown), "value")
    return f"{open_}: {values} may differ by {_permitted(comparison)} or more ({named}{more})"


def _permitted(comparison: "Comparison") -> str:
    """Return the margin in words."""
    share = "" if comparison.margin == 1 else f"{comparison.margin:g} of "
    return f"{share}what zones permit"


def legend(comparison: "Comparison") -> str:
    """Return an explanation of the words moved, same and unclear."""
    return (
        f"moved: beyond noise (if nothing moved, at most {ALPHA:.0%} of runs say that something did) and by enough to"
        f" matter; same: equal in every trial, or the {CONFIDENCE:.0%} interval of the difference contains none that"
        " matters; unclear: more trials are needed"
    )


def features_legend(comparison: "Comparison") -> str:
    """Return what the names of the features in the table mean; "" if it has none."""
    meanings = {}
    for c in _tabled(comparison, _MOST_UNCLEAR):
        feature = _feature(c.quantity)
        if c.quantity.label and feature:
            says = feature.says.replace(" ({low}..{high})", "").format(value="X", n="N")
            meanings[title(c.quantity)] = f"{title(c.quantity)}: {says}"
    return f"what the features say, with X for the value: {'; '.join(meanings.values())}" if meanings else ""


def _feature(quantity: Quantity) -> Feature | None:
    """Return the feature that a quantity is; None if it is a metric."""
    named = [f for f in (*feature_table.FEATURES, *changes.COMPARED) if f.name == quantity.name]
    # Several features read the same number, each in a network of its own.
    return next((f for f in named if changes.is_read_at(f, quantity.profile, quantity.place)), next(iter(named), None))


def _tabled(comparison: "Comparison", most_unclear: int) -> list[Compared]:
    """Return what the table has a row for: all that moved, and some that is unclear."""
    return [*comparison.of(Movement.MOVED), *comparison.of(Movement.UNCLEAR)[:most_unclear]]


def _rows(comparison: "Comparison", most_unclear: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each quantity that moved, and for some that are unclear."""
    several = len({c.quantity.algorithm for c in comparison.compared}) > 1
    for c in _tabled(comparison, most_unclear):
        q = c.quantity
        name = f"{q.algorithm} {title(q)}" if several else title(q)
        where = q.place.id if q.label else f"{q.place.id} ({q.profile})"
        numbers = _number(c, c.before), _number(c, c.after), _number(c, c.difference, "+")
        yield str(c.change), name, where, *numbers, f"{c.p:.1g}"


def _left_out(comparison: "Comparison") -> str:
    """Return how many unclear quantities are not in the table, in words; "" if none."""
    more = len(comparison.of(Movement.UNCLEAR)) - _MOST_UNCLEAR
    return f"{more} more are unclear; the JSON lists all" if more > 0 else ""


def _number(c: Compared, value: float, sign: str = "") -> str:
    """Return a value with its unit, with enough digits to tell the two sides apart."""
    q = c.quantity
    digits = next((d for d in range(q.digits, q.digits + 4) if f"{c.before:.{d}f}" != f"{c.after:.{d}f}"), q.digits)
    unit = "points" if sign and q.unit == "%" else q.unit
    return f"{value:{sign}.{digits}f}{unit and ' ' + unit}"
