"""What the zones said of the mutants when they were last tried: tests/mutants/detected.json.

`conformance mutants --record` writes it, `zones check` reads it: a zone that accepts every mutant of its algorithm is
no use, and to know that, nothing has to be measured. It says which file of a zone it is about.
"""

import dataclasses
import json

from conformance import paths, specs
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.verdict import Status

#: how many of the cells that told a mutant are kept
_CELLS = 4


def path():
    return paths.PACKAGE.parent / "tests" / "mutants" / "detected.json"


def digest(zone_file):
    """Of a zone as it was judged by."""
    return digests.of_bytes(zone_file.read_bytes())


@dataclasses.dataclass(frozen=True)
class Record:
    """`zones`: {zone id: {"digest", "rejects", "accepts"}}; `cells`: {mutant: ["PROFILE CELL", ...] that told it}."""

    zones: dict
    cells: dict

    def telling(self, mutant_id, algorithm):
        """What told this mutant, and what told others of the algorithm: see model.mutants.order()."""
        others = [c for other, cells in self.cells.items() if other.startswith(f"{algorithm}-") for c in cells]
        return [_parse(c) for c in self.cells.get(mutant_id, ())], [_parse(c) for c in others]


def _parse(text):
    profile, _, cell = text.partition(" ")
    return profile, Cell.parse(cell)


def load():
    """The Record; an empty one where there is no file."""
    try:
        data = json.loads(path().read_text())
    except FileNotFoundError:
        return Record({}, {})
    except (OSError, ValueError) as error:
        raise UserError(f"{path()}: {error}", "write it anew with `conformance mutants --record`") from None
    return Record(data["zones"], data["cells"])


def record(findings, zones_that_judged):
    """Write what was found of all mutants; the file's path. What other zones said stays.

    A zone rejects a mutant where it violates, and accepts it where it does not though all its cells were measured:
    of a mutant that another zone told first, it may say nothing.
    """
    known = load()
    zones, cells = dict(known.zones), dict(known.cells)
    for zone in zones_that_judged:
        file = specs.zone_path(zone.id)
        if file.exists():
            rejects = [f.mutant.id for f in findings if zone.id in f.rejecting]
            accepts = [f.mutant.id for f in findings if f.mutant.id not in rejects and _all_measured(zone, f)]
            zones[zone.id] = {"digest": digest(file), "rejects": sorted(rejects), "accepts": sorted(accepts)}
    profiles = {zone.id: zone.profile for zone in zones_that_judged}
    for finding in findings:
        cells.pop(finding.mutant.id, None)
        if telling := [f"{profiles[v.zone_id]} {v.cell.id}" for v in finding.telling]:
            cells[finding.mutant.id] = list(dict.fromkeys(telling))[:_CELLS]
    about = {"zones": dict(sorted(zones.items())), "cells": dict(sorted(cells.items()))}
    path().write_text(json.dumps(about, indent=1) + "\n")
    return path()


def _all_measured(zone, finding):
    judged = {v.cell for v in finding.verdicts if v.zone_id == zone.id and v.status is not Status.ERROR}
    return judged == set(zone.intervals)


def check(zone, zone_file):
    """Raise UserError where a zone accepts every mutant of its algorithm; what else there is to say of it, or None.

    A zone of a user's own, or of an algorithm that has no mutants, was tried on none. One that was tried on a few, as
    other zones detected the rest first, is not blamed for accepting these: they are what no zone detects.
    """
    zones = load().zones
    found = zones.get(zone.id)
    if found is None or specs.zone_path(zone.id) != zone_file.resolve():
        return None
    if found["digest"] != digest(zone_file):
        return "not tried on the mutants since it changed: `conformance mutants --record`"
    if not found["rejects"] and not found["accepts"]:
        return None
    tried = [about for zone_id, about in zones.items() if zone_id.startswith(f"{zone.algorithm}/")]
    known = {mutant for about in tried for mutant in (*about["rejects"], *about["accepts"])}
    if set(found["accepts"]) == known:
        raise UserError(
            f"{zone_file}: it accepts every mutant of {zone.algorithm} ({len(found['accepts'])} of them)",
            "narrow it, or give it cells that tell them apart",
        )
    return f"rejects {len(found['rejects'])} of {len(found['rejects']) + len(found['accepts'])} mutants"
