"""Interpolate rates between the cells of a grid, and tell how wrong they are.

Interpolation is multilinear in the logarithm of the rate, over the logarithms of bandwidth and delay and the square
root of loss. Where loss limits an algorithm, its rate is a power of delay and loss; the square root is close to a
logarithm, and exists for a loss of 0, too. (Several scales were tried on the reference grids by leaving cells out. None
was better for both CUBIC and BBRv3: with linear loss, CUBIC's error is 39 % instead of 15 %; with the logarithm of
loss, BBRv3's is 14 % instead of 11 %.) A value is never above or below all of the cells around it, so a trough or a
peak between them is missed.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

from conformance.model.networks.place import Cell

_AXES = ("bandwidth_mbps", "one_way_delay_ms", "loss_pct")


def _scale(axis: str, value: float) -> float:
    return math.sqrt(value) if axis == "loss_pct" else math.log(max(value, 1e-3))


def interpolate(rates: Mapping[Cell, float], cell: Cell) -> float | None:
    """Return the rate at `cell` from {cell: rate}; None outside the box of measured cells, or next to a missing one.

    A measured cell has its own rate. Rates must be above zero.
    """
    if cell in rates:
        return rates[cell]
    around = []
    for axis in _AXES:
        known = sorted({getattr(c, axis) for c in rates})
        bracket = _bracket(axis, known, getattr(cell, axis))
        if bracket is None:
            return None
        around.append(bracket)
    logarithm = 0.0
    for corner in itertools.product(*around):
        neighbour = rates.get(Cell(*(value for value, _ in corner)))
        if not neighbour:
            return None
        logarithm += math.prod(weight for _, weight in corner) * math.log(neighbour)
    return math.exp(logarithm)


def _bracket(axis: str, known: Sequence[float], value: float) -> list[tuple[float, float]] | None:
    """Return [(value, weight)] of the one or two `known` values next to `value`, or None if it is outside of them."""
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
    """Return {axis: [(cell, predicted over measured)]}, with each cell predicted from its neighbours along an axis.

    Cells without neighbours on both sides are left out. The gap that is bridged is twice the grid's own, so the error
    of a cell halfway between two cells of the grid is usually no larger.
    """
    errors = {}
    for axis in _AXES:
        ratios: list[tuple[Cell, float]] = []
        for cell, rate in rates.items():
            rest = [getattr(cell, other) for other in _AXES if other != axis]
            line = {c: r for c, r in rates.items() if [getattr(c, other) for other in _AXES if other != axis] == rest}
            del line[cell]
            guess = interpolate(line, cell)
            if guess is not None and rate:
                ratios.append((cell, guess / rate))
        errors[axis] = ratios
    return errors


def typical_and_worst(ratios: Sequence[tuple[Cell, float]]) -> tuple[float, float]:
    """Return (typical, worst) relative error of [(cell, predicted over measured)]; 0.1 stands for a factor of 1.1."""
    errors = [abs(math.log(ratio)) for _, ratio in ratios]
    return math.expm1(math.fsum(errors) / len(errors)), math.expm1(max(errors))
