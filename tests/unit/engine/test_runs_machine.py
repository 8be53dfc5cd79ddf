"""Runs as a state machine: killed, resumed, two at once on one results file, cut off in the middle of a line.

No measurement is lost, nothing is measured twice within a run, and results equal those of an undisturbed run.
"""

import collections
import dataclasses
import json
import shutil
import tempfile
import threading
from pathlib import Path

import fake_room
import hypothesis
import pytest
from helpers import measurement, setting
from hypothesis import stateful, strategies as st

from conformance.engine import runs
from conformance.engine.work import Looks
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store

#: cells with an even delay are clear at their first look, the others never
CELLS = [Cell(10, delay, 1) for delay in (1, 2, 5, 10, 20)]
WORK = [("cubic", setting(cell)) for cell in CELLS]
NUMBERS = (2, 4)
LOOKS = Looks(numbers=NUMBERS, clear=lambda key, measurements: is_clear(key))
SEEDS = runs.seeds(NUMBERS[-1])
#: seconds, more than any of these runs takes on a busy machine; they end by themselves
PATIENCE_S = 60


def is_clear(key):
    return key[1].cell.one_way_delay_ms % 2 == 0


def made(trial):
    """Return the measurement that a trial always gives."""
    value = trial.seed / 10 + trial.setting.cell.one_way_delay_ms / 1000
    return dataclasses.replace(measurement(value), trial=trial)


class Room(fake_room.Room):
    """A room that counts what it measures; trials with seeds in `errs` are errors, which it does not count.

    After `ends` trials, it makes no more and waits for its run to be closed.
    """

    def __init__(self, ends=None, errs=()):
        self.times, self.stuck = collections.Counter(), threading.Event()
        self._ends, self._errs, self._lock = ends, errs, threading.Lock()

    def run(self, adapter, batches, cancelled):
        for trial in (trial for trials in batches for trial in trials):
            with self._lock:
                ended = self._ends is not None and self.times.total() >= self._ends
                if not ended and trial.seed not in self._errs:
                    self.times[trial.key] += 1
            if ended:
                self.stuck.set()
                cancelled.wait(PATIENCE_S)
                return
            if trial.seed in self._errs:
                yield dataclasses.replace(measurement(outcome=Outcome.ERROR, message="the guest died"), trial=trial)
            else:
                yield made(trial)


class Kept(store.Store):
    """A results file that also collects what is added to it in a list."""

    def __init__(self, path, added):
        super().__init__(path)
        self._added = added

    def add(self, measurement):
        super().add(measurement)
        self._added.append(measurement)


class Machine(stateful.RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self._folder = Path(tempfile.mkdtemp())
        self._path = self._folder / "r.jsonl"
        #: {key: measurement} that a fresh reader of the file must find
        self._settled = {}

    def teardown(self):
        shutil.rmtree(self._folder)

    def _start(self, work, workers, room):
        added = []
        run = runs.Run(fake_room.bench_of(room), Kept(self._path, added), work, SEEDS, workers, looks=LOOKS)
        return run, added

    def _settle(self, room, added, before):
        assert all(times == 1 for times in room.times.values())
        assert not room.times.keys() & before
        self._settled.update((m.trial.key, m) for m in added if m.outcome is Outcome.OK)

    def _check(self, run, work, errs=()):
        for key in work:
            found = run.result(*key)
            number = NUMBERS[0] if is_clear(key) else NUMBERS[-1]
            assert [m.trial.seed for m in found] == list(SEEDS[:number])
            assert all(m == made(m.trial) for m in found if m.outcome is not Outcome.ERROR)
            assert all(m.trial.seed in errs for m in found if m.outcome is Outcome.ERROR)

    works = st.lists(st.sampled_from(WORK), min_size=1, unique=True)
    workers = st.integers(1, 3)

    @stateful.rule(work=works, workers=workers, errs=st.sets(st.sampled_from(SEEDS), max_size=1))
    def run_to_its_end(self, work, workers, errs):
        before, room = set(self._settled), Room(errs=errs)
        run, added = self._start(work, workers, room)
        with run:
            run.wait()
            self._check(run, work, errs)
        self._settle(room, added, before)
        assert sum(m.outcome is Outcome.OK for m in added) == room.times.total()

    @stateful.rule(work=works, workers=workers, ends=st.integers(0, 12))
    def run_that_is_killed(self, work, workers, ends):
        before, room = set(self._settled), Room(ends=ends)
        run, added = self._start(work, workers, room)
        ended = threading.Thread(target=lambda: (run.wait(), room.stuck.set()))
        ended.start()
        assert room.stuck.wait(PATIENCE_S)
        run.close()
        ended.join()
        self._settle(room, added, before)
        assert sum(m.outcome is Outcome.OK for m in added) == room.times.total()

    @stateful.rule(works=st.tuples(works, works), workers=workers)
    def two_at_once(self, works, workers):
        before, rooms = set(self._settled), (Room(), Room())
        started = [self._start(work, workers, room) for work, room in zip(works, rooms, strict=True)]
        for (run, added), work, room in zip(started, works, rooms, strict=True):
            with run:
                run.wait()
                self._check(run, work)
            self._settle(room, added, before)
        # Each run waits for what the other is measuring.
        assert all(times == 1 for times in (rooms[0].times + rooms[1].times).values())

    @stateful.rule(share=st.floats(0, 1))
    def machine_that_dies_in_the_middle_of_a_line(self, share):
        """Cut the last line anywhere; all lines before it must still be read."""
        # This is no precondition: which line is last depends on threads, and Hypothesis must see the same each time.
        if not self._settled or not self._path.read_bytes().endswith(b"\n"):
            return
        data = self._path.read_bytes()
        last = data.splitlines(keepends=True)[-1]
        self._path.write_bytes(data[: -len(last)] + last[: max(1, int(share * (len(last) - 1)))])
        cut = Measurement.from_json(json.loads(last)).trial.key
        found = {m.trial.key for m in store.read(self._path)}
        assert self._settled.keys() - found <= {cut}
        self._settled = {key: m for key, m in self._settled.items() if key in found}

    @stateful.invariant()
    def nothing_is_lost(self):
        if self._path.exists():
            found = {m.trial.key: m for m in store.read(self._path)}
            assert self._settled.items() <= found.items()


Machine.TestCase.settings = hypothesis.settings(max_examples=20, stateful_step_count=6)
TestMachine = pytest.mark.slow(Machine.TestCase)
