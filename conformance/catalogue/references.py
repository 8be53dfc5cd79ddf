"""Find what zones know about a study's points: the trials of their references, which are of Linux TCP."""

from collections.abc import Iterable, Iterator

from conformance.catalogue import documents
from conformance.model.judging import zone as zones
from conformance.model.judging.zone import Zone
from conformance.model.networks.setting import Setting
from conformance.model.studies.claims import Estimate
from conformance.model.studies.outcome import References
from conformance.model.studies.study import Study
from conformance.model.studies.study_point import CLIENT, STACK


def of(study: Study) -> References:
    """Return {point: {metric: Estimate}} of a study's points of Linux TCP, by the references of zones that ship.

    A point is included only if its setting is exactly the one in which a zone's reference was measured. Raises
    UserError.
    """
    usual = (STACK, CLIENT, None)  # as references are measured
    points = [point for point in study.points["full"] if (point.stack, point.client, point.kernel) == usual]
    algorithms = {point.algorithm for point in points}
    judging = [documents.zone(path) for path in documents.judging_files() if path.parent.name in algorithms]
    values_of = {}
    for point in points:
        zones = [zone for zone in judging if (zone.algorithm, zone.profile) == (point.algorithm, point.scenario)]
        if zones and (sightings := dict(_at(study.setting(point), zones))):
            values_of[point] = sightings
    return values_of


def _at(setting: Setting, judging: Iterable[Zone]) -> Iterator[tuple[str, Estimate]]:
    """Yield (metric, what the zone's reference has) for each zone that judges a setting.

    A zone that multiplies the kernel's trials by what QUIC has beside TCP does not say what TCP has.
    """
    place = setting.point
    for zone in judging:
        if zones.judges(zone, setting, place) and not zone.transport:
            yield zone.metric, Estimate.of(zone.intervals[place].basis.values)
