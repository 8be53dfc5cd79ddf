"""`conformance merge`: shards become one file, or the reason against it is named."""

import dataclasses
import itertools

import pytest
from helpers import measurement, measurements, of_trial, refusal
from hypothesis import HealthCheck, given, settings, strategies as st

from conformance.catalogue import documents
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.networks.proxy import Proxy
from conformance.model.trials.trial import Outcome
from conformance.results import merge, store

A, B = Cell(10, 20, 1), Cell(10, 40, 1)


@pytest.fixture
def write(tmp_path):
    def write(name, found):
        path = tmp_path / name
        path.write_bytes(b"".join(map(store.dumps, found)))
        return path

    return write


@pytest.mark.parametrize("name", ["merged.jsonl.xz", "merged.jsonl.gz"])
def test_no_plain_lines_get_a_compressed_name(write, tmp_path, name):
    assert "would be compressed" in refusal(merge.merge, [write("a.jsonl", measurements([0.5]))], tmp_path / name)
    assert not (tmp_path / name).exists()


def test_shards_become_one_file_whatever_their_order(write, tmp_path):
    shards = [
        write("a", measurements([0.4, 0.5], cell=B)),
        write("b", reversed(measurements([0.6, 0.7], cell=A))),
        write("c", measurements([0.6], cell=A, algorithm="bbrv1") + measurements([0.6, 0.7], cell=A)),
    ]
    made = set()
    for order in itertools.permutations(shards):
        assert merge.merge(order, tmp_path / "out" / "all.jsonl") == 5
        made.add((tmp_path / "out" / "all.jsonl").read_bytes())
    assert len(made) == 1
    found = [
        (m.trial.scheme.algorithm, m.trial.setting.cell, m.trial.seed) for m in store.read(tmp_path / "out/all.jsonl")
    ]
    assert found == [("bbrv1", A, 1), ("cubic", A, 1), ("cubic", A, 2), ("cubic", B, 1), ("cubic", B, 2)]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["all.jsonl"]


def test_paths_that_come_to_one_cell_have_an_order_too(write, tmp_path):
    made = measurement()
    paths = [documents.path("atc25", segments, Proxy()) for segments in ((A, B), (B, A))]
    shards = [write(str(at), [of_trial(made, setting=path)]) for at, path in enumerate(paths)]
    assert merge.merge(shards, tmp_path / "one") == merge.merge(shards[::-1], tmp_path / "other") == 2
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_the_target_may_be_one_of_the_shards(write):
    one, other = write("a", measurements([0.4], cell=A)), write("b", measurements([0.5], cell=B))
    assert merge.merge([one, other], one) == 2
    assert len(store.read(one)) == 2


@pytest.mark.parametrize(
    ("field", "name"), [("flows", "goodput_mbps"), ("links", "dropped_packets"), ("packets", "began_ns")]
)
def test_one_trial_with_two_results_is_refused(write, tmp_path, field, name):
    flow = {"group": "test", "index": 0, "judged": True, "algorithm": "cubic", "start_s": 0, "end_s": 1,
            "completion_s": None, "bytes": 5, "goodput_mbps": 1.0}  # fmt: skip
    link = {"link": "one", "direction": "data", "rate_mbps": 10, "out_bytes": 5, "dropped_packets": 0}
    packets = {"began_ns": 0, "sent": 1, "asked": 0, "columns": ""}
    whole = dataclasses.replace(measurement(), flows=[flow], links=[link], packets=packets)
    part = dict(flows=flow, links=link, packets=packets)[field] | {name: 7}
    other = dataclasses.replace(whole, **{field: part if field == "packets" else [part]})
    why = refusal(merge.merge, [write("a", [whole]), write("b", [other])], tmp_path / "both")
    assert "has different results in" in why
    elsewhere = dataclasses.replace(whole, host={"wall_s": 3})
    assert merge.merge([write("a", [whole]), write("b", [elsewhere])], tmp_path / "both") == 1


@pytest.mark.parametrize("name", ["stack_digest", "kernel_digest", "lab_digest"])
def test_unlike_runs_are_refused_with_their_digests_and_files(write, tmp_path, name):
    one = write("one", [measurement(cell=A)])
    other = write("other", [measurement(cell=B, **{name: "f" * 16})])
    words = rf"runs of cubic/linux-tcp .*one:1 and .*other:1 differ: {name.replace('_', ' ')} .* and f{{16}};"
    with pytest.raises(UserError, match=words):
        merge.merge([one, other], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    # Each point of a scenario, and each profile, has a digest of its own; the run is the same.
    made = measurement(cell=B, **{name: "f" * 16})
    other = write("other", [of_trial(made, setting=documents.profile("startup", B))])
    with pytest.raises(UserError, match=words):
        merge.merge([one, other], tmp_path / "out")


def test_other_algorithms_and_stacks_are_no_unlike_runs(write, tmp_path):
    found = [
        measurement(),
        measurement(algorithm="bbrv3", kernel_digest="f" * 16),
        measurement(stack="s", stack_digest="e" * 16),
    ]
    assert merge.merge([write("a", found)], tmp_path / "out") == 3


def test_one_trial_may_not_have_two_results(write, tmp_path):
    one, other = measurement(0.5), measurement(0.6)
    with pytest.raises(UserError, match=rf"trial {one.trial.key} has different results in .*one and .*two \(line 1\)"):
        merge.merge([write("one", [one]), write("two", [other])], tmp_path / "out")


def test_hosts_may_differ_and_errors_give_way(write, tmp_path):
    made = measurement(0.5)
    slower = dataclasses.replace(made, host={"wall_s": 9.0})
    failed = measurement(outcome=Outcome.ERROR, message="the guest died")
    for order in itertools.permutations([[made], [slower], [failed]]):
        shards = [write(str(at), found) for at, found in enumerate(order)]
        assert merge.merge(shards, tmp_path / "out") == 1
        (kept,) = store.read(tmp_path / "out")
        assert kept.outcome is Outcome.OK


def test_broken_lines_and_empty_files_are_named(write, tmp_path):
    good, broken = write("good", [measurement()]), tmp_path / "broken"
    broken.write_bytes(store.dumps(measurement()) + b'{"schema": "x"}\n')
    assert 'broken:2: not a result line: "schema" must be' in refusal(merge.merge, [good, broken], tmp_path / "out")
    with pytest.raises(UserError, match=r"no results in .*empty.*; name files that hold results"):
        merge.merge([write("empty", [])], tmp_path / "out")
    cut = tmp_path / "cut"
    cut.write_bytes(store.dumps(measurement())[:-9])
    with pytest.raises(UserError, match=r"no results in .*cut: the only line there was cut short; measure again"):
        merge.merge([cut], tmp_path / "out")
    assert "cannot write" in refusal(merge.merge, [good], good / "x")


def test_a_number_that_no_float_holds_is_named(tmp_path):
    path = tmp_path / "results.jsonl"
    store.Store(path).add(measurement(0.5, 1))
    path.write_text(path.read_text().replace('"evidence":{}', '"evidence":{"more":1e400}'))
    assert "results.jsonl:1: Out of range float values" in refusal(merge.merge, [path], tmp_path / "merged.jsonl")
    assert not (tmp_path / "merged.jsonl").exists()


def a_result(cell, seed, failed, wall_s):
    """Return a measurement that depends on its trial alone, except for errors and the wall time."""
    if failed:
        made = measurement(seed=seed, cell=cell, outcome=Outcome.ERROR, message=f"the guest died ({wall_s})")
    else:
        made = measurement((seed + cell.one_way_delay_ms) / 100, seed, cell=cell)
    return dataclasses.replace(made, host={"wall_s": wall_s})


shards = st.lists(
    st.lists(
        st.builds(a_result, st.sampled_from([A, B]), st.integers(1, 4), st.booleans(), st.integers(1, 3)), max_size=5
    ),
    min_size=1,
    max_size=3,
).filter(any)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), shards)
def test_merging_commutes_is_idempotent_and_associates(write, tmp_path, data, found):
    paths = [write(f"shard{at}", shard) for at, shard in enumerate(found)]

    def merged(name, *files):
        merge.merge(files, tmp_path / name)
        return (tmp_path / name).read_bytes()

    whole = merged("whole", *paths)
    assert merged("again", tmp_path / "whole") == whole
    assert merged("twice", *paths, *paths, tmp_path / "whole") == whole
    assert merged("shuffled", *data.draw(st.permutations(paths))) == whole
    held = [path for path, shard in zip(paths, found, strict=True) if shard]
    merged("first", held[0])
    assert merged("in steps", tmp_path / "first", *held[1:]) == whole
    kept = {m.trial.key: m for m in store.read(tmp_path / "whole")}
    assert set(kept) == {m.trial.key for shard in found for m in shard}
    for m in (m for shard in found for m in shard):
        assert m.outcome is Outcome.ERROR or kept[m.trial.key].outcome is not Outcome.ERROR
