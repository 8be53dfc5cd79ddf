"""Read a study: a document that names scenarios, says which of their points are measured, and makes claims about them.

The document's form is schemas/study.json; docs/add-a-study.md describes it. A *selection* is {coordinate: value or
values}. Coordinates are the scenario, the stack, the client, the algorithm under test, the scenario's axes, a group of
flows and a metric. An axis that is left out has the first of its values in the scenario. The kernel is a coordinate,
too, if points are measured on several; if it is left out, it is the kernel of the first experiment.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from conformance.model.errors import UserError, located
from conformance.model.metrics import delivery_metrics
from conformance.model.metrics.table import METRICS
from conformance.model.networks.instants import instants
from conformance.model.networks.network import Network
from conformance.model.networks.place import Value
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.model.studies import claims, figure, predicted
from conformance.model.studies.claims import Instance, Relation
from conformance.model.studies.figure import Figure, product
from conformance.model.studies.study_point import (
    ALGORITHM,
    CLIENT,
    CLIENT_OF,
    GROUP,
    KERNEL,
    METRIC,
    PHASE,
    SCENARIO,
    STACK,
    STACK_OF,
    Coordinates,
    StudyPoint,
    StudyQuantity,
)  # fmt: skip

TIERS = ("smoke", "full")
FULL = "full"
_PLACES = (SCENARIO, STACK_OF, CLIENT_OF, ALGORITHM, KERNEL)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A kernel variant: the kernel named `of` with other module parameters, {module.name: value}."""

    of: str
    parameters: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A comparison of a published point with a scaled one, which shows whether the scaled one may stand for it."""

    name: str
    instances: tuple[Instance, ...]
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the study says, in our words and its own numbers, and the instances by which it is judged.

    `not_judged`: why there are none. `difference`: the likeliest cause of a difference that was seen.
    """

    id: str
    says: str
    place: str
    figures: tuple[str, ...]
    published: str
    tolerance: str | None
    instances: tuple[Instance, ...]
    not_judged: str | None
    difference: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """A study, as read from its document."""

    name: str
    title: str
    source: Mapping[str, str]
    scaled: tuple[Mapping[str, str], ...]
    trials: Mapping[str, int]
    scenarios: Mapping[str, Scenario]
    #: {tier: points}, in the order of experiments; those of the full tier begin with the smoke tier's
    points: Mapping[str, tuple[StudyPoint, ...]]
    #: {name: kernel variant} of those that points ask for and that a run makes by itself
    variants: Mapping[str, Variant]
    #: {point: trials in the full tier}, for points whose number differs from `trials`
    more: Mapping[StudyPoint, int]
    anchors: tuple[Anchor, ...]
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]

    @classmethod
    def from_json(cls, data: Mapping[str, Any], scenarios: Mapping[str, Scenario]) -> Self:
        """Return the Study of a document that satisfies the schema, with its `scenarios`.

        Raises UserError with a JSON pointer.
        """
        reader = _Reader(data, scenarios)
        return cls(
            name=data["name"], title=data["title"], source=data["source"], scaled=tuple(data.get("scaled", ())),
            trials=data["trials"], scenarios=scenarios, points=reader.points, more=reader.more,
            variants={name: Variant(**fields) for name, fields in data.get("kernels", {}).items()},
            anchors=tuple(reader.anchors()), claims=tuple(reader.claims()), figures=reader.figures,
        )  # fmt: skip

    def setting(self, at: StudyPoint) -> Setting:
        """Return the Setting at a point. Raises UserError."""
        return self.scenarios[at.scenario].setting(at.point)

    def trials_at(self, at: StudyPoint, tier: str) -> int:
        """Return how many trials a tier has of a point."""
        return self.more.get(at, self.trials[tier]) if tier == FULL else self.trials[tier]


class _Reader:
    """A reader of the parts of a document; each part is read after those that it refers to."""

    def __init__(self, data: Mapping[str, Any], scenarios: Mapping[str, Scenario]) -> None:
        self._data, self._scenarios = data, scenarios
        by_tier: dict[str, dict[StudyPoint, None]] = {tier: {} for tier in TIERS}
        #: {point without a kernel: {kernel: the point on that kernel}}, in the order of experiments
        self._known: dict[StudyPoint, dict[str | None, StudyPoint]] = {}
        self.more: dict[StudyPoint, int] = {}
        for at, experiment in enumerate(data["experiments"]):
            with located(f"/experiments/{at}/scenario"):
                scenario = self._scenario(experiment["scenario"])
            stacks, kernel = experiment.get("stacks", [STACK]), experiment.get("kernel")
            client = experiment.get("client", CLIENT)
            for tier in TIERS:
                for number, selection in enumerate(experiment.get(tier, ())):
                    with located(f"/experiments/{at}/{tier}/{number}"):
                        for point in map(scenario.point, product(selection)):
                            scenario.setting(point)
                            for stack, algorithm in itertools.product(stacks, experiment["algorithms"]):
                                study_point = StudyPoint(scenario.name, stack, algorithm, point, client)
                                on = dataclasses.replace(study_point, kernel=kernel)
                                self._known.setdefault(study_point, {})[kernel] = on
                                by_tier[tier][on] = None
                                if "trials" in experiment:
                                    self.more[on] = max(experiment["trials"], self.more.get(on, 0))
        self.points = {"smoke": tuple(by_tier["smoke"]), "full": tuple({**by_tier["smoke"], **by_tier["full"]})}
        self.figures = tuple(figure.read(data.get("figures", ()), self._point, self._quantity))
        self._figures = [figure.id for figure in self.figures]
        self._anchors = [anchor["name"] for anchor in data.get("anchors", ())]

    def _scenario(self, name: str) -> Scenario:
        if name not in self._scenarios:
            raise UserError(f"the study has no scenario {name!r}", f"it has {', '.join(self._scenarios)}")
        return self._scenarios[name]

    def anchors(self) -> Iterator[Anchor]:
        """Yield the anchors. Raises UserError."""
        names: set[str] = set()
        for at, fields in enumerate(self._data.get("anchors", ())):
            if fields["name"] in names:
                raise UserError(f"/anchors/{at}/name: two anchors are called {fields['name']}")
            names.add(fields["name"])
            if "anchors" in fields["check"]:
                raise UserError(f"/anchors/{at}/check/anchors: an anchor cannot rest on another")
            instances = _placed(self._instances(f"/anchors/{at}/check", fields["check"]))
            yield Anchor(name=fields["name"], instances=instances, reason=fields["reason"])

    def claims(self) -> Iterator[Claim]:
        """Yield the claims. Raises UserError."""
        ids: set[str] = set()
        for at, fields in enumerate(self._data["claims"]):
            if fields["id"] in ids:
                raise UserError(f"/claims/{at}/id: two claims are called {fields['id']}")
            ids.add(fields["id"])
            figures = _named(f"/claims/{at}", fields, "figures", self._figures)
            of_all = _named(f"/claims/{at}", fields, "anchors", self._anchors)
            instances: list[tuple[Coordinates, Instance]] = []
            for number, check in enumerate(fields.get("checks", ())):
                where = f"/claims/{at}/checks/{number}"
                names = tuple(dict.fromkeys((*of_all, *_named(where, check, "anchors", self._anchors))))
                placed = self._instances(where, check)
                instances += [(place, dataclasses.replace(each, anchors=names)) for place, each in placed]
            yield Claim(
                id=fields["id"], says=fields["says"], place=fields["place"], figures=figures,
                published=fields["published"], tolerance=fields.get("tolerance"), instances=_placed(instances),
                not_judged=fields.get("not_judged"),
                difference=fields.get("difference"),
            )  # fmt: skip

    def _instances(self, where: str, check: Mapping[str, Any]) -> Iterator[tuple[Coordinates, Instance]]:
        """Yield (combination, instance) for each combination of the values in a check's `at`."""
        relation, sides, place_of = _relation(where, check)
        for place in product(check["at"]):
            quantities = []
            for number, side in enumerate(sides):
                with located(place_of(number)):
                    quantities.append(self._quantity({**place, **side}))
            labels = tuple(", ".join(map(str, side.values())) for side in sides)
            yield place, Instance(relation=relation, quantities=tuple(quantities), where="", labels=labels)

    def _quantity(self, coordinates: Coordinates) -> StudyQuantity:
        rest = dict(coordinates)
        metric = rest.pop(METRIC, None)
        group = rest.pop(GROUP, None)
        phase = rest.pop(PHASE, None)
        if metric in predicted.ASKED:
            return self._prediction(str(metric), rest)
        if metric not in METRICS:
            raise UserError(f"{metric!r} is not one of the metrics", f"choose one of {', '.join(METRICS)}")
        if METRICS[str(metric)].against is not None:
            raise UserError(f"{metric} is known only with a zone, so not in a study", "choose another metric")
        at = self._point(rest)
        setting = self._scenarios[at.scenario].setting(at.point)
        network = setting.network
        names = [flow.name for flow in network.flows]
        if group is not None and group not in names:
            raise UserError(f"{at.scenario} has no group {group!r}", f"it has {', '.join(names) or 'none'}")
        of_phase = None if phase is None else _phase(phase, str(metric), network)
        return StudyQuantity((at,), str(metric), None if group is None else str(group), phase=of_phase)

    def _prediction(self, metric: str, rest: Mapping[str, Value]) -> StudyQuantity:
        options = {name: value for name, value in rest.items() if name not in _PLACES}
        predicted.check(metric, options)
        of = (rest.get(SCENARIO), rest.get(STACK_OF, STACK), rest.get(CLIENT_OF, CLIENT), rest.get(ALGORITHM))
        points = tuple(
            point
            for at, measured in self._known.items()
            if (at.scenario, at.stack, at.client, at.algorithm) == of
            and (point := _on_kernel(measured, rest.get(KERNEL))) is not None
        )
        if not points:
            raise UserError(f"the study has no points of {rest.get(SCENARIO)}, {rest.get(ALGORITHM)}")
        cells = [self._scenarios[point.scenario].setting(point.point).cell for point in points]
        if len(set(cells)) < len(cells):
            raise UserError(
                f"{rest.get(SCENARIO)} has several points of one cell", "choose one with one point per cell"
            )
        return StudyQuantity(points, metric, None, tuple(sorted(options.items())))

    def _point(self, coordinates: Coordinates) -> StudyPoint:
        """Return the point with these coordinates. Raises UserError if the study does not measure it."""
        rest = dict(coordinates)
        for name in (SCENARIO, ALGORITHM):
            if name not in rest:
                raise UserError(f"it does not name the {name}")
        scenario = self._scenario(str(rest.pop(SCENARIO)))
        stack, algorithm = str(rest.pop(STACK_OF, STACK)), str(rest.pop(ALGORITHM))
        client = str(rest.pop(CLIENT_OF, CLIENT))
        kernel = rest.pop(KERNEL, None)
        study_point = StudyPoint(scenario.name, stack, algorithm, scenario.point(rest), client)
        point = _on_kernel(self._known.get(study_point, {}), kernel)
        if point is None:
            varied = dataclasses.replace(study_point, kernel=None if kernel is None else str(kernel))
            raise UserError(f"the study does not measure {varied.words}", "add it to an experiment")
        return point


def _on_kernel(measured: Mapping[str | None, StudyPoint], kernel: Value | None) -> StudyPoint | None:
    """Return the point on `kernel` from {kernel: point}, or the first point if no kernel is named."""
    return next(iter(measured.values()), None) if kernel is None else measured.get(str(kernel))


def _named(where: str, fields: Mapping[str, Any], field: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a field of a claim or check. Raises UserError if the study lacks one."""
    for number, name in enumerate(fields.get(field, ())):
        if name not in known:
            raise UserError(f"{where}/{field}/{number}: the study has no {field[:-1]} {name!r}")
    return tuple(fields.get(field, ()))


def _phase(phase: Value, metric: str, network: Network | None) -> int:
    """Return the number of a phase. Raises UserError if there is no such phase."""
    known = len(instants(network)) if network and network.delivery else 0
    if metric not in delivery_metrics.NAMES or not known:
        raise UserError(f"{metric} has no phases here", "leave out phase, or give the scenario delivery")
    if isinstance(phase, bool) or not isinstance(phase, int) or not 0 <= phase < known:
        raise UserError(f"there is no phase {phase}", f"choose 0 to {known - 1}")
    return phase


def _placed(instances: Iterable[tuple[Coordinates, Instance]]) -> tuple[Instance, ...]:
    """Return the instances of a claim, each with words for the coordinates in which they differ."""
    known = list(instances)
    names = dict.fromkeys(name for place, _ in known for name in place)
    varied = [name for name in names if len({place.get(name) for place, _ in known}) > 1]
    return tuple(
        dataclasses.replace(instance, where=", ".join(f"{name} {place[name]}" for name in varied if name in place))
        for place, instance in known
    )


#: a relation, the coordinates that each of its sides has besides `at`, and a side's JSON pointer by its number
_Read = tuple[Relation, Sequence[Coordinates], Callable[[int], str]]


def _relation(where: str, check: Mapping[str, Any]) -> _Read:
    """Return the relation that a check asks for, with its sides. Raises UserError."""
    name = next(name for name in ("within", "order", "alike", "maximum", "rises", "falls") if name in check)
    limits = check[name]
    if name == "within":
        return _within(f"{where}/within", limits), [{}], lambda number: f"{where}/at"
    if name == "order":
        return claims.Order(factor=limits.get("factor", 1.0)), limits["sides"], _side(where, name)
    if name == "alike":
        return claims.Alike(points=limits.get("points"), ratio=limits.get("ratio")), limits["sides"], _side(where, name)
    sides = [{limits["along"]: value} for value in limits["values"]]
    if name == "maximum":
        return _maximum(f"{where}/maximum/at", limits), sides, _value(where, name)
    kind = claims.Rises if name == "rises" else claims.Falls
    return kind(factor=limits.get("factor", 1.0)), sides, _value(where, name)


def _side(where: str, name: str) -> Callable[[int], str]:
    return lambda number: f"{where}/{name}/sides/{number}"


def _value(where: str, name: str) -> Callable[[int], str]:
    return lambda number: f"{where}/{name}/values/{number}"


def _maximum(where: str, limits: Mapping[str, Any]) -> claims.Maximum:
    values = limits["values"]
    if lacking := [value for value in limits["at"] if value not in values]:
        raise UserError(f"{where}: {lacking[0]!r} is not one of the values")
    if len(set(limits["at"])) >= len(values):
        raise UserError(f"{where}: it lists all values, so it says nothing")
    return claims.Maximum(at=tuple(values.index(value) for value in limits["at"]))


def _within(where: str, data: Mapping[str, float]) -> claims.Within:
    if "about" in data:
        about = data["about"]
        give = data["points"] if "points" in data else abs(about) * data["ratio"]
        return claims.Within(low=about - give, high=about + give)
    low, high = data.get("low", -math.inf), data.get("high", math.inf)
    if low > high:
        raise UserError(f"{where}: low is above high")
    return claims.Within(low=low, high=high)
