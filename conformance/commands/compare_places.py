"""Choose where both sides of a comparison are measured and traced: cells, or points of a scenario."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from conformance.catalogue import documents, scenarios
from conformance.commands import gate_order, trace, tracing
from conformance.commands.compare_sides import Results, Stack
from conformance.commands.tracing import TracedPlace
from conformance.lab import job
from conformance.model.diagnosis import feature_table
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.judging.question import Key
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.scenario import ALL
from conformance.model.networks.setting import Setting
from conformance.support.console import count

#: the --grid without cells, with which only features are compared
NO_CELLS = "none"
#: the cells for an algorithm without zones: one without loss, one with a little, one with more
_WITHOUT_ZONES = (Cell(10, 20, 0), Cell(10, 20, 1), Cell(10, 60, 2))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlaces:
    """Where an algorithm is compared; `traced`: {name: where features are read}.

    `lacking`: sentences about what is not compared.
    """

    keys: list[Key]
    lacking: list[str]
    traced: Mapping[str, TracedPlace]


def chosen(
    both: Sequence[Stack | Results], algorithm: str, grid: str, profile: str | None, features: bool, flow: str | None
) -> ComparedPlaces:
    """Return the places in which an algorithm is compared; if a side is a results file, those that it holds.

    `grid`, `profile` and `flow` are the values of these options; `profile` None stands for that of each zone.
    `features`: whether features are read. Raises UserError.
    """
    if is_scenario(profile):
        return _at_points(both, algorithm, grid, str(profile), features, flow)
    settings, lacking = _in_cells(both, algorithm, grid, profile)
    telling = tracing.telling_places()
    cells = feature_table.cells(algorithm) if features else []
    return ComparedPlaces(
        keys=[(algorithm, setting) for setting in settings], lacking=lacking,
        traced={cell: telling[cell] for cell in cells},
    )  # fmt: skip


def is_scenario(profile: str | None) -> bool:
    """Return whether this is the name or the file of a scenario whose points are not cells."""
    return profile is not None and profile not in documents.profile_names()


def _at_points(
    both: Sequence[Stack | Results], algorithm: str, grid: str, profile: str, features: bool, flow: str | None
) -> ComparedPlaces:
    """Return the points of a scenario: those of a grid, those named, or by default the smoke tier's, else all.

    Features are those of a flow there. Raises UserError, also if the flow that was named cannot be traced.
    """
    scenario = scenarios.find(profile)
    if grid == scenarios.SMOKE and grid not in scenario.grids:
        grid = ALL
    points = scenario.grid(grid) if grid in scenario.grids else [scenario.parse(text) for text in grid.split(";")]
    settings = [scenario.setting(point) for point in points]
    lacking: list[str] = []
    if any(isinstance(side, Results) for side in both):
        held, lacking = _held(both, algorithm)
        settings = [setting for setting in settings if setting in held]
    for side, setting in itertools.product(both, settings):
        if isinstance(side, Stack) and (why := job.why_not(setting, side.bench.adapter)):
            raise UserError(f"{side.given} at {setting.id}: {why}")
    traced = {}
    for setting in settings if features else ():
        try:
            traced[setting.id] = _traced(setting, flow)
        except UserError as why_not:
            if flow is not None:
                raise
            lacking.append(f"{algorithm}: no features at {setting.id}: {why_not}")
    return ComparedPlaces(keys=[(algorithm, setting) for setting in settings], lacking=lacking, traced=traced)


def _traced(setting: Setting, flow: str | None) -> TracedPlace:
    at = trace.flow_of(setting, flow)
    group = setting.network.flows[at[0]]
    if not group.is_stack:
        raise UserError(
            f"{flow} is a flow of the guest's kernel, the same on both sides; what becomes of it, metrics say",
            "choose a flow of the stack",
        )
    return TracedPlace(cell=feature_table.like(setting.network.loss_pct(group)), setting=setting, of=at)


def _in_cells(
    both: Sequence[Stack | Results], algorithm: str, grid: str, profile: str | None
) -> tuple[list[Setting], list[str]]:
    """Return cells, and points of zones; and sentences about what is not compared."""
    if grid == NO_CELLS:
        return [], []
    if any(isinstance(side, Results) for side in both):
        held, lacking = _held(both, algorithm)
        if grid not in (grids.SMOKE, grids.FULL):
            wanted = {_under(named, place) for named, place in _named(grid, "")}
            held = [setting for setting in held if _under(setting.profile, setting.point) in wanted]
        return [setting for setting in held if profile in (None, setting.profile)], lacking
    usual, *others = dict.fromkeys(side.bench.profile for side in both if isinstance(side, Stack))
    if others:
        raise UserError("one stack runs over TCP, the other over UDP", "compare two builds of one stack")
    if grid != grids.SMOKE:
        return [scenarios.setting(named, place) for named, place in _named(grid, profile or usual)], []
    zones = [zone for _, zone in documents.judging(usual) if zone.algorithm == algorithm]
    # The places that tell most come first, so that a budget that ends early leaves out the others.
    ranked = gate_order.order({algorithm: zones}, [zone for _, zone in documents.judging(usual)], grids.SMOKE).work
    settings = list(dict.fromkeys(setting for _, setting in ranked))
    if profile is not None:  # at the same cells; points of scenarios are none
        cells = dict.fromkeys(setting.point for setting in settings if isinstance(setting.point, Cell))
        settings = [documents.profile(profile, cell) for cell in cells]
    return settings or [documents.profile(profile or usual, cell) for cell in _WITHOUT_ZONES], []


def _held(both: Sequence[Stack | Results], algorithm: str) -> tuple[list[Setting], list[str]]:
    """Return the settings that all files hold, and sentences about what is not compared."""
    held = [side.measured(algorithm) for side in both if isinstance(side, Results)]
    everywhere = [key for key in held[0] if all(key in other for other in held)]
    keys = [key for key in everywhere if not key[1].segments]
    lacking = []
    if paths := len(everywhere) - len(keys):
        lacking.append(f"{algorithm}: {count(paths, 'split path')} not compared")
    if alone := sum(len(of) for of in held) - len(held) * len(everywhere):
        lacking.append(f"{algorithm}: {count(alone, 'place')} not compared, because only one file has results there")
    return [setting for _, setting in keys], lacking


def _under(profile: str, place: Point) -> tuple[str | None, Point]:
    """Return a place under its scenario; a cell under None, as cells match under any profile that the files hold."""
    return None if isinstance(place, Cell) else profile, place


def _named(grid: str, profile: str) -> list[tuple[str, Point]]:
    """Return [(profile, place)] of a grid's cells, or of the cells or points of a zone's id. Raises UserError."""
    if "/" in grid:
        zone = documents.zone(documents.shipped_path(grid))
        if not zone.of_cells:
            return [(zone.profile, point) for point in zone.intervals]
    return [(profile, cell) for cell in documents.cells(grid)]
