"""The split part of zones: the files that ship, how they are derived, and how stacks are judged by them."""

import collections
import copy
import dataclasses
import functools
import random
import statistics

import pytest
from helpers import changed, measurements, scheme

from conformance.catalogue import derive, derive_split, documents
from conformance.model import grid
from conformance.model.errors import UserError
from conformance.model.proxy import Proxy
from conformance.model.split import split_document, split_paths, split_zone
from conformance.model.trial import Outcome
from conformance.model.verdict import ALPHA, LOOKS, Status
from conformance.model.zone import Basis
from conformance.support import schema

ALGORITHMS = ("bbrv1", "bbrv2", "bbrv3", "cubic", "reno")
FILES = [path for profile in ("atc25", "packets") for path in documents.zone_files("split", profile)]


@functools.cache
def zone(algorithm, profile="atc25"):
    (path,) = [p for p in documents.zone_files("split", profile) if p.parent.name == algorithm]
    return documents.split_zone(path)


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


def test_there_is_one_for_each_algorithm_and_profile():
    assert sorted((path.parent.name, path.stem) for path in FILES) == [
        (algorithm, stem) for algorithm in ALGORITHMS for stem in ("split", "split-packets")
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_follows_the_stated_rule_and_shipped_profile(path):
    found = documents.any_zone(path)
    assert isinstance(found, split_zone.SplitZone)
    setting = documents.profile(found.profile, grid.cells("10mbps")[0])
    assert (found.profile_digest, found.transfer_s) == (setting.profile_digest, setting.transfer_s)
    assert found.margin_rule == derive_split.margin_rule(any(check.measured for check in found.checks))
    paths = [check for check in found.checks if isinstance(check, split_zone.PathCheck)]
    assert [check.path.path_class for check in paths] == list(split_paths.PathClass)
    grids = {check.grid for check in found.checks if isinstance(check, split_zone.ShareCheck)}
    assert grids == ({"10mbps", "full"} if found.profile == "atc25" else {"10mbps"})
    heatmap = documents.zone_of(found.algorithm, profile=found.profile)
    for check in paths:
        # A stack inside the heatmap's zone in these cells is inside here, too.
        low = min(heatmap.intervals[cell].low for cell in (check.path.s1, check.path.s2))
        high = min(heatmap.intervals[cell].high for cell in (check.path.s1, check.path.s2))
        assert (check.permitted["split"].low, check.permitted["split"].high) == pytest.approx((low, high), abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_accepts_its_own_reference(algorithm):
    own = zone(algorithm)
    measured = like(algorithm, grid.cells("full"))
    found = {check.id: split_zone.judge(own, check, measured, family=150) for check in own.checks}
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
    found = [split_zone.judge(own, check, measured, family=30).status for check in own.checks_within(cells)]
    assert found.count(Status.VIOLATES) >= least


def with_packets_of(packet_bytes, measured):
    """Return the same trials over UDP, with packets that carry `packet_bytes` each."""

    def changed(m):
        counted = {"client": {"eth0": {"rx_packets": m.metrics["bytes"] / packet_bytes}}}
        trial = dataclasses.replace(m.trial, setting=documents.profile("packets", m.trial.setting.cell))
        return dataclasses.replace(m, trial=trial, evidence={**m.evidence, "interfaces": counted})

    return {cell: [changed(m) for m in made] for cell, made in measured.items()}


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

    def judged(zone, packet_bytes):
        measured = with_packets_of(packet_bytes, made)
        return [split_zone.judge(zone, check, measured, family=66) for check in own.checks_within(cells)]

    assert set(own.small_packets) == {cell for cell in cells if heatmap[cell].small_packets != 1}
    found = judged(own, 1200)
    assert {one.status for one in found} <= {Status.CONFORMS, Status.COMPATIBLE}
    # Without loss, no window limits the rate, so the size of packets does not matter.
    sized = [one.reason.endswith("(rates as with packets of 1448 bytes)") for one in found]
    assert sized.count(False) == 1
    for unsized in (judged(dataclasses.replace(own, small_packets={}), 1200), judged(own, 1448)):
        assert all("as with packets" not in one.reason for one in unsized)
        assert not all(one.status.passes for one in unsized)


def test_cells_limit_the_checks():
    own = zone("cubic")
    assert len(own.checks_within(grid.cells("10mbps"))) == 10
    assert len(own.checks_within(grid.cells("full"))) == 14
    assert [c.id for c in own.checks_within(grid.cells("10mbps-40ms-0pct,10mbps-80ms-0pct"))] == [
        "zero-loss-10mbps-40ms-0pct+10mbps-40ms-0pct"
    ]


def test_faults_are_errors_and_unlike_runs_are_refused():
    own = zone("cubic")
    check = own.checks[0]
    good = like("cubic", check.cells)
    assert split_zone.judge(own, check, good).status.passes
    first = check.cells[0]

    def judged(**changes):
        return split_zone.judge(own, check, {**good, **changes.get("cells", {})})

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
    check = own.checks[0]
    for family, least in ((1, 10), (3, 12), (30, 15), (36, 15), (156, 17)):
        for n, status in ((5, Status.INCONCLUSIVE), (least - 1, Status.INCONCLUSIVE), (least, Status.VIOLATES)):
            found = split_zone.judge(own, check, like("bbrv1", check.cells, n), family=family)
            assert (found.status, found.n) == (status, n), family
        # A conforming stack passes from the start.
        assert split_zone.judge(own, check, like("cubic", check.cells, 5), family=family).status.passes
    timed_out = {**like("cubic", check.cells), **like("cubic", [check.path.end_to_end], outcome=Outcome.TIMEOUT)}
    found = split_zone.judge(own, check, timed_out)
    assert found.status is Status.INCONCLUSIVE
    assert found.reason == "end-to-end, predicted: a transfer timed out, so only a bound is known"


def reference(n=5, **changes):
    made = []
    for cell in grid.cells("10mbps"):
        values = [0.5 + 0.01 * at for at in range(n)]
        made += measurements(values, cell=cell, **changes)
    return made


def test_derives_what_the_schema_and_the_reader_take():
    document = derive_split.derive_split(reference(), "cubic", "a version")
    schema.check("split-zone", document, "here")
    made = split_document.from_json(document, "here")
    assert made.default_grid == "10mbps"
    assert {getattr(check, "grid", "10mbps") for check in made.checks} == {"10mbps"}
    flat = made.checks[0].permitted["split"]
    assert (flat.low, flat.high) == derive.interval([Basis.of("r", [0.5, 0.51, 0.52, 0.53, 0.54])])
    # All cells are alike, so no path gains.
    gaining = [c for c in made.checks if isinstance(c, split_zone.ShareCheck) and c.filter.gain]
    assert {(p.low, p.high) for check in gaining for p in check.permitted.values()} == {(0.0, 0.0)}
    assert derive_split.derive_split(reference(), "cubic", "a version") == document


def test_what_cannot_be_a_reference_is_refused():
    for bad, words in (
        ([], "no measurements"),
        (reference(n=4), "fewer than 5"),
        (reference()[:-5], "lack cells of grid 10mbps"),
        (reference(outcome=Outcome.TIMEOUT), "has outcome timeout"),
        ([*reference(), *reference(kernel_digest="8" * 16)], "results hold 2 runs of "),
    ):
        with pytest.raises(UserError, match=words):
            derive_split.derive_split(bad, "cubic", "a version")


def test_a_document_that_contradicts_itself_is_refused():
    document = derive_split.derive_split(reference(), "cubic", "a version")

    def refused(words, change):
        broken = copy.deepcopy(document)
        change(broken)
        with pytest.raises(UserError, match=words):
            split_document.from_json(broken, "here")

    refused("of class I near, not II", lambda d: d["paths"][0].update({"class": "II"}))
    refused("/paths/0: low", lambda d: d["paths"][0]["split"].update(low=2))
    refused("median", lambda d: d["paths"][0]["split"].update(low=0.53))
    refused("not among /references", lambda d: d["paths"][0]["split"]["basis"].update(reference="x"))
    refused("is listed twice", lambda d: d["shares"].append(d["shares"][0]))
    refused("grid 'x' is not known", lambda d: d["shares"][0].update(grid="x"))
    refused("amounts to no cell", lambda d: d["paths"][4].update(path="10mbps-100ms-0pct+10mbps-80ms-0pct"))
    refused("/path_profile_digest: missing", lambda d: d["paths"][0].update(measured=d["paths"][0]["split"]))
    refused("no path of class", lambda d: d["shares"][0].update(grid="10mbps-1ms-0pct"))


#: utilizations measured over the split path itself: 20 trials with a median of 0.75
SPLIT = [0.71, 0.72, 0.73, 0.74, 0.745, 0.755, 0.76, 0.77, 0.78, 0.79] * 2


def through(values, path, outcome=Outcome.OK, message=None, **overrides):
    """Return trials over a split path; `overrides` change its setting."""
    made = []
    for m in measurements(values, outcome=outcome, message=message):
        setting = changed(documents.split_path("atc25", path.segments), **overrides)
        made.append(dataclasses.replace(m, trial=dataclasses.replace(m.trial, setting=setting)))
    return made


@pytest.fixture
def measured_zone():
    """Return a zone whose reference gains a lot: 0.5 to 0.54 in all cells, 0.71 to 0.79 over the split path I near."""
    path = split_paths.representative_paths(10)["I near"]
    document = derive_split.derive_split([*reference(), *through(SPLIT, path)], "cubic", "a version")
    schema.check("split-zone", document, "here")
    return split_document.from_json(document, "here")


def test_a_path_that_was_measured_is_derived_as_a_cell_is(measured_zone):
    check, *others = measured_zone.checks
    found = check.measured
    assert (found.low, found.high) == derive.interval([found.basis])
    assert found.basis == Basis.of("linux-6.12.0-split", SPLIT)
    assert "splitter" in measured_zone.references["linux-6.12.0-split"]["what"]
    assert not any(other.measured for other in others)
    assert measured_zone.path_profile_digest == documents.split_path("atc25", check.path.segments).profile_digest
    assert measured_zone.margin_rule == derive_split.margin_rule(measured=True)
    assert measured_zone.summary == "cubic/split: 6 paths (1 measured), 4 shares of paths"


@pytest.mark.slow
def test_paths_measured_in_other_ways_are_no_reference():
    path = split_paths.representative_paths(10)["I near"]
    plain = derive_split.derive_split(reference(), "cubic", "a version")
    for changes in ({"proxy": None}, {"proxy": Proxy(to_client="reno")}, {"queue_sized_by": "segment"}):
        document = derive_split.derive_split([*reference(), *through(SPLIT, path, **changes)], "cubic", "a version")
        assert document == plain
    with pytest.raises(UserError, match="has fewer than 5"):
        derive_split.derive_split([*reference(), *through(SPLIT[:4], path)], "cubic", "a version")
    with pytest.raises(UserError, match=r"in path 10mbps-100ms-0pct\+10mbps-1ms-4pct has outcome error"):
        derive_split.derive_split([*reference(), *through(SPLIT, path, Outcome.ERROR)], "cubic", "a version")


@pytest.mark.parametrize(
    ("values", "status", "words"),
    [
        (SPLIT[:5], Status.CONFORMS, "inside the zone"),
        # This is a mutant: end to end and in each cell it is like the reference, but the proxy does not help it.
        ([0.51, 0.52, 0.53, 0.54, 0.55], Status.VIOLATES, "split, measured: below the zone"),
        ([0.97, 0.98, 0.98, 0.98, 0.99], Status.VIOLATES, "split, measured: above the zone"),
        ([0.51, 0.52, 0.73, 0.74, 0.75], Status.COMPATIBLE, "its spread reaches beyond"),
        ([0.51, 0.52, 0.53, 0.74, 0.75], Status.INCONCLUSIVE, "more trials needed"),
        ([0.51, 0.52, 0.53, 0.54], Status.INCONCLUSIVE, "4 trials are too few"),
    ],
)
def test_a_measured_path_is_judged_as_a_cell_is(measured_zone, values, status, words):
    check = measured_zone.checks[0]
    cells = {cell: measurements([0.5, 0.51, 0.52, 0.53, 0.54], cell=cell) for cell in check.cells}
    found = split_zone.judge(measured_zone, check, cells, through(values, check.path), family=36)
    assert (found.status, len(found.findings)) == (status, 3)
    assert words in found.reason
    last = found.findings[-1]
    assert (last.what, last.status, last.confidence) == (split_zone.MEASURED, status, 0.9)
    assert (last.p is not None) == (status is Status.VIOLATES)
    # Among many other checks, the rank sum decides, and five trials are too few.
    crowded = split_zone.judge(measured_zone, check, cells, through(values, check.path), family=10**4).status
    assert crowded is (Status.INCONCLUSIVE if status is Status.VIOLATES else status)


def test_what_was_not_measured_split_is_not_judged_and_faults_are_errors(measured_zone):
    check = measured_zone.checks[0]
    cells = {cell: measurements([0.5, 0.51, 0.52, 0.53, 0.54], cell=cell) for cell in check.cells}

    def judged(made):
        return split_zone.judge(measured_zone, check, cells, made)

    assert (judged(None).status, len(judged(None).findings)) == (Status.CONFORMS, 2)
    assert judged([]).status is Status.ERROR
    late = through(SPLIT[:5], check.path, Outcome.TIMEOUT)
    unseen = judged([dataclasses.replace(m, metrics={}) for m in late])
    assert (unseen.status, unseen.findings) == (Status.INCONCLUSIVE, ())
    assert unseen.reason == "split, measured: a transfer timed out, so its utilization is not known"
    assert "4pct, split" in judged([]).reason
    killed = through([0.7], check.path, Outcome.ERROR, "the proxy died with status -9 during the transfer")
    found = judged([*through(SPLIT[:4], check.path), *killed])
    assert (found.status, found.findings) == (Status.ERROR, ())
    assert found.reason == "the proxy died with status -9 during the transfer (1 of 5 trials)"
    assert judged(through([0.7], check.path, Outcome.UNSUPPORTED, "not offered")).status is Status.UNSUPPORTED
    slow = judged(through([0.01] * 5, check.path, Outcome.TIMEOUT, "late"))
    assert (slow.status, slow.reason) == (Status.VIOLATES, "split, measured: below the zone")
    for unlike in (through(SPLIT, check.path, queue="fq_codel"), through(SPLIT, check.path, proxy=None)):
        with pytest.raises(UserError, match="another atc25 profile"):
            judged(unlike)
    with pytest.raises(UserError, match="different runs or paths"):
        judged(through(SPLIT, measured_zone.checks[1].path))
    # A path without a reference of its own is judged by predictions, even if it was measured.
    unasked = measured_zone.checks[1]
    assert len(split_zone.judge(measured_zone, unasked, cells, through(SPLIT, unasked.path)).findings) == 2


def spread(cells, generator, n=5):
    """Return {cell: measurements} around the permitted values, which spread in some cells and hardly in others."""
    permitted = documents.zone_of("cubic").intervals
    found = {}
    for cell in cells:
        width = generator.choice((0.0001, 0.02, 0.3))
        middle = permitted[cell].low * generator.uniform(1.0, 1.15)
        found[cell] = measurements([middle * generator.uniform(1 - width, 1 + width) for _ in range(n)], cell=cell)
    return found


@pytest.mark.parametrize("packet_bytes", [None, 1200])
def test_cells_that_are_not_in_doubt_could_not_make_a_verdict_clear(packet_bytes):
    """More trials of such cells would not change their values, so a check that is open stays open."""
    own, open_ones = zone("cubic", "packets" if packet_bytes else "atc25"), 0

    def made(measured):
        return with_packets_of(packet_bytes, measured) if packet_bytes else measured

    for seed in range(5):
        generator = random.Random(seed)
        measured = made(spread(documents.cells("10mbps"), generator, n=generator.choice((5, 13, 20))))
        for check in own.checks_within(measured):
            verdict = split_zone.judge(own, check, measured, family=36, more=True)
            if verdict.status is not Status.INCONCLUSIVE:
                continue
            of_path, cells = split_zone.unclear(own, check, verdict, measured)
            assert cells and cells <= set(check.cells) and not of_path
            exact = {
                cell: measurements([statistics.median(m.metrics["utilization"] for m in found)] * 200, cell=cell)
                for cell, found in measured.items()
                if cell not in cells
            }
            after = split_zone.judge(own, check, {**measured, **made(exact)}, family=36, more=True)
            status = {finding.what: finding.status for finding in after.findings}
            found = {finding.what for finding in verdict.findings if finding.status is Status.INCONCLUSIVE}
            assert {status[what] for what in found} == {Status.INCONCLUSIVE}
            open_ones += 1
    assert open_ones > 10


@pytest.mark.slow
def test_the_split_part_cries_wolf_in_at_most_one_run_of_a_hundred():
    """All paths judge a stack whose medians are on the bounds of the zone, which is the worst that is permitted."""
    own, permitted = zone("cubic"), documents.zone_of("cubic").intervals
    paths = [check for check in own.checks if isinstance(check, split_zone.PathCheck)]
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
            found = {split_zone.judge(own, check, measured, family=family).status for check in paths}
            alarms[family] += Status.VIOLATES in found
    controlled, uncontrolled = alarms.values()
    assert controlled <= 3
    assert uncontrolled >= 15


def test_the_scheme_names_what_is_judged():
    assert zone("cubic").references["linux-7.2.11"]["scheme"] == scheme(kernel_release="7.2.11").id
