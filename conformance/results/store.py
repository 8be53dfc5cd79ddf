"""Results: one JSON object a line, appended as trials end, shared by any number of processes.

Nothing is ever rewritten. A trial's key (conformance/model/trial.py) says whether it was measured before; the
last line of a key counts. A line cut short by a crash or a full disk is passed over, and the next append starts
on a line of its own.
"""

import json
import pathlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator

from conformance.model.errors import UserError, located
from conformance.model.setting import Setting
from conformance.model.trial import Measurement, Outcome, Scheme, Trial
from conformance.results import compressed, lines, shapes
from conformance.support import schema

#: what lines have in common whose schema is checked once
Kind = tuple[Scheme, Setting, str, Outcome]
#: where commands keep results unless told otherwise
DEFAULT_RESULTS = "results/results.jsonl"
#: what need not be measured again; errors are tried anew
_SETTLED = {Outcome.OK, Outcome.TIMEOUT, Outcome.UNSUPPORTED}
#: of every line that add() writes
_BEGINNING = b'{"evidence":'
#: an escaped half of a character, or of a whole one: to look for them in all values takes long
_MAY_BE_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def read(*paths: pathlib.Path | str) -> list[Measurement]:
    """Return the measurements of results files, in order, the last of each key. Raises UserError naming file and line.

    What two files hold, one perhaps a copy of the other, was measured once and counts once.
    """
    return list({measurement.trial.key: measurement for path in paths for _, _, measurement in scan(path)}.values())


def nothing_in(paths: Iterable[pathlib.Path | str], cut_short: int, mend: str) -> UserError:
    """Return what to raise of results files without a result, `cut_short` of whose lines were ended early."""
    named = ", ".join(map(str, paths))
    if not cut_short:
        return UserError(f"no results in {named}", mend)
    these = "the only line there was" if cut_short == 1 else f"all {cut_short} lines there were"
    return UserError(f"no results in {named}: {these} cut short", "measure again: a crash or a full disk ended a run")


def scan(
    path: pathlib.Path | str, cut_short: Callable[[int], None] = lambda number: None
) -> Iterator[tuple[int, int, Measurement]]:
    """Yield (line number, where it begins in the file, Measurement) of every line, in order.

    One at a time: files may be larger than memory. Where the name ends in .xz or .gz, what is decompressed is read and
    counted. `cut_short` is told the numbers of lines that a crash or a full disk ended early, and that are passed
    over. Raises UserError naming file and line.
    """
    known: set[Kind] = set()
    try:
        with compressed.open_plain(path) as f:
            at = 0
            for number, line in enumerate(f, 1):
                # What follows the last newline is a line being written, or cut short.
                if not line.endswith(b"\n") or lines.cut_short(line, _BEGINNING):
                    cut_short(number)
                elif line.strip():
                    yield number, at, _parse(line, f"{path}:{number}", known)
                at += len(line)
    except OSError as error:
        raise UserError(f"cannot read results {path}: {error.strerror}") from None


def read_at(path: pathlib.Path | str, at: int) -> Measurement:
    """Return the Measurement whose line begins there, as scan() said. Raises UserError."""
    try:
        with compressed.open_plain(path) as f:
            f.seek(at)
            return _parse(f.readline(), f"{path}: byte {at}", set())
    except OSError as error:
        raise UserError(f"cannot read results {path}: {error.strerror}") from None


def _parse(line: bytes, where: str, known: set[Kind]) -> Measurement:
    """Return the Measurement of a line; `known`: the schemes and settings of lines that were checked before it."""
    try:
        # Decoded here, as json.loads() lets halves of characters pass.
        text = line.decode("utf-8")
        data = json.loads(text, parse_constant=schema.refuse)
    except (ValueError, RecursionError) as error:
        # The parser's own line number is always 1 here, and contradicts that of the file.
        why = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise UserError(f"{where}: not a JSON line: {why}", "delete the line, or choose another --results") from None
    written = data.get("schema") if isinstance(data, dict) else None
    if isinstance(written, str) and written.startswith("measurement/") and written != "measurement/1":
        raise UserError(f"{where}: written by another version of the suite ({written:.40})", "give another --results")
    if written != "measurement/1":
        raise UserError(f'{where}: not a result line: "schema" must be "measurement/1"')
    if _MAY_BE_HALF.search(text):
        schema.check_values(data, where)
    try:
        with located(where):
            measurement = Measurement.from_json(data)
        trial = measurement.trial
        # To check every line by the schema would take minutes: that is done once for all trials that are alike.
        if (kind := (trial.scheme, trial.setting, trial.room, measurement.outcome)) not in known:
            schema.check("measurement", data, where)
            known.add(kind)
        _check_values(measurement)
        return measurement
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        schema.check("measurement", data, where)
        raise UserError(f"{where}: {type(error).__name__}: {error}") from None


def _check_values(measurement: Measurement) -> None:
    """Check what differs from one trial to the next, and is counted with. Raises ValueError, TypeError, ..."""
    trial = measurement.trial
    if type(trial.seed) is not int or not all(type(part) is dict for part in (measurement.evidence, measurement.host)):
        raise TypeError("not of the schema's types")
    shapes.check(measurement)
    if measurement.outcome is Outcome.OK and measurement.utilization is None:
        raise ValueError("/metrics/utilization is missing")
    interfaces = measurement.evidence.get("interfaces") or {}
    if interfaces and (lacking := [side for side in ("server", "client") if side not in interfaces]):
        raise ValueError(f"/evidence/interfaces/{lacking[0]} is missing")
    for side, by_name in interfaces.items():
        for name, counters in by_name.items():
            for key in ("tx_bytes", "rx_bytes"):
                if key not in counters:
                    raise ValueError(f"/evidence/interfaces/{side}/{name}/{key} is missing")
            for key, value in counters.items():
                if type(value) is not int or not 0 <= value < schema.LARGEST:
                    raise ValueError(f"/evidence/interfaces/{side}/{name}/{key} is {value!r:.40}, not a count")


def dumps(measurement: Measurement) -> bytes:
    """Return a measurement as a line of a results file."""
    data = json.dumps(measurement.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return data.encode() + b"\n"


class Store:
    """A results file that is being added to. Safe for threads and for processes."""

    def __init__(self, path: pathlib.Path | str) -> None:
        self.path = pathlib.Path(path)
        if compressed.is_compressed(self.path):
            raise UserError(f"{self.path} is compressed, and can only be read", "choose another --results")
        self._lock = threading.Lock()
        self._settled: dict[str, Measurement] = {}
        self._known: set[Kind] = set()
        self._read_up_to = self._lines = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("ab").close()
        except OSError as error:
            raise UserError(
                f"cannot write results to {self.path}: {error.strerror}", "choose another --results"
            ) from None
        tail = self._catch_up()
        # What is being written, or was cut short, is ours; to add lines behind anything else would spoil a file.
        if tail.strip() and not lines.is_beginning(tail, _BEGINNING):
            raise UserError(f"{self.path}:{self._lines + 1}: not a JSON line of results", "choose another --results")

    def _catch_up(self) -> bytes:
        """Read what was added since the last time, and return what follows the last whole line."""
        with open(self.path, "rb") as f:
            f.seek(self._read_up_to)
            data = f.read()
        complete = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:complete].split(b"\n"), 1):
            if not line.strip() or lines.cut_short(line, _BEGINNING):
                continue
            measurement = _parse(line, f"{self.path}:{self._lines + number}", self._known)
            if measurement.outcome in _SETTLED:
                self._settled[measurement.trial.key] = measurement
        self._read_up_to += complete
        self._lines += data.count(b"\n", 0, complete)
        return data[complete:]

    def find(self, trial: Trial) -> Measurement | None:
        """Return the settled measurement of this trial, by whichever process it was made, or None. Raises UserError."""
        with self._lock:
            if trial.key not in self._settled:
                try:
                    self._catch_up_if_grown()
                except OSError as error:
                    raise UserError(f"cannot read results {self.path}: {error.strerror}") from None
            return self._settled.get(trial.key)

    def _catch_up_if_grown(self) -> None:
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            size = 0
        if size < self._read_up_to:
            # Somebody removed the file, and it was made anew. What it held before is known.
            self._read_up_to = self._lines = 0
        if size > self._read_up_to:
            self._catch_up()

    def settled(self) -> list[Measurement]:
        """Return every settled measurement that the file held when it was last read, and those added since."""
        with self._lock:
            return list(self._settled.values())

    def add(self, measurement: Measurement) -> None:
        """Append one line; raises UserError where the disk does not take it, leaving what was there intact."""
        schema.check("measurement", measurement.to_json(), f"measurement {measurement.trial.key}")
        line = dumps(measurement)
        with self._lock:
            try:
                lines.append(self.path, line)
            except OSError as error:
                raise UserError(
                    f"cannot write results to {self.path}: {error.strerror}", "free space and run again: it resumes"
                ) from None
            if measurement.outcome in _SETTLED:
                self._settled[measurement.trial.key] = measurement
