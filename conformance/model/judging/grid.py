"""Look up grids of cells by name, and cells or points of scenarios by their ids.

The grid `full` is the published ATC'25 study's: 5 bandwidths x 6 delays x 5 losses.
"""

import functools
import itertools
import re
from collections.abc import Collection, Iterable

from conformance.model.errors import UserError
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Cell, Point

BANDWIDTHS_MBPS = (10, 20, 30, 40, 50)
ONE_WAY_DELAYS_MS = (1, 20, 40, 60, 80, 100)
LOSSES_PCT = (0, 1, 2, 3, 4)
FULL = "full"
#: no grid, but a tier: the cells that each zone's file names
SMOKE = "smoke"


@functools.cache  # called for every zone of the grid, in every session
def _product(bandwidths: tuple[int, ...]) -> tuple[Cell, ...]:
    return tuple(Cell(*cell) for cell in itertools.product(bandwidths, ONE_WAY_DELAYS_MS, LOSSES_PCT))


def _bandwidths(name: str) -> tuple[int, ...]:
    """Return the bandwidths whose cells make up a grid; none for cells by id, or if there is no such grid."""
    if name == FULL:
        return BANDWIDTHS_MBPS
    bandwidth = re.fullmatch(r"(\d+)mbps", name)
    return tuple(b for b in BANDWIDTHS_MBPS if bandwidth and int(bandwidth.group(1)) == b)


def within(name: str, of_zone: Iterable[Point]) -> tuple[Point, ...]:
    """Return the places of a zone that a grid's name selects: all, cells of a bandwidth, or those named.

    Zones with few cells have other cells than the grids have. A grid of a bandwidth has no points of scenarios. Raises
    UserError if the name is not known.
    """
    if name == FULL:
        return tuple(of_zone)
    bandwidths, named = _bandwidths(name), places(name)
    return tuple(
        place for place in of_zone if (isinstance(place, Cell) and place.bandwidth_mbps in bandwidths) or place in named
    )


def check(name: str, zones: Collection[Zone], besides: Iterable[str] = ()) -> None:
    """Raise UserError if there is no such grid, or if a cell that it names is in none of these zones."""
    named = () if _bandwidths(name) else places(name, besides)
    if lacking := [place.id for place in named if not any(place in zone.intervals for zone in zones)]:
        algorithms = ", ".join(dict.fromkeys(zone.algorithm for zone in zones))
        raise UserError(
            f"no zone of {algorithms} has {', '.join(lacking)}", "`conformance zones show` lists what a zone has"
        )


def places(name: str, besides: Iterable[str] = ()) -> tuple[Point, ...]:
    """Return the cells of a grid, as cells() does, or points by id (flows=2; flows=4), paths too. Raises UserError."""
    if "=" in name or "+" in name:
        return tuple(dict.fromkeys(Point.parse(part.strip()) for part in filter(str.strip, name.split(";"))))
    return cells(name, besides)


def cells(name: str, besides: Iterable[str] = ()) -> tuple[Cell, ...]:
    """Return the cells of a grid: `full` (150), `10mbps` (30, one bandwidth), or cells by id, separated by commas.

    Raises UserError that offers the names of grids, and those that the caller knows `besides`.
    """
    if bandwidths := _bandwidths(name):
        return _product(bandwidths)
    if "ms-" in name:
        return tuple(dict.fromkeys(Cell.parse(part.strip()) for part in name.split(",")))
    if name == SMOKE:
        raise UserError("smoke is a tier, not a grid", "use `pytest -m smoke` or `conformance gate --grid smoke`")
    known = ", ".join((*besides, FULL, *(f"{b}mbps" for b in BANDWIDTHS_MBPS)))
    raise UserError(f"grid {name!r} is not known", f"choose {known}, or cells such as 10mbps-20ms-1pct")
