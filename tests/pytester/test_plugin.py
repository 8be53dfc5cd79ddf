"""The pytest layer, with a room that needs no guest."""

import dataclasses
import functools
import json
import pathlib
import shutil
import types
import xml.etree.ElementTree as xml

import fake_room
import pytest

from conformance.catalogue import clauses, documents
from conformance.commands import why
from conformance.engine import benches, runs
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.judging.expectation import Expected, Known
from conformance.model.judging.question import Named
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.networks.place import Cell
from conformance.suite import options, summary
from conformance.suite.items import JudgedItem
from conformance.support import paths

pytestmark = pytest.mark.slow

CELLS = [f"c{i}" for i in range(64)]

GRID = ("--grid", "10mbps-20ms-1pct,10mbps-20ms-2pct")
RERUN = "rerun      pytest --pyargs conformance.suite"
#: two cells that are counted in zones of loss, too
COUNTED = ("--grid", "10mbps-20ms-0pct,10mbps-20ms-4pct")
#: a session of one process, and one under pytest-xdist
WORKERS = [(), pytest.param(("-n", "2"), marks=pytest.mark.thorough)]


def test_one_test_for_each_cell_with_readable_ids(suite):
    result = suite("-m", "cubic and heatmap", *GRID, "--collect-only", "-q")
    result.stdout.fnmatch_lines(
        ["*heatmap[[]cubic-10mbps-20ms-1pct-linux-tcp]", "*heatmap[[]cubic-10mbps-20ms-2pct-linux-tcp]"]
    )


def test_a_stack_that_lies_elsewhere_is_not_taken_for_a_test(suite, pytester, tmp_path_factory):
    stack = tmp_path_factory.mktemp("elsewhere") / "adapter.json"
    stack.write_text('{"contract": 1, "name": "elsewhere", "title": "t", "program": "stack", "transport": "tcp"}')
    (stack.parent / "stack").touch(mode=0o755)
    stack.parent.chmod(0o755)
    result = suite("-m", "cubic and heatmap", *GRID, "--stack", str(stack))
    result.assert_outcomes(passed=2)
    # pytest keeps its cache in its root directory, which in a stack's folder would change the stack.
    result.stdout.fnmatch_lines([f"rootdir: {pytester.path}", "configfile: tox.ini"])


def test_where_the_suite_is_not_named_a_marker_of_it_says_how_to(suite, pytester):
    hint = "*pytest --pyargs conformance.suite -m*"
    pytester.runpytest_inprocess("-m", "cubic and smoke").stdout.fnmatch_lines([hint])
    pytester.runpytest_inprocess("-m", "slow").stdout.no_fnmatch_line(hint)
    suite("-m", "cubic", "-k", "nothing").stdout.no_fnmatch_line(hint)


def test_short_transfers_sawtooths_and_competing_flows_are_judged_by_zones_of_their_own_profiles(suite, pytester):
    suite("-m", "cubic and startup").assert_outcomes(passed=6)
    suite("-m", "cubic and startup", "--stack", "ngtcp2").assert_outcomes(passed=6)
    suite("-m", "cubic and sawtooth").assert_outcomes(passed=14)
    suite("-m", "cubic and competing").assert_outcomes(passed=3)
    suite("-m", "cubic and identify").assert_outcomes(passed=14, skipped=2)  # two points are not judged
    suite("-m", "cubic and identify", "--stack", "ngtcp2").assert_outcomes(passed=14, skipped=2)
    suite("-m", "cubic and competing", "--stack", "ngtcp2").assert_outcomes(passed=3)
    assert suite("-m", "cubic and sawtooth", "--stack", "ngtcp2").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = suite("-m", "cubic and startup", "--grid", "10mbps-50ms-0pct", "--results", "bad.jsonl", kind="bad")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "cubic/fake/55555555 violates zone cubic/startup at 10mbps-50ms-0pct: below the zone",
            f'  {RERUN} -m "cubic and startup" --grid 10mbps-50ms-0pct --trials 5 --results bad.jsonl',
        ]
    )
    profiles = {setting["profile"] for setting in results(pytester.path / "results/results.jsonl")}
    assert profiles == {"startup", "competing", "sawtooth", "identify"}


def test_the_full_grid_is_150_cells(suite):
    suite("-m", "reno and heatmap", "-q").assert_outcomes(passed=144, skipped=6)  # six are not judged


def test_a_cell_is_judged_by_loss_too(suite):
    suite("-m", "cubic and (heatmap or loss)", *COUNTED).assert_outcomes(passed=4)
    result = suite("-m", "cubic and loss", *COUNTED, "--results", "bad.jsonl", kind="bad")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "cubic/fake/55555555 violates zone cubic/loss at 10mbps-20ms-0pct: above the zone",
            "  measured   lost_pct 100.000 *",
            f'  {RERUN} -m "cubic and loss" --grid 10mbps-20ms-0pct --trials 5 --results bad.jsonl',
            "  why        conformance why cubic",
        ]
    )


def test_a_cell_that_tells_too_little_is_not_judged_and_costs_no_trial(suite, pytester):
    result = suite("-m", "cubic and loss", *GRID, "-rs", "--fail-inconclusive", kind="bad")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(
        [
            "zone cubic/loss: 2 not judged",
            "*not judged: a shift of 30 % cannot be detected here: margin 10 % and 0.3 percentage points*",
        ]
    )
    results = pytester.path / "results" / "results.jsonl"
    assert not results.exists() or not results.read_bytes()


@pytest.mark.parametrize("algorithm", ["cubic", "reno", "bbrv1", "bbrv2", "bbrv3"])
def test_the_smoke_tier_is_at_most_12_cells_and_no_point_of_a_scenario_unless_it_is_named(suite, algorithm):
    n = sum(len(documents.zone_of(algorithm, kind).smoke) for kind in documents.KINDS)
    assert 4 <= n <= 12
    own = [zone for _, zone in documents.judging("atc25") if zone.algorithm == algorithm and not zone.of_cells]
    # Paths that are split take two segments each, and no tier but the full one.
    assert all((zone.profile != "split") <= len(zone.smoke) <= 2 for zone in own)
    n = 1 if clauses.first_for(algorithm) else n  # one cell, beside clauses
    suite("-m", f"{algorithm} and smoke and not bbr_draft").assert_outcomes(passed=n)
    if fair := [zone for zone in own if zone.id.partition("/")[2].startswith("fairness-")]:
        suite("-m", f"{algorithm} and fairness and smoke").assert_outcomes(
            passed=(judged := sum(zone.intervals[at].counted for zone in fair for at in zone.smoke)),
            skipped=sum(len(zone.smoke) for zone in fair) - judged,
        )


def test_points_of_scenarios_are_tests_too(suite):
    passed = suite("-m", "cubic and fairness and smoke")
    passed.assert_outcomes(passed=1, skipped=2)  # how even flows are; convergence and loss are not judged
    passed.stdout.fnmatch_lines(["zone cubic/fairness-jain: 1 conforms"])
    failed = suite("-m", "cubic and coexistence and smoke", "--results", "bad.jsonl", kind="bad")
    failed.stdout.fnmatch_lines(
        [
            "cubic/fake/* violates zone cubic/coexistence-share at buffer_bdp=2,*: below the zone",
            '  rerun *pytest --pyargs conformance.suite -m "cubic and coexistence" --grid buffer_bdp=2,*',
        ]
    )


def test_a_violation_fails_and_says_all_that_is_needed(suite):
    result = suite("-m", "cubic and heatmap", *GRID, kind="bad")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "cubic/fake/55555555 violates zone cubic/heatmap at 10mbps-20ms-1pct: below the zone",
            "  measured   utilization 0.001 (median of 5 trials; 90% interval 0.001..0.001)",
            "  permitted  0.*..0.*",
            "  basis      linux-7.2.*: median 0.*",
            f'  {RERUN} -m "cubic and heatmap" --grid 10mbps-20ms-1pct --trials 5',
        ]
    )


def test_an_emulator_fault_is_an_error_not_a_failure(suite):
    result = suite("-m", "cubic and heatmap", *GRID, kind="error")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["error: the guest died*"])


@pytest.mark.parametrize("phase", ["setup", "runtest"])
def test_a_fault_of_the_suite_in_a_test_is_an_internal_error_not_a_failure(suite, phase):
    broken = functools.partial({}.__getitem__, "x")
    result = suite("-m", "cubic and heatmap", *GRID, more=lambda patch: patch(JudgedItem, phase, lambda self: broken()))
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR


@pytest.mark.parametrize(("kind", "status"), [("good", 3), ("bad", 1)])
def test_a_fault_of_the_suite_at_the_end_looks_like_no_violation_and_hides_none(suite, kind, status):
    def broken(*_):
        raise KeyError("x")

    result = suite(
        "-m", "cubic and heatmap", *GRID, kind=kind, more=lambda patch: patch(summary.Zones, "lines", broken)
    )
    assert result.ret == status
    result.stdout.fnmatch_lines(["INTERNALERROR> KeyError: 'x'"])


def test_a_users_mistake_at_the_end_is_one_line(suite):
    def broken(*_):
        raise UserError("no space", "free some")

    result = suite("-m", "cubic and heatmap", *GRID, more=lambda patch: patch(summary.Zones, "lines", broken))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["ERROR: no space; free some"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_unsupported_and_inconclusive_are_skipped_with_their_reason(suite):
    result = suite("-m", "cubic and heatmap", *GRID, "-rs", kind="unsupported")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*unsupported: not offered*"])
    result = suite("-m", "cubic and heatmap", *GRID, "-rs", "--results", "other.jsonl", kind="unclear")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*inconclusive: * the zone, but not clear of its bounds*median of 20 trials*"])
    suite(
        "-m", "cubic and heatmap", *GRID, "--results", "other.jsonl", "--fail-inconclusive", kind="unclear"
    ).assert_outcomes(failed=2)
    suite("-m", "cubic and heatmap", *GRID, "--results", "other.jsonl", "--strict", kind="unclear").assert_outcomes(
        failed=2
    )


@pytest.mark.parametrize("workers", WORKERS)
def test_a_session_that_judges_nothing_says_why_once_and_ends_as_if_it_had_no_tests(process, pytester, workers):
    """It ended with 0 and without a reason, as after 12 of 12 tests of BBRv3 for lack of its kernel."""
    asked = "-m", "cubic and (heatmap or loss)", *COUNTED, *workers
    result = process(*asked, kind="unsupported")
    result.assert_outcomes(skipped=4)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        ["nothing was judged, so the exit status is 5:", "  4 unsupported: not offered (5 of 5 trials)"]
    )
    assert str(result.stdout).count("not offered") == 1
    # A test of the user's own that passes makes it a session like any other.
    own = pytester.makepyfile("import pytest\n@pytest.mark.cubic\n@pytest.mark.heatmap\ndef test_own(): pass\n")
    beside = process(*asked, own, kind="unsupported")
    beside.assert_outcomes(skipped=4, passed=1)
    assert beside.ret == pytest.ExitCode.OK


def test_a_session_that_selects_tests_of_its_own_alone_or_runs_none_ends_as_pytest_does(suite, pytester):
    own = pytester.makepyfile("import pytest\ndef test_own(): pytest.skip('no reason')\n")
    assert suite("-m", "not full", own).ret == pytest.ExitCode.OK
    assert suite("-m", "cubic and heatmap", *GRID, "--collect-only", kind="unsupported").ret == pytest.ExitCode.OK


def test_each_zone_says_why_it_leaves_cells_open(suite):
    result = suite("-m", "cubic and (heatmap or loss)", *GRID, kind="unclear")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        [
            "zone cubic/heatmap: 2 inconclusive",
            "zone cubic/loss: 2 not judged",
            "  2 inconclusive: * more trials needed (--max-trials allows more)",
            "  2 not judged: a shift of 30 % cannot be detected here: margin 10 % *; trials of linux-7.2.11 spread",
        ]
    )


def test_a_cell_gets_more_trials_until_it_is_clear(suite, pytester):
    result = suite("-m", "cubic and heatmap", *GRID, "--max-trials", "8", "--results", "r.jsonl", kind="clear later")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["zone cubic/heatmap: 2 compatible"])
    assert len((pytester.path / "r.jsonl").read_text().splitlines()) == 16
    result = suite("-m", "cubic and heatmap", *GRID, "--results", "r.jsonl", kind="clear later")
    result.assert_outcomes(passed=2)
    assert len((pytester.path / "r.jsonl").read_text().splitlines()) == 26
    result.stdout.fnmatch_lines(
        ["zone cubic/heatmap: 2 conforms", "the session: false alarms in at most 1% of runs (Holm over 2 *"]
    )


@dataclasses.dataclass(frozen=True)
class Faked:
    """A report on an algorithm, with what it is to explain."""

    said: str
    violations: tuple = ()


def test_what_violates_is_traced_to_say_what_looks_wrong(suite, pytester):
    def fake(patch):
        def look(algorithm, choice, seeds, target, notes):
            if algorithm == "reno":
                raise UserError("no guest kernel")
            if algorithm == "bbrv1":
                raise why.Untraced(4, "no bbr here")
            return Faked(said=f"suspect of {algorithm}: beta, {len(seeds)} traces")

        patch(why, "look", look)
        patch(why.why_text, "show", lambda report, console: console.print(report.said, len(report.violations)))

    ask = "-o", "addopts=--strict-markers --no-blame", "-m", "(cubic or reno or bbrv1) and heatmap", *GRID
    said = suite(*ask, kind="bad", more=fake).stdout
    said.fnmatch_lines(["*what looks wrong*", "*: beta, 3 traces*"])
    said.fnmatch_lines(["bbrv1: what looks wrong is not known: no bbr here", "suspect of cubic: beta, 3 traces 2"])
    said.fnmatch_lines(["not examined: reno; begin with `conformance why reno`"])
    said = suite(*ask[:3], "(cubic or reno) and heatmap", *GRID, kind="bad", more=fake).stdout
    said.fnmatch_lines(["reno: what looks wrong is not known: no guest kernel"])
    assert "what looks wrong" not in suite(*ask, "--results", "good.jsonl", more=fake).stdout.str()
    said = suite(*ask, "--no-why", "--results", "bad.jsonl", kind="bad", more=fake).stdout
    assert "what looks wrong" not in said.str()


def test_a_session_of_a_stack_that_violates_names_the_clauses_that_it_fails(suite):
    """Reports of `why` name them as well; here nothing is traced."""
    options = "-o", "addopts=--strict-markers --no-why", "-m", "bbrv1 and heatmap", *GRID
    said = suite(*options, kind="bad").stdout
    command = "`conformance clause run --algorithm bbrv1` judges it"
    said.fnmatch_lines(["*= clauses =*", f"clauses: no verdict on bbrv1/fake/* is recorded; {command}"])
    assert "clauses: " not in suite(*options, "--results", "good.jsonl").stdout.str()


@pytest.fixture
def known(pytester):
    """Return a function that writes a stack with these known deviations and returns the options that test it."""

    def write(*entries):
        folder = pytester.mkdir("stack")
        about = {
            "contract": 1, "name": "known", "title": "t", "program": "run", "transport": "tcp",
            "algorithms": {"cubic": {"called": "c", "evidence": "e"}},
        }  # fmt: skip
        (folder / "adapter.json").write_text(json.dumps(about))
        (folder / "run").write_text("#!/bin/sh\n")
        for path in (*folder.parents, folder, folder / "run"):
            if path.owner() == folder.owner() and path != pathlib.Path("/"):
                path.chmod(path.stat().st_mode | 0o055)
        entries = [{"reason": "beta is 0.5", "verdict": "violates", **entry} for entry in entries]
        (folder / "expected.json").write_text(json.dumps({"version": 1, "expected": entries}))
        return "-m", "cubic and heatmap", *GRID, "--stack", str(folder / "adapter.json")

    return write


def test_known_deviations_are_no_failures_and_repaired_ones_are(suite, known):
    options = known({"zone": "cubic/heatmap", "cells": ["10mbps-20ms-1pct"], "link": "EVIDENCE.txt"})
    result = suite(*options, "-rx", kind="bad")
    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(["*known to violate: beta is 0.5 (EVIDENCE.txt)*"])
    result = suite(*options, "--results", "good.jsonl")
    result.assert_outcomes(failed=1, passed=1)
    stack = options[-1]
    said = "conforms, but known to violate: beta is 0.5 (EVIDENCE.txt); remove it from expected.json:"
    result.stdout.fnmatch_lines(
        [f"{said} `conformance expect update --gone {stack} good.jsonl`", "*rerun*--results good.jsonl*"]
    )
    result.stdout.no_fnmatch_line("*conformance why*")


def test_what_is_known_and_is_unsupported_now_is_said_without_numbers(suite, known):
    evil = {"reason": "beta [2J; 9 passed", "link": "https://x ]0;t"}
    options = known({"zone": "cubic/heatmap", "cells": ["10mbps-20ms-1pct"], **evil})
    result = suite(*options, kind="unsupported")
    result.assert_outcomes(failed=1, skipped=1)
    said = "unsupported, but known to violate: beta [[]2J; 9 passed (https://x ]0;t); remove it from*"
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*measured*")


def test_a_stack_may_be_known_to_violate_a_whole_zone(suite, known):
    suite(*known({"zone": "cubic/heatmap", "cells": "all"}), kind="bad").assert_outcomes(xfailed=2)


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"cells": ["10mbps"]}, "/expected/0/cells"),
        ({"cells": "all", "reason": "beta\x1b[2J"}, "/expected/0/reason: control characters are not text"),
    ],
)
def test_a_mistake_in_what_is_known_is_one_line(suite, known, entry, place):
    result = suite(*known({"zone": "cubic/heatmap", **entry}))
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: *expected.json: {place}*"])


def test_a_baseline_takes_the_place_of_the_zone(suite, pytester):
    """A stack that still violates the zone as before has not changed; one that now conforms to it has."""
    base = "-m", "cubic and heatmap", *GRID
    suite(*base, "--trials", "20", "--results", "before.jsonl", kind="bad").assert_outcomes(failed=2)
    before = pytester.path / "before.jsonl"
    before.write_text(before.read_text().replace('"stack":"fake"', '"stack":"linux-tcp"'))
    again = *base, "--baseline", "before.jsonl"
    same = suite(*again, "--results", "now.jsonl", kind="bad")
    same.assert_outcomes(passed=2)
    same.stdout.fnmatch_lines(["baseline before.jsonl is of the build that is tested: this cannot show a change"])
    before.write_text(before.read_text().replace('"lab_digest":"7777777777777777"', '"lab_digest":"old"'))
    other = "baseline before.jsonl was measured by another version of the lab, so what changed may be the emulator"
    suite(*again, "--results", "now.jsonl", kind="bad").stdout.fnmatch_lines([other])
    result = suite(*again, "--results", "better.jsonl")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["cubic/fake/55555555 violates zone cubic/heatmap-baseline at *: above the zone"])
    result = suite(*base, "--baseline", "now.jsonl")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: now.jsonl has no measurements of stack linux-tcp under profile atc25*"])


def test_a_cell_that_the_baseline_lost_is_open(suite, pytester):
    base = "-m", "cubic and (heatmap or loss)", "--grid", "10mbps-20ms-4pct,10mbps-40ms-4pct"
    suite(*base, "--trials", "20", "--results", "before.jsonl")
    before = pytester.path / "before.jsonl"
    first, *others = before.read_text().replace('"stack":"fake"', '"stack":"linux-tcp"').splitlines(keepends=True)
    before.write_text("".join([first.replace('"outcome":"ok"', '"outcome":"timeout"'), *others]))
    again = "-m", base[1], "--baseline", "before.jsonl", "-rs", "--results", "now.jsonl"
    result = suite(*again)
    result.assert_outcomes(passed=2, skipped=2)
    lost = "inconclusive: without baseline, as a trial of it timed out, failed or ended in an error there"
    result.stdout.fnmatch_lines(["zone cubic/heatmap-baseline: 1 inconclusive, 1 conforms", f"SKIPPED*2*{lost}"])
    strict = suite(*again, "--fail-inconclusive")
    strict.assert_outcomes(passed=2, failed=2)
    strict.stdout.fnmatch_lines(["cubic/linux-tcp inconclusive zone cubic/heatmap-baseline at 10mbps-*: without*"])


def test_the_stack_is_called_what_its_manifest_calls_it_whatever_its_folder(tmp_path):
    """A baseline is found by the stack's name, and docs/ci.md's adapter lies in a folder called conformance."""
    folder = tmp_path / "conformance"
    shutil.copytree(paths.data("adapters") / "linux-tcp", folder)
    about = json.loads((folder / "adapter.json").read_text())
    (folder / "adapter.json").write_text(json.dumps({**about, "name": "my-stack"}))
    option = types.SimpleNamespace(stack=str(folder / "adapter.json"), interop_rootfs=None)
    assert options.stack_name(option) == "my-stack"
    option.interop_rootfs = str(tmp_path / "conformance" / ".." / "endpoint")
    assert options.stack_name(option) == "interop-endpoint"


def test_an_interrupted_session_says_that_nothing_is_lost(process):
    interrupt = "def pytest_runtestloop(session):\n    raise KeyboardInterrupt\n"
    result = process("-m", "cubic and heatmap", *GRID, "--results", "r.jsonl", more=interrupt)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["what was measured is kept in r.jsonl: the same command resumes"])


def test_junit_holds_what_a_person_reads(suite):
    suite("-m", "cubic and heatmap", *GRID, "--junitxml=j.xml").assert_outcomes(passed=2)
    cases = list(xml.parse("j.xml").getroot().iter("testcase"))
    assert len(cases) == 2
    for case in cases:
        said = {p.get("name"): p.get("value") for p in case.iter("property")}
        assert 0 < float(said.pop("utilization")) < 1
        assert said == {"verdict": "conforms", "trials": "5"}


def report(cell, status, p, known, family=67, offers=None):
    """Return the report of a test of a cell."""
    permitted = documents.zone_of("cubic").intervals[Cell(10, 20, 1)]
    verdict = Verdict(
        status=Status(status), zone_id="cubic/heatmap", place=Named(cell), permitted=permitted, reason="", p=p
    )
    entry = Expected(zone_id="cubic/heatmap", cells=None, verdict=Known.VIOLATES, reason="it is so")
    found = Finding(
        verdict=verdict, expected=entry if known else None, algorithm="cubic", group="cubic/heatmap", family=family,
        offers=offers,
    )  # fmt: skip
    return types.SimpleNamespace(when="setup", **{summary.FINDING: summary.pack(found)})


def test_holm_is_taken_over_what_was_planned_not_over_what_arrived():
    """After `-x` or the end of a budget, five of five trials outside would violate among the few that were measured."""
    for family, late in ((66, {("cubic", "cubic/heatmap", Named("a"))}), (67, set())):
        zones = summary.Zones()
        zones.pytest_runtest_logreport(report("a", "inconclusive", 3.77e-5, False, family))
        assert {finding.name for finding in zones.settled() if finding.verdict.status.against} == late


def test_a_violation_is_repeated_with_fresh_seeds(suite, pytester):
    bad = "-m", "cubic and heatmap", *GRID
    result = suite(*bad, "-rs", "--results", "once.jsonl", kind="bad once")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(
        [
            "zone cubic/heatmap: 2 not confirmed; not confirmed with fresh seeds: 10mbps-20ms-1pct, 10mbps-20ms-2pct",
            "SKIPPED*not confirmed: violates (below the zone); again with fresh seeds: conforms",
        ]
    )
    suite(*bad, "--fail-inconclusive", "--results", "once.jsonl", kind="bad once").assert_outcomes(failed=2)
    suite(*bad, "--no-confirm", "--results", "once.jsonl", kind="bad once").assert_outcomes(failed=2)
    twice = suite(*bad, "--first-seed", "7", "--results", "bad.jsonl", kind="bad")
    twice.assert_outcomes(failed=2)
    twice.stdout.fnmatch_lines(
        [
            "  again      violates with fresh seeds, from 10007: below the zone, 5 trials",
            f"  {RERUN} -m *--trials 5 --first-seed 7 --results bad.jsonl",
        ]
    )
    suite(*bad, "--results", "good.jsonl").assert_outcomes(passed=2)
    assert len((pytester.path / "good.jsonl").read_text().splitlines()) == 10


def test_the_first_seed_may_stand_in_the_ini_file(suite, pytester):
    ini = "-o", "conformance_first_seed=2001"
    suite("-m", "cubic and heatmap", *GRID, *ini).assert_outcomes(passed=2)
    lines = (pytester.path / "results/results.jsonl").read_text().splitlines()
    assert {json.loads(line)["trial"]["seed"] for line in lines} == set(range(2001, 2006))
    for wrong in (("-o", "conformance_first_seed=x"), ("--first-seed", "0")):
        assert suite("-m", "cubic and heatmap", *GRID, *wrong).ret == pytest.ExitCode.USAGE_ERROR


def test_the_family_is_that_of_the_marker_and_grid_not_of_k(suite):
    for chosen in ((), ("-k", "10mbps-20ms-4pct")):
        result = suite("-m", "cubic and (heatmap or loss)", *COUNTED, *chosen)
        result.stdout.fnmatch_lines(["the session: false alarms in at most 1% of runs (Holm over 4 cells)"])


@pytest.mark.parametrize("known", [False, True])
def test_a_cell_that_only_holm_finds_in_violation_fails_the_session_unless_it_is_known(known):
    zones = summary.Zones()
    for cell, status, p in (
        ("a", "violates", 1e-9),
        ("b", "inconclusive", 3.77e-5),
        *((c, "conforms", None) for c in CELLS),
    ):
        zones.pytest_runtest_logreport(report(cell, status, p, known))
    assert list(zones.lines()) == [
        "zone cubic/heatmap: 2 violates, 64 conforms; violates, all cells taken together: b",
        "the session: false alarms in at most 1% of runs (Holm over 67 cells)",
    ]
    session = ended()
    zones.pytest_sessionfinish(session)
    assert session.exitstatus == (0 if known else 1)


def test_status_127_in_some_cells_alone_is_an_error_of_the_session():
    zones = summary.Zones(lambda found: pytest.fail("an error is not repeated"))
    zones.pytest_runtest_logreport(report("a", "unsupported", None, False, offers=False))
    zones.pytest_runtest_logreport(report("b", "conforms", None, False, offers=True))
    session = ended()
    zones.pytest_sessionfinish(session)
    assert session.exitstatus == 1
    assert next(zones.lines()) == "zone cubic/heatmap: 1 error, 1 conforms"


LATE = ("cubic", "cubic/heatmap", Named("b"))


def ended(exitstatus=pytest.ExitCode.OK, shouldfail=False):
    config = types.SimpleNamespace(stash={})
    return types.SimpleNamespace(exitstatus=exitstatus, shouldfail=shouldfail, shouldstop=False, config=config)


def late_zones(repeat):
    zones = summary.Zones(repeat)
    for cell, status, p in (("a", "violates", 1e-9), ("b", "inconclusive", 3.77e-5)):
        zones.pytest_runtest_logreport(report(cell, status, p, known=False))
    return zones


@pytest.mark.parametrize(
    ("shown_again", "status", "line"),
    [
        (False, 0, "1 violates, 1 not confirmed; not confirmed with fresh seeds: b"),
        (True, 1, "2 violates; violates, all cells taken together: b"),
    ],
)
def test_what_only_holm_finds_is_repeated_too(shown_again, status, line):
    verdict = types.SimpleNamespace(status=Status.VIOLATES if shown_again else Status.CONFORMS, reason="it is so")
    zones, asked = late_zones(lambda found: asked.append(found) or {LATE: verdict}), []
    session = ended()
    zones.pytest_sessionfinish(session)
    assert asked == [{LATE: 67}]
    assert session.exitstatus == status
    assert next(zones.lines()) == f"zone cubic/heatmap: {line}"


@pytest.mark.parametrize("error", [UserError("the guest died", "run it again"), KeyboardInterrupt()])
def test_what_cannot_be_repeated_stays_a_violation(error):
    def repeat(found):
        raise error

    zones, session = late_zones(repeat), ended()
    zones.pytest_sessionfinish(session)
    assert session.exitstatus == 1
    *_, last = zones.lines()
    assert last.startswith(("not repeated with fresh seeds: the guest died", "interrupted while violations"))


def failures_in_junit(pytester):
    """Return {test: why} of what failed, by junit.xml."""
    cases = xml.parse(pytester.path / "junit.xml").iter("testcase")
    return {case.get("name"): case[0].text for case in cases if len(case) and case[-1].tag == "failure"}


def test_a_session_in_which_a_stack_breaks_off_now_and_then_fails(suite, pytester):
    class BreaksOff(fake_room.Failing):
        seed = 1003

    def more(patch):
        patch(runs, "beside", lambda bench: fake_room.bench_of(fake_room.Room("good")))
        patch(benches, "find", lambda *_: fake_room.bench_of(BreaksOff("good")))

    result = suite("-m", "cubic and heatmap", "--grid", "10mbps", "--junitxml", "junit.xml", more=more)
    result.assert_outcomes(passed=29, skipped=1)
    ((name, why),) = failures_in_junit(pytester).items()
    assert name == "cubic, all tests taken together" and why.startswith("29 of ")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["cubic fails, all tests taken together: 29 of * trials of cubic failed, and none of *"]
    )


def test_a_fault_of_the_emulator_clears_no_violation():
    verdict = types.SimpleNamespace(status=Status.ERROR, reason="the guest died")
    zones, session = late_zones(lambda found: {LATE: verdict}), ended()
    zones.pytest_sessionfinish(session)
    assert session.exitstatus == 1
    *_, last = zones.lines()
    assert last == "zone cubic/heatmap at b: not repeated with fresh seeds: the guest died"


@pytest.mark.parametrize(
    "session", [ended(pytest.ExitCode.INTERRUPTED), ended(pytest.ExitCode.TESTS_FAILED, shouldfail="after 1 failure")]
)
def test_a_session_that_was_interrupted_or_stopped_early_repeats_nothing(session):
    zones = late_zones(lambda found: pytest.fail("it was repeated"))
    zones.pytest_sessionfinish(session)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_session_repeats_what_only_holm_finds(suite, process, pytester, workers):
    """In 66 of 67 cells, five of five trials are outside, beside 20 of the reference: not enough by itself for 67."""
    zone = documents.zone_of("cubic")
    few = [p for p, i in zone.intervals.items() if i.counted and i.basis.n == 20][:66]
    more = next(p for p, i in zone.intervals.items() if i.counted and i.basis.n > 20)
    grid = ",".join(place.id for place in [more, *few])
    run = process if workers else suite
    asked = ("-m", "cubic and heatmap", "--grid", grid, "--trials", "5", "--max-trials", "5", "-q", *workers)
    once = run(*asked, "--results", "once.jsonl", kind="bad once")
    once.assert_outcomes(skipped=67)
    assert once.ret == pytest.ExitCode.OK
    once.stdout.fnmatch_lines(["zone cubic/heatmap: 67 not confirmed; not confirmed with fresh seeds: *"])
    twice = run(*asked, "--results", "bad.jsonl", "--junitxml", "junit.xml", kind="bad")
    assert twice.ret == pytest.ExitCode.TESTS_FAILED
    together = [name for name in failures_in_junit(pytester) if name.endswith(", all tests taken together")]
    assert len(together) == 66
    twice.stdout.fnmatch_lines(["zone cubic/heatmap: 67 violates; violates, all cells taken together: *"])


def test_results_are_not_measured_again(suite):
    suite("-m", "cubic and heatmap", *GRID).assert_outcomes(passed=2)
    # The room would now measure something else, but the store still has the earlier results.
    suite("-m", "cubic and heatmap", *GRID, kind="bad").assert_outcomes(passed=2)


@pytest.mark.parametrize("quietly", ["-q", "-v"])
def test_results_of_another_kernel_are_not_used_and_that_is_said(suite, quietly):
    options = "-m", "cubic and heatmap", *GRID, quietly
    assert "stored results" not in suite(*options).stdout.str()
    line = "guest kernel Linux 7.2.11; 10 stored results of Linux 6.12.0 are not used"

    def newer(patch):
        other = functools.partial(fake_room.scheme, kernel_release="7.2.11", kernel_digest="a" * 16)
        patch(fake_room, "scheme", other)

    suite(*options, more=newer).stdout.fnmatch_lines([line])
    suite(*options, "--results", "new.jsonl", more=newer).stdout.no_fnmatch_line(line)


NEWER = """
import functools
other = functools.partial(fake_room.scheme, kernel_release="7.2.11", kernel_digest="a" * 16)
fake_room.scheme = other
"""


@pytest.mark.thorough
def test_xdist_says_once_what_is_of_another_kernel(process, pytester):
    options = "-m", "cubic and heatmap", *GRID, "-n", "2"
    process(*options, "--results", "r.jsonl").assert_outcomes(passed=2)
    made = (pytester.path / "r.jsonl").read_text()
    (pytester.path / "before.jsonl").write_text(made.replace('"stack":"fake"', '"stack":"linux-tcp"'))
    said = process(*options, "--baseline", "before.jsonl", "--results", "r.jsonl", more=NEWER).stdout.str()
    assert said.count("; 10 stored results of Linux 6.12.0 are not used") == 1
    assert said.count("before.jsonl was measured on guest kernel Linux 6.12.0, but this run uses Linux 7.2.11") == 1


def test_it_works_under_xdist(process, tmp_path_factory):
    # The file is elsewhere, because the first process creates it and the others would take its path for that of a test.
    results = tmp_path_factory.mktemp("elsewhere") / "r.jsonl"
    result = process("-m", "cubic", "--grid", "10mbps", "-n", "2", "--results", str(results))
    zones = [zone for _, zone in documents.judging("atc25") if zone.algorithm == "cubic" and zone.of_cells]
    blind = sum(not zone.intervals[at].counted for zone in zones for at in grids.within("10mbps", zone.places))
    result.assert_outcomes(passed=70 + 30 - blind, skipped=blind)
    result.stdout.fnmatch_lines(["zone cubic/heatmap: 29 conforms, 1 not judged", "zone cubic/split: 10 conforms"])


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [((), 16), pytest.param(("--grid", "full"), 20, marks=pytest.mark.thorough), (("--grid", "10mbps"), 10)],
)
def test_the_split_part_is_six_paths_and_four_shares_for_each_grid_and_six_measured_paths(suite, arguments, passed):
    suite("-m", "bbrv3 and split", *arguments).assert_outcomes(passed=passed)


def test_a_path_needs_only_its_own_cells(suite):
    grid = "10mbps-100ms-0pct,10mbps-1ms-4pct,10mbps-100ms-4pct"
    result = suite("-m", "cubic and split", "--grid", grid, "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*split[[]cubic-I-near-10mbps-100ms-0pct+10mbps-1ms-4pct-linux-tcp]*"])


def test_a_split_violation_says_all_that_is_needed(suite):
    result = suite("-m", "bbrv1 and split", "--grid", "10mbps", kind="bad")
    assert result.parseoutcomes()["failed"] == 7
    where = "10mbps-100ms-0pct+10mbps-1ms-4pct (class I near)"
    result.stdout.fnmatch_lines(
        [
            f"bbrv1/fake/55555555 violates zone bbrv1/split at {where}: split, predicted: below the zone",
            "  measured   split, predicted 0.001 (99.99*% interval 0.001..0.001)",
            "  permitted  0.*..0.*",
            "  basis      linux-7.2.*: median 0.*",
            f'  {RERUN} -m "bbrv1 and split" --grid 10mbps-100ms-0pct,10mbps-1ms-4pct --trials 20',
        ]
    )
    result.stdout.fnmatch_lines([f'  {RERUN} -m "bbrv1 and split" --grid 10mbps --trials 20'])


def test_split_checks_get_the_trials_that_they_need_whatever_else_is_asked_about_their_cells(suite, pytester):
    for name, expression in (("with", "bbrv1 and (heatmap or loss or split)"), ("alone", "bbrv1 and split")):
        options = "-m", expression, *PATH, "--results", f"{name}.jsonl", "--no-confirm"
        suite(*options, kind="bad")
        assert len((pytester.path / f"{name}.jsonl").read_text().splitlines()) == 2 * 13


PATH = ("--grid", "10mbps-100ms-0pct,10mbps-1ms-4pct")


def results(path):
    return [json.loads(line)["trial"]["setting"] for line in path.read_text().splitlines()]


def test_a_split_path_is_measured_and_judged_as_a_point_of_a_scenario(suite, pytester):
    point = "10mbps-100ms-0pct+10mbps-1ms-4pct"
    ask = "-m", "cubic and split", "--grid", point
    suite(*ask, "--results", "r.jsonl", "-v").assert_outcomes(passed=1)
    settings = results(pytester.path / "r.jsonl")
    assert len(settings) == 5 and {s["proxy"]["program"] for s in settings} == {"splitter"}
    result = suite(*ask, "--results", "bad.jsonl", kind="bad")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"cubic/fake/55555555 violates zone cubic/split-utilization at {point}: *"])


def test_what_no_proxy_can_split_is_judged_by_predictions(suite, pytester):
    result = suite("-m", "cubic and split", "--stack", "ngtcp2", "--results", "r.jsonl")
    result.assert_outcomes(passed=10)
    assert not any("segments" in s for s in results(pytester.path / "r.jsonl"))
    result.stdout.fnmatch_lines(["zone cubic/split-packets: 10 conforms"])


def test_split_faults_are_errors_and_unsupported_is_skipped(suite):
    suite("-m", "cubic and split", kind="error").assert_outcomes(errors=16)
    suite("-m", "cubic and split", "--results", "other.jsonl", kind="unsupported").assert_outcomes(skipped=16)


_FAILS = """
from conformance.engine import benches
from conformance.model.errors import UserError
def fail(choice):
    raise UserError("it does not build", "see log", ["x.c:1: error", "a\\x1bb"])
benches.find = fail
"""


@pytest.mark.parametrize("more", [(), pytest.param(("-n", "1"), marks=pytest.mark.thorough)])
def test_the_last_lines_of_a_build_that_failed_are_shown(process, more):
    result = process("-m", "cubic and heatmap", *GRID, *more, more=_FAILS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: it does not build; see log", "  x.c:1: error", "  a\\x1bb"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("-m", "cubik"),
            "-m cubik: no such algorithm, metric, document or tier; did you mean cubic? algorithms: bbrv1, bbrv2",
        ),
        (("-m", "cubic", "--grid", "15mbps"), "grid '15mbps' is not known"),
        (("-m", "cubic", "--grid="), "grid '' is not known"),
        (("-m", "cubic", "--grid", "10mbps--5ms-0pct"), "one_way_delay_ms is -5"),
        (("-m", "cubic", "--grid", "10mbps-5ms-100pct"), "loss_pct is 100"),
        (("-m", "cubic", "--trials", "0"), "--trials 0 is out of range; give a number from 1"),
        (("-m", "cubic", "--max-trials", "0"), "--max-trials 0 is less"),
        (("-m", "cubic", "--stack", "missing"), "stack 'missing' is not known"),
        (("-m", "cubic", "--source", "nothing"), "--source 'nothing' is not of the form NAME=PATH"),
        (
            ("-m", "cubic and heatmap", "--trials", "4", "--max-trials", "4"),
            "4 trials can never show that it is violated, as one of 149",
        ),
        (("-m", "cubic", "--results", "conftest.py"), "conftest.py:1: not a JSON line of results; name another"),
        (("-m", "cubik", "-n", "1"), "-m cubik: no such algorithm, metric, document or tier"),
        *(
            pytest.param(("-n", "1", *arguments), words, marks=pytest.mark.thorough)
            for arguments, words in (
                (("-m", "cubic", "--trials", "4", "--max-trials", "4"), "4 trials can never show that"),
                (("-m", "cubic", "--results", "conftest.py"), "conftest.py:1: not a JSON line"),
                (("-m", "cubic", "--workers", "0"), "--workers 0; it must be 1 or more"),
                (("-m", "rfc9438", "--trials", "3", "--max-trials", "2"), "--max-trials 2 is less"),
            )
        ),
    ],
)
def test_a_users_mistake_is_one_line(suite, process, pytester, arguments, words):
    pytester.makeconftest("import sys\n")
    result = (process if "-n" in arguments else suite)(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    shown = result.stderr.str() + result.stdout.str()
    assert words in shown
    assert "Traceback" not in shown


def test_a_wait_for_cores_is_shown_while_a_test_waits(pytester):
    """What a test prints is captured, and not shown if the test passes."""
    pytester.makepyfile(
        "from conformance.lab import cores\n\ndef test():\n    cores.Waiting.say('waiting for a core')\n"
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stderr.fnmatch_lines(["waiting for a core"])
