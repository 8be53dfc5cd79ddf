"""At the end of a session: the verdict on each zone as a whole, its cells taken together.

A test judges one cell, as strictly as if it were the first to violate (Bonferroni, the first step of Holm's procedure).
When all cells are known, the later steps may find a cell in violation that its own test had to call inconclusive.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from conformance.engine.plan import SplitQuestion
from conformance.model import statistics
from conformance.model.expectation import Expected
from conformance.model.verdict import ALPHA, LOOKS, Status, Verdict, false_alarms, false_alarms_of_any
from conformance.model.zone import Zone

#: A report's attribute that holds [zone id, cell id, status, p, whether it is known to violate, the zone's algorithm,
#: its profile, the values judged]. It is no property, because these are in JUnit's XML; and it is JSON, to come from
#: xdist's workers.
TOLD = "conformance_verdict"
#: the same of the split part: [zone id, check id, status, settings that the zone is judged by, why nothing is split]
SPLIT_TOLD = "conformance_split_verdict"

#: a cell's status, its chance of a false alarm, and whether it is known to violate
_Cell = tuple[Status, float | None, bool]


def told(verdict: Verdict, expected: Expected | None, zone: Zone, values: Sequence[float] = ()) -> list[Any]:
    """Return what TOLD holds of a verdict, of what was expected, and of the values that it rests on."""
    known = expected is not None and expected.verdict is Status.VIOLATES
    of_zone = [zone.algorithm, zone.profile]
    return [zone.id, verdict.cell.id, str(verdict.status), verdict.p, known, *of_zone, list(values)]


def split_told(question: SplitQuestion, verdict: Any, family: int, unsplit: str | None) -> list[Any]:
    """Return the same of a check of the split part. `unsplit`: why its path was not measured, or None."""
    return [question.zone.id, question.place, str(verdict.status), family, unsplit]


class Zones:
    """Collects the verdicts of a session, of its workers' too."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, _Cell]] = {}
        self._split: dict[tuple[str, int], dict[str, tuple[Status, str | None]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if value := getattr(report, TOLD, None):
            zone_id, cell_id, status, p, known, *_ = value
            self._found.setdefault(zone_id, {})[cell_id] = (Status(status), p, known)
        if value := getattr(report, SPLIT_TOLD, None):
            zone_id, check_id, status, family, unsplit = value
            self._split.setdefault((zone_id, family), {})[check_id] = (Status(status), unsplit)

    def upgraded(self) -> dict[str, list[str]]:
        """Return {zone id: ids of inconclusive cells that violate, now that all are known, and are not known to}."""
        late = {
            zone_id: [cell_id for cell_id in _upgraded(cells) if not cells[cell_id][2]]
            for zone_id, cells in self._found.items()
        }
        return {zone_id: cells for zone_id, cells in late.items() if cells}

    def lines(self) -> Iterator[str]:
        """Yield one line for each zone, and one for all."""
        for zone_id, cells in sorted(self._found.items()):
            late = _upgraded(cells)
            count: collections.Counter[Status] = collections.Counter(
                Status.VIOLATES if cell_id in late else status for cell_id, (status, *_) in cells.items()
            )
            yield (
                f"zone {zone_id}: {_words(count)}; {false_alarms(len(cells))}"
                + (f"; violates, all cells taken together: {', '.join(late)}" if late else "")
            )
        for (zone_id, family), checks in sorted(self._split.items()):
            unsplit = next((why for _, why in checks.values() if why), None)
            yield (
                f"zone {zone_id}: {_words(collections.Counter(status for status, _ in checks.values()))}; false alarms"
                f" in at most {ALPHA:.0%} of runs (Bonferroni over {family} cells and split paths)"
                + (f"; no path was measured split: {unsplit}" if unsplit else "")
            )

        found = [[status for status, *_ in cells.values()] for cells in self._found.values()]
        found += [[status for status, _ in checks.values()] for checks in self._split.values()]
        if rate := false_alarms_of_any(found):
            yield rate

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._found or self._split:
            terminalreporter.section("zones")
            for line in self.lines():
                terminalreporter.write_line(line)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.upgraded() and session.exitstatus == 0:
            session.exitstatus = 1


def _words(count: Mapping[Status, int]) -> str:
    return ", ".join(f"{count[status]} {status}" for status in Status if count[status])


def _upgraded(cells: Mapping[str, _Cell]) -> list[str]:
    ids = list(cells)
    rejected = statistics.holm([1.0 if p is None else p for _, p, _ in cells.values()], ALPHA / LOOKS)
    return [ids[at] for at in sorted(rejected) if cells[ids[at]][0] is Status.INCONCLUSIVE]
