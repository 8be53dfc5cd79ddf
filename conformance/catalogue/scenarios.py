"""Read scenarios: documents that ship, documents that a user gives, and profiles in the form of scenarios."""

import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from conformance.catalogue import documents
from conformance.model import legacy
from conformance.model.errors import UserError, located
from conformance.model.place import Place, Point
from conformance.model.scenario import Scenario
from conformance.model.setting import Setting
from conformance.support import paths, schema, spelling

#: names of a scenario's grids for its zones: all of their points, and those of the smoke tier
ZONE, SMOKE = "zone", "smoke"


def files() -> dict[str, pathlib.Path]:
    """Return {name: file} of the scenarios that ship."""
    return {path.stem: path for path in sorted(paths.data("scenarios").glob("*.json"))}


def names() -> tuple[str, ...]:
    """Return the names of all scenarios that ship, and of the profiles, each of which is a scenario of one flow."""
    return (*files(), *documents.profile_names())


def find(what: str) -> Scenario:
    """Return the Scenario with this name, or in this file. Raises UserError naming the file and the JSON pointer."""
    shipped = files()
    if what in shipped:
        return read(shipped[what])
    if what in documents.profile_names():
        return Scenario.from_json(legacy.scenario_of_profile(documents.profile_document(what)), _check)
    path = pathlib.Path(what)
    if path.suffix == ".json" or paths.exists(path):
        return read(path)
    mend = "`conformance scenario list` lists those that ship; or give a file, FILE.json"
    raise UserError(f"there is no scenario {what!r}", spelling.mend(what, names(), mend))


@functools.lru_cache(maxsize=1024)
def setting(profile: str, place: Place) -> Setting:
    """Return the Setting of a profile at a cell, or of a scenario that ships at a point. Raises UserError."""
    if isinstance(place, Point):
        scenario = _shipped(profile)
        return scenario.setting(scenario.point(dict(place.values)))
    return documents.profile(profile, place)


@functools.cache
def _shipped(name: str) -> Scenario:
    """Return a scenario that ships, read once and not for each of its points. Raises UserError."""
    if name not in files():
        raise UserError(f"scenario {name!r} is not known", f"choose one of {', '.join(files())}")
    return read(files()[name])


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
