"""Which measurements are of a study's points: of each algorithm those of one build, on one kernel, in one lab.

Points with a kernel of their own are apart: theirs are of one build on a kernel of that name. So are points with a
client of their own.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from conformance.model.setting import Setting
from conformance.model.studies.study import Study
from conformance.model.studies.study_point import CLIENT, OWN, StudyPoint
from conformance.model.trial import Measurement

#: stack, client, algorithm and the kernel that a point asks for; and what trials that are taken together agree in
Of = tuple[str, str, str, str | None]
Build = tuple[str, str, str, str]
#: the name of the kernel that algorithms ask for which need none in particular (kernel/store.py)
_USUAL = "default"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """What results hold of a study: {point: measurements}, and the ids of the schemes that they are of."""

    measured: Mapping[StudyPoint, Sequence[Measurement]]
    schemes: tuple[str, ...]


def anything_known(measurements: Iterable[Measurement]) -> bool:
    """Say whether any of a point's trials measured something."""
    return any(one.metrics for one in measurements)


def core_s(measured: Mapping[StudyPoint, Sequence[Measurement]], points: Iterable[StudyPoint]) -> tuple[int, float]:
    """Return (points, seconds): how many of these points have trials with a wall time, and the sum of these times.

    Each trial took one core.
    """
    found = [measured[point] for point in points if anything_known(measured.get(point, ()))]
    took = [[wall_s for one in own if isinstance(wall_s := one.host.get("wall_s"), int | float)] for own in found]
    return sum(map(bool, took)), math.fsum(wall_s for own in took for wall_s in own)


def of_point(point: StudyPoint) -> Of:
    """Return what all trials agree in of which one build's are taken."""
    return point.stack, point.client, point.algorithm, point.kernel


def build(measurement: Measurement) -> Build:
    """Return the build, kernel, room and lab that a measurement is of."""
    trial = measurement.trial
    return trial.scheme.stack_digest, trial.scheme.kernel_digest, trial.room, trial.lab_digest


def of(study: Study, measurements: Iterable[Measurement]) -> Found:
    """Return what measurements there are of a study's points, in order of seed.

    Of a stack's algorithm only one build's are taken: the one of which most points are there, the latest of equals. So
    it is of the points that ask for a kernel; only what ran on one of that name is theirs. What ran on a kernel that
    other points of the algorithm ask for is of no point that asks for none.
    """
    named = {(point.algorithm, point.kernel) for point in study.points["full"] if point.kernel not in (None, _USUAL)}
    points: dict[tuple[str, str, str, Setting], list[StudyPoint]] = collections.defaultdict(list)
    for point in study.points["full"]:
        points[point.stack, point.client, point.algorithm, study.setting(point)].append(point)
    with_client = {(point.stack, point.client) for point in study.points["full"]}
    found: dict[Of, dict[Build, dict[StudyPoint, list[Measurement]]]] = collections.defaultdict(dict)
    for one in measurements:
        scheme, trial = one.trial.scheme, one.trial
        client = scheme.client or OWN
        # What no experiment names is the common one, whichever that was.
        client = client if (scheme.stack, client) in with_client else CLIENT
        for point in points.get((scheme.stack, client, scheme.algorithm, trial.setting), ()):
            if point.kernel not in (None, scheme.kernel):
                continue
            if point.kernel is None and (scheme.algorithm, scheme.kernel) in named:
                continue
            found[of_point(point)].setdefault(build(one), {}).setdefault(point, []).append(one)
    measured: dict[StudyPoint, Sequence[Measurement]] = {}
    schemes: dict[str, None] = {}
    for builds in found.values():
        most = max(reversed(builds.values()), key=len)
        for point, own in most.items():
            measured[point] = sorted(own, key=lambda one: one.trial.seed)
            if anything_known(own):
                schemes[own[0].trial.scheme.id] = None
    return Found(measured=measured, schemes=tuple(sorted(schemes)))
