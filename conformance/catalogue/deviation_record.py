"""Read clauses/deviations.json: what clauses measured of each deviation of the adapter `document`, in guests.

A deviation is a fault that a stack has or had, as a switch of the document's stack. So the record says which clauses
tell which faults, and is the dictionary that names a stack's likeliest ones. `tests/record_deviations.py` writes it.
"""

import functools
import pathlib
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from conformance.support import paths, record
from conformance.support.record import KeptDocument

#: what the document's stack is called where it has no deviation
HONEST = "honest"
#: {clause's id: the observable's values, one of each trial}
Values = Mapping[str, tuple[float, ...]]


class DeviationRecord(KeptDocument):
    """What clauses measured of each deviation of the adapter `document` (clauses/deviations.json)."""

    SCHEMA = "deviation-record"

    #: By deviation, as adapters/document/src/deviations.txt names it, or `honest` for none; and by clause: the
    #: observable's values, one of each trial that showed it.
    deviations: dict[str, dict[str, Annotated[tuple[float, ...], Meta(min_length=1)]]]


def path() -> pathlib.Path:
    """Return where the record is."""
    return paths.data("clauses", "deviations.json")


@functools.cache
def load() -> Mapping[str, Values]:
    """Return {deviation, or HONEST: values by clause}. Raises UserError."""
    return record.read(DeviationRecord, path()).deviations
