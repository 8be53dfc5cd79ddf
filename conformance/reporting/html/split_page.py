"""Predict each series' gain from a connection-splitting proxy: counts of paths by class, and example paths."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from conformance.model.split import split_paths, split_rates
from conformance.reporting.heatmaps import Series

#: a filter's title; how many paths pass it in each class, and in all; the share of these; how many are not known
CountedFilter = tuple[str, tuple[int, ...], int, str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictedBar:
    """A predicted utilization from `low` to `high`, which are equal if every transfer ended; `words` say the same."""

    low: float
    high: float
    words: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example:
    """A path with both predictions; one is None if a cell it needs was not measured, or failed."""

    path_class: str
    path_id: str
    split: PredictedBar | None
    end_to_end: PredictedBar | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predicted:
    """The predictions from one series. `counts`: one for each filter; `telling` and `unknown` are of the last."""

    series: Series
    paths: int
    classes: tuple[str, ...]
    sizes: tuple[int, ...]
    counts: tuple[CountedFilter, ...]
    telling: str
    unknown: int
    largest: str
    examples: tuple[Example, ...]


def of_series(all_series: Iterable[Series]) -> list[Predicted]:
    """Return the Predicted of each Series whose cells make paths of two segments; others are left out."""
    predictions = (_predicted(series) for series in all_series if not series.setting.rival)
    return [predicted for predicted in predictions if predicted is not None]


def _predicted(series: Series) -> Predicted | None:
    paths = split_paths.paths(series.cells)
    # A handful of cells may make a few paths by accident; their counts would say nothing about a class.
    if len({path.path_class for path in paths}) < len(split_paths.PathClass):
        return None
    rates = split_rates.Rates.medians({cell: r.counted for cell, r in series.utilization.results.items()})
    predictions = [split_rates.predict(path, rates) for path in paths]
    sizes = split_rates.count(predictions, split_rates.Filter())
    counts = tuple(_count(predictions, filter_) for filter_ in split_rates.FILTERS)
    return Predicted(
        series=series,
        paths=len(paths),
        classes=tuple(str(c) for c in split_paths.PathClass),
        sizes=tuple(sizes[c].paths for c in split_paths.PathClass),
        counts=counts,
        telling=counts[-1][3],
        unknown=counts[-1][4],
        largest=_largest(predictions),
        examples=tuple(_example(c, path, rates) for c, path in _examples(paths).items()),
    )


def _count(predictions: Sequence[split_rates.Prediction], filter_: split_rates.Filter) -> CountedFilter:
    counts = split_rates.count(predictions, filter_)
    passed = sum(c.passed for c in counts.values())
    unknown = sum(c.unknown for c in counts.values())
    known = len(predictions) - unknown
    share = f"{100 * passed / known:.1f} %" if known else "not known"
    return filter_.title, tuple(counts[c].passed for c in split_paths.PathClass), passed, share, unknown


def _largest(predictions: Iterable[split_rates.Prediction]) -> str:
    largest = split_rates.largest_gain(predictions)
    if largest is None:
        return "not known"
    gain, path = largest
    return f"{gain:.1f}x at {path.id} ({path.path_class})"


def _examples(paths: Sequence[split_paths.Path]) -> Mapping[split_paths.PathClass, split_paths.Path]:
    """Return each class's representative path that is among these, at its usual bandwidth or else at the lowest."""
    among = frozenset(paths)
    least = min(path.bandwidth_mbps for path in paths)
    usual, at_least = split_paths.representative_paths(), split_paths.representative_paths(least)
    chosen = {c: usual[c] if usual[c] in among else at_least[c] for c in usual}
    return {c: path for c, path in chosen.items() if path in among}


def _example(path_class: split_paths.PathClass, path: split_paths.Path, rates: split_rates.Rates) -> Example:
    prediction = split_rates.predict(path, rates)
    return Example(
        path_class=str(path_class),
        path_id=path.id,
        split=_bar(prediction.utilization("split")),
        end_to_end=_bar(prediction.utilization("end_to_end")),
    )


def _bar(utilization: split_rates.Bounds | None) -> PredictedBar | None:
    if utilization is None:
        return None
    low, high = utilization
    return PredictedBar(low=low, high=high, words=f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}")
