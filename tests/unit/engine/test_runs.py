"""How the engine distributes work and collects results; rooms are fakes here."""

import concurrent.futures
import dataclasses
import itertools
import threading
import time
import types
from typing import ClassVar

import fake_room
import pytest
from helpers import measurement, refusal, scheme, setting
from hypothesis import given, settings, strategies as st

from conformance.catalogue import scenarios
from conformance.engine import benches, runs, work
from conformance.engine.progress import FIXED_BYTES, RunProgress
from conformance.lab import manifest
from conformance.lab.room import handfuls
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support.console import duration, seconds_of

FULL = grid.cells("full")


class Watched(fake_room.Room):
    """A room that takes several cells at a time and notes those of each handful."""

    handfuls: ClassVar[list] = []

    def run(self, adapter, batches, cancelled):
        for handful in handfuls(batches):
            self.handfuls.append([trials[0] for trials in handful])
            yield from super().run(adapter, handful, cancelled)


def run_watched(tmp_path, monkeypatch, asked, workers):
    """Return the first trials of the cells in each handful that workers would be given."""
    monkeypatch.setattr(Watched, "handfuls", [])
    fake_room.install("good", Watched)
    bench = benches.find()
    monkeypatch.setattr(type(bench), "elsewhere", lambda self, room: self)
    with runs.Run(bench, store.Store(tmp_path / "r.jsonl"), asked, [1], workers, executor=lambda: None) as run:
        found = dict(run.as_completed(60))
    assert set(found) == set(asked)
    return Watched.handfuls


def test_what_is_completed_while_results_are_used_is_not_lost_as_time_is_over(tmp_path, monkeypatch):
    def until_all_is_done(futures, timeout_s):
        yield next(iter(concurrent.futures.wait(futures).done))
        raise concurrent.futures.TimeoutError

    monkeypatch.setattr(concurrent.futures, "as_completed", until_all_is_done)
    fake_room.install("good", fake_room.Room)
    asked = [("cubic", setting(cell)) for cell in FULL[:3]]
    with runs.Run(benches.find(), store.Store(tmp_path / "r.jsonl"), asked, [1]) as run:
        found = dict(run.as_completed(60))
    assert {key: len(measured) for key, measured in found.items()} == dict.fromkeys(asked, 1)


class Removing(fake_room.Room):
    """A room that removes the results file after each trial; if `folder` is set, it makes a folder of that name."""

    path: ClassVar = None
    folder: ClassVar = False

    def run(self, adapter, batches, cancelled):
        for measured in super().run(adapter, batches, cancelled):
            yield measured
            if not self.path.is_dir():
                self.path.unlink()
                if self.folder:
                    self.path.mkdir()


@pytest.fixture
def removed(tmp_path, monkeypatch):
    """Return a function that gives the Run of six cells; its argument says if a folder replaces the results file."""
    monkeypatch.setattr(Removing, "path", tmp_path / "r.jsonl")
    fake_room.install("good", Removing)

    def start(folder):
        monkeypatch.setattr(Removing, "folder", folder)
        return runs.Run(benches.find(), store.Store(Removing.path), ASKED, range(1, 3), 1)

    return start


ASKED = [("cubic", setting(cell)) for cell in FULL[:6]]


def test_a_results_file_that_is_removed_meanwhile_is_made_anew(removed):
    with removed(folder=False) as run:
        assert {key: len(found) for key, found in run.as_completed(60)} == dict.fromkeys(ASKED, 2)


def test_a_results_file_that_cannot_be_opened_any_more_is_an_error_of_each_cell(removed):
    with removed(folder=True) as run:
        run.wait()
        for key in ASKED:
            with pytest.raises(UserError, match=r"results .*r\.jsonl: Is a directory"):
                run.result(*key)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 64])
@pytest.mark.parametrize("algorithms", [("cubic",), ("cubic", "reno")])
def test_all_work_is_shared_out_once_in_order_and_alike(tmp_path, monkeypatch, workers, algorithms):
    asked = [(algorithm, setting(cell)) for algorithm in algorithms for cell in FULL]
    found = run_watched(tmp_path, monkeypatch, asked, workers)
    keys = [[(trial.scheme.algorithm, trial.setting) for trial in trials] for trials in found]
    assert sorted(map(asked.index, itertools.chain.from_iterable(keys))) == list(range(len(asked)))
    assert all(1 <= len(handful) <= 10 and len({algorithm for algorithm, _ in handful}) == 1 for handful in keys)
    assert all([asked.index(key) for key in handful] == sorted(map(asked.index, handful)) for handful in keys)


def test_a_full_grid_ends_with_single_cells(tmp_path, monkeypatch):
    sizes = list(map(len, run_watched(tmp_path, monkeypatch, [("cubic", setting(cell)) for cell in FULL], 2)))
    assert sizes[0] == 10
    assert sizes[-5:] == [1] * 5


def tasks(cells, algorithm="cubic", looks=(5,)):
    numbers = work.Looks(numbers=looks)
    return [work.Task((algorithm, setting(cell)), range(1, 1 + looks[-1]), numbers) for cell in cells]


def test_a_thread_keeps_to_its_group_and_helps_where_that_is_worth_a_start():
    shared = work.Work(worth_joining=8)
    for task in [*tasks(FULL[:12]), *tasks(FULL[:2], "reno")]:
        shared.put(task)
    cubic, reno = shared.join(), shared.join()
    assert (len(cubic.waiting), len(reno.waiting)) == (12, 2)
    assert shared.join() is cubic  # 60 trials wait for one thread there
    for _ in range(11):
        shared.take(cubic)
    shared.take(reno)
    assert shared.join() is None  # five trials wait in each
    shared.leave(reno)
    assert shared.join() is reno  # no other thread would make them
    task = shared.take(reno)
    shared.put_first(task)
    assert shared.take(reno) is task and shared.take(reno) is None


class Together(fake_room.Room):
    """A room that makes no trial until two guests have one to make."""

    met = threading.Barrier(2, timeout=60)

    def run(self, adapter, batches, cancelled):
        for trials in batches:
            self.met.wait()
            yield from super().run(adapter, [trials], cancelled)


def test_a_second_guest_helps_with_the_last_setting_of_a_stack_over_udp(tmp_path):
    """Three of its trials take longer than a guest's start."""
    fake_room.install("good", Together)
    about = types.SimpleNamespace(transport="udp")
    adapter = types.SimpleNamespace(name="fake", manifest=about, why_not=lambda algorithm: None)
    bench = dataclasses.replace(benches.find(), adapter=adapter)
    with runs.Run(bench, store.Store(tmp_path / "r.jsonl"), ASKED[:2], range(1, 4), 2) as run:
        assert {key: len(found) for key, found in run.as_completed(60)} == dict.fromkeys(ASKED[:2], 3)


def test_urgent_tasks_come_first_even_if_that_takes_more_guests():
    shared = work.Work(worth_joining=8)
    urgent, rest = tasks(FULL[:12]), tasks(FULL[12:])
    for task in urgent:
        task.urgent = True
    few, many = tasks(FULL[:2], "reno"), tasks(FULL[:20], "bbr")
    few[0].urgent = True
    for task in [*urgent, *few, *many, *rest]:
        shared.put(task)
    cubic = shared.join()
    assert shared.take(cubic) is urgent[0]
    assert shared.join() is cubic  # and not the group of bbr, which is worth a guest and has no thread
    assert [shared.take(cubic) for _ in urgent[1:]] == urgent[1:]
    assert shared.take(cubic) is None  # urgent trials wait elsewhere, however few
    reno = shared.join()
    assert [shared.take(reno), shared.take(reno), shared.take(cubic)] == [few[0], few[1], rest[0]]
    assert shared.take(shared.join()) is many[0]


def made_in(seconds, cell, **host):
    return dataclasses.replace(measurement(cell=cell), host={"wall_s": seconds, **host})


def test_first_estimates_count_starts_and_calibrations_as_often_as_they_come():
    """80 trials of 16 cells on two cores, each of a quarter of a second, take 11 s, not 80 times the first trial."""
    cells = FULL[:16]
    progress = RunProgress(threads=2, clock=lambda: 0.0)
    progress.expect([("cubic", setting(cell)) for cell in cells], 5)
    progress.one_more(measurement(cell=cells[0]), fresh=False)
    assert progress.remaining_s() is None
    progress.one_more(made_in(0.25, cells[0], start_s=1.5, calibration_s=0.5), fresh=True)
    assert progress.remaining_s() is None
    progress.one_more(made_in(0.25, cells[0]), fresh=True)
    assert progress.remaining_s() == pytest.approx((77 * 0.25 + 15 * 0.5) / 2, rel=0.2)
    assert progress.line() == "3 of 80 trials, about 13 s left"


#: {stack: wall s of a trial of 10 s at 10 and at 50 Mbit/s}, once measured
COSTS = {"linux-tcp": (0.11, 0.23), "aioquic": (2.54, 10.30), "quinn": (0.39, 1.66), "x-net-quic": (0.94, 3.26)}


@pytest.mark.parametrize("stack", COSTS)
@settings(max_examples=25)
@given(st.permutations(FULL), st.floats(0, 2), st.floats(0, 2))
def test_the_first_estimate_is_right_within_a_factor_of_1_5_in_whatever_order(stack, cells, start_s, calibration_s):
    slow_s, fast_s = COSTS[stack]
    costs = {cell: slow_s + (fast_s - slow_s) * (cell.bandwidth_mbps - 10) / (50 - 10) for cell in cells}
    transport = manifest.read(stack).transport
    progress = RunProgress(threads=2, fixed_bytes=FIXED_BYTES[transport], clock=lambda: 0.0)
    progress.expect([("cubic", setting(cell)) for cell in cells], 5)
    progress.one_more(made_in(costs[cells[0]], cells[0], start_s=start_s, calibration_s=calibration_s), fresh=True)
    progress.one_more(made_in(costs[cells[0]], cells[0]), fresh=True)
    truth = (5 * sum(costs.values()) + 149 * calibration_s - 2 * costs[cells[0]]) / 2
    assert truth / 1.5 < progress.remaining_s() < truth * 1.5


@pytest.mark.parametrize("most", (0.0, 0.3, 0.85))
def test_the_first_estimate_counts_on_trials_after_looks(most):
    """Up to 0.85 of the trials of the first looks came on top of them in a whole zone (docs/performance.md)."""
    progress = RunProgress(threads=2, clock=lambda: 0.0)
    (task,) = tasks(FULL[:1], looks=(5, 8))
    progress.expect([("cubic", setting(cell)) for cell in FULL], 5, task.further)
    for _ in range(2):
        progress.one_more(made_in(0.25, FULL[0]), fresh=True)
    costs = [FIXED_BYTES["tcp"] + setting(cell).transfer_bytes for cell in FULL]
    truth = 0.25 / costs[0] * (5 * sum(costs) * (1 + most) - 2 * costs[0]) / 2
    assert truth / 1.5 < progress.remaining_s() < truth * 1.5


class Timed(fake_room.Room):
    """A room whose trials take a second each."""

    def run(self, adapter, batches, cancelled):
        for measured in super().run(adapter, batches, cancelled):
            yield dataclasses.replace(measured, host={"wall_s": 1.0})


def test_the_first_estimate_knows_that_one_trial_of_each_setting_is_not_all(tmp_path):
    """Clauses have a first look at one trial, and no clear verdict before five."""
    fake_room.install("good", Timed)
    needed = dict(zip([("cubic", setting(cell)) for cell in FULL[:26]], itertools.cycle((5, 5, 5, 13)), strict=False))
    looks = work.Looks(numbers=(1, 5, 8, 13), usual=5, clear=lambda key, found: len(found) >= needed[key])
    estimates = []
    with runs.Run(
        benches.find(), store.Store(tmp_path / "r.jsonl"), needed, range(1, 14), 1, looks=looks,
        on_trial=lambda progress: estimates.append(progress.remaining_s()),
    ) as run:  # fmt: skip
        run.wait()
    assert len(estimates) == sum(needed.values())
    left = {at: estimate for at, estimate in enumerate(estimates, 1) if estimate is not None}
    for trials in (min(left), 26, 60):
        truth = sum(needed.values()) - trials
        assert truth / 1.5 < left[trials] < truth * 1.5


def test_an_estimate_sees_that_others_have_the_cores():
    now = [0.0]
    progress = RunProgress(threads=4, clock=lambda: now[0])
    progress.expect([("cubic", setting(cell)) for cell in FULL[:20]], 5)
    for cell in FULL[:10]:
        for _ in range(5):
            now[0] += 1  # one at a time
            progress.one_more(made_in(1.0, cell), fresh=True)
    assert progress.remaining_s() == pytest.approx(50, rel=0.1)


def test_two_runs_with_one_results_file_measure_everything_once(tmp_path):
    """The second run waits for what the first is measuring, and takes it from the file."""
    path, asked = tmp_path / "r.jsonl", [("cubic", setting(cell)) for cell in FULL[:6]]
    began, go_on = threading.Event(), threading.Event()

    class Slow(fake_room.Room):
        def run(self, adapter, batches, cancelled):
            for trials in batches:
                began.set()
                assert go_on.wait(60)
                yield from super().run(adapter, [trials], cancelled)

    fake_room.install("good", Slow)
    bench = benches.find()
    with runs.Run(bench, store.Store(path), asked, range(1, 4), 2) as first:
        assert began.wait(60)
        with runs.Run(bench, store.Store(path), asked, range(1, 4), 2) as second:
            deadline = time.monotonic() + 60
            while "another run is measuring" not in second.progress.line():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            go_on.set()
            found = [{key: found for key, found in run.as_completed(60)} for run in (first, second)]
    assert found[0] == found[1] and set(found[0]) == set(asked)
    assert len(path.read_text().splitlines()) == 3 * len(asked)
    assert second.progress.elsewhere == 0


def test_a_trial_that_was_kept_with_its_packets_is_not_made_again_without_them(tmp_path):
    """Zones and clauses about the same point of a scenario share trials; the file has what each needs."""
    plain, other = (scenarios.setting("spaced-losses", Point.of({"delay_ms": 80, "every": n})) for n in (50, 67))
    kept = dataclasses.replace(plain, packets=True)
    file = store.Store(tmp_path / "r.jsonl")

    def trials(where, *seeds):
        return [dataclasses.replace(measurement(0.7, seed).trial, setting=where) for seed in seeds]

    for trial, outcome in zip(trials(kept, 1, 2), (Outcome.OK, Outcome.FAILED), strict=True):
        file.add(dataclasses.replace(measurement(0.7, trial.seed, outcome), trial=trial))
    found = runs.stored(file, trials(plain, 1, 2, 3))
    assert [(seed, m.trial.setting, m.utilization) for seed, m in found.items()] == [(1, plain, 0.7)]
    assert runs.stored(store.Store(file.path), trials(plain, 1)) == found
    assert not runs.stored(file, trials(other, 1)) and not runs.stored(file, trials(kept, 3))
    assert [m.trial.setting.packets for m in store.read(file.path)] == [True, True, False]


def test_of_what_failed_little_waits_for_the_control_and_can_be_lost(tmp_path, monkeypatch):
    file, waiting = store.Store(tmp_path / "r.jsonl"), []

    class Noted(fake_room.Failing):
        def made(self, trial):
            waiting.append(len(waiting) - len(file.settled()))
            return super().made(trial)

    monkeypatch.setattr(runs, "beside", lambda bench: fake_room.bench_of(fake_room.Room("good")))
    fake_room.install("good", Noted)
    asked = [("cubic", setting(cell)) for cell in FULL[:35]]
    with runs.Run(benches.find(), file, asked, [1], 1) as run:
        found = dict(run.as_completed(60))
    assert {m.control.failures for (m,) in found.values()} == {frozenset()}
    assert (len(found), len(waiting), max(waiting)) == (35, 35, 9)


@pytest.mark.parametrize(("digest", "control"), [("9" * 16, {1}), (None, None)], ids=["another kernel", "the default"])
def test_the_control_of_a_kernels_tcp_is_that_of_the_default_kernel(tmp_path, monkeypatch, digest, control):
    class OfKernels(fake_room.Bench):
        def scheme(self, algorithm):
            usual = scheme(algorithm)
            is_default = self.choice.kernel == "default"
            return usual if is_default else dataclasses.replace(usual, kernel_digest=digest or usual.kernel_digest)

    def find(choice, remembers=True):
        room = fake_room.Room("good") if choice.kernel == "default" else fake_room.Failing("good")
        return fake_room.bench_of(room, fake_room.Adapter("linux-tcp"), OfKernels, choice=choice)

    monkeypatch.setattr(benches, "find", find)
    bench = find(benches.Choice())
    with runs.Run(bench, store.Store(tmp_path / "r.jsonl"), [("cubic", setting(FULL[0]))], [1], 1) as run:
        ((measured,),) = dict(run.as_completed(60)).values()
    assert (measured.control and set(measured.control.trials)) == control


def test_a_control_that_was_cut_short_is_tried_again(monkeypatch):
    """Else the failed trial would be kept beside as few trials of the other stack as there were by then, for ever."""
    cancelled = threading.Event()

    class Cut(fake_room.Room):
        def run(self, adapter, batches, cancelled):
            for measured in super().run(adapter, batches, cancelled):
                yield measured
                if ends:
                    cancelled.set()
                    return

    monkeypatch.setattr(runs, "beside", lambda bench: fake_room.bench_of(Cut("good")))
    fake_room.install("good", patch=monkeypatch.setattr)
    (trial,) = benches.find().trials(*ASKED[0], [1003])
    failed = Measurement(trial=trial, outcome=Outcome.FAILED, message="it ended")
    for ends in (True, False):
        cancelled.clear()
        made = runs.Controls(benches.find()).tried(failed, range(1001, 1006), [], cancelled)
        assert made.settled is not ends and (ends or len(made.control.trials) == 5)


def test_what_cannot_be_claimed_any_more_is_no_longer_waited_for(tmp_path, monkeypatch):
    began, go_on = threading.Event(), threading.Event()

    class Slow(fake_room.Room):
        def run(self, adapter, batches, cancelled):
            began.set()
            assert go_on.wait(60)
            yield from super().run(adapter, batches, cancelled)

    def refuse(task):
        raise UserError("results: Is a directory", "name another file with --results")

    fake_room.install("good", Slow)
    bench, path = benches.find(), tmp_path / "r.jsonl"
    with runs.Run(bench, store.Store(path), ASKED[:1], [1], 1):
        assert began.wait(60)
        with runs.Run(bench, store.Store(path), ASKED[:1], [1], 1) as second:
            deadline = time.monotonic() + 60
            while not second.progress.elsewhere:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            monkeypatch.setattr(second, "_claim", refuse)
            assert "Is a directory" in refusal(second.result, *ASKED[0])
            assert second.progress.elsewhere == 0
            go_on.set()


def test_what_a_run_has_claimed_is_free_when_it_ends(tmp_path):
    """So is a setting that waits for more trials after a look, for example if a caller breaks out of execute()."""
    fake_room.install("good")
    bench, kept = benches.find(), store.Store(tmp_path / "r.jsonl")

    def claimed(run):
        run.wait()
        deadline = time.monotonic() + 10  # its thread gives up the claim after reporting the result
        while not run._claim(run._tasks[0]) and time.monotonic() < deadline:
            time.sleep(0.01)
        return run._tasks[0].release is not None

    with runs.Run(bench, kept, ASKED[:1], [1], 1) as first:
        assert claimed(first)
    with runs.Run(bench, kept, ASKED[:1], [1], 1) as second:
        assert claimed(second)


def test_durations_are_for_people():
    assert [duration(s) for s in (0, 59, 60, 200, 7500)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "3 min 20 s",
        "2 h 05 min",
    ]
    assert [seconds_of(duration(s)) for s in (0, 59, 60, 200, 7500)] == [0, 59, 60, 200, 7500]


def test_an_algorithm_whose_kernel_is_not_built_is_unsupported_and_says_what_to_build(monkeypatch, tmp_path):
    from conformance.kernel import store as kernels

    built = kernels.Kernel(
        name="default", digest="d", release="6.12.0", source="s", patches=(), binary=tmp_path / "linux"
    )
    monkeypatch.setattr(kernels, "kernels", lambda: [built])
    bench = benches.find()
    assert bench.scheme("cubic").kernel == "default"
    assert bench.scheme("bbrv3").kernel == "bbrv3"
    kept = store.Store(tmp_path / "r.jsonl")
    with runs.Run(bench, kept, [("bbrv3", setting())], [1]) as run:
        (found,) = run.result("bbrv3", setting())
    assert found.outcome is Outcome.UNSUPPORTED
    assert "run `conformance kernel build bbrv3 --source linux-source-6.12 --patch bbr3.patch`" in found.message
    try:
        benches.find(benches.Choice(kernel="bbrv3"))
        raise AssertionError("a kernel that was named and is not built was accepted")
    except runs.UserError as error:
        assert "no guest kernel named 'bbrv3'" in str(error)


@pytest.mark.parametrize("before", [0, 1])
def test_a_room_that_cannot_work_fails_each_cell_and_hangs_none(tmp_path, before):
    """The room fails before or after it has taken the first cell."""

    class Broken(fake_room.Room):
        def run(self, adapter, batches, cancelled):
            list(itertools.islice(batches, before))
            raise runs.UserError("the disk is full")
            yield

    fake_room.install("good", Broken)
    asked = [("cubic", setting(cell)) for cell in FULL[:20]]
    with runs.Run(benches.find(), store.Store(tmp_path / "r.jsonl"), asked, [1, 2], 2) as run:
        run.wait()
        for key in asked:
            with pytest.raises(runs.UserError, match="the disk is full"):
                run.result(*key)


def test_a_room_that_leaves_trials_out_is_an_interrupted_run(tmp_path):
    class Lazy(fake_room.Room):
        def run(self, adapter, batches, cancelled):
            yield next(super().run(adapter, [next(iter(batches))], cancelled))

    fake_room.install("good", Lazy)
    asked = [("cubic", setting(cell)) for cell in FULL[:3]]
    with runs.Run(benches.find(), store.Store(tmp_path / "r.jsonl"), asked, [1, 2], 1) as run:
        run.wait()
        with pytest.raises(runs.UserError, match="interrupted"):
            run.result(*asked[0])
