"""`conformance drift`: one congestion control on two kernels, or under two sysctl settings, cell by cell."""

import dataclasses

import rich.table

from conformance.catalogue import documents
from conformance.commands.run import measure
from conformance.engine import benches, runs
from conformance.model.errors import UserError
from conformance.model.studies import drift as model
from conformance.model.trial import Outcome
from conformance.support import files


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """One side of the comparison. `kernel` None is the one that the algorithm asks for."""

    kernel: str | None
    sysctls: tuple[tuple[str, str], ...]

    @property
    def name(self):
        sysctls = " ".join(f"{name}={value}" for name, value in self.sysctls)
        return f"kernel {self.kernel or 'as the algorithm asks'}{', ' + sysctls if sysctls else ''}"


def variants(kernels, sysctls):
    """The two sides from the command line: kernels (none, one or two) and sysctl lists (none, one or two).

    One sysctl list is compared with the profile as it is. Raises UserError where that does not make two sides.
    """
    if len(kernels) > 2 or len(sysctls) > 2:
        raise UserError("more than two sides", "give --kernel at most twice and --sysctl at most twice")
    parsed = [_parse(text) for text in sysctls]
    first_kernel, second_kernel = (kernels[0], kernels[-1]) if kernels else (None, None)
    if len(parsed) == 1:
        parsed = [(), *parsed] if len(kernels) < 2 else parsed * 2
    first, second = parsed or [(), ()]
    found = Variant(kernel=first_kernel, sysctls=first), Variant(kernel=second_kernel, sysctls=second)
    if found[0] == found[1]:
        raise UserError("both sides are the same", "give two kernels, or a --sysctl that differs")
    return found


def _parse(text):
    pairs = []
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or not value:
            raise UserError(f"--sysctl {text!r} is not of the form net.ipv4.NAME=VALUE")
        pairs.append((name, value))
    return tuple(sorted(pairs))


def run(cca, sides, choice, *, grid, trials, results, workers, profile, matters, target, console):
    """Measure both sides, compare, show; returns the exit status.

    0 nothing moved, 1 something did, 3 cells had to be left out because of errors, 4 because the algorithm is not
    supported or a transfer timed out. `target` is a file for the comparison as Markdown, or None.
    """
    cells, seeds = documents.cells(grid), runs.seeds(trials)
    if model.smallest_p(trials) * len(cells) >= model.ALPHA:
        raise UserError(
            f"{trials} trials a side can never show that one of {len(cells)} cells moved", "ask for more with --trials"
        )
    # What is wrong with either side is found before the first is measured.
    found = [benches.find(dataclasses.replace(choice, kernel=side.kernel)) for side in sides]
    profile = profile or found[0].profile
    works = [[(cca, documents.profile(profile, cell, sysctls=dict(side.sysctls))) for cell in cells] for side in sides]
    same_kernel = len({bench.scheme(cca).kernel_digest for bench in found}) == 1
    if same_kernel and works[0] == works[1]:
        raise UserError("both sides are the same", "give two kernels, or a --sysctl that differs from the profile's")
    values, left_out = [], {}
    for side, bench, work in zip(sides, found, works, strict=True):
        console.print(f"measuring {cca} on {bench.scheme(cca).id}: {side.name}", soft_wrap=True)
        values.append({})
        for (_, setting), measurements in measure(bench, work, seeds, results, workers, console):
            bad = [m for m in measurements if m.outcome is not Outcome.OK]
            if bad:
                left_out[setting.cell] = bad[0]
            else:
                values[-1][setting.cell] = [m.utilization for m in measurements]
    drifts = model.compare(*values, matters=matters)
    _show(drifts, cca, sides, trials, matters, console)
    for cell, m in sorted(left_out.items()):
        console.print(f"left out {cell.id}: {m.outcome}: {m.message}", style="yellow", soft_wrap=True)
    if target:
        files.write(target, markdown(drifts, cca, sides, trials, matters))
        console.print(f"comparison: {target}", soft_wrap=True)
    if any(m.outcome is Outcome.ERROR for m in left_out.values()):
        return 3
    return 4 if left_out else int(any(d.moved for d in drifts))


def _summary(drifts, cca, sides, trials, matters):
    moved = [d for d in drifts if d.moved]
    return (
        f"{cca}: {len(moved)} of {len(drifts)} cells moved by {matters:g} or more of utilization, beyond noise"
        f" ({trials} trials a side, family-wise error rate {model.ALPHA:g}); A: {sides[0].name}; B: {sides[1].name}"
    )


def _rows(drifts):
    """Cells that moved, farthest first."""
    for d in sorted((d for d in drifts if d.moved), key=lambda d: -abs(d.difference)):
        yield d.cell.id, f"{d.before:.3f}", f"{d.after:.3f}", f"{d.difference:+.3f}", f"{d.p:.1g}"


def _show(drifts, cca, sides, trials, matters, console):
    table = rich.table.Table()
    for name in ("cell", "A", "B", "B - A", "p"):
        table.add_column(name, justify="left" if name == "cell" else "right")
    for row in _rows(drifts):
        table.add_row(*row)
    if table.row_count:
        console.print(table)
    console.print(_summary(drifts, cca, sides, trials, matters), soft_wrap=True)


def markdown(drifts, cca, sides, trials, matters):
    lines = [_summary(drifts, cca, sides, trials, matters), ""]
    rows = list(_rows(drifts))
    if rows:
        lines += ["| cell | A | B | B - A | p |", "|---|---:|---:|---:|---:|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"
