"""The split part of zones: what follows from the heatmaps that ship, and how stacks are judged by it."""

import collections
import dataclasses
import functools
import random
import statistics

import pytest
from helpers import as_read, known_rates, measurements

from conformance.catalogue import documents
from conformance.model import digest
from conformance.model.errors import UserError
from conformance.model.judging import grid, verdict as verdicts
from conformance.model.judging.verdict import ALPHA, LOOKS, Status
from conformance.model.split import split_paths, split_zone
from conformance.model.trials.trial import Outcome

ALGORITHMS = ("bbrv1", "bbrv2", "bbrv3", "cubic", "reno")
#: digests of all intervals
PERMITTED = {
    "bbrv1/split": "0427cff99213dc85",
    "bbrv1/split-packets": "ca7a441ea4ca53bc",
    "bbrv2/split": "ef87ec50a6e815d2",
    "bbrv2/split-packets": "f7be46a60787dbee",
    "bbrv3/split": "f41aaeb1149de3fd",
    "bbrv3/split-packets": "f9fe5598cc674e1a",
    "cubic/split": "1ad70813a6e0e493",
    "cubic/split-packets": "6bae7f25ef216143",
    "reno/split": "d75b7185e01910dd",
    "reno/split-packets": "31dbc16e8d20af3f",
}


@functools.cache
def zone(algorithm, profile="atc25"):
    """Return the checks of the split part of an algorithm's zone."""
    return documents.split_part(f"{algorithm}/{documents.stem('split', profile)}")


def within(checks, cells):
    return [check for check in checks if set(check.cells) <= set(cells)]


def like(algorithm, cells, n=20, outcome=Outcome.OK):
    """Return {cell: measurements} like the reference's in an algorithm's heatmap: five values, repeated."""
    intervals = documents.zone_of(algorithm).intervals
    found = {}
    for cell in cells:
        b = intervals[cell].basis
        values = [b.min, (b.min + b.median) / 2, b.median, (b.median + b.max) / 2, b.max]
        values = [values[at % 5] for at in range(n)]
        found[cell] = measurements(values, cell=cell, algorithm=algorithm, outcome=outcome)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["atc25", "packets"])
def test_there_is_one_for_each_algorithm_and_what_it_permits_stays(profile):
    parts = documents.split_checks(profile)
    assert [checks[0].heatmap.algorithm for checks in parts.values()] == list(ALGORITHMS)
    permitted = {
        zone_id: digest.of_value(
            [
                [f"{check.where}: {split_zone.called(what)}", i.low, i.high]
                for check in checks
                for what, i in check.permitted.items()
            ]
        )
        for zone_id, checks in parts.items()
    }
    assert permitted == {zone_id: PERMITTED[zone_id] for zone_id in permitted}


@pytest.mark.parametrize("profile", ["atc25", "packets"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_checks_are_a_path_of_each_class_and_shares_of_grids(algorithm, profile):
    own = zone(algorithm, profile)
    paths = [check for check in own if isinstance(check, split_zone.PathCheck)]
    assert [check.path.path_class for check in paths] == list(split_paths.PathClass)
    grids = {check.grid for check in own if isinstance(check, split_zone.ShareCheck)}
    assert grids == ({"10mbps", "full"} if profile == "atc25" else {"10mbps"})
    intervals = own[0].heatmap.intervals
    for check in paths:
        # A stack inside the heatmap's zone in these cells is inside here, too.
        low = min(intervals[cell].low for cell in check.path.segments)
        high = min(intervals[cell].high for cell in check.path.segments)
        assert (check.permitted["split"].low, check.permitted["split"].high) == (low, high)


@pytest.mark.parametrize("profile", ["atc25", "packets"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_cells_permit_is_permitted(algorithm, profile):
    """Gains are ratios of cells, so one margin was not enough: of 100 such stacks 15 were outside a share."""
    draw = random.Random(3)
    checks = within(zone(algorithm, profile), grid.cells("10mbps"))
    intervals = checks[0].heatmap.intervals
    for _ in range(20):
        ends = draw.choice([(0.0, 1.0), (0.0,), (1.0,), (0.2, 0.5, 0.8)])
        rates = {
            cell: (intervals[cell].low + draw.choice(ends) * (intervals[cell].high - intervals[cell].low))
            * cell.bandwidth_mbps
            for cell in grid.cells("10mbps")
        }
        for check in checks:
            for what, value in check.predicted(known_rates(rates)).items():
                if value is not None:
                    assert check.permitted[what].low - 1e-9 <= value[0] <= check.permitted[what].high + 1e-9


def test_a_check_violates_only_if_one_of_its_cells_does():
    """A steady stack is clear of the interval, but the reference's 20 trials spread: chance explains it."""
    own, statuses = zone("bbrv3"), collections.Counter()
    paths, intervals = [check for check in own if isinstance(check, split_zone.PathCheck)], own[0].heatmap.intervals
    for factor in (0.88, 1.12):
        for check in paths:
            measured = {
                cell: measurements([intervals[cell].basis.median * factor] * 20, cell=cell, algorithm="bbrv3")
                for cell in check.cells
            }
            found = split_zone.judge(check, measured, family=36)
            bad = [verdicts.judge(own[0].heatmap, cell, measured[cell], 36).status.against for cell in check.cells]
            assert found.status.against <= any(bad)
            statuses[found.status, "chance explains" in found.reason] += 1
    assert statuses[Status.VIOLATES, False] and statuses[Status.INCONCLUSIVE, True]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_accepts_its_own_reference(algorithm):
    own = zone(algorithm)
    measured = like(algorithm, grid.cells("full"))
    found = {check.place.id: split_zone.judge(check, measured, family=150) for check in own}
    assert {v.status for v in found.values()} <= {Status.CONFORMS, Status.COMPATIBLE, Status.INCONCLUSIVE}
    assert sum(v.status.passes for v in found.values()) >= len(found) - 1


@pytest.mark.parametrize(
    ("algorithm", "other", "least"),
    [(a, b, 5) for a in ("bbrv1", "bbrv2", "bbrv3") for b in ("cubic", "reno")]
    + [(b, a, 5) for a in ("bbrv1", "bbrv2", "bbrv3") for b in ("cubic", "reno")]
    + [("bbrv1", "bbrv2", 1), ("bbrv1", "bbrv3", 1), ("bbrv3", "bbrv1", 1)],
)
def test_rejects_other_algorithms_at_10_mbps(algorithm, other, least):
    """It does not tell CUBIC from Reno, nor BBRv2 from BBRv3, because a proxy does the same for both. BBRv1 is not
    outside the zone of BBRv2, either, which holds ranges of trials."""
    own, cells = zone(algorithm), grid.cells("10mbps")
    measured = like(other, cells)
    found = [split_zone.judge(check, measured, family=30).status for check in within(own, cells)]
    assert found.count(Status.VIOLATES) >= least


def with_packets_of(packet_bytes, measured):
    """Return the same trials over UDP, with packets that carry `packet_bytes` each."""

    def changed(m, setting):
        counted = {"server": {}, "client": {"eth0": {"rx_bytes": 0, "rx_packets": m.metrics["bytes"] / packet_bytes}}}
        trial = dataclasses.replace(m.trial, setting=setting)
        return as_read(m, trial=trial, evidence={**m.evidence, "interfaces": counted})

    settings = {cell: documents.profile("packets", cell) for cell in measured}
    return {cell: [changed(m, settings[cell]) for m in made] for cell, made in measured.items()}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["cubic", "reno"])
def test_a_path_is_predicted_from_what_full_packets_would_have(algorithm):
    """A sender like Linux but with packets of 1200 bytes is inside the zone in all cells, and so in all paths."""
    own, cells = zone(algorithm, "packets"), grid.cells("10mbps")
    heatmap = documents.zone_of(algorithm, profile="packets").intervals
    made = {
        cell: measurements(
            [value * heatmap[cell].small_packets for value in heatmap[cell].basis.values[:20]],
            cell=cell, algorithm=algorithm,
        )
        for cell in cells
    }  # fmt: skip

    def judged(checks, packet_bytes):
        measured = with_packets_of(packet_bytes, made)
        return [split_zone.judge(check, measured, family=66) for check in within(checks, cells)]

    found = judged(own, 1200)
    assert {one.status for one in found} <= {Status.CONFORMS, Status.COMPATIBLE}
    # Without loss, no window limits the rate, so the size of packets does not matter.
    sized = [one.reason.endswith("(rates as with packets of 1448 bytes)") for one in found]
    assert sized.count(False) == 1
    sizeless = {cell: dataclasses.replace(i, small_packets=1.0) for cell, i in heatmap.items()}
    ignorant = split_zone.checks(dataclasses.replace(own[0].heatmap, intervals=sizeless))
    for unsized in (judged(ignorant, 1200), judged(own, 1448)):
        assert all("as with packets" not in one.reason for one in unsized)
        assert not all(one.status.passes for one in unsized)


def test_cells_limit_the_checks():
    own = zone("cubic")
    assert len(within(own, grid.cells("10mbps"))) == 10
    assert len(within(own, grid.cells("full"))) == 14
    assert [c.place.id for c in within(own, grid.cells("10mbps-40ms-0pct,10mbps-80ms-0pct"))] == [
        "zero-loss-10mbps-40ms-0pct+10mbps-40ms-0pct"
    ]


def test_faults_are_errors_and_unlike_runs_are_refused():
    own = zone("cubic")
    check = own[0]
    good = like("cubic", check.cells)
    assert split_zone.judge(check, good).status.passes
    first = check.cells[0]

    def judged(**changes):
        return split_zone.judge(check, {**good, **changes.get("cells", {})})

    assert judged(cells={first: []}).status is Status.ERROR
    assert "10mbps-100ms-0pct" in judged(cells={first: []}).reason
    broken = measurements([0.5], cell=first, outcome=Outcome.ERROR, message="the guest died")
    assert judged(cells={first: broken}).status is Status.ERROR
    unsupported = measurements([0.5], cell=first, outcome=Outcome.UNSUPPORTED, message="not offered")
    assert judged(cells={first: unsupported}).status is Status.UNSUPPORTED
    with pytest.raises(UserError, match="different runs"):
        judged(cells={first: measurements([0.5] * 5, cell=first, kernel_digest="8" * 16)})


@pytest.mark.slow
def test_too_few_trials_never_violate_and_a_timeout_is_a_bound():
    own = zone("cubic")
    check = own[2]
    for family, least in ((1, 10), (3, 12), (30, 15), (36, 15), (156, 17)):
        for n, status in ((5, Status.INCONCLUSIVE), (least - 1, Status.INCONCLUSIVE), (least, Status.VIOLATES)):
            found = split_zone.judge(check, like("bbrv1", check.cells, n), family=family)
            assert (found.status, found.n) == (status, n), family
        # A conforming stack passes from the start.
        assert split_zone.judge(check, like("cubic", check.cells, 5), family=family).status.passes
    timed_out = {**like("cubic", check.cells), **like("cubic", check.cells[:1], outcome=Outcome.TIMEOUT)}
    found = split_zone.judge(check, timed_out)
    assert found.status is Status.INCONCLUSIVE
    assert found.reason == "split, predicted: a transfer timed out, so only a bound is known"


def spread(cells, generator, n=5):
    """Return {cell: measurements} around the permitted values, which spread in some cells and hardly in others."""
    permitted = documents.zone_of("cubic").intervals
    found = {}
    for cell in cells:
        width = generator.choice((0.0001, 0.02, 0.3))
        middle = permitted[cell].low * generator.uniform(1.0, 1.15)
        found[cell] = measurements([middle * generator.uniform(1 - width, 1 + width) for _ in range(n)], cell=cell)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("packet_bytes", [None, 1200])
def test_cells_that_are_not_in_doubt_could_not_make_a_verdict_clear(packet_bytes):
    """More trials of such cells would not change their values, so a check that is open stays open."""
    own, open_ones = zone("cubic", "packets" if packet_bytes else "atc25"), 0

    def made(measured):
        return with_packets_of(packet_bytes, measured) if packet_bytes else measured

    for seed in range(5):
        generator = random.Random(seed)
        measured = made(spread(documents.cells("10mbps"), generator, n=generator.choice((5, 13, 20))))
        for check in within(own, measured):
            verdict = split_zone.judge(check, measured, family=36, more=True)
            if verdict.status is not Status.INCONCLUSIVE:
                continue
            cells = split_zone.unclear(check, verdict, measured)
            assert cells and cells <= set(check.cells)
            exact = {
                cell: measurements([statistics.median(m.metrics["utilization"] for m in found)] * 60, cell=cell)
                for cell, found in measured.items()
                if cell not in cells
            }
            after = split_zone.judge(check, {**measured, **made(exact)}, family=36, more=True)
            status = {finding.what: finding.status for finding in after.parts}
            found = {finding.what for finding in verdict.parts if finding.status is Status.INCONCLUSIVE}
            assert {status[what] for what in found} == {Status.INCONCLUSIVE}
            open_ones += 1
    assert open_ones > 10


@pytest.mark.slow
def test_the_split_part_cries_wolf_in_at_most_one_run_of_a_hundred():
    """All paths judge a stack whose medians are on the bounds of the zone, which is the worst that is permitted."""
    own, permitted = zone("cubic"), documents.zone_of("cubic").intervals
    paths = [check for check in own if isinstance(check, split_zone.PathCheck)]
    cells = {cell for check in paths for cell in check.cells}
    generator = random.Random(1)
    alarms = collections.Counter()
    for _ in range(300):
        measured = {}
        for cell in sorted(cells):
            rates = [permitted[cell].low * generator.uniform(0.9, 1.1) for _ in range(20)]
            measured[cell] = measurements(rates, cell=cell)
        # The first family is the number of settings, the second so small that intervals are at 90 %, as in the past.
        for family in (len(cells), ALPHA / LOOKS / 0.1):
            found = {split_zone.judge(check, measured, family=family).status for check in paths}
            alarms[family] += Status.VIOLATES in found
    controlled, uncontrolled = alarms.values()
    assert controlled <= 3
    assert uncontrolled >= 15
