"""How the engine shares work out and takes it in; rooms are fakes here."""

import threading
import time

import fake_room
import pytest
from helpers import measurement, setting
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine import benches, runs
from conformance.model import grid
from conformance.model.trial import Outcome
from conformance.results import store
from conformance.support.console import duration

FULL = grid.cells("full")


@pytest.mark.slow
@given(st.integers(1, 150), st.integers(1, 64), st.sampled_from([("cubic",), ("cubic", "reno")]))
def test_all_work_is_shared_out_once_in_order_and_alike(cells, workers, algorithms):
    work = [(algorithm, setting(cell)) for algorithm in algorithms for cell in FULL[:cells]]
    lists = list(runs._share(work, workers))
    assert [key for keys in lists for key in keys] == work
    assert all(1 <= len(keys) <= 10 and len({algorithm for algorithm, _ in keys}) == 1 for keys in lists)


def test_a_full_grid_ends_with_single_cells():
    sizes = [len(keys) for keys in runs._share([("cubic", setting(cell)) for cell in FULL], 2)]
    assert sizes[0] == 10
    assert sizes[-6:] == [1] * 6


def test_a_smoke_tier_keeps_all_cores_busy():
    work = [("cubic", setting(cell)) for cell in FULL[:12]]
    assert max(len(keys) for keys in runs._share(work, 2)) <= 2


def test_remaining_time_is_told_once_enough_was_measured():
    progress = runs.Progress(10)
    progress.one_more(measurement(), fresh=False)
    assert progress.remaining_s() is None
    for _ in range(6):
        assert progress.remaining_s() is None
        progress.one_more(measurement(), fresh=True)
    assert progress.remaining_s() >= 0
    assert progress.line().startswith("7 of 10 trials, about ")


def test_two_runs_with_one_results_file_measure_everything_once(tmp_path, monkeypatch):
    """Whichever comes second waits for what the first is measuring, and takes it from the file."""
    path, work = tmp_path / "r.jsonl", [("cubic", setting(cell)) for cell in FULL[:6]]
    began, go_on = threading.Event(), threading.Event()

    class Slow(fake_room.Room):
        def run(self, adapter, batches, cancelled):
            for trials in batches:
                began.set()
                assert go_on.wait(60)
                yield from super().run(adapter, [trials], cancelled)

    monkeypatch.setattr(benches, "find", benches.find)
    fake_room.install("good", Slow)
    bench = benches.find()
    with runs.Run(bench, store.Store(path), work, range(1, 4), 2) as first:
        assert began.wait(60)
        with runs.Run(bench, store.Store(path), work, range(1, 4), 2) as second:
            deadline = time.monotonic() + 60
            while "another run is measuring" not in second.progress.line():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            go_on.set()
            found = [{key: found for key, found in run.as_completed(60)} for run in (first, second)]
    assert found[0] == found[1] and set(found[0]) == set(work)
    assert len(path.read_text().splitlines()) == 3 * len(work)
    assert second.progress.elsewhere == 0


def test_durations_are_for_people():
    assert [duration(s) for s in (0, 59, 60, 200, 7500)] == [
        "0 s",
        "59 s",
        "1 min 00 s",
        "3 min 20 s",
        "2 h 05 min",
    ]


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
    (found,) = next(runs.measure(bench, kept, [bench.trials("bbrv3", setting(), [1])]))
    assert found.outcome is Outcome.UNSUPPORTED
    assert "run `conformance kernel build bbrv3 --source linux-source-6.12 --patch BBR3.patch`" in found.message
    try:
        benches.find(benches.Choice(kernel="bbrv3"))
        raise AssertionError("a kernel that was named and is not built was accepted")
    except runs.UserError as error:
        assert "no guest kernel named 'bbrv3'" in str(error)
