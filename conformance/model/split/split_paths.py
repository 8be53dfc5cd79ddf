"""Describe paths of two segments, and predict what a connection-splitting proxy between the segments gains.

The heuristic is that of the ATC'25 study. A split connection is as fast as its slower segment, by throughput(s1) and
throughput(s2) of a connection over one segment alone. An end-to-end connection sees one segment with the bandwidth,
delay and loss of both, setting.end_to_end((s1, s2)). So one grid of end-to-end measurements predicts all paths of its
cells.

A segment is a Cell. A rate is goodput in Mbit/s. `rates` is any mapping from Cell to rate; a cell that is not in it
was not measured, and what depends on it is None: missing is missing, never zero.
"""

import dataclasses
import enum
import functools
import re
from collections.abc import Iterable, Mapping

from conformance.model.networks.place import NUMBER, Cell, end_to_end, parse_path


def compose_on_grid(s1: Cell, s2: Cell) -> Cell | None:
    """Return end_to_end() by the published grid's rules; None if the sum is above 4 % of loss, or above 100 ms.

    A delay of 1 ms stands for none (1 + x = x), so that sums of the grid's delays are delays of the grid; losses add.
    On the grid, 1 ms is thus neutral, and the operation is exactly commutative and associative wherever it is defined.
    With other delays it is not associative: (0.5 + 0.5) + 20 would be 20, but 0.5 + (0.5 + 20) is 21.
    """
    loss_pct = s1.loss_pct + s2.loss_pct
    delay_ms = s1.one_way_delay_ms + s2.one_way_delay_ms
    if 1 in (s1.one_way_delay_ms, s2.one_way_delay_ms):
        delay_ms -= 1
    if loss_pct > 4 or delay_ms > 100:
        return None
    return Cell(min(s1.bandwidth_mbps, s2.bandwidth_mbps), delay_ms, loss_pct)


class PathClass(enum.StrEnum):
    """Classes of the ATC'25 study (Table 3). "Near": the short lossy segment is that of the server, which sends."""

    I_NEAR = "I near"
    I_FAR = "I far"
    II = "II"
    III = "III"
    ZERO_LOSS = "zero loss"
    OTHER = "other"


@dataclasses.dataclass(frozen=True, order=True)
class Path:
    """Two segments in the order of the published study: the client's (receiver's) first, then the server's.

    `exact`: the segments are composed exactly, not by the grid's rules; for rates that are interpolated.
    """

    s1: Cell
    s2: Cell
    exact: bool = False

    @property
    def id(self) -> str:
        return f"{self.s1.id}+{self.s2.id}"

    @property
    def segments(self) -> tuple[Cell, Cell]:
        return (self.s1, self.s2)

    @property
    def bandwidth_mbps(self) -> float:
        return min(self.s1.bandwidth_mbps, self.s2.bandwidth_mbps)

    @functools.cached_property
    def end_to_end(self) -> Cell | None:
        """The cell that both segments together amount to, or None where the grid's rules give none."""
        return end_to_end((self.s1, self.s2)) if self.exact else compose_on_grid(self.s1, self.s2)

    @property
    def cells(self) -> tuple[Cell | None, ...]:
        """The cells whose measurements the predictions rest on."""
        return (self.s1, self.s2, self.end_to_end)

    @functools.cached_property
    def path_class(self) -> PathClass:
        """The class by the published tests, in the published order: the first test that holds decides."""
        s1, s2 = self.s1, self.s2
        if s2.one_way_delay_ms == 1 and s2.loss_pct > 0 and s1.one_way_delay_ms > 1 and s1.loss_pct == 0:
            return PathClass.I_NEAR
        if s1.one_way_delay_ms == 1 and s1.loss_pct > 0 and s2.one_way_delay_ms > 1 and s2.loss_pct == 0:
            return PathClass.I_FAR
        if s1.loss_pct > 0 and s2.loss_pct > 0:
            return PathClass.II if 1 in (s1.one_way_delay_ms, s2.one_way_delay_ms) else PathClass.III
        return PathClass.ZERO_LOSS if s1.loss_pct == s2.loss_pct == 0 else PathClass.OTHER

    @classmethod
    def parse(cls, text: str) -> "Path":
        """Return the Path of two segments with `,` or `+` between them, such as 100ms-0pct-20mbps,1ms-4pct-20mbps.

        The parts of a segment may be in any order. Raises UserError for any other text.
        """
        return cls(*parse_path("+".join(map(_in_order, re.split(r"[,+]", text)))))


def _in_order(segment: str) -> str:
    """Return a segment's text with its three parts as in a cell's id: the units say which is which."""
    parts = re.findall(rf"(?:^|-)({NUMBER}(mbps|ms|pct))(?=-|$)", segment.strip())
    texts = {unit: part for part, unit in parts}
    whole = len(texts) == len(parts) == 3 and "-".join(part for part, _ in parts) == segment.strip()
    return "-".join(texts[unit] for unit in ("mbps", "ms", "pct")) if whole else segment


def paths(cells: Iterable[Cell]) -> tuple[Path, ...]:
    """Return all ordered pairs of these cells whose composition is one of them, too: 7,875 for the full grid's 150."""
    return _paths(tuple(cells))


@functools.lru_cache(maxsize=16)  # zones and checks ask for the same few grids again and again
def _paths(cells: tuple[Cell, ...]) -> tuple[Path, ...]:
    among = frozenset(cells)
    candidates = (Path(s1, s2) for s1 in cells for s2 in cells)
    return tuple(path for path in candidates if path.end_to_end in among)


def representative_paths(bandwidth_mbps: float | None = None) -> dict[PathClass, Path]:
    """Return one Path of each class, from the published Figure 1, at its own bandwidth or at `bandwidth_mbps`.

    Figure 1 has classes I near, II and III. I far is the mirror image of I near. Zero loss is class III's path without
    loss, and other is class III's path with all of the loss on one segment.
    """
    figure = {
        PathClass.I_NEAR: (20, (100, 0), (1, 4)),
        PathClass.I_FAR: (20, (1, 4), (100, 0)),
        PathClass.II: (20, (100, 2), (1, 2)),
        PathClass.III: (40, (40, 2), (40, 2)),
        PathClass.ZERO_LOSS: (40, (40, 0), (40, 0)),
        PathClass.OTHER: (40, (40, 4), (40, 0)),
    }
    return {
        path_class: Path(Cell(bandwidth_mbps or rate_mbps, *s1), Cell(bandwidth_mbps or rate_mbps, *s2))
        for path_class, (rate_mbps, s1, s2) in figure.items()
    }


def predict_split(path: Path, rates: Mapping[Cell, float]) -> float | None:
    """Return the rate of a connection split between the two segments, or None if one of them was not measured."""
    first, second = rates.get(path.s1), rates.get(path.s2)
    return None if first is None or second is None else min(first, second)


def predict_end_to_end(path: Path, rates: Mapping[Cell, float]) -> float | None:
    """Return the rate of one connection over both segments, or None if the composed cell is absent or not measured."""
    return None if path.end_to_end is None else rates.get(path.end_to_end)
