"""Read the documents that ship with the suite or that a user gives: profiles and zones."""

import functools
import pathlib

from conformance import paths, schema
from conformance.model import zone as zones
from conformance.model.errors import UserError
from conformance.model.setting import Setting


def profile(name, cell, queue=None, offload=None, transfer_s=None, sysctls=()):
    """The Setting of a profile at `cell`; other arguments replace, or add to, the profile's own. Raises UserError."""
    data = _profile_document(name)
    return Setting(
        cell=cell,
        profile=data["name"],
        queue=data["queue"] if queue is None else queue,
        offload=data["offload"] if offload is None else offload,
        transfer_s=data["transfer_s"] if transfer_s is None else transfer_s,
        timeout_s=data["timeout_s"],
        topology=data["topology"],
        host_queue=data["host_queue"],
        sysctls=tuple(sorted({**data["sysctls"], **dict(sysctls)}.items())),
    )


@functools.cache
def _profile_document(name):
    """Read and checked once, not for each of a grid's cells."""
    path = paths.data("zones", "profiles", f"{name}.json")
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in paths.data("zones", "profiles").glob("*.json")))
        raise UserError(f"profile {name!r} is not known", f"choose one of {known}")
    return schema.load("profile", path)


#: kinds of zones that `pytest` judges by, named after their files: utilization and loss over the grid
KINDS = ("heatmap", "loss")


def zone_files(kind="heatmap"):
    """Files of the zones that ship, by kind: heatmap, loss, identify-* (what `identify` rests on), * (all)."""
    return sorted(p for p in paths.data("zones").glob(f"*/{kind}.json") if p.parent.name != "profiles")


def zone(path):
    """The Zone in a file. Raises UserError naming file and place."""
    path = pathlib.Path(path)
    return zones.from_json(schema.load("zone", path), path)


def all_zones(kind="heatmap"):
    return [zone(path) for path in zone_files(kind)]


def zone_of(algorithm, kind="heatmap"):
    """The zone of an algorithm; raises UserError naming the algorithms there are."""
    path = paths.data("zones", algorithm, f"{kind}.json")
    if path not in zone_files(kind):
        known = ", ".join(sorted({p.parent.name for p in zone_files(kind)})) or "none"
        what = "" if kind == "heatmap" else f" of {kind}"
        raise UserError(f"no zone{what} for algorithm {algorithm!r}", f"choose one of {known}")
    return zone(path)
