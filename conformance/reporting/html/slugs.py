"""File names for what results are about: readable, of harmless characters whatever a stack is called, one for each."""

import re

from conformance.model import digest
from conformance.reporting import heatmaps

_OTHER = re.compile(r"[^a-z0-9.]+")


def of_series(series: heatmaps.Series) -> str:
    """Return the slug of a series, and of no other: the digest tells them apart, the words are for people."""
    return f"{_plain(f'{series.scheme.algorithm}-{series.scheme.stack}')}-{series.digest[:8]}"


def of_algorithm(algorithm: str) -> str:
    plain = _plain(algorithm)
    return plain if plain == algorithm else f"{plain}-{digest.of_value(algorithm)[:8]}"


def _plain(text: str) -> str:
    return _OTHER.sub("-", text.lower()).strip("-.")[:60]
