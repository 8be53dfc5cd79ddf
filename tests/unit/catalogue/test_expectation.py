"""Known deviations: strict both ways, rewritten from results, and never a traceback."""

import dataclasses
import io
import json
import types

import pytest
import rich.console
from helpers import CELL, JSON, counted, invoke, measurements, of_trial, refusal, scheme, trial, zone
from hypothesis import given, strategies as st

from conformance.catalogue import clause_record, clauses, documents, expectations
from conformance.commands import expect
from conformance.engine import benches
from conformance.lab import manifest
from conformance.model.errors import UserError
from conformance.model.judging import expectation, grid
from conformance.model.judging.expectation import Expected, Surprise, compare
from conformance.model.judging.question import Named
from conformance.model.judging.seeds import FRESH
from conformance.model.judging.verdict import Status, Verdict, ZoneSide, ZoneVerdict
from conformance.model.networks.place import Cell, Point
from conformance.model.trials.trial import Outcome
from conformance.reporting.text import expect as showing
from conformance.support import paths, schema

OTHER, UNMEASURED = Cell(10, 40, 1), Cell(10, 60, 1)


def verdict(status, cell=CELL):
    return Verdict(
        status=status, zone_id="cubic/heatmap", place=cell, permitted=zone().intervals[CELL], reason="r", n=5,
        value=0.3, interval=(0.3, 0.3), sure=status is Status.CONFORMS,
    )  # fmt: skip


def expected(cells=(CELL,), status=Status.VIOLATES, reason="beta is 0.5"):
    return Expected(
        zone_id="cubic/heatmap", cells=None if cells is None else frozenset(cells), verdict=status, reason=reason
    )


@pytest.mark.parametrize(
    ("status", "entry", "surprise"),
    [
        (Status.VIOLATES, None, Surprise.NEW),
        (Status.CONFORMS, None, Surprise.NONE),
        (Status.UNSUPPORTED, None, Surprise.NONE),
        (Status.VIOLATES, expected(), Surprise.NONE),
        (Status.CONFORMS, expected(), Surprise.GONE),
        (Status.UNSUPPORTED, expected(), Surprise.GONE),
        (Status.VIOLATES, expected(status=Status.UNSUPPORTED), Surprise.NEW),
        (Status.INCONCLUSIVE, expected(), Surprise.NONE),
        (Status.ERROR, expected(), Surprise.NONE),
    ],
)
def test_strict_both_ways(status, entry, surprise):
    assert compare(verdict(status), entry) is surprise


def violation(side):
    permitted = zone().intervals[CELL]
    value = permitted.low / 2 if side is ZoneSide.BELOW else permitted.high * 2
    return dataclasses.replace(verdict(Status.VIOLATES), value=value)


@pytest.mark.parametrize("known", [Status.VIOLATES, expectation.Known.BORDERLINE])
def test_a_known_deviation_hides_no_deviation_to_the_other_side(known):
    below, above = violation(ZoneSide.BELOW), violation(ZoneSide.ABOVE)
    entry = dataclasses.replace(expected(status=known), side=ZoneSide.BELOW)
    assert (compare(below, entry), compare(above, entry)) == (Surprise.NONE, Surprise.NEW)
    assert compare(above, entry, again=verdict(Status.CONFORMS)) is Surprise.UNCONFIRMED
    assert {compare(violation, expected(status=known)) for violation in (below, above)} == {Surprise.NONE}


def test_a_known_deviation_on_a_side_hides_no_median_inside():
    """Where trials fall into another mode, a violation may have its median inside; an entry "above" took that."""
    known = dataclasses.replace(expected(), side=ZoneSide.ABOVE)
    inside = dataclasses.replace(verdict(Status.VIOLATES), value=zone().intervals[CELL].high)
    assert inside.side is None
    assert compare(inside, known) is Surprise.NEW
    assert compare(violation(ZoneSide.ABOVE), known) is Surprise.NONE


def test_an_update_records_the_side():
    def verdicts(side):
        return [ZoneVerdict(zone_id="cubic/heatmap", verdicts={CELL: violation(side)}, family=1)]

    entries = update((), verdicts(ZoneSide.BELOW))
    assert [(entry.verdict, entry.side) for entry in entries] == [("violates", ZoneSide.BELOW)]
    document = json.loads(expectations.dumps(entries))
    schema.check("expected", document, "here")
    assert expectation.from_json(document, "here") == entries == update(entries, verdicts(ZoneSide.BELOW))
    assert "known to violate below what is permitted: " in entries[0].words
    explained = dataclasses.replace(entries[0], reason="beta is 0.5")
    (other,) = update((explained,), verdicts(ZoneSide.ABOVE))
    assert (other.side, other.reason) == (ZoneSide.ABOVE, expectation.UNEXPLAINED)
    assert update((explained,), verdicts(ZoneSide.ABOVE), add=False) == ()
    assert update((expected(),), verdicts(ZoneSide.ABOVE)) == (expected(),)


def zone_verdict(**statuses):
    verdicts = {cell: verdict(statuses[name], cell) for name, cell in (("a", CELL), ("b", OTHER)) if name in statuses}
    return ZoneVerdict(zone_id="cubic/heatmap", verdicts=verdicts, family=len(verdicts))


def update(entries, zone_verdicts, add=True):
    return expectation.update(entries, zone_verdicts, lambda zone_id: {CELL, OTHER, UNMEASURED}, add)


def test_update_keeps_reasons_drops_what_is_gone_and_adds_what_is_new():
    before = (expected(cells=(CELL,)),)
    same = update(before, [zone_verdict(a=Status.VIOLATES, b=Status.CONFORMS)])
    assert same == before
    (new,) = set(update(before, [zone_verdict(a=Status.VIOLATES, b=Status.VIOLATES)])) - set(before)
    assert (new.cells, new.reason) == ({OTHER}, expectation.UNEXPLAINED)
    assert update(before, [zone_verdict(a=Status.CONFORMS)]) == ()
    assert update(before, [zone_verdict(a=Status.INCONCLUSIVE)]) == before
    assert update(before, [zone_verdict(b=Status.CONFORMS)]) == before


def test_an_entry_on_all_cells_becomes_a_list_of_the_others_when_one_conforms():
    (entry,) = update((expected(cells=None),), [zone_verdict(a=Status.VIOLATES, b=Status.CONFORMS)])
    assert entry.cells == {CELL, UNMEASURED}
    (entry,) = update((expected(cells=None),), [zone_verdict(b=Status.CONFORMS)])
    assert entry.cells == {CELL, UNMEASURED}
    assert update((expected(cells=None),), [zone_verdict(a=Status.VIOLATES)]) == (expected(cells=None),)


def updated(console, *arguments):
    showing.show(expect.update(*arguments), console)


def verdicts_of(results):
    return expect.verdicts(expect.runs("linux-tcp", results))


STATUSES = st.sampled_from([Status.VIOLATES, Status.CONFORMS, Status.INCONCLUSIVE, Status.UNSUPPORTED])


@pytest.mark.slow
@given(st.sets(st.sampled_from([CELL, OTHER]), min_size=1), STATUSES, STATUSES)
def test_nothing_surprises_after_an_update_and_a_second_one_changes_nothing(cells, a, b):
    found = zone_verdict(a=a, b=b)
    after = update((expected(cells=cells),), [found])
    for cell, v in found.verdicts.items():
        assert compare(v, expectation.find(after, "cubic/heatmap", cell)) is Surprise.NONE
    assert update(after, [found]) == after
    document = json.loads(expectations.dumps(after))
    schema.check("expected", document, "here")
    assert set(expectation.from_json(document, "here")) == set(after)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cells": ["10mbps"]}, "/expected/0/cells"),
        ({"cells": []}, "/expected/0/cells"),
        ({"verdict": "conforms"}, "/expected/0/verdict"),
        ({"reason": ""}, "/expected/0/reason"),
        ({"zone": "cubic"}, "/expected/0/zone"),
        ({"cells": ["10mbps-20ms-99pct"]}, "/expected/0/cells: loss_pct is 99"),
    ],
)
def test_a_mistake_is_named_with_its_place(change, words):
    document = expectation.to_json((expected(),))
    document["expected"][0].update(change)
    with pytest.raises(UserError, match=words):
        schema.check("expected", document, "expected.json")
        expectation.from_json(document, "expected.json")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"zone": "cubic/heatmpa"}, "/expected/0/zone: there is no zone 'cubic/heatmpa'"),
        ({"cells": ["11mbps-20ms-1pct"]}, "/expected/0/cells: zone cubic/heatmap has no 11mbps-20ms-1pct"),
        ({"zone": "cubic/split", "cells": ["nonsense"]}, "/expected/0/cells: zone cubic/split has no nonsense"),
        (
            {"zone": "cubic/heatmap-packets"},
            "/expected/0/zone: stacks over tcp are not judged by zone",
        ),
        ({"zone": "reno/heatmap"}, "/expected/0/zone: mine does not offer reno; remove the entry"),
        (
            {"zone": "vegas/identify-queue"},
            "/expected/0/zone: stacks over tcp are not judged by zone",
        ),
    ],
)
def test_what_is_never_judged_is_refused_as_it_would_never_be_missed(tmp_path, monkeypatch, entry, words):
    mine = types.SimpleNamespace(name="mine", folder=tmp_path, transport="tcp", offered=lambda: ["cubic"])
    monkeypatch.setattr(manifest, "read", lambda stack: mine)
    document = expectation.to_json((expected(),))
    document["expected"][0].update(entry)
    (tmp_path / "expected.json").write_text(json.dumps(document))
    with pytest.raises(UserError, match=words):
        expectations.load("a stack")


def test_a_link_that_leads_nowhere_does_not_say_that_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "read", lambda stack: types.SimpleNamespace(folder=tmp_path))
    assert expectations.load("a stack") == ()
    for target in ("nowhere.json", "expected.json"):
        (tmp_path / "expected.json").unlink(missing_ok=True)
        (tmp_path / "expected.json").symlink_to(target)
        with pytest.raises(UserError, match=r"cannot read .*expected\.json"):
            expectations.load("a stack")


def test_any_build_is_no_choice():
    done = invoke("expect", "update", "quinn", "--any-build", "--kernel", "7.2")
    assert (done.exit_code, "leave out --kernel 7.2" in done.output) == (2, True)


def test_two_entries_on_one_cell_are_refused():
    document = expectation.to_json((expected(), expected(cells=None)))
    assert "/expected/1/cells: an earlier entry" in refusal(expectation.from_json, document, "expected.json")


@pytest.mark.slow
@given(st.sampled_from(["version", "expected", "zone", "cells", "verdict", "reason", "link"]), JSON)
def test_whatever_stands_there_the_place_is_named(name, value):
    document = expectation.to_json((expected(),))
    (document if name in document else document["expected"][0])[name] = value
    try:
        schema.check("expected", document, "expected.json")
        expectation.from_json(document, "expected.json")
    except UserError as error:
        assert str(error).startswith("expected.json: /")


@pytest.mark.slow
def test_a_stack_s_file_is_rewritten_from_its_results(tmp_path, monkeypatch):
    folder = tmp_path / "stack"
    folder.mkdir()
    about = {
        "contract": 1, "name": "linux-tcp", "title": "t", "program": "run", "transport": "tcp",
        "algorithms": {"cubic": {"called": "c", "evidence": "e"}},
    }  # fmt: skip
    (folder / "adapter.json").write_text(json.dumps(about))
    (folder / "run").write_text("#!/bin/sh\n")
    for path in (tmp_path, folder, folder / "run"):
        path.chmod(0o755)
    stack = str(folder / "adapter.json")
    assert expectations.load(stack) == ()
    permitted = documents.zone_of("cubic").intervals[CELL]
    bad = measurements([permitted.low / 2] * 8)
    sent = counted(1000, 1000)
    lines = [json.dumps({**m.to_json(), "evidence": {"interfaces": sent}}) for m in bad]
    results = tmp_path / "r.jsonl"
    results.write_text("\n".join(lines) + "\n")
    console = rich.console.Console(file=io.StringIO(), width=200)
    updated(console, stack, [results])
    entries = {entry.zone_id: entry for entry in expectations.load(stack)}
    assert entries["cubic/heatmap"].cells == {CELL}
    assert "+ cubic/heatmap, 1 cell: violates (below), not explained yet" in console.file.getvalue()
    # A trial counts once, however many files hold it. Results that never judge the stack add no entry, which load()
    # would refuse.
    copy = tmp_path / "copy.jsonl"
    elsewhere = {**bad[0].to_json()["trial"]["setting"], **documents.profile("packets", CELL).to_json()}
    under_packets = [{**(line := json.loads(text)), "trial": {**line["trial"], "setting": elsewhere}} for text in lines]
    copy.write_text("\n".join([*lines, *map(json.dumps, under_packets)]) + "\n")
    updated(console, stack, [results, copy])
    assert "unchanged" in console.file.getvalue()
    few, again = (written(tmp_path / name, bad[:4]) for name in ("few.jsonl", "again.jsonl"))
    (judged, *_) = verdicts_of([few, again])
    assert judged.verdicts[CELL].n == 4
    assert "no measurements of stack" in refusal(updated, console, "quinn", [results])


def bench_of(**today):
    """Return a bench with this build of a stack, this kernel and this lab."""

    def trials(algorithm, setting, seeds):
        made = [trial(seed, algorithm=algorithm, **today) for seed in seeds]
        return [dataclasses.replace(one, setting=setting) for one in made]

    return types.SimpleNamespace(trials=trials, adapter=types.SimpleNamespace(name="linux-tcp", version="v2"))


def written(path, made):
    path.write_text("".join(json.dumps(m.to_json()) + "\n" for m in made))
    return path


@pytest.mark.slow
def test_results_of_another_build_say_nothing_of_this_one(tmp_path, monkeypatch):
    (tmp_path / "expected.json").write_text(expectations.dumps([expected()], ours=False))
    monkeypatch.setattr(
        manifest,
        "read",
        lambda s: types.SimpleNamespace(folder=tmp_path, transport="tcp", name="linux-tcp", offered=list),
    )
    permitted = documents.zone_of("cubic").intervals[CELL]
    inside = measurements([permitted.basis.median] * 8, stack_digest="a" * 16, stack_version="v2")
    outside = measurements([permitted.low / 2] * 8)
    results = written(tmp_path / "both.jsonl", [*outside, *inside])

    def update_today(path, **today):
        monkeypatch.setattr(benches, "find", lambda choice: bench_of(**today))
        console = rich.console.Console(file=io.StringIO(), width=200)
        updated(console, "a stack", [path], benches.Choice(stack="a stack"))
        return console.file.getvalue(), {e.zone_id for e in expectations.load("a stack")}

    said, entries = update_today(results)
    assert (entries, "unchanged" in said) == ({"cubic/heatmap"}, True)
    assert "left out: 8 measurements of cubic/linux-tcp/6.12.0 from another build (v2; now v1)" in said
    said, entries = update_today(results, stack_digest="a" * 16)
    assert (entries, "- cubic/heatmap, 1 cell: violates" in said) == (set(), True)
    for today, unlike in (
        ({"stack_digest": "b" * 16, "stack_version": "v3"}, "another build .v2; now v3."),
        ({"kernel_digest": "b" * 16, "kernel_release": "7.2"}, "another kernel .6.12.0; now 7.2."),
        ({"lab_digest": "b" * 16}, "another lab"),
    ):
        with pytest.raises(UserError, match=rf"both\.jsonl: no measurement .*{unlike}.*with --any-build"):
            update_today(results, **today)
    # Removing deviations that are gone adds none.
    usual = documents.zone_of("cubic").intervals[OTHER].basis.median
    gone = [*outside[:5], *measurements([usual] * 8, cell=OTHER)]
    (tmp_path / "expected.json").write_text(expectations.dumps([expected(cells=[OTHER])], ours=False))
    args = "a stack", [written(tmp_path / "gone.jsonl", gone)]
    expect.update(*args, add=False)
    assert expectations.load("a stack") == ()
    # If there is nothing to keep, no file is written.
    (tmp_path / "expected.json").unlink()
    expect.update(*args, add=False)
    assert not (tmp_path / "expected.json").exists()
    # Of two builds, it is not clear which is meant; a single build, whichever it is, leaves no doubt.
    assert "more than one run of cubic/linux-tcp" in refusal(expect.update, "a stack", [results])
    one = written(tmp_path / "one.jsonl", outside)
    expect.update("a stack", [one])
    assert {e.zone_id for e in expectations.load("a stack")} == {"cubic/heatmap"}


def test_a_kernel_that_is_not_built_here_makes_no_entry(tmp_path):
    missing = measurements([0.5], outcome=Outcome.UNSUPPORTED, kernel_digest="", kernel_release="not-built")
    with pytest.raises(UserError, match="no measurements of stack linux-tcp"):
        expect.runs("linux-tcp", [written(tmp_path / "r.jsonl", missing)])
    assert "except 1 on kernels that are not built" in refusal(expect.runs, "linux-tcp", [tmp_path / "r.jsonl"])
    lacking = measurements([0.5], outcome=Outcome.UNSUPPORTED)
    (found, *_) = verdicts_of([written(tmp_path / "r.jsonl", lacking)])
    assert {v.status for v in found.verdicts.values()} == {Status.UNSUPPORTED}


def test_one_run_may_have_two_names(tmp_path):
    results = written(tmp_path / "r.jsonl", [*measurements([0.4] * 3), *measurements([0.4] * 5, kernel="6.12")[3:]])
    (found, *_) = verdicts_of([results])
    assert [v.n for v in found.verdicts.values()] == [5]


@pytest.mark.parametrize(("kernel_digest", "image", "n"), [("6" * 16, None, 1), ("", None, 0), ("6" * 16, "folder", 0)])
def test_what_nobody_can_see_is_not_compared(monkeypatch, kernel_digest, image, n):
    monkeypatch.setattr(expectations, "load", lambda stack: (expected(),))
    choice = benches.Choice(interop_rootfs=image)
    bench = types.SimpleNamespace(choice=choice, scheme=lambda a: scheme(a, kernel_digest=kernel_digest))
    assert len(expectations.of(bench)) == n


def test_a_clause_on_record_is_known_and_may_be_repaired():
    (entry, *_) = clause_record.expected("quinn", paths.data("adapters", "quinn", "adapter.json"))
    assert clauses.find(entry.zone_id)
    entry = dataclasses.replace(entry, side=verdict(Status.VIOLATES).side)
    for status in (Status(str(entry.verdict)), Status.CONFORMS, Status.UNSUPPORTED):
        assert compare(verdict(status), entry) is Surprise.NONE
    other = Status.FAILS if entry.verdict == "violates" else Status.VIOLATES
    assert compare(verdict(other), entry) is Surprise.NEW


def test_no_clause_is_on_record_of_an_adapter_that_does_not_ship(tmp_path):
    """A user's adapter of the same name had the shipped one's violations as an excuse."""
    assert clause_record.expected("quinn", tmp_path / "quinn" / "adapter.json") == ()


def test_a_violated_clause_on_record_excuses_no_violation_on_its_other_side():
    """quinn's value of CL027 is below what is permitted."""
    known = clause_record.expected("quinn", paths.data("adapters", "quinn", "adapter.json"))
    (entry,) = (entry for entry in known if entry.zone_id == "CL027")
    bound = clauses.find("CL027").bound
    permitted = dataclasses.replace(zone().intervals[CELL], low=bound.low, high=bound.high)
    for value, surprise in ((bound.low / 2, Surprise.NONE), (bound.high * 2, Surprise.NEW)):
        verdict = Verdict(
            status=Status.VIOLATES, zone_id="CL027", place=Named("cubic"), permitted=permitted, reason="", value=value
        )
        assert compare(verdict, entry) is surprise


def test_checks_of_split_zones_are_known_by_their_ids():
    entry = expected(cells=(Named("10mbps-use-above-0.5"),))
    entry = dataclasses.replace(entry, zone_id="cubic/split")
    document = json.loads(expectations.dumps([entry]))
    schema.check("expected", document, "expected.json")
    assert expectation.from_json(document, "expected.json") == (entry,)
    assert expectation.find([entry], "cubic/split", Named("10mbps-use-above-0.5")) is entry
    assert expectation.find([entry], "cubic/split", Named("10mbps-gain-above-3")) is None


@pytest.mark.slow
def test_split_zones_are_judged_where_all_their_cells_were_measured(tmp_path):
    zone = documents.zone_of("cubic")
    cells = grid.cells("10mbps")
    results = tmp_path / "r.jsonl"

    def verdicts(of, factor):
        made = [m for cell in of for m in measurements([zone.intervals[cell].basis.median * factor] * 20, cell=cell)]
        results.write_text("".join(json.dumps(m.to_json()) + "\n" for m in made))
        found = {v.zone_id: v.verdicts for v in verdicts_of([results])}
        return {check.id: str(v.status) for check, v in found.get("cubic/split", {}).items()}

    right, wrong = verdicts(cells, 1), verdicts(cells, 0.4)
    assert len(right) == 10
    assert set(right.values()) == {"conforms"}
    assert wrong["10mbps-use-above-0.5"] == "violates"
    assert "10mbps-use-above-0.5" not in verdicts(cells[1:], 1)


def test_a_violation_of_a_split_zone_counts_if_a_repeat_shows_it(tmp_path):
    check = documents.split_part("cubic/split")[0]
    results = tmp_path / "r.jsonl"

    def trials(factor, n, first):
        for cell in check.cells:
            for m in measurements([check.heatmap.intervals[cell].basis.median * factor] * n, cell=cell):
                yield of_trial(m, seed=m.trial.seed + first)

    def verdict(factor, again=1, n_again=0):
        made = [*trials(factor, 20, 0), *trials(again, n_again, FRESH)]
        results.write_text("".join(json.dumps(m.to_json()) + "\n" for m in made))
        (found,) = [v for v in verdicts_of([results]) if v.zone_id == check.id]
        # The run has one family: each cell for the check, and for utilization and loss if it counts.
        zones = [documents.zone_of("cubic", kind) for kind in ("heatmap", "loss")]
        counted = sum(zone.intervals[cell].counted for zone in zones for cell in check.cells)
        assert found.family == counted + len(check.cells)
        return str(found.verdicts[check.place].status)

    assert verdict(1) == "conforms"
    assert verdict(0.3) == "violates"
    assert verdict(0.3, again=0.3, n_again=20) == "violates"
    assert verdict(0.3, again=1, n_again=20) == "inconclusive"  # as in pytest, which repeats it
    assert verdict(0.3, again=1, n_again=3) == "violates"  # the repeat was interrupted


SHIPPED = sorted(paths.data("adapters").glob("*/expected.json"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_what_ships_is_explained_and_names_cells_that_are_judged(path):
    entries = expectations.load(path.parent.name)
    assert entries
    for entry in entries:
        assert entry.cells is None or entry.cells <= expectations.places(entry.zone_id)
        assert entry.reason != expectation.UNEXPLAINED
        assert (paths.PACKAGE.parent / entry.link).is_file()


def test_what_is_written_of_points_is_read_back(tmp_path):
    """The suite must accept the file that it writes; ids of points have commas, colons and equals signs."""
    of_points = [judging for _, judging in documents.judging("packets") if not judging.of_cells]
    assert of_points
    for one in of_points:
        cells = frozenset(expectations.places(one.id))
        entry = Expected(zone_id=one.id, cells=cells, verdict=expectation.Known("violates"), reason="r")
        path = tmp_path / "expected.json"
        path.write_text(expectations.dumps([entry]))
        (read,) = expectation.from_json(schema.load("expected", path), path)
        assert read == entry and all(isinstance(cell, Point) for cell in cells)


def test_the_schema_of_lists_has_the_words_of_their_type():
    entries = json.loads((paths.PACKAGE / "schemas" / "expected.json").read_text())["properties"]["expected"]["items"]
    assert entries["properties"]["verdict"]["enum"] == list(expectation.Known)
    assert entries["properties"]["side"]["enum"] == list(ZoneSide)


def test_cells_and_points_are_listed_beside_each_other():
    mixed = expected(cells=(CELL, Point((("flows", 2),)), OTHER))
    assert mixed.ids == [CELL.id, OTHER.id, "flows=2"]
    (written,) = expectation.to_json([mixed])["expected"]
    assert written["cells"] == mixed.ids
