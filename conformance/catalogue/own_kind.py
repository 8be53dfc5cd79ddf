"""Find the goodput of flows beside as many of their own kind, with which zones of harm compare (RFC 9743, section 5.2).

The network is that of the zone's point. Only the sender under test differs: it is Linux TCP with the algorithm of the
flows beside it. So nothing is measured for this alone: the reference of CUBIC beside CUBIC says what CUBIC gets beside
its own kind, and that of BBRv1 beside BBR says the same for BBR.
"""

import statistics
from collections.abc import Iterable, Sequence

from conformance.catalogue import documents
from conformance.model.errors import UserError
from conformance.model.judging.zone import OwnKind
from conformance.model.metrics import group_metrics
from conformance.model.metrics.table import METRICS
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome

#: the least number of trials; fewer say too little about a median
_LEAST_TRIALS = 5
_DIGITS = 4


def measured(measurements: Iterable[Measurement], setting: Setting, kernel_digest: str) -> OwnKind | None:
    """Return the OwnKind in a setting on a kernel, by trials whose flows are all of one kind; None if there are too
    few.
    """
    trials = [
        m
        for m in measurements
        if m.setting == setting and m.outcome is Outcome.OK and m.scheme.kernel_digest == kernel_digest
        if m.scheme.in_kernel and _of_one_kind(m)
    ]
    rates = [rate for m in trials if (rate := group_metrics.others_mbps(m)) is not None]
    if len(rates) < _LEAST_TRIALS:
        return None
    return OwnKind(
        scheme=trials[0].trial.scheme.id, kernel_digest=kernel_digest, trials=len(rates),
        mbps=round(statistics.median(rates), _DIGITS),
    )  # fmt: skip


def _of_one_kind(measurement: Measurement) -> bool:
    """Return whether the kernel ran the same algorithm, by its own name for it, for all groups of flows.

    Return False if the algorithm of a group was not seen, or if the trial had a single flow.
    """
    if group_metrics.others_mbps(measurement) is None:
        return False
    controls = (measurement.evidence.get("congestion_control") or {}).values()
    return None not in controls and len({control["name"] for control in controls}) == 1


def of_reference(
    measurements: Sequence[Measurement], algorithm: str, metric: str, profile: str, shipped: bool
) -> dict[Setting, OwnKind]:
    """Return {setting: OwnKind} for each setting of the reference; {} if the metric does not compare with it.

    `shipped`: take it from the zones that ship. Raises UserError if it was not measured.
    """
    if METRICS[metric].against is None:
        return {}
    schemes = {
        m.setting: m.scheme for m in measurements if m.scheme.algorithm == algorithm and m.setting.profile == profile
    }
    by_setting = {}
    for setting, scheme in schemes.items():
        beside = known(setting, algorithm) if shipped else measured(measurements, setting, scheme.kernel_digest)
        if beside is None:
            raise UserError(
                f"{setting.id}: the goodput of the other flows beside their own kind is not known",
                f"no zone has this point of scenario {profile} any longer: measure the baseline again"
                if shipped
                else f"measure it into the same results, on this kernel: `conformance scenario run {profile} --grid"
                " zone --algorithm cubic` if these flows run CUBIC, with bbrv1 if they run BBR",
            )
        by_setting[setting] = beside
    return by_setting


def known(setting: Setting, algorithm: str | None = None) -> OwnKind | None:
    """Return the OwnKind that zones that ship have in a setting: that of `algorithm`'s zone, else the first; None if
    there is none. Raises UserError.
    """
    at = setting.point
    zones = [documents.zone(path) for path in documents.judging_files()]
    own_kinds = {
        zone.algorithm: zone.own_kind[at]
        for zone in zones
        if at in zone.own_kind and zone.digest_at(at) == setting.profile_digest
    }
    return own_kinds.get(algorithm or "") or next(iter(own_kinds.values()), None)


def value(measurement: Measurement, metric: str) -> float | None:
    """Return the value of a metric in a measurement, by the OwnKind of zones that ship if needed. Raises UserError."""
    row = METRICS[metric]
    if row.against is None:
        return row.value(measurement)
    beside = known(measurement.setting, measurement.scheme.algorithm)
    return row.value(measurement, beside.mbps if beside else None)
