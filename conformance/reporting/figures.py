"""Choose and name the figures that `conformance plot` draws."""

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.model.errors import UserError
from conformance.reporting import charts
from conformance.reporting.heatmaps import Series
from conformance.reporting.html import compare, slugs


def chosen(
    what: str, all_series: Sequence[Series], algorithm: str | None = None, stack: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield (name, chart) of each figure: one for each series, or for `compare` one for each algorithm and profile.

    Raises UserError if there are no results of this algorithm and stack.
    """
    kept = [
        s for s in all_series if algorithm in (None, s.scheme.algorithm) and stack in (None, s.scheme.stack)
    ]  # fmt: skip
    if not kept:
        schemes = ", ".join(dict.fromkeys(s.scheme.id for s in all_series))
        raise UserError("there are no results of that algorithm and stack", f"there are results of {schemes}")
    if what == "compare":
        yield from _comparisons(kept)
        return
    for series in kept:
        drawn = series.utilization if what == "heatmap" else series.lost
        suffix = "" if what == "heatmap" else "-loss"
        yield f"{slugs.of_series(series)}{suffix}", charts.heatmap(drawn)


def _comparisons(kept: Sequence[Series]) -> Iterator[tuple[str, Any]]:
    for algorithm in dict.fromkeys(s.scheme.algorithm for s in kept):
        sections = compare.sections([s for s in kept if s.scheme.algorithm == algorithm])
        for section in sections:
            profile = section.series[0].setting
            end = f"-{profile.profile}-{profile.profile_digest[:4]}" if len(sections) > 1 else ""
            yield f"compare-{slugs.of_name(algorithm)}{end}", charts.comparison(section)
