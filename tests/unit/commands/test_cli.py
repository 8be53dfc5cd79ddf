"""Every command, and the errors for users' mistakes: one line with the cause and the remedy."""

import importlib.abc
import json
import subprocess
import sys
import tempfile

import pytest
from helpers import invoke, measurements, stored

import conformance
from conformance import __main__
from conformance.catalogue import documents, lint, mutant_record
from conformance.commands import run as run_command, zones as zones_command
from conformance.results import source, store
from conformance.support import paths


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return invoke(*arguments)

    return call


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.jsonl"
    return stored(path, measurements([0.42, 0.41, 0.43, 0.44, 0.40]))


def test_an_interrupt_while_the_command_is_imported_is_one_line(monkeypatch, capsys):
    class Interrupted(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name == "conformance.cli":
                raise KeyboardInterrupt

    # Another test may have imported it before, or none.
    monkeypatch.delitem(sys.modules, "conformance.cli", raising=False)
    monkeypatch.delattr(conformance, "cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "conformance: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "cubik"), "no guest kernel named 'default'"),
        (("run", "cubic", "--grid", "10mbps--1ms-0pct"), "one_way_delay_ms is -1"),
        (("run", "cubic", "--grid", "10mbps-1ms-100pct"), "loss_pct is 100"),
        (("run", "cubic", "--grid", "smoke"), "smoke is a tier, not a grid; use `pytest -m smoke`"),
        (("run", "cubic", "--grid", "cubic/nothing"), "there is no zone 'cubic/nothing'"),
        (("zones", "show", "cubic/heatmpa"), "there is no zone 'cubic/heatmpa'; did you mean cubic/heatmap?"),
        (("zones", "show", "cubic/fairness"), "there is no zone 'cubic/fairness'; choose one of cubic/fairness-"),
        (("run", "cubic", "--grid", "cubic/split"), "is about paths, not cells"),
        (("run", "cubic", "--queue", "tail"), "queue 'tail' is not known"),
        (("run", "cubic", "--stack", "apache-quic"), "stack 'apache-quic' is not known; choose one of"),
        (("run", "cubic", "--profile", "x"), "profile 'x' is not known"),
        (("kernel", "build", "a/b"), "kernel name 'a/b' is not valid"),
        (("kernel", "build", "--source", "/nowhere"), "no such file, folder"),
        (("report", "none.jsonl"), "cannot read results none.jsonl"),
        (("dev", "fidelity", "none.jsonl"), "cannot read results none.jsonl"),
        (("zones", "check", "none.json"), "cannot read none.json"),
        (("zones", "show", "reno"), "give an id such as reno/heatmap"),
        (("dev", "zones", "apart", "cubik", "reno"), "did you mean cubic?"),
        (("run", "cubic", "--trials", "9" * 400), "not in the range 1<=x<=10000"),
        (("run", "cubic", "--transfer-s", "nan"), "nan is not a finite number"),
        (("run", "cubic", "--stack", "~nobody-is-called-so/adapter.json"), "No such file"),
        (("run", "cubic", "--stack", "a" * 300), "File name too long"),
        (("run", "cubic", "--profile", "a" * 300), "is not known; choose one of"),
        (("compare", "a" * 300, "quinn"), "File name too long"),
        (("run", "cubic", "--interop-rootfs", "a" * 300), "File name too long; give a shorter name"),
        (("kernel", "digest", "--patch", "a" * 300), "File name too long; give a shorter name"),
        (("zones", "show", "cubic/" + "a" * 300), "cannot read cubic/aaa"),
        (("study", "show", "a" * 300), "there is no study 'aaa"),
        (("scenario", "show", "a" * 300), "there is no scenario 'aaa"),
        (("zones", "check", "a" * 300), "File name too long"),
        (("kernel", "digest", "--source", "~nobody-is-called-so/x"), "no such file, folder"),
        (("run", "cubic", "--interop-rootfs", "~nobody-is-called-so/x"), "is not a root file system"),
        (("gate", "cubic", "--budget", "9" * 400 + "s"), "is not a usable length of time"),
        (("gate", "cubic", "--max-trials", "10001"), "10001 is not in the range"),
        (("why", "cubic", "--trials", "10001"), "10001 is not in the range"),
        (("why", "cubic", "--first-seed", str(2**40)), "is not in the range"),
        (("why", "cubic", "--out", sys.executable), "Not a directory"),
        (("trace", "cubic", "10mbps-1ms-0pct", "--out", sys.executable), "Not a directory"),
        (("compare", "a.jsonl", "b.jsonl", "--stack", "quinn"), "--stack would have no effect: two results files"),
        (("compare", "a.jsonl", "b.jsonl", "--budget", "9m"), "--budget would have no effect: two results files"),
        (("compare", "a.jsonl", "b.jsonl", "--trials", "8"), "--trials would have no effect: two results files"),
        (("gate", "cubic", "--kernel", ""), "--kernel is empty; give it a value, or leave it out"),
        (("run", "cubic", "--executor="), "--executor is empty; give it a value, or leave it out"),
        (("gate", "cubic", "--baseline", "b.jsonl", "--why"), "--why would have no effect: with --baseline"),
        (("gate", "cubic", "--baseline", "b.jsonl", "--blame"), "--blame would have no effect: with --baseline"),
    ],
)
def test_mistakes(run, own_cache, arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_report_writes_a_page_that_opens_from_disk(run, results, tmp_path):
    result = run("report", results)
    assert result.exit_code == 0, result.output
    assert "cubic/linux-tcp/6.12.0" in result.output
    assert result.output.rstrip().endswith("report/index.html")
    front = (tmp_path / "report" / "index.html").read_text()
    (cells,) = (tmp_path / "report").glob("cubic-linux-tcp-*-10mbps.html")
    assert cells.name.removesuffix("-10mbps.html") in front
    assert "utilization 0.4200, median of 5" in cells.read_text()


@pytest.mark.parametrize("form", ["json", "csv", "parquet", "markdown", "badge-json", "badge-svg", "matrix", "bencher"])
def test_exports(run, results, tmp_path, form):
    assert run("export", form, results, "--out", tmp_path / "made").exit_code == 0
    made = (tmp_path / "made").read_bytes()
    assert {"parquet": b"PAR1", "badge-svg": b"<svg"}.get(form, b"cubic") in made
    assert run("export", form, results, "--out", "-").stdout_bytes == made
    assert "cannot write" in run("export", form, results, "--out", tmp_path / "made" / "x").output


def test_published_lines_are_compressed_and_read_like_any_other(run, results, tmp_path, front_page):
    folder = tmp_path / "published"
    assert run("publish", results, "--out", folder).exit_code == 0
    (packed,) = folder.iterdir()
    assert packed.name == "linux-tcp.jsonl.xz" and packed.stat().st_size < results.stat().st_size
    assert (
        run("export", "csv", packed, "--out", "-").stdout_bytes
        == run("export", "csv", results, "--out", "-").stdout_bytes
    )
    assert run("report", packed).exit_code == 0
    into = run("run", "cubic", "--grid", "10mbps-20ms-1pct", "--results", packed)
    assert into.exit_code == 2 and "is compressed, and can only be read" in into.output


@pytest.mark.slow
def test_figures(run, results, tmp_path):
    for what, form, begins in (("heatmap", "pdf", b"%PDF"), ("loss", "svg", b"<svg"), ("compare", "png", b"\x89PNG")):
        done = run("plot", what, results, "--as", form, "--out", tmp_path / what)
        assert done.exit_code == 0, done.output
        (path,) = (tmp_path / what).iterdir()
        assert path.read_bytes().startswith(begins)
    wrong = run("plot", "heatmap", results, "--stack", "nonesuch")
    assert wrong.exit_code == 2 and "there are results of cubic/linux-tcp/6.12.0" in wrong.output


@pytest.mark.slow
def test_all_zones_that_ship_hold_and_are_canonical(run):
    """This is one test, because playing the documents takes most of a minute, and a process remembers the results."""
    result = run("zones", "check")
    assert result.exit_code == 0
    for algorithm in ("bbrv1", "cubic", "reno"):
        assert f"ok  {algorithm}/heatmap: 150 cells" in result.output
    files = documents.zone_files("*")
    assert result.output.count("ok  ") == len(files)
    assert [path for path in files if not lint.format_file(path, write=False)] == []


def test_a_zone_that_accepts_every_mutant_fails_the_check(run, tmp_path, monkeypatch):
    """All invariants of the zone hold, but so wide a reference would permit anything."""
    document = json.loads((paths.data("zones") / "cubic" / "competing.json").read_text())
    for cell in document["cells"]:
        (basis,) = cell["bases"]
        half = len(basis["values"]) // 2
        basis["values"] = [0.0] * half + [1.0] * half
        # The median is 0.5, and the margin is 10 % and 0.0005.
        cell.update(low=0.4495, high=0.5505, counted=False)
    path = tmp_path / "competing.json"
    path.write_text(json.dumps(document))
    tried = tuple(one for one in mutant_record.load() if one.mutant == "cubic-no-fast-convergence")
    monkeypatch.setattr(mutant_record, "load", lambda: tried)
    result = run("zones", "check", path)
    assert result.exit_code == 2
    assert "no cell counts, so it accepts every mutant" in result.output


def test_fidelity(run, results):
    result = run("dev", "fidelity", results)
    assert result.exit_code == 0, result.output
    assert "-0.0300" in result.output


def test_the_installed_command_answers():
    done = subprocess.run([sys.executable, "-m", "conformance", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("conformance, version "), done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mutants", "--whole"), "there is no command 'mutants'; run `conformance dev mutants`"),
        (("compare", "@default", "@default", "--trials", "10001"), "10001 is not in the range"),
        (("compare", "@default", "@default", "--margin", "inf"), "not a finite number"),
        (("compare", "@default", "@nonesuch"), "no guest kernel named 'nonesuch'"),
        (
            ("compare", "@default", "@default", "--algorithm", "cubic", "--sysctl", "net.ipv4.a=1", "--trials", "5"),
            "ask for more with --trials",
        ),
        (("compare", "@default", "@default", "--sysctl", "tcp_x"), "not of the form net.ipv4.NAME=VALUE"),
        (("dev", "cross", "bbrv9"), "no zone for algorithm 'bbrv9'"),
        (("identify", "cubic", "--stack", "nonesuch"), "stack 'nonesuch' is not known"),
    ],
)
def test_mistakes_with_comparisons_are_one_line(run, arguments, words):
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.output and "Traceback" not in done.output


@pytest.mark.parametrize(
    ("options", "numbers"),
    [((), (5, 20)), (("--trials", "5"), (5, 5)), (("--trials", "7"), (7, 7)), (("--max-trials", "9"), (5, 9)),
     (("--trials", "3", "--max-trials", "4"), (3, 4))],
)  # fmt: skip
def test_a_number_of_trials_that_was_asked_for_is_not_exceeded(run, monkeypatch, options, numbers):
    from conformance.commands import run as command

    asked = []

    def compute(*_, trials, most_trials, **__):
        asked.append((trials, most_trials))
        return command.MeasuredGrid(series=(), results="r.jsonl", not_judged=None)

    monkeypatch.setattr(command, "compute", compute)
    assert run("run", "cubic", *options).exit_code == 0
    assert asked == [numbers]


@pytest.mark.parametrize(
    "arguments", [("report", "results.jsonl"), ("export", "csv", "results.jsonl"), ("zones", "check")]
)
def test_a_command_that_keeps_nothing_does_not_offer_to_resume(run, results, monkeypatch, arguments):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(source.Source, "__init__", interrupted)
    monkeypatch.setattr(zones_command, "check", interrupted)
    ended = run(*arguments)
    assert ended.exit_code == 130
    assert ended.stderr == "conformance: interrupted\n"


def test_a_command_that_measures_offers_to_resume(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "compute", interrupted)
    ended = run("run", "cubic")
    assert ended.exit_code == 130
    assert ended.stderr == "conformance: interrupted; run the same command again to resume\n"


def test_a_crash_of_the_suite_is_an_error_and_names_its_log(run, results, monkeypatch, tmp_path):
    """Python's own status for it, 1, would mean that a stack violates."""
    monkeypatch.setattr(store, "scan", lambda *_: {}["\x1b[31m"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = run("report", results)
    assert found.exit_code == 3
    (line,) = found.output.splitlines()
    assert "please report this" in line
    assert "\x1b" not in line
    (log,) = tmp_path.glob("conformance-crash-*.log")
    assert str(log) in line
    assert "Traceback" in log.read_text()


def test_a_crash_whose_log_cannot_be_written_prints_its_traceback(run, results, monkeypatch):
    monkeypatch.setattr(store, "scan", lambda *_: {}["x"])
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    found = run("report", results)
    assert found.exit_code == 3
    assert "Traceback" in found.output


@pytest.mark.parametrize(("command", "more"), [("report", ("--no-terminal",)), ("export", ("csv", "--out", "-"))])
def test_a_line_that_was_cut_short_is_named(run, results, front_page, command, more):
    results.write_bytes(results.read_bytes()[:-40])
    found = run(command, *more, results)
    assert found.exit_code == 0
    assert f"{results}:5: left out because it was cut short" in found.stderr
    assert "cut short" not in found.stdout
