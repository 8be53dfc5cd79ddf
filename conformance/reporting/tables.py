"""From measurements to heatmaps: what every report draws. Pure but for reading the files."""

import collections
import dataclasses

from conformance import specs, store
from conformance.model import statistics
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.trial import Outcome
from conformance.model.verdict import Verdict, judge
from conformance.model.zone import Zone


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellResult:
    """`value` is the median utilization of the trials that ran, None where none did; `verdict` where a zone applies."""

    cell: Cell
    n: int
    value: float | None
    low: float | None
    high: float | None
    message: str | None
    unsupported: bool
    verdict: Verdict | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Heatmap:
    """One scheme under one profile, made by one version of the lab: runs that may be looked at together."""

    algorithm: str
    scheme_id: str
    stack_version: str
    kernel_digest: str
    stack_digest: str
    lab_digest: str
    profile: str
    profile_digest: str
    settings: str
    room: str
    zone: Zone | None
    results: dict[Cell, CellResult]

    @property
    def trials(self):
        return max((r.n for r in self.results.values()), default=0)

    def count(self):
        """{verdict's status: number of cells}, without cells that no zone judges."""
        return collections.Counter(str(r.verdict.status) for r in self.results.values() if r.verdict)


def heatmap(measurements, zone):
    """The Heatmap of measurements that differ in nothing but cell and seed."""
    first = measurements[0].trial
    by_cell = collections.defaultdict(list)
    for measurement in measurements:
        by_cell[measurement.trial.setting.cell].append(measurement)
    return Heatmap(
        algorithm=first.scheme.algorithm,
        scheme_id=first.scheme.id,
        stack_version=first.scheme.stack_version,
        kernel_digest=first.scheme.kernel_digest,
        stack_digest=first.scheme.stack_digest,
        lab_digest=first.lab_digest,
        profile=first.setting.profile,
        profile_digest=first.setting.profile_digest,
        settings=_settings(first.setting),
        room=first.room,
        zone=zone,
        results={cell: _cell(cell, found, zone) for cell, found in sorted(by_cell.items())},
    )


def _settings(setting):
    """What a report says of a profile, since options of `conformance run` may have replaced parts of it."""
    offload = "on" if setting.offload else "off"
    return f"profile {setting.profile}: queue {setting.queue}, offload {offload}, {setting.transfer_s:g} s transfers"


def _cell(cell, measurements, zone):
    values = [m.utilization for m in measurements if m.outcome in (Outcome.OK, Outcome.TIMEOUT)]
    messages = [m.message for m in measurements if m.message]
    return CellResult(
        cell=cell,
        n=len(measurements),
        value=statistics.median(values) if values else None,
        low=min(values, default=None),
        high=max(values, default=None),
        message=messages[0] if messages else None,
        unsupported=any(m.outcome is Outcome.UNSUPPORTED for m in measurements),
        verdict=judge(zone, cell, measurements) if zone and cell in zone.intervals else None,
    )


def from_files(paths):
    """Heatmaps of result files, in order of scheme; raises UserError where there is nothing to show.

    Paths of two segments have no place in a heatmap of cells: `conformance split` shows them.
    """
    groups = collections.defaultdict(list)
    for path in paths:
        for m in store.read(path):
            t = m.trial
            if t.setting.segments:
                continue
            groups[t.scheme, t.setting.profile_digest, t.room, t.lab_digest].append(m)
    if not groups:
        raise UserError(
            f"no results over one segment in {', '.join(str(p) for p in paths)}", "run `make conformance` first"
        )
    zones = {
        (zone.algorithm, zone.profile_digest): zone
        for profile in specs.PROFILES.values()
        for zone in specs.all_zones(profile=profile)
    }
    maps = []
    for (scheme, profile_digest, _, _), measurements in groups.items():
        maps.append(heatmap(measurements, zones.get((scheme.algorithm, profile_digest))))
    return sorted(maps, key=lambda h: (h.algorithm, h.scheme_id, h.profile, h.lab_digest))
