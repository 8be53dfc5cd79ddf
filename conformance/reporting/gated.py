"""What reports need to know of a gate's result; conformance/commands/gate.py makes it."""

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from conformance.model.expectation import Expected, Surprise
from conformance.model.setting import Cell
from conformance.model.studies.comparison import Compared
from conformance.model.verdict import Status, Verdict
from conformance.model.zone import Zone

if TYPE_CHECKING:
    from conformance.commands.compare import Comparison


class Finding(Protocol):
    """The verdict on one cell of a zone, beside what the stack is known to do there."""

    @property
    def verdict(self) -> Verdict: ...
    @property
    def expected(self) -> Expected | None: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def surprise(self) -> Surprise: ...
    @property
    def as_expected(self) -> bool: ...


class ZoneResult(Protocol):
    """A zone's cells of a run: those that were measured in time, and those that were not."""

    @property
    def zone(self) -> Zone: ...
    @property
    def scheme_id(self) -> str: ...
    @property
    def findings(self) -> Sequence[Finding]: ...
    @property
    def unmeasured(self) -> Sequence[Cell]: ...
    def count(self) -> collections.Counter[Status]: ...


class GateResult(Protocol):
    """All that a gate found."""

    @property
    def judged(self) -> Sequence[ZoneResult]: ...
    @property
    def strict(self) -> bool: ...
    @property
    def baseline(self) -> bool: ...
    @property
    def gone(self) -> str: ...
    @property
    def findings(self) -> Sequence[Finding]: ...
    @property
    def features(self) -> "Comparison | None": ...
    @property
    def moved(self) -> Sequence[Compared]: ...
    @property
    def surprises(self) -> Sequence[Finding]: ...
    @property
    def exit_status(self) -> int: ...
