"""Read the documents that ship with the suite or that a user gives: profiles and zones."""

import dataclasses
import functools
import pathlib

from conformance.model import grid
from conformance.model import zone as zones
from conformance.model.errors import UserError
from conformance.model.setting import RIVAL_TOPOLOGY, Proxy, Setting, end_to_end
from conformance.model.split import split_zone as split_zones
from conformance.support import paths, schema, spelling

#: in topologies/
PATH_TOPOLOGY = "two_segment"


def profile(name, cell, queue=None, offload=None, transfer_s=None, sysctls=(), rival=None):
    """The Setting of a profile at `cell`; other arguments replace, or add to, the profile's own. Raises UserError."""
    data = _profile_document(name)
    rival = rival or data.get("rival")
    return Setting(
        cell=cell,
        profile=data["name"],
        queue=data["queue"] if queue is None else queue,
        offload=data["offload"] if offload is None else offload,
        transfer_s=data["transfer_s"] if transfer_s is None else transfer_s,
        timeout_s=data["timeout_s"],
        topology=RIVAL_TOPOLOGY if rival else data["topology"],
        host_queue=data["host_queue"],
        rival=rival,
        sysctls=tuple(sorted({**data["sysctls"], **dict(sysctls)}.items())),
    )


@functools.lru_cache(maxsize=1024)
def profile_or_none(name, cell):
    """The Setting of a profile at `cell`, or None where the suite does not know the profile."""
    known = any(path.stem == name for path in paths.data("zones", "profiles").glob("*.json"))
    return profile(name, cell) if known else None


def path(name, segments, proxy=None, queue_sized_by="path", **overrides):
    """The Setting of a profile over a path of two segments, with a Proxy between them or none. Raises UserError."""
    one = profile(name, end_to_end(segments), **overrides)
    return dataclasses.replace(
        one, topology=PATH_TOPOLOGY, segments=tuple(segments), proxy=proxy, queue_sized_by=queue_sized_by
    )


def split_path(name, segments):
    """The Setting under which a split path's zone was measured, and is: the suite's own splitter, as it is."""
    return path(name, segments, Proxy())


@functools.cache
def _profile_document(name):
    """Read and checked once, not for each of a grid's cells."""
    path = paths.data("zones", "profiles", f"{name}.json")
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in paths.data("zones", "profiles").glob("*.json")))
        raise UserError(f"profile {name!r} is not known", f"choose one of {known}")
    return schema.load("profile", path)


#: kinds of zones that stacks are judged by, named after their files: utilization and loss over the grid
KINDS = ("heatmap", "loss")
#: what zones of each kind are about
METRICS = {
    "heatmap": "utilization",
    "loss": "lost_pct",
    "startup": "transfer_rtts",
    "competing": "utilization",
    "sawtooth-utilization": "utilization",
    "sawtooth-queue": "queue_mean_bdp",
    "identify-utilization": "utilization",
    "identify-queue": "queue_mean_bdp",
}
#: further kinds that they are judged by, over a few cells each, under profiles of their own
FURTHER_KINDS = (
    "startup",
    "competing",
    "sawtooth-utilization",
    "sawtooth-queue",
    "identify-utilization",
    "identify-queue",
)
#: the profile that a stack is judged under, by its transport. With offload on, netem drops super-packets whole: those
#: of Linux TCP are two segments at these rates, as in the published study; those of UDP are what a stack likes, up to
#: 64 KB, which would make 1 % of loss mean something else for each stack.
PROFILES = {"tcp": "atc25", "udp": "packets"}
_FIRST_PROFILE = PROFILES["tcp"]


def zone_files(kind="heatmap", profile=_FIRST_PROFILE):
    """Files of the zones that ship, by kind: heatmap, loss, split, identify-* (what `identify` rests on), * (all)."""
    named = f"*/{stem(kind, profile)}.json"
    return sorted(p for p in paths.data("zones").glob(named) if p.parent.name != "profiles")


def stem(kind, profile):
    """What files of zones of a kind are called, over cells measured under a profile of stacks."""
    return kind if profile == _FIRST_PROFILE else f"{kind}-{profile}"


#: what zones over a grid are called, under any profile; all others have cells chosen one by one
GRID_ZONES = frozenset(stem(kind, profile) for kind in KINDS for profile in PROFILES.values())


def zone_path(zone_id):
    """File of the zone of this id, among those that ship."""
    return paths.data("zones", f"{zone_id}.json").resolve()


def shipped_path(zone_id):
    """The same, if there is such a zone. Raises UserError."""
    path = zone_path(zone_id)
    if not path.is_file():
        raise UserError(f"there is no zone {zone_id!r}", "`conformance zones check` lists those that ship")
    return path


def profile_of(zone_id):
    """Name of the profile of a zone that ships; None where there is none of this id."""
    path = zone_path(zone_id)
    return any_zone(path).profile if path.is_file() else None


def cells(named):
    """The cells of a grid by its name (model/grid.py), or those of a zone that ships by its id. Raises UserError."""
    if "/" not in named:
        return grid.cells(named)
    found = any_zone(shipped_path(named))
    if not isinstance(found, zones.Zone):
        raise UserError(f"zone {named} is about paths, not cells", "`conformance split measure` measures those")
    return found.cells


def zone(path):
    """The Zone in a file. Raises UserError naming file and place."""
    path = pathlib.Path(path)
    return zones.from_json(schema.load("zone", path), path)


def split_zone(path):
    """The SplitZone in a file. Raises UserError naming file and place."""
    path = pathlib.Path(path)
    return split_zones.from_json(schema.load("split-zone", path), path)


def any_zone(path):
    """The Zone or SplitZone in a file, as its `$schema` says. Raises UserError naming file and place."""
    data = schema.read(pathlib.Path(path))
    named = data.get("$schema") if isinstance(data, dict) else None
    return split_zone(path) if str(named).endswith("split-zone.json") else zone(path)


def all_zones(kind="heatmap", profile=_FIRST_PROFILE):
    return [zone(path) for path in zone_files(kind, profile)]


def judging_files():
    """Files of all zones that cells are judged by."""
    grids = [path for profile in PROFILES.values() for kind in KINDS for path in zone_files(kind, profile)]
    return grids + [path for kind in FURTHER_KINDS for path in zone_files(kind)]


def further_kinds(profile):
    """The FURTHER_KINDS for a stack that is judged under `profile`, by its transport.

    A minute at 30 Mbit/s is 225 MB, more than the files in a guest may hold, which many QUIC servers serve from.
    """
    return [kind for kind in FURTHER_KINDS if profile == PROFILES["tcp"] or marker(kind) != "sawtooth"]


def kinds(profile):
    """{kind: the profile of its zones}, of all kinds that a stack is judged by under `profile`."""
    return dict.fromkeys(KINDS, profile) | {kind: marker(kind) for kind in further_kinds(profile)}


def judging(profile):
    """[(kind, Zone)] that ship for stacks that are judged under this profile: all of algorithms with a grid's zones."""
    grids = [(kind, zone) for kind in KINDS for zone in all_zones(kind, profile)]
    judged = {zone.algorithm for _, zone in grids}
    further = [(kind, zone) for kind in further_kinds(profile) for zone in all_zones(kind)]
    return grids + [(kind, zone) for kind, zone in further if zone.algorithm in judged]


def judges(zone_id, profile):
    """Whether stacks that are judged under this profile are judged by this zone, or split zone."""
    algorithm, _, name = zone_id.partition("/")
    names = {stem(kind, profile) for kind in (*KINDS, "split")} | set(further_kinds(profile))
    return name in names and algorithm in {path.parent.name for path in zone_files("heatmap", profile)}


def marker(kind):
    """What `pytest -m` calls a kind: sawtooth-queue and sawtooth-utilization are both sawtooth."""
    return kind.partition("-")[0]


def zone_of(algorithm, kind="heatmap", profile=_FIRST_PROFILE):
    """The zone of an algorithm; raises UserError naming the algorithms there are."""
    by_algorithm = {path.parent.name: path for path in zone_files(kind, profile)}
    if algorithm not in by_algorithm:
        what = "" if kind == "heatmap" else f" of {kind}"
        under = "" if profile == _FIRST_PROFILE else f" under profile {profile}"
        raise UserError(
            f"no zone{what} for algorithm {algorithm!r}{under}",
            spelling.mend(algorithm, by_algorithm, f"choose one of {', '.join(sorted(by_algorithm))}")
            if by_algorithm
            else None,
        )
    return zone(by_algorithm[algorithm])


def zones_for(algorithm, profile_digest):
    """The zones that ship for an algorithm and were measured under a profile of this digest; perhaps none."""
    zones = [zone(path) for path in judging_files() if path.parent.name == algorithm]
    return [found for found in zones if found.profile_digest == profile_digest]


def split_zones_for(algorithm, profile_digest):
    """The split zones that ship for an algorithm, of cells measured under a profile of this digest; perhaps none."""
    files = [path for profile in PROFILES.values() for path in zone_files("split", profile)]
    found = [split_zone(path) for path in files if path.parent.name == algorithm]
    return [zone for zone in found if zone.profile_digest == profile_digest]
