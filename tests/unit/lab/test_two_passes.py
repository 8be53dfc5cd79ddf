"""Two passes in a made-up room: which trials are made, in which order, and what comes out."""

import dataclasses

import pytest
from helpers import link

from conformance.lab import two_passes
from conformance.model.networks.scenario import Scenario
from conformance.model.trials.trial import Measurement, Outcome, Scheme, Trial

DOCUMENT = {
    "name": "s", "title": "a test", "timeout_s": 20,
    "links": [link("bottleneck", acks={"delay_ms": 20})],
    "flows": [{"name": "test", "seconds": 10}],
}  # fmt: skip
SCHEME = Scheme(
    algorithm="cubic", stack="s", stack_version="1", stack_digest="d", kernel="k", kernel_release="7", kernel_digest="e"
)


def trial(state=None, seed=1):
    at_s = {"state": state, "plus_s": 1, "plus_rtts": 2} if state else 3
    entry = {"at_s": at_s, "link": "bottleneck", "direction": "forward", "set": {"rate_mbps": 5}}
    made = Scenario.from_json({**DOCUMENT, "schedule": [entry]})
    return Trial(setting=made.setting(made.point({})), scheme=SCHEME, seed=seed, room="virtual", lab_digest="l")


def once(states, log, outcome=Outcome.OK):
    """Return a room that makes each batch that it is given, and takes the next when all of the last has come out."""

    def run(batches):
        for batch in batches:
            if not batch:
                return  # no more trials are known, and none is being made
            for one in batch:
                log.append(one)
                found = {"states": states} if one.setting.network.states else {}
                yield Measurement(trial=one, outcome=outcome, evidence=found if outcome is Outcome.OK else {})

    return run


def test_a_trial_without_states_is_made_once():
    log = []
    (found,) = two_passes.run(once({}, log), [[trial()]])
    assert log == [trial()] and found.trial == trial() and "triggered" not in found.evidence


def test_a_trial_that_waits_is_made_twice_and_comes_out_as_itself():
    log = []
    found = list(two_passes.run(once({"first_loss": (2.5, 0.04)}, log), [[trial("first_loss")], [trial()]]))
    assert [m.trial for m in found] == [trial("first_loss"), trial()]
    assert found[0].evidence == {"triggered": {"first_loss": 2.5}}
    first, second, other = log
    assert first == trial("first_loss") and other == trial()
    assert second.seed == first.seed and second.setting.network.schedule[0].at_s == 3.58
    assert second.setting.guest_digest == first.setting.guest_digest
    assert second.key != first.key


def test_all_of_a_batch_are_made_twice():
    log = []
    asked = [trial("request", seed) for seed in (1, 2, 3)]
    found = list(two_passes.run(once({"request": (0.5, 0.04)}, log), [asked]))
    assert [m.trial for m in found] == asked and len(log) == 6


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.UNSUPPORTED])
def test_a_first_pass_that_failed_is_the_answer(outcome):
    log = []
    (found,) = two_passes.run(once({}, log, outcome), [[trial("request")]])
    assert (found.outcome, len(log)) == (outcome, 1)


def test_a_state_that_never_came_is_an_error_that_names_it():
    (found,) = two_passes.run(once({}, []), [[trial("probe_rtt")]])
    assert found.outcome is Outcome.ERROR and found.trial == trial("probe_rtt")
    assert found.message.startswith("state probe_rtt never came in the first pass: after start-up")
    assert found.evidence == {"never_came": ["probe_rtt"]}


def test_a_state_that_came_too_late_is_an_error():
    (found,) = two_passes.run(once({"request": (9.5, 0.04)}, []), [[trial("request")]])
    assert found.outcome is Outcome.ERROR
    said = "/schedule/0/at_s: it takes effect at 10.58 s, but the trial ends by 10 s; give an earlier time"
    assert found.message == said


def test_a_room_that_knows_of_no_more_is_asked_again():
    """In engine/runs.py, an empty batch says that no more trials are known until those taken are done."""
    log = []

    def batches():
        yield [trial("request")]
        yield ()
        yield [trial(seed=2)]

    run = once({"request": (0.5, 0.04)}, log)

    def room(own):
        taken = iter(own)
        while (batch := next(taken, None)) is not None:
            yield from run([batch] if batch else [])

    found = list(two_passes.run(room, batches()))
    assert {m.trial for m in found} == {trial("request"), trial(seed=2)}
    assert dataclasses.replace(log[0], setting=log[1].setting) == log[1] or len(log) == 3
