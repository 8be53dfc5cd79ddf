"""List the tests of a stack: a case for each clause that is asked, for each cell of each zone, and for each check of
its split part. Clauses are asked of documents that `-m` names, and of those that judge an algorithm first.
"""

import collections
import dataclasses
import re
from collections.abc import Iterable, Iterator
from typing import Any

from _pytest.mark.expression import Expression

from conformance.catalogue import baseline, clauses, documents, scenarios
from conformance.catalogue.baseline import Baseline
from conformance.catalogue.questions import cell_questions, split_questions, zone_questions
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.judging.question import Question
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Cell
from conformance.model.split import split_zone
from conformance.model.split.split_zone import SplitCheck
from conformance.suite import options
from conformance.suite.options import Options
from conformance.support import spelling

#: the kind of tests, and of zone files, that are about paths and not about cells
SPLIT = "split"
#: the kind of tests of clauses
CLAUSE = "clause"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCase:
    """One test."""

    name: str
    kind: str
    question: Question
    markers: tuple[str, ...]


def baseline_of(option: Options) -> Baseline | None:
    """Return the baseline that is asked for, if one is. Raise UserError."""
    if option.baseline == "":
        raise UserError("--baseline is empty", "name a results file, or leave it out")
    if not option.baseline:
        return None
    return baseline.read(option.baseline, options.stack_name(option), options.profile(option))


def cases(option: Options) -> Iterator[QuestionCase]:
    """Yield the cases of clauses, then those of zones, algorithm by algorithm.

    Raise UserError for a mistake in the options, such as a cell that no zone has.
    """
    before = baseline_of(option)
    grid = grids.FULL if option.grid is None else option.grid
    zones = before.zones if before else documents.judging(options.profile(option))
    grids.check(grid, [zone for _, zone in zones])
    zones = [(kind, zone if zone.of_cells else _asked_of(option, kind, zone)) for kind, zone in zones]
    stack = options.stack_name(option)
    splits = {} if option.baseline else documents.split_checks(options.profile(option))
    by_algorithm = {checks[0].heatmap.algorithm: checks for checks in splits.values()}
    if not option.baseline:
        yield from _clause_cases(option, stack)
    for algorithm in sorted({zone.algorithm for _, zone in zones} | by_algorithm.keys()):
        of_algorithm = [(kind, zone) for kind, zone in zones if zone.algorithm == algorithm]
        if clauses.first_for(algorithm) and not option.baseline and option.grid is None:
            of_algorithm = _beside_clauses(of_algorithm)
        yield from _kind_cases([(kind, zone) for kind, zone in of_algorithm if zone.by_kind], grid, stack, option)
        yield from _cell_cases([(kind, zone) for kind, zone in of_algorithm if not zone.by_kind], grid, stack)
        yield from _split_cases(by_algorithm.get(algorithm, ()), option, stack)
    if before:
        yield from _lost_cases(before, option, grid, stack)


def _clause_cases(option: Options, stack: str) -> Iterator[QuestionCase]:
    """Yield the cases of clauses in the documents that `-m` names, for the algorithms that the stack has, and of those
    that judge an algorithm first.

    --grid asks for networks, so with it only clauses of documents that are named are asked.
    """
    words, about = _words(option), options.manifest_of(option)
    named = (
        [algorithm for algorithm in about.offered() if not words or algorithm in words] if option.grid is None else []
    )
    wanted = clauses.markers().keys() & set(words)
    about_clauses = [
        *clauses.firsts(about.transport, named),
        *clauses.asked(wanted, about.transport, about.offered(), words),
    ]
    smoke = clauses.smoke()
    for clause, algorithm in dict.fromkeys(about_clauses):
        question = clauses.question(clause, about, algorithm, twice=option.confirm)
        tiers = ("full", "smoke") if clause.id in smoke else ("full",)
        yield _case(CLAUSE, f"{clause.id}-{algorithm}", stack, question, algorithm, *clause.markers, *tiers)


def _case(kind: str, about: str, stack: str, question: Question, *markers: str) -> QuestionCase:
    return QuestionCase(name=f"{kind}[{about}-{stack}]", kind=kind, question=question, markers=markers)


def _asked_of(option: Options, kind: str, zone: Zone) -> Zone:
    """Return the zone of a scenario with only those points that are asked for.

    Its marker, --grid, or the absence of -m ask for all points; an algorithm's marker alone asks for some of them
    (documents.by_algorithm): of a baseline, for those that it asks for of the zone that ships.
    """
    if _asks_for_all(option, kind):
        return zone
    if not option.baseline:
        return documents.by_algorithm(zone)
    ships = [documents.by_algorithm(of) for of in _shipped(option, kind, zone.algorithm)]
    kept = {place: of for place, of in zone.intervals.items() if not ships or place in ships[0].intervals}
    return dataclasses.replace(zone, intervals=kept, smoke=())


def _asks_for_all(option: Options, kind: str) -> bool:
    words = _words(option)
    return not words or option.grid is not None or documents.marker(kind) in words


def _shipped(option: Options, kind: str, algorithm: str) -> list[Zone]:
    """Return the zone that ships of a kind and an algorithm, if there is one."""
    judging = documents.judging(options.profile(option))
    return [zone for of, zone in judging if (of, zone.algorithm) == (kind, algorithm)]


def _beside_clauses(zones: list[tuple[str, Zone]]) -> list[tuple[str, Zone]]:
    """Return zones with one smoke cell: the first that most of them have, so that they share its trials.

    Clauses that come first tell the algorithm from others, and what is wrong with it, at less cost than further cells.
    """
    count = collections.Counter(cell for _, zone in zones if zone.of_cells for cell in zone.smoke)
    shared = min(count, key=lambda cell: (-count[cell], cell), default=None)

    def kept(zone: Zone) -> Zone:
        return dataclasses.replace(zone, smoke=(shared,) if shared in zone.smoke else ()) if zone.of_cells else zone

    return [(kind, kept(zone)) for kind, zone in zones]


def _words(option: Options) -> list[str]:
    return re.findall(r"[\w.-]+", option.markexpr or "")


def matching(option: Options) -> list[Question]:
    """Return all questions that `-m` and `--grid` ask for, even if other options leave some out; none without `-m`.
    Raise UserError.

    These questions share a chance of a false alarm: `-k`, `--lf`, shards and names of tests only choose a part of them.
    """
    if not option.markexpr:
        return []
    expression = Expression.compile(option.markexpr)
    return [case.question for case in cases(option) if expression.evaluate(_Has(case.markers))]


class _Has:
    """Answers whether a case has a marker."""

    def __init__(self, markers: Iterable[str]) -> None:
        self._markers = frozenset(markers)

    def __call__(self, name: str, /, **_: Any) -> bool:
        return name in self._markers


def _kind_cases(zones: list[tuple[str, Zone]], grid: str, stack: str, option: Options) -> Iterator[QuestionCase]:
    """Yield the cases of kinds of cells: over smoke cells if only that tier is asked, else over all."""
    for kind, zone in zones:
        markers = (zone.algorithm, documents.marker(kind))
        is_smoke = _asks(option, (*markers, "smoke")) and not _asks(option, markers)
        cells = [cell for cell in grids.within(grid, zone.places) if not is_smoke or cell in zone.smoke]
        tiers = ("full", "smoke") if is_smoke else ("full",)
        for question in zone_questions(zone, [scenarios.setting(zone.profile, cell) for cell in cells]):
            yield _case(kind, f"{zone.algorithm}-{question.place.id}", stack, question, *markers, *tiers)


def _asks(option: Options, markers: Iterable[str]) -> bool:
    """Return whether `-m` asks for a case with these markers, and those of its whole tier."""
    return bool(option.markexpr) and Expression.compile(option.markexpr).evaluate(_Has((*markers, "full")))


def _cell_cases(zones: list[tuple[str, Zone]], grid: str, stack: str) -> Iterator[QuestionCase]:
    """Yield the cases place by place, because a place that several zones judge is measured once."""
    places = ((zone.profile, place) for _, zone in zones for place in grids.within(grid, zone.places))
    # Points of two scenarios may have the same name, so these are kept apart. A cell is one network under any profile,
    # so its cases stay together.
    for profile, place in dict.fromkeys((None if isinstance(at, Cell) else p, at) for p, at in places):
        for kind, zone in zones:
            if profile not in (None, zone.profile):
                continue
            tiers = ("full", "smoke") if place in zone.smoke else ("full",)
            markers = (zone.algorithm, documents.marker(kind), *tiers)
            for question in cell_questions(zone, [place]):
                yield _case(kind, f"{zone.algorithm}-{place.id}", stack, question, *markers)


def _split_cases(checks: Iterable[SplitCheck], option: Options, stack: str) -> Iterator[QuestionCase]:
    """Yield the cases of those checks of a zone's split part that are within the grid.

    Without a grid, markers other than `split` leave out those that rest on what is shown and not judged.
    """
    points = grids.places(split_zone.GRIDS[0] if option.grid is None else option.grid)
    words = _words(option)
    if words and option.grid is None and SPLIT not in words:
        checks = [check for check in checks if check.rests_on_judged]
    for question in split_questions(checks, points):
        about = f"{question.algorithm}-{question.place.id}"
        yield _case(SPLIT, about, stack, question, question.algorithm, SPLIT, "full")


def _lost_cases(before: Baseline, option: Options, grid: str, stack: str) -> Iterator[QuestionCase]:
    """Yield the cases of places that a baseline measured in vain, of those that would be asked for."""
    for kind, question in before.lost_questions(options.profile(option)):
        place, algorithm = question.place, question.algorithm
        ships = _shipped(option, kind, algorithm)
        of_algorithm = [of if _asks_for_all(option, kind) else documents.by_algorithm(of) for of in ships]
        if not grids.within(grid, [place]) or any(place not in zone.intervals for zone in of_algorithm):
            continue
        tiers = ("full", "smoke") if any(place in zone.smoke for zone in of_algorithm) else ("full",)
        yield _case(kind, f"{algorithm}-{place.id}", stack, question, algorithm, documents.marker(kind), *tiers)


def kinds() -> list[str]:
    """Return all kinds of tests."""
    return [*documents.all_kinds(), SPLIT]


def check_mark_expression(expression: str, known: Iterable[str]) -> None:
    """Raise UserError for a word of `-m` that is no marker: `pytest -m cubik` must not pass by running nothing."""
    words = {*known, "and", "or", "not", "True", "False"}
    for word in re.findall(r"[A-Za-z_][\w.-]*", expression):
        if word not in words:
            algorithms = sorted(documents.algorithms())
            metrics = dict.fromkeys(documents.marker(kind) for kind in kinds())
            choices = (
                f"algorithms: {', '.join(algorithms)}; metrics: {', '.join(metrics)};"
                f" documents: {', '.join(clauses.markers())}; tiers: smoke, full"
            )
            close_to = [*algorithms, *metrics, *clauses.markers(), "smoke", "full"]
            raise UserError(
                f"-m {word}: no such algorithm, metric, document or tier", spelling.mend(word, close_to, choices)
            )
