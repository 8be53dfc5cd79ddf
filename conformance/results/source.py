"""Read result files once for reports, and single lines of them again in full when they are drawn.

Ten schemes of 150 cells and 20 trials are 240 MB of lines, most of it traces and counters. Only what verdicts need
stays in memory; a line that is shown in full is read again from its place in the file.
"""

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable
from typing import Any

from conformance.model.trials.trial import Measurement
from conformance.results import store


@dataclasses.dataclass(frozen=True, kw_only=True)
class File:
    """One results file, by its content and its name without folder, because reports do not reveal where it is."""

    name: str
    #: The first 16 hexadecimal digits of the SHA-256.
    digest: str
    #: Number of lines.
    trials: int


class Source:
    """Measurements without traces, of one or more result files. If a trial was made twice, its last line counts."""

    def __init__(self, paths: Iterable[pathlib.Path | str]) -> None:
        """Raise UserError if a file cannot be read or has a broken line, or if there are no results at all."""
        by_key: dict[str, tuple[pathlib.Path, int, int, Measurement]] = {}
        files: list[File] = []
        shared: dict[Any, Any] = {}
        left_out: list[str] = []
        for path in dict.fromkeys(pathlib.Path(p) for p in paths):
            trials = 0
            for number, at, measurement in store.scan(path, left_out.append):
                by_key[measurement.trial.key] = path, number, at, _lean(measurement, shared)
                trials += 1
            with open(path, "rb") as f:
                digest = hashlib.file_digest(f, "sha256").hexdigest()[:16]
            files.append(File(name=path.name, digest=digest, trials=trials))
        if not by_key:
            raise store.nothing_in(paths, len(left_out), "measure first, for example with `conformance run cubic`")
        #: in words, the lines that were cut short
        self.left_out = tuple(left_out)
        self.files = tuple(files)
        self.measurements = [measurement for *_, measurement in by_key.values()]
        self._where = {key: (path, number, at) for key, (path, number, at, _) in by_key.items()}

    def whole(self, measurement: Measurement) -> Measurement:
        """Return the same Measurement with all its evidence, traces included. Raises UserError."""
        path, _, at = self._where[measurement.trial.key]
        return store.read_at(path, at)

    def where(self, measurement: Measurement) -> str:
        """Return the file and line of a measurement."""
        path, number, _ = self._where[measurement.trial.key]
        return f"{path}:{number}"


def _lean(measurement: Measurement, shared: dict[Any, Any]) -> Measurement:
    """Return a measurement without what verdicts do not need; equal settings and schemes become one object."""
    trial = measurement.trial
    trial = dataclasses.replace(
        trial,
        setting=shared.setdefault(trial.setting, trial.setting),
        scheme=shared.setdefault(trial.scheme, trial.scheme),
    )
    return dataclasses.replace(measurement, trial=trial, evidence={}, host={})
