"""Read studies: documents that ship, and those that a user gives, with the scenarios that they name or contain."""

import copy
import functools
import pathlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from conformance.catalogue import scenarios
from conformance.model.errors import UserError, located
from conformance.model.networks.scenario import Scenario
from conformance.model.studies.study import Study
from conformance.support import paths, schema


def files() -> dict[str, pathlib.Path]:
    """Return {name: file} of the studies that ship."""
    return {path.stem: path for path in sorted(paths.data("studies").glob("*.json"))}


def find(what: str) -> Study:
    """Return the Study with this name, or in this file. Raises UserError naming the file and the JSON pointer."""
    return read(paths.document(what, files(), "study"))


def about(profiles: Collection[str]) -> Iterator[Study]:
    """Yield the studies that ship and have a scenario among these profiles. Raises UserError.

    The other studies are not read whole: their hundreds of points take a second, and most reports have no results of
    them.
    """
    for path in files().values():
        named = (
            scenario if isinstance(scenario, str) else scenario["name"] for scenario in schema.read(path)["scenarios"]
        )
        if not set(profiles).isdisjoint(named):
            yield read(path)


def read(path: pathlib.Path) -> Study:
    """Return the Study in a file. Raises UserError naming file and place."""
    return _read(*paths.stamped(path))


@functools.lru_cache(maxsize=64)  # reading one takes a second, and a report asks for each more than once
def _read(path: pathlib.Path, _stamp: object) -> Study:
    document = schema.load("study", path)
    with located(path):
        return Study.from_json(document, _scenarios(document))


def _scenarios(document: Mapping[str, Any]) -> dict[str, Scenario]:
    """Return {name: Scenario} of the scenarios that a study names or contains. Raises UserError."""
    by_name: dict[str, Scenario] = {}
    held: dict[str, Mapping[str, Any]] = {}
    for at, described in enumerate(document["scenarios"]):
        with located(f"/scenarios/{at}"):
            if isinstance(described, str):
                scenario = scenarios.find(described)
            else:
                whole = _like(described, held) if "like" in described else described
                scenario = scenarios.of_document(whole)
                held[scenario.name] = whole
            if scenario.name in by_name:
                raise UserError(f"two scenarios are called {scenario.name}")
            by_name[scenario.name] = scenario
    return by_name


def _like(described: Mapping[str, Any], held: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the document of a scenario that copies an earlier one, except for what it sets. Raises UserError."""
    if described["like"] not in held:
        raise UserError(
            f"/like: no document of scenario {described['like']!r} precedes this one", "put it earlier in the list"
        )
    copied: dict[str, Any] = copy.deepcopy(
        {**held[described["like"]], "name": described["name"], "title": described["title"]}
    )
    for pointer, value in described["set"].items():
        with located(f"/set/{pointer.replace('~', '~0').replace('/', '~1')}"):
            _set(copied, pointer, value)
    return copied


def _set(document: Any, pointer: str, value: Any) -> None:
    """Put a value at a JSON pointer, whose steps but the last must exist; None removes the value that is there."""
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]
    holder = document
    try:
        if not steps or steps[0]:
            raise KeyError
        for step in steps[1:]:
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        key: Any = int(last) if isinstance(holder, list) else last
        if value is None:
            del holder[key]
        else:
            holder[key] = value
    except (KeyError, IndexError, ValueError, TypeError):
        raise UserError(
            f"the scenario has no {pointer}", "give that place a value in the scenario that `like` names"
        ) from None
