"""`conformance merge`: write the results of shards to one file, or refuse them if they are not of one run.

Results are compared before they are merged: two shards that tested different builds, or that have different results of
the same trial, must not become one verdict. The merged file depends on what is in the files, not on their order.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Iterable

from conformance.model import digest
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Trial
from conformance.results import compressed, store
from conformance.support import files

#: the sort key of results: scheme, profile, its digest, cell, segments, seed
LineOrder = tuple[str, str, str, Cell, tuple[Cell, ...], int]
#: {(algorithm, stack): (what all its results must share, file and line of the first)}
Runs = dict[tuple[str, str], tuple[dict[str, str], str]]
#: what must be equal in all lines of one trial
_CONTENT = ("outcome", "message", "metrics", "evidence", "flows", "links", "packets")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Line:
    """Where a measurement is: a file, and an offset in bytes (`at`). `line`: digest of all of it; `content`: digest
    of _CONTENT.
    """

    order: LineOrder
    settled: bool
    content: str
    line: str
    path: pathlib.Path
    at: int

    @property
    def rank(self) -> tuple[bool, str]:
        """The sort key that decides which line of a trial is kept: the least. Settled lines come before errors, and the
        order of the files does not matter.
        """
        return not self.settled, self.line


def merge(
    sources: Iterable[pathlib.Path | str], target: pathlib.Path | str, say: Callable[[str], None] = lambda text: None
) -> int:
    """Write the measurements of all the files `sources` to `target`; return how many.

    They are sorted by scheme, profile, cell and seed. Files may be larger than memory. A line that was cut short is
    left out, because its trial is not complete, and `say` is told. An error gives way to another result of the same
    trial. Raises UserError if a line is broken, if runs are unlike, or if one trial has two results that differ in more
    than `host`.
    """
    lines: dict[str, _Line] = {}
    runs: Runs = {}
    cut_short: list[str] = []
    files_read = list(dict.fromkeys(pathlib.Path(file) for file in sources))
    for path in files_read:
        for number, at, measurement in store.scan(path, cut_short.append):
            _check_alike(runs, measurement, f"{path}:{number}")
            try:
                line, key = _line(measurement, path, at), measurement.trial.key
            except (ValueError, RecursionError) as error:  # a number that JSON cannot express, or too deep a nesting
                raise UserError(f"{path}:{number}: {error}") from None
            other = lines.get(key)
            if other and other.settled and line.settled and other.content != line.content:
                raise UserError(
                    f"trial {key} has different results in {other.path} and {path} (line {number})",
                    "equal trials give equal results: measure it again, and find out what differs between the machines",
                )
            lines[key] = min(line, other, key=lambda known: known.rank) if other else line
    for text in cut_short:
        say(text)
    if not lines:
        raise store.nothing_in(files_read, len(cut_short), "name files that hold results")
    _write(sorted(lines.values(), key=lambda line: line.order), target)
    return len(lines)


def _check_alike(runs: Runs, measurement: Measurement, where: str) -> None:
    trial = measurement.trial
    name = trial.scheme.algorithm, trial.scheme.stack
    run = {
        "stack digest": trial.scheme.stack_digest,
        "kernel digest": trial.scheme.kernel_digest,
        "lab digest": trial.lab_digest,
        "room": trial.room,
    }
    other, first = runs.setdefault(name, (run, where))
    if other == run:
        return
    differ = ", ".join(f"{what} {other[what]} and {run[what]}" for what in run if other[what] != run[what])
    raise UserError(
        f"runs of {trial.scheme.algorithm}/{trial.scheme.stack} in {first} and {where} differ: {differ}",
        "merge results of the same stack, kernel and version of the suite",
    )


def order(trial: Trial) -> LineOrder:
    """Return the sort key of a trial's results."""
    setting = trial.setting
    # Paths with the same end-to-end cell may differ: one may be the other in reverse.
    return trial.scheme.id, setting.profile, setting.profile_digest, setting.cell, setting.segments, trial.seed


def _line(measurement: Measurement, path: pathlib.Path, at: int) -> _Line:
    trial, data = measurement.trial, measurement.to_json()
    content = digest.of_value({name: data[name] for name in _CONTENT if name in data})
    return _Line(
        order=order(trial),
        settled=measurement.settled,
        content=content,
        line=digest.of_value(data),
        path=path,
        at=at,
    )


def _write(lines: Iterable[_Line], target: pathlib.Path | str) -> None:
    """Write lines to a new file, which then replaces `target`: that may be one of the files that are read."""
    if compressed.is_compressed(target):
        raise UserError(f"{target} would be compressed, but merge writes plain files", "choose another --out")
    with files.replacing(target, "choose another --out") as f:
        for line in lines:
            f.write(store.dumps(store.read_at(line.path, line.at)))
