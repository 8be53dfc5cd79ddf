"""`conformance dev search`: look for a network and an application in which a stack does much worse than another one.

Scenarios are changed at random, from one steady link with one bulk flow on (model/search/). Both stacks are tried in
each, with seeds of their own. The best scenario by each goal is shrunk, and then tried with seeds that the search never
used: only what these show again is a finding. A search on the reference itself should find nothing.
"""

import collections
import dataclasses
import json
import pathlib
import random
import time
from collections.abc import Sequence
from typing import Any

from conformance.catalogue import scenarios
from conformance.commands import common
from conformance.commands.compare_shares import TrialEnds
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.engine import benches
from conformance.engine.benches import Bench, Choice, Means
from conformance.engine.execute import execute
from conformance.lab import job
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.judging.session import plan
from conformance.model.networks.setting import Setting
from conformance.model.search import shrinking
from conformance.model.search.goals import FAILURE, GOALS, Goal
from conformance.model.search.mutation import Document, steady
from conformance.model.search.population import Population
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Compared, Movement, Quantity, Values
from conformance.model.trials.trial import Measurement
from conformance.results.store import Store
from conformance.support import files
from conformance.support.notes import Bar

#: goals of a search against the reference; where two stacks claim the same, either may be the one that is wrong
AGAINST_REFERENCE = ("throughput", "standstill", "loss", FAILURE)
#: scenarios that are made before any of them is tried: always as many, so that the number of cores changes nothing
_AT_A_TIME = 12
#: seeds of trials that guide the search, that say whether a simpler scenario still shows it, and that repeat it. The
#: other stack's are this far behind, so that two equal stacks differ as two runs of one do
_SEARCHED, _REPEATED, _APART = seeds.JUDGED, seeds.JUDGED + 2000, 1000
#: trials of each scenario while it is shrunk
_SHRUNK_TRIALS = 2
#: the parts of a budget at whose ends the search stops, and shrinking stops
_UNTIL_SEARCHED, _UNTIL_SHRUNK = 0.6, 0.9

#: the trials of both stacks in one scenario
Sides = tuple[Sequence[Measurement], Sequence[Measurement]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search. `against`: the stack that the chosen one is compared with. `seed`: of the sequence of scenarios.

    `budget_s`, `tries`: when the search ends, by wall time or by scenarios; a sequence is the same whichever ends it.
    """

    algorithm: str
    against: str
    goals: tuple[str, ...]
    seed: int
    budget_s: float | None
    tries: int | None
    target: pathlib.Path


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """The best scenario by a goal, and what its repeats show; `compared` is None if they show nothing."""

    SHOWN = (
        "goal=goal.name", "repeated", "stack=after", "against=before", "unit=goal.unit", "p=compared.p", "trials=n",
        "messages", "scenario",
    )  # fmt: skip

    goal: Goal
    document: Document
    compared: Compared | None
    #: Whether trials with fresh seeds show it.
    repeated: bool
    #: What the stack's programs said in trials that failed.
    messages: list[str]
    #: Null if it did not repeat.
    scenario: pathlib.Path | None = None

    @property
    def before(self) -> float | None:
        return None if self.compared is None else self.compared.before

    @property
    def after(self) -> float | None:
        """Median of the stack's repeats, or the share that failed; null if they do not say."""
        return None if self.compared is None else self.compared.after

    @property
    def n(self) -> int:
        """Of each side."""
        return 0 if self.compared is None else min(self.compared.n)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Searched(Result):
    """What a search came to."""

    SCHEMA = "search"
    SHOWN = ("scheme", "against", "seed", "tries", "best", "sought", "results")

    scheme: str
    against: str
    seed: int
    #: Scenarios that were tried, without those of shrinking and repeats.
    tries: int
    #: {goal: the best score, in units of the smallest difference that counts}
    best: dict[str, float]
    sought: tuple[Sought, ...]
    results: str
    algorithm: str
    choice: Choice

    @property
    def findings(self) -> tuple[Sought, ...]:
        """What repeated."""
        return tuple(each for each in self.sought if each.repeated)

    @property
    def exit_status(self) -> ExitStatus:
        return ExitStatus.VIOLATES if self.findings else ExitStatus.DONE


def run(choice: Choice, options: SearchOptions, means: Means) -> Searched:
    """Search, shrink and repeat. Raises UserError."""
    files.check_empty(options.target)
    hunt = _Hunt(choice, options, means)
    hunt.begin()
    population = hunt.search()
    best = {goal: kept[0].scores[goal] for goal in options.goals if (kept := population.best(goal))}
    shrunk = {goal: hunt.shrink(GOALS[goal], population) for goal in options.goals}
    sought = hunt.repeat({goal: document for goal, document in shrunk.items() if document is not None})
    ours, theirs = (bench.scheme(options.algorithm).id for bench in hunt.sides)
    return Searched(
        scheme=ours, against=theirs, seed=options.seed, tries=population.tried, best=best,
        sought=tuple(_kept(each, ours, theirs, options.target) for each in sought), results=str(means.results),
        algorithm=options.algorithm, choice=choice,
    )  # fmt: skip


class _Hunt:
    """A search under way."""

    def __init__(self, choice: Choice, options: SearchOptions, means: Means) -> None:
        self._options, self._means, self._notes = options, means, means.notes
        other = Choice(stack=options.against, client=choice.client, kernel=choice.kernel)
        self.sides: tuple[Bench, Bench] = (benches.find(choice), benches.find(other))
        for bench in self.sides:
            common.require_offered(bench, options.algorithm)
            if why_not := bench.place(options.algorithm).why_not:
                raise UserError(f"{bench.adapter.name}: {why_not}", "give another stack with --against")
        self._store = Store(means.results)
        #: scenarios that failed while another goal's were shrunk
        self._failed: list[Document] = []
        self._began_s = time.monotonic()

    def begin(self) -> None:
        """Try both stacks over the steady link. Raises UserError if one does not get through."""
        (tried,) = self._tried([steady()], 1, _SEARCHED, None)
        for bench, measurements in zip(self.sides, tried or (), strict=False):
            bad = common.bad(measurements)
            if bad is not None:
                raise UserError(f"{bench.adapter.name} over a steady link: {bad.outcome}: {bad.message}")

    def search(self) -> Population:
        """Try scenarios until the budget or the number of tries is spent. Raises UserError."""
        options = self._options
        population = Population(options.goals, random.Random(options.seed), self._is_valid)
        left_s = self._left_s(_UNTIL_SEARCHED)
        with self._notes.bar("searching", total=options.tries, unit="tries", budget_s=left_s) as bar:
            while (options.tries is None or population.tried < options.tries) and not self._is_over(_UNTIL_SEARCHED):
                count = min(_AT_A_TIME, (options.tries or population.tried + _AT_A_TIME) - population.tried)
                documents = population.children(count)
                tried = self._tried(documents, 1, _SEARCHED, _UNTIL_SEARCHED, bar)
                if not documents or None in tried:
                    break  # what a budget cuts short is not added, as its scores would depend on the machine
                for document, sides in zip(documents, tried, strict=True):
                    assert sides is not None
                    population.add(document, self._scores(sides))
                best = (population.best(goal) for goal in options.goals)
                scores = [f"{g} {kept[0].scores[g]:.1f}" for g, kept in zip(options.goals, best, strict=True) if kept]
                bar.say(f"{population.tried} tried; best: {', '.join(scores)}")
        return population

    def _scores(self, sides: Sides) -> dict[str, float]:
        scores = {name: GOALS[name].score(*sides) for name in self._options.goals}
        return {name: score for name, score in scores.items() if score is not None}

    def shrink(self, goal: Goal, population: Population) -> Document | None:
        """Return the smallest scenario that still shows half of it; None if none of the best does with further seeds.

        Less than half may be something else, such as what the steady link shows, too. Each goal has its part of the
        time. A scenario that the budget leaves no time to try again is returned as it is.
        """
        best = [tried.document for tried in population.best(goal.name) if tried.scores[goal.name] >= 1]
        best += self._failed if goal.name == FAILURE else []
        if not best:
            return None
        goals = list(self._options.goals)
        part = (goals.index(goal.name) + 1) / len(goals)
        until = _UNTIL_SEARCHED + part * (_UNTIL_SHRUNK - _UNTIL_SEARCHED)
        with self._notes.bar(f"shrinking: {goal.name}", budget_s=self._left_s(until)) as bar:
            bar.say("trying the best scenarios again")
            began = self._first_that_shows(goal, best, 1, until, bar)
            if began is None:
                return best[0] if self._is_over(until) else None
            document, score = began

            def first(candidates: Sequence[Document]) -> Document | None:
                shows = self._first_that_shows(goal, candidates, max(score / 2, 1), until, bar)
                return None if shows is None else shows[0]

            return shrinking.shrunk(document, first)

    def _first_that_shows(
        self, goal: Goal, candidates: Sequence[Document], least: float, until: float, bar: Bar
    ) -> tuple[Document, float] | None:  # fmt: skip
        """Return the first scenario with a score of at least this, and its score; None if time runs out, too."""
        for at in range(0, len(candidates), _AT_A_TIME):
            chosen = candidates[at : at + _AT_A_TIME]
            tried = self._tried(chosen, _SHRUNK_TRIALS, _SEARCHED, until, bar)
            for document, sides in zip(chosen, tried, strict=True):
                if sides is not None and goal.name != FAILURE and (GOALS[FAILURE].score(*sides) or 0) >= 1:
                    self._failed.append(document)
                if sides is not None and (score := goal.score(*sides) or 0) >= least:
                    bar.say(f"{shrinking.complexity(document)[0]} departures from the steady link are left")
                    return document, score
            if self._is_over(until):
                break
        return None

    def repeat(self, documents: dict[str, Document]) -> list[Sought]:
        """Try each scenario with fresh seeds; all are one family. Raises UserError."""
        if not documents:
            return []
        family = len(self._options.goals)
        repeats: dict[str, Sides | None] = {}
        with self._notes.bar("repeating with fresh seeds", total=len(documents), unit="scenarios") as bar:
            for name, document in documents.items():
                fewest = comparison.fewest_trials(family, GOALS[name].is_share)
                (repeats[name],) = self._tried([document], fewest, _REPEATED, None, bar)
        values: dict[Quantity, tuple[Values, Values]] = {}
        for name, sides in repeats.items():
            assert sides is not None  # there is no budget here
            ours, theirs = (GOALS[name].values(side) for side in sides)
            if ours and theirs:
                values[GOALS[name].quantity(self._options.algorithm, name, sides[0][0].setting.point)] = theirs, ours
        compared = {each.quantity.name: each for each in comparison.compare(values)}
        return [
            Sought(
                goal=GOALS[name], document=document, compared=compared.get(name),
                repeated=name in compared and _is_worse(GOALS[name], compared[name]),
                messages=_messages(repeats[name]),
            )
            for name, document in documents.items()
        ]  # fmt: skip

    def _is_valid(self, document: Document) -> bool:
        try:
            setting = _setting(document)
        except UserError:
            return False
        return not any(job.why_not(setting, bench.adapter) for bench in self.sides)

    def _tried(
        self, documents: Sequence[Document], trials: int, first_seed: int, until: float | None, bar: Bar | None = None
    ) -> list[Sides | None]:
        """Return the trials of both stacks in each scenario; None where the budget left no time. Raises UserError."""
        settings = [_setting(document) for document in documents]
        sides: list[dict[Setting, Sequence[Measurement]]] = []
        for bench, seed in zip(self.sides, (first_seed, first_seed + _APART), strict=True):
            work = [(self._options.algorithm, setting) for setting in settings]
            planned = plan(trials=trials, first_seed=seed, work=work)
            answers = execute(
                planned, bench, self._store, workers=self._means.workers,
                budget_s=None if until is None else self._left_s(until),
            )  # fmt: skip
            sides.append({answer.setting: answer.measurements for answer in answers})
        ours, theirs = sides
        tried: list[Sides | None] = [
            (ours[setting], theirs[setting]) if setting in ours and setting in theirs else None for setting in settings
        ]
        if bar is not None:
            bar.advance(by=sum(each is not None for each in tried))
        return tried

    def _left_s(self, until: float) -> float | None:
        """Return the seconds that are left until a part of the budget is spent; None if there is no budget."""
        budget_s = self._options.budget_s
        return None if budget_s is None else max(budget_s * until - (time.monotonic() - self._began_s), 0.1)

    def _is_over(self, until: float) -> bool:
        budget_s = self._options.budget_s
        return budget_s is not None and time.monotonic() - self._began_s >= budget_s * until


def _setting(document: Document) -> Setting:
    scenario = scenarios.of_document(document)
    return dataclasses.replace(scenario.setting(scenario.point({})), packets=True)


def _is_worse(goal: Goal, compared: Compared) -> bool:
    return compared.change is Movement.MOVED and (goal.worse == 0 or compared.difference * goal.worse > 0)


def _messages(sides: Sides | None) -> list[str]:
    said = TrialEnds.of(sides[0]).failed if sides else {}
    return [message for message, _ in collections.Counter(said.values()).most_common()]


def _kept(sought: Sought, ours: str, theirs: str, target: pathlib.Path) -> Sought:
    """Write the scenario of a finding as a document. Raises UserError."""
    if not sought.repeated:
        return sought
    goal = sought.goal
    about: dict[str, Any] = {
        "name": f"search-{goal.name}",
        "title": f"Found by `conformance dev search`: {goal.title}, {ours} {sought.after:.{goal.digits}f} {goal.unit},"
        f" {theirs} {sought.before:.{goal.digits}f} {goal.unit}",
    }
    path = target / f"{goal.name}.json"
    files.write(path, json.dumps(sought.document | about, indent=2) + "\n")
    return dataclasses.replace(sought, scenario=path)
