"""Rates between the cells of a grid, and how wrong they are.

Multilinear in the logarithm of the rate, over the logarithms of bandwidth and delay and the square root of loss: where
an algorithm is limited by loss, its rate is a power of delay and loss, and the root is near to a logarithm that a loss
of 0 has, too. (Of the scales tried on the reference grids, leaving cells out, none was better for both CUBIC and BBRv3:
linear loss costs CUBIC 39 % for 15, its logarithm BBRv3 14 % for 11.) A value is never above or below all of the cells
around it, so a trough or a peak between them is missed.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

from conformance.model.setting import Cell

_AXES = ("bandwidth_mbps", "one_way_delay_ms", "loss_pct")


def _scale(axis: str, value: float) -> float:
    return math.sqrt(value) if axis == "loss_pct" else math.log(max(value, 1e-3))


def interpolate(rates: Mapping[Cell, float], cell: Cell) -> float | None:
    """Return the rate at `cell` from {cell: rate}; None outside the box of the measured cells, or by a missing one.

    A measured cell gives its own rate. Rates must be above zero.
    """
    if cell in rates:
        return rates[cell]
    around = []
    for axis in _AXES:
        known = sorted({getattr(c, axis) for c in rates})
        found = _bracket(axis, known, getattr(cell, axis))
        if found is None:
            return None
        around.append(found)
    logarithm = 0.0
    for corner in itertools.product(*around):
        neighbour = rates.get(Cell(*(value for value, _ in corner)))
        if not neighbour:
            return None
        logarithm += math.prod(weight for _, weight in corner) * math.log(neighbour)
    return math.exp(logarithm)


def _bracket(axis: str, known: Sequence[float], value: float) -> list[tuple[float, float]] | None:
    """Return [(value, weight)] of the one or two of `known` that stand around `value`, or None."""
    if value in known:
        return [(value, 1.0)]
    below = [k for k in known if k < value]
    above = [k for k in known if k > value]
    if not below or not above:
        return None
    low, high = below[-1], above[0]
    weight = (_scale(axis, value) - _scale(axis, low)) / (_scale(axis, high) - _scale(axis, low))
    return [(low, 1 - weight), (high, weight)]


def leave_one_out(rates: Mapping[Cell, float]) -> dict[str, list[tuple[Cell, float]]]:
    """Return {axis: [(cell, predicted over measured)]}: every cell with neighbours on both sides of an axis, from
    those.

    The gap bridged is twice the grid's own, so a cell halfway between two of the grid's is not usually worse off.
    """
    found = {}
    for axis in _AXES:
        ratios: list[tuple[Cell, float]] = []
        for cell, rate in rates.items():
            rest = [getattr(cell, other) for other in _AXES if other != axis]
            line = {c: r for c, r in rates.items() if [getattr(c, other) for other in _AXES if other != axis] == rest}
            del line[cell]
            guess = interpolate(line, cell)
            if guess is not None and rate:
                ratios.append((cell, guess / rate))
        found[axis] = ratios
    return found


def typical_and_worst(ratios: Sequence[tuple[Cell, float]]) -> tuple[float, float]:
    """Return (typical, worst) relative error of [(cell, predicted over measured)]: 0.1 is wrong by a factor of 1.1."""
    errors = [abs(math.log(ratio)) for _, ratio in ratios]
    return math.expm1(math.fsum(errors) / len(errors)), math.expm1(max(errors))
