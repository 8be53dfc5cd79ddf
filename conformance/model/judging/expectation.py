"""Compare verdicts with known deviations: the cells in which a stack is known not to conform, as data.

The comparison is strict both ways. An expected deviation that happens is no failure. A deviation that was not expected
is a failure, and so is an expected deviation that surely no longer happens. Otherwise the list would go out of date, as
nobody would notice that a deviation was repaired.
"""

import dataclasses
import enum
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conformance.model.errors import UserError, located
from conformance.model.groups import grouped
from conformance.model.judging import kinds
from conformance.model.judging.question import Named, Question
from conformance.model.judging.verdict import Status, Verdict, ZoneSide, ZoneVerdict
from conformance.model.judging.zone import SPLIT_KINDS, id_parts
from conformance.model.networks.place import Point

#: the reason of entries that `conformance expect update` adds, for a person to replace
UNEXPLAINED = "not explained yet"


def ordered(cells: Iterable[Point]) -> list[Point]:
    """Return cells, points and checks in order, those of one kind together."""
    return sorted(cells, key=_rank)


def _rank(place: Point) -> tuple[str, Any]:
    return type(place).__name__, place


class Known(enum.StrEnum):
    """What an entry says: the stack violates, fails, does not offer the algorithm, or may do either (borderline).

    A cell is borderline if it lies so near a bound that chance decides whether it violates.
    """

    VIOLATES = "violates"
    FAILS = "fails"
    UNSUPPORTED = "unsupported"
    BORDERLINE = "borderline"

    @property
    def against(self) -> bool:
        """Whether the stack surely does something wrong."""
        return self in (Known.VIOLATES, Known.FAILS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Expected:
    """One entry: the verdict that is expected in these cells of a zone (None: in all), and the reason.

    `cells` may be kinds of cells (kinds.py) or, for a split zone, the ids of its checks. `side`: where medians lie;
    None for either. `recorded`: it is a verdict on record and on nobody's list, so that it may no longer happen.
    """

    SHOWN = (
        "zone=zone_id",
        #: Ids of cells; null for all of the zone's.
        "cells=ids",
        "verdict", "side", "reason", "link",
    )  # fmt: skip

    zone_id: str
    cells: frozenset[Point] | None
    verdict: Known
    reason: str
    side: ZoneSide | None = None
    link: str | None = None
    recorded: bool = False

    @property
    def ids(self) -> list[str] | None:
        """The ids of its cells or checks, in order; None if the entry is about all of them."""
        if self.cells is None:
            return None
        return [place.id for place in ordered(self.cells)]

    @property
    def words(self) -> str:
        """What the stack is known to do, and why, as the end of a sentence."""
        does = self.verdict.removesuffix("s") if self.verdict.against else f"be {self.verdict}"
        where = f" {self.side} what is permitted" if self.side else ""
        return f"known to {does}{where}: {self.reason}" + (f" ({self.link})" if self.link else "")

    def fits(self, verdict: Verdict) -> bool:
        """Say whether a verdict is the deviation that this entry names, and on its side if it names one."""
        if self.side and self.side is not verdict.side:
            return False
        does = Status.VIOLATES if self.verdict == Known.BORDERLINE else str(self.verdict)
        return verdict.status == does

    def covers(self, zone_id: str, cell: Point) -> bool:
        return self.zone_id == zone_id and (self.cells is None or cell in self.cells)


_NOT_KNOWN = (Status.ERROR, Status.INCONCLUSIVE, Status.NOT_JUDGED)


class Surprise(enum.StrEnum):
    """How a verdict on a cell, or on a split check, compares with what was expected."""

    NONE = "as expected"
    NEW = "not expected"
    GONE = "expected, but it does not happen any more"
    #: a violation that trials with fresh seeds did not show again
    UNCONFIRMED = "not confirmed"

    @property
    def fails(self) -> bool:
        """Whether a gate fails for it."""
        return self in (Surprise.NEW, Surprise.GONE)


def compare(verdict: Verdict, expected: Expected | None, again: Verdict | None = None) -> Surprise:
    """Return how a verdict compares with its Expected or None; what is not known is never a surprise.

    `again`: the verdict on trials with fresh seeds, if a new violation was repeated. A known violation counts as gone
    only if the verdict is sure, by the interval at SURE instead of CONFIDENCE. Otherwise a cell on a bound would come
    and go by chance.
    """
    if expected is not None:
        if expected.fits(verdict) or verdict.status in _NOT_KNOWN:
            return Surprise.NONE
        if expected.recorded and not verdict.status.against:
            return Surprise.NONE
        if verdict.status.passes:
            gone = expected.verdict == Known.UNSUPPORTED or (expected.verdict.against and verdict.sure)
            return Surprise.GONE if gone else Surprise.NONE
        if verdict.status is Status.UNSUPPORTED:
            return Surprise.GONE
    elif not verdict.status.against:
        return Surprise.NONE
    return Surprise.NEW if again is None or again.status.against else Surprise.UNCONFIRMED


def gone_command(stack: str, results: object, options: str = "") -> str:
    """Return the command that removes deviations that no longer happen from a stack's list.

    `options`: the options that chose what was tested.
    """
    return f"conformance expect update --gone {shlex.quote(stack)} {shlex.quote(str(results))}{options}"


def find(entries: Iterable[Expected], zone_id: str, cell: Point) -> Expected | None:
    """Return the Expected that covers a cell, or None."""
    return next((entry for entry in entries if entry.covers(zone_id, cell)), None)


def violating(entries: Sequence[Expected], questions: Iterable[Question]) -> list[Question]:
    """Return the questions about what a list says that the stack surely does wrong."""
    covering = ((question, find(entries, question.id, question.place)) for question in questions)
    return [q for q, entry in covering if entry is not None and entry.verdict.against and not entry.recorded]


def _cells(zone_id: str, texts: Iterable[str]) -> frozenset[Point]:
    """Return what `texts` name in a zone: cells, points or kinds of cells, or, in a split zone, checks by their ids."""
    split = id_parts(zone_id)[1] in SPLIT_KINDS
    return frozenset(Named(text) if split else kinds.named(text) or Point.parse(text) for text in texts)


def from_json(data: Mapping[str, Any], where: object) -> tuple[Expected, ...]:
    """Return the entries of a document that satisfies the schema; `where` names it in errors. Raises UserError."""
    entries: list[Expected] = []
    for at, entry in enumerate(data["expected"]):
        pointer = f"{where}: /expected/{at}"
        with located(f"{pointer}/cells"):
            cells = None if entry["cells"] == "all" else _cells(entry["zone"], entry["cells"])
        for other in entries:
            if other.zone_id == entry["zone"] and (cells is None or other.cells is None or cells & other.cells):
                raise UserError(f"{pointer}/cells: an earlier entry covers some of these cells of {entry['zone']}")
        entries.append(
            Expected(
                zone_id=entry["zone"], cells=cells, verdict=Known(entry["verdict"]), reason=entry["reason"],
                side=ZoneSide(entry["side"]) if "side" in entry else None, link=entry.get("link"),
            )
        )  # fmt: skip
    return tuple(entries)


def to_json(entries: Iterable[Expected]) -> dict[str, Any]:
    """Return the document, with entries in order of zone and cells in order of the grid."""
    return {
        "$schema": "../../conformance/schemas/expected.json",
        "version": 1,
        "expected": [
            {
                "zone": entry.zone_id,
                "cells": "all" if entry.cells is None else entry.ids,
                "verdict": str(entry.verdict),
                **({"side": str(entry.side)} if entry.side else {}),
                "reason": entry.reason,
                **({"link": entry.link} if entry.link else {}),
            }
            for entry in sorted(entries, key=lambda e: (e.zone_id, sorted(map(_rank, e.cells or ())), str(e.verdict)))
        ],
    }


def _new(verdict: Verdict) -> tuple[Known, ZoneSide | None] | None:
    """Return what a new entry would say of this verdict, and its side; None if the verdict needs no entry."""
    if verdict.borderline:
        return Known.BORDERLINE, verdict.side
    known = next((known for known in Known if known == str(verdict.status)), None)
    return None if known is None else (known, verdict.side if known is Known.VIOLATES else None)


def _still(verdict: Verdict, entry: Expected) -> bool:
    """Say whether an entry still holds; a borderline one holds until the cell surely conforms."""
    surely_not = entry.verdict == Known.BORDERLINE and verdict.status.passes and verdict.sure
    return compare(verdict, entry) is Surprise.NONE and not surely_not


def update(
    entries: Iterable[Expected],
    zone_verdicts: Iterable[ZoneVerdict],
    all_of: Callable[[str], Iterable[Point]],
    add: bool = True,
) -> tuple[Expected, ...]:
    """Return the entries updated by what these ZoneVerdicts found.

    Cells that were not measured or are not clear keep their entries. Entries that still hold keep their reasons and
    links. New ones have the reason UNEXPLAINED or, without `add`, are left out. `all_of(zone id)`: the places that an
    entry about all cells covers.
    """
    judged = {zone_verdict.zone_id: zone_verdict.verdicts for zone_verdict in zone_verdicts}
    kept = []
    for entry in entries:
        verdicts = judged.get(entry.zone_id, {})
        cells = frozenset(all_of(entry.zone_id)) if entry.cells is None else entry.cells
        still = frozenset(cell for cell in cells if cell not in verdicts or _still(verdicts[cell], entry))
        if still == cells:
            kept.append(entry)
        elif still:
            kept.append(dataclasses.replace(entry, cells=still))
    for zone_id, verdicts in judged.items() if add else ():
        unlisted = ((cell, verdict) for cell, verdict in verdicts.items() if not find(kept, zone_id, cell))
        news = grouped((new, cell) for cell, verdict in unlisted if (new := _new(verdict)))
        kept += [
            Expected(zone_id=zone_id, cells=frozenset(cells), verdict=known, side=side, reason=UNEXPLAINED)
            for (known, side), cells in news.items()
        ]
    return tuple(kept)
