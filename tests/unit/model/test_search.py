"""The search for bad networks: what it draws are scenarios, the seed decides the sequence, and shrinking is sound."""

import copy
import dataclasses
import io
import random
import types

import pytest
from hypothesis import given, settings, strategies as st

from conformance.catalogue import scenarios
from conformance.commands.search import _Hunt
from conformance.model import digest
from conformance.model.errors import UserError
from conformance.model.search.alone import alone
from conformance.model.search.goals import GOALS
from conformance.model.search.mutation import STEADY, is_affordable, mutated
from conformance.model.search.population import Population
from conformance.model.search.shrinking import complexity, shrunk, simpler
from conformance.model.trials.trial import Outcome
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support.console import Console

SEEDS = st.integers(1, 2**31)


def is_scenario(document):
    try:
        scenario = scenarios.of_document(document)
        return scenario.setting(scenario.point({})) is not None
    except UserError:
        return False


def drawn(seed, times):
    """Return a document that has been changed so many times."""
    generator, document = random.Random(seed), copy.deepcopy(dict(STEADY))
    for _ in range(times):
        document = mutated(document, generator, is_scenario)
    return document


DRAWN = st.builds(drawn, SEEDS, st.integers(0, 12))


def score(document):
    """Return made-up scores that depend on the document alone."""
    number = int(digest.of_value(document), 16)
    return {"throughput": number % 7 / 2, **({"loss": number % 11 / 3} if number % 3 else {})}


def sequence(seed, batches):
    population = Population(("throughput", "loss"), random.Random(seed), is_scenario)
    tried = []
    for _ in range(batches):
        for document in population.children(4):
            population.add(document, score(document))
            tried.append(document)
    return tried, population


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(DRAWN)
def test_what_is_drawn_is_a_scenario_that_a_search_can_afford(document):
    assert is_scenario(document) and is_affordable(document)


@pytest.mark.slow
def test_some_of_what_is_drawn_moves_the_client_or_lets_large_packets_vanish():
    documents = [drawn(seed, 6) for seed in range(60)]
    scheduled = [[entry["set"].get("impairments", {}) for entry in d.get("schedule", ())] for d in documents]
    moves = [entries for entries in scheduled if any("rebind" in entry for entry in entries)]
    assert moves and all(sum(map(bool, entries)) == 1 for entries in moves)
    assert any("largest_bytes" in d["links"][0]["data"].get("impairments", {}) for d in documents)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_the_seed_decides_the_sequence_and_no_scenario_comes_twice(seed):
    tried, population = sequence(seed, 6)
    assert sequence(seed, 3)[0] == tried[:12]
    assert len({digest.of_value(document) for document in tried}) == len(tried) == population.tried
    best = population.best("throughput")[0]
    assert best.scores["throughput"] == max(score(document)["throughput"] for document in tried)


def test_another_seed_tries_others():
    assert sequence(1, 2)[0] != sequence(2, 2)[0]


def test_a_search_begins_with_each_kind_of_change_alone():
    first = alone()
    assert all(is_scenario(document) and is_affordable(document) for document in first)
    assert {complexity(document)[0] for document in first} == {1, 2}  # two ways, or two requests
    for seed in (1, 2):
        tried, _ = sequence(seed, len(first) // 4 + 1)
        assert sorted(map(digest.of_value, tried[: len(first)])) == sorted(map(digest.of_value, first))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(DRAWN)
def test_each_simpler_scenario_is_one_and_less_complex(document):
    for candidate in simpler(document):
        assert complexity(candidate) < complexity(document)
        assert is_scenario(candidate)


@settings(max_examples=20, deadline=None)
@given(DRAWN, st.integers(2, 5))
def test_shrinking_keeps_what_is_looked_for_and_nothing_that_can_go(document, modulus):
    def shows(candidate):
        """Return whether a candidate has something in common with the document, at random."""
        return candidate == document or int(digest.of_value(candidate), 16) % modulus == 0

    small = shrunk(document, lambda candidates: next(filter(shows, candidates), None))
    assert shows(small) and not any(map(shows, simpler(small)))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(DRAWN)
def test_what_needs_nothing_shrinks_to_the_steady_link(document):
    small = shrunk(document, lambda candidates: next(iter(candidates), None))
    assert complexity(small)[0] == 0 and small["links"] == STEADY["links"]


def test_an_outage_is_all_that_is_left_if_it_is_all_that_counts():
    outage = {"at_s": 1.35, "link": "bottleneck", "direction": "forward", "set": {"loss_pct": 100}, "for_s": 3}
    document = copy.deepcopy(dict(STEADY)) | {"schedule": [{**outage, "at_s": 0.5, "set": {"rate_mbps": 2}}, outage]}
    document["links"][0]["data"]["loss_pct"] = 1

    def first(candidates):
        outages = ([e for e in d.get("schedule", ()) if e["set"] == {"loss_pct": 100}] for d in candidates)
        return next((d for d, of in zip(candidates, outages, strict=True) if of and of[0]["for_s"] >= 1), None)

    small = shrunk(document, first)
    assert small["schedule"] == [{**outage, "at_s": 1.0, "for_s": 1.5}]
    assert complexity(small)[0] == 1 and small["flows"][0]["bytes"] == 100_000


def measured(outcome, seed=1, failures=frozenset(), value=None):
    control = types.SimpleNamespace(failures=failures)
    return types.SimpleNamespace(outcome=outcome, trial=types.SimpleNamespace(seed=seed), control=control, value=value)


class Hunt(_Hunt):
    """A search of a stack whose queue drops 8 % on the steady link, and 40 % with a shallow queue."""

    def __init__(self):
        self._options = types.SimpleNamespace(goals=("loss",), budget_s=None)
        self._notes, self._failed = ConsoleNotes(Console(file=io.StringIO())), []

    def _tried(self, documents, *_):
        shallow = (document["links"][0]["data"]["queue"]["size"] < 1 for document in documents)
        return [([measured(Outcome.OK, value=40 if each else 8)], [measured(Outcome.OK, value=0)]) for each in shallow]


def test_what_is_shrunk_shows_half_of_what_was_found():
    document = next(each for each in alone() if each["links"][0]["data"]["queue"]["size"] < 1)
    population = types.SimpleNamespace(best=lambda _: [types.SimpleNamespace(document=document, scores={"loss": 20})])
    goal = dataclasses.replace(GOALS["loss"], of=lambda measurement: measurement.value)
    small = Hunt().shrink(goal, population)
    assert small["links"] == document["links"] and small["flows"][0]["bytes"] == 100_000


def test_a_failure_counts_where_another_stack_gets_through():
    failure, sound = GOALS["failure"], [measured(Outcome.OK)]
    assert failure.score([measured(Outcome.FAILED)], sound) >= 1
    assert failure.score([measured(Outcome.FAILED, failures={1})], sound) == 0
    assert failure.score(sound, sound) == 0
    assert failure.score([measured(Outcome.ERROR)], sound) is None


@pytest.mark.parametrize(("name", "ours", "theirs", "counts"), [
    ("throughput", 2.4, 5, True), ("throughput", 2.6, 5, False), ("throughput", 5, 1, False),
    ("disagreement", 5, 2.4, True), ("disagreement", 2.4, 5, True), ("disagreement", 4, 5, False),
    ("standstill", 8.1, 2, True), ("standstill", 7.9, 2, False), ("loss", 2.5, 0.1, True), ("loss", 0, 9, False),
])  # fmt: skip
def test_a_score_of_one_is_the_smallest_difference_that_counts(name, ours, theirs, counts):
    goal = GOALS[name]
    sides = ([types.SimpleNamespace(trial=types.SimpleNamespace(seed=1), mbps=mbps)] for mbps in (ours, theirs))
    score = dataclasses.replace(goal, of=lambda measurement: measurement.mbps).score(*sides)
    assert (score >= 1) == counts
