"""Print the verdict of a whole session at its end, all cells of all zones taken together.

A test judges one cell, as strictly as if it were the first to violate (Bonferroni, the first step of Holm's procedure).
When all cells are known, the later steps may find a cell in violation that its own test had to call inconclusive. Such
a cell is then repeated with fresh seeds, as any new violation is.
"""

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from conformance.engine.questions import ClauseQuestion, SplitQuestion
from conformance.model import family as families
from conformance.model.clauses.verdict import ClauseVerdict
from conformance.model.errors import UserError
from conformance.model.expectation import Expected, Known
from conformance.model.judging.verdict import Status, Verdict, false_alarms, level
from conformance.model.judging.zone import Zone
from conformance.support.console import mistake, one_line

#: (zone's id, place's id)
At = tuple[str, str]
#: A report's attribute that holds the Told of a cell. It is not a user property, because those are in JUnit's XML. It
#: is JSON, so that xdist's workers can send it.
TOLD = "conformance_verdict"
#: the same for a check of the split part, or a clause
SPLIT_TOLD = "conformance_split_verdict"
NOT_CONFIRMED = "not confirmed"
#: the labels of verdicts that say something about the stack
_SAYING = {*(str(status) for status in Status if status.passes or status is Status.VIOLATES), NOT_CONFIRMED}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the summary knows of a verdict on a cell, on a check of a split part, or on a clause (`place`).

    `known`: whether it is known to violate. `family`: how many cells share the session's chance of a false alarm.
    `unconfirmed`: whether it violates, alone or with all cells taken together, but not with fresh seeds. `values`: the
    trials' values on which the verdict rests. `reason`: why the verdict is what it is.
    """

    zone_id: str
    place: str
    status: str
    algorithm: str
    profile: str
    family: int
    p: float | None = None
    known: bool = False
    unconfirmed: bool = False
    values: Sequence[float] = ()
    reason: str = ""
    #: the words that stand before `zone_id` in the summary
    noun: str = "zone"

    @property
    def label(self) -> str:
        """The word under which the summary counts it."""
        return NOT_CONFIRMED if self.unconfirmed else self.status


def told(
    verdict: Verdict,
    expected: Expected | None,
    zone: Zone,
    family: int,
    unconfirmed: bool,
    values: Sequence[float] = (),
) -> dict[str, Any]:
    """Return the value of TOLD for a verdict, given what was expected and the values that the verdict rests on."""
    known = expected is not None and expected.verdict in (Known.VIOLATES, Known.BORDERLINE)
    return dataclasses.asdict(
        Told(
            zone_id=zone.id, place=verdict.place.id, status=str(verdict.status), algorithm=zone.algorithm,
            profile=zone.profile, family=family, p=verdict.p, known=known, unconfirmed=unconfirmed,
            values=tuple(values), reason=verdict.reason,
        )
    )  # fmt: skip


def split_told(question: SplitQuestion, verdict: Any, family: int, unconfirmed: bool) -> dict[str, Any]:
    """Return the value of SPLIT_TOLD for a check of the split part."""
    return dataclasses.asdict(
        Told(
            zone_id=question.zone.id, place=question.place, status=str(verdict.status), algorithm=question.algorithm,
            profile=question.zone.profile, family=family, unconfirmed=unconfirmed, reason=verdict.reason,
        )
    )  # fmt: skip


def clause_told(
    question: ClauseQuestion, verdict: ClauseVerdict, expected: Expected | None, family: int, unconfirmed: bool
) -> dict[str, Any]:
    """Return the value of SPLIT_TOLD for a clause. Its p-value counts only for a violation that a repeat has not taken
    back.
    """
    known = expected is not None and expected.verdict in (Known.VIOLATES, Known.BORDERLINE)
    clause = question.clause
    return dataclasses.asdict(
        Told(
            zone_id=clause.specification, place=f"{clause.id} {question.algorithm}", status=str(verdict.status),
            algorithm=question.algorithm, profile=question.setting.profile, family=family,
            p=verdict.p if verdict.status is Status.VIOLATES and not unconfirmed else None,
            known=known, unconfirmed=unconfirmed, reason=verdict.reason, noun="clauses of",
        )
    )  # fmt: skip


class Zones:
    """Collects the verdicts of a session, including those of its workers.

    `repeat` repeats violations with fresh seeds, and returns the verdicts on these; it is None if nothing is to be
    repeated.
    """

    def __init__(self, repeat: Callable[[Collection[At]], Mapping[At, Verdict]] | None = None) -> None:
        self._measure_again = repeat
        self._not_repeated: list[str] = []
        #: {zone's id: {place: Told}}
        self._found: dict[str, dict[str, Told]] = collections.defaultdict(dict)
        #: whether any test, of this suite or not, ran to its end
        self._ran = False
        #: whether the session ends without saying anything about the stack
        self._nothing = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._ran |= report.when == "call" and (report.passed or hasattr(report, "wasxfail"))
        for attribute in (TOLD, SPLIT_TOLD):
            if value := getattr(report, attribute, None):
                one = Told(**value)
                self._found[one.zone_id][one.place] = one

    def _all(self) -> list[Told]:
        return [one for places in self._found.values() for one in places.values()]

    def _family(self) -> int:
        """Return how many cells were planned, whether or not their verdicts arrived."""
        return max((one.family for one in self._all()), default=0)

    def late(self) -> set[At]:
        """Return the inconclusive cells that violate now that all verdicts are known, without those that a repeat did
        not confirm.
        """
        ours = self._all()
        # Only verdicts with a p-value can violate. Among the others are cells that are not counted, and so not in the
        # family.
        step = families.last_step([one.p for one in ours if one.p is not None], self._family())
        return {
            (one.zone_id, one.place)
            for one in ours
            if one.status == Status.INCONCLUSIVE and not one.unconfirmed
            if one.p is not None and one.p <= level(step)
        }

    def upgraded(self) -> dict[str, list[str]]:
        """Return {zone id: ids of those late() cells that are not known to violate}."""
        late: dict[str, list[str]] = collections.defaultdict(list)
        for zone_id, cell_id in sorted(self.late()):
            if not self._found[zone_id][cell_id].known:
                late[zone_id].append(cell_id)
        return dict(late)

    def lines(self) -> Iterator[str]:
        """Yield one line for each zone, with why cells say nothing about the stack, and one for the session.

        If no test says anything, yield all reasons once, at the end.
        """
        late = self.late()
        for zone_id, places in sorted(self._found.items()):
            here = [place for place in places if (zone_id, place) in late]
            count = collections.Counter(
                str(Status.VIOLATES) if place in here else one.label for place, one in places.items()
            )
            again = [place for place, one in places.items() if one.unconfirmed]
            yield (
                f"{next(one.noun for one in places.values())} {zone_id}: {_words(count)}"
                + (f"; violates, all cells taken together: {', '.join(here)}" if here else "")
                + (f"; not confirmed with fresh seeds: {', '.join(again)}" if again else "")
            )
            if not self._nothing:
                yield from _reasons((one for place, one in places.items() if place not in here), most=1)
        yield f"the session: {false_alarms(self._family())}"
        yield from self._not_repeated
        if self._nothing:
            yield f"nothing was judged, so the exit status is {int(pytest.ExitCode.NO_TESTS_COLLECTED)}:"
            yield from _reasons(self._all())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._found:
            terminalreporter.section("zones")
            for line in self.lines():
                terminalreporter.write_line(line)

    @pytest.hookimpl(trylast=True)  # when the guests of the session have ended
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        complete = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if complete and not (session.shouldfail or session.shouldstop):  # as after -x
            self._repeat()
        if self.upgraded() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        said = self._ran or any(one.label in _SAYING for one in self._all())
        if self._found and not said and session.exitstatus == pytest.ExitCode.OK:
            self._nothing, session.exitstatus = True, pytest.ExitCode.NO_TESTS_COLLECTED

    def _repeat(self) -> None:
        """Repeat violations that only all cells taken together show. One that cannot be repeated stays a violation."""
        found = {(zone_id, cell_id) for zone_id, cells in self.upgraded().items() for cell_id in cells}
        if not found or self._measure_again is None:
            return
        try:
            again = self._measure_again(found)
        except UserError as error:
            self._not_repeated.append(f"not repeated with fresh seeds: {mistake(error)}")
            return
        except KeyboardInterrupt:
            self._not_repeated.append("interrupted while violations were being repeated with fresh seeds: they stand")
            return
        for (zone_id, place), verdict in again.items():
            if verdict.status is Status.ERROR:
                what = one_line(f"zone {zone_id} at {place}: not repeated with fresh seeds: {verdict.reason}")
                self._not_repeated.append(what)
            elif verdict.status is not Status.VIOLATES:
                self._found[zone_id][place] = dataclasses.replace(self._found[zone_id][place], unconfirmed=True)


def _reasons(tolds: Iterable[Told], most: int | None = None) -> Iterator[str]:
    """Yield a line for each reason why verdicts say nothing; of each kind, at most the `most` most common reasons."""
    by_label: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for one in tolds:
        if one.label not in _SAYING and one.reason:
            by_label[one.label][one.reason] += 1
    for label, reasons in by_label.items():
        shown = reasons.most_common(most)
        left = reasons.total() - sum(n for _, n in shown)
        for reason, n in shown:
            remedy = " (--max-trials allows more)" if reason.endswith("more trials needed") else ""
            others = f"; {left} for other reasons, which -rs lists" if left else ""
            yield one_line(f"  {n} {label}: {reason}{remedy}{others}")


def _words(count: Mapping[str, int]) -> str:
    named = [*map(str, Status), NOT_CONFIRMED]
    return ", ".join(f"{count[name]} {name}" for name in named if count[name])
