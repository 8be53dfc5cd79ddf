"""Draw the trials of points of scenarios: what each flow of a group got, second by second."""

import dataclasses
from collections.abc import Iterable, Iterator

from conformance.model.groups import grouped
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Scheme
from conformance.reporting import rerun
from conformance.reporting.html import traces
from conformance.reporting.points import PointRow
from conformance.results.source import Source

#: the most points that are drawn
_MOST = 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class PointDrawn:
    """The trial of a point that is nearest to the median of a metric, and the command that makes it again."""

    scheme: Scheme
    place: Point
    profile: str
    seed: int
    panels: tuple[traces.TracePanel, ...]
    end_s: str
    command: str | None


def drawn(rows: Iterable[PointRow], source: Source) -> Iterator[PointDrawn]:
    """Yield each point of these rows once, up to _MOST of them. Raises UserError."""
    by_place = grouped(((m.scheme, m.setting.profile, m.setting.point), m) for m in source.measurements)
    taken: set[tuple[Scheme, str, Point]] = set()
    for row in rows:
        key, middle = (row.scheme, row.zone.profile, row.verdict.place), row.verdict.value
        ran = [(of_trial, m) for m in by_place.get(key, ()) if (of_trial := row.zone.value(m)) is not None]
        if key in taken or middle is None or not ran or len(taken) == _MOST:
            continue
        taken.add(key)
        _, nearest = min(ran, key=lambda pair: (abs(pair[0] - middle), pair[1].trial.seed))
        panels, end_s = traces.of_flows(source.whole(nearest).flows)
        if panels:
            yield PointDrawn(
                scheme=row.scheme, place=row.verdict.place, profile=row.zone.profile, seed=nearest.trial.seed,
                panels=panels, end_s=f"{end_s:.3g}", command=rerun.trial(nearest),
            )  # fmt: skip
