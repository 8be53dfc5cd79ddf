"""`conformance gate`: what a CI runs: measure within a budget, judge zone by zone, compare with what is expected.

The most telling cells come first, so that a budget that ends early has spent its time well. What is not measured by
then is said and never judged.
"""

import collections
import dataclasses
import itertools
import math
import re
import time

from conformance.catalogue import baseline as baselines
from conformance.catalogue import derive, documents, expectations
from conformance.commands import run, trace
from conformance.engine import benches, runs
from conformance.model import expectation, trial
from conformance.model import grid as grids
from conformance.model.errors import UserError
from conformance.model.expectation import Expected, Surprise
from conformance.model.setting import Cell
from conformance.model.verdict import Status, Verdict, judge, judge_zone, last_look, looks, refuse_blind
from conformance.model.zone import Zone
from conformance.reporting.text import gate as reporting
from conformance.support import files
from conformance.support.console import count, duration


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """The verdict on one cell of a zone, beside what the stack is known to do there."""

    verdict: Verdict
    expected: Expected | None
    #: transfers that timed out
    timeouts: int = 0

    @property
    def surprise(self):
        return expectation.compare(self.verdict, self.expected)

    @property
    def as_expected(self):
        """Whether it is a deviation that is known."""
        return self.expected is not None and self.verdict.status is self.expected.verdict


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """A zone's cells of this run: those that were measured in time, and those that were not."""

    zone: Zone
    scheme_id: str
    findings: tuple[Finding, ...]
    unmeasured: tuple[Cell, ...]

    def count(self):
        return collections.Counter(finding.verdict.status for finding in self.findings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """All that a gate found. `strict`: whatever is not known fails."""

    judged: tuple[Judged, ...]
    strict: bool
    #: whether the zones are of earlier results, and not those that ship
    baseline: bool = False
    #: the command that takes out of the stack's expected.json what does not happen any more
    gone: str = ""

    @property
    def findings(self):
        return [finding for judged in self.judged for finding in judged.findings]

    @property
    def surprises(self):
        return [finding for finding in self.findings if finding.surprise is not Surprise.NONE]

    @property
    def exit_status(self):
        """As conformance/cli/__init__.py says. A gate that learned nothing does not pass, strict or not."""
        statuses = {f.verdict.status for f in self.findings if not f.as_expected}
        if self.surprises:
            return 1
        if Status.ERROR in statuses:
            return 3
        unknown = bool(statuses & {Status.INCONCLUSIVE, Status.UNSUPPORTED}) or any(j.unmeasured for j in self.judged)
        nothing = Status.CONFORMS not in statuses and not any(f.as_expected for f in self.findings)
        return 4 if nothing or (self.strict and unknown) else 0


def run(
    algorithms, choice, *, grid, budget, shard, trials, most_trials, strict, baseline, results, workers, target,
    keep_traces, why, console, executor=None,
):  # fmt: skip
    """Measure, judge, write `target` (a folder, or None), show; returns the exit status. Raises UserError."""
    began = time.monotonic()
    if baseline == "":
        raise UserError("--baseline is empty", "name a results file, or leave it out")
    budget_s, part = seconds(budget), shares(shard)
    check_trials(trials)
    most = last_look(trials, most_trials)
    looks(trials, most)  # a mistake is named before anything is looked up
    bench = benches.find(choice)
    known = () if baseline else expectations.of(bench)
    shipped = [zone for _, zone in documents.judging(bench.profile)]
    zones = _zones(algorithms, bench, shipped, baseline)
    flat = [zone for own in zones.values() for zone in own]
    if grid != grids.SMOKE:
        grids.check(grid, flat, besides=[grids.SMOKE])
    work = share(order(zones, shipped, grid), *part)
    if not work:
        raise UserError(f"no zone of {', '.join(zones)} has cells of {grid} in shard {shard}", "choose another --grid")
    asked = plan(_questions(flat, work), trials=trials, most_trials=most, work=work)
    asked.refuse_blind()
    if target:
        files.check_writable(target, files.OTHER_FOLDER)
    console.print(
        f"gate: {bench.adapter.name}, {', '.join(zones)}: {count(len(work), 'cell')},"
        f" {trials} to {most} trials each" + (f", {duration(budget_s)}" if budget_s else ""),
        soft_wrap=True,
    )
    left_s = None if budget_s is None else max(budget_s - (time.monotonic() - began), 0.1)
    found = {
        answer.key: answer.measurements
        for answer in run.answers(asked, bench, results, workers, console, left_s, executor)
    }
    schemes = {algorithm: bench.scheme(algorithm).id for algorithm in zones}
    gone = expectation.gone_command(choice.stack, results, choice.options("stack"))
    outcome = Outcome(
        judged=tuple(judged(asked, found, known, schemes)),
        strict=strict,
        baseline=bool(baseline),
        gone=gone,
    )
    reporting.show(outcome, console)
    if target:
        series = reporting.write(outcome, [m for made in found.values() for m in made], target)
        console.print(f"reports: {target}", soft_wrap=True)
    violating = [f.verdict for f in outcome.surprises if f.verdict.status is Status.VIOLATES]
    if violating and why and choice.lab == "virtual" and not baseline:
        from conformance.commands import why as asking  # late: it draws, and what draws takes seconds to import

        reports = asking.of_violations([verdict.zone_id.split("/")[0] for verdict in violating], choice, console)
        if target and reports:
            reporting.add_why(outcome, series, reports, target)
    if keep_traces:
        profiles = {zone.id: zone.profile for zone in flat}
        cells = dict.fromkeys((v.zone_id.split("/")[0], profiles[v.zone_id], v.cell) for v in violating)
        trace.keep_some(cells, choice, keep_traces, console)
    return outcome.exit_status


def _zones(algorithms, bench, shipped, baseline):
    """{algorithm: its Zones}: those named, or all that the stack offers and zones exist for. Raises UserError."""
    there = shipped
    if baseline:
        there = [zone for _, zone in baselines.read(baseline, bench.adapter.name, bench.profile)]
    known = sorted({zone.algorithm for zone in there})
    wanted = algorithms or [a for a in bench.adapter.manifest.offered() if a in known]
    if not wanted:
        raise UserError(f"{bench.adapter.name} does not say which algorithms it has", "name them")
    for algorithm in wanted:
        if algorithm not in known:
            raise UserError(
                f"no {'baseline' if baseline else 'zone'} for algorithm {algorithm!r}",
                f"choose of {', '.join(known)}",
            )
    return {algorithm: [zone for zone in there if zone.algorithm == algorithm] for algorithm in dict.fromkeys(wanted)}


def _questions(zones, work):
    """The questions of all zones about this work, zone by zone."""
    return [
        CellQuestion(zone=zone, setting=setting, algorithm=algorithm)
        for zone in zones
        for algorithm, setting in work
        if (algorithm, setting.profile) == (zone.algorithm, zone.profile) and setting.cell in zone.intervals
    ]


def order(zones, others, grid):
    """[(algorithm, Setting)], the most telling first: smoke cells, then by bytes, which is what a trial costs.

    Of as many bytes those first whose interval is farthest from other algorithms'. `grid`: its name, or SMOKE for smoke
    cells only. Raises UserError.
    """
    ranked = []
    for algorithm, all_own in zones.items():
        for profile in dict.fromkeys(zone.profile for zone in all_own):
            own = [zone for zone in all_own if zone.profile == profile]
            smoke = {cell for zone in own for cell in zone.smoke}
            for cell in smoke if grid == grids.SMOKE else {c for zone in own for c in grids.within(grid, zone.cells)}:
                setting = documents.profile(profile, cell)
                cost, telling = setting.transfer_bytes, _telling(own, others, cell)
                ranked.append(((cell not in smoke, cost, algorithm, -telling, profile, cell), (algorithm, setting)))
    return [key for _, key in sorted(ranked, key=lambda pair: pair[0])]


def _telling(own, others, cell):
    """How far this cell tells an algorithm from the one it is most like: in widths of its interval, by any metric."""
    widest = {}
    for mine, theirs in itertools.product(own, others):
        there = theirs.profile == mine.profile and cell in mine.intervals and cell in theirs.intervals
        if there and theirs.metric == mine.metric and theirs.algorithm != mine.algorithm:
            width = derive.gap(mine.intervals[cell], theirs.intervals[cell])
            widest[theirs.algorithm] = max(width, widest.get(theirs.algorithm, width))
    return min(widest.values(), default=0.0)


def seconds(text):
    """Seconds of a length of time such as 10m, 90s, 1.5h; None of None. Raises UserError."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text.strip())
    found = float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]] if match else 0
    if not 0 < found < math.inf:
        raise UserError(f"--budget {text}", "give a length of time such as 90s, 10m or 1h")
    return found


def shares(text):
    """(which, of how many) of a shard such as 2/5. Raises UserError."""
    match = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", text.strip())
    if not match or int(match[1]) > int(match[2]):
        raise UserError(f"--shard {text}", "give which of how many, such as 2/5")
    return int(match[1]), int(match[2])


def share(work, which, of):
    """Every `of`-th of the work: each shard has its part of the most telling cells, and together they are all."""
    return work[which - 1 :: of]


def judged(asked, measured, known, schemes):
    """Yield a Judged for each zone of a Plan; `measured`: {(algorithm, Setting): measurements}."""
    verdicts = asked.zone_verdicts(measured)
    by_zone = itertools.groupby(asked.questions, lambda question: question.zone)
    for zone, questions in by_zone:
        settings = [question.setting for question in questions]
        yield Judged(
            zone=zone,
            scheme_id=schemes[zone.algorithm],
            findings=tuple(
                Finding(
                    verdict=verdict,
                    expected=expectation.find(known, zone.id, setting.cell),
                    timeouts=sum(m.outcome is trial.Outcome.TIMEOUT for m in measured[zone.algorithm, setting]),
                )
                for setting in settings
                if (verdict := verdicts[zone.id].verdicts.get(setting.cell))
            ),
            unmeasured=tuple(one.cell for one in settings if (zone.algorithm, one) not in measured),
        )
