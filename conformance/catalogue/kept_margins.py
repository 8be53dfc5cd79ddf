"""Read and write zones/margins.json: how much honest implementations were seen to differ, and what QUIC has beside TCP.

`conformance dev zones margins --record` writes it. conformance/model/judging/margins.py says how it is computed.
"""

import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from conformance.model.judging.margins import Spread, TransportFactor
from conformance.support import files, paths, record
from conformance.support.record import KeptDocument, Record

_Share = Annotated[float, Meta(ge=0)]
_Cells = Annotated[int, Meta(ge=1)]
_Reason = Annotated[str, Meta(min_length=10)]


class KeptSpread(Record, kw_only=True, omit_defaults=True):
    """The relative margin in cells of a kind, and what it rests on."""

    relative: _Share
    #: Standard deviation of the logarithms of implementations' medians within a cell.
    spread: _Share
    #: How far the farthest median lies outside those of all bases, as a share.
    farthest: _Share
    #: The absolute margin there, if it is not the metric's own.
    absolute: _Share | None = None
    implementations: list[str]
    cells: _Cells

    @classmethod
    def of(cls, spread: Spread) -> Self:
        return cls(
            relative=spread.relative, spread=round(spread.spread, 3), farthest=round(spread.farthest, 3),
            absolute=spread.absolute, implementations=list(spread.implementations), cells=spread.cells,
        )  # fmt: skip


class KeptFactor(Record):
    """What stacks have in cells of a kind, relative to the kernel's medians."""

    factor: Annotated[float, Meta(gt=0)]
    #: Standard deviation, over the stacks, of the logarithm of a stack's mean over the cells.
    spread: _Share
    #: The stacks whose BBRv1 it rests on.
    implementations: Annotated[list[str], Meta(min_length=3, extra_json_schema={"uniqueItems": True})]
    cells: _Cells

    @classmethod
    def of(cls, factor: TransportFactor) -> Self:
        implementations = list(factor.implementations)
        return cls(round(factor.factor, 3), round(factor.spread, 3), implementations, factor.cells)


class KnownDeparture(Record):
    """Kinds of cells in which a line of a stack's source departs from the document: no margin rests on it there."""

    kinds: list[str]
    why: str


class TransportFactors(Record):
    """What QUIC has beside TCP with the same algorithm."""

    #: Stacks whose BBRv1 ignores loss and has no known fault in rate or pacing, with the reason.
    stacks: dict[str, _Reason]
    #: Stacks whose BBRv1 was measured and does not count, with the reason.
    left_out: dict[str, _Reason]
    #: By zone, and by kind of its cells.
    zones: dict[str, dict[str, KeptFactor]]


class KeptMargins(KeptDocument, kw_only=True):
    """How much honest implementations were seen to differ, by zone and kind of its cells."""

    SCHEMA = "margins"
    SPARSE = True

    #: By algorithm: the stacks that are considered honest, with the reason; only one of several forks.
    honest: dict[str, dict[str, str]]
    #: By algorithm and stack: where a known line of the stack's source departs from the document.
    faults: dict[str, dict[str, KnownDeparture]]
    #: What QUIC has beside TCP with the same algorithm.
    transport: TransportFactors
    #: By zone and kind of cell: the margins there, and what they rest on.
    zones: dict[str, dict[str, KeptSpread]]

    def spread_figures(self, zone_id: str) -> Mapping[str, Any]:
        """Return {kind of cell: its margins}, as a zone's margin rule states them."""
        figures: Mapping[str, Any] = msgspec.to_builtins(self.zones.get(zone_id, {}))
        return figures

    def factor_figures(self, zone_id: str) -> Mapping[str, Any]:
        """Return {kind of cell: by what the kernel's basis is multiplied}, as a zone states them."""
        figures: Mapping[str, Any] = msgspec.to_builtins(self.transport.zones.get(zone_id, {}))
        return figures


_NONE = KeptMargins(honest={}, faults={}, transport=TransportFactors(stacks={}, left_out={}, zones={}), zones={})


def path() -> pathlib.Path:
    """Return the path of the file that keeps margins."""
    return paths.data("zones", "margins.json")


def load() -> KeptMargins:
    """Return what the file has; nothing if there is none. Raises UserError."""
    file = path()
    return _read(*paths.stamped(file)) if file.exists() else _NONE


@functools.lru_cache(maxsize=1)
def _read(file: pathlib.Path, _stamp: object) -> KeptMargins:
    return record.read(KeptMargins, file)


def write(kept: KeptMargins) -> None:
    """Replace the file."""
    document = {"$schema": "../conformance/schemas/margins.json", **msgspec.to_builtins(kept)}
    files.write(path(), json.dumps(document, indent=2, ensure_ascii=False) + "\n")
