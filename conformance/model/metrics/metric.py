"""Define Metric, a record of all that the suite knows of one metric. metrics.py has the table of all metrics."""

import dataclasses
import enum
import math
from collections.abc import Callable

from conformance.model.metrics.group_metrics import Measured, OfGroup

#: the least relative margin of a zone, as a share of the bases' least and greatest median, for every metric
RELATIVE_MARGIN = 0.10


class Timeout(enum.StrEnum):
    """What a metric's value says of a transfer that timed out."""

    #: the transfer would have had this value or a smaller one
    UPPER_BOUND = "upper_bound"
    #: the value is of a part of the transfer, and says nothing of the whole
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """All that the suite knows of one metric.

    name: its name in zone files, exports and pytest's properties. title: the words before a value; noun: the word after
    "lowest" or "median of the", such as "loss", usually the title; heading: what it is, in one line. unit: the unit
    after a value, "" for a share.
    digits: decimal places in texts for people. least, most: the bounds of possible values; `most` is None if there is
    no upper bound. margin: the absolute margin of zones, in the metric's unit. only_above: a smaller value than the
    references' is no fault; only_below: a greater one is none. full_scale: the end of the colour scale of values,
    which is from 0. missing: why trials of a stack may have no value, or None if a missing value is a fault of the lab.
    column: the prefix of its further columns in tables of cells and exports, "" if it has none there.
    against: for a metric that compares with what other flows have beside their own kind (Zone.own_kind), the function
    of a measurement and of that goodput; `of` is then None of every measurement.
    of: its value in a measurement, of one group of flows or, with None, of those that are judged; None if it was not
    seen.
    """

    name: str
    title: str
    heading: str
    of: OfGroup
    _: dataclasses.KW_ONLY
    noun: str = ""
    unit: str = ""
    digits: int = 1
    least: float = 0.0
    most: float | None = None
    margin: float
    only_above: bool = False
    only_below: bool = False
    full_scale: float
    timeout: Timeout = Timeout.UNKNOWN
    missing: str | None = None
    column: str = ""
    against: Callable[[Measured, float], float | None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "noun", self.noun or self.title)

    def value(self, measured: Measured, own_kind_mbps: float | None = None) -> float | None:
        """Return its value in a measurement, of the judged flows.

        A metric with `against` needs what others have beside their own kind.
        """
        if self.against is None:
            return self.of(measured, None)
        return None if own_kind_mbps is None else self.against(measured, own_kind_mbps)

    @property
    def suffix(self) -> str:
        """The unit as it follows a number."""
        return f" {self.unit}" if self.unit else ""

    @property
    def label(self) -> str:
        """The head of a table's column: title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def text(self, value: float | None, more: int = 0) -> str:
        """Return a value with its unit and `more` digits than usual; "none" if it is not known."""
        return "none" if value is None else f"{value:.{self.digits + more}f}{self.suffix}"

    def clamped(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval that is cut to possible values, and extended to all of them on a side that is no fault."""
        low = self.least if self.only_above else max(low, self.least)
        high = math.inf if self.only_below else high
        return low, high if self.most is None else min(high, self.most)
