"""Without the extras, all is measured, judged and shown except figures and Parquet, which name the extra they need."""

import importlib.util
import subprocess
import sys

import pytest
from helpers import invoke

from conformance.reporting.html import site
from conformance.results.source import Source
from conformance.support import extras, paths

#: modules that need an extra; they are imported only when something asks for it
_DRAW = {
    f"conformance.reporting.{name}" for name in ("changes", "charts", "figures", "html.study_charts", "split_charts")
}


#: what the extras install
_HEAVY = ("altair", "vl_convert", "pyarrow")


@pytest.fixture
def without(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *of: None if name in _HEAVY else find(name, *of))


def test_every_module_but_those_that_draw_is_imported_without_what_extras_bring():
    names = [
        "conformance." + ".".join(path.relative_to(paths.PACKAGE).with_suffix("").parts)
        for path in paths.PACKAGE.rglob("*.py")
        if not {"guest", "scaffold", "_data", "__main__.py", "allure_report.py"} & set(path.parts)
    ]
    left = sorted({name.removesuffix(".__init__") for name in names} - _DRAW)
    assert len(left) > 150
    program = (
        f"import importlib, sys; sys.modules.update(dict.fromkeys({_HEAVY!r}))\n"
        f"for name in {left!r}: importlib.import_module(name)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=paths.PACKAGE.parent)
    assert done.returncode == 0, done.stderr


def test_a_report_leaves_out_what_it_cannot_make(results, tmp_path, without):
    folder = site.write(Source([results]), tmp_path / "site").parent
    assert not (folder / "data" / "cells.parquet").exists()
    assert "cells.parquet" not in (folder / "data.html").read_text()
    assert "vega" not in "".join(page.read_text() for page in folder.glob("compare-*.html"))
    assert (folder / "data" / "cells.csv").exists()


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("figures", ["plot", "heatmap"]),
        ("parquet", ["export", "parquet"]),
        ("figures", ["split", "analyze", "--out", "bars.svg"]),
    ],
)
def test_what_needs_an_extra_names_it_in_one_line(results, tmp_path, monkeypatch, without, extra, arguments):
    monkeypatch.chdir(tmp_path)
    done = invoke(*arguments, results)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert f"install the suite's wheel with the extra {extra} (docs/install.md)" in done.stderr


def test_measuring_split_paths_asks_for_what_draws_before_it_begins(tmp_path, without):
    done = invoke("dev", "split", "accuracy", "cubic", "--out", tmp_path)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "with the extra figures" in done.stderr


def test_what_is_installed_is_not_asked_for():
    for extra in ("figures", "parquet"):
        assert extras.installed(extra)
        extras.need(extra)
