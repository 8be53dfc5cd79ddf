"""Check the values of each result line by their names; the schema is applied only once to trials that are alike.

A name says what type a value has: if it ends in a unit, the value is a number, or null if it is not known, or a table
or list of such. So code that reads results can calculate with them, whatever program wrote the file.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.model.trials.trial import Measurement
from conformance.support import schema

#: endings of the names of numbers; numbers with an ending in _COUNTS are never negative
_COUNTS = ("_mbps", "bytes", "_packets", "_segments")
_NUMBERS = (*_COUNTS, "_s", "_ms", "_pct", "index")
#: names of lists with one value per second (a beginning, an ending), and of tables of quantiles (endings)
_SERIES, _PER_SECOND, _TABLES = "series_", ("_series_mbps",), ("rtt_ms", "queue_delay_ms")
#: up to this, floats represent all integers exactly
_MOST_INTEGER = 2**53
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
_KINDS: Mapping[type, str] = {list: "a list", dict: "an object", str: "text"}
_OF_A_COLUMN = frozenset((int, float, type(None)))


def check(measurement: Measurement) -> None:
    """Raise ValueError, with the JSON pointer, if a value is not of the type that its name says."""
    for name, value in measurement.metrics.items():
        _check_number(value, f"/metrics/{name}", least=0)
    for kind, records in (("flows", measurement.flows), ("links", measurement.links)):
        for at, record in enumerate(records):
            for key, of_type in _RECORDS[kind].items():
                if key not in record:
                    raise ValueError(f"/{kind}/{at}/{key} is missing")
                if not isinstance(record[key], of_type):
                    raise ValueError(f"/{kind}/{at}/{key} is {record[key]!r:.40}, not {of_type.__name__}")
            _check(record, kind, f"/{kind}/{at}")
    _check(measurement.host, "host", "/host")
    for name, value in measurement.evidence.items():
        _check_evidence(name, value, f"/evidence/{name}")


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
