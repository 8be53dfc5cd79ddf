"""What a metric is: one record says all that the suite knows of it. metrics.py has the table of them."""

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from conformance.model import lone_metrics, shared_metrics

#: what a zone's margins are relative to a reference's least and most value, for every metric
RELATIVE_MARGIN = 0.10


class Measured(lone_metrics.Measured, Protocol):
    """What of a Measurement (model/trial.py) metrics are computed from: of a lone transfer, and of many flows."""

    @property
    def flows(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def links(self) -> Sequence[Mapping[str, Any]]: ...


class Timeout(enum.StrEnum):
    """What a metric's value means of a transfer that timed out."""

    #: the transfer would have had this value or a smaller one
    UPPER_BOUND = "upper_bound"
    #: the value is of a part of the transfer, and says nothing of the whole
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric.

    name: in zone files, exports and pytest's properties. title: what stands before a value; noun: what is least or
    most, such as "lowest loss"; heading: what it is, in one line. unit: follows a value, "" for a share.
    digits: behind the decimal point, for people. least, most: what a value may be; `most` None where there is no bound.
    margin: the absolute margin of zones, in the metric's unit. only_above: a smaller value than the references' is no
    fault; only_below: a greater one is none. full_scale, full_difference: the ends of the colours of
    values (from 0), and of differences (either sign). missing: why no trial of a stack may have a value, or None where
    that is a fault of the lab. column: what the names of its further columns in exports begin with.
    against: of what is told only as against what other flows have beside their own kind (Zone.own_kind), its value in a
    measurement, given that; `of` is then None of every measurement.
    of: its value in a measurement, None where it was not seen. of_group: of flows that share a network, its value of
    one group, or with None of those that are judged, which then is `of`, too; None: a metric of a lone transfer.
    """

    name: str
    title: str
    noun: str
    heading: str
    unit: str = ""
    digits: int
    least: float = 0.0
    most: float | None = None
    margin: float
    only_above: bool = False
    only_below: bool = False
    full_scale: float
    full_difference: float
    timeout: Timeout = Timeout.UNKNOWN
    missing: str | None = None
    column: str
    of: Callable[[Measured], float | None]
    of_group: shared_metrics.OfGroup | None = None
    against: Callable[[Measured, float], float | None] | None = None

    def value(self, measured: Measured, own_kind_mbps: float | None = None) -> float | None:
        """Return its value in a measurement, as against what others have beside their own kind where it is of that."""
        if self.against is None:
            return self.of(measured)
        return None if own_kind_mbps is None else self.against(measured, own_kind_mbps)

    @property
    def suffix(self) -> str:
        """Return the unit as it follows a number."""
        return f" {self.unit}" if self.unit else ""

    @property
    def label(self) -> str:
        """Return the head of a table's column: title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def text(self, value: float | None, more: int = 0, sign: str = "") -> str:
        """Return a value with its unit, `more` digits longer than usual; "none" where it is not known."""
        return "none" if value is None else f"{value:{sign}.{self.digits + more}f}{self.suffix}"

    def clamped(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval without what no value can be."""
        low = self.least if self.only_above else max(low, self.least)
        high = math.inf if self.only_below else high
        return low, high if self.most is None else min(high, self.most)


def shared(
    name: str,
    title: str,
    heading: str,
    of: shared_metrics.OfGroup,
    *,
    digits: int = 1,
    margin: float,
    full_scale: float,
    unit: str = "",
    most: float | None = None,
    missing: str | None = None,
    only_above: bool = False,
    only_below: bool = False,
    lone: Callable[[Measured], float | None] | None = None,
) -> Metric:
    """Return a metric of flows that share a network; `lone` is its function for a transfer alone, where it has one."""
    return Metric(
        name=name, title=title, noun=title, heading=heading, unit=unit, digits=digits, most=most, margin=margin,
        only_above=only_above, only_below=only_below, full_scale=full_scale, full_difference=full_scale / 3,
        missing=missing, column=name, of_group=of,
        of=lambda measured: lone(measured) if lone and not measured.flows else of(measured, None),
    )  # fmt: skip
