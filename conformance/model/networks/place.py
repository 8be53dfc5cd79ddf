"""Define the points of scenarios, at which zones have intervals and trials are made.

A Point has a value for each axis. Its id is read back exactly. Points of a profile have names of their own: a Cell is
named by its rate, delay and loss, and a CellPath by the cells of its two segments.
"""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from conformance.model.errors import UserError

#: the types of values that an axis may set
Value = int | float | str | bool
#: the axes of a profile
CELL_AXES = ("bandwidth_mbps", "one_way_delay_ms", "loss_pct")
#: what the axes of a path of two segments begin with
_SIDES = ("client", "server")
#: a number in an id, as `exact` writes it or as a person may write it instead
NUMBER = r"-?[\d.]+(?:e-?\d+)?"
_CELL = re.compile(rf"({NUMBER})mbps-({NUMBER})ms-({NUMBER})pct")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?\Z")


def number(given: float) -> int | float:
    """Return the shortest form of a number: 10 for 10.0, so that equal settings read and digest alike."""
    return int(given) if float(given).is_integer() else float(given)


def exact(given: float) -> str:
    """Return a number as ids have it: short, and read back as exactly the same number."""
    return repr(number(given))


def plain(value: Value) -> Value:
    """Return 10 for 10.0, so that equal points are equal."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text(value: Value) -> str:
    """Return a value as text that parse_value() reads back."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(plain(value)) if isinstance(value, (int, float)) else value


def parse_value(written: str) -> Value:
    """Return the value that a person wrote: a number, true or false, or a word."""
    if written in ("true", "false"):
        return written == "true"
    return plain(float(written)) if _NUMBER.match(written) else written


def parse_values(written: str) -> dict[str, Value]:
    """Return {axis: value} of a point's id, or of some of its parts. Raises UserError."""
    if _CELL.fullmatch(written):
        return dict(Cell.parse(written).values)
    if "+" in written and "=" not in written:
        return dict(CellPath(parse_path(written)).values)
    given = {}
    for part in filter(None, written.split(",")):
        name, sign, value = part.partition("=")
        if not (name and sign and value):
            raise UserError(f"{part!r} is not of the form AXIS=VALUE", "write it like flows=4")
        given[name.strip()] = parse_value(value.strip())
    return given


@dataclasses.dataclass(frozen=True, order=True)
class Point:
    """A value for each axis of a scenario: in the order of its axes or, in settings and zones, sorted by name."""

    values: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> "Point":
        """Return the point of these values, a Cell or a CellPath if they are those of one. Raises UserError."""
        if values.keys() == set(CELL_AXES):
            return Cell(**values)  # type: ignore[arg-type]  # it refuses what is no number
        if values.keys() == {f"{side}_{name}" for side in _SIDES for name in CELL_AXES}:
            sides = ({name: values[f"{side}_{name}"] for name in CELL_AXES} for side in _SIDES)
            return CellPath(tuple(Cell(**side) for side in sides))  # type: ignore[arg-type]  # as above
        return Point(tuple(values.items()))

    @classmethod
    def parse(cls, text: str) -> "Point":
        """Return the point of an id, its axes by name. Raises UserError."""
        if "+" in text and "=" not in text:
            return CellPath(parse_path(text))
        return Point.of(dict(sorted(parse_values(text).items()))) if "=" in text else Cell.parse(text)

    @property
    def id(self) -> str:
        """The text that `parse` reads back: equal points, and no others, have equal ids."""
        return ",".join(f"{name}={text(value)}" for name, value in self.values)

    def __getitem__(self, axis: str) -> Value:
        return dict(self.values)[axis]

    @property
    def by_name(self) -> "Point":
        """The same point with its axes sorted by name, as settings and zones have it; those of profiles as they are."""
        return Point(tuple(sorted(self.values))) if type(self) is Point else self

    def to_json(self) -> dict[str, Any]:
        return dict(self.values)


@dataclasses.dataclass(frozen=True, order=True)
class Cell(Point):
    """A point of a profile: the rate, delay and loss of its one link, in both directions.

    `one_way_delay_ms`: the round-trip time is twice that.
    """

    values: tuple[tuple[str, Value], ...] = dataclasses.field(init=False, repr=False, compare=False)
    bandwidth_mbps: float
    one_way_delay_ms: float
    loss_pct: float

    def __post_init__(self) -> None:
        for name, low, high, why in (
            ("bandwidth_mbps", 0.1, 10_000, "must be from 0.1 to 10000"),
            ("one_way_delay_ms", 0, 10_000, "must be from 0 to 10000"),
            ("loss_pct", 0, 50, "must be from 0 to 50: no transfer ends beyond that"),
        ):
            given = getattr(self, name)
            # A comparison, as math.isfinite() raises for integers that no float holds.
            if isinstance(given, bool) or not isinstance(given, (int, float)) or not abs(given) < math.inf:
                raise UserError(f"{name} is {given!r}", "it must be a number")
            if not low <= given <= high:
                raise UserError(f"{name} is {given!r:.20}", f"it {why}")
            object.__setattr__(self, name, number(given))
        object.__setattr__(self, "values", tuple((name, getattr(self, name)) for name in CELL_AXES))

    @property
    def rtt_s(self) -> float:
        """The round-trip time of the empty path: twice the one-way delay."""
        return 2 * self.one_way_delay_ms / 1000

    @property
    def bdp_bytes(self) -> float:
        """The bandwidth-delay product: the round-trip time at the bottleneck's rate."""
        return self.rtt_s * self.bandwidth_mbps * 1e6 / 8

    @property
    def id(self) -> str:
        """Its name, which `parse` reads back: equal cells, and no others, have equal names."""
        return f"{exact(self.bandwidth_mbps)}mbps-{exact(self.one_way_delay_ms)}ms-{exact(self.loss_pct)}pct"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the Cell of a name. Raises UserError."""
        match = _CELL.fullmatch(text)
        if not match:
            raise UserError(f"cell {text!r} is not of the form 10mbps-20ms-1pct")
        try:
            return cls(*(float(x) for x in match.groups()))
        except ValueError:
            raise UserError(f"cell {text!r} is not of the form 10mbps-20ms-1pct") from None


@dataclasses.dataclass(frozen=True, order=True)
class CellPath(Point):
    """A point of a profile over a path of two segments with a router between them, the client's side first."""

    values: tuple[tuple[str, Value], ...] = dataclasses.field(init=False, repr=False, compare=False)
    segments: tuple[Cell, ...]

    def __post_init__(self) -> None:
        if len(self.segments) != 2:
            raise UserError(f"{self.id} is not a path of two segments")
        sides = zip(_SIDES, self.segments, strict=True)
        values = tuple((f"{side}_{name}", value) for side, cell in sides for name, value in cell.values)
        object.__setattr__(self, "values", values)

    @property
    def id(self) -> str:
        """The names of its segments' cells."""
        return "+".join(cell.id for cell in self.segments)


def end_to_end(segments: Sequence[Cell]) -> Cell:
    """Return the end-to-end Cell of segments in a row: the smallest bandwidth, the sum of delays, the loss of all.

    A packet may be lost in each segment, independently: l1 + l2 - l1 l2 for two. The result is the same in any order,
    and for any grouping up to rounding. Raises UserError if it is no Cell (loss above 50 %).
    """
    kept = math.prod(1 - cell.loss_pct / 100 for cell in segments)
    return Cell(
        min(cell.bandwidth_mbps for cell in segments),
        round(math.fsum(cell.one_way_delay_ms for cell in segments), 9),
        round(100 * (1 - kept), 9),
    )


def parse_path(text: str) -> tuple[Cell, Cell]:
    """Return the two segments of a CellPath's id. Raises UserError."""
    parts = text.split("+")
    if len(parts) != 2:
        raise UserError(
            f"path {text!r} is not of the form 10mbps-20ms-0pct+50mbps-60ms-1pct", "name the client's side first"
        )
    first, second = (Cell.parse(part.strip()) for part in parts)
    return first, second
