"""Read zones/features.json: what `why` and blame read from traces of Linux's algorithms whose kernels users have to
build themselves.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from conformance.model.diagnosis.blame import FlowTraits
from conformance.model.diagnosis.feature_table import FEATURES, Feature
from conformance.model.diagnosis.ranking import Reading
from conformance.support import paths, record
from conformance.support.record import KeptDocument, Record

_NotNegative = Annotated[float, Meta(ge=0)]


class ReadingNumbers(Record):
    #: Number of samples, over all seeds.
    n: Annotated[int, Meta(ge=1)]
    value: float
    #: First quartile.
    low: float
    #: Third quartile.
    high: float
    #: Half the range over seeds.
    spread: _NotNegative


class ReferenceFeatures(Record, kw_only=True):
    #: The id of the scheme that was traced: algorithm, stack and version.
    scheme: str
    #: By profile and place: the traits of each trial there (docs/blame.md), which are the share of the time that the
    #: sender waits, the payload of a full packet in bytes, and the share of the time in which less was in flight than
    #: the path holds.
    traits: dict[str, dict[str, list[tuple[_NotNegative, _NotNegative, _NotNegative]]]] = msgspec.field(
        default_factory=dict
    )
    #: By feature.
    readings: dict[str, ReadingNumbers]


class RecordedFeatures(KeptDocument):
    """What `conformance why` and blame read from traces of Linux's algorithms whose kernels users build themselves."""

    SCHEMA = "recorded-features"
    SPARSE = True

    schema: Literal["recorded-features/1"]
    #: By algorithm.
    references: dict[str, ReferenceFeatures]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What traces of one algorithm show. `scheme`: the id of the scheme that was traced.

    `readings` name no places in traces, because these are not kept. `traits`: {(profile, place): those of its trials}.
    """

    scheme: str
    readings: Mapping[Feature, Reading]
    traits: Mapping[tuple[str, str], Sequence[FlowTraits]]


def find(algorithm: str) -> Recorded | None:
    """Return what was recorded of Linux's algorithm with this name; None if nothing was. Raises UserError."""
    kept = record.read(RecordedFeatures, paths.data("zones", "features.json")).references.get(algorithm)
    if kept is None:
        return None
    return Recorded(
        scheme=kept.scheme,
        readings=readings(kept.readings),
        traits={
            (profile, place): [FlowTraits(waiting=row[0], payload_bytes=row[1], window_limited=row[2]) for row in rows]
            for profile, places in kept.traits.items()
            for place, rows in places.items()
        },
    )


def readings(kept: Mapping[str, ReadingNumbers]) -> dict[Feature, Reading]:
    """Return the readings in `kept`, {feature's id: its numbers}. Raise KeyError for a feature that is unknown."""
    by_id = {feature.id: feature for feature in FEATURES}
    return {by_id[name]: Reading(**msgspec.structs.asdict(numbers), sightings=()) for name, numbers in kept.items()}
