"""What a study measures and speaks of: points, and quantities at them."""

import dataclasses
from collections.abc import Mapping

from conformance.model.place import Point, Value

#: whose stack is under test where an experiment names none: the kernel's own TCP
STACK = "linux-tcp"
#: whose client fetches where an experiment names none: the one that all servers share
CLIENT = "common"
#: the stack's own client, as an experiment names it
OWN = "own"
#: coordinates that are no axis
SCENARIO, STACK_OF, CLIENT_OF, ALGORITHM, GROUP, METRIC = "scenario", "stack", "client", "algorithm", "group", "metric"
KERNEL = "kernel"
#: of deliveries: the number of a phase of the trial
PHASE = "phase"
Coordinates = Mapping[str, Value]


@dataclasses.dataclass(frozen=True, slots=True)
class StudyPoint:
    """What is measured: an algorithm of a stack at a point of a scenario.

    `client`: common, own, or the name of the adapter whose client it is. `kernel`: the name of the one that it is
    measured on; None for the one that the algorithm asks for.
    """

    scenario: str
    stack: str
    algorithm: str
    point: Point
    client: str = CLIENT
    kernel: str | None = None

    @property
    def words(self) -> str:
        """Return it as people read it."""
        stack = "" if self.stack == STACK else f" of {self.stack}"
        client = "" if self.client == CLIENT else f" with client {self.client}"
        kernel = "" if self.kernel is None else f" on kernel {self.kernel}"
        return f"{self.scenario}, {self.algorithm}{stack}{client}{kernel}, {self.point.id}".removesuffix(", ")

    def coordinates(self) -> dict[str, Value]:
        """Return all coordinates of the point."""
        return {
            SCENARIO: self.scenario,
            STACK_OF: self.stack,
            CLIENT_OF: self.client,
            ALGORITHM: self.algorithm,
            **({} if self.kernel is None else {KERNEL: self.kernel}),
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
