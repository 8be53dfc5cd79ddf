"""Judge what a session asks. All that decides about a verdict, besides the trials themselves, is in this file.

**Looks.** A question (question.py) is judged after rising numbers of trials, its looks: 5, 8, 13 and 20 unless others
are asked for. Its verdict is that of the first look which is clear, however many more trials another question needed of
the same setting. A look waits for all of its trials. A question about several settings takes further trials only of
those that might make its verdict clear. If it is about a known deviation, and the verdict passes, trials go on until
that is sure.

**Family.** All questions of a family share one chance of a false alarm, ALPHA, each look an equal part of a question's
share. Its size is what was planned, not what arrived: a question that was not measured counts as if it conformed. First
each question is judged alone, as strictly as if it were the first to violate (Bonferroni). When all are known, Holm's
procedure (statistics.holm_adjusted) *settles* them: it can only turn inconclusive verdicts into violations. What
intervals decide, such as predictions of a split path, it leaves alone.

**Repeat.** A violation that is no known deviation is *new*. Its question is asked again, with fresh seeds (seeds.py)
and the same looks, alone: in a family of its own, as it violated within the whole family. Only a clause that must be
shown `twice` keeps its family, because each of the two times shows only half of the violation.

**Confirmation.** A violation stands unless its repeat is clear, or has had its last look, and does not violate. So one
whose repeat was cut short stands, but for one that must be shown twice. One that is not confirmed is inconclusive.

**Failures.** Trials in which the stack failed are set aside, and say by themselves whether it *fails* (failing.py). The
other trials answer the question. Those of all places are judged together, too (`failures`), by a chance of their own.

**What is not offered.** A verdict is unsupported if programs ended with status 127 in all of its trials. If others of
the session ran with the same algorithm, it is an error: else that status would be a way out of a cell that goes badly.

**Known deviation.** A verdict that the stack's list or the record of clauses names is no surprise, and a listed one
that surely no longer happens is (expectation.py).

**Events.** A setting is measured (Answer), its questions are Judged alone, all are Settled, new violations Repeated. In
the end each question has a Finding: confirmed or not, known or not.

**What a verdict may depend on:** the question's own trials in order of seed, the looks, the size of its family and, by
Holm's procedure, the p-values of the family's other verdicts. It depends neither on the order in which trials arrived,
nor on what else held a setting open, nor on who asks: commands read the events of a Session, and pytest asks its
questions one by one (conformance/suite/session.py). Trials come from an EventSource: one that measures
(conformance/commands/measuring.py), or `stored`, which has only lines of files.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging import expectation, failing, seeds
from conformance.model.judging.expectation import Expected, Known, Surprise
from conformance.model.judging.failing import Failures, SettingEnds
from conformance.model.judging.question import Key, MeasuredSettings, Question
from conformance.model.judging.verdict import (
    ALPHA,
    MOST_TRIALS,
    USUAL_LOOKS,
    Status,
    Verdict,
    ZoneVerdict,
    level,
    looks as looks_between,
)
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome

#: with this many settings, it is unlikely that all are unclear at a run's first look
_MANY = 4
_K = TypeVar("_K")
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A question, its verdict, and the measurements that the verdict rests on: those of the first clear look."""

    question: Question
    verdict: Verdict
    measured: MeasuredSettings

    @property
    def status(self) -> Status:
        return self.verdict.status


class Settled(Judged):
    """The verdict after Holm's procedure over its family."""


class Repeated(Judged):
    """The verdict on trials with fresh seeds, if the repeat of a violation came to its end."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A setting was measured: the measurements, and verdicts on them; none if no question is about them alone."""

    algorithm: str
    setting: Setting
    measurements: Sequence[Measurement]
    judged: tuple[Judged, ...]

    @property
    def key(self) -> Key:
        return self.algorithm, self.setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """What a session says in the end of one question: `verdict` is settled, `again` is the one on its repeat, if any.

    `expected`: the known deviation of the stack there. `group`, `noun`: see Rule. `family`: how many questions share
    the chance of a false alarm. `values`: those of a zone's metric that the verdict rests on, at the place `at` that
    shows it best.
    """

    verdict: Verdict
    expected: Expected | None = None
    again: Verdict | None = None
    algorithm: str = ""
    #: the id of the scheme; "" if nothing was measured
    scheme: str = ""
    profile: str = ""
    group: str = ""
    noun: str = "zone"
    family: int = 1
    values: tuple[float, ...] = ()
    at: Point | None = None
    #: how many transfers timed out
    timeouts: int = 0
    #: whether the stack offers the algorithm: True if any trial ran, False if programs ended with status 127
    offers: bool | None = None
    #: how the trials of each setting ended
    ends: tuple[SettingEnds, ...] = ()

    @property
    def name(self) -> tuple[str, str, Point]:
        """What tells it from all other findings: see Question.name."""
        return self.algorithm, self.verdict.zone_id, self.verdict.place

    @property
    def shown_at(self) -> tuple[str, Point]:
        """The zone's id, and the place that shows it best."""
        return self.verdict.zone_id, self.at or self.verdict.place

    @property
    def surprise(self) -> Surprise:
        return expectation.compare(self.verdict, self.expected, self.again)

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is a known deviation."""
        return self.expected is not None and self.expected.fits(self.verdict)

    @property
    def known(self) -> bool:
        """Whether a violation would be no surprise."""
        deviates = self.expected is not None and self.expected.verdict is not Known.UNSUPPORTED
        return deviates and self.surprise is not Surprise.NEW

    @property
    def unconfirmed(self) -> bool:
        return self.surprise is Surprise.UNCONFIRMED

    @property
    def confirmed(self) -> Verdict:
        """The verdict, unless it is a violation that its repeat takes back, which an error of the emulator does not."""
        if self.again is None or self.again.status is Status.ERROR or not self.unconfirmed:
            return self.verdict
        return self.verdict.taken_back(
            f"not confirmed: {self.verdict.reason}, but with fresh seeds {self.again.status} ({self.again.reason})"
        )

    @property
    def last(self) -> Verdict:
        """The verdict that was made last: the one on fresh seeds, if it was repeated."""
        return self.verdict if self.again is None else self.again

    @property
    def status(self) -> Status:
        """The status of the last verdict."""
        return self.last.status

    @property
    def decided(self) -> bool:
        """Whether it says what the stack does: it is neither open, nor a violation that fresh seeds did not show."""
        return self.as_expected or (self.status.decided and not self.unconfirmed)


Event = Answer | Judged | Finding
#: measures what a Plan asks for; yields an Answer for each setting, and the Judged of each question, as they come
EventSource = Callable[["Plan"], Iterable[Event]]


def next_look(looks: Sequence[int], unclear: Iterable[_K], numbers: Mapping[_K, int]) -> dict[_K, int]:
    """Return how many trials in all the next look takes of each unclear setting that has not had its last look.

    `numbers`: how many trials of each setting the present look takes.
    """
    return {key: next(n for n in looks if n > numbers[key]) for key in unclear if numbers[key] < looks[-1]}


def at_first_clear(
    looks: Sequence[int],
    available: Mapping[_K, int],
    judge: Callable[[Mapping[_K, int], bool], _T],
    unclear: Callable[[_T], Collection[_K]],
    ends: bool = False,
) -> _T:
    """Return the verdict at the first look that is clear, or else at the last look for which all trials are available.

    `available`: how many trials there are of each setting. `judge(numbers, more)` judges the first trials of each
    setting, as many as `numbers` says; `more`: whether more may follow. `unclear(verdict)`: the settings of which more
    trials might make the verdict clear; none if it is clear. With `ends`, no trials will follow the available ones, so
    the last look takes what there is.
    """
    numbers = {key: min(looks[0], there) for key, there in available.items()}
    while True:
        last = min(numbers.values()) >= looks[-1]
        answer = judge(numbers, not last)
        if last or not (open_ := unclear(answer)):
            return answer
        further = next_look(looks, open_, numbers)
        if not further or any(available[key] < number for key, number in further.items()):
            break
        numbers |= further
    if further and not ends:
        return answer
    # No more trials will come of the unclear settings: either they have had their last look, though other settings have
    # not, or `ends` is set.
    numbers |= {key: min(number, available[key]) for key, number in further.items()}
    return judge(numbers, False)


def looks_of(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the looks of a run, as its numbers of trials show: the usual ones, or those that another --trials gives.

    If all of many settings have more than five trials, the run had no look at five, where some would have been clear.
    If the settings are few, all may have been unclear there.
    """
    there = [n for n in numbers if n <= USUAL_LOOKS[-1]]
    first = min(there, default=0)
    if len(there) < _MANY or first <= USUAL_LOOKS[0]:
        return USUAL_LOOKS
    between = looks_between(first, USUAL_LOOKS[-1])
    return between if set(there) <= set(between) else tuple(n for n in USUAL_LOOKS if n >= first)


def last_step(p_values: Iterable[float | None], family: int) -> int:
    """Return the family size at which each p-value alone is judged as strictly as Holm's procedure judges all of them.

    Holm's procedure takes the p-values in rising order, and rejects each that is small enough for what is left of the
    family, until one is not. So comparing each with what was left at the last rejection rejects the same ones. A
    verdict without a p-value is rejected by nobody.
    """
    known = sorted(p for p in p_values if p is not None)
    size = max(family, len(known), 1)
    rejected = 0
    for p in known:
        if p > level(size - rejected):
            break
        rejected += 1
    return size - max(rejected - 1, 0)


def whole(question: Question) -> Hashable:
    """Return the same family for every question, so that all questions of a plan are one family."""
    return None


def _members(questions: Iterable[Question]) -> set[Hashable]:
    """Return the members of a family: its zones' counted places or kinds, and the settings that other rules rest on.

    A place that is not judged is no member, because it cannot violate.
    """
    judged = (question for question in questions if question.rule.judgeable)
    return {member for question in judged for member in question.rule.members(question.keys)}


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
    known: frozenset[Question] = frozenset()
    #: work that comes before all other work, even if that takes longer as a whole
    urgent: frozenset[Key] = frozenset()
    glances: bool = False
    #: whether the trials come from files, and whether they repeat others
    stored: bool = False
    repeats: bool = False
    _about: Mapping[Key, tuple[Question, ...]]
    _family_of: Callable[[Question], Hashable] = whole
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

    def about(self, key: Key) -> tuple[Question, ...]:
        """Return the questions that can be answered by measurements of this key alone."""
        return self._about.get(key, ())

    def judge(self, question: Question, measured: MeasuredSettings) -> Judged:
        """Judge a question at its first clear look, by measurements of all its settings.

        Measurements are taken in order of seed. Each further look takes more trials only of those settings that might
        make the verdict clear. Raise UserError if runs differ.
        """
        ordered = {s: sorted(measured.get(s, ()), key=lambda m: m.trial.seed) for s in question.settings}
        available, looks, ends = {s: len(measurements) for s, measurements in ordered.items()}, self.looks, False
        if self.stored:
            # If each setting has more trials than any session takes, they were asked for as one look at all of them.
            looks = looks if min(available.values()) <= looks[-1] else (max(available.values()),)
            ends = not self.repeats

        @functools.cache
        def judge(numbers: tuple[int, ...], more: bool) -> Judged:
            first = {
                setting: measurements[:n] for (setting, measurements), n in zip(ordered.items(), numbers, strict=True)
            }
            verdict = failing.judge(question.rule, first, self.families[question], more, ran=self.repeats)
            return Judged(question=question, verdict=verdict, measured=first)

        def at(numbers: Mapping[Setting, int], more: bool) -> Judged:
            return judge(tuple(numbers[setting] for setting in ordered), more)

        def until(settled: Callable[[Judged], bool]) -> Judged:
            return at_first_clear(
                looks, available, at, lambda judged: () if settled(judged) else _unclear(judged), ends
            )

        judged = until(self.is_settled)
        if ends and judged.status.passes and not judged.verdict.sure and until(lambda of: of.verdict.sure).verdict.sure:
            # A known deviation gets more trials, to be sure of it. Trials that the verdict does not need may not change
            # it.
            judged = dataclasses.replace(judged, verdict=dataclasses.replace(judged.verdict, sure=True))
        return judged

    def next_look(self, judged: Judged) -> dict[Setting, int]:
        """Return {setting: trials in all that the next look needs} for settings that might make a verdict clear.

        It is empty if the verdict is settled or has had its last look.
        """
        numbers = {setting: len(measurements) for setting, measurements in judged.measured.items()}
        return next_look(self.looks, () if self.is_settled(judged) else _unclear(judged), numbers)

    def is_settled(self, judged: Judged) -> bool:
        """Return whether a verdict needs no more trials."""
        verdict = judged.verdict
        if self.glances and verdict.n < self.trials:
            return verdict.absent or judged.status in (Status.ERROR, Status.UNSUPPORTED)
        if judged.question in self.known and judged.status.passes:
            return verdict.sure
        return verdict.hidden or judged.status is not Status.INCONCLUSIVE

    def judged(self, key: Key, measurements: Sequence[Measurement]) -> tuple[Judged, ...]:
        """Judge all questions about this key alone. Raise UserError if runs differ."""
        return tuple(self.judge(question, {key[1]: measurements}) for question in self.about(key))

    def of_several(self, measured: Mapping[Key, Sequence[Measurement]]) -> Iterator[Judged]:
        """Judge the questions about several settings of which all were measured. Raise UserError if runs differ."""
        for question in self.questions:
            if len(question.settings) > 1 and measured.keys() >= set(question.keys):
                yield self.judge(question, {key[1]: measured[key] for key in question.keys})

    def is_conclusive(self, key: Key, measurements: Sequence[Measurement]) -> bool:
        """Return whether no question about this key alone needs more trials."""
        return all(map(self.is_settled, self.judged(key, measurements)))

    def together(self, judged: Iterable[Judged]) -> list[Settled]:
        """Apply Holm's procedure, family by family, to questions that were judged one by one. Raise UserError."""
        by_family = grouped((self._family_of(answer.question), answer) for answer in judged)
        settled = []
        for group in by_family.values():
            family = last_step([judged.verdict.p for judged in group], self.families[group[0].question])
            settled += [self._at(family, judged) for judged in group]
        return settled

    def _at(self, family: int, judged: Judged) -> Settled:
        """Judge the same trials again in a family of this size. Parts are judged by intervals: that changes nothing."""
        verdict = judged.verdict
        if verdict.status is Status.INCONCLUSIVE and not verdict.parts:
            more = not self.stored and len(judged.measured[judged.question.setting]) < self.looks[-1]
            verdict = failing.judge(judged.question.rule, judged.measured, family, more)
        return Settled(question=judged.question, verdict=verdict, measured=judged.measured)

    def repeating(self, questions: Iterable[Question]) -> "Plan":
        """Return a plan that asks questions again with fresh seeds, at the same looks, each in a family of its own."""
        again = plan(
            questions, trials=self.trials, first_seed=self.first_seed + seeds.FRESH, family=lambda question: question
        )
        # A violation that has to be shown twice stays in its family; any other is judged alone.
        sizes = {q: self.families[q] if q.rule.twice else 1 for q in again.questions}
        return dataclasses.replace(
            again, families=sizes, looks=self.looks, glances=self.glances, stored=self.stored, repeats=True
        )

    def first_looks(self, first_seeds: Iterable[int]) -> "Plan":
        """Return a plan that measures the first looks of plans like this one, with these first seeds, and asks nothing.

        These plans then share guests, and each finds its own first look measured.
        """
        seeds = tuple(seed for first in first_seeds for seed in range(first, first + self.looks[0]))
        return dataclasses.replace(self, questions=(), looks=(len(seeds),), families={}, _about={}, _seeds=seeds)

    def refuse_blind(self) -> None:
        """Raise UserError if the plan has too few trials to ever show a violation: the session could only pass."""
        by_rule = grouped((question.id, question) for question in self.questions if question.rule.judgeable)
        most = self.looks[-1]
        for group in by_rule.values():
            family, named = self.families[group[0]], group[0].rule.named
            needed = min(question.rule.fewest(family, most) for question in group)
            if needed > most:
                raise UserError(
                    f"{named}: {most} trials can never show that it is violated, as one of {family} questions",
                    f"give --max-trials {needed}, ask fewer questions, or use a zone that rests on more trials",
                )


def _unclear(judged: Judged) -> Collection[Setting]:
    return judged.question.rule.unclear(judged.verdict, judged.measured)


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
    unique = tuple(dict.fromkeys(questions))
    about = grouped((question.key, question) for question in unique if len(question.settings) == 1)
    planned = grouped((family(question), question) for question in dict.fromkeys((*unique, *beside)))
    sizes = {key: max(len(_members(group)), 1) for key, group in planned.items()}
    keys = [key for question in unique if question.rule.judgeable for key in question.keys]
    check_trials(trials)
    # A single trial tells nothing of a zone, so nothing glances unless all trials are for clauses.
    glances = (
        trials > 1
        and any(question.rule.glances for question in unique)
        and all(question.setting.packets for question in unique)
    )
    looks = looks_between(trials, trials if most_trials is None else most_trials)
    return Plan(
        work=tuple(dict.fromkeys(keys if work is None else work)),
        questions=unique,
        looks=(1, *looks) if glances else looks,
        first_seed=first_seed,
        families={question: sizes[family(question)] for question in unique},
        known=frozenset(known),
        urgent=frozenset(urgent),
        glances=glances,
        _about={key: tuple(questions) for key, questions in about.items()},
        _family_of=family,
    )


def check_trials(trials: int) -> None:
    """Raise UserError if no cell can have this number of trials."""
    if not 1 <= trials <= MOST_TRIALS:
        raise UserError(f"--trials {trials} is out of range", f"give a number from 1 to {MOST_TRIALS}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Session:
    """A plan, and what the stack is known to do. `confirms`: whether new violations are repeated with fresh seeds."""

    plan: Plan
    known: Sequence[Expected] = ()
    confirms: bool = True

    def expected(self, question: Question) -> Expected | None:
        """Return what the stack is known to do."""
        return expectation.find(self.known, question.id, question.place)

    def is_new(self, judged: Judged) -> bool:
        """Return whether a verdict is a violation that has to be repeated."""
        return self.confirms and expectation.compare(judged.verdict, self.expected(judged.question)) is Surprise.NEW

    def finding(self, judged: Judged, again: Judged | None = None) -> Finding:
        """Return what is said of a question in the end."""
        question, rule = judged.question, judged.question.rule
        measurements = [m for measurements in judged.measured.values() for m in measurements]
        at, values = rule.witness(judged.measured) or (None, ())
        return Finding(
            verdict=judged.verdict, expected=self.expected(question), again=None if again is None else again.verdict,
            algorithm=question.algorithm, scheme=measurements[0].scheme.id if measurements else "",
            profile=question.setting.profile, group=rule.group, noun=rule.noun, family=self.plan.families[question],
            values=values, at=at, timeouts=sum(m.outcome is Outcome.TIMEOUT for m in measurements),
            offers=max((m.offers for m in measurements if m.offers is not None), default=None),
            ends=failing.ended(judged.measured),
        )  # fmt: skip

    def events(self, source: EventSource) -> Iterator[Event]:
        """Yield what happens: Answers and Judged as they come, then Settled, Repeated, and a Finding of each question.

        A question that is not judged needs no trials; any other that was not measured has no finding. Raise UserError.
        """
        first: dict[Question, Judged] = {}
        for event in source(self.plan):
            yield event
            if isinstance(event, Judged):
                first[event.question] = event
        for question in self.plan.questions:
            if question not in first and not question.rule.judgeable:
                first[question] = self.plan.judge(question, {})
        in_order = [first[question] for question in self.plan.questions if question in first]
        _refuse_unlike(in_order)
        settled = self.plan.together(in_order)
        yield from settled
        again: dict[Question, Judged] = {}
        new = [answer.question for answer in settled if self.is_new(answer)]
        if new:
            for repeated in repeats(self.plan, new, source):
                again[repeated.question] = repeated
                yield repeated
        halved = (_half(a) if a.question in new and a.question not in again else a for a in settled)
        yield from _believed([self.finding(answer, again.get(answer.question)) for answer in halved])

    def findings(self, source: EventSource) -> list[Finding]:
        """Return the Finding of each question that was measured. Raise UserError."""
        return [event for event in self.events(source) if isinstance(event, Finding)]


def repeats(plan: Plan, questions: Iterable[Question], source: EventSource) -> Iterator[Repeated]:
    """Ask questions of a plan again, with fresh seeds; yield each whose repeat came to its end. Raise UserError."""
    again = plan.repeating(questions)
    for event in source(again):
        if isinstance(event, Judged) and not again.next_look(event):
            yield Repeated(question=event.question, verdict=event.verdict, measured=event.measured)


def _half(judged: Settled) -> Settled:
    """Return a violation whose repeat was not made: one that has to be shown twice is inconclusive."""
    if not judged.question.rule.twice or judged.status is not Status.VIOLATES:
        return judged
    reason = f"not confirmed: {judged.verdict.reason}, and trials with fresh seeds are missing"
    return dataclasses.replace(judged, verdict=judged.verdict.taken_back(reason))


def settle(findings: Iterable[Finding]) -> list[Finding]:
    """Apply Holm's procedure, as Plan.together() does, to findings of one family that are known without their trials.

    The tests of a pytest session are such: each was judged alone, perhaps by another process.
    """
    alone = _believed(list(findings))
    family = max((finding.family for finding in alone), default=0)
    strictest = level(last_step([finding.verdict.p for finding in alone], family))

    def violates(verdict: Verdict) -> bool:
        return verdict.status is Status.INCONCLUSIVE and verdict.p is not None and verdict.p <= strictest

    return [
        dataclasses.replace(finding, verdict=dataclasses.replace(finding.verdict, status=finding.verdict.leaning))
        if violates(finding.verdict)
        else finding
        for finding in alone
    ]


def failures(findings: Iterable[Finding]) -> list[Failures]:
    """Return the Failures of those algorithms that fail in all places of a session together, but for places in which
    they fail by themselves, or the stack's list expects that.

    They are judged once, and share a chance ALPHA of a false alarm of their own.
    """
    by_algorithm = grouped((finding.algorithm, finding) for finding in findings)
    together = (Failures.of(algorithm, _ends(of)) for algorithm, of in by_algorithm.items())
    return [each for each in together if each is not None and each.p <= ALPHA / len(by_algorithm)]


def _ends(findings: Iterable[Finding]) -> list[SettingEnds]:
    """Return how the trials of each setting ended; of questions about one setting, by the one that has most trials."""
    ends: dict[Hashable, SettingEnds] = {}
    alone = set()
    for finding in findings:
        for ended in finding.ends:
            key = ended.profile_digest, ended.place
            if key not in ends or ended.trials > ends[key].trials:
                ends[key] = ended
            if failing.is_alone(finding.verdict, finding.expected):
                alone.add(key)
    return [ended for key, ended in ends.items() if key not in alone]


def _believed(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those as errors whose trials were not offered an algorithm with which others ran."""
    ran = {finding.algorithm for finding in findings if finding.offers}

    def believed(finding: Finding) -> Finding:
        verdict = finding.verdict
        if finding.offers is not False or finding.algorithm not in ran or verdict.status is not Status.UNSUPPORTED:
            return finding
        reason = f"{verdict.reason}, {failing.ELSEWHERE}"
        return dataclasses.replace(finding, verdict=dataclasses.replace(verdict, status=Status.ERROR, reason=reason))

    return list(map(believed, findings))


def _refuse_unlike(judged: Iterable[Judged]) -> None:
    """Raise UserError if verdicts on one algorithm are of more than one run."""
    runs: dict[str, dict[Hashable, Point]] = collections.defaultdict(dict)
    for answer in judged:
        for setting, measurements in answer.measured.items():
            runs[answer.question.algorithm].update({m.trial.run: setting.point for m in measurements})
    for points in runs.values():
        if len(points) > 1:
            where = ", ".join(sorted({place.id for place in points.values()})[:2])
            raise UserError(f"measurements of different runs at {where}", "judge each run by itself")


def stored(lines: Mapping[Question, MeasuredSettings], family: int = 1) -> list[Finding]:
    """Judge questions by the lines of files that there are, all of one scheme and in one family; no trials follow.

    `family`: how many questions there are in all, if more than these. Raises UserError for unlike runs.
    """
    apart = {
        question: {setting: seeds.repeats_apart(measurements) for setting, measurements in measured.items()}
        for question, measured in lines.items()
    }
    numbers = {
        setting: len(measurements)
        for parts in apart.values()
        for setting, (measurements, _) in parts.items()
        if measurements
    }
    looks = looks_of(numbers.values())
    planned = plan(lines, trials=looks[0])
    sizes = dict.fromkeys(planned.questions, max(family, planned.family))
    planned = dataclasses.replace(planned, looks=looks, glances=False, stored=True, families=sizes)

    def source(plan: Plan) -> Iterator[Judged]:
        for question in plan.questions:
            part = {setting: parts[plan.repeats] for setting, parts in apart[question].items()}
            if all(part.values()) or not plan.repeats:
                yield plan.judge(question, part)

    return Session(plan=planned).findings(source)


def by_zone(findings: Iterable[Finding]) -> dict[str, ZoneVerdict]:
    """Return {zone's id: ZoneVerdict} of findings; a violation that its repeat takes back is inconclusive."""
    by_zone_id = grouped((finding.verdict.zone_id, finding) for finding in findings)
    return {
        zone_id: ZoneVerdict(
            zone_id=zone_id, verdicts={finding.verdict.place: finding.confirmed for finding in of}, family=of[-1].family
        )
        for zone_id, of in by_zone_id.items()
    }
