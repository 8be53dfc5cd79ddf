"""The split part of zones: those that ship, how they are derived, and how stacks are judged by them."""

import copy
import functools

import pytest
from helpers import measurements, scheme

from conformance import derive, derive_split, schema, specs
from conformance.model import grid, split, split_zone
from conformance.model.errors import UserError
from conformance.model.trial import Outcome
from conformance.model.verdict import Status

ALGORITHMS = ("bbrv1", "bbrv2", "bbrv3", "cubic", "reno")
FILES = [path for profile in ("atc25", "packets") for path in specs.zone_files("split", profile)]


@functools.cache
def zone(algorithm, profile="atc25"):
    (path,) = [p for p in specs.zone_files("split", profile) if p.parent.name == algorithm]
    return specs.split_zone(path)


def like(algorithm, cells, n=5, outcome=Outcome.OK):
    """{cell: measurements} as the reference of an algorithm's heatmap made them."""
    intervals = specs.zone_of(algorithm).intervals
    found = {}
    for cell in cells:
        b = intervals[cell].basis
        values = [b["min"], (b["min"] + b["median"]) / 2, b["median"], (b["median"] + b["max"]) / 2, b["max"]][:n]
        found[cell] = measurements(values, cell=cell, algorithm=algorithm, outcome=outcome)
    return found


def test_there_is_one_for_each_algorithm_and_profile():
    assert sorted((path.parent.name, path.stem) for path in FILES) == [
        (algorithm, stem) for algorithm in ALGORITHMS for stem in ("split", "split-packets")
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_follows_the_stated_rule_and_shipped_profile(path):
    found = specs.any_zone(path)
    assert isinstance(found, split_zone.SplitZone)
    setting = specs.profile(found.profile, grid.cells("10mbps")[0])
    assert (found.profile_digest, found.transfer_s) == (setting.profile_digest, setting.transfer_s)
    assert found.margin_rule == derive_split.margin_rule()
    paths = [check for check in found.checks if isinstance(check, split_zone.PathCheck)]
    assert [check.path.path_class for check in paths] == list(split.PathClass)
    grids = {check.grid for check in found.checks if isinstance(check, split_zone.ShareCheck)}
    assert grids == ({"10mbps", "full"} if found.profile == "atc25" else {"10mbps"})
    heatmap = specs.zone_of(found.algorithm, profile=found.profile)
    for check in paths:
        # Whoever is inside the heatmap's zone in these cells is inside here.
        low = min(heatmap.intervals[cell].low for cell in (check.path.s1, check.path.s2))
        high = min(heatmap.intervals[cell].high for cell in (check.path.s1, check.path.s2))
        assert (check.permitted["split"].low, check.permitted["split"].high) == pytest.approx((low, high), abs=2e-3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_accepts_its_own_reference(algorithm):
    own = zone(algorithm)
    measured = like(algorithm, grid.cells("full"))
    found = {check.id: split_zone.judge(own, check, measured) for check in own.checks}
    assert {v.status for v in found.values()} <= {Status.CONFORMS, Status.INCONCLUSIVE}
    assert [v.status for v in found.values()].count(Status.CONFORMS) >= len(found) - 1


@pytest.mark.parametrize(
    ("algorithm", "other", "least"),
    [(a, b, 5) for a in ("bbrv1", "bbrv2", "bbrv3") for b in ("cubic", "reno")]
    + [(b, a, 5) for a in ("bbrv1", "bbrv2", "bbrv3") for b in ("cubic", "reno")]
    + [("bbrv1", "bbrv2", 1), ("bbrv2", "bbrv1", 1), ("bbrv1", "bbrv3", 1), ("bbrv3", "bbrv1", 1)],
)
def test_rejects_other_algorithms_at_10_mbps(algorithm, other, least):
    """But not CUBIC from Reno, nor BBRv2 from BBRv3: a proxy does the same for both."""
    own, cells = zone(algorithm), grid.cells("10mbps")
    measured = like(other, cells)
    found = [split_zone.judge(own, check, measured).status for check in own.checks_within(cells)]
    assert found.count(Status.VIOLATES) >= least


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
    assert split_zone.judge(own, check, good).status is Status.CONFORMS
    first = check.cells[0]

    def judged(**changes):
        return split_zone.judge(own, check, {**good, **changes.get("cells", {})})

    assert judged(cells={first: []}).status is Status.ERROR
    assert "10mbps-100ms-0pct" in judged(cells={first: []}).reason
    broken = measurements([0.5], cell=first, outcome=Outcome.ERROR, message="the guest died")
    assert judged(cells={first: broken}).status is Status.ERROR
    unsupported = measurements([0.5], cell=first, outcome=Outcome.UNSUPPORTED, message="not offered")
    assert judged(cells={first: unsupported}).status is Status.UNSUPPORTED
    with pytest.raises(UserError, match="unlike runs"):
        judged(cells={first: measurements([0.5] * 5, cell=first, kernel_digest="8" * 16)})


def test_too_few_trials_never_violate_and_a_timeout_is_a_bound():
    own = zone("cubic")
    check = own.checks[0]
    assert split_zone.judge(own, check, like("bbrv1", check.cells)).status is Status.VIOLATES
    assert split_zone.judge(own, check, like("bbrv1", check.cells, n=4)).status is Status.INCONCLUSIVE
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
    made = split_zone.from_json(document, "here")
    assert made.default_grid == "10mbps"
    assert {getattr(check, "grid", "10mbps") for check in made.checks} == {"10mbps"}
    flat = made.checks[0].permitted["split"]
    assert (flat.low, flat.high) == derive.interval([0.5, 0.54])
    # All cells are alike, so nothing gains.
    gaining = [c for c in made.checks if isinstance(c, split_zone.ShareCheck) and c.filter.gain]
    assert {(p.low, p.high) for check in gaining for p in check.permitted.values()} == {(0.0, 0.0)}
    assert derive_split.derive_split(reference(), "cubic", "a version") == document


def test_what_cannot_be_a_reference_is_refused():
    for bad, words in (
        ([], "no measurements"),
        (reference(n=4), "fewer than 5"),
        (reference()[:-5], "lack cells of grid 10mbps"),
        (reference(outcome=Outcome.TIMEOUT), "is timeout"),
        ([*reference(), *reference(kernel_digest="8" * 16)], "2 unlike runs"),
    ):
        with pytest.raises(UserError, match=words):
            derive_split.derive_split(bad, "cubic", "a version")


def test_a_document_that_contradicts_itself_is_refused():
    document = derive_split.derive_split(reference(), "cubic", "a version")

    def refused(words, change):
        broken = copy.deepcopy(document)
        change(broken)
        with pytest.raises(UserError, match=words):
            split_zone.from_json(broken, "here")

    refused("of class I near, not II", lambda d: d["paths"][0].update({"class": "II"}))
    refused("/paths/0: low", lambda d: d["paths"][0]["split"].update(low=2))
    refused("median", lambda d: d["paths"][0]["split"].update(low=0.59))
    refused("not among /references", lambda d: d["paths"][0]["split"]["basis"].update(reference="x"))
    refused("stands twice", lambda d: d["shares"].append(d["shares"][0]))
    refused("grid 'x' is not known", lambda d: d["shares"][0].update(grid="x"))
    refused("composes to no cell", lambda d: d["paths"][4].update(path="10mbps-100ms-0pct+10mbps-80ms-0pct"))
    refused("no path of class", lambda d: d["shares"][0].update(grid="10mbps-1ms-0pct"))


def test_the_scheme_names_what_is_judged():
    assert zone("cubic").references["linux-6.12.117"]["scheme"] == scheme(kernel_release="6.12.117").id
