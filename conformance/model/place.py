"""Define the places at which zones have intervals: a Cell of a grid, or a Point of a scenario.

Both have an id that is read back exactly. Code that judges, repeats, expects or reports takes either; only code that
draws grids needs cells.
"""

import dataclasses
import re
from typing import Any, Self

from conformance.model.errors import UserError
from conformance.model.setting import Cell, Setting

#: the types of values that an axis may set
Value = int | float | str | bool
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?\Z")


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

    @property
    def id(self) -> str:
        """The text that `parse` reads back: equal points, and no others, have equal ids."""
        return ",".join(f"{name}={text(value)}" for name, value in self.values)

    def __getitem__(self, axis: str) -> Value:
        return dict(self.values)[axis]

    @property
    def by_name(self) -> "Point":
        """The same point with its axes sorted by name, as settings and zones have it."""
        return Point(tuple(sorted(self.values)))

    @classmethod
    def parse(cls, written: str) -> Self:
        """Return the point of an id, its axes by name. Raises UserError."""
        return cls(tuple(sorted(parse_values(written).items())))

    def to_json(self) -> dict[str, Any]:
        return dict(self.values)


Place = Cell | Point


def of(setting: Setting) -> Place:
    """Return the place of a setting: its cell, or its point of a scenario."""
    return setting.cell if setting.network is None else Point(setting.point)


def parse(written: str) -> Place:
    """Return the Cell or the Point of an id. Raises UserError."""
    return Point.parse(written) if "=" in written else Cell.parse(written)
