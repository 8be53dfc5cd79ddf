"""Choose the cells and points of scenarios that `conformance compare` compares, and say which it leaves out."""

import dataclasses
from collections.abc import Sequence

from conformance.catalogue import documents, scenarios
from conformance.commands import gate_order
from conformance.commands.compare_sides import Results, Stack
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.judging.question import Key
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.setting import Setting
from conformance.support.console import count

#: the --grid without cells, with which only features are compared
NO_CELLS = "none"
#: the cells for an algorithm without zones: one without loss, one with a little, one with more
_WITHOUT_ZONES = (Cell(10, 20, 0), Cell(10, 20, 1), Cell(10, 60, 2))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSettings:
    """The settings in which an algorithm is compared; `lacking`: sentences about what is not compared."""

    keys: list[Key]
    lacking: list[str]


def chosen(both: Sequence[Stack | Results], algorithm: str, grid: str, profile: str | None) -> ComparedSettings:
    """Return the settings in which an algorithm is compared; if a side is a results file, those that it holds.

    `grid` and `profile` are the values of --grid and --profile; `profile` None stands for that of each zone. Raises
    UserError.
    """
    if grid == NO_CELLS:
        return ComparedSettings(keys=[], lacking=[])
    if any(isinstance(side, Results) for side in both):
        return _held(both, algorithm, grid, profile)
    usual, *others = dict.fromkeys(side.bench.profile for side in both if isinstance(side, Stack))
    if others:
        raise UserError("one stack runs over TCP, the other over UDP", "compare two builds of one stack")
    if grid != grids.SMOKE:
        settings = [scenarios.setting(named, place) for named, place in _named(grid, profile or usual)]
        return ComparedSettings(keys=[(algorithm, setting) for setting in settings], lacking=[])
    zones = [zone for _, zone in documents.judging(usual) if zone.algorithm == algorithm]
    # The places that tell most come first, so that a budget that ends early leaves out the others.
    ranked = gate_order.order({algorithm: zones}, [zone for _, zone in documents.judging(usual)], grids.SMOKE).work
    settings = list(dict.fromkeys(setting for _, setting in ranked))
    if profile is not None:  # at the same cells; points of scenarios are none
        cells = dict.fromkeys(setting.point for setting in settings if isinstance(setting.point, Cell))
        settings = [documents.profile(profile, cell) for cell in cells]
    settings = settings or [documents.profile(profile or usual, cell) for cell in _WITHOUT_ZONES]
    return ComparedSettings(keys=[(algorithm, setting) for setting in settings], lacking=[])


def _held(both: Sequence[Stack | Results], algorithm: str, grid: str, profile: str | None) -> ComparedSettings:
    """Return the settings that all files hold, as far as they are asked for."""
    held = [side.measured(algorithm) for side in both if isinstance(side, Results)]
    everywhere = [key for key in held[0] if all(key in other for other in held)]
    keys = [key for key in everywhere if not key[1].segments]
    lacking = []
    if paths := len(everywhere) - len(keys):
        lacking.append(f"{algorithm}: {count(paths, 'split path')} not compared")
    if alone := sum(len(of) for of in held) - len(held) * len(everywhere):
        lacking.append(f"{algorithm}: {count(alone, 'place')} not compared, because only one file has results there")
    if grid not in (grids.SMOKE, grids.FULL):
        # Cells match under any profile that the files hold.
        wanted = {(None if isinstance(place, Cell) else named, place) for named, place in _named(grid, "")}
        keys = [key for key in keys if _place_of(key[1]) in wanted]
    if profile is not None:
        keys = [key for key in keys if key[1].profile == profile]
    return ComparedSettings(keys=keys, lacking=lacking)


def _place_of(setting: Setting) -> tuple[str | None, Point]:
    place = setting.point
    return None if isinstance(place, Cell) else setting.profile, place


def _named(grid: str, profile: str) -> list[tuple[str, Point]]:
    """Return [(profile, place)] of a grid's cells, or of the cells or points of a zone's id. Raises UserError."""
    if "/" in grid:
        zone = documents.zone(documents.shipped_path(grid))
        if not zone.of_cells:
            return [(zone.profile, point) for point in zone.intervals]
    return [(profile, cell) for cell in documents.cells(grid)]
