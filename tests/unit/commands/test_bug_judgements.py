"""`dev bugs run`: which judgements an entry goes through."""

import dataclasses
import json

import fake_room
import pytest
import senders
from test_clause_command import HALVES, Packets

from conformance.catalogue import bugs, clauses
from conformance.commands import bugs as command, clause
from conformance.commands.bugs import BugsOptions
from conformance.commands.result import printed
from conformance.engine.benches import Choice, Means
from conformance.model.clauses import changes
from conformance.model.diagnosis import by_trial
from conformance.model.errors import UserError
from conformance.model.judging.session import Session
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import schema
from conformance.support.console import Console

(CUBIC,), (BBR,), (SHAM,) = (bugs.chosen([name]) for name in ("QUINN-FC", "NGTCP2-BBRFULL", "QUINN-SHAM"))


class Quiet:
    def say(self, line):
        pass


EVERY = ["clauses", "compare", "zones"]


@pytest.fixture
def judged(monkeypatch):
    """Return a function that returns the commands that an entry goes through, if each says this (default: nothing)."""

    def judge(bug, until_named, **said):
        for name in ("smoke", *EVERY):
            monkeypatch.setattr(command, f"_{name}", _says(name, said.get(name, [])))
        options = BugsOptions(trees={}, budget_s=None, until_named=until_named)
        return [
            tier.command for tier in command._judged(bug, ("buggy", "fixed"), options, Means(results="", notes=Quiet()))
        ]

    return judge


def _says(name, by):
    def judge(*_):
        return by, "a sentence", 1, 0

    judge.__name__ = f"_{name}"
    return judge


def test_the_cheapest_judgement_comes_first_and_all_are_run(judged):
    assert judged(CUBIC, False) == EVERY
    assert judged(BBR, False) == ["smoke", *EVERY]
    assert judged(CUBIC, False, clauses=["CL111"]) == ["clauses", "compare"]


def test_an_entry_ends_with_the_command_that_names_it(judged):
    assert judged(CUBIC, True, clauses=["CL111"]) == ["clauses"]
    assert judged(CUBIC, True, clauses=["CL001"], compare=["beta"]) == ["clauses", "compare"]
    assert judged(CUBIC, True) == EVERY
    assert judged(BBR, True, smoke=["BBR21"], compare=["slow_start"]) == ["smoke", "clauses", "compare"]
    assert judged(BBR, True, smoke=["slow_start"]) == ["smoke"]


def test_a_sham_goes_through_every_judgement(judged):
    assert judged(SHAM, True, clauses=["CL001"]) == EVERY


def test_a_feature_is_called_by_its_label_unless_its_name_is_what_names_the_bug():
    (cut,) = bugs.chosen(["NGTCP2-BBRCUT"])
    assert "throughput" in cut.named_by and "queue" not in cut.named_by
    quantities = {feature.name: by_trial.quantity(feature, "bbrv3") for feature in by_trial.told("bbrv3")}
    names = [command._called(quantities[name], cut) for name in ("throughput", "kept", "queue_mean")]
    assert names == ["throughput", "response", "queue"]


def test_a_build_may_be_a_kernel_that_the_user_built(monkeypatch):
    (bug,) = bugs.chosen(["LINUX-CUBIC-IDLE"])
    monkeypatch.setattr(command.adapter, "build", lambda stack, given: None)
    with monkeypatch.context() as patch, pytest.raises(UserError, match="no guest kernel named 'cubic-idle' is built"):
        patch.setattr(command.kernels, "kernels", lambda: [])
        command._choices(bug, {}, Quiet())
    monkeypatch.setattr(command.kernels, "find", str)
    choices = command._choices(bug, {}, Quiet())
    assert [choice.kernel for choice in choices] == ["cubic-idle", None]
    compared = []

    def compute(base, head, options, means):
        compared.append((base, head, options.choice.kernel))
        raise UserError("that is enough")

    monkeypatch.setattr(command.compare, "compute", compute)
    with pytest.raises(UserError, match="that is enough"):
        command._compare(bug, choices, BugsOptions(trees={}, budget_s=None), Means(results="", notes=Quiet()))
    # A kernel of the choice would be that of both sides.
    assert compared == [("linux-tcp", "linux-tcp@cubic-idle", None)]


class Unsettled(Packets):
    """A room whose sender halves in every other trial, and in none from the seed `kind` on."""

    def made(self, trial):
        return Packets("0.7" if trial.seed % 2 or trial.seed >= float(self.kind) else "0.5").made(trial)


class Lossless(Packets):
    """A room whose sender loses nothing, so that the clause is about nothing that it does."""

    def made(self, trial):
        kept = senders.packets(senders.Sender(), one_way_s=0.02, bytes_per_s=1.25e6).to_json()
        return dataclasses.replace(super().made(trial), packets=kept)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fixed", "caught"),
    [
        (Packets("0.5"), True),
        (Packets("0.7"), False),
        (Unsettled("1018"), False),
        (Unsettled("1021"), True),
        (Lossless("0.5"), True),
    ],
)
def test_a_clause_catches_a_bug_if_it_clears_the_fixed_build(monkeypatch, tmp_path, fixed, caught):
    (bug,) = bugs.chosen(["QUICGO-SPURIOUS"])
    rooms = {"a": Packets("0.7"), "b": fixed}

    def bench(choice):
        return fake_room.bench_of(rooms[choice.kernel], lab_digest=choice.kernel * 16)

    monkeypatch.setattr(command.benches, "find", bench)
    choices = [Choice(kernel=name) for name in rooms]
    options = BugsOptions(trees={}, budget_s=None, clauses=(HALVES,))
    means = Means(results=tmp_path / "r.jsonl", notes=ConsoleNotes(Console()))
    by, *_ = command._clauses(bug, choices, options, means)
    assert by == [HALVES] * caught


def test_a_violation_is_repeated_as_one_of_all_clauses(monkeypatch, tmp_path):
    """Alone, it would come from fewer trials: each of the two times a clause needs only half of the evidence."""
    families = []

    def findings(self, source):
        families.append({question.id: family for question, family in self.plan.families.items()})
        return []

    fake_room.install("0.7", Packets, monkeypatch.setattr)
    monkeypatch.setattr(Session, "findings", findings)
    means = Means(results=tmp_path / "r.jsonl", notes=Quiet())
    for beside in (None, [], ["rfc9002"]):
        clause.run(
            [HALVES], ["reno"], Choice(), means, mutant=None, trials=5, first_seed=1001, most_trials=None,
            record=False, beside=beside,
        )  # fmt: skip
    alone, of_all, of_one = (family[HALVES] for family in families)
    assert alone == 1 and 1 < of_one < of_all


def test_what_a_run_prints_satisfies_its_schema():
    runs = tuple(bugs.runs().values())
    ran = command.Ran(bugs=bugs.entries(), runs=runs, absent={"A-B": "it has no build"})
    document = json.loads(json.dumps(printed(ran)))
    schema.check("bugs-run", document, "test")
    assert [entry["id"] for entry in document["runs"]] == [run.id for run in runs] and document["caught"] == ran.caught


@pytest.mark.parametrize(
    ("clause", "algorithm", "points_at"),
    [
        ("CL008", "cubic", "app_limited"),  # read in another network
        ("CL203", "cubic", "backoff"),  # likewise
        ("CL053", "cubic", "loss_timer"),  # elsewhere, its observable points at backoff
        ("CL016", "cubic", "disorder"),  # a rate, in the clause's own network
        ("CL026", "cubic", None),  # a rate of a whole transfer
        ("CL002", "cubic", None),  # no feature reads it
        ("BBR521", "bbrv3", "idle_restart"),
    ],
)
def test_a_clause_points_at_what_the_feature_of_its_observable_does(clause, algorithm, points_at):
    assert changes.label_of_clause(clauses.find(clause), algorithm) == points_at


def test_a_clause_names_a_bug_by_what_it_points_at():
    (idle,) = bugs.chosen(["NGTCP2-BBRIDLE"])
    assert "BBR521" not in idle.named_by
    assert command.names_mechanism(idle, "BBR521") and command.names_mechanism(idle, "idle_pacing")
    assert not command.names_mechanism(idle, "BBR05") and not command.names_mechanism(idle, "bbrv3/heatmap")


def test_the_record_names_what_the_catalogue_names_today():
    by_id = {bug.id: bug for bug in bugs.entries()}
    for run in bugs.runs().values():
        for tier in run.tiers:
            today = tier.caught and command.names_mechanism(by_id[run.id], tier.by[0])
            assert tier.named == today, (run.id, tier.command)
