"""Find what violations are due to, by capturing trials of the stack and of the reference at the places that violate.

In a cell its flow is captured; at a point of a scenario, the first flow of the judged group.

Both sides have the same seeds, from 1 on, and so meet the same random losses. These trials are not the ones that were
judged. The reference is Linux TCP's algorithm of the same name, on the kernel that has it. If that kernel is not built,
what was recorded of such trials stands in for it (zones/features.json).
"""

import dataclasses
import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from conformance.catalogue import recorded_features, scenarios
from conformance.commands import trace, tracing
from conformance.engine import benches, runs
from conformance.engine.benches import Choice
from conformance.lab import job
from conformance.model.diagnosis import blame as blame_model
from conformance.model.diagnosis.blame import Blame, FlowTraits, NotAttributed, Side
from conformance.model.diagnosis.feature_table import FEW, is_bbr
from conformance.model.diagnosis.flow import Flow
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import CellPath, Point
from conformance.model.networks.setting import Setting
from conformance.support.notes import Notes

#: captured trials of the stack in a cell, and as many of the reference; most cells of one zone; most cells in all
TRIALS, _CELLS_A_ZONE, _MOST_CELLS = 3, 2, 4

#: what identifies a violation: the zone's id, and the place
Key = tuple[str, Point]
Found = Mapping[Key, Blame | NotAttributed]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Violation:
    """A place that violates a zone, and the values of the zone's metric that were judged."""

    zone: Zone
    place: Point
    values: tuple[float, ...]

    @property
    def key(self) -> Key:
        return self.zone.id, self.place

    @property
    def setting(self) -> Setting:
        """The setting that it was measured in. Raises UserError."""
        return scenarios.setting(self.zone.profile, self.place)

    @property
    def why_not(self) -> str | None:
        """Why no capture could show what this violation is due to; None if one can."""
        if self.zone.metric not in blame_model.RATES:
            return f"{self.zone.metric} is not a rate"
        if isinstance(self.place, CellPath) or self.setting.rival:
            return "neither a split path nor a cell's flow beside a rival is examined"
        if not all(value > 0 for value in self.values):
            return "nothing was transferred"
        if not all(value > 0 for value in self.zone.intervals[self.place].basis.values):
            return "the reference transferred nothing"
        try:
            job.captures_mb(self.setting, "heads", trace.flow_of(self.setting, None))
        except UserError as why:
            return str(why.cause)
        return None

    @property
    def guest(self) -> str:
        """What its traces share a guest with: all cells of its profile, or nothing but its own point."""
        profile = self.setting.profile
        return profile if self.setting.of_profile else f"{profile} {self.place.id}"


def of_violations(
    violations: Iterable[Violation], choice: Choice, notes: Notes, workers: int | None = None,
    budget_s: float | None = None,
) -> Found:  # fmt: skip
    """Return what violations are due to; if there are too many, only those that choose() returns are examined.

    If a cause cannot be found, the command must neither fail nor hide the violation, so no UserError is raised. An
    interrupt ends the captures, and the violations under examination are returned as NotAttributed. `budget_s`: see
    tracing.traced_all().
    """
    everything = list(violations)
    reasons = {violation.key: why for violation in everything if (why := violation.why_not)}
    blames: dict[Key, Blame | NotAttributed] = {key: NotAttributed(why) for key, why in reasons.items()}
    chosen = choose(violation for violation in everything if violation.key not in reasons)
    if not chosen:
        return blames
    try:
        blames.update(_look(chosen, choice, notes, workers, budget_s))
    except UserError as why:
        blames.update({violation.key: NotAttributed(str(why)) for violation in chosen})
    except KeyboardInterrupt:
        blames.update({violation.key: NotAttributed("interrupted") for violation in chosen})
    return blames


def choose(violations: Iterable[Violation]) -> list[Violation]:
    """Return the few violations to examine: the zones take turns, each with its cheapest violations first."""
    by_zone = grouped((violation.zone.id, violation) for violation in violations)
    ranked = [
        sorted(of, key=lambda violation: (violation.setting.transfer_bytes, violation.place)) for of in by_zone.values()
    ]
    turns = itertools.zip_longest(*(of[:_CELLS_A_ZONE] for of in ranked))
    return [turn_violation for turn in turns for turn_violation in turn if turn_violation is not None][:_MOST_CELLS]


#: (side that is traced, algorithm, guest); guest "" stands for the cell in which losses are far apart
_Role = tuple[str, str, str]
_STACK, _REFERENCE = "stack", "reference"
_NO_REFERENCE = (
    "the kernel that has the algorithm is not built, and no trials are recorded there;"
    " `conformance why` compares with recorded features"
)


def _look(
    chosen: Sequence[Violation], choice: Choice, notes: Notes, workers: int | None,
    budget_s: float | None,
) -> Iterator[tuple[Key, Blame | NotAttributed]]:  # fmt: skip
    """Trace both sides of the chosen violations, then yield what each violation is due to. Raises UserError."""
    stack, usual = benches.find(choice), benches.find(Choice())
    algorithms = {violation.zone.algorithm for violation in chosen}
    built = {algorithm for algorithm in algorithms if tracing.why_not(usual, algorithm) is None}
    known: list[tuple[Violation, Sequence[FlowTraits]]] = []
    for violation in chosen:
        algorithm = violation.zone.algorithm
        recorded = () if algorithm in built else _recorded(violation)
        if why := tracing.why_not(stack, algorithm):
            yield violation.key, NotAttributed(why)
        elif algorithm not in built and not recorded:
            yield violation.key, NotAttributed(_NO_REFERENCE)
        else:
            known.append((violation, recorded))
    under = _under([violation for violation, _ in known], built)
    if not under:
        return
    seeds = runs.seeds(TRIALS)
    total = len(seeds) * sum(map(len, under.values()))
    with notes.bar("tracing what violates", total=total, unit="traces") as bar:
        traced = tracing.traced_all(
            {" ".join(role): (usual if role[0] == _REFERENCE else stack, role[1]) for role in under},
            {" ".join(role): dict.fromkeys(cells, seeds) for role, cells in under.items()},
            bar=bar, workers=workers, budget_s=budget_s,
            under={" ".join(role): cells for role, cells in under.items()},
        )  # fmt: skip
    for violation, recorded in known:
        yield violation.key, _blame(violation, traced, recorded)


def _recorded(violation: Violation) -> Sequence[FlowTraits]:
    """Return what was recorded of the reference's trials at the place of a violation. Raises UserError."""
    recorded = recorded_features.find(violation.zone.algorithm)
    return recorded.traits.get((violation.zone.profile, violation.place.id), ()) if recorded else ()


def _under(chosen: Sequence[Violation], built: Container[str]) -> dict[_Role, dict[str, Setting]]:
    """Return {role: {cell's name: Setting}}; each role gets a guest of its own, as a guest has one profile.

    `built`: the algorithms whose references can be traced.
    """
    settings: dict[_Role, dict[str, Setting]] = {}
    for violation, who in itertools.product(chosen, (_STACK, _REFERENCE)):
        algorithm, setting = violation.zone.algorithm, violation.setting
        if who == _REFERENCE and algorithm not in built:
            continue
        settings.setdefault((who, algorithm, violation.guest), {})[violation.place.id] = setting
        if not is_bbr(algorithm):  # BBR does not reduce its window by a factor at each loss
            settings.setdefault((who, algorithm, ""), {})[FEW] = tracing.settings()[FEW]
    return settings


def _blame(
    violation: Violation, traced: Mapping[str, tracing.Traced], recorded: Sequence[FlowTraits]
) -> Blame | NotAttributed:
    """Return what a violation is due to; `recorded` are the reference's traits if it was not traced."""
    permitted = violation.zone.intervals[violation.place]
    basis = permitted.basis
    values = {_STACK: violation.values, _REFERENCE: basis.values}
    sides = {}
    for who in (_STACK, _REFERENCE):
        here = traced.get(f"{who} {violation.zone.algorithm} {violation.guest}")
        sightings = [traits for flow in _flows(here, violation.place.id) if (traits := blame_model.seen(flow))]
        if who == _REFERENCE:
            sightings.extend(recorded)
        if not sightings:
            problems = here.troubles if here else []
            unsupported = here.unsupported if here else None
            return NotAttributed(unsupported or next(iter(problems), f"no trace of the {who} was made in time"))
        far_apart = _flows(traced.get(f"{who} {violation.zone.algorithm} "), FEW)
        responses = [response for flow in far_apart if (response := blame_model.response(flow))]
        sides[who] = Side(values=values[who], sightings=sightings, responses=responses)
    bounds = (permitted.low, permitted.high)
    return blame_model.blame(violation.zone.algorithm, violation.zone.metric, sides[_STACK], sides[_REFERENCE], bounds)


def _flows(traced: tracing.Traced | None, cell: str) -> list[Flow]:
    return list(traced.flows.get(cell, {}).values()) if traced else []
