"""The Reader with events in any order, truncated and repeated, and how strictly it reads them."""

import collections
import dataclasses
import json
import re
import types

import pytest
from helpers import JSON, facts, trial
from hypothesis import given, strategies as st

from conformance.guest import protocol, seen, wire
from conformance.lab.reader import Reader
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome

CELLS = (Cell(10, 20, 1), Cell(10, 40, 1), Cell(10, 20, 0))
SEEDS = (1, 2, 5)
BATCHES = [[trial(seed, cell) for seed in SEEDS] for cell in CELLS]
KERNELS_OWN = types.SimpleNamespace(kernel_algorithms={"cubic": "cubic"})
NETWORK = protocol.NetworkUp(sysctls={}, offload={}, kernel="6.12.0", kernel_algorithm=None)
REFUSED = protocol.Unsupported(message="this kernel has no congestion control named cubic")


def facts_of(seed=1, ready=True, cell=CELLS[0]):
    """Return the facts of a good trial, or of one whose server was never ready, as a guest reports them."""
    sampled = {
        "trace": {}, "congestion_control": None, "proxy": None, "queue_mean_bytes": 10.0, "queue_peak_bytes": 20,
        "queue_peak_packets": 1, "tcp_info": dict.fromkeys((one.name for one in dataclasses.fields(seen.TcpInfo)), 1),
    }  # fmt: skip
    return wire.read(
        seen.TrialFacts,
        wire.to_json(facts(network=trial(1, cell).setting.network, seed=seed, ready=ready, sampled=sampled)),
    )


def link_of(cell):
    netem = {"delay": {"delay": cell.one_way_delay_ms / 1000}, "loss-random": {"loss": cell.loss_pct / 100}}
    qdiscs = {"kind": "netem", "options": netem}, {"kind": "htb"}, {"kind": "red"}
    return seen.LinkSeen(
        rate_mbps=cell.bandwidth_mbps, delays_ms=(cell.one_way_delay_ms + 0.05,), loss_sent=2000,
        loss_lost=round(20 * cell.loss_pct), qdiscs=qdiscs,
    )  # fmt: skip


def story():
    """Yield the events of a guest that makes all the trials of BATCHES, in order."""
    yield NETWORK
    yield protocol.CongestionControl(observed=seen.CongestionControlSeen(name="cubic", names=("cubic",), bbr=None))
    for index, cell in enumerate(CELLS):
        yield protocol.CellBegins(index=index)
        yield protocol.Calibration(index=index, observed=(link_of(cell),))
        for seed in SEEDS:
            yield protocol.TrialDone(index=index, facts=facts_of(seed, cell=cell))
    yield protocol.End()


STORY = tuple(story())
INDICES, ANY_SEED = st.integers(-2, len(CELLS) + 1), st.sampled_from((*SEEDS, 99))
#: events of a guest that fails, or whose events make no sense
OTHERS = st.one_of(
    st.just(protocol.Fault(message="OSError: no space", where="main.py:1")),
    st.just(REFUSED),
    st.builds(protocol.CellBegins, index=INDICES),
    st.builds(protocol.Calibration, index=INDICES, observed=st.sampled_from([(), (link_of(CELLS[0]),)])),
    st.builds(protocol.TrialFailed, index=INDICES, seed=ANY_SEED, message=st.just("no memory")),
    st.builds(protocol.TrialDone, index=INDICES, facts=st.builds(facts_of, ANY_SEED, st.booleans())),
)
EVENTS = st.lists(st.sampled_from(STORY) | OTHERS, max_size=40)


def told(events, batches=BATCHES):
    """Return (measurements that the events complete, those that giving up completes) for a single guest."""
    reader = Reader(batches, KERNELS_OWN)
    came = [found for event in events for found in reader.feed(event, {})]
    given_up = []
    while reader.owed:
        owed = len(reader.owed)
        given_up += reader.give_up("the guest ended", {})
        assert len(reader.owed) == owed - 1
    return came, given_up


def test_a_whole_story_is_all_measured():
    came, given_up = told(STORY)
    assert [m.trial for m in came] == [trial for batch in BATCHES for trial in batch]
    assert {m.outcome for m in came} == {Outcome.OK}
    assert [m.host for m in came] == [{"system_calls": 7}] * len(came)
    assert given_up == []


@given(EVENTS)
def test_each_owed_trial_comes_out_once_whatever_the_events_are(events):
    came, given_up = told(events)
    counted = collections.Counter(m.trial for m in came + given_up)
    assert counted == {trial: 1 for batch in BATCHES for trial in batch}
    assert all(m.outcome is Outcome.ERROR and m.message == "the guest ended" for m in given_up)
    assert {m.outcome for m in came} <= {Outcome.OK, Outcome.ERROR, Outcome.UNSUPPORTED}


@given(st.permutations(STORY))
def test_no_order_makes_more_of_a_story_than_was_measured(events):
    came, given_up = told(events)
    assert {m.trial for m in came} == {trial for batch in BATCHES for trial in batch} and not given_up
    for m in came:
        assert m.outcome is Outcome.OK or m.message.startswith("calibration: the guest did not say")


@given(st.integers(0, len(STORY)))
def test_a_story_that_is_cut_short_keeps_what_came_before(length):
    came, given_up = told(STORY[:length])
    assert came == told(STORY)[0][: len(came)]
    assert len(came) == sum(isinstance(event, protocol.TrialDone) for event in STORY[:length])
    assert len(came) + len(given_up) == len(CELLS) * len(SEEDS)


@given(st.lists(st.integers(0, len(STORY) - 1), max_size=12))
def test_repetition_changes_nothing(repeated):
    events = [event for at, event in enumerate(STORY) for _ in range(1 + repeated.count(at))]
    assert told(events) == told(STORY)


def test_captures_do_not_outlive_what_was_made_of_them(tmp_path):
    places = [tmp_path / f"{index}-{seed}" for index in range(len(CELLS)) for seed in SEEDS]
    for place in places:
        place.mkdir()
        (place / "sent.pcap").write_bytes(b"packets")
    reader = Reader(BATCHES, KERNELS_OWN, traces=tmp_path)
    for event in STORY:
        for found in reader.feed(event, {}):
            assert found.outcome is Outcome.OK
            assert not places.pop(0).exists()
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_lacks_the_algorithm_leaves_nothing_owed():
    came, given_up = told([NETWORK, REFUSED, *STORY])
    assert {m.outcome for m in came} == {Outcome.UNSUPPORTED} and len(came) == len(CELLS) * len(SEEDS)
    assert given_up == []


def test_a_fault_harms_only_the_cell_that_it_happens_in():
    reader = Reader(BATCHES, KERNELS_OWN)
    at = next(at for at, event in enumerate(STORY) if isinstance(event, protocol.CellBegins) and event.index == 1)
    for event in STORY[: at + 1]:
        list(reader.feed(event, {}))
    failed = list(reader.feed(protocol.Fault(message="tc: no", where="tc.py:1"), {}))
    assert [m.trial for m in failed] == BATCHES[1] and {m.message for m in failed} == {"tc: no"}
    assert reader.owed == [BATCHES[2]]


def test_a_calibration_that_is_wrong_goes_before_a_trial_that_failed():
    wrong = protocol.Calibration(index=0, observed=(dataclasses.replace(link_of(CELLS[0]), rate_mbps=5.0),))
    failed = protocol.TrialFailed(index=0, seed=1, message="the proxy was never ready")
    (first, second), _ = told([NETWORK, wrong, failed, protocol.TrialDone(index=0, facts=facts_of(2))])
    assert first.message == second.message
    assert "delivered 5 Mbit/s" in first.message


# --- lines


@pytest.mark.parametrize("event", [*STORY[:5], STORY[-1], REFUSED], ids=lambda event: type(event).__name__)
def test_events_come_back_as_they_were(event):
    assert protocol.parse_event(protocol.event_line(event)) == event


@given(st.sampled_from(STORY), st.data())
def test_a_line_that_is_cut_short_is_refused(event, data):
    line = protocol.event_line(event).rstrip("\n")
    with pytest.raises(wire.ProtocolError):
        protocol.parse_event(line[: data.draw(st.integers(0, len(line) - 1))])


def places(value, at=()):
    """Yield the paths of all values in a JSON document."""
    yield at
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*at, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*at, index))


@given(st.sampled_from(STORY), JSON, st.data())
def test_whatever_stands_in_an_event_is_read_or_refused_and_never_breaks_the_reader(event, value, data):
    document = json.loads(protocol.event_line(event))
    *above, last = data.draw(st.sampled_from(list(places(document))[1:]))
    holder = document
    for name in above:
        holder = holder[name]
    if isinstance(holder, dict) and data.draw(st.booleans()):
        del holder[last]
    else:
        holder[last] = value
    try:
        read = protocol.parse_event(json.dumps(document))
    except wire.ProtocolError:
        return
    at = STORY.index(event)
    came, given_up = told([*STORY[:at], read, *STORY[at + 1 :]])
    assert len(came) + len(given_up) == len(CELLS) * len(SEEDS)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"event": "party"}', "unknown event 'party'"),
        ('{"event": "end"}', "/uptime_s: missing in End"),
        ('{"event": "end", "uptime_s": 1, "more": 1}', "/more: unknown in End"),
        ('{"event": "end", "uptime_s": "1"}', "/uptime_s: expected float"),
        ('{"event": "end", "uptime_s": true}', "/uptime_s: expected float"),
        ('{"event": "end", "uptime_s": NaN}', "NaN"),
        ('{"event": "end", "uptime_s": 1e999}', "/uptime_s: expected a number"),
        ('{"event": "end", "uptime_s": 1, "uptime_s": 2}', "twice"),
        ('{"event": "unsupported", "uptime_s": 1, "message": "\\ud800"}', "/message: expected text"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(line, words):
    with pytest.raises(wire.ProtocolError, match=re.escape(words)):
        protocol.parse_event(line)


def test_counters_that_do_not_belong_together_are_refused():
    document = json.loads(protocol.event_line(next(e for e in STORY if isinstance(e, protocol.TrialDone))))
    document["facts"]["detail"]["counters"]["after"]["interfaces"]["server"] = {}
    with pytest.raises(wire.ProtocolError, match=r"/facts/detail/counters: the interfaces"):
        protocol.parse_event(json.dumps(document))
