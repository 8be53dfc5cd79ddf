"""How a guest is fed: which cells it takes when, and which it gives back. No guest is started."""

import dataclasses
import types

import pytest
from helpers import trial
from test_reader import CELLS, KERNELS_OWN, SEEDS, facts_of

from conformance.guest import protocol
from conformance.lab import allowance, cores, room, virtual
from conformance.lab.reader import Reader
from conformance.support import limits

BATCHES = [[trial(seed, cell) for seed in SEEDS] for cell in CELLS]


def test_what_is_given_back_comes_first():
    supply = room.Supply(iter([*BATCHES[:2], [], BATCHES[2]]))
    first = supply.take()
    supply.give_back([first])
    assert [supply.take() for _ in range(5)] == [BATCHES[0], BATCHES[1], None, BATCHES[2], None]
    supply.give_back(BATCHES[1:])
    assert [supply.take(), supply.take(), supply.take()] == [BATCHES[1], BATCHES[2], None]


def test_handfuls_end_where_no_more_is_known():
    one, two, three = BATCHES
    assert list(room.handfuls([[], one, two, [], [], three])) == [[one, two], [three]]
    assert list(room.handfuls([])) == []


@pytest.fixture
def shift(tmp_path, monkeypatch):
    """Return a guest's shift with three cells to come; `cells` lists the cells that it was fed."""
    monkeypatch.setattr(cores, "others_wait", lambda: False)
    reader, fed = Reader([], KERNELS_OWN), []
    feeder = types.SimpleNamespace(feed=fed.append)
    made = virtual._Shift(room.Supply(BATCHES), reader, feeder, most_uptime_s=1000.0, memory_mb=512, allowed_mb=128)
    return types.SimpleNamespace(feed=made.feed, reader=reader, cells=fed, shift=made)


def done(shift, index, seed, uptime_s=100.0):
    event = protocol.TrialDone(index=index, facts=facts_of(seed))
    return list(shift.reader.feed(dataclasses.replace(event, uptime_s=uptime_s), {}))


def test_the_next_cell_is_there_when_the_last_trial_begins_and_not_before(shift):
    fed = []
    shift.feed()
    for seed in SEEDS:
        fed.append(len(shift.cells))
        done(shift, 0, seed)
        shift.feed()
    assert [*fed, len(shift.cells)] == [1, 1, 2, 2]


def test_an_old_guest_is_fed_no_more(shift):
    shift.feed()
    for seed in SEEDS:
        done(shift, 0, seed, uptime_s=1000.5)
        shift.feed()
    assert len(shift.cells) == 1 and not shift.reader.owed


def test_a_guest_makes_room_for_another_run_after_a_while(shift, monkeypatch):
    monkeypatch.setattr(cores, "others_wait", lambda: True)
    shift.feed()
    for seed in SEEDS[:2]:
        done(shift, 0, seed)
        shift.feed()
    assert len(shift.cells) == 2
    monkeypatch.setattr(shift.shift, "_began_s", shift.shift._began_s - 1000)
    done(shift, 0, SEEDS[2])
    for seed in SEEDS:
        done(shift, 1, seed)
        shift.feed()
    assert len(shift.cells) == 2 and not shift.reader.owed


@pytest.mark.parametrize(("start_s", "longest_s"), [(0.1, 30), (1.4, 30), (4.0, 60), (12.0, 180), (90.0, 180)])
def test_a_guest_that_another_run_waits_for_stays_three_minutes_at_most(shift, monkeypatch, start_s, longest_s):
    """It stays fifteen times as long as its start took, but at least half a minute."""
    now = [shift.shift._began_s]
    monkeypatch.setattr(cores, "others_wait", lambda: True)
    monkeypatch.setattr(virtual.time, "monotonic", lambda: now[0])
    # The guest has started, because it has written its first event.
    now[0] += start_s
    shift.reader.uptime_s = 1.0
    assert not shift.shift._is_over()
    now[0] = shift.shift._began_s + longest_s - 0.01
    assert not shift.shift._is_over()
    now[0] += 0.02
    assert shift.shift._is_over()


def test_a_guest_ends_before_trials_that_need_more_memory_than_it_has(shift, monkeypatch):
    def needs(mb, batch):
        setting, scheme = types.SimpleNamespace(network=mb), types.SimpleNamespace(stack="quinn")
        return [types.SimpleNamespace(setting=setting, scheme=scheme) for _ in batch]

    monkeypatch.setattr(virtual.job, "memory_mb", lambda setting, stack: setting.network)
    small, large = needs(256, BATCHES[0]), needs(1024, BATCHES[1])
    supply = room.Supply([small, large])
    reader = types.SimpleNamespace(few_owed=True, add=lambda trials: trials)
    fed = []
    feeder = types.SimpleNamespace(feed=fed.append)
    guest = virtual._Shift(supply, reader, feeder, most_uptime_s=1000.0, memory_mb=512, allowed_mb=300)
    guest._is_over = lambda: False
    guest.feed()
    assert fed == [small]
    assert supply.take() == large  # for the next guest, which has enough


def test_a_guest_ends_before_a_trial_that_needs_more_memory_than_it_may_take(shift, monkeypatch):
    monkeypatch.setattr(allowance, "needed_mb", lambda trial: 129 if trial.setting.cell == CELLS[1] else 128)
    monkeypatch.setattr(limits, "memory_mb", lambda: 256)
    shift.feed()
    for seed in SEEDS:
        done(shift, 0, seed)
        shift.feed()
    assert len(shift.cells) == 1 and not shift.reader.owed
    monkeypatch.setattr(limits, "memory_mb", lambda: None)
    shift.feed()
    assert len(shift.cells) == 2
