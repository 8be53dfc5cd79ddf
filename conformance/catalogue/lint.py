"""Check and format zone files, for `conformance zones check | fmt`.

These checks need the profile and the other zones, so neither a schema nor zone.py can make them.
"""

import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from conformance.catalogue import bases, derive, documents, kept_margins, scenarios
from conformance.model.errors import UserError, located
from conformance.model.judging import grid, zone as zones
from conformance.model.judging.power import MUST_TELL
from conformance.model.judging.zone import Basis, Interval, Zone, differing, id_parts, kind_of
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.support import files, paths, schema

#: tolerance for bounds that were computed from unrounded values
_ROUNDING = 0.0002


def find(named: pathlib.Path | str) -> pathlib.Path:
    """Return the path of a zone that ships, by its id, or the path that was given. Raises UserError."""
    given = pathlib.Path(named)
    there = paths.exists(given)
    if there or not re.fullmatch(r"[a-z0-9]{1,30}/[a-z0-9-]{1,60}", str(named)):
        if (there and given.is_dir()) or (not there and re.fullmatch(r"[a-z0-9-]{1,60}", str(named))):
            raise UserError(f"{named} is neither a zone file nor the id of a zone", _example(str(named)))
        return given
    return documents.shipped_path(str(named))


def _example(named: str) -> str:
    """Return how to name a zone, by an example with what was named, if that is an algorithm or a kind of zones."""
    ids = [f"{path.parent.name}/{path.stem}" for path in documents.zone_files("*")]
    zone_id = next((wanted for wanted in (f"{named}/heatmap", f"cubic/{named}") if wanted in ids), "cubic/heatmap")
    return f"give an id such as {zone_id}, or a file"


def check_all(named: Iterable[pathlib.Path | str]) -> Iterator[tuple[pathlib.Path, Zone]]:
    """Check each file or id, and yield its path and Zone if it passes. Raises UserError."""
    paths: dict[str, pathlib.Path] = {}
    for path in map(find, named):
        zone = check(path)
        if zone.id in paths:
            raise UserError(f"{path}: /id: {zone.id!r} is also the id of {paths[zone.id]}")
        paths[zone.id] = path
        yield path, zone


def check(path: pathlib.Path | str) -> Zone:
    """Check all invariants of a file's Zone, and return it. Raises UserError naming file and place."""
    path = pathlib.Path(path)
    zone = documents.zone(path)
    algorithm, name = id_parts(zone.id)
    if algorithm != zone.algorithm:
        raise UserError(f"{path}: /id: {zone.id!r} does not begin with the algorithm, {zone.algorithm!r}")
    for reference, about in zone.references.items():
        if about["scheme"].split("/")[0] != zone.algorithm:
            raise UserError(f"{path}: /references/{reference}/scheme: {about['scheme']!r} is not {zone.algorithm}")
    if path.stem != name:
        raise UserError(f"{path}: /id: {zone.id!r} does not match the file's name", f"call the file {name}.json")
    _setting(zone, path, next(iter(zone.intervals)))  # refuses a profile that is not known
    with located(path):
        documents.refuse_name(path.stem, zone.metric, zone.profile)
    _check_grid(zone, path)
    _check_rule(zone, path, derive.margin_rule(zone.metric, zone.id))
    if zone.transport != kept_margins.load().factor_figures(zone.id):
        raise UserError(f"{path}: /transport: zones/margins.json has other factors", "derive the zone again")
    for at, (place, permitted) in enumerate(zone.intervals.items()):
        setting = _setting(zone, path, place)
        if zone.of_cells:
            _check_digest(zone, path, setting)
        else:
            _check_point(zone, f"{path}: /points/{at}", place, setting)
        documented = bases.documented(zone.algorithm, zone.metric, setting)
        with located(path, f", in {zone.noun} {place.id}"):
            _check_bases(zone, permitted, documented, f"/{zone.noun}s/{at}", kind_of(place, zone.metric) in zone.shown)
    return zone


def _setting(zone: Zone, path: pathlib.Path, place: Point) -> Setting:
    with located(f"{path}: /{'profile' if zone.of_cells else 'scenario'}"):
        return scenarios.setting(zone.profile, place)


def _check_point(zone: Zone, pointer: str, place: Point, setting: Setting) -> None:
    """Check that a point names all axes of its scenario, and that this is still what the reference ran."""
    if setting.point != place:
        raise UserError(f"{pointer}/point: it lacks axes of scenario {zone.profile}", "derive the zone again")
    if setting.profile_digest != zone.digest_at(place):
        now = f"scenario {zone.profile} now has digest {setting.profile_digest} at this point"
        raise UserError(f"{pointer}/digest: {now}", "measure the reference in it and derive the zone again")


def _check_rule(zone: Zone, path: pathlib.Path, rule: Mapping[str, Any]) -> None:
    """Refuse a margin rule that is not the one for all zones: with a rule of its own, a zone could permit anything."""
    for name in {**rule, **zone.margin_rule}:
        wanted = rule.get(name)
        if zone.margin_rule.get(name) != wanted:
            given = f"{zone.margin_rule.get(name)!r}, but the rule for all zones has {wanted!r}"
            raise UserError(f"{path}: /margin_rule/{name}: {given}", "derive the zone again")


def _check_bases(
    zone: Zone, permitted: Interval, documented: tuple[tuple[Basis, ...], float] | None, pointer: str, is_shown: bool
) -> None:
    """Check an interval: bounds that the metric can have, the references, what documents say, the margin rule, and
    whether it is counted, unless it `is_shown` only.
    """
    metric = METRICS[zone.metric]
    if metric.most is not None and permitted.high > metric.most:
        raise UserError(
            f"{pointer}/high: {permitted.high:g} is above the greatest possible {zone.metric}, {metric.most:g}"
        )
    if permitted.low < metric.least:
        raise UserError(f"{pointer}/low: {permitted.low:g} is below the least possible {zone.metric}, {metric.least:g}")
    measured = bases.measured(permitted.bases, zone.references)
    wanted = documented[0] if documented else ()
    if permitted.bases != (*measured, *wanted) or permitted.small_packets != (documented[1] if documented else 1.0):
        named = " and ".join(basis.reference for basis in wanted)
        says = f"other values follow from {named} here" if wanted else "no document says anything here"
        raise UserError(f"{pointer}/bases: {says}", "derive the zone again")
    for at, basis in enumerate(measured):
        trials = zone.references[basis.reference]["trials"]
        if basis.n > trials:
            raise UserError(f"{pointer}/bases/{at}: {basis.n} trials, but its reference has {trials} per cell")
    _check_bounds(permitted, derive.interval(permitted.bases, zone.metric, permitted.margin), pointer)
    if is_shown:
        return
    if permitted.counted and permitted.margin.relative > MUST_TELL:
        raise UserError(
            f"{pointer}/counted: it is counted with {permitted.margin.words}; above {100 * MUST_TELL:.0f} %, it cannot"
            " tell enough", "derive the zone again",
        )  # fmt: skip
    if permitted.counted != derive.tells_enough(permitted, zone.metric, documented is not None):
        shift, does = f"{MUST_TELL:.0%}", "is" if permitted.counted else "is not"
        can = "cannot" if permitted.counted else "can"
        raise UserError(
            f"{pointer}/counted: it {does} counted, but it {can} detect a shift of {shift}", "derive the zone again"
        )


def _check_bounds(permitted: Interval, follows: tuple[float, float], pointer: str) -> None:
    """Refuse bounds other than `follows`, which are the (low, high) that follow from the margin rule."""
    low, high = follows
    if abs(permitted.low - low) > _ROUNDING or abs(permitted.high - high) > _ROUNDING:
        bounds = f"{permitted.low:g}..{permitted.high:g}"
        raise UserError(
            f"{pointer}: {bounds} does not follow from the margin rule, but {low:.4g}..{high:.4g} does",
            "derive the zone again",
        )


def _check_digest(zone: Zone, path: pathlib.Path, setting: Setting) -> None:
    if setting.profile_digest != zone.profile_digest:
        raise UserError(
            f"{path}: /profile_digest: profile {zone.profile} now has digest {setting.profile_digest}",
            "measure the reference under it and derive the zone again",
        )


def _check_grid(zone: Zone, path: pathlib.Path) -> None:
    """Refuse a zone over a grid that lacks cells of a bandwidth it has. Cells of other zones were chosen one by one."""
    if path.stem not in documents.GRID_ZONES:
        return
    for bandwidth in sorted({cell.bandwidth_mbps for cell in zone.cells}):
        with located(f"{path}: /cells"):
            wanted = grid.cells(f"{bandwidth:g}mbps")
        for cell in wanted:
            if cell not in zone.intervals:
                raise UserError(f"{path}: /cells: cell {cell.id} of the grid is missing")


def format_file(path: pathlib.Path | str, write: bool) -> bool:
    """Return whether the file was in canonical form, to the byte. With `write`, bring it into that form.

    In canonical form, cells and points are sorted, each has one line, and names are in the order of the schema.
    Raises UserError.
    """
    path = find(path)
    given = schema.load("zone", path)
    zones.from_json(given, path)
    document = schema.ordered("zone", given)
    entries = document["points"] if "points" in document else document["cells"]
    entries.sort(key=lambda entry: zones.place_of(entry))
    for basis in (basis for entry in entries for basis in entry["bases"]):
        basis["values"].sort()
    wanted = derive.dumps(document)
    same = path.read_bytes() == wanted.encode()
    if write and not same:
        files.write(path, wanted)
    return same


def differences(zone: Zone, other: Zone) -> list[tuple[Point, Interval | None, Interval | None]]:
    """Return what differing() yields of two zones, in order. Raises UserError if they are about different things."""
    for what in ("algorithm", "metric", "profile"):
        a, b = getattr(zone, what), getattr(other, what)
        if a != b:
            raise UserError(f"the zones' {what} differs: {a} and {b}", "compare two versions of one zone")
    return sorted(differing(zone, other), key=lambda difference: difference[0])
