import dataclasses
import errno
import fcntl
import gzip
import json
import lzma
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import helpers
import pytest
from helpers import (
    JSON,
    as_read,
    at_once,
    counted,
    measurement,
    measurements,
    of_trial,
    places,
    refusal,
    replaced,
    trace,
)
from hypothesis import HealthCheck, given, settings, strategies as st

from conformance.catalogue import scenarios
from conformance.model.errors import UserError
from conformance.model.metrics.table import tabled
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Outcome
from conformance.reporting import heatmaps
from conformance.reporting.tools import export
from conformance.results import compressed, lines, merge, source, store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "results.jsonl"


def test_what_was_added_is_found_and_read(path):
    kept = store.Store(path)
    one = measurement(0.5, 1)
    kept.add(one)
    assert kept.find(one.trial) == one
    assert kept.find(measurement(0.5, 2).trial) is None
    assert store.Store(path).find(one.trial) == one
    assert store.read(path) == [one]


def test_a_file_that_is_opened_again_is_read_once(path, monkeypatch):
    read = []
    parse = store._parse
    monkeypatch.setattr(store, "_parse", lambda line, *rest: read.append(line) or parse(line, *rest))
    kept = store.Store.opened(path)
    kept.add(measurement(0.5, 1))
    store.Store(path).add(measurement(0.5, 2))
    read.clear()
    for _ in range(3):
        again = store.Store.opened(path)
        assert again is kept and [m.trial.seed for m in again.settled()] == [1, 2]
    assert len(read) == 2


def test_a_file_that_was_replaced_or_another_one_is_read_anew(path, tmp_path):
    kept = store.Store.opened(path)
    kept.add(measurement(0.5, 1))
    assert store.Store.opened(path) is kept
    text = path.read_text()
    path.write_text(text.replace('"seed":1', '"seed":12') + text.replace('"seed":1', '"seed":13'))
    assert [m.trial.seed for m in store.Store.opened(path).settled()] == [12, 13]
    assert not store.Store.opened(tmp_path / "other.jsonl").settled()
    path.unlink()
    assert not store.Store.opened(path).settled() and path.exists()


def test_a_file_of_the_same_name_in_another_folder_is_another_one(tmp_path, monkeypatch):
    for number, folder in enumerate(("a", "b"), 1):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        kept = store.Store.opened("r.jsonl")
        assert not kept.settled() and str(kept.path) == "r.jsonl"
        kept.add(measurement(0.5, number))


def test_errors_are_kept_but_measured_again(path):
    kept = store.Store(path)
    kept.add(measurement(seed=1, outcome=Outcome.ERROR, message="died"))
    assert kept.find(measurement(seed=1).trial) is None
    kept.add(measurement(0.4, 1))
    assert [m.outcome for m in store.read(path)] == [Outcome.OK]
    assert len(path.read_text().splitlines()) == 2


def test_of_a_message_that_is_too_long_the_beginning_is_kept(path):
    store.Store(path).add(measurement(outcome=Outcome.ERROR, message="tc: " + "no " * 10_000))
    assert store.read(path)[0].message.startswith("tc: no no")


def test_a_line_cut_short_costs_nothing_else(path):
    kept = store.Store(path)
    kept.add(measurement(0.5, 1))
    kept.add(measurement(0.5, 2))
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    again = store.Store(path)
    assert again.find(measurement(0.5, 1).trial) is not None
    assert again.find(measurement(0.5, 2).trial) is None
    again.add(measurement(0.5, 3))
    assert [m.trial.seed for m in store.read(path)] == [1, 3]
    third = store.Store(path)
    assert third.find(measurement(0.5, 3).trial) is not None
    assert third.find(measurement(0.5, 1).trial) is not None


def test_broken_results_are_refused_with_file_and_line(path):
    store.Store(path).add(measurement())
    for bad, words in (
        ("{nonsense\n", "not a JSON line"),
        ('{"a": 1}\n', '"schema" must be'),
        ("[]\n", '"schema" must be'),
        (
            '{"schema": "measurement/2"}\n',
            "another version of the suite (measurement/2); name another file",
        ),
    ):
        broken = path.with_name("broken.jsonl")
        broken.write_text(path.read_text() + bad)
        caught = refusal(store.read, broken)
        assert f"{broken}:2: " in caught
        assert words in caught


def test_a_line_that_another_process_broke_is_named_by_its_number_in_the_file(path):
    kept = store.Store(path)
    for seed in (1, 2):
        kept.add(measurement(seed=seed))
    assert kept.find(measurement(seed=9).trial) is None
    with open(path, "a") as f:
        f.write("not ours\n")
    assert "results.jsonl:3: not a JSON line" in refusal(kept.find, measurement(seed=3).trial)


LINE = as_read(measurement(), evidence={"interfaces": counted(2000, 1990), "trace": trace()}).to_json()
#: the same of an older lab
OLDER = {name: part for name, part in LINE.items() if name not in ("flows", "links")}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=500)
@given(st.sampled_from([(line, place) for line in (LINE, OLDER) for place in places(line)]), JSON)
def test_whatever_stands_in_a_line_it_is_named_or_can_be_counted_with(tmp_path, line_and_place, value):
    """Readers of results (`derive`, `expect`, `merge`, reports) take a value of every metric from every trial."""
    data = replaced(*line_and_place, value)
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(data) + "\n")
    try:
        found = store.read(path)
    except UserError as error:
        assert str(error).startswith(f"{path}:2: ")
        assert "\n" not in str(error)
        return
    for read in found:
        for metric in tabled():
            value = metric.value(read)
            assert value is None or math.isfinite(value)
        store.dumps(read)


@pytest.mark.parametrize("line", ["[" * 200_000, '{"schema": ' + "1" * 5000 + "}", '{"a": NaN}', "\x00", '"\ud800"'])
def test_a_line_that_is_no_json_is_named(path, line):
    path.parent.mkdir()
    path.write_text(line + "\n", encoding="utf-8", errors="surrogatepass")
    assert "results.jsonl:1: not a JSON line" in refusal(store.read, path)


def test_threads_do_not_mix_lines(path):
    kept = store.Store(path)
    at_once(*(lambda s=s: [kept.add(measurement(0.5, s * 100 + i)) for i in range(20)] for s in range(8)))
    assert len(store.read(path)) == 160


def test_a_file_system_without_locks_keeps_results(path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    store.Store(path).add(measurement(0.5, 1))
    assert [m.trial.seed for m in store.read(path)] == [1]


def test_a_full_disk_is_one_clear_error_and_loses_nothing(path):
    """A limit on the file's size causes the same short write as a full disk."""
    kept = store.Store(path)
    kept.add(measurement(0.5, 1))
    size = path.stat().st_size
    program = f"""
import resource, signal, sys
sys.path.insert(0, {str(pathlib.Path(helpers.__file__).parent)!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 100}, {size + 100}))
from conformance.model.errors import UserError
from conformance.results import store
from helpers import measurement
try:
    store.Store({str(path)!r}).add(measurement(0.5, 2))
except UserError as error:
    print(error)
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    # Without -B, the limit would cut the bytecode of modules that nothing has imported in this checkout yet.
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True)
    assert "cannot write results to" in done.stdout, done.stderr
    assert "it resumes" in done.stdout
    assert [m.trial.seed for m in store.read(path)] == [1]


def test_results_that_cannot_be_written_are_an_error_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot write results" in refusal(store.Store, tmp_path / "file" / "results.jsonl")


@given(st.floats(0, 1, exclude_max=True))
def test_a_line_may_be_cut_anywhere(share):
    """The lines before and after it are read."""
    first, second, third = map(store.dumps, measurements([0.1, 0.2, 0.3]))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "r.jsonl")
        path.write_bytes(first + second[: max(1, int(share * (len(second) - 1)))] + b"\n" + third)
        assert [m.trial.seed for m in store.read(path)] == [1, 3]


@pytest.mark.parametrize(("suffix", "pack"), [(".xz", lzma.compress), (".gz", gzip.compress)])
def test_compressed_results_are_read_like_any_other_and_never_added_to(path, suffix, pack):
    kept = store.Store(path)
    for seed in (1, 2, 3):
        kept.add(measurement(0.1 * seed, seed))
    packed = path.with_name(path.name + suffix)
    packed.write_bytes(pack(path.read_bytes()))
    assert list(store.scan(packed)) == list(store.scan(path))
    assert [store.read_at(packed, at) for _, at, _ in store.scan(packed)] == store.read(path)
    assert "is compressed, and can only be read" in refusal(store.Store, packed)
    packed.write_bytes(pack(path.read_bytes())[:-20])
    assert "it is damaged, or not in" in refusal(store.read, packed)
    packed.write_bytes(path.read_bytes())
    assert "it is damaged, or not in" in refusal(store.read, packed)


def test_a_damaged_gz_file_is_named(tmp_path):
    path = tmp_path / "z.jsonl.gz"
    packed = bytearray(gzip.compress(store.dumps(measurement()) * 50))
    packed[40:46] = b"\xff" * 6
    path.write_bytes(packed)
    assert "z.jsonl.gz: it is damaged, or not in .gz format" in refusal(store.read, path)


def test_a_compressed_file_of_several_streams_is_read_whole(tmp_path):
    path = tmp_path / "results.jsonl.xz"
    first, second = (lzma.compress(store.dumps(m)) for m in (measurement(0.5, 1), measurement(0.5, 2)))
    path.write_bytes(first + bytes(8) + second)
    assert [m.trial.seed for m in store.read(path)] == [1, 2]
    path.write_bytes(first + second[:-20])
    assert "damaged" in refusal(store.read, path)


@pytest.mark.parametrize("pack", [lzma.compress, gzip.compress])
def test_what_a_small_file_decompresses_to_is_bounded(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(lines, "LONGEST", 1_000_000)
    path = tmp_path / f"results.jsonl.{'xz' if pack is lzma.compress else 'gz'}"
    path.write_bytes(pack(b" " * 3_000_000))
    assert "bytes hold more than 1 MB; decompress it" in refusal(store.read, path)


def test_a_compressed_file_may_not_ask_for_much_memory(tmp_path):
    path = tmp_path / "results.jsonl.xz"
    path.write_bytes(lzma.compress(b"\n", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 27}]))
    assert "limit" in refusal(store.read, path)


def test_reading_compressed_results_leaves_no_file_behind_however_it_ends(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl.xz"
    path.write_bytes(lzma.compress(store.dumps(measurement(0.5, 1))))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    with compressed.open_plain(path) as one, compressed.open_plain(path) as other:
        assert list((tmp_path / "scratch").iterdir()) == []
        assert one.read() == other.read() == store.dumps(measurement(0.5, 1))


@pytest.mark.parametrize("read", [store.read, store.Store])
def test_a_line_that_is_too_long_is_named(path, monkeypatch, read):
    store.Store(path).add(measurement(0.5, 1))
    with open(path, "ab") as f:
        f.write(b'{"evidence":' + b" " * 100_000)  # a line without its end would pass for one that was cut short
    monkeypatch.setattr(lines, "LONGEST", 50_000)
    assert "results.jsonl:2: the line is longer than 0.05 MB" in refusal(read, path)


def test_a_line_that_is_too_long_is_not_added(path, monkeypatch):
    kept = store.Store(path)
    monkeypatch.setattr(lines, "LONGEST", 100)
    assert "choose a shorter transfer" in refusal(kept.add, measurement(0.5, 1))
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    "bad",
    [{"message": "half a character: \ud800"}, {"metrics": {"bytes": -1, "utilization": 0.5}}],
    ids=repr,
)
def test_a_line_that_could_not_be_read_again_is_not_added(path, bad):
    kept = store.Store(path)
    kept.add(measurement(0.5, 1))
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"measurement [0-9a-f]{16}: /"):
        kept.add(dataclasses.replace(measurement(0.5, 2), **bad))
    assert path.read_bytes() == before
    assert len(store.Store(path).settled()) == 1


def test_a_name_that_appears_twice_is_refused(path, tmp_path):
    store.Store(path).add(measurement(0.5, 1))
    path.write_text(path.read_text().replace('"outcome":"ok"', '"outcome":"error","outcome":"ok"'))
    for read in (store.read, store.Store, lambda path: merge.merge([path], tmp_path / "merged.jsonl")):
        with pytest.raises(UserError, match=r"results\.jsonl:1: .* the name 'outcome' appears twice"):
            read(path)


def test_a_number_that_no_float_holds_is_named_with_file_and_line(path):
    died = measurement(outcome=Outcome.ERROR, message="died")
    setting = scenarios.setting("fairness", Point.parse("flows=2"))
    store.Store(path).add(of_trial(died, setting=setting))
    point = re.compile(r'("point":\{"[^"]+":)[^,}]+')
    assert point.search(path.read_text())
    path.write_text(point.sub(r"\g<1>1e999", path.read_text()))
    for read in (store.read, store.Store, lambda path: source.Source([path])):
        with pytest.raises(UserError, match=r"results\.jsonl:1: /trial/setting/point/.*: inf is not between"):
            read(path)


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\x07", "\n", "\u202e", "\u061c", "\u2028", "\u2029"])
@pytest.mark.parametrize("escaped", [True, False])
def test_control_characters_of_others_results_are_stripped(path, character, escaped):
    found = dataclasses.replace(
        measurement(0.5, 1), message=f"a{character}[31m", host={"wall_s": 1, f"x{character}": [character]}
    )
    if not escaped and character < " ":
        pytest.skip("JSON has these as escapes only")
    path.parent.mkdir()
    path.write_text(json.dumps(found.to_json(), ensure_ascii=escaped) + "\n")
    (kept,) = store.read(path)
    assert kept.message == "a [31m"
    assert kept.host == {"wall_s": 1, "x ": [" "]}
    assert f"a{character}" not in export.csv_bytes(heatmaps.all_series([kept])).decode()


def test_control_characters_in_what_names_a_trial_are_refused(path):
    """They cannot be stripped: the trial's key would be another one."""
    setting = helpers.changed(measurement().trial.setting, sysctls=(("net.ipv4.a", "1\x1b[2J"),))
    path.parent.mkdir()
    path.write_bytes(store.dumps(of_trial(measurement(), setting=setting)))
    assert "results.jsonl:1: /trial/setting/sysctls/net.ipv4.a: control characters" in refusal(store.read, path)
