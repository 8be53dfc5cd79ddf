"""Trials on workers give the same bytes as in this process, whichever process dies. Rooms are fakes."""

import concurrent.futures
import dataclasses
import json
import multiprocessing
import pathlib
import sys

import fake_room
import pytest
from helpers import invoke, setting

from conformance.engine import benches, runs, workers
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.trials.trial import Outcome
from conformance.results import store

CELLS = grid.cells("10mbps")[:12]
TESTS = str(pathlib.Path(fake_room.__file__).parent)


def pool(*installed):
    """Return a function that makes a pool of two fresh processes with the fake bench installed in each."""
    context = multiprocessing.get_context("spawn")
    return lambda: concurrent.futures.ProcessPoolExecutor(2, context, _install, (TESTS, installed))


def _install(tests, installed):
    sys.path.insert(0, tests)
    fake_room.install(*installed)


@pytest.fixture
def measure(tmp_path):
    """Return a function that measures the cells and returns result lines without what depends on the machine."""
    fake_room.install()

    def run(name, executor=None, change=lambda bench: bench):
        kept = store.Store(tmp_path / name)
        work = [("cubic", setting(cell)) for cell in CELLS]
        bench = change(benches.find())
        with runs.Run(bench, kept, work, runs.seeds(3), 4, executor=executor) as running:
            found = dict(running.as_completed())
        assert list(found) == work or set(found) == set(work)
        assert all([m.trial.seed for m in measurements] == [1, 2, 3] for measurements in found.values())
        return sorted(store.dumps(dataclasses.replace(m, host={})) for m in store.read(tmp_path / name))

    return run


@pytest.mark.slow
def test_workers_give_the_same_bytes_also_when_one_dies(measure, tmp_path):
    here = measure("here")
    assert len(here) == 36
    assert measure("workers", pool()) == here
    deadly = pool(tmp_path / "died", fake_room.Deadly)
    assert measure("dies", deadly) == here
    assert (tmp_path / "died").exists()
    hosts = {m.host["wall_s"] for m in store.read(tmp_path / "workers")}
    assert multiprocessing.current_process().pid not in hosts


class Inline(concurrent.futures.Executor):
    """An executor that works at once in this process and returns what `answers` makes of each true answer."""

    def __init__(self, answers=lambda answer: answer):
        self._answers = answers

    def submit(self, function, request):
        future = concurrent.futures.Future()
        try:
            future.set_result(self._answers(function(request)))
        except Exception as error:
            future.set_exception(error)
        return future


def test_what_came_back_is_not_asked_for_again(measure):
    measure("r", Inline)

    def never():
        raise AssertionError("a worker was asked")

    assert len(measure("r", never)) == 36


@pytest.mark.parametrize("words", ["stack", "kernel", "version of the suite"])
def test_a_worker_with_something_else_is_refused(measure, words):
    changes = {
        "stack": {"stack_digest": "e" * 16}, "kernel": {"kernel_digest": "e" * 16}, "version of the suite": {}
    }[words]  # fmt: skip

    def other(bench):
        class Other(type(bench)):
            def scheme(self, algorithm):
                return dataclasses.replace(super().scheme(algorithm), **changes)

        fields = {f.name: getattr(bench, f.name) for f in dataclasses.fields(bench)}
        return Other(**{**fields, **({} if changes else {"lab_digest": "e" * 16})})

    with pytest.raises(UserError, match=f"worker on .*: its {words}.* has the digest .*, but e{{16}} was requested"):
        measure("r", Inline, other)


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"measurements": []}'])
def test_nonsense_is_an_error_after_some_tries_and_never_a_result(measure, answer):
    asked = []

    def nonsense(_):
        asked.append(answer)
        return answer

    found = [json.loads(line) for line in measure("r", lambda: Inline(nonsense))]
    assert {line["outcome"] for line in found} == {Outcome.ERROR}
    assert all("3 workers failed while they made these trials: " in line["message"] for line in found)
    assert len(asked) % 3 == 0


def test_an_answer_for_other_trials_is_no_result(measure):
    def swapped(answer):
        return answer.replace('"seed": 1,', '"seed": 9,')

    found = [json.loads(line) for line in measure("r", lambda: Inline(swapped))]
    assert {line["outcome"] for line in found} == {Outcome.ERROR}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "--executor 'x' is not of the form module:function"),
        ("nonesuch:make", "--executor nonesuch:make: ModuleNotFoundError: No module named 'nonesuch'"),
        ("json:nonesuch", "--executor json:nonesuch: AttributeError: module 'json' has no attribute"),
        (".json:x", "--executor .json:x: TypeError: the 'package' argument is required"),
        ("json:__doc__", "--executor json:__doc__: __doc__ is not a function"),
    ],
)
def test_mistakes_with_executors_are_one_line(text, words):
    done = invoke("run", "cubic", "--executor", text)
    assert done.exit_code == 2 and words in done.output


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def make(): return 5", "its function returned int, which has no submit()"),
        ("def make(one): return one", "its function failed: TypeError: make() missing 1 required positional argument"),
    ],
)
def test_a_function_that_makes_no_executor_is_a_mistake_and_leaves_no_errors(tmp_path, monkeypatch, body, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    fake_room.install()
    name = f"pool_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(body + "\n")
    done = invoke("run", "cubic", "--grid", "10mbps-20ms-1pct", "--executor", f"{name}:make")
    assert (done.exit_code, words in done.output) == (2, True), done.output
    assert not (tmp_path / "results" / "results.jsonl").read_bytes()


@pytest.mark.slow
def test_the_command_finds_an_executor_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    fake_room.install()
    (tmp_path / "my_pool.py").write_text("from test_workers import Inline\n\ndef make():\n    return Inline()\n")
    options = "--grid", "10mbps-20ms-1pct", "--executor", "my_pool:make"
    done = invoke("run", "cubic", *options)
    assert done.exit_code == 0, done.output
    assert workers.factory("my_pool:make")
