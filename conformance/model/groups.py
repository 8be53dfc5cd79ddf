"""Group values by their keys."""

from collections.abc import Iterable
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Return {key: its values} of (key, value) pairs, both in the order of the pairs."""
    groups: dict[_K, list[_V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
