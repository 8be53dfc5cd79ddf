"""`conformance zones check | show | diff | apart`: check, show and compare zone files, and tell algorithms apart."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from conformance.catalogue import documents, lint, mutant_record, separation
from conformance.commands.result import Document, Done, document
from conformance.commands.status import ExitStatus
from conformance.model.errors import UserError
from conformance.model.judging.zone import Interval, Zone
from conformance.model.networks.place import Cell, Point
from conformance.model.split import split_zone
from conformance.model.split.split_zone import SplitZone


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckedZone:
    """A zone file whose invariants all hold; `mutants`: what the record of mutants says about it, in words."""

    path: str
    zone: Zone
    mutants: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckedZones(Done):
    """Zone files that are valid. An invalid file raises a UserError, so there is none here."""

    zones: tuple[CheckedZone, ...]

    def to_json(self) -> Document:
        """Return a document of schemas/zones-check.json."""
        return document(
            "zones-check", self.exit_status,
            zones=[
                {
                    "id": one.zone.id, "metric": one.zone.metric, "profile": one.zone.profile, "path": one.path,
                    "summary": one.zone.summary, "mutants": one.mutants,
                }
                for one in self.zones
            ],
        )  # fmt: skip


def check(
    named: Iterable[str], on_checked: Callable[[CheckedZone], None] = lambda one: None, anew: bool = False
) -> CheckedZones:
    """Check the `named` zones (files or ids), or all that ship if none is named.

    Raises UserError at the first invalid one. `on_checked` is called with each zone as soon as it was checked. `anew`:
    do not require that a zone still rejects the mutants that it rejected before.
    """
    found = []
    for path, zone in lint.check_all(list(named) or documents.zone_files("*")):
        found.append(CheckedZone(path=str(path), zone=zone, mutants=mutant_record.check(zone, path, anew)))
        on_checked(found[-1])
    return CheckedZones(zones=tuple(found))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShownZone(Done):
    """A zone to be drawn."""

    zone: Zone | SplitZone

    def to_json(self) -> Document:
        """Return a document of schemas/zones-show.json."""
        zone = self.zone
        return document(
            "zones-show", self.exit_status, id=zone.id, metric=zone.metric, profile=zone.profile,
            references=zone.references,
            permitted=[
                {
                    **_where(place), **_interval(interval), "judged": interval.counted,
                    "margin": {
                        "relative": interval.margin.relative, "absolute": interval.margin.absolute,
                        "set_by": list(interval.margin.set_by),
                    },
                }
                for place, interval in zone.intervals.items()
            ],
        )  # fmt: skip


def show(named: str) -> ShownZone:
    """Read the zone in a file or with an id; cubic/split is the split part of a zone. Raises UserError."""
    return ShownZone(zone=documents.split_zone(named) or documents.zone(lint.find(named)))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A difference between two versions of a zone, other than in its intervals, in words."""

    what: str
    before: str
    after: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ZoneDifference:
    """What changed from one version of a zone to the other.

    `intervals`: (place, interval before, interval after), None where a version has none; `rules`: changes of the
    settings and the margin rule; `references`: changes of the references.
    """

    names: tuple[str, str]
    zones: tuple[Zone, Zone]
    intervals: tuple[tuple[Point, Interval | None, Interval | None], ...]
    rules: tuple[Change, ...]
    references: tuple[Change, ...]
    smoke_removed: tuple[Point, ...]
    smoke_added: tuple[Point, ...]

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if the zones permit different values or rest on different rules, else DONE."""
        return ExitStatus.VIOLATES if self.intervals or self.rules else ExitStatus.DONE

    def to_json(self) -> Document:
        """Return a document of schemas/zones-diff.json."""
        return document(
            "zones-diff", self.exit_status, id=self.zones[0].id, names=list(self.names),
            intervals=[
                {**_where(place), "before": before and _interval(before), "after": after and _interval(after)}
                for place, before, after in self.intervals
            ],
            rules=[dataclasses.asdict(change) for change in self.rules],
            references=[dataclasses.asdict(change) for change in self.references],
            smoke_removed=[cell.id for cell in self.smoke_removed], smoke_added=[cell.id for cell in self.smoke_added],
        )  # fmt: skip


def _where(place: Point | split_zone.Place) -> dict[str, Any]:
    if isinstance(place, split_zone.Place):
        return {"where": place.where, "what": place.what}
    return {"where": place.id, "what": None}


def _interval(interval: Interval) -> dict[str, Any]:
    return {"low": interval.low, "high": interval.high, "median": interval.basis.median}


def diff(first: str, second: str) -> ZoneDifference:
    """Compare two versions of a zone, each a file or an id. Raises UserError if they are about different things."""
    one, other = documents.zone(lint.find(first)), documents.zone(lint.find(second))
    changed = lint.differences(one, other)
    before, after = one.profile_digest, other.profile_digest
    profile = Change(what=f"profile {one.profile}", before=f"digest {before}", after=f"digest {after}")
    rules = [profile] if before != after else []
    rules += [
        Change(
            what=f"margin rule, {rule}", before=str(one.margin_rule.get(rule)), after=str(other.margin_rule.get(rule))
        )
        for rule in {**one.margin_rule, **other.margin_rule}
        if one.margin_rule.get(rule) != other.margin_rule.get(rule)
    ]
    schemes = [{name: about["scheme"] for name, about in zone.references.items()} for zone in (one, other)]
    references = [
        Change(what=f"reference {name}", before=schemes[0].get(name, "none"), after=schemes[1].get(name, "none"))
        for name in {**one.references, **other.references}
        if schemes[0].get(name) != schemes[1].get(name)
    ]
    mine, theirs = one.smoke, other.smoke
    return ZoneDifference(
        names=(str(first), str(second)), zones=(one, other), intervals=tuple(changed), rules=tuple(rules),
        references=tuple(references), smoke_removed=tuple(cell for cell in mine if cell not in theirs),
        smoke_added=tuple(cell for cell in theirs if cell not in mine),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two algorithms and a metric: the cells where no value is permitted to both, and how far apart they are there."""

    first: str
    second: str
    metric: str
    #: number of cells that both zones have
    common: int
    #: (cell, gap in widths of the first algorithm's interval)
    cells: tuple[tuple[Cell, float], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Apart(Done):
    """The cells that tell algorithms apart, pair by pair."""

    pairs: tuple[Pair, ...]

    def to_json(self) -> Document:
        """Return a document of schemas/zones-apart.json."""
        pairs = [
            {
                "algorithms": [pair.first, pair.second],
                "metric": pair.metric,
                "cells_of_both": pair.common,
                "cells": [{"cell": cell.id, "widths": width} for cell, width in pair.cells],
            }
            for pair in self.pairs
        ]
        return document("zones-apart", self.exit_status, pairs=pairs)


def apart(algorithms: Sequence[str], profile: str) -> Apart:
    """Find the cells that tell each pair of algorithms apart. Raise UserError."""
    if len(set(algorithms)) < 2:
        raise UserError(f"there is nothing to tell {algorithms[0]} apart from", "name at least two algorithms")
    return Apart(
        pairs=tuple(
            Pair(first=first, second=second, metric=metric, common=n, cells=tuple(cells))
            for first, second, metric, n, cells in separation.apart(algorithms, profile)
        )
    )
