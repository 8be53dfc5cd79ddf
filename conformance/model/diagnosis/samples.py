"""Define Samples, which are values read from a flow with their times, and find stretches and bursts of packets."""

import dataclasses
from collections.abc import Iterable

import numpy
import numpy.typing

from conformance.model.diagnosis.flow import Floats, Flow

#: packets closer than this share of their serialization time at the bottleneck were sent at once
_AT_ONCE = 0.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Samples:
    """`values` and `times_s` (since the first packet), arrays of the same length."""

    values: Floats
    times_s: Floats

    def __len__(self) -> int:
        return len(self.values)


def samples(pairs: Iterable[tuple[float | None, float]]) -> Samples:
    """Return Samples of (value, time) pairs; pairs without a finite value are left out."""
    kept = [(value, at) for value, at in pairs if value is not None and numpy.isfinite(value)]
    values, times = zip(*kept, strict=True) if kept else ((), ())
    return Samples(values=numpy.array(values, dtype=float), times_s=numpy.array(times, dtype=float))


def one(value: float | None, at_s: float) -> Samples:
    """Return Samples of one value; they are empty if it is None or not finite."""
    return samples([(value, at_s)])


def stretches(flags: numpy.typing.NDArray[numpy.bool_]) -> list[tuple[int, int]]:
    """Return (first, last + 1) of each run of samples whose flag is set."""
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate(([0], flags.astype(int), [0]))))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def burst_begins(flow: Flow, a: int, b: int) -> numpy.typing.NDArray[numpy.int_]:
    """Return the indices at which bursts begin among packets a to b - 1 of a flow, counted from a; the first is 0."""
    apart = numpy.diff(flow.sent_s[a:b]) > _AT_ONCE * flow.full_bytes / flow.bytes_per_s
    return numpy.concatenate(([0], numpy.flatnonzero(apart) + 1))
