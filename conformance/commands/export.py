"""`conformance export`: convert results for other tools, to CSV, Parquet, JSON, Markdown or a badge."""

import dataclasses
import pathlib
from collections.abc import Callable

from conformance.commands.result import Result
from conformance.lab import manifest
from conformance.reporting import heatmaps
from conformance.reporting.text import markdown, overview
from conformance.reporting.tools import badge, bencher, export
from conformance.results.source import Source
from conformance.support import files

#: {form that can be written: the file's name if none is given}
FORMS = {
    "json": "summary.json",
    "csv": "cells.csv",
    "parquet": "cells.parquet",
    "markdown": "summary.md",
    "badge-json": "badge.json",
    "badge-svg": "badge.svg",
    "matrix": "matrix.md",
    "bencher": "bencher.json",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exported(Result):
    """Results in the form of another tool."""

    SCHEMA = "export"
    SHOWN = ("form", "path", "bytes")

    form: str
    content: bytes
    #: The file; null if the content went to standard output.
    path: pathlib.Path | None = None

    @property
    def bytes(self) -> int:
        """How long the content is."""
        return len(self.content)


def compute(form: str, source: Source) -> Exported:
    """Convert results to one of FORMS. Raises UserError."""
    drawn = heatmaps.drawn(source.measurements)
    series = drawn.series
    makers: dict[str, Callable[[], bytes]] = {
        "json": lambda: export.summary_json(series, source.files),
        "csv": lambda: export.csv_bytes(series),
        "parquet": lambda: export.parquet_bytes(series),
        "markdown": lambda: markdown.render(series, of_points=drawn.rows).encode(),
        "badge-json": lambda: badge.endpoint(drawn),
        "badge-svg": lambda: badge.svg(drawn),
        "bencher": lambda: bencher.render(series),
        "matrix": lambda: overview.render(series, called).encode(),
    }
    return Exported(form=form, content=makers[form]())


def called(stack: str, algorithm: str) -> str:
    """Return a stack's own name of an algorithm; for a stack that does not ship, the suite's name."""
    if stack not in manifest.names():
        return algorithm
    about = manifest.read(stack)
    return str(about.called(algorithm)) if algorithm in about.offered() else algorithm


def write(exported: Exported, target: str | None) -> Exported:
    """Write an export to the file `target`, by default one named after its form. Raises UserError."""
    path = files.write(target or FORMS[exported.form], exported.content, "choose another --out")
    return dataclasses.replace(exported, path=pathlib.Path(path))
