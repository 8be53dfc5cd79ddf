"""Read zones/features.json: what `why` and blame read from traces of Linux's algorithms whose kernels users have to
build themselves.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.model.diagnosis.blame import FlowTraits
from conformance.model.diagnosis.feature_table import FEATURES, Feature
from conformance.model.diagnosis.ranking import Reading
from conformance.support import paths, schema


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
    kept: Mapping[str, Any] = schema.load("recorded-features", paths.data("zones", "features.json"))["references"]
    if algorithm not in kept:
        return None
    return Recorded(
        scheme=kept[algorithm]["scheme"],
        readings=readings(kept[algorithm]["readings"]),
        traits={
            (profile, place): [FlowTraits(waiting=row[0], payload_bytes=row[1], window_limited=row[2]) for row in rows]
            for profile, places in kept[algorithm].get("traits", {}).items()
            for place, rows in places.items()
        },
    )


def readings(kept: Mapping[str, Mapping[str, Any]]) -> dict[Feature, Reading]:
    """Return the readings in `kept`, {feature's id: its numbers}. Raise KeyError for a feature that is unknown."""
    by_id = {feature.id: feature for feature in FEATURES}
    return {by_id[name]: Reading(**numbers, sightings=()) for name, numbers in kept.items()}
