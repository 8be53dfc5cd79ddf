"""Store features of traced trials next to a results file: those of `before.jsonl` in `before.features.jsonl`.

The file has one JSON object per line. Lines are appended as traces are read, by any number of processes. Features are
not part of a measurement, because the code that reads them may change while trials stay the same. So each line names
its `reader`, a digest of that code, and lines of other readers are ignored.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import threading
from collections.abc import Collection, Iterator
from typing import Any, Literal

import msgspec

from conformance.model import digest as digests
from conformance.model.diagnosis.by_trial import FeatureSamples
from conformance.model.errors import UserError, located
from conformance.model.trials.trial import Scheme, Trial
from conformance.results import lines
from conformance.support import files, paths, schema
from conformance.support.record import KeptDocument

#: the first bytes of every line, because its keys are sorted
_BEGINNING = b'{"cell":'
_SUFFIXES = re.compile(r"(\.jsonl)?(\.xz|\.gz)?$")
#: modules in model/diagnosis/ that decide which features are read from a trace
_READERS = ("flow.py", "features.py", "samples.py", "pcap.py", "by_trial.py", "feature_table.py")


class FeaturesLine(KeptDocument):
    """Features of one traced trial: a line of RESULTS.features.jsonl (docs/compare.md)."""

    SCHEMA = "features"

    schema: Literal["features/1"]
    #: The trial's key, as in results files.
    key: str
    #: Digest of the code that read the trace; features read by other code are not used.
    reader: str
    #: As in results files (measurement.json).
    trial: dict[str, Any]
    #: The telling cell's name.
    cell: Literal["clean", "few", "many", "heavy"]
    #: Samples of each feature, in order of time.
    features: dict[str, list[float]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialFeatures:
    """The samples of each feature that one traced trial shows. `cell`: the short name of its cell in feature_table.py,
    such as few.
    """

    trial: Trial
    cell: str
    sampled: FeatureSamples


def beside(results: pathlib.Path | str) -> pathlib.Path:
    """Return the path of the features that belong to a results file."""
    path = pathlib.Path(results)
    return path.with_name(_SUFFIXES.sub("", path.name, count=1) + ".features.jsonl")


@functools.cache
def reader() -> str:
    """Return the digest of the code that reads features."""
    total = hashlib.sha256()
    for name in _READERS:
        total.update((paths.PACKAGE / "model" / "diagnosis" / name).read_bytes())
    return total.hexdigest()[: digests.DIGITS]


def read(path: pathlib.Path) -> list[TrialFeatures]:
    """Return all features of the present reader, the last line of each trial. Raise UserError."""
    return list({line.trial.key: line for line in _lines(path) if line is not None}.values())


def stale(path: pathlib.Path) -> bool:
    """Return whether a file has lines, and all of them are of another reader. Raise UserError."""
    trial_features = list(_lines(path))
    return bool(trial_features) and not any(trial_features)


def _lines(path: pathlib.Path) -> Iterator[TrialFeatures | None]:
    """Yield the features in each complete line; None for a line of another reader."""
    if not path.exists():
        return
    with files.errors_as(f"cannot read features {path}"), open(path, "rb") as f:
        for number, line in lines.each(f, path):
            # A line without a newline is still being written. The trial of a line that was cut short is traced again.
            if line.endswith(b"\n") and line.strip() and not lines.cut_short(line, _BEGINNING):
                yield _parse(line, f"{path}:{number}")


def _parse(line: bytes, where: str) -> TrialFeatures | None:
    try:
        data = json.loads(line, parse_constant=schema.refuse, object_pairs_hook=schema.once)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not a JSON line: {error}", "remove the file: traces are then taken again") from None
    schema.check_values(data, where)
    schema.check(FeaturesLine.SCHEMA, data, where)
    held = msgspec.convert(data, FeaturesLine)
    if held.reader != reader():
        return None
    schema.check("measurement", held.trial, f"{where}: /trial", "trial")
    try:
        with located(where):
            trial = Trial.from_json(held.trial)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{where}: /trial: not in the format of result lines: {error}",
            "remove the file: traces are then taken again",
        ) from None
    return TrialFeatures(trial=trial, cell=held.cell, sampled=held.features)


def dumps(trial_features: TrialFeatures) -> bytes:
    """Return features as a line of their file."""
    line = {
        "schema": "features/1", "key": trial_features.trial.key, "reader": reader(),
        "trial": trial_features.trial.to_json(), "cell": trial_features.cell, "features": trial_features.sampled,
    }  # fmt: skip
    return json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def copy(results: pathlib.Path | str, to: pathlib.Path | str, schemes: Collection[Scheme]) -> pathlib.Path:
    """Copy the features of these schemes from one results file to another; return the path of the copy. Raise
    UserError.
    """
    kept = [dumps(trial_features) for trial_features in read(beside(results)) if trial_features.trial.scheme in schemes]
    return files.write(beside(to), b"".join(kept), files.OTHER_FOLDER)


class Features:
    """The features of a results file, to read and to add to; without a file, of this process alone.

    Safe for threads and for processes.
    """

    def __init__(self, results: pathlib.Path | str | None) -> None:
        self.path = None if results is None else beside(results)
        self._lock = threading.Lock()
        of_file = read(self.path) if self.path else ()
        self._known = {trial_features.trial.key: trial_features for trial_features in of_file}

    def find(self, trial: Trial) -> TrialFeatures | None:
        """Return the features of a trial, or None if it was not traced."""
        return self._known.get(trial.key)

    def add(self, trial_features: TrialFeatures) -> None:
        """Append one line. Raise UserError if it cannot be written."""
        with self._lock:
            self._known[trial_features.trial.key] = trial_features
            if self.path is None:
                return
            line = dumps(trial_features)
            with files.errors_as(f"cannot write features to {self.path}", "choose another --results"):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                lines.append(self.path, line)
