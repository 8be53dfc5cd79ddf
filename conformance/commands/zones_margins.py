"""`conformance zones margins`: what honest implementations differ by, and the margins that follow."""

import collections
import dataclasses
import json
import pathlib
import statistics
from collections.abc import Iterable, Mapping

from conformance.catalogue import documents
from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus
from conformance.model.errors import UserError
from conformance.model.margins import Median, Spread, spreads
from conformance.model.metrics import UTILIZATION
from conformance.model.setting import Cell
from conformance.model.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import files, paths, schema

#: implementations that share no code are measured over UDP, by the zones for it
_KIND, _PROFILE = "heatmap", "packets"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """{zone id: Spreads of the kinds of its cells}; `path`: where they are kept, if they are."""

    zones: Mapping[str, tuple[Spread, ...]]
    path: pathlib.Path | None

    @property
    def exit_status(self) -> ExitStatus:
        """Say DONE."""
        return ExitStatus.DONE

    def to_json(self) -> Document:
        """Return a document of schemas/zones-margins.json."""
        return document(
            "zones-margins", self.exit_status, path=self.path and str(self.path),
            zones={name: {one.kind: one.to_json() for one in found} for name, found in self.zones.items()},
        )  # fmt: skip


def path() -> pathlib.Path:
    """Return where margins are kept."""
    return paths.data("zones", "margins.json")


def compute(results: Iterable[pathlib.Path], record: bool = False) -> Margins:
    """Compute margins from measurements of the stacks that path() calls honest. Raise UserError.

    With `record`, path() keeps them, and zones have to be derived anew. An algorithm without any of its honest stacks
    in `results` is left out.
    """
    kept = schema.load("margins", path())
    held = [m for one in results for m in store.read(one)]
    found: dict[str, tuple[Spread, ...]] = {}
    for algorithm, honest in kept["honest"].items():
        zone = documents.zone_of(algorithm, _KIND, _PROFILE)
        medians = {
            stack: of_stack for stack in honest if (of_stack := _medians(held, algorithm, stack, zone.profile_digest))
        }
        if medians:
            found[zone.id] = tuple(spreads(zone, medians))
    if not found:
        names = sorted({stack for honest in kept["honest"].values() for stack in honest})
        raise UserError("these results hold no stack that margins rest on", f"measure {', '.join(names)}")
    if record:
        zones = {name: {one.kind: one.to_json() for one in kinds} for name, kinds in found.items()}
        made = {**kept, "zones": {**kept["zones"], **zones}}
        files.write(path(), json.dumps(made, indent=2, ensure_ascii=False) + "\n")
    return Margins(zones=found, path=path() if record else None)


def _medians(held: Iterable[Measurement], algorithm: str, stack: str, profile_digest: str) -> dict[Cell, Median]:
    """Return {cell: Median} of a stack's trials of an algorithm that ended."""
    by_cell: dict[Cell, list[Measurement]] = collections.defaultdict(list)
    for m in held:
        scheme = (m.trial.scheme.stack, m.trial.scheme.algorithm, m.trial.setting.profile_digest)
        if scheme == (stack, algorithm, profile_digest) and m.outcome is Outcome.OK and not m.trial.setting.segments:
            by_cell[m.trial.setting.cell].append(m)
    found: dict[Cell, Median] = {}
    for cell, measurements in by_cell.items():
        values = [value for m in measurements if (value := m.value(UTILIZATION.name)) is not None]
        sizes = [size for m in measurements if (size := m.packet_bytes) is not None]
        if values:
            found[cell] = statistics.median(values), statistics.median(sizes) if sizes else None
    return found
