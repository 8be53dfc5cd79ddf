"""`conformance drift`: one congestion control on two kernels, or under two sysctl settings, cell by cell."""

import dataclasses
from collections.abc import Mapping, Sequence

import rich.console

from conformance.catalogue import documents
from conformance.commands import common, sides, two_sides
from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus, of_outcomes, worst
from conformance.engine import benches, runs
from conformance.engine.benches import Choice
from conformance.model import seeds
from conformance.model.errors import UserError
from conformance.model.metrics import UTILIZATION
from conformance.model.setting import Cell
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Change, Compared, Tolerance
from conformance.model.trial import Measurement, Scheme

#: what zones grant everybody, too
MARGIN = 0.1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What one side of the comparison is to run. `kernel` None is the one that the algorithm asks for."""

    kernel: str | None
    sysctls: sides.Sysctls

    @property
    def name(self) -> str:
        """Return the variant in words."""
        sysctls = " ".join(f"{name}={value}" for name, value in self.sysctls)
        return f"kernel {self.kernel or 'as the algorithm asks'}{', ' + sysctls if sysctls else ''}"


def variants(kernels: Sequence[str], sysctls: Sequence[str]) -> tuple[Variant, Variant]:
    """Return the two sides from the command line: kernels (none, one or two) and sysctl lists (none, one or two).

    One sysctl list is compared with the profile as it is. Raises UserError where that does not make two sides.
    """
    if len(kernels) > 2 or len(sysctls) > 2:
        raise UserError("more than two sides", "give --kernel at most twice and --sysctl at most twice")
    parsed = [sides.sysctls(text) for text in sysctls]
    first_kernel, second_kernel = (kernels[0], kernels[-1]) if kernels else (None, None)
    if len(parsed) == 1:
        parsed = [(), *parsed] if len(kernels) < 2 else parsed * 2
    first, second = parsed or [(), ()]
    found = Variant(kernel=first_kernel, sysctls=first), Variant(kernel=second_kernel, sysctls=second)
    if found[0] == found[1]:
        raise UserError("both sides are the same", "give two kernels, or a --sysctl that differs")
    return found


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A variant, and the scheme that it came to."""

    variant: Variant
    scheme: Scheme


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """Every cell that both sides have, compared; `left_out` holds a trial of each cell that could not be."""

    cca: str
    profile: str
    sides: tuple[Side, Side]
    trials: int
    matters: float
    #: the share by which cells may differ where one side serves for the other
    margin: float
    cells: tuple[Compared, ...]
    left_out: Mapping[Cell, Measurement]

    @property
    def moved(self) -> list[Compared]:
        """Return the cells that moved, the farthest first."""
        moved = [cell for cell in self.cells if cell.change is Change.MOVED]
        return sorted(moved, key=lambda cell: -abs(cell.difference))

    @property
    def not_shown(self) -> list[Compared]:
        """Return the cells that may differ by the margin or more, the widest interval first."""
        found = [cell for cell in self.cells if not comparison.is_equivalent(cell, self.margin)]
        return sorted(found, key=lambda cell: cell.interval[0] - cell.interval[1])

    @property
    def serves(self) -> bool:
        """Say whether it is shown that one side serves for the other: in every cell, none left out."""
        return bool(self.cells) and not (self.moved or self.left_out or self.not_shown)

    @property
    def exit_status(self) -> ExitStatus:
        """Say VIOLATES if a cell moved; else ERROR or UNKNOWN if one was left out; DONE only if one side serves."""
        moved = ExitStatus.VIOLATES if self.moved else ExitStatus.DONE if self.serves else ExitStatus.UNKNOWN
        late = ExitStatus.UNKNOWN if self.left_out else ExitStatus.DONE  # a transfer that timed out is only bounded
        return worst((moved, late, of_outcomes(m.outcome for m in self.left_out.values())))

    def to_json(self) -> Document:
        """Return a document of schemas/drift.json."""
        return document(
            "drift", self.exit_status, cca=self.cca, profile=self.profile, trials=self.trials, matters=self.matters,
            margin=self.margin, serves=self.serves,
            alpha=comparison.ALPHA, metric="utilization",
            sides=[
                {"kernel": side.variant.kernel, "sysctls": dict(side.variant.sysctls),
                 "scheme": common.scheme_json(side.scheme)}
                for side in self.sides
            ],
            cells=[
                {"cell": c.quantity.cell.id, "before": c.before, "after": c.after, "p": c.p,
                 "moved": c.change is Change.MOVED, "equivalent": comparison.is_equivalent(c, self.margin)}
                for c in self.cells
            ],
            left_out=[
                {"cell": cell.id, "outcome": str(m.outcome), "message": m.message}
                for cell, m in sorted(self.left_out.items())
            ],
        )  # fmt: skip


def compute(
    cca: str, both: tuple[Variant, Variant], choice: Choice, *, grid: str, trials: int, results: str,
    workers: int | None, profile: str | None, matters: float, console: rich.console.Console,
    first_seed: int = seeds.JUDGED, margin: float = MARGIN,
) -> Drifted:  # fmt: skip
    """Measure both sides and compare them; `console` gets the progress. Raises UserError."""
    cells, seeds_of_cells = documents.cells(grid), runs.seeds(trials, first_seed)
    if comparison.fewest_trials(len(cells)) > trials:
        raise UserError(
            f"{trials} trials a side can never show that one of {len(cells)} cells moved", "ask for more with --trials"
        )
    # What is wrong with either side is found before the first is measured.
    found = [benches.find(dataclasses.replace(choice, kernel=side.kernel)) for side in both]
    common.require_offered(found[0], cca)
    profile = profile or str(found[0].profile)
    works = [[(cca, documents.profile(profile, cell, sysctls=dict(side.sysctls))) for cell in cells] for side in both]
    first, second = (Side(variant=v, scheme=bench.scheme(cca)) for v, bench in zip(both, found, strict=True))
    if first.scheme.kernel_digest == second.scheme.kernel_digest and works[0] == works[1]:
        raise UserError("both sides are the same", "give two kernels, or a --sysctl that differs from the profile's")
    measured: list[dict[Cell, Sequence[Measurement]]] = []
    left_out: dict[Cell, Measurement] = {}
    for side, bench, work in zip((first, second), found, works, strict=True):
        console.print(f"measuring {cca} on {side.scheme.id}: {side.variant.name}", soft_wrap=True)
        made = two_sides.measured(bench, work, seeds_of_cells, results, workers, console)
        # The two sides' settings may differ by their sysctls, so that cells are what they have in common.
        measured.append({setting.cell: good for (_, setting), good in made.good.items()})
        left_out |= {setting.cell: bad for (_, setting), bad in made.left_out.items()}
    tolerance = Tolerance(absolute=matters)
    quantities = {
        cell: two_sides.quantity(UTILIZATION, cca, profile, cell, tolerance)
        for cell in sorted(measured[0].keys() & measured[1].keys())
    }
    values = {
        quantity: (two_sides.values(UTILIZATION, measured[0][cell]), two_sides.values(UTILIZATION, measured[1][cell]))
        for cell, quantity in quantities.items()
    }
    return Drifted(
        cca=cca, profile=profile, sides=(first, second), trials=trials, matters=matters, margin=margin,
        cells=tuple(comparison.compare(values)), left_out=left_out,
    )  # fmt: skip
