"""The plan of a session: which zones judge which settings, how strictly, and after how many trials.

A *question* asks whether a scheme is inside a zone, at one place or for one check of the zone's split part, or whether
it does what a clause of a document says. All questions of one *family* share a chance of a false alarm
(model/family.py), so a verdict depends on everything that was planned, and not on which measurements arrived. Commands
that measure and judge (pytest, `gate`, `run`, `matrix`, `cross`, clauses, mutants, false alarms, expectations) make a
Plan; code that only judges a file counts the family itself.
"""

import collections
import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

from conformance.engine.questions import CellQuestion, ClauseQuestion, Key, Lone, Measured, Question, SplitQuestion
from conformance.model import blindness
from conformance.model import family as families
from conformance.model.clauses import verdict as clauses
from conformance.model.clauses.verdict import ClauseVerdict
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.judging import verdict as verdicts
from conformance.model.judging.verdict import MOST_TRIALS, Status, Verdict, ZoneVerdict
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.split.split_zone import SplitVerdict
from conformance.model.trials.trial import Measurement


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A question, its verdict, and the measurements that the verdict rests on: those of the first clear look."""

    question: Question
    verdict: Verdict | SplitVerdict | ClauseVerdict
    measured: Measured

    @property
    def status(self) -> Status:
        return self.verdict.status


def whole(question: Question) -> Hashable:
    """Return the same family for every question, so that all questions of a plan are one family."""
    return None


def _members(questions: Iterable[Question]) -> set[Hashable]:
    """Return the members of a family: its counted cells, and the settings that split checks and clauses rest on.

    A cell that is not judged is no member, because it cannot violate.
    """
    return {
        (question.zone.id, question.algorithm, setting)
        for question in questions
        for setting in question.settings
        if question.judgeable
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured, and in which order, the questions about it, and after how many trials they are judged.

    `looks`: the rising numbers of trials after which a setting is judged; the last is the most. `families`: the size of
    each question's family. `glances`: whether the first look is at one trial, which shows only whether a clause can be
    observed at all.
    """

    work: tuple[Key, ...]
    questions: tuple[Question, ...]
    looks: tuple[int, ...]
    first_seed: int
    families: Mapping[Question, int]
    #: questions about known deviations: if one passes, trials go on until that is sure
    known: frozenset[Question]
    #: work that comes before all other work, even if that takes longer as a whole
    urgent: frozenset[Key]
    glances: bool
    _about: Mapping[Key, tuple[Lone, ...]]
    _family_of: Callable[[Question], Hashable]
    #: the seeds of several plans' first looks; if empty, this plan's own seeds are used
    _seeds: tuple[int, ...] = ()

    @property
    def seeds(self) -> Sequence[int]:
        return self._seeds or range(self.first_seed, self.first_seed + self.looks[-1])

    @property
    def trials(self) -> int:
        """The number of trials that each setting begins with."""
        return self.looks[1] if self.glances else self.looks[0]

    @property
    def family(self) -> int:
        """The size of the largest family. Usually, there is only one."""
        return max(self.families.values(), default=0)

    def about(self, key: Key) -> tuple[Lone, ...]:
        """Return the questions that can be answered by measurements of this key alone."""
        return self._about.get(key, ())

    def judge(self, question: Question, measured: Measured) -> Judged:
        """Judge a question at its first clear look, by measurements of all its settings.

        Measurements are taken in order of seed. Each further look takes more trials only of those settings that might
        make the verdict clear. Raise UserError if runs differ.
        """
        ordered = {s: sorted(measured[s], key=lambda m: m.trial.seed) for s in question.settings}

        def at(numbers: Mapping[Setting, int], more: bool) -> Judged:
            first = {setting: found[: numbers[setting]] for setting, found in ordered.items()}
            verdict = question.judge(first, self.families[question], more)
            return Judged(question=question, verdict=verdict, measured=first)

        available = {setting: len(found) for setting, found in ordered.items()}
        return families.at_first_clear(self.looks, available, at, lambda judged, _: self._unclear(judged))

    def next_look(self, judged: Judged) -> dict[Setting, int]:
        """Return {setting: trials in all that the next look needs} for settings that might make a verdict clear.

        It is empty if the verdict is settled or has had its last look.
        """
        numbers = {setting: len(found) for setting, found in judged.measured.items()}
        return families.next_look(self.looks, self._unclear(judged), numbers)

    def _unclear(self, judged: Judged) -> Collection[Setting]:
        """Return the settings of which more trials might make a verdict clear; none if it is settled."""
        if self.is_settled(judged):
            return ()
        question, verdict = judged.question, judged.verdict
        if isinstance(question, SplitQuestion) and isinstance(verdict, SplitVerdict):
            return question.unclear(verdict, judged.measured)
        return question.settings

    def is_settled(self, judged: Judged) -> bool:
        """Return whether a verdict needs no more trials."""
        if isinstance(judged.verdict, ClauseVerdict):
            if judged.verdict.trials < self.trials:
                return judged.verdict.absent or judged.status in (Status.ERROR, Status.UNSUPPORTED)
            if judged.verdict.hidden:
                return True  # more trials would not show it, either
        if judged.question in self.known and judged.status.passes:
            return judged.verdict.sure
        return judged.status is not Status.INCONCLUSIVE

    def judged(self, key: Key, measurements: Sequence[Measurement]) -> tuple[Judged, ...]:
        """Judge all questions about this key alone. Raise UserError if runs differ."""
        return tuple(self.judge(question, {key[1]: measurements}) for question in self.about(key))

    def is_conclusive(self, key: Key, measurements: Sequence[Measurement]) -> bool:
        """Return whether no question about this key alone needs more trials."""
        return all(map(self.is_settled, self.judged(key, measurements)))

    def together(self, judged: Iterable[Judged]) -> list[Judged]:
        """Apply Holm's procedure, family by family, to questions that were judged one by one. Raise UserError.

        Missing members of a family count as if they conformed, so this can only turn inconclusive verdicts into
        violations.
        """
        by_family: dict[Hashable, list[Judged]] = collections.defaultdict(list)
        for one in judged:
            by_family[self._family_of(one.question)].append(one)
        return [settled for group in by_family.values() for settled in self._together(group)]

    def _together(self, group: Sequence[Judged]) -> list[Judged]:
        alone = [one.verdict for one in group if not isinstance(one.verdict, SplitVerdict)]
        family = families.together(alone, self.families[group[0].question])
        return [self._again(one, family) for one in group]

    def _again(self, judged: Judged, family: int) -> Judged:
        if isinstance(judged.question, SplitQuestion) or judged.status is not Status.INCONCLUSIVE:
            return judged
        more = len(judged.measured[judged.question.setting]) < self.looks[-1]
        return dataclasses.replace(judged, verdict=judged.question.judge(judged.measured, family, more))

    def repeating(self, questions: Iterable[Question]) -> "Plan":
        """Return a plan that asks questions again with fresh seeds (seeds.py), each in a family of its own.

        A question that violated within the whole family is judged alone the second time. A clause question with `twice`
        keeps its family, because each of the two times shows only half of the violation.
        """
        again = plan(
            questions, trials=self.trials, most_trials=self.looks[-1], first_seed=self.first_seed + seeds.FRESH,
            family=lambda question: question,
        )  # fmt: skip
        own = {q: self.families[q] if isinstance(q, ClauseQuestion) and q.twice else 1 for q in again.questions}
        return dataclasses.replace(again, families=own)

    def first_looks(self, first_seeds: Iterable[int]) -> "Plan":
        """Return a plan that measures the first looks of plans like this one, with these first seeds, and asks nothing.

        These plans then share guests, and each finds its own first look measured.
        """
        seeds = tuple(seed for first in first_seeds for seed in range(first, first + self.looks[0]))
        return dataclasses.replace(self, questions=(), looks=(len(seeds),), families={}, _about={}, _seeds=seeds)

    def refuse_blind(self) -> None:
        """Raise UserError if the plan has too few trials to ever show a violation: the session could only pass."""
        places: dict[str, list[Point]] = collections.defaultdict(list)
        for question in self.questions:
            if isinstance(question, CellQuestion):
                places[question.zone.id].append(question.place)
        for question in {question.zone.id: question for question in self.questions}.values():
            family, most = self.families[question], self.looks[-1]
            if isinstance(question, CellQuestion):
                blindness.refuse_blind(question.zone, family, most, places[question.zone.id])
            elif isinstance(question, ClauseQuestion):
                clauses.refuse_blind(question.clause, family, most, question.twice)
            else:
                blindness.refuse_blind_split(question.zone, family, most)

    def zone_verdicts(self, measured: Mapping[Key, Sequence[Measurement]]) -> dict[str, ZoneVerdict]:
        """Return {zone's id: ZoneVerdict} on these measurements, each family judged together. Raise UserError."""
        asked = [question for question in self.questions if isinstance(question, CellQuestion)]
        zones = {question.zone.id: question.zone for question in asked}
        there = [question for question in asked if question.key in measured or not question.judgeable]
        for zone_id, zone in zones.items():
            everything = [m for q in there if q.zone.id == zone_id for m in measured.get(q.key, ())]
            if everything:
                verdicts.obstacle(zone, everything)
        alone = [self.judge(question, {question.setting: measured.get(question.key, ())}) for question in there]
        found: dict[str, dict[Point, Verdict]] = {zone_id: {} for zone_id in zones}
        for judged in self.together(alone):
            if isinstance(judged.question, CellQuestion) and isinstance(judged.verdict, Verdict):
                found[judged.question.zone.id][judged.question.place] = judged.verdict
        sizes = {question.zone.id: self.families[question] for question in asked}
        return {
            zone_id: ZoneVerdict(zone_id=zone_id, verdicts=held, family=sizes[zone_id])
            for zone_id, held in found.items()
        }


def plan(
    questions: Iterable[Question] = (),
    *,
    trials: int,
    most_trials: int | None = None,
    first_seed: int = seeds.JUDGED,
    work: Iterable[Key] | None = None,
    family: Callable[[Question], Hashable] = whole,
    beside: Iterable[Question] = (),
    known: Iterable[Question] = (),
    urgent: Iterable[Key] = (),
) -> Plan:
    """Return the Plan of these questions.

    `trials`: how many each setting begins with; `most_trials`: how many a setting has at most while it is inconclusive,
    None for `trials`. `work`: what is measured, and in which order; None for the questions' own settings. `family`
    returns the same value for all questions of one family. `beside`: questions that belong to these families, too, but
    are not asked here: another shard asks them, or the user chose only a part. `known`: questions about known
    deviations. `urgent`: see Plan. Raise UserError.
    """
    asked = tuple(dict.fromkeys(questions))
    planned: dict[Hashable, list[Question]] = collections.defaultdict(list)
    about: dict[Key, list[Lone]] = collections.defaultdict(list)
    for question in asked:
        if not isinstance(question, SplitQuestion):
            about[question.key].append(question)
    for question in dict.fromkeys((*asked, *beside)):
        planned[family(question)].append(question)
    sizes = {key: max(len(_members(group)), 1) for key, group in planned.items()}
    own = [(question.algorithm, setting) for question in asked if question.judgeable for setting in question.settings]
    check_trials(trials)
    own_clauses = [question.clause for question in asked if isinstance(question, ClauseQuestion)]
    optional = any(clause.observable.optional for clause in own_clauses)
    glances = trials > 1 and optional and len(own_clauses) == len(asked)
    looks = verdicts.looks(trials, trials if most_trials is None else most_trials)
    return Plan(
        work=tuple(dict.fromkeys(own if work is None else work)),
        questions=asked,
        looks=(1, *looks) if glances else looks,
        first_seed=first_seed,
        families={question: sizes[family(question)] for question in asked},
        known=frozenset(known),
        urgent=frozenset(urgent),
        glances=glances,
        _about={key: tuple(found) for key, found in about.items()},
        _family_of=family,
    )


def check_trials(trials: int) -> None:
    """Raise UserError if no cell can have this number of trials."""
    if not 1 <= trials <= MOST_TRIALS:
        raise UserError(f"--trials {trials} is out of range", f"give a number from 1 to {MOST_TRIALS}")
