"""Read the documents that ship with the suite or that a user gives: profiles and zones."""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.catalogue import scenarios
from conformance.model.errors import UserError
from conformance.model.judging import grid, zone as zones
from conformance.model.networks.legacy import CellForm
from conformance.model.networks.place import Cell, end_to_end
from conformance.model.networks.proxy import Proxy
from conformance.model.networks.setting import Setting
from conformance.model.split import split_zone
from conformance.model.split.split_zone import SplitCheck
from conformance.support import paths, schema, spelling


def profile(name: str, cell: Cell, **overrides: Any) -> Setting:
    """Return the Setting of a profile at a cell. Raises UserError.

    `overrides`: what replaces the profile's own queue, offload, transfer_s or rival, unless it is None; and `sysctls`
    to add.
    """
    return Setting.of_form(_form(name, overrides, cell=cell))


def path(
    name: str, segments: Sequence[Cell], proxy: Proxy | None = None, queue_sized_by: str = "path", **overrides: Any
) -> Setting:
    """Return the Setting of a profile over a path of two segments, with a Proxy between them or none.

    Raises UserError.
    """
    segments = tuple(segments)
    changes = {"cell": end_to_end(segments), "segments": segments, "proxy": proxy, "queue_sized_by": queue_sized_by}
    return Setting.of_form(_form(name, overrides, **changes))


def _form(name: str, overrides: Mapping[str, Any], **changes: Any) -> CellForm:
    """Return what a profile says, with changes."""
    given = {key: override for key, override in overrides.items() if override is not None}
    base = _profile(name)
    sysctls = tuple(sorted({**dict(base.sysctls), **dict(given.pop("sysctls", ()))}.items()))
    return dataclasses.replace(base, **{**given, **changes, "sysctls": sysctls})


@functools.cache
def _profile(name: str) -> CellForm:
    """Return what a profile says at the first of its cells. Raises UserError."""
    if name not in profile_names():  # which may be no name that a file can have
        raise UserError(f"profile {name!r:.100} is not known", f"choose one of {', '.join(profile_names())}")
    scenario = scenarios.find(name)
    form = scenario.setting(scenario.point({})).cell_form
    assert form is not None, "a profile has one link and the axes of cells"
    return form


@functools.lru_cache(maxsize=1024)
def profile_or_none(name: str, cell: Cell) -> Setting | None:
    """Return the Setting of a profile at `cell`, or None if the suite does not know the profile."""
    return profile(name, cell) if name in profile_names() else None


def profile_names() -> tuple[str, ...]:
    """Return the names of the profiles that ship."""
    return tuple(scenarios.profiles())


#: kinds of zones that stacks are judged by, named after their files: utilization and loss over the grid
KINDS = ("heatmap", "loss")
#: kinds of zones over a few cells each, under profiles of their own, in the order in which they judge stacks; kinds
#: that have zones and are not named here follow in alphabetical order
FURTHER_KINDS = (
    "startup",
    "competing",
    "sawtooth-utilization",
    "sawtooth-queue",
    "sawtooth-events",
    "identify-utilization",
    "identify-queue",
    "pacing",
    "threshold",
)
#: the profile that a stack is judged under, by its transport. With offload on, netem drops super-packets whole. Those
#: of Linux TCP are two segments at these rates, as in the published study. A stack over UDP chooses their size, up to
#: 64 KB, so that 1 % of loss would mean something different for each stack.
PROFILES = {"tcp": "atc25", "udp": "packets"}
_FIRST_PROFILE = PROFILES["tcp"]
_SPLIT = "split"


def zone_files(kind: str = "heatmap", profile: str = _FIRST_PROFILE) -> list[pathlib.Path]:
    """Return the files of zones that ship, by kind: heatmap, loss, split, ..., or a pattern for several kinds."""
    named = f"*/{stem(kind, profile)}.json"
    return sorted(p for p in paths.data("zones").glob(named) if p.parent.name != "profiles")


def algorithms(profile: str = _FIRST_PROFILE) -> set[str]:
    """Return the algorithms that have zones over the grid for stacks judged under a profile."""
    return {file.parent.name for file in zone_files("heatmap", profile)}


def stem(kind: str, profile: str) -> str:
    """Return the file name (without .json) of zones of a kind, for stacks judged under a profile."""
    return kind if profile == _FIRST_PROFILE else f"{kind}-{profile}"


#: names of zones over a grid, under any profile; the cells of all other zones were chosen one by one
GRID_ZONES = frozenset(stem(kind, profile) for kind in KINDS for profile in PROFILES.values())


def all_kinds() -> tuple[str, ...]:
    """Return all kinds of zones that judge cells: KINDS, and all others that have zones."""
    return (*KINDS, *_further())


def _further() -> list[str]:
    """Return the kinds besides KINDS that have zones, in the order in which they judge stacks."""
    order = {kind: at for at, kind in enumerate(FURTHER_KINDS)}
    there = {file.stem for file in zone_files("*")} - GRID_ZONES
    return sorted(there, key=lambda kind: (order.get(kind, len(order)), kind))


def _first_of(kind: str) -> zones.Zone:
    """Return the first zone of a kind: all zones of a kind have the same metric and profile."""
    return zone(zone_files(kind)[0])


def metric_of(kind: str) -> str:
    """Return the name of the metric that zones of a kind are about, as these zones say."""
    return _first_of(kind).metric


def _by_name() -> dict[str, tuple[str, str]]:
    """Return {name of files, without .json: (metric, profile or scenario)} of all zones that judge cells or points."""
    grids = {stem(kind, under): (metric_of(kind), under) for kind in KINDS for under in PROFILES.values()}
    firsts = {kind: _first_of(kind) for kind in _further()}
    return grids | {kind: (first.metric, first.profile) for kind, first in firsts.items()}


def refuse_name(name: str, metric: str, profile: str) -> None:
    """Raise UserError if zones in files of this name have another metric or profile: zones are found by these names.

    `name`: without .json.
    """
    by_name = _by_name()
    wanted_metric, wanted_profile = by_name.get(name, (metric, profile))
    fitting = [f"{other}.json" for other, of in by_name.items() if of == (metric, profile)]
    mend = f"call the file {' or '.join(fitting) or 'otherwise'}"
    if metric != wanted_metric:
        raise UserError(f"/metric: {metric!r}, but zones called {name} are about {wanted_metric}", mend)
    if profile != wanted_profile:
        where = "profile" if profile in profile_names() else "scenario"
        raise UserError(f"/{where}: {profile!r}, but zones called {name} are under {wanted_profile}", mend)


def zone_path(zone_id: str) -> pathlib.Path:
    """Return the file of the zone of this id, among those that ship."""
    return paths.data("zones", f"{zone_id}.json").resolve()


def shipped_path(zone_id: str) -> pathlib.Path:
    """Return the file of the zone with this id. Raises UserError if no such zone ships."""
    shipped = zone_path(zone_id)
    if not paths.exists(shipped):
        ids = [f"{file.parent.name}/{file.stem}" for file in zone_files("*")]
        alike = [known for known in ids if known.startswith(zone_id)] if zone_id else []
        listed = "`conformance zones check` lists those that ship"
        mend = f"choose one of {', '.join(alike)}" if alike else spelling.mend(zone_id, ids, listed)
        raise UserError(f"there is no zone {zone_id!r}", mend)
    return shipped


def cells(named: str) -> tuple[Cell, ...]:
    """Return the cells of a grid by its name (model/judging/grid.py), or those of a zone that ships by its id.

    Raises UserError.
    """
    if "/" not in named:
        return grid.cells(named)
    if split_part(named):
        raise UserError(f"zone {named} is about paths, not cells", "`conformance split measure` measures paths")
    named_zone = zone(shipped_path(named))
    if not named_zone.of_cells:
        run = f"`conformance scenario run {named_zone.profile} --grid zone`"
        raise UserError(f"zone {named} is about points of a scenario, not cells", f"{run} measures points")
    return named_zone.cells


def zone(path: pathlib.Path | str) -> zones.Zone:
    """Return the Zone in a file. Raises UserError naming file and place."""
    return _zone(*paths.stamped(path))


def split_checks(profile: str = _FIRST_PROFILE) -> dict[str, tuple[SplitCheck, ...]]:
    """Return {id: checks} of the split parts of the zones over the grid under a profile. Raises UserError."""
    parts = (_split_checks(*paths.stamped(file)) for file in zone_files("heatmap", profile))
    return {checks[0].id: checks for checks in parts if checks}


def split_part(zone_id: str) -> tuple[SplitCheck, ...]:
    """Return the checks of the split part with this id (cubic/split); none for any other id. Raises UserError."""
    return {**split_checks(PROFILES["tcp"]), **split_checks(PROFILES["udp"])}.get(zone_id, ())


@functools.lru_cache(maxsize=1024)
def _split_checks(path: pathlib.Path, stamp: object) -> tuple[SplitCheck, ...]:
    return split_zone.checks(_zone(path, stamp))


@functools.lru_cache(maxsize=1024)
def _zone(path: pathlib.Path, _stamp: object) -> zones.Zone:
    return zones.from_json(schema.load("zone", path), path)


def all_zones(kind: str = "heatmap", profile: str = _FIRST_PROFILE) -> list[zones.Zone]:
    """Return the zones of a kind that ship. Raises UserError."""
    return [zone(file) for file in zone_files(kind, profile)]


def judging_files() -> list[pathlib.Path]:
    """Return the files of all zones that cells are judged by."""
    grids = [file for name in PROFILES.values() for kind in KINDS for file in zone_files(kind, name)]
    return grids + [file for kind in _further() for file in zone_files(kind)]


def further_kinds(profile: str) -> list[str]:
    """Return all kinds except KINDS, for a stack that is judged under `profile` because of its transport.

    Stacks over UDP are not judged by `sawtooth`: a minute at 30 Mbit/s is 225 MB, more than the files in a guest may
    hold, and many QUIC servers serve files. Nor are they by `split`, because no proxy splits their connections. No
    stack is judged by a zone under the profile of another transport.
    """
    others = set(PROFILES.values()) - {profile}
    return [
        kind
        for kind in _further()
        if (profile == PROFILES["tcp"] or marker(kind) not in ("sawtooth", _SPLIT))
        and _first_of(kind).profile not in others
    ]


def kinds(profile: str) -> dict[str, str]:
    """Return {kind: the profile of its zones}, of all kinds that judge a stack under `profile`."""
    return dict.fromkeys(KINDS, profile) | {kind: _first_of(kind).profile for kind in further_kinds(profile)}


def judging(profile: str) -> list[tuple[str, zones.Zone]]:
    """Return [(kind, Zone)] of all zones that ship for stacks judged under this profile, for algorithms that have zones
    over the grid.
    """
    grids = [(kind, each) for kind in KINDS for each in all_zones(kind, profile)]
    judged = {each.algorithm for _, each in grids}
    further = [(kind, each) for kind in further_kinds(profile) for each in all_zones(kind)]
    return grids + [(kind, each) for kind, each in further if each.algorithm in judged]


def by_algorithm(zone: zones.Zone) -> zones.Zone:
    """Return the part of a zone that the name of an algorithm asks for, as in `pytest -m cubic`.

    Of a zone over cells, or one that judges kinds, this is all. Of another zone over points of a scenario, it is those
    points that are counted and whose margin rests on what honest implementations were seen to differ by. No point is in
    the smoke tier, which is for a first verdict within a minute.
    """
    if zone.of_cells:
        return zone
    if zone.by_kind:
        return dataclasses.replace(zone, smoke=())
    measured = zone.margin_rule.get("kinds", {})
    counted = {
        place: permitted
        for place, permitted in zone.intervals.items()
        if permitted.counted and zones.kind_of(place, zone.metric) in measured
    }
    return dataclasses.replace(zone, intervals=counted, smoke=())


def judges(zone_id: str, profile: str) -> bool:
    """Return whether this zone, or split zone, judges stacks under this profile."""
    algorithm, name = zones.id_parts(zone_id)
    names = {stem(kind, profile) for kind in (*KINDS, _SPLIT)} | set(further_kinds(profile))
    return name in names and algorithm in algorithms(profile)


@functools.cache
def marker(kind: str) -> str:
    """Return the marker of a kind for `pytest -m`: sawtooth-queue and sawtooth-utilization both have sawtooth.

    Kinds over points of a scenario have the scenario's name: rtt-fairness-share has rtt-fairness.
    """
    named = [name for name in scenarios.files() if kind == name or kind.startswith(f"{name}-")]
    return max(named, key=len, default=kind.partition("-")[0])


def scenario_markers() -> dict[str, str]:
    """Return {marker of `pytest -m`: the scenario's title} for scenarios that have zones. Raises UserError."""
    judged = {marker(kind) for kind in all_kinds()}
    return {name: str(schema.read(file)["title"]) for name, file in scenarios.files().items() if name in judged}


def zone_of(algorithm: str, kind: str = "heatmap", profile: str = _FIRST_PROFILE) -> zones.Zone:
    """Return the zone of an algorithm. Raises UserError naming the algorithms that have one."""
    files = {file.parent.name: file for file in zone_files(kind, profile)}
    if algorithm not in files:
        what = "" if kind == "heatmap" else f" of {kind}"
        under = "" if profile == _FIRST_PROFILE else f" under profile {profile}"
        raise UserError(
            f"no zone{what} for algorithm {algorithm!r}{under}",
            spelling.mend(algorithm, files, f"choose one of {', '.join(sorted(files))}") if files else None,
        )
    return zone(files[algorithm])


def zones_for(algorithm: str, setting: Setting) -> list[zones.Zone]:
    """Return the zones that ship for an algorithm and were measured under a setting's profile; perhaps none.

    For a setting at a point of a scenario, these are the zones that have this very point.
    """
    of_algorithm = [zone(file) for file in judging_files() if file.parent.name == algorithm]
    return [each for each in of_algorithm if each.digest_at(setting.point) == setting.profile_digest]
