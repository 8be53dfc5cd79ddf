"""Read a scenario: a network that flows share, in which some values vary (axes). A scenario at a point is a Setting.

The form of the document is schemas/scenario.json; docs/scenarios.md describes every field. The values of a point are
put into the document itself, at the JSON pointers that its axes name, before the rest is read. So an axis may vary
anything.
"""

import contextlib
import copy
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from conformance.model.errors import UserError, located
from conformance.model.networks import legacy
from conformance.model.networks.bond import Bond
from conformance.model.networks.network import Network
from conformance.model.networks.place import Point, Value, parse_values, plain, text as value_text
from conformance.model.networks.proxy import Splitter
from conformance.model.networks.schedule import problems as schedule_problems, with_traces
from conformance.model.networks.setting import Setting


def _no_file(path: str) -> bytes:
    raise UserError(f"there is no file {path!r} next to this document", "give the scenario as a file")


#: what a box `does`: it bonds links, or it splits connections
BOND, SPLIT = "bond", "split"
#: the grid that every scenario has: all values of all axes
ALL = "all"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Axis:
    """A quantity that varies: `sets` are JSON pointers into the scenario's document, `values` are the usual ones.

    `means`: what each value stands for, if values are names; such an axis takes no others. If a meaning is an object
    with exactly the pointers of `sets` as its names, it has another meaning for each place. `later`: the axis was added
    when points of the scenario had already been measured; points at its first value keep their names and digests.
    """

    SHOWN = ("name", "sets", "values")

    name: str
    sets: tuple[str, ...]
    values: tuple[Value, ...]
    means: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    later: bool = False

    def names(self, value: Value) -> bool:
        """Say whether the ids of points with this value name the axis."""
        return not self.later or value != self.values[0]

    def read(self, value: Value) -> Value:
        """Return a value that was read from text as the axis has it, which may be text that looks like a number."""
        known = {value_text(other): other for other in (*self.means, *self.values)}
        return known.get(value_text(value), value)

    def meaning(self, value: Value, pointer: str) -> Any:
        """Return what a value puts at a place. Raises UserError for a name without a meaning."""
        if not self.means:
            return value
        if value not in self.means:
            raise UserError(f"axis {self.name} has no value {value_text(value)!r}", f"choose {', '.join(self.means)}")
        meaning = self.means[str(value)]
        by_place = isinstance(meaning, Mapping) and set(meaning) == set(self.sets)
        return copy.deepcopy(meaning[pointer] if by_place else meaning)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario as read: `base` is the part of its document that points vary. `grids`: {name: points}.

    `check` refuses the document at a point if it does not satisfy the schema; `load` reads the files of its traces.
    """

    name: str
    title: str
    axes: tuple[Axis, ...]
    grids: Mapping[str, tuple[Point, ...]]
    timeout_s: float
    base: Mapping[str, Any]
    check: Callable[[Mapping[str, Any]], None] = dataclasses.field(compare=False, repr=False)
    load: Callable[[str], bytes] = dataclasses.field(compare=False, repr=False)

    @classmethod
    def from_json(
        cls,
        document: Mapping[str, Any],
        check: Callable[[Mapping[str, Any]], None] = lambda document: None,
        load: Callable[[str], bytes] = _no_file,
    ) -> Self:
        """Return the Scenario of a document that satisfies its schema. Raises UserError with a JSON pointer.

        `load` returns the bytes of a file that the document names, by its path relative to the document.
        """
        axes = tuple(
            Axis(
                name=axis["name"],
                sets=tuple(axis["sets"]),
                values=tuple(map(plain, axis["values"])),
                means=axis.get("means", {}),
                later=axis.get("later", False),
            )
            for axis in document.get("axes", ())
        )
        base = {name: document[name] for name in (*_NETWORK, "boxes") if name in document}
        for at, axis in enumerate(axes):
            where = f"/axes/{at}"
            if axis.name in [other.name for other in axes[:at]]:
                raise UserError(f"{where}/name: there are two axes called {axis.name}")
            for number, pointer in enumerate(axis.sets):
                with located(f"{where}/sets/{number}"):
                    _place(base, pointer)
                    if pointer in [set_ for other in axes[:at] for set_ in other.sets]:
                        raise UserError("an axis before sets it, too", "leave it to one of them")
            if len(set(axis.values)) < len(axis.values):
                raise UserError(f"{where}/values: the list contains a value twice")
            for number, value in enumerate(axis.values):
                if not _is_read_back(axis, value):
                    raise UserError(f"{where}/values/{number}: {value!r} cannot stand in an id", "give a plain word")
        scenario = cls(
            name=document["name"], title=document["title"], axes=axes, grids={}, timeout_s=document["timeout_s"],
            base=base, check=check, load=load,
        )  # fmt: skip
        grids = {
            name: tuple(scenario._selected(f"/grids/{name}", selections))
            for name, selections in document.get("grids", {}).items()
        }
        grids.setdefault(ALL, tuple(scenario._product({})))
        scenario = dataclasses.replace(scenario, grids=grids)
        scenario.network(scenario.point({}))
        # Each value must make a network. Not every point is tried, as there may be thousands.
        for at, axis in enumerate(axes):
            for number, value in enumerate(axis.values):
                with located(f"/axes/{at}/values/{number}"):
                    scenario.network(scenario.point({axis.name: value}))
        return scenario

    def point(self, given: Mapping[str, Value]) -> Point:
        """Return the Point of these values, with the first value of every other axis. Raises UserError.

        An axis with `later` is not named at its first value.
        """
        self._check_names(given)
        values = [(axis, plain(given.get(axis.name, axis.values[0]))) for axis in self.axes]
        return Point.of({axis.name: value for axis, value in values if axis.names(value)})

    def _check_names(self, given: Iterable[str]) -> None:
        """Raise UserError if there is no axis of one of these names."""
        names = [axis.name for axis in self.axes]
        for name in given:
            if name not in names:
                known = f"its axes are {', '.join(names)}" if names else "it has none"
                raise UserError(f"scenario {self.name} has no axis {name!r}", known)

    def values(self, point: Point) -> dict[str, Value]:
        """Return the value of every axis at a point, including axes that it does not name."""
        return {axis.name: axis.values[0] for axis in self.axes} | dict(point.values)

    def parse(self, text: str) -> Point:
        """Return the Point of an id, or of some of its parts. Raises UserError."""
        return self.point(self.given(text))

    def given(self, text: str) -> dict[str, Value]:
        """Return {axis: value} of an id, or of some of its parts. Raises UserError."""
        values = parse_values(text)
        self._check_names(values)
        return {axis.name: axis.read(values[axis.name]) for axis in self.axes if axis.name in values}

    def grid(self, name: str) -> tuple[Point, ...]:
        """Return the points of a grid by its name. Raises UserError."""
        if name not in self.grids:
            raise UserError(f"scenario {self.name} has no grid {name!r}", f"choose {', '.join(sorted(self.grids))}")
        return self.grids[name]

    def _selected(self, where: str, selections: Sequence[Mapping[str, Any]]) -> Iterator[Point]:
        points: dict[Point, None] = {}
        for at, selection in enumerate(selections):
            with located(f"{where}/{at}"):
                points |= dict.fromkeys(self._product(selection))
        yield from points

    def _product(self, given: Mapping[str, Any]) -> Iterator[Point]:
        """Yield the points of a selection, {axis: value or values}, with all values of every other axis."""
        self._check_names(given)
        each = []
        for axis in self.axes:
            values = given.get(axis.name, axis.values)
            each.append(values if isinstance(values, (list, tuple)) else [values])
        for values in itertools.product(*each):
            yield self.point(dict(zip([axis.name for axis in self.axes], values, strict=True)))

    def document(self, point: Point) -> dict[str, Any]:
        """Return what the document says at a point, without its axes."""
        document: dict[str, Any] = copy.deepcopy(dict(self.base))
        values = self.values(point)
        for axis in self.axes:
            for pointer in axis.sets:
                holder, key = _place(document, pointer)
                holder[key] = axis.meaning(values[axis.name], pointer)
        return document

    def network(self, point: Point) -> Network:
        """Return the Network at a point. Raises UserError."""
        document = self.document(point)
        self.check({"name": self.name, "title": self.title, "timeout_s": self.timeout_s, **document})
        described = with_traces({name: document[name] for name in _NETWORK if name in document}, self.load)
        for at, box in enumerate(document.get("boxes", ())):
            if box["does"] == BOND:
                described["bond"] = Bond.of_box(box, f"/boxes/{at}").to_json()
            elif box["does"] == SPLIT:
                described.setdefault("splitters", []).append(Splitter.of_box(box, f"/boxes/{at}").to_json())
        network = Network.from_json(described)
        for at, box in enumerate(document.get("boxes", ())):
            if box["does"] != BOND and box["node"] not in network.nodes:
                known = f"choose one of {', '.join(network.nodes)}"
                raise UserError(f"/boxes/{at}/node: no link ends at {box['node']}", known)
            if box["does"] == BOND and at > 0:
                raise UserError(f"/boxes/{at}: a network with a bond has no other box", "leave out the others")
        for at, group in enumerate(network.flows):
            if not group.is_stack and network.splitters_of(group):
                # They connect from the sender's side, and the rules that hand connections to a splitter depend on which
                # side connects.
                mend = "give them the ends of one section, or the stack as their sender"
                raise UserError(f"/flows/{at}: flows of the kernel cannot cross a splitter", mend)
        for where, why in schedule_problems(network.schedule, network.links, self.timeout_s):
            raise UserError(*f"{where}: {why}".split("; ", 1))
        return network

    def setting(self, point: Point) -> Setting:
        """Return the Setting at a point. Raises UserError."""
        # A study's claims ask for the same few points thousands of times, and each time the schema would be checked.
        if point not in self._settings:
            self._settings[point] = self._setting(point)
        return self._settings[point]

    @functools.cached_property
    def _settings(self) -> dict[Point, Setting]:
        return {}

    def _setting(self, point: Point) -> Setting:
        network, boxes = self.network(point), self.document(point).get("boxes", ())
        if network.delivery and network.tested.count > 1:
            raise UserError(
                "/delivery: it follows one flow, but the judged group has several", "give the group one flow"
            )
        setting = Setting(profile=self.name, point=point, network=network, timeout_s=self.timeout_s)
        # Results of such networks have always been those of a cell, or of a path if there is a box on its router.
        with contextlib.suppress(UserError):  # a profile cannot say it
            if not network.schedule and len(network.links) == 1 + len(boxes) and (known := legacy.at_cells(network)):
                as_cell = dataclasses.replace(setting, point=known[0], network=known[1])
                if as_cell.cell_form is not None:
                    return as_cell
        if network.bursts and setting.cell_form is None:
            raise UserError("/bursts: packets sent at once are counted only for a flow that is alone", "leave it out")
        return setting


def _is_read_back(axis: Axis, value: Value) -> bool:
    """Return whether the id of a point with this value is read back as the same: not so if the value is 'a,b'."""
    try:
        values = parse_values(f"{axis.name}={value_text(value)}")
    except UserError:
        return False
    return values.keys() == {axis.name} and axis.read(values[axis.name]) == value


#: fields of a document that describe its network
_NETWORK = ("links", "flows", "offload", "bursts", "sysctls", "schedule", "delivery", "round_trips")


def _place(document: Any, pointer: str) -> tuple[Any, str | int]:
    """Return the object or list that a JSON pointer's last step is in, and that step as a key. Raises UserError."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]
    if len(steps) < 2 or steps[0]:
        raise UserError(f"{pointer!r} is not a JSON pointer", "write it like /links/0/data/rate_mbps")
    holder: Any = document
    for at, step in enumerate(steps[1:], 1):
        key: str | int = step
        if isinstance(holder, list):
            key = int(step) if step.isascii() and step.isdecimal() and int(step) < len(holder) else -1
        known = key != -1 if isinstance(holder, list) else isinstance(holder, dict) and key in holder
        if not known:
            raise UserError(f"it sets nothing: the document has no {pointer}", "give it a value there first")
        if at == len(steps) - 1:
            return holder, key
        holder = holder[key]
    raise AssertionError  # the loop returns at its last step
