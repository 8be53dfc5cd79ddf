"""Select the measurements of a study's points: for each algorithm those of one build, on one kernel, in one lab.

Points that name a kernel are selected separately: their measurements are of one build on a kernel of that name. Points
that name a client are selected separately, too.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from conformance.model.groups import grouped
from conformance.model.studies.study import Study
from conformance.model.studies.study_point import CLIENT, OWN, StudyPoint
from conformance.model.trials.trial import Measurement

#: stack, client, algorithm and kernel that a point asks for; and what build() returns, the same for all trials of a key
Of = tuple[str, str, str, str | None]
BuildKey = tuple[str, str, str, str]
#: the name of the default kernel, which runs algorithms that need no particular one (kernel/store.py)
_USUAL = "default"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyMeasurements:
    """The measurements of a study that results hold, {point: measurements}, and the ids of their schemes."""

    measured: Mapping[StudyPoint, Sequence[Measurement]]
    schemes: tuple[str, ...]


def anything_known(measurements: Iterable[Measurement]) -> bool:
    """Return whether any of a point's trials measured something."""
    return any(measurement.metrics for measurement in measurements)


def core_s(measured: Mapping[StudyPoint, Sequence[Measurement]], points: Iterable[StudyPoint]) -> tuple[int, float]:
    """Return (points, seconds): how many of these points have trials with a wall time, and the sum of these times.

    Each trial used one core.
    """
    measurements = [measured[point] for point in points if anything_known(measured.get(point, ()))]
    took = [
        [wall_s for measurement in measurements if isinstance(wall_s := measurement.host.get("wall_s"), int | float)]
        for measurements in measurements
    ]
    return sum(map(bool, took)), math.fsum(wall_s for seconds in took for wall_s in seconds)


def of_point(point: StudyPoint) -> Of:
    """Return the key of a point; the trials of all points with one key are taken from one build."""
    return point.stack, point.client, point.algorithm, point.kernel


def build(measurement: Measurement) -> BuildKey:
    """Return the build, kernel, room and lab of a measurement."""
    trial = measurement.trial
    return trial.scheme.stack_digest, trial.scheme.kernel_digest, trial.room, trial.lab_digest


def _is_usual(measured: Mapping[StudyPoint, Sequence[Measurement]]) -> bool:
    """Return whether a build was measured on the kernel that its algorithm asks for: the default one, or one that has
    the algorithm's name (docs/bbr-kernels.md).
    """
    point, (measurement, *_) = next(iter(measured.items()))
    return measurement.scheme.kernel in (_USUAL, point.algorithm)


def of(study: Study, measurements: Iterable[Measurement]) -> StudyMeasurements:
    """Return the measurements of a study's points, in order of seed.

    For each algorithm of a stack, only one build's measurements are taken: those of the build with the most points, or
    of the latest of such builds. Builds on the usual kernel come first, however many points others have. So it is for
    points that ask for a kernel, for which only trials on a kernel of that name count. A trial on a kernel that other
    points of the algorithm ask for counts for no point that asks for none.
    """
    named = {(point.algorithm, point.kernel) for point in study.points["full"] if point.kernel not in (None, _USUAL)}
    points = grouped(
        ((point.stack, point.client, point.algorithm, study.setting(point)), point) for point in study.points["full"]
    )
    with_client = {(point.stack, point.client) for point in study.points["full"]}
    by_build: dict[Of, dict[BuildKey, dict[StudyPoint, list[Measurement]]]] = collections.defaultdict(dict)
    for measurement in measurements:
        scheme, trial = measurement.scheme, measurement.trial
        client = scheme.client or OWN
        # A client that no experiment names is the common one, whichever that was.
        client = client if (scheme.stack, client) in with_client else CLIENT
        for point in points.get((scheme.stack, client, scheme.algorithm, trial.setting), ()):
            if point.kernel not in (None, scheme.kernel):
                continue
            if point.kernel is None and (scheme.algorithm, scheme.kernel) in named:
                continue
            by_build[of_point(point)].setdefault(build(measurement), {}).setdefault(point, []).append(measurement)
    measured: dict[StudyPoint, Sequence[Measurement]] = {}
    schemes: dict[str, None] = {}
    for builds in by_build.values():
        most = max(reversed(builds.values()), key=lambda points: (_is_usual(points), len(points)))
        for point, at_point in most.items():
            measured[point] = sorted(at_point, key=lambda measurement: measurement.trial.seed)
            if anything_known(at_point):
                schemes[at_point[0].trial.scheme.id] = None
    return StudyMeasurements(measured=measured, schemes=tuple(sorted(schemes)))
