"""Questions about measurements: is a scheme inside a zone, or does it do what a clause of a document says?

A question about a zone is about one place, or about one check of the zone's split part.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from conformance.catalogue import documents, scenarios
from conformance.model.clauses import verdict as clauses
from conformance.model.clauses.document import Clause
from conformance.model.clauses.verdict import ClauseVerdict
from conformance.model.judging import verdict as verdicts
from conformance.model.judging.verdict import Verdict
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.setting import Setting
from conformance.model.split import split_zone
from conformance.model.split.split_zone import Check, SplitVerdict, SplitZone
from conformance.model.trials.trial import Measurement

#: what is measured: (algorithm, setting)
Key = tuple[str, Setting]
Measured = Mapping[Setting, Sequence[Measurement]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _OfOneSetting:
    """A question that can be answered by measurements of one algorithm in one setting."""

    setting: Setting
    algorithm: str

    @property
    def key(self) -> Key:
        return self.algorithm, self.setting

    @property
    def settings(self) -> tuple[Setting, ...]:
        return (self.setting,)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CellQuestion(_OfOneSetting):
    """Asks whether the stack's `algorithm` is inside a zone at a cell, or at a point of a scenario.

    `algorithm` is the zone's own unless one algorithm is judged by another's zone (`conformance dev cross`).
    """

    zone: Zone = dataclasses.field(hash=False)

    @property
    def place(self) -> Point:
        return self.setting.point

    @property
    def judgeable(self) -> bool:
        """Whether the cell can tell enough to be judged; if not, no trial is worth its time."""
        return self.zone.intervals[self.place].counted

    def judge(self, measured: Measured, family: int, more: bool) -> Verdict:
        return verdicts.judge(self.zone, self.place, measured[self.setting], family, more)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SplitQuestion:
    """Asks whether a check of a zone's split part holds, by measurements of all cells that it needs."""

    zone: SplitZone = dataclasses.field(hash=False)
    check: Check = dataclasses.field(hash=False)
    settings: tuple[Setting, ...]
    judgeable: ClassVar[bool] = True

    @property
    def algorithm(self) -> str:
        return self.zone.algorithm

    @property
    def place(self) -> str:
        return self.check.id

    def judge(self, measured: Measured, family: int, more: bool) -> SplitVerdict:
        return split_zone.judge(self.zone, self.check, self._by_cell(measured), family, more)

    def unclear(self, verdict: SplitVerdict, measured: Measured) -> list[Setting]:
        """Return the settings of which more trials might make a verdict on these measurements clear."""
        cells = split_zone.unclear(self.zone, self.check, verdict, self._by_cell(measured))
        return [setting for setting in self.settings if setting.cell in cells]

    def _by_cell(self, measured: Measured) -> dict[Cell, Sequence[Measurement]]:
        return {setting.cell: measured[setting] for setting in self.settings}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClauseQuestion(_OfOneSetting):
    """Asks whether the stack's `algorithm` does what a clause says. Trials of `setting` keep their packets.

    `twice`: a violation counts only if trials with fresh seeds show it, too, so each time has to show half of it.
    """

    clause: Clause = dataclasses.field(hash=False)
    twice: bool = False
    judgeable: ClassVar[bool] = True

    @property
    def zone(self) -> Clause:
        """The clause, in the place of a zone: it has an id, as zones have."""
        return self.clause

    @property
    def place(self) -> str:
        return self.algorithm

    def judge(self, measured: Measured, family: int, more: bool) -> ClauseVerdict:
        return clauses.judge(self.clause, self.setting, measured[self.setting], family, more, self.twice)


Question = CellQuestion | SplitQuestion | ClauseQuestion
#: questions that can be answered by measurements of one algorithm in one setting
Lone = CellQuestion | ClauseQuestion


def cell_questions(zone: Zone, at: Iterable[Point]) -> list[CellQuestion]:
    """Return a zone's questions at those of the places `at` that it has, under its own profile. Raise UserError."""
    return [
        CellQuestion(zone=zone, setting=scenarios.setting(zone.profile, place), algorithm=zone.algorithm)
        for place in at
        if place in zone.intervals
    ]


def split_question(zone: SplitZone, check: Check) -> SplitQuestion:
    """Return the question of a check of a zone's split part."""
    cells = tuple(documents.profile(zone.profile, cell) for cell in check.cells)
    return SplitQuestion(zone=zone, check=check, settings=cells)
