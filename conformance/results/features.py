"""Features of traced trials, beside a results file: `before.jsonl` has them in `before.features.jsonl`.

One JSON object a line, appended as traces are read, shared by any number of processes. They are no part of a
measurement: how they are read may change while trials stay what they are. So each line says which `reader` read it, a
digest of the code that does, and lines of another reader are as if they were not there.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import threading
from collections.abc import Collection, Iterator

from conformance.model import digest as digests
from conformance.model.diagnosis.by_trial import Sampled
from conformance.model.errors import UserError, located
from conformance.model.trial import Scheme, Trial
from conformance.results import lines
from conformance.support import files, paths, schema

_SCHEMA = "features/1"
#: of every line, as its keys are sorted
_BEGINNING = b'{"cell":'
_SUFFIXES = re.compile(r"(\.jsonl)?(\.xz|\.gz)?$")
#: what decides what is read of a trace
_READERS = ("flow.py", "features.py", "pcap.py", "by_trial.py", "feature_table.py")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialFeatures:
    """The samples of each feature that one traced trial shows. `cell`: the telling cell's name, such as few."""

    trial: Trial
    cell: str
    sampled: Sampled


def beside(results: pathlib.Path | str) -> pathlib.Path:
    """Return where the features of a results file's trials are."""
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
    """Return all that this version of the suite read, the last of each trial. Raise UserError."""
    return list({found.trial.key: found for found in _lines(path) if found is not None}.values())


def stale(path: pathlib.Path) -> bool:
    """Say whether a file has lines, and all of them are another version's. Raise UserError."""
    found = list(_lines(path))
    return bool(found) and not any(found)


def _lines(path: pathlib.Path) -> Iterator[TrialFeatures | None]:
    """Yield each whole line; None for one that was read by other code."""
    if not path.exists():
        return
    try:
        with open(path, "rb") as f:
            for number, line in enumerate(f, 1):
                # What has no newline is being written; the trial of a line that was cut short is traced anew.
                if line.endswith(b"\n") and line.strip() and not lines.cut_short(line, _BEGINNING):
                    yield _parse(line, f"{path}:{number}")
    except OSError as error:
        raise UserError(f"cannot read features {path}: {error.strerror}") from None


def _parse(line: bytes, where: str) -> TrialFeatures | None:
    try:
        data = json.loads(line, parse_constant=schema.refuse)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not a JSON line: {error}", "remove the file: traces are taken anew") from None
    schema.check("features", data, where)
    if data["reader"] != reader():
        return None
    schema.check("measurement", data["trial"], f"{where}: /trial", "trial")
    try:
        with located(where):
            trial = Trial.from_json(data["trial"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{where}: {type(error).__name__}: {error}", "remove the file: traces are taken anew") from None
    return TrialFeatures(trial=trial, cell=data["cell"], sampled=data["features"])


def dumps(found: TrialFeatures) -> bytes:
    """Return a line of a file of features."""
    data = {
        "schema": _SCHEMA, "key": found.trial.key, "reader": reader(), "trial": found.trial.to_json(),
        "cell": found.cell, "features": found.sampled,
    }  # fmt: skip
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def copy(results: pathlib.Path | str, to: pathlib.Path | str, schemes: Collection[Scheme]) -> pathlib.Path:
    """Write the features that are beside one results file beside another, of these schemes only. Raise UserError."""
    kept = [dumps(found) for found in read(beside(results)) if found.trial.scheme in schemes]
    return files.write(beside(to), b"".join(kept), files.OTHER_FOLDER)


class Features:
    """The features beside a results file, which more are added to. Safe for threads and for processes."""

    def __init__(self, results: pathlib.Path | str) -> None:
        self.path = beside(results)
        self._lock = threading.Lock()
        self._known = {found.trial.key: found for found in read(self.path)}

    def find(self, trial: Trial) -> TrialFeatures | None:
        """Return what a trial showed when it was traced, or None."""
        return self._known.get(trial.key)

    def add(self, found: TrialFeatures) -> None:
        """Append one line. Raise UserError where the disk does not take it."""
        line = dumps(found)
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                lines.append(self.path, line)
            except OSError as error:
                raise UserError(
                    f"cannot write features to {self.path}: {error.strerror}", "choose another --results"
                ) from None
            self._known[found.trial.key] = found
