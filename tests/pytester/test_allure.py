"""`pytest --alluredir`, JUnit XML and kept traces, with a room that needs no guest."""

import collections
import json
import xml.etree.ElementTree as xml

import fake_room
import pytest
from helpers import EVIL, as_read, trace
from test_plugin import GRID, PATH, RERUN

from conformance.commands import trace as tracing
from conformance.model.trials.trial import Measurement, Outcome
from conformance.reporting import charts
from conformance.suite import violations

pytestmark = pytest.mark.slow


@pytest.fixture
def results(suite, pytester):
    """Return a function that runs with --alluredir and returns what was written about each test, by its title.

    Heatmaps take seconds to draw, so by default none is drawn.
    """
    pytest.importorskip("allure_pytest")

    def undrawn(patch):
        patch(charts, "heatmap", lambda *_, **__: None)
        patch(charts, "render", lambda *_, **__: b"")

    def run(*arguments, more=undrawn, **how):
        done = suite(*arguments, "--alluredir", "allure", "--clean-alluredir", more=more, **how)
        assert "INTERNALERROR" not in done.stdout.str() + done.stderr.str()
        found = [json.loads(path.read_text()) for path in (pytester.path / "allure").glob("*-result.json")]
        return {result["name"]: result for result in found}

    return run


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("good", "passed", "median of 5 trials"),
        ("bad", "failed", "below the zone"),
        ("error", "broken", "the guest died"),
        ("unsupported", "skipped", "not offered"),
        ("unclear", "skipped", "more trials needed"),
    ],
)
def test_each_verdict_has_its_status_in_allure(results, kind, status, words):
    found = results("-m", "cubic and heatmap", *GRID, kind=kind)
    assert list(sorted(found)) == [f"cubic heatmap at 10mbps-20ms-{loss}pct, fake" for loss in (1, 2)]
    assert {result["status"] for result in found.values()} == {status}
    for result in found.values():
        assert words in result["descriptionHtml"]
        assert f"{RERUN} -m &quot;cubic and heatmap&quot; --grid" in result["descriptionHtml"]


def test_cells_are_tests_of_their_own_with_labels_and_links(results):
    found = results("-m", "cubic", *GRID).values()
    assert len(found) == len({result["historyId"] for result in found}) == 4
    for result in found:
        labels = collections.defaultdict(set)
        for label in result["labels"]:
            labels[label["name"]].add(label["value"])
        assert labels["algorithm"] == labels["parentSuite"] == {"cubic"}
        # What is not judged is not measured, so its stack is the one that was named.
        stack = "linux-tcp" if result["status"] == "skipped" else "fake"
        assert labels["stack"] == {stack} and labels["zone"] < {"cubic/heatmap", "cubic/loss"}
        assert "smoke" in labels["tag"] or "full" in labels["tag"]
        assert [link["name"] for link in result["links"]] == ["RFC 9438"]


def test_heatmaps_and_traces_are_attached(results, pytester):
    plain = fake_room.made

    def made(trial, kind):
        measured = plain(trial, kind)
        return as_read(measured, evidence={**measured.evidence, "trace": trace()})

    found = results("-m", "cubic and heatmap", *GRID, kind="bad", more=lambda patch: patch(fake_room, "made", made))
    names = {name: [a["name"] for a in result["attachments"]] for name, result in found.items()}
    assert names["cubic heatmap at 10mbps-20ms-1pct, fake"] == ["trace, seed 1001", "result lines 10mbps-20ms-1pct"]
    last = found["cubic heatmap at 10mbps-20ms-2pct, fake"]["attachments"]
    assert [a["name"] for a in last][2:] == ["heatmap of utilization"] * 2 + ["heatmap of lost_pct"] * 2
    contents = [(pytester.path / "allure" / a["source"]).read_bytes() for a in last]
    assert [content[:4] for content in contents[2:]] == [b"<svg", b"\x89PNG"] * 2
    picture = xml.fromstring(contents[0])
    assert len(picture.findall(".//{*}polyline")) >= 6
    assert len([json.loads(line) for line in contents[1].splitlines()]) == 5


def test_split_paths_are_told_too(results):
    found = results("-m", "cubic and split", *PATH, kind="bad")
    assert len(found) == 2 and {result["status"] for result in found.values()} == {"failed"}
    near = found["cubic split at 10mbps-100ms-0pct+10mbps-1ms-4pct (class I near), fake"]
    assert "split, predicted: below the zone" in near["descriptionHtml"]
    assert "result lines 10mbps-100ms-0pct" in [a["name"] for a in near["attachments"]]


def test_what_a_stack_says_is_escaped(results):
    def made(trial, kind):
        return Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=EVIL)

    for result in results("-m", "cubic and heatmap", *GRID, more=lambda p: p(fake_room, "made", made)).values():
        assert result["status"] == "skipped"
        assert "<script>" not in result["descriptionHtml"] and "&lt;script&gt;" in result["descriptionHtml"]


def test_junit_xml_holds_verdicts(suite, pytester):
    for kind, element in (("good", None), ("bad", "failure"), ("error", "error"), ("unsupported", "skipped")):
        suite("-m", "cubic and heatmap", *GRID, "--junitxml", "j.xml", "--results", f"{kind}.jsonl", kind=kind)
        cases = xml.parse(pytester.path / "j.xml").findall(".//testcase")
        assert len(cases) == 2
        for case in cases:
            verdicts = [p.get("value") for p in case.findall("properties/property[@name='verdict']")]
            assert verdicts == [{"good": "conforms", "bad": "violates"}.get(kind, kind)]
            assert element is None or case.find(element) is not None


def test_traces_are_kept_of_cells_that_violate(suite):
    def compute(algorithm, choice, *, point, seed, target, flow, **options):
        return f"traced {algorithm} {point} {seed} {target} {flow}"

    def fake(patch):
        patch(tracing, "compute", compute)
        patch(violations, "show_trace", lambda found, console: console.print(found, soft_wrap=True))

    keep = "-m", "cubic", *GRID, "--keep-traces", "kept", "--flow", "test/0"
    done = suite(*keep, kind="bad", more=fake)
    done.stdout.fnmatch_lines(["traced cubic 10mbps-20ms-1pct 1001 kept/cubic-10mbps-20ms-1pct test/0"])
    assert done.stdout.str().count("traced") == 2
    assert "traced" not in suite(*keep, "--results", "good.jsonl", more=fake).stdout.str()
