"""Derive a zone from reference runs, by an explicit margin rule.

Bases are the reference's trials and, where they exist, the trials of other implementations and what the algorithm's
document says (bases.py). A cell's interval reaches from the least to the greatest median of its bases, widened on both
sides by a relative and an absolute margin: by as much as another honest implementation, kernel or server may differ.
docs/why-these-zones.md gives reasons for the numbers.
"""

import collections
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.catalogue import bases, documents, kept_margins, own_kind, scenarios
from conformance.model.errors import UserError
from conformance.model.judging import power, verdict, zone
from conformance.model.judging.zone import (
    Basis,
    Interval,
    Margin,
    OwnKind,
    Zone,
    hull,
)
from conformance.model.metrics.metric import RELATIVE_MARGIN
from conformance.model.metrics.table import METRICS, UTILIZATION
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.model.rounding import rounded_outward
from conformance.model.trials.trial import Measurement, Outcome, Scheme
from conformance.support import files, paths, schema

#: Least and usual number of the reference's trials in a cell. With 30 of them, five trials of a stack can violate in a
#: session of 400 questions; with 20, of no more than 66.
MIN_TRIALS, USUAL_TRIALS = 5, 30
#: the format of zone documents; those of earlier formats hold ranges instead of values
FORMAT = 2


def margin_rule(metric: str = UTILIZATION.name, zone_id: str = "") -> dict[str, Any]:
    """Return the margin rule in zones of this metric. Its `kinds` are margins for kinds of cells in which
    implementations were seen to differ.
    """
    absolute = METRICS[metric].margin
    kinds = kept_margins.load().spread_figures(zone_id)
    return {
        "text": f"least to greatest median of the bases, widened by {RELATIVE_MARGIN:.0%} and {absolute:g}",
        "relative": RELATIVE_MARGIN,
        "absolute": absolute,
        **({"kinds": kinds} if kinds else {}),
    }


def interval(
    rests_on: Sequence[Basis], metric: str = UTILIZATION.name, margin: Margin | None = None
) -> tuple[float, float]:
    """Return (low, high) of the permissible interval that rests on these bases, rounded outward to 0.0001.

    `margin`: by default, that of the metric.
    """
    return METRICS[metric].clamped(*rounded_outward(*hull(rests_on, margin or Margin.of(margin_rule(metric)))))


def derive(
    measurements: Sequence[Measurement],
    algorithm: str,
    version_text: str,
    metric: str = UTILIZATION.name,
    profile: str = "atc25",
    name: str = "heatmap",
    baseline: bool = False,
    beside: Iterable[Sequence[Measurement]] = (),
) -> dict[str, Any]:
    """Return the zone document of `algorithm`. Raises UserError if the measurements cannot serve as a reference.

    `profile`: the profile or scenario under which they were measured. `baseline`: the zone does not rest on what the
    algorithm's document predicts, and counts all cells. `beside`: runs of other implementations, each of which is a
    further basis in the settings in which it was measured.
    """
    zone_id = f"{algorithm}/{name}"
    alone = own_kind.of_reference(measurements, algorithm, metric, profile, shipped=baseline)
    references: dict[str, Mapping[str, Any]] = {}
    by_reference: dict[str, dict[Setting, list[float]]] = {}
    for at, run in enumerate((measurements, *beside)):
        ours = _own(run, algorithm, profile, alone)
        what = "another implementation, in the same settings" if at else "our own runs in the virtual room"
        values, about = _one_run(ours, metric, what, alone)
        source = _name(ours[0].scheme)
        if source in references:
            raise UserError(f"two of these results files are of {source}", "give one file for each implementation")
        references[source], by_reference[source] = about, values
    rule = margin_rule(metric, zone_id)
    settings: dict[Point, Setting] = {}
    for setting in next(iter(by_reference.values())):
        place = setting.point
        if settings.setdefault(place, setting) != setting:
            raise UserError(
                f"results hold two versions of {profile} at {place.id}", "give results of one version of the scenario"
            )
    said = {} if baseline else _said(algorithm, metric, settings)
    of_scenario = not all(isinstance(place, Cell) for place in settings)
    transport = kept_margins.load().factor_figures(zone_id)
    entries = [
        entry(
            place, measured, metric, Margin.of(rule, place), said.get(place), baseline,
            _factor(transport, place, metric),
        )
        | ({"digest": settings[place].profile_digest} if of_scenario else {})
        | ({"own_kind": alone[settings[place]].to_json()} if alone else {})
        for place, measured in ((place, _measured(settings[place], by_reference)) for place in sorted(settings))
    ]  # fmt: skip
    named = {"profile": profile, "profile_digest": next(iter(settings.values())).profile_digest}
    documents_named = (basis.reference for of_place, _ in said.values() for basis in of_place)
    unordered = {
        "$schema": "../../conformance/schemas/zone.json",
        "format": FORMAT,
        "version": 1,
        "id": zone_id,
        "algorithm": algorithm,
        "algorithm_version": version_text,
        "metric": metric,
        **({"scenario": profile} if of_scenario else named),
        **_judged(zone_id),
        "margin_rule": rule,
        **({"transport": transport} if transport else {}),
        "references": {**references, **bases.document_references(algorithm, documents_named)},
        "smoke": _smoke_points(profile, settings) if of_scenario else [],
        "points" if of_scenario else "cells": entries,
    }
    ordered: dict[str, Any] = schema.ordered("zone", unordered)
    return ordered


def _judged(zone_id: str) -> dict[str, Any]:
    """Return how the zone that ships under this id is judged, which no results say."""
    path = documents.zone_path(zone_id)
    before = schema.load("zone", path) if paths.exists(path) else {}
    return {name: before[name] for name in ("by_kind", "shown") if name in before}


def _said(
    algorithm: str, metric: str, settings: Mapping[Point, Setting]
) -> dict[Point, tuple[tuple[Basis, ...], float]]:
    """Return {place: (bases that documents give there, the factor of small packets)}, where there are any."""
    documented = {place: bases.documented(algorithm, metric, setting) for place, setting in settings.items()}
    return {place: of_place for place, of_place in documented.items() if of_place}


def _measured(setting: Setting, by_reference: Mapping[str, Mapping[Setting, Sequence[float]]]) -> list[Basis]:
    """Return the bases that were measured in a setting, the reference's first."""
    there = {name: values[setting] for name, values in by_reference.items() if setting in values}
    return [Basis.of(name, [round(value, 4) for value in values]) for name, values in there.items()]


def _smoke_points(scenario: str, there: Iterable[Point]) -> list[str]:
    """Return the ids of those points in `there` that are in a scenario's grid `smoke`."""
    if scenario not in scenarios.files():
        return []
    described: Scenario = scenarios.find(scenario)
    smoke = described.grid(scenarios.SMOKE) if scenarios.SMOKE in described.grids else ()
    return [point.by_name.id for point in smoke if point.by_name in set(there)]


def _name(scheme: Scheme) -> str:
    """Return the name of a scheme among a zone's references: linux-RELEASE, or STACK-VERSION of a stack of its own."""
    return f"{'linux' if scheme.in_kernel else scheme.stack}-{scheme.version}"


def _own(
    measurements: Sequence[Measurement], algorithm: str, profile: str, alone: Mapping[Setting, OwnKind]
) -> list[Measurement]:
    """Return the measurements of an algorithm under a profile's cells, or at a scenario's points. Raise UserError if
    there are none.

    `alone`: see _one_run(); if there is any, measurements in other settings are left out.
    """
    ours = [
        m
        for m in measurements
        if m.scheme.algorithm == algorithm and m.setting.profile == profile and not _path_under_profile(m.setting)
    ]
    if not ours:
        trials = [m.trial for m in measurements if not _path_under_profile(m.setting)]
        held = sorted({f"{trial.scheme.algorithm} under {trial.setting.profile}" for trial in trials})
        options = sorted(
            f"--{'profile' if isinstance(setting.point, Cell) else 'scenario'} {setting.profile}"
            for setting in {t.setting.profile: t.setting for t in trials if t.scheme.algorithm == algorithm}.values()
        )
        raise UserError(
            f"no measurements of {algorithm!r} under profile {profile} in these results",
            f"they hold {', '.join(held) or 'none'}" + (f": give {' or '.join(options)}" if options else ""),
        )
    there = [m for m in ours if m.setting in alone] if alone else ours
    if not there:
        raise UserError(
            f"trials of another implementation are at no point of {algorithm}'s reference", "measure it there"
        )
    return there


def _path_under_profile(setting: Setting) -> bool:
    """Return whether this is a path of two segments under a profile, whose zones are of cells."""
    return bool(setting.segments) and setting.profile in documents.profile_names()


def _one_run(
    measurements: Sequence[Measurement], metric: str, what: str, alone: Mapping[Setting, OwnKind]
) -> tuple[dict[Setting, list[float]], dict[str, Any]]:
    """Return ({setting: values of its trials}, what a document says about the reference) of trials of one run.

    `alone`: what the other flows get beside their own kind in each setting, for a metric that compares with that.
    Raises UserError if the trials are of unlike runs, too few of a setting, or not all completed.
    """
    first = measurements[0].scheme
    kinds = {(m.scheme, _profile_digest(m.setting), m.trial.room, m.trial.lab_digest) for m in measurements}
    if len(kinds) > 1:
        names = ("build or kernel", "profile", "room", "lab")
        unlike = [name for name, of_kind in zip(names, zip(*kinds, strict=True), strict=True) if len(set(of_kind)) > 1]
        if len({scheme.stack for scheme, *_ in kinds}) > 1:
            unlike[0] = "stack"
        raise UserError(
            f"results hold {len(kinds)} runs of {first.algorithm} that differ in {' and '.join(unlike)}",
            "give results of one run, as `conformance gate --out` leaves them",
        )
    values: dict[Setting, list[float]] = collections.defaultdict(list)
    for m in measurements:
        where = f"a reference trial in cell {m.setting.id}"
        if m.outcome is not Outcome.OK:
            raise UserError(f"{where} has outcome {m.outcome}: {m.message or 'no message'}")
        own_kind_mbps = alone[m.setting].mbps if alone else None
        value = METRICS[metric].value(m, own_kind_mbps)
        if value is None:
            raise UserError(f"{where} has no {metric}")
        values[m.setting].append(value)
    few = [setting.id for setting, of_trials in values.items() if len(of_trials) < MIN_TRIALS]
    if few:
        raise UserError(f"{few[0]} has fewer than {MIN_TRIALS} reference trials", "measure it more often")
    return values, {
        "scheme": first.id,
        "stack_version": first.stack_version,
        "kernel_digest": first.kernel_digest,
        **({} if first.in_kernel else {"kernel_release": first.kernel_release}),
        "trials": max(len(of_trials) for of_trials in values.values()),
        "what": what,
    }


def _profile_digest(setting: Setting) -> str:
    """Return what all settings of one run have in common: the profile's digest, or a scenario's name, because each of
    its points has a digest of its own.
    """
    return setting.profile_digest if setting.of_profile else setting.profile


def entry(
    place: Point, measured: Sequence[Basis], metric: str, margin: Margin, said: tuple[tuple[Basis, ...], float] | None,
    counts_all: bool, factor: float = 1.0,
) -> dict[str, Any]:  # fmt: skip
    """Return a zone's entry for a cell or a point, computed from measured bases and what documents say (`said`).

    `factor`: by what the kernel's values are multiplied, for the interval alone.
    """
    given = (*measured, *(said[0] if said else ()))
    rests_on = tuple(zone.carried(given, factor))
    low, high = interval(rests_on, metric, margin)
    permitted = Interval(low=low, high=high, bases=rests_on, margin=margin)
    tells = counts_all or tells_enough(permitted, metric, bool(said))
    counted = tells and margin.relative <= power.MUST_TELL
    return {
        **({"point": place.to_json()} if not isinstance(place, Cell) else place.to_json()),
        "low": low,
        "high": high,
        **({} if counted else {"counted": False}),
        **({"small_packets": said[1]} if said and said[1] != 1.0 else {}),
        "bases": [{"reference": basis.reference, "values": list(basis.values)} for basis in given],
    }


def _factor(transport: Mapping[str, Mapping[str, Any]], place: Point, metric: str) -> float:
    factor: float = transport.get(zone.kind_of(place, metric), {}).get("factor", 1.0)
    return factor


def tells_enough(permitted: Interval, metric: str, documented: bool) -> bool:
    """Return whether a cell detects a shift by power.MUST_TELL on either side, in the largest usual session.

    A cell also tells enough if a smaller value is no fault and a document is among its bases (`documented`). If the
    document allows far more than the reference does, the interval is wide because of that, and not because of chance:
    such a cell still detects a stack that does more than the document allows.
    """
    if METRICS[metric].only_above and documented:
        return True
    return power.told(permitted, metric, power.TRIALS, verdict.level(power.QUESTIONS)).enough


def write(document: Mapping[str, Any], target: pathlib.Path) -> Zone:
    """Write a zone document, with its version; return the Zone. Raise UserError."""
    schema.check("zone", document, target)
    checked = zone.from_json(document, target)
    files.write(target, dumps({**document, "version": version(checked, target)}))
    return checked


def version(derived: Zone, target: pathlib.Path) -> int:
    """Return the version of a zone just derived: that of the file it replaces, plus one if it judges differently; 1 if
    there is no such file.
    """
    try:
        before = documents.zone(target)
        number = int(json.loads(target.read_text(encoding="utf-8"))["version"])
    except (UserError, OSError):
        return 1
    return number + any(zone.differing(before, derived))


def dumps(document: Mapping[str, Any]) -> str:
    """Return the zone as text: one line for each cell or point, so that a diff between versions is easy to read."""
    (name,) = {"cells", "points"} & set(document)
    head = {key: value for key, value in document.items() if key != name}
    text = json.dumps(head, indent=2, ensure_ascii=False)
    entries = ",\n".join(f"    {json.dumps(fields, ensure_ascii=False)}" for fields in document[name])
    return f'{text[:-2]},\n  "{name}": [\n{entries}\n  ]\n}}\n'
