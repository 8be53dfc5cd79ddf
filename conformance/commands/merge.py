"""`conformance merge`: merge the results of shards into one file (conformance/results/merge.py)."""

import dataclasses
import pathlib
from collections.abc import Sequence

from conformance.commands.result import Result
from conformance.results import merge


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Merged(Result):
    """A results file that was merged from others."""

    SCHEMA = "merge"

    target: pathlib.Path
    trials: int
    #: Lines that were cut short.
    left_out: tuple[str, ...]


def compute(sources: Sequence[pathlib.Path], target: pathlib.Path) -> Merged:
    """Merge results files into `target`. Raises UserError if runs differ or a trial has two different results."""
    left_out: list[str] = []
    trials = merge.merge(sources, target, left_out.append)
    return Merged(target=target, trials=trials, left_out=tuple(left_out))
