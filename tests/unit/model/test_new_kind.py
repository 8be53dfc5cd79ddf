"""A new kind of question, and a new word for a verdict, need no change where questions and verdicts are handled."""

import collections
import dataclasses
import re
import types

import fake_room
import pytest
from helpers import CELL, measurements, setting, stored as kept, zone

from conformance.commands.gate import GateResult, ZoneResult
from conformance.commands.measuring import source
from conformance.commands.result import printed
from conformance.commands.status import ExitStatus, of_verdicts
from conformance.engine import benches
from conformance.model.judging import verdict
from conformance.model.judging.expectation import Surprise
from conformance.model.judging.question import Named, Question, Rule
from conformance.model.judging.session import Answer, Finding, Judged, Repeated, Session, Settled, plan, stored
from conformance.model.judging.verdict import Says, Status, Verdict, ask, counts, overall
from conformance.model.judging.zone import NO_MARGIN, Interval
from conformance.reporting import marks
from conformance.reporting.html import site
from conformance.reporting.text.progress import ConsoleNotes
from conformance.reporting.tools import junit
from conformance.results.source import Source
from conformance.suite import summary
from conformance.support import paths
from conformance.support.console import Console


@dataclasses.dataclass(frozen=True)
class Fast(Rule):
    """A made-up kind of question: whether every trial uses more than a share of the bandwidth."""

    share: float
    noun = "promises of"

    @property
    def id(self):
        return "fast"

    @property
    def place(self):
        return Named(f"above {self.share:g}")

    def judge(self, measured, family, more):
        values = [m.utilization for made in measured.values() for m in made]
        good = min(values) > self.share
        return Verdict(
            status=Status.CONFORMS if good else Status.VIOLATES, zone_id=self.id, place=self.place, n=len(values),
            permitted=Interval(low=self.share, high=1.0, bases=(), margin=NO_MARGIN), reason=f"least {min(values):g}",
            value=min(values), what="utilization",
        )  # fmt: skip

    def fewest(self, family, least=1):
        return least

    def lines(self, verdict, before=None):
        return [("measured", f"{verdict.value:g}")]


def fast(*settings):
    return Question(rule=Fast(0.01), algorithm="cubic", settings=settings or (setting(),))


@pytest.fixture
def measure(tmp_path):
    def call(kind, session):
        fake_room.install(kind)
        means = benches.Means(results=tmp_path / f"{kind}.jsonl", workers=1, notes=ConsoleNotes(Console()))
        return list(session.events(source(benches.find(), means, new=session.is_new)))

    return call


@pytest.mark.parametrize(
    ("kind", "status", "surprise"),
    [
        ("good", Status.CONFORMS, Surprise.NONE),
        ("bad", Status.VIOLATES, Surprise.NEW),
        ("bad once", Status.VIOLATES, Surprise.UNCONFIRMED),
    ],
)
def test_a_new_kind_of_question_is_measured_settled_repeated_and_counted(measure, kind, status, surprise):
    asked = plan([fast(), ask(zone(), setting())], trials=5, most_trials=20)
    asked.refuse_blind()
    events = measure(kind, Session(plan=asked))
    steps = collections.Counter(type(event) for event in events)
    assert steps[Answer] == 1 and steps[Judged] == steps[Settled] == steps[Finding] == 2
    assert steps[Repeated] == (0 if kind == "good" else 2)
    found, _ = [event for event in events if isinstance(event, Finding)]
    assert (found.verdict.status, found.surprise, found.family) == (status, surprise, 2)
    assert found.confirmed.status is (Status.INCONCLUSIVE if found.unconfirmed else status)
    # A session of pytest sums it up, and what was measured is judged from files as it was at once.
    zones = summary.Zones()
    zones.pytest_runtest_logreport(types.SimpleNamespace(when="setup", **{summary.FINDING: summary.pack(found)}))
    label = "not confirmed" if found.unconfirmed else str(status)
    assert next(zones.lines()).startswith(f"promises of fast: 1 {label}")
    (again,) = stored({fast(): events[0].judged[0].measured}, family=2)
    assert again.verdict == found.verdict


def test_a_new_kind_may_be_about_several_settings():
    other = dataclasses.replace(CELL, one_way_delay_ms=40)
    question = fast(setting(), setting(other))
    (found,) = stored({question: {s: measurements([0.5] * 5, cell=s.cell) for s in question.settings}})
    assert (found.verdict.status, found.verdict.n, found.family) == (Status.CONFORMS, 10, 2)


@pytest.fixture
def doubtful(monkeypatch):
    """Add a word to Status, which an Enum does not allow, and how it looks."""
    word = str.__new__(Status, "doubtful")
    word._name_, word._value_, word.says = "DOUBTFUL", "doubtful", Says.OPEN
    monkeypatch.setattr(Status, "_member_names_", [*Status._member_names_, "DOUBTFUL"])
    monkeypatch.setitem(Status._member_map_, "DOUBTFUL", word)
    monkeypatch.setitem(Status._value2member_map_, "doubtful", word)
    stroke = marks.Stroke("m1 1h1", "a dot", "a doubt")
    monkeypatch.setitem(marks.LOOKS, word, marks.Look(marks.OPEN, "~", "nobody knows", stroke))
    return word


def test_a_new_word_counts_ends_and_is_reported_by_what_it_says(doubtful):
    alone = Verdict(status=doubtful, zone_id="z", place=CELL, permitted=zone().intervals[CELL], reason="who knows", n=5)
    assert Status("doubtful") is doubtful and not doubtful.passes and not doubtful.decided
    assert overall([alone]) is doubtful and counts([doubtful]) == "1 doubtful"
    assert of_verdicts([doubtful]) is ExitStatus.UNKNOWN
    found = Finding(verdict=alone)
    judged = (ZoneResult(zone=zone(), scheme_id="s", findings=(found,), unmeasured=()),)
    outcome = GateResult(judged=judged, strict=True)
    assert outcome.exit_status is ExitStatus.UNKNOWN
    assert printed(outcome)["zones"][0]["count"] == {"doubtful": 1}
    assert b'type="doubtful"' in junit.render(outcome, lambda one: one.verdict.reason)
    zones = summary.Zones()
    zones.pytest_runtest_logreport(types.SimpleNamespace(when="setup", **{summary.FINDING: summary.pack(found)}))
    assert "1 doubtful" in next(zones.lines())


def test_pages_draw_a_new_word_and_explain_it(doubtful, monkeypatch, tmp_path):
    judge = verdict.judge
    monkeypatch.setattr(verdict, "judge", lambda *of: dataclasses.replace(judge(*of), status=doubtful))
    results = kept(tmp_path / "results.jsonl", measurements([0.42] * 5))
    front = site.write(Source([results]), tmp_path / "site").read_text()
    assert "doubtful: nobody knows" in front and "a dot a doubt" in front
    assert re.search('<p class="verdict">.*chip open">.*1 doubtful', front) and re.search(
        r'class="mark .*m1 1h1"', front
    )
    (scheme,) = (tmp_path / "site").glob("cubic-linux-tcp-????????.html")
    assert re.search(r'<td class="u\d+ open"><a [^>]*>0.42<i aria-hidden="true">~<', scheme.read_text())


@pytest.mark.parametrize("word", ["COMPATIBLE", "FAILS"])
def test_few_files_know_a_word_that_is_no_other(word):
    """The words that were added last: their meaning, who says them, and how they look. Generated files do not count."""
    code = [path for path in paths.PACKAGE.rglob("*.py") if re.search(rf"\b{word}\b", path.read_text())]
    schemas = [path for path in (paths.PACKAGE / "schemas").iterdir() if "Generated by" not in path.read_text()]
    of_people = [*paths.data("reports", "templates").iterdir(), *schemas]
    files = code + [path for path in of_people if re.search(rf"\b{word.lower()}\b", path.read_text())]
    assert len(files) <= 5, files
