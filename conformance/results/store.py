"""Store results as lines of a file, one JSON object each, which any number of processes append as trials end.

Nothing is ever rewritten. A trial's key (trial.py) says whether it was measured before; the last line
of a key counts. A line cut short by a crash or a full disk is skipped, and the next append starts on a line of its own.

The values of each line are checked by their names; the schema is applied only once to trials that are alike. A name
says what type a value has: if it ends in a unit, the value is a number, or null if it is not known, or a table or list
of such. So code that reads results can calculate with them, whatever program wrote the file.
"""

import dataclasses
import json
import pathlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from conformance.model.emulation import facts
from conformance.model.errors import UserError, located
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome, Scheme, Trial, is_version
from conformance.results import compressed, lines
from conformance.support import characters, schema
from conformance.support.files import errors_as

#: what lines that are alike have in common; the schema is checked once for them
LineKind = tuple[Scheme, Setting, str, Outcome]
#: where commands keep results unless told otherwise
DEFAULT_RESULTS = "results/results.jsonl"
#: the first bytes of every line that add() writes
_BEGINNING = b'{"evidence":'
#: ASCII that may stand for a character that no text should have; only lines with it, or with other characters than
#: ASCII, are searched value by value, which takes long
_ESCAPE = re.compile(r"\\[bfnru]|\x7f")


def read(*paths: pathlib.Path | str) -> list[Measurement]:
    """Return the measurements of results files, in order, the last line of each key. Raises UserError naming file and
    line.

    A trial that is in two files, perhaps because one is a copy of the other, was measured once and counts once.
    """
    return list({measurement.trial.key: measurement for path in paths for _, _, measurement in scan(path)}.values())


def nothing_in(paths: Iterable[pathlib.Path | str], cut_short: int, mend: str) -> UserError:
    """Return the UserError for results files without a result; `cut_short`: how many of their lines were cut short."""
    named = ", ".join(map(str, paths))
    if not cut_short:
        return UserError(f"no results in {named}", mend)
    these = "the only line there was" if cut_short == 1 else f"all {cut_short} lines there were"
    return UserError(f"no results in {named}: {these} cut short", "measure again: a crash or a full disk ended a run")


def scan(
    path: pathlib.Path | str, say: Callable[[str], None] = lambda text: None
) -> Iterator[tuple[int, int, Measurement]]:
    """Yield (line number, offset of the line in bytes, Measurement) of every line, in order.

    Lines are read one at a time, because files may be larger than memory. If the name ends in .xz or .gz, numbers and
    offsets are those of the decompressed lines. Lines that a crash or a full disk cut short are skipped, and
    `say` is told which. Raises UserError naming file and line.
    """
    known: set[LineKind] = set()
    with errors_as(f"cannot read results {path}"), compressed.open_plain(path) as f:
        at = 0
        for number, line in lines.each(f, path):
            # A line without a newline is still being written, or was cut short.
            if not line.endswith(b"\n") or lines.cut_short(line, _BEGINNING):
                say(f"{path}:{number}: left out because it was cut short: its trial has to be run again")
            elif line.strip():
                yield number, at, _parse(line, f"{path}:{number}", known)
            at += len(line)


def read_at(path: pathlib.Path | str, at: int) -> Measurement:
    """Return the Measurement whose line begins at an offset, as scan() yields it. Raises UserError."""
    with errors_as(f"cannot read results {path}"), compressed.open_plain(path) as f:
        f.seek(at)
        return _parse(f.readline(lines.LONGEST), f"{path}: byte {at}", set())


def _parse(line: bytes, where: str, known: set[LineKind]) -> Measurement:
    """Return the Measurement of a line; `known`: the Kinds of lines whose schema was checked before."""
    try:
        # Decoded here, because json.loads() accepts bytes with lone surrogates.
        text = line.decode("utf-8")
        data = json.loads(text, parse_constant=schema.refuse, object_pairs_hook=schema.once)
    except (ValueError, RecursionError) as error:
        # The parser's own line number is always 1 here, and would contradict that of the file.
        why = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise UserError(f"{where}: not a JSON line: {why}", "delete the line, or name another results file") from None
    written = data.get("schema") if isinstance(data, dict) else None
    if isinstance(written, str) and written.startswith("measurement/") and written != "measurement/1":
        raise UserError(f"{where}: written by another version of the suite ({written:.40})", "name another file")
    if written != "measurement/1":
        raise UserError(f'{where}: not a result line: "schema" must be "measurement/1"')
    try:
        if not text.isascii() or _ESCAPE.search(text):
            data = {name: part if name == "trial" else _stripped(part) for name, part in data.items()}
            schema.check_values(data, where)
        with located(where):
            measurement = Measurement.from_json(data)
        trial = measurement.trial
        # Checking every line by the schema would take minutes, so it is done once for all trials that are alike.
        if (kind := (trial.scheme, trial.setting, trial.room, measurement.outcome)) not in known:
            schema.check("measurement", data, where)
            schema.check_values({"trial": data["trial"]}, where)
            known.add(kind)
        if measurement.packets is not None:
            schema.check("measurement", measurement.packets, f"{where}: /packets", "packets")
        _check_values(measurement)
        measurement = with_records(measurement)
        _check_records(measurement)
        return measurement
    except RecursionError:
        raise UserError(f"{where}: nested too deeply") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        schema.check_values(data, where)
        schema.check("measurement", data, where)
        why = str(error) if isinstance(error, ValueError) else f"not in the format of result lines: {error}"
        raise UserError(f"{where}: {why}") from None


def _stripped(value: Any) -> Any:
    """Return a value in whose texts spaces replace control characters: a stack may have said them, and other programs
    may print them to a terminal.
    """
    if isinstance(value, dict):
        return {characters.without_control(name): _stripped(part) for name, part in value.items()}
    if isinstance(value, list):
        return list(map(_stripped, value))
    return characters.without_control(value) if isinstance(value, str) else value


def _check_values(measurement: Measurement) -> None:
    """Check values that differ from trial to trial and that are calculated with. Raises ValueError, TypeError, ..."""
    trial = measurement.trial
    texts = trial.lab_digest, measurement.message or ""
    if type(trial.seed) is not int or not all(type(text) is str for text in texts):
        raise TypeError("not of the schema's types")
    if len(trial.lab_digest) > _LONGEST_NAME or len(measurement.message or "") > _LONGEST_MESSAGE:
        raise ValueError(
            f"more than {_LONGEST_NAME} characters of /trial/lab_digest, or {_LONGEST_MESSAGE} of /message"
        )
    check(measurement)


def with_records(measurement: Measurement) -> Measurement:
    """Return a measurement with all that today's records of flows and links have; older lines lack some, or all."""
    trial, metrics = measurement.trial, measurement.metrics
    if not metrics or any("utilization" in flow for flow in measurement.flows):
        return measurement
    flows, links = measurement.flows, measurement.links
    if not flows:
        flows, links = facts.in_detail(trial, metrics, measurement.evidence)
    flows = facts.with_parts(trial.setting.network, flows, metrics.get("utilization"))
    return dataclasses.replace(measurement, flows=flows, links=links)


def dumps(measurement: Measurement) -> bytes:
    """Return a measurement as a line of a results file."""
    data = json.dumps(measurement.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return data.encode() + b"\n"


class Store:
    """A results file that lines are added to. Safe for threads and for processes.

    `without_version`: how many of its lines are not used, since they do not say which version of the stack they are of.
    """

    #: what opened() returned last
    _last: ClassVar["Store | None"] = None

    def __init__(self, path: pathlib.Path | str) -> None:
        self.path = pathlib.Path(path)
        self._absolute = self.path.absolute()
        if compressed.is_compressed(self.path):
            raise UserError(f"{self.path} is compressed, and can only be read", "choose another --results")
        self._lock = threading.Lock()
        self._settled: dict[str, Measurement] = {}
        self._known: set[LineKind] = set()
        self._read_up_to = self._lines = self.without_version = 0
        self._last_line = b""
        with errors_as(f"cannot write results to {self.path}", "choose another --results"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("ab").close()
        tail = self._catch_up()
        # An incomplete last line must be one of ours. Adding lines after anything else would spoil a file.
        if tail.strip() and not lines.is_beginning(tail, _BEGINNING):
            raise UserError(f"{self.path}:{self._lines + 1}: not a JSON line of results", "name another results file")

    @classmethod
    def opened(cls, path: pathlib.Path | str) -> "Store":
        """Return the Store of a file. Within a process it is the last one again, if that is of this file.

        So the lines are read once, however many sessions of a command add to them. Raises UserError.
        """
        last = cls._last
        if last is None or last._absolute != pathlib.Path(path).absolute() or last._was_replaced():
            last = cls._last = cls(path)
        else:
            with last._lock:
                last._catch_up_if_grown()
        return last

    def _was_replaced(self) -> bool:
        """Return whether the last line that was read is no longer where it was."""
        try:
            with self.path.open("rb") as f:
                f.seek(self._read_up_to - len(self._last_line))
                return f.read(len(self._last_line)) != self._last_line
        except OSError:
            return True

    def _catch_up(self) -> bytes:
        """Read the lines that were added since the last call, and return what follows the last complete line."""
        with open(self.path, "rb") as f:
            f.seek(self._read_up_to)
            for number, line in lines.each(f, self.path, self._lines + 1):
                if not line.endswith(b"\n"):
                    return line
                if line.strip() and not lines.cut_short(line, _BEGINNING):
                    measurement = _parse(line, f"{self.path}:{number}", self._known)
                    if not is_version(measurement.scheme.stack_version):
                        self.without_version += 1
                    elif measurement.settled:
                        self._settled[measurement.trial.key] = measurement
                self._read_up_to += len(line)
                self._lines, self._last_line = number, line
        return b""

    def find(self, trial: Trial) -> Measurement | None:
        """Return the settled measurement of this trial, whichever process made it, or None. Raises UserError."""
        with self._lock:
            if trial.key not in self._settled:
                self._catch_up_if_grown()
            return self._settled.get(trial.key)

    def _catch_up_if_grown(self) -> None:
        with errors_as(f"cannot read results {self.path}"):
            size = self.path.stat().st_size if self.path.exists() else 0
            if size < self._read_up_to:
                # The file was removed and created again. Its earlier results are still known.
                self._read_up_to = self._lines = self.without_version = 0
            if size > self._read_up_to:
                self._catch_up()

    def settled(self) -> list[Measurement]:
        """Return every settled measurement that the file held when it was last read, and those added since."""
        with self._lock:
            return list(self._settled.values())

    def add(self, measurement: Measurement) -> None:
        """Append one line. Raises UserError if it cannot be written or read again, leaving what was there intact.

        A message that is too long is cut: it may be a program's, and must not end a run.
        """
        message = measurement.message and measurement.message[:_LONGEST_MESSAGE]
        measurement = dataclasses.replace(measurement, message=message)
        line = dumps(measurement)
        if len(line) > lines.LONGEST:
            why = f"the line of trial {measurement.trial.key} has {len(line) / 1e6:g} MB"
            raise UserError(why, f"choose a shorter transfer: lines of up to {lines.LONGEST / 1e6:g} MB are read")
        # A line that its readers refuse would make the whole file unreadable.
        _parse(line, f"measurement {measurement.trial.key}", set())
        with self._lock:
            with errors_as(f"cannot write results to {self.path}", "free space and run again: it resumes"):
                lines.append(self.path, line)
            if measurement.settled:
                self._settled[measurement.trial.key] = measurement


#: endings of the names of numbers; numbers with an ending in _COUNTS are never negative
_COUNTS = ("_mbps", "bytes", "_packets", "_segments", "utilization")
_NUMBERS = (*_COUNTS, "_s", "_ms", "_pct", "index")
#: names of lists with one value per second (a beginning, an ending), and of tables of quantiles (endings)
_SERIES, _PER_SECOND, _TABLES = "series_", ("_series_mbps",), ("rtt_ms", "queue_delay_ms")
#: up to this, floats represent all integers exactly
_MOST_INTEGER = 2**53
#: the most characters of names and of messages, as the schema has it
_LONGEST_NAME, _LONGEST_MESSAGE = 1000, 10_000
#: the most utilization: what a bottleneck lets pass at once may add to its rate, and a rate that changes may do so
#: between the least and the greatest that links can have
_MOST, _MOST_OF_CHANGING = 10.0, 1e5
#: types of the values in the evidence, by name
_EVIDENCE: Mapping[str, type] = {
    "changes": list, "interfaces": dict, "kernel_release": str, "qdiscs": list, "snmp": dict, "tcp_info": dict,
    "queue_drops": dict, "trace": dict,
}  # fmt: skip
#: fields that each record must have, with their types; `object` for those whose name says the type
_RECORDS: Mapping[str, Mapping[str, type]] = {
    "flows": {
        "group": str, "index": int, "judged": bool, "algorithm": str, "start_s": object, "end_s": object,
        "completion_s": object, "bytes": object, "goodput_mbps": object,
    },
    "links": {"link": str, "direction": str, "rate_mbps": object, "out_bytes": object, "dropped_packets": object},
}  # fmt: skip
_KINDS: Mapping[type, str] = {
    list: "a list", dict: "an object", str: "text", int: "an integer", bool: "true or false",
}  # fmt: skip
_OF_A_COLUMN = frozenset((int, float, type(None)))


def check(measurement: Measurement) -> None:
    """Raise ValueError, with the JSON pointer, if a value is not of the type that its name says."""
    for name, value in measurement.metrics.items():
        _check_number(value, f"/metrics/{name}", least=0)
    _check(measurement.host, "host", "/host")
    for name, value in measurement.evidence.items():
        _check_evidence(name, value, f"/evidence/{name}")


def _check_records(measurement: Measurement) -> None:
    """Check the records of flows and links, as check() does the rest."""
    for kind, records in (("flows", measurement.flows), ("links", measurement.links)):
        for at, record in enumerate(records):
            for key, of_type in _RECORDS[kind].items():
                if key not in record:
                    raise ValueError(f"/{kind}/{at}/{key} is missing")
                if not isinstance(record[key], of_type):
                    raise ValueError(f"/{kind}/{at}/{key} is {record[key]!r:.40}, not {_KINDS[of_type]}")
            _check(record, kind, f"/{kind}/{at}")
            for look in record.get("queue_drops", ()):
                if len(look) != 2 or not {int, float}.issuperset(map(type, look)):
                    raise ValueError(f"/{kind}/{at}/queue_drops is not a list of pairs of numbers")
    if measurement.outcome is Outcome.OK and measurement.utilization is None:
        raise ValueError("/metrics/utilization is missing")
    most = _MOST_OF_CHANGING if measurement.setting.network.schedule else _MOST
    if (measurement.utilization or 0) > most:
        raise ValueError(f"/flows: utilization is {measurement.utilization!r:.40}, more than {most:g}")


def _check(value: Any, name: str, where: str) -> None:
    """Check a value, and everything in it, by its name."""
    for part, key, pointer in _parts(value, name, where):
        if isinstance(part, (dict, list)):
            if key.endswith(_NUMBERS) and not (key.startswith(_SERIES) or key.endswith((*_TABLES, *_PER_SECOND))):
                raise ValueError(f"{pointer} is {part!r:.40}, not a number")
            _check(part, key, pointer)
        elif key.endswith(_NUMBERS):
            _check_number(part, pointer, least=0 if key.endswith(_COUNTS) else None)
        elif isinstance(part, (int, float)) and not isinstance(part, bool):
            _check_number(part, pointer)


def _parts(value: Any, name: str, where: str) -> Iterator[tuple[Any, str, str]]:
    """Yield (part, the name that says its type, JSON pointer) of a record, a table or a list."""
    if isinstance(value, dict):
        # The parts of a table, such as {"p50": ...} of rtt_ms, have its unit.
        of_table = name.endswith(_NUMBERS)
        yield from ((part, name if of_table else key, f"{where}/{key}") for key, part in value.items())
    elif isinstance(value, list):
        yield from ((part, name, f"{where}/{at}") for at, part in enumerate(value))


def _check_number(value: Any, where: str, least: float | None = None) -> None:
    if value is None:
        return
    if type(value) not in (int, float) or not abs(value) < schema.LARGEST:
        raise ValueError(f"{where} is {value!r:.40}, not a number")
    if type(value) is int and abs(value) > _MOST_INTEGER:
        raise ValueError(f"{where} is {value!r:.40}, too large for an exact number")
    if least is not None and value < least:
        raise ValueError(f"{where} is {value!r:.40}, less than zero")


def _check_evidence(name: str, value: Any, where: str) -> None:
    kind = _EVIDENCE.get(name)
    if kind is None or value is None:
        return
    if not isinstance(value, kind):
        raise ValueError(f"{where} is {value!r:.40}, not {_KINDS[kind]}")
    if isinstance(value, list):
        for at, member in enumerate(value):
            if not isinstance(member, dict):
                raise ValueError(f"{where}/{at} is {member!r:.40}, not an object")
    if name in ("queue_drops", "trace") and isinstance(value, dict):
        for column, values in value.items():
            if not isinstance(values, list) or not _OF_A_COLUMN.issuperset(map(type, values)):
                raise ValueError(f"{where}/{column} is not a list of numbers")
        if len(set(map(len, value.values()))) > 1:
            raise ValueError(f"{where} has columns of unequal length")
