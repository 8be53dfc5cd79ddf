"""File names for what results are about: readable, of harmless characters whatever a stack is called, one for each."""

import re

from conformance.model import digest
from conformance.reporting import heatmaps

_OTHER = re.compile(r"[^a-z0-9.]+")


def of_series(series: heatmaps.Series) -> str:
    """Return the slug of a series, and of no other: the digest tells them apart, the words are for people."""
    return f"{_plain(f'{series.scheme.algorithm}-{series.scheme.stack}')}-{series.digest[:8]}"


def of_name(name: str) -> str:
    """Return the slug of an algorithm or a stack: its own name, where that is harmless."""
    plain = _plain(name)
    return plain if plain == name else f"{plain}-{digest.of_value(name)[:8]}"


def _plain(text: str) -> str:
    return _OTHER.sub("-", text.lower()).strip("-.")[:60]
