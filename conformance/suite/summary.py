"""At the end of a session: the verdict on each zone as a whole, its cells taken together.

A test judges one cell, as strictly as if it were the first to violate (Bonferroni, the first step of Holm's procedure).
When all cells are known, the later steps may find a cell in violation that its own test had to call inconclusive.
"""

import collections

from conformance.model import statistics
from conformance.model.verdict import ALPHA, LOOKS, Status, false_alarms, false_alarms_of_any

#: a report's attribute that holds [zone id, cell id, status, p, whether it is known to violate]. No property: these are
#: in JUnit's XML, and it is from xdist's workers that it must come, as JSON.
TOLD = "conformance_verdict"
#: the same of the split part: [zone id, check id, status, settings that the zone is judged by, why nothing is split]
SPLIT_TOLD = "conformance_split_verdict"


def told(verdict, expected):
    """What TOLD holds of a verdict, and of what was Expected."""
    known = expected is not None and expected.verdict is Status.VIOLATES
    return [verdict.zone_id, verdict.cell.id, str(verdict.status), verdict.p, known]


def split_told(zone, check, verdict, family, unsplit):
    """The same of a check of the split part. `unsplit`: why its path was not measured, or None."""
    return [zone.id, check.id, str(verdict.status), family, unsplit]


class Zones:
    """Collects the verdicts of a session, of its workers' too."""

    def __init__(self):
        self._found, self._split = {}, {}

    def pytest_runtest_logreport(self, report):
        if value := getattr(report, TOLD, None):
            zone_id, cell_id, status, p, known = value
            self._found.setdefault(zone_id, {})[cell_id] = (Status(status), p, known)
        if value := getattr(report, SPLIT_TOLD, None):
            zone_id, check_id, status, family, unsplit = value
            self._split.setdefault((zone_id, family), {})[check_id] = (Status(status), unsplit)

    def upgraded(self):
        """{zone id: ids of inconclusive cells that violate, now that all are known, and are not known to}."""
        late = {
            zone_id: [cell_id for cell_id in _upgraded(cells) if not cells[cell_id][2]]
            for zone_id, cells in self._found.items()
        }
        return {zone_id: cells for zone_id, cells in late.items() if cells}

    def lines(self):
        """One line for each zone, and one for all."""
        for zone_id, cells in sorted(self._found.items()):
            late = _upgraded(cells)
            count = collections.Counter(
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

        zones = (*self._found.values(), *self._split.values())
        if rate := false_alarms_of_any([status for status, *_ in zone.values()] for zone in zones):
            yield rate

    def pytest_terminal_summary(self, terminalreporter):
        if self._found or self._split:
            terminalreporter.section("zones")
            for line in self.lines():
                terminalreporter.write_line(line)

    def pytest_sessionfinish(self, session):
        if self.upgraded() and session.exitstatus == 0:
            session.exitstatus = 1


def _words(count):
    return ", ".join(f"{count[status]} {status}" for status in Status if count[status])


def _upgraded(cells):
    ids = list(cells)
    rejected = statistics.holm([1.0 if cells[i][1] is None else cells[i][1] for i in ids], ALPHA / LOOKS)
    return [ids[at] for at in sorted(rejected) if cells[ids[at]][0] is Status.INCONCLUSIVE]
