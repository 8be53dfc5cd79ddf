"""The plan of a session: which zones are asked about which settings, how strictly, and after how many trials.

A *question* asks whether a scheme is inside a zone: at one cell, or for one check of a zone's split part. All questions
of one *family* share a chance of a false alarm (model/verdict.py), so a verdict depends on the whole plan. Whatever
judges measurements (pytest, `gate`, `run`, `matrix`, `cross`, mutants, false alarms, expectations) makes a Plan and
asks it; nothing else counts families.
"""

import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from conformance.catalogue import documents
from conformance.model import verdict as verdicts
from conformance.model.errors import UserError
from conformance.model.setting import Cell, Setting
from conformance.model.split import split_zone
from conformance.model.split.split_zone import PathCheck, ShareCheck, SplitVerdict, SplitZone
from conformance.model.trial import Measurement
from conformance.model.verdict import MOST_TRIALS, Status, Verdict, ZoneVerdict
from conformance.model.zone import Zone

#: what is measured: an algorithm in a setting
Key = tuple[str, Setting]
Measured = Mapping[Setting, Sequence[Measurement]]
Check = PathCheck | ShareCheck


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CellQuestion:
    """Is what runs as `algorithm` inside a zone at one cell? `algorithm` is the zone's own unless zones are crossed."""

    zone: Zone = dataclasses.field(hash=False)
    setting: Setting
    algorithm: str

    @property
    def key(self) -> Key:
        return self.algorithm, self.setting

    @property
    def place(self) -> Cell:
        return self.setting.cell

    @property
    def settings(self) -> tuple[Setting, ...]:
        return (self.setting,)

    def judge(self, measured: Measured, family: int, more: bool) -> Verdict:
        return verdicts.judge(self.zone, self.setting.cell, measured[self.setting], family, more)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SplitQuestion:
    """Does a check of a zone's split part hold? `split_path` is None where nothing splits the stack's connections."""

    zone: SplitZone = dataclasses.field(hash=False)
    check: Check = dataclasses.field(hash=False)
    cells: tuple[Setting, ...]
    split_path: Setting | None

    @property
    def algorithm(self) -> str:
        return self.zone.algorithm

    @property
    def is_path(self) -> bool:
        """Whether it is about one path, and not about the shares of many."""
        return isinstance(self.check, PathCheck)

    @property
    def place(self) -> str:
        return self.check.id

    @property
    def settings(self) -> tuple[Setting, ...]:
        return self.cells if self.split_path is None else (*self.cells, self.split_path)

    def judge(self, measured: Measured, family: int, more: bool) -> SplitVerdict:
        by_cell = {setting.cell: measured[setting] for setting in self.cells}
        through = None if self.split_path is None else measured[self.split_path]
        return split_zone.judge(self.zone, self.check, by_cell, through, family, more)


Question = CellQuestion | SplitQuestion


def cell_questions(zone: Zone, cells: Iterable[Cell]) -> list[CellQuestion]:
    """Return the questions of a zone at those of the cells that it has, under its own profile. Raise UserError."""
    return [
        CellQuestion(zone=zone, setting=documents.profile(zone.profile, cell), algorithm=zone.algorithm)
        for cell in cells
        if cell in zone.intervals
    ]


def split_question(zone: SplitZone, check: Check, split: bool) -> SplitQuestion:
    """Return the question of a check; its path is measured where the zone says what was, and `split` allows it."""
    through = None
    if split and isinstance(check, PathCheck) and check.measured is not None:
        through = documents.split_path(zone.profile, check.path.segments)
    cells = tuple(documents.profile(zone.profile, cell) for cell in check.cells)
    return SplitQuestion(zone=zone, check=check, cells=cells, split_path=through)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A question, the verdict, and the measurements that it rests on."""

    question: Question
    verdict: Verdict | SplitVerdict
    measured: Measured


def by_zone(question: Question) -> Hashable:
    """Return the family of a question as most commands count it: all questions to one zone about one algorithm."""
    return question.zone.id, question.algorithm


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured, in this order, what is asked about it, and when it is looked at.

    `looks`: rising numbers of trials after which a setting is judged; the last is the most. `families`: how many
    hypotheses each question shares its chance of a false alarm with, itself included.
    """

    work: tuple[Key, ...]
    questions: tuple[Question, ...]
    looks: tuple[int, ...]
    first_seed: int
    families: Mapping[Question, int]
    _about: Mapping[Key, tuple[CellQuestion, ...]]

    @property
    def seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.looks[-1])

    def about(self, key: Key) -> tuple[CellQuestion, ...]:
        """Return the questions that measurements of this key alone answer."""
        return self._about.get(key, ())

    def judge(self, question: Question, measured: Measured) -> Judged:
        """Judge measurements of all settings of a question. Raise UserError where runs are unlike."""
        more = any(len(measured[setting]) < self.looks[-1] for setting in question.settings)
        verdict = question.judge(measured, self.families[question], more)
        return Judged(question=question, verdict=verdict, measured=measured)

    def judged(self, key: Key, measurements: Sequence[Measurement]) -> tuple[Judged, ...]:
        """Judge all questions about this key alone. Raise UserError where runs are unlike."""
        return tuple(self.judge(question, {key[1]: measurements}) for question in self.about(key))

    def is_conclusive(self, key: Key, measurements: Sequence[Measurement]) -> bool:
        """Say whether no question about this key needs more trials."""
        return all(judged.verdict.status is not Status.INCONCLUSIVE for judged in self.judged(key, measurements))

    def refuse_blind(self) -> None:
        """Raise UserError where so few trials could never show that a zone is violated: a session that only passes."""
        for question in {question.zone.id: question for question in self.questions}.values():
            if isinstance(question, CellQuestion):
                verdicts.refuse_blind(question.zone, self.families[question], self.looks[-1])

    def zone_verdicts(self, measured: Mapping[Key, Sequence[Measurement]]) -> dict[str, ZoneVerdict]:
        """Return {zone's id: ZoneVerdict}, the cells of each taken together, of what was measured. Raise UserError."""
        cells: dict[str, dict[Cell, Sequence[Measurement]]] = collections.defaultdict(dict)
        zones = {}
        for question in self.questions:
            if isinstance(question, CellQuestion):
                zones[question.zone.id] = question.zone
                if question.key in measured:
                    cells[question.zone.id][question.place] = measured[question.key]
        return {zone_id: verdicts.judge_zone(zone, cells[zone_id]) for zone_id, zone in zones.items()}


def plan(
    questions: Iterable[Question] = (),
    *,
    trials: int,
    most_trials: int | None = None,
    first_seed: int = 1,
    work: Iterable[Key] | None = None,
    family: Callable[[Question], Hashable] = by_zone,
) -> Plan:
    """Return the Plan of these questions.

    `trials`: of each setting, to begin with; `most_trials`: of one that is inconclusive, as many as `trials` where
    None. `work`: what is measured, and in which order, where that is not the questions' own; it may hold more.
    `family`: what the questions that share a chance of a false alarm have in common. Raise UserError.
    """
    asked = tuple(dict.fromkeys(questions))
    # A split check rests on all of its settings: the chance is shared between settings, not between checks.
    members: dict[Hashable, set[tuple[str, Setting]]] = collections.defaultdict(set)
    about: dict[Key, list[CellQuestion]] = collections.defaultdict(list)
    for question in asked:
        members[family(question)].update((question.zone.id, setting) for setting in question.settings)
        if isinstance(question, CellQuestion):
            about[question.key].append(question)
    own = [(question.algorithm, setting) for question in asked for setting in question.settings]
    check_trials(trials)
    return Plan(
        work=tuple(dict.fromkeys(own if work is None else work)),
        questions=asked,
        looks=verdicts.looks(trials, most_trials or trials),
        first_seed=first_seed,
        families={question: len(members[family(question)]) for question in asked},
        _about={key: tuple(found) for key, found in about.items()},
    )


def check_trials(trials: int) -> None:
    """Raise UserError for a number of trials that no cell can have."""
    if not 1 <= trials <= MOST_TRIALS:
        raise UserError(f"--trials {trials}", f"it must be from 1 to {MOST_TRIALS}")
