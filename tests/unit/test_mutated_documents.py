"""Documents mutated at random, given to all their readers: these may raise only a UserError, of one line.

Values are replaced, left out, repeated and moved to another name; bytes are changed, cut, moved and inserted. Documents
of schemas that the suite only writes (gate, summary, why) have no reader here.

`make thorough` makes 100,000 mutations with a new seed. To make one of them again, set MUTATIONS_SEED to the seed that
the failure names.
"""

import copy
import dataclasses
import gzip
import json
import lzma
import os
import pathlib
import random
import re
import signal
import traceback

import pytest
from helpers import as_read, counted, measurement, of_trial, places, program

from conformance.catalogue import clauses, documents, expectations, lint, mutant_record, scenarios, studies
from conformance.commands import mutants
from conformance.commands.export import called
from conformance.lab import manifest
from conformance.model.errors import UserError, located
from conformance.model.networks.place import Cell
from conformance.model.networks.proxy import Proxy
from conformance.model.networks.setting import Setting
from conformance.reporting import heatmaps
from conformance.reporting.text import overview
from conformance.reporting.tools import export
from conformance.results import features, merge, source, store
from conformance.support import paths, schema

ZONES = paths.data("zones")
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "results.jsonl.gz"
#: what no reader may exceed: seconds of processor time, and memory beyond that of the process, which takes 75 MB
MOST_S, MOST_MB = 10, 425
#: the most bytes of a mutation: some more than documents may have, because repeated repeats would make it 350 MB
LARGEST = 10_000_000
#: mutations of each case in `make test`, in `make thorough`, and there of studies, each of which takes a second
FEW, MANY, STUDIES = 40, 6200, 1000
#: the seed of the few; those of the many are drawn
STEADY = 49


def _nested(depth, leaf):
    value = leaf
    for at in range(depth):
        value = [value] if at % 2 else {"a": value}
    return value


#: stands for a number that is infinite in Python; json.dumps() would write another one
_INFINITE = "<infinite>"
_STRANGE = (
    None, True, False, 0, -1, 3, 2**53 + 1, 10**309, 0.5, -0.0, 1e300, 5e-324, _INFINITE, "", "a", "a" * 300, "../..",
    "/", "\x00", "\x1b[31m", "\ud800", "\u202e", "[/]", "\n", "full", "1mbps-1ms-1pct",
    "1mbps-1ms-0pct+1mbps-1ms-1pct", [], {}, [[]], {"": {}}, _nested(60, 1), _nested(450, "x"),
    [1] * 3000, ["a", 1] * 1500, dict.fromkeys(map(str, range(3000)), ""),
)  # fmt: skip
_TOKENS = (
    b"\0", b"\xff", b"\xc3", b"\x1b[31m", b"\xc2\x9b", b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 400,
    b"[" * 100_000, b'{"a":' * 100_000, b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\n", b"\r\n", b" " * 1000,
    b"\\ud800", b"\\u001b", b'"name":1,', b"a" * 300,
)  # fmt: skip


def changed(document, draw):
    """Return a copy of a document with one to three of its values changed."""
    document = copy.deepcopy(document)
    for _ in range(draw.randint(1, 3)):
        left = list(places(document)) if isinstance(document, dict | list) else []
        if not left:
            break
        *within, last = draw.choice(left)
        inner = document
        for step in within:
            inner = inner[step]
        kind = draw.choice(("replace", "replace", "remove", "rename", "repeat"))
        if kind == "replace":
            inner[last] = copy.deepcopy(draw.choice(_STRANGE))
        elif kind == "remove":
            del inner[last]
        elif kind == "rename" and isinstance(inner, dict):
            inner[draw.choice((*map(str, left[0]), "x", "a" * 300, "\x1b"))] = inner.pop(last)
        elif isinstance(inner, list):
            inner += [inner[last]] * draw.choice((1, 1, 1000))
    return document


def scrambled(content, draw):
    """Return bytes with one to three of them, or of their slices, changed."""
    for _ in range(draw.randint(1, 3)):
        at = draw.randint(0, len(content))
        to = min(len(content), at + draw.choice((1, 1, 8, 200)))
        kind = draw.choice(("insert", "flip", "cut", "repeat", "end", "number"))
        if kind == "insert":
            content = content[:at] + draw.choice(_TOKENS) + content[at:]
        elif kind == "flip" and at < len(content):
            content = content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]
        elif kind == "cut":
            content = content[:at] + content[to:]
        elif kind == "repeat":
            content = content[:to] + content[at:to] * draw.choice((1, 1, 1000)) + content[to:]
        elif kind == "end":
            content = content[:at]
        elif kind == "number" and (numbers := list(re.finditer(rb"\d+", content))):
            first, last = draw.choice(numbers).span()
            content = content[:first] + draw.choice((b"1e999", b"0", b"-1", b"1e-400", b"7" * 30)) + content[last:]
        content = content[:LARGEST]
    return content


def text_of(document):
    return json.dumps(document).replace(f'"{_INFINITE}"', "1e999").encode() + b"\n"


def mutated(content, draw):
    """Return the bytes of a file: of a document, or of bytes, that was mutated."""
    if isinstance(content, bytes):
        return scrambled(content, draw)
    kind = draw.choice(("values", "values", "bytes", "both"))
    content = text_of(content if kind == "bytes" else changed(content, draw))
    return content if kind == "values" else scrambled(content, draw)


def _read_results(path):
    """Read result lines as reports and exports do, and as `merge` does."""
    found = source.Source([path])
    series = heatmaps.all_series(found.measurements)
    export.csv_bytes(series)
    export.summary_json(series, found.files)
    overview.render(series, called)
    merge.merge([path], path.with_name("merged.jsonl"))
    if path.suffix == ".jsonl":
        store.Store(path)  # as runs do


def _read_packed_results(path):
    _read_results(path)
    found = source.Source([path])
    found.whole(found.measurements[0])


def _read_split_results(path):
    """Read lines of a split path together with one of a cell, because a report needs a cell."""
    beside = path.with_name("cell.jsonl")
    beside.write_text(json.dumps(LINE) + "\n")
    found = source.Source([beside, path])
    heatmaps.drawn(found.measurements)
    merge.merge([path], path.with_name("merged.jsonl"))


def _read_features(path):
    features.read(path)
    features.stale(path)


def _read_scenario(path):
    """Read a scenario as `scenario show` and `run` do, including each point of its smoke grid."""
    scenario = scenarios.read(path)
    with located(path):
        for point in scenario.grid("smoke"):
            assert Setting.from_json(json.loads(json.dumps(scenario.setting(point).to_json())))


def _read_trace(path):
    """Read the rates of a link as a scenario with this file does."""
    scenario = copy.deepcopy(TRACED)
    scenario["schedule"][0]["trace"] = {"file": path.name, "format": path.suffix[1:]}
    beside = path.with_name("traced.json")
    beside.write_text(json.dumps(scenario))
    _read_scenario(beside)


def _read_clauses(path):
    """Read clauses and the settings in which they are measured."""
    with located(path):
        for clause in clauses.read(path).clauses:
            clauses.setting(clause.network)


def _read_zone(path):
    documents.zone(path)
    lint.check(path)


def _read_expected(path):
    manifest_path = path.parent / "adapter.json"
    if not manifest_path.exists():
        manifest_path.write_text(json.dumps(ADAPTER))
        _write_programs(path.parent)
    expectations.load(str(path.parent / "adapter.json"))


def _read_adapter(path):
    if not (path.parent / ADAPTER["program"]).exists():
        _write_programs(path.parent)
    manifest.read(str(path))


def _write_programs(folder):
    folder.chmod(0o755)
    for name in (ADAPTER["program"], ADAPTER["build"]["program"]):
        program(folder / name)
    for share in ADAPTER["shares"]:
        (folder / share).mkdir(parents=True, exist_ok=True)


def _read_mutants(path):
    mutants.mutants.from_json(schema.load("mutants", path), path)


def _json(*parts):
    return json.loads(paths.data(*parts).read_text())


LINE = as_read(
    measurement(), evidence={"interfaces": counted(2000, 1990), "trace": {"t_s": [0.0], "queue_bytes": [1]}}
).to_json()
#: as an earlier version wrote it, without records of flows and links, which follow from the counters
OLD = {name: value for name, value in LINE.items() if name not in ("flows", "links")}
OTHER = of_trial(measurement(), seed=2).to_json()
REAL = json.loads(gzip.decompress(GOLDEN.read_bytes()).splitlines()[0])
ADAPTER = _json("adapters", "quic-go", "adapter.json")
MUTANTS = json.loads(mutant_record.path().with_name("mutants.json").read_text())
MUTANTS["mutants"] = MUTANTS["mutants"][:6]
EXPECTED = {
    "version": 1,
    "expected": [
        {"zone": "reno/heatmap-packets", "cells": ["10mbps-20ms-1pct"], "verdict": "violates", "reason": "it is so"},
        {"zone": "reno/split-packets", "cells": "all", "verdict": "unsupported", "reason": "x", "link": "https://x"},
    ],
}
TRACED = _json("scenarios", "rate-trace.json")
PATH = (Cell(10, 20, 0), Cell(10, 5, 1))
SPLIT = dataclasses.replace(
    measurement(),
    trial=dataclasses.replace(measurement().trial, setting=documents.path("atc25", PATH, Proxy(to_client="cubic"))),
)
FEATURES = features.TrialFeatures(trial=measurement().trial, cell="few", sampled={"kept": [0.7, 0.71]})


def _study():
    """Return a shipped study, reduced to its first scenario."""
    study = _json("studies", "access-networks.json")
    named = study["scenarios"][0]["name"]
    of_it = [one for one in study["experiments"] if one["scenario"] == named]
    judged = [one for one in study["claims"] if "checks" in one and named in json.dumps(one["checks"])]
    drawn = [one for one in study["figures"] if one["at"]["scenario"] == named]
    cut = {"scenarios": study["scenarios"][:1], "experiments": of_it, "claims": judged[:2], "figures": drawn[:1]}
    return {**study, **cut}


#: {case: (file's name, a document or bytes to be mutated, reader)}
CASES = {
    "measurement": ("results.jsonl", LINE, _read_results),
    "measurement, recorded": ("results.jsonl", REAL, _read_results),
    "measurement, split": ("split.jsonl", SPLIT.to_json(), _read_split_results),
    "measurement, packed": ("results.jsonl.xz", LINE, _read_packed_results),
    "packed results": ("results.jsonl.xz", lzma.compress(text_of(LINE) + text_of(OTHER)), _read_packed_results),
    "features": ("r.features.jsonl", json.loads(features.dumps(FEATURES)), _read_features),
    "zone": ("startup.json", _json("zones", "cubic", "startup.json"), _read_zone),
    "profile": ("atc25.json", _json("zones", "profiles", "atc25.json"), scenarios.read),
    "expected": ("expected.json", EXPECTED, _read_expected),
    "adapter": ("adapter.json", ADAPTER, _read_adapter),
    "mutants": ("mutants.json", MUTANTS, _read_mutants),
    "scenario": ("s.json", _json("scenarios", "after-start-up.json"), _read_scenario),
    "scenario, bonded": ("s.json", _json("scenarios", "bond-options.json"), _read_scenario),
    "study": ("study.json", _study(), studies.read),
    "clauses": ("clauses.json", _json("clauses", "rfc5681.json"), _read_clauses),
    "trace of opportunities": ("t.mahimahi", b"".join(b"%d\n" % (7 * at) for at in range(300)), _read_trace),
    "trace of steps": ("t.steps", b"6\n0\n12.5\n" * 20, _read_trace),
}


@pytest.mark.parametrize("case", CASES)
def test_documents_are_read_as_they_are(tmp_path, case):
    name, document, reads = CASES[case]
    content = document if isinstance(document, bytes) else text_of(document)
    packs = name.endswith(".xz") and not isinstance(document, bytes)
    (tmp_path / name).write_bytes(lzma.compress(content) if packs else content)
    reads(tmp_path / name)


def _peak_mb():
    """Return how much memory this process has had, at most, since _start_mb()."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) >> 10


def _start_mb():
    """Forget the peak, and return how much memory this process has now."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    return _peak_mb()


class Hangs(BaseException):
    """A reader takes more processor time than it may; no reader catches this."""


def _hangs(*_):
    raise Hangs


def _read_mutated(folder, case, count, seed):
    """Read mutations of a case; return what may not happen, in words, and what came of the others."""
    name, document, reads = CASES[case]
    path, wrong, outcomes = folder / name, [], set()
    before = signal.signal(signal.SIGPROF, _hangs)
    try:
        for number in range(count):
            draw = random.Random(f"{seed} {case} {number}")
            content = mutated(document, draw)
            packs = name.endswith(".xz") and not isinstance(document, bytes)
            path.write_bytes(lzma.compress(content, preset=0) if packs else content)
            start = _start_mb()  # to make a mutation can take more memory than to read it may
            signal.setitimer(signal.ITIMER_PROF, MOST_S)
            why = None
            try:
                reads(path)
                outcomes.add("read")
            except UserError as error:
                outcomes.add("refused")
                if "\n" in str(error) or str(folder) not in str(error):
                    why = f"{error!s:.300}"
            except Hangs:
                why = f"more than {MOST_S} s"
            except Exception:
                why = traceback.format_exc(limit=-4)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            if (more := _peak_mb() - start) > MOST_MB:
                why = f"{more} MB; {why}"
            if why:
                wrong.append(f"seed {seed}, {case}, mutation {number}: {why}")
    finally:
        signal.signal(signal.SIGPROF, before)
    return wrong, outcomes


@pytest.mark.parametrize("case", CASES)
def test_a_mutated_document_is_read_or_refused_in_one_line(tmp_path, case):
    wrong, outcomes = _read_mutated(tmp_path, case, FEW, STEADY)
    assert not wrong, "\n".join(wrong)
    assert "refused" in outcomes


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_many_mutated_documents_are_read_or_refused_in_one_line(tmp_path, case):
    seed = int(os.environ.get("MUTATIONS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"MUTATIONS_SEED={seed}")
    wrong, _ = _read_mutated(tmp_path, case, STUDIES if case == "study" else MANY, seed)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("side", "lacking"), [("client", "rx_bytes"), ("server", "tx_bytes")])
def test_counters_that_lack_a_direction_are_refused_with_file_and_line(tmp_path, side, lacking):
    """This holds after sound lines, too, although only the first line of a kind is checked against the whole schema."""
    path = tmp_path / "results.jsonl"
    broken = copy.deepcopy(OLD)
    del broken["evidence"]["interfaces"][side]["eth0"][lacking]
    path.write_text(json.dumps(OLD) + "\n" + json.dumps(broken) + "\n")
    with pytest.raises(UserError, match=rf"results\.jsonl:2: .*{lacking}"):
        store.read(path)


def test_counters_of_one_side_alone_are_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    broken = copy.deepcopy(OLD)
    del broken["evidence"]["interfaces"]["client"]
    path.write_text(json.dumps(OLD) + "\n" + json.dumps(broken) + "\n")
    with pytest.raises(UserError, match=r"results\.jsonl:2: .*client"):
        store.read(path)
