"""Read scenarios: documents that ship, profiles among them, and documents that a user gives."""

import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from conformance.model.errors import UserError, located
from conformance.model.networks.place import Point
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.support import paths, schema

#: names of a scenario's grids for its zones: all of their points, and those of the smoke tier
ZONE, SMOKE = "zone", "smoke"


def files() -> dict[str, pathlib.Path]:
    """Return {name: file} of the scenarios that ship, without profiles."""
    return {path.stem: path for path in sorted(paths.data("scenarios").glob("*.json"))}


def profiles() -> dict[str, pathlib.Path]:
    """Return {name: file} of the profiles that ship: scenarios whose points are cells."""
    return {path.stem: path for path in sorted(paths.data("zones", "profiles").glob("*.json"))}


def names() -> tuple[str, ...]:
    """Return the names of all scenarios that ship, profiles last."""
    return (*files(), *profiles())


def find(what: str) -> Scenario:
    """Return the Scenario with this name, or in this file. Raises UserError naming the file and the JSON pointer."""
    return read(paths.document(what, files() | profiles(), "scenario"))


@functools.lru_cache(maxsize=4096)
def setting(name: str, point: Point) -> Setting:
    """Return the Setting of a scenario that ships at a point. Raises UserError."""
    scenario = shipped(name)
    return scenario.setting(scenario.point(dict(point.values)))


@functools.cache
def shipped(name: str) -> Scenario:
    """Return a scenario that ships, read once and not for each of its points. Raises UserError."""
    if name not in names():
        raise UserError(f"scenario {name!r} is not known", f"choose one of {', '.join(names())}")
    return find(name)


def read(path: pathlib.Path) -> Scenario:
    """Return the Scenario in a file. Raises UserError naming file and place."""
    document = schema.load("scenario", path)
    with located(path):
        return Scenario.from_json(document, _check, _beside(path.parent))


def of_document(document: Mapping[str, Any]) -> Scenario:
    """Return the Scenario of a document inside another document. Raises UserError naming the place in it."""
    schema.check("scenario", document, "in this scenario")
    return Scenario.from_json(document, _check, _beside(paths.data("scenarios")))


def _beside(folder: pathlib.Path) -> Callable[[str], bytes]:
    """Return a function that reads a file by its path from a folder, or from that of scenarios that ship; it raises
    UserError.
    """

    def load(name: str) -> bytes:
        for place in (folder, paths.data("scenarios")):
            try:
                return schema.read_bytes(place / name, schema.MOST_TRACE_BYTES)
            except OSError as error:
                why = error.strerror or str(error)
            except ValueError as error:  # not a valid name of a file
                why = str(error)
        raise UserError(f"cannot read {name!r}: {why}", "give the file's path relative to the scenario's folder")

    return load


def _check(document: Mapping[str, Any]) -> None:
    """Refuse a scenario's document, as it is at a point, if the schema does not allow it. Raises UserError."""
    schema.check("scenario", document, "at this value")
