"""A study: a document of scenarios, of which of their points are measured, and of claims about these.

The document's form is schemas/study.json; docs/studies.md describes it. A *selection* is {coordinate: value or values}.
Coordinates are the scenario, the stack, the client, the algorithm under test, the scenario's axes, a group of flows and
a metric; an axis that is left out has the first value of the scenario's own.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from conformance.model import delivery_metrics
from conformance.model.errors import UserError, located
from conformance.model.instants import instants
from conformance.model.metrics import METRICS
from conformance.model.network import Network
from conformance.model.place import Point, Value
from conformance.model.scenario import Scenario
from conformance.model.setting import Setting
from conformance.model.studies import claims, predicted
from conformance.model.studies.claims import Instance, Relation

TIERS = ("smoke", "full")
FULL = "full"
#: whose stack is under test where an experiment names none: the kernel's own TCP
STACK = "linux-tcp"
#: whose client fetches where an experiment names none: the one that all servers share
CLIENT = "common"
#: the stack's own client, as an experiment names it
OWN = "own"
#: coordinates that are no axis
SCENARIO, STACK_OF, CLIENT_OF, ALGORITHM, GROUP, METRIC = "scenario", "stack", "client", "algorithm", "group", "metric"
#: of deliveries: the number of a phase of the trial
PHASE = "phase"
_PLACES = (SCENARIO, STACK_OF, CLIENT_OF, ALGORITHM)
Coordinates = Mapping[str, Value]


@dataclasses.dataclass(frozen=True, slots=True)
class StudyPoint:
    """What is measured: an algorithm of a stack at a point of a scenario."""

    scenario: str
    stack: str
    algorithm: str
    point: Point
    #: common, own, or the name of the adapter whose client it is
    client: str = CLIENT

    @property
    def words(self) -> str:
        """Return it as people read it."""
        stack = "" if self.stack == STACK else f" of {self.stack}"
        client = "" if self.client == CLIENT else f" with client {self.client}"
        return f"{self.scenario}, {self.algorithm}{stack}{client}, {self.point.id}".removesuffix(", ")

    def coordinates(self) -> dict[str, Value]:
        """Return all coordinates of the point."""
        return {
            SCENARIO: self.scenario,
            STACK_OF: self.stack,
            CLIENT_OF: self.client,
            ALGORITHM: self.algorithm,
            **dict(self.point.values),
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Quantity:
    """A metric of a group of flows (None: of all that are judged) at a point; or what is predicted from many points.

    `asked` is what a prediction is asked for (predicted.py), empty of what is measured.
    """

    points: tuple[StudyPoint, ...]
    metric: str
    group: str | None
    asked: tuple[tuple[str, Value], ...] = ()
    #: of a delivery: which phase; None for the whole trial
    phase: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A published point and a scaled one, and when one may stand for the other."""

    name: str
    instances: tuple[Instance, ...]
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the study says, in our words and its own numbers, and the instances that it comes to.

    `not_judged`: why there are none. `difference`: the likeliest cause of a difference that was seen.
    """

    id: str
    says: str
    place: str
    figures: tuple[str, ...]
    published: str
    tolerance: str | None
    anchors: tuple[str, ...]
    instances: tuple[Instance, ...]
    not_judged: str | None
    difference: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the study, to be drawn anew: `draws` what, of quantities that differ in `x`, `y` and `lines`."""

    id: str
    title: str
    draws: str
    metric: str
    group: str | None
    x: str | None
    y: str | None
    lines: str | None
    log: bool
    published: tuple[Mapping[str, Any], ...]
    #: the points that it shows
    points: tuple[StudyPoint, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """A study's document, read."""

    name: str
    title: str
    source: Mapping[str, str]
    scaled: tuple[Mapping[str, str], ...]
    trials: Mapping[str, int]
    scenarios: Mapping[str, Scenario]
    #: {tier: points}, in the order of experiments; those of the full tier begin with the smoke tier's
    points: Mapping[str, tuple[StudyPoint, ...]]
    #: {point: name of the kernel that it is measured on}; of others, an algorithm says which
    kernels: Mapping[StudyPoint, str]
    #: {point: trials in the full tier}, of points that have another number than `trials` says
    more: Mapping[StudyPoint, int]
    anchors: tuple[Anchor, ...]
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]

    @classmethod
    def from_json(cls, data: Mapping[str, Any], scenarios: Mapping[str, Scenario]) -> Self:
        """Return the Study of a document that keeps its schema, with its scenarios. Raises UserError with a pointer."""
        reader = _Reader(data, scenarios)
        return cls(
            name=data["name"], title=data["title"], source=data["source"], scaled=tuple(data.get("scaled", ())),
            trials=data["trials"], scenarios=scenarios, points=reader.points, kernels=reader.kernels, more=reader.more,
            anchors=tuple(reader.anchors()), claims=tuple(reader.claims()), figures=tuple(reader.figures()),
        )  # fmt: skip

    def setting(self, at: StudyPoint) -> Setting:
        """Return the Setting at a point. Raises UserError."""
        return self.scenarios[at.scenario].setting(at.point)

    def trials_at(self, at: StudyPoint, tier: str) -> int:
        """Return how many trials a tier has of a point."""
        return self.more.get(at, self.trials[tier]) if tier == FULL else self.trials[tier]


class _Reader:
    """Reads the parts of a document, each after those that it refers to."""

    def __init__(self, data: Mapping[str, Any], scenarios: Mapping[str, Scenario]) -> None:
        self._data, self._scenarios = data, scenarios
        found: dict[str, dict[StudyPoint, None]] = {tier: {} for tier in TIERS}
        kernels: dict[StudyPoint, str | None] = {}
        self.more: dict[StudyPoint, int] = {}
        for at, experiment in enumerate(data["experiments"]):
            with located(f"/experiments/{at}/scenario"):
                scenario = self._scenario(experiment["scenario"])
            stacks, kernel = experiment.get("stacks", [STACK]), experiment.get("kernel")
            client = experiment.get("client", CLIENT)
            for tier in TIERS:
                for number, selection in enumerate(experiment.get(tier, ())):
                    with located(f"/experiments/{at}/{tier}/{number}"):
                        for point in map(scenario.point, _product(selection)):
                            scenario.setting(point)
                            for stack, algorithm in itertools.product(stacks, experiment["algorithms"]):
                                one = StudyPoint(scenario.name, stack, algorithm, point, client)
                                found[tier][one] = None
                                if "trials" in experiment:
                                    self.more[one] = max(experiment["trials"], self.more.get(one, 0))
                                if kernels.setdefault(one, kernel) != kernel:
                                    raise UserError(f"another experiment measures {one.words} on another kernel")
        self.points = {"smoke": tuple(found["smoke"]), "full": tuple({**found["smoke"], **found["full"]})}
        self.kernels = {point: kernel for point, kernel in kernels.items() if kernel is not None}
        self._known = set(self.points["full"])
        self._figures = [figure["id"] for figure in data.get("figures", ())]

    def _scenario(self, name: str) -> Scenario:
        if name not in self._scenarios:
            raise UserError(f"the study has no scenario {name!r}", f"it has {', '.join(self._scenarios)}")
        return self._scenarios[name]

    def anchors(self) -> Iterator[Anchor]:
        """Yield the anchors. Raises UserError."""
        for at, one in enumerate(self._data.get("anchors", ())):
            instances = _placed(self._instances(f"/anchors/{at}/check", one["check"]))
            yield Anchor(name=one["name"], instances=instances, reason=one["reason"])

    def claims(self) -> Iterator[Claim]:
        """Yield the claims. Raises UserError."""
        anchors = [one["name"] for one in self._data.get("anchors", ())]
        ids: set[str] = set()
        for at, one in enumerate(self._data["claims"]):
            if one["id"] in ids:
                raise UserError(f"/claims/{at}/id: there are two claims {one['id']}")
            ids.add(one["id"])
            for field, known in (("anchors", anchors), ("figures", self._figures)):
                for number, name in enumerate(one.get(field, ())):
                    if name not in known:
                        raise UserError(f"/claims/{at}/{field}/{number}: the study has no {field[:-1]} {name!r}")
            instances: list[tuple[Coordinates, Instance]] = []
            for number, check in enumerate(one.get("checks", ())):
                instances += self._instances(f"/claims/{at}/checks/{number}", check)
            yield Claim(
                id=one["id"], says=one["says"], place=one["place"], figures=tuple(one.get("figures", ())),
                published=one["published"], tolerance=one.get("tolerance"), anchors=tuple(one.get("anchors", ())),
                instances=_placed(instances), not_judged=one.get("not_judged"), difference=one.get("difference"),
            )  # fmt: skip

    def figures(self) -> Iterator[Figure]:
        """Yield the figures. Raises UserError."""
        for at, one in enumerate(self._data.get("figures", ())):
            if one["id"] in self._figures[:at]:
                raise UserError(f"/figures/{at}/id: there are two figures {one['id']}")
            if one["metric"] not in METRICS:
                raise UserError(f"/figures/{at}/metric: {one['metric']!r} is not one of the metrics")
            with located(f"/figures/{at}/at"):
                points = tuple(self._point(place) for place in _product(one["at"]))
            axes = [
                name
                for name in (one.get("x"), one.get("y"), one.get("lines"))
                if name not in (None, GROUP, "index") and any(name not in point.coordinates() for point in points)
            ]
            if axes:
                raise UserError(f"/figures/{at}: not all of its points have a coordinate {axes[0]!r}")
            yield Figure(
                id=one["id"], title=one["title"], draws=one["draws"], metric=one["metric"], group=one.get("group"),
                x=one.get("x"), y=one.get("y"), lines=one.get("lines"), log=one.get("log", False),
                published=tuple(one.get("published", ())), points=points,
            )  # fmt: skip

    def _instances(self, where: str, check: Mapping[str, Any]) -> Iterator[tuple[Coordinates, Instance]]:
        """Yield what a check comes to: an instance for each combination of the values in `at`, and the combination."""
        relation, sides, place_of = _relation(where, check)
        for place in _product(check["at"]):
            quantities = []
            for number, side in enumerate(sides):
                with located(place_of(number)):
                    quantities.append(self._quantity({**place, **side}))
            labels = tuple(", ".join(map(str, side.values())) for side in sides)
            yield place, Instance(relation=relation, quantities=tuple(quantities), where="", labels=labels)

    def _quantity(self, coordinates: Coordinates) -> Quantity:
        rest = dict(coordinates)
        metric = rest.pop(METRIC, None)
        group = rest.pop(GROUP, None)
        phase = rest.pop(PHASE, None)
        if metric in predicted.ASKED:
            return self._prediction(str(metric), rest)
        if metric not in METRICS:
            raise UserError(f"{metric!r} is not one of the metrics", f"choose one of {', '.join(METRICS)}")
        at = self._point(rest)
        network = self._scenarios[at.scenario].setting(at.point).network
        if (METRICS[str(metric)].of_group is None) != (network is None):
            raise UserError(f"{metric} is no metric of {at.scenario}", "see docs/scenarios.md")
        names = [one.name for one in network.flows] if network else []
        if group is not None and group not in names:
            raise UserError(f"{at.scenario} has no group {group!r}", f"it has {', '.join(names) or 'none'}")
        of_phase = None if phase is None else _phase(phase, str(metric), network)
        return Quantity((at,), str(metric), None if group is None else str(group), phase=of_phase)

    def _prediction(self, metric: str, rest: Mapping[str, Value]) -> Quantity:
        asked = {name: value for name, value in rest.items() if name not in _PLACES}
        predicted.check(metric, asked)
        points = tuple(
            point
            for point in self.points["full"]
            if (point.scenario, point.stack, point.client, point.algorithm)
            == (rest.get(SCENARIO), rest.get(STACK_OF, STACK), rest.get(CLIENT_OF, CLIENT), rest.get(ALGORITHM))
        )
        if not points:
            raise UserError(f"the study has no points of {rest.get(SCENARIO)}, {rest.get(ALGORITHM)}")
        return Quantity(points, metric, None, tuple(sorted(asked.items())))

    def _point(self, coordinates: Coordinates) -> StudyPoint:
        """Return the point of these coordinates. Raises UserError where the study does not measure it."""
        rest = dict(coordinates)
        for name in (SCENARIO, ALGORITHM):
            if name not in rest:
                raise UserError(f"it does not say which {name}")
        scenario = self._scenario(str(rest.pop(SCENARIO)))
        stack, algorithm = str(rest.pop(STACK_OF, STACK)), str(rest.pop(ALGORITHM))
        client = str(rest.pop(CLIENT_OF, CLIENT))
        found = StudyPoint(scenario.name, stack, algorithm, scenario.point(rest), client)
        if found not in self._known:
            raise UserError(f"the study does not measure {found.words}", "add it to an experiment")
        return found


def _phase(phase: Value, metric: str, network: Network | None) -> int:
    """Return the number of a phase. Raises UserError where there is no such."""
    known = len(instants(network)) if network and network.delivery else 0
    if metric not in delivery_metrics.NAMES or not known:
        raise UserError(f"{metric} has no phases here", "leave out phase, or give the scenario delivery")
    if isinstance(phase, bool) or not isinstance(phase, int) or not 0 <= phase < known:
        raise UserError(f"there is no phase {phase}", f"there are 0 to {known - 1}")
    return phase


def _placed(instances: Iterable[tuple[Coordinates, Instance]]) -> tuple[Instance, ...]:
    """Return the instances of a claim, each with words for the coordinates in which they differ."""
    known = list(instances)
    names = dict.fromkeys(name for place, _ in known for name in place)
    varied = [name for name in names if len({place.get(name) for place, _ in known}) > 1]
    return tuple(
        dataclasses.replace(one, where=", ".join(f"{name} {place[name]}" for name in varied if name in place))
        for place, one in known
    )


def _product(selection: Mapping[str, Any]) -> Iterator[dict[str, Value]]:
    """Yield each combination of the values of a selection."""
    each = [value if isinstance(value, list) else [value] for value in selection.values()]
    for values in itertools.product(*each):
        yield dict(zip(selection, values, strict=True))


#: a relation, what its sides have that `at` has not, and the JSON pointer of a side by its number
_Read = tuple[Relation, Sequence[Coordinates], Callable[[int], str]]


def _relation(where: str, check: Mapping[str, Any]) -> _Read:
    """Return what a check asks. Raises UserError."""
    name = next(name for name in ("within", "order", "alike", "maximum", "rises", "falls") if name in check)
    asked = check[name]
    if name == "within":
        return _within(f"{where}/within", asked), [{}], lambda number: f"{where}/at"
    if name == "order":
        return claims.Order(factor=asked.get("factor", 1.0)), asked["sides"], _side(where, name)
    if name == "alike":
        return claims.Alike(points=asked.get("points"), ratio=asked.get("ratio")), asked["sides"], _side(where, name)
    sides = [{asked["along"]: value} for value in asked["values"]]
    if name == "maximum":
        return _maximum(f"{where}/maximum/at", asked), sides, _value(where, name)
    kind = claims.Rises if name == "rises" else claims.Falls
    return kind(factor=asked.get("factor", 1.0)), sides, _value(where, name)


def _side(where: str, name: str) -> Callable[[int], str]:
    return lambda number: f"{where}/{name}/sides/{number}"


def _value(where: str, name: str) -> Callable[[int], str]:
    return lambda number: f"{where}/{name}/values/{number}"


def _maximum(where: str, asked: Mapping[str, Any]) -> claims.Maximum:
    values = asked["values"]
    if lacking := [value for value in asked["at"] if value not in values]:
        raise UserError(f"{where}: {lacking[0]!r} is none of the values")
    if len(set(asked["at"])) >= len(values):
        raise UserError(f"{where}: it holds all values, and says nothing")
    return claims.Maximum(at=tuple(values.index(value) for value in asked["at"]))


def _within(where: str, data: Mapping[str, float]) -> claims.Within:
    if "about" in data:
        about = data["about"]
        give = data["points"] if "points" in data else abs(about) * data["ratio"]
        return claims.Within(low=about - give, high=about + give)
    low, high = data.get("low", -math.inf), data.get("high", math.inf)
    if low > high:
        raise UserError(f"{where}: low is above high")
    return claims.Within(low=low, high=high)
