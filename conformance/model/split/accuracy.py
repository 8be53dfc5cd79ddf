"""Divide one path into two segments in several ways, and compare predicted split throughput with measured.

The path has a bottleneck of 10 Mbit/s, 80 ms of one-way delay, and 0 % or 4 % of loss. Each of these is divided between
its two segments in five ways, with the client's share first. The prediction is that of the ATC'25 study: a split
connection is as fast as the slower of its halves, each measured alone (split_paths.predict_split).
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from conformance.model.networks.place import Cell

BANDWIDTH_SPLITS_MBPS = ((10, 50), (10, 30), (10, 10), (30, 10), (50, 10))
DELAY_SPLITS_MS = ((1, 80), (20, 60), (40, 40), (60, 20), (80, 1))
LOSS_SPLITS_PCT = ((4, 0), (3, 1), (2, 2), (1, 3), (0, 4))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
    """Paths that differ in two ways. `paths`: {(row's label, column's label): (client's segment, server's segment)}."""

    title: str
    row_title: str
    column_title: str
    paths: Mapping[tuple[str, str], tuple[Cell, ...]]


def panels() -> tuple[Panel, ...]:
    """Return two Panels: without loss, delays by bandwidths; with 4 % of loss, delays by losses at one bandwidth."""
    lossless = {
        (_label(delays), _label(rates)): _segments(rates, delays, (0, 0))
        for delays, rates in itertools.product(DELAY_SPLITS_MS, BANDWIDTH_SPLITS_MBPS)
    }
    lossy = {
        (_label(delays), _label(losses)): _segments((10, 10), delays, losses)
        for delays, losses in itertools.product(DELAY_SPLITS_MS, LOSS_SPLITS_PCT)
    }
    rows = "one-way delays, ms"
    return (
        Panel(title="no loss", row_title=rows, column_title="bandwidths, Mbit/s", paths=lossless),
        Panel(title="4 % loss", row_title=rows, column_title="losses, %", paths=lossy),
    )


def _label(split: Iterable[float]) -> str:
    return "+".join(f"{part:g}" for part in split)


def _segments(rates: Sequence[float], delays: Sequence[float], losses: Sequence[float]) -> tuple[Cell, ...]:
    return tuple(Cell(*values) for values in zip(rates, delays, losses, strict=True))


def p50(values: Iterable[float]) -> float | None:
    """Return the study's 50th percentile: of an even number of values the upper middle one; None without values."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None


def relative_error(predicted: float | None, measured: float | None) -> float | None:
    """Return (predicted - measured) / measured: positive if the prediction is too high; None if a value is missing."""
    return None if predicted is None or not measured else (predicted - measured) / measured


@dataclasses.dataclass(frozen=True, kw_only=True)
class Accuracy:
    """A summary of the relative errors of `paths` paths; `worst` is the largest error, with its sign."""

    paths: int
    missing: int
    mean_absolute: float
    worst: float
    bias: float


def summary(errors: Sequence[float | None]) -> Accuracy | None:
    """Return the Accuracy of relative errors, of which those that are None are missing; None if all are."""
    known = [error for error in errors if error is not None]
    if not known:
        return None
    return Accuracy(
        paths=len(known),
        missing=len(errors) - len(known),
        mean_absolute=math.fsum(map(abs, known)) / len(known),
        worst=max(known, key=abs),
        bias=math.fsum(known) / len(known),
    )
