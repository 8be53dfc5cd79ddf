"""Define what a study measures, which is points, and what its claims are about, which is quantities at points."""

import dataclasses
from collections.abc import Mapping

from conformance.model.networks.place import Point, Value

#: the stack under test if an experiment names none: the kernel's own TCP
STACK = "linux-tcp"
#: the client if an experiment names none: the one that all servers share
CLIENT = "common"
#: an experiment's name for the stack's own client
OWN = "own"
#: coordinates that are not axes of a scenario
SCENARIO, STACK_OF, CLIENT_OF, ALGORITHM, GROUP, METRIC = "scenario", "stack", "client", "algorithm", "group", "metric"
KERNEL = "kernel"
#: a coordinate of deliveries: the number of a phase of the trial
PHASE = "phase"
Coordinates = Mapping[str, Value]


@dataclasses.dataclass(frozen=True, slots=True)
class StudyPoint:
    """What is measured: an algorithm of a stack at a point of a scenario.

    `client`: common, own, or the name of the adapter whose client fetches. `kernel`: the name of the kernel on which
    the point is measured; None for the one that the algorithm asks for.
    """

    scenario: str
    stack: str
    algorithm: str
    point: Point
    client: str = CLIENT
    kernel: str | None = None

    @property
    def words(self) -> str:
        """The point in words, for people."""
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
class StudyQuantity:
    """A metric of a group of flows (None: of all judged flows) at a point, or a prediction from many points.

    `asked` has the parameters of a prediction (predicted.py); it is empty for a metric.
    """

    points: tuple[StudyPoint, ...]
    metric: str
    group: str | None
    requested: tuple[tuple[str, Value], ...] = ()
    #: the phase of a delivery metric; None for the whole trial
    phase: int | None = None
