"""Read adapters/STACK/expected.json: what a stack is known to do wrong; commands/expect.py rewrites it from results."""

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from conformance.catalogue import documents
from conformance.lab import manifest
from conformance.model.errors import UserError, located
from conformance.model.judging import expectation, kinds
from conformance.model.judging.expectation import Expected, Known
from conformance.model.judging.zone import id_parts
from conformance.model.networks.place import Point
from conformance.support import schema

if TYPE_CHECKING:
    from conformance.engine.benches import Bench

FILE = "expected.json"


def load(stack: str) -> tuple[Expected, ...]:
    """Return the entries of a stack (a name, or the path of an adapter.json); none if it has no such file."""
    about = manifest.read(stack)
    path = about.folder / FILE
    # A link that leads nowhere is a mistake, and does not mean that nothing is known.
    if not os.path.lexists(path):
        return ()
    entries = expectation.from_json(schema.load("expected", path), path)
    for at, entry in enumerate(entries):
        # An entry for a zone that does not exist would never match, and nobody would notice.
        with located(f"{path}: /expected/{at}/zone"):
            _ = documents.split_part(entry.zone_id) or documents.shipped_path(entry.zone_id)
        if not documents.judges(entry.zone_id, documents.PROFILES[about.transport]):
            why = f"stacks over {about.transport} are not judged by zone {entry.zone_id!r}"
            raise UserError(f"{path}: /expected/{at}/zone: {why}", "remove the entry")
        algorithm, offered = id_parts(entry.zone_id)[0], about.offered()
        if offered and algorithm not in offered and entry.verdict is not Known.UNSUPPORTED:
            why = f"{about.name} does not offer {algorithm}"
            raise UserError(f"{path}: /expected/{at}/zone: {why}", "remove the entry")
        if strange := expectation.ordered((entry.cells or frozenset()) - places(entry.zone_id)):
            raise UserError(f"{path}: /expected/{at}/cells: zone {entry.zone_id} has no {strange[0].id}")
    return entries


def of(bench: "Bench") -> tuple[Expected, ...]:
    """Return the entries with which a Bench's measurements are compared. Raise UserError.

    An interop image is not the stack of an adapter, so nothing is known about it. Entries of algorithms whose kernel is
    not built are skipped: they cannot be checked here.
    """
    if bench.choice.interop_rootfs:
        return ()
    return tuple(e for e in load(bench.choice.stack) if bench.scheme(id_parts(e.zone_id)[0]).kernel_digest)


def places(zone_id: str) -> frozenset[Point]:
    """Return what an entry may be about: places of a zone, its kinds of cells, or its checks. Raise UserError."""
    if checks := documents.split_part(zone_id):
        return frozenset(check.place for check in checks)
    zone = documents.zone(documents.zone_path(zone_id))
    if zone.by_kind:
        return frozenset(rule.place for rule in kinds.rules(zone, zone.places))
    return frozenset(zone.places)


def dumps(entries: Iterable[Expected], ours: bool = True) -> str:
    """Return the document as text, one cell per line. `ours`: whether the file is among the adapters that ship, from
    where the relative path of its schema leads to it.
    """
    document = expectation.to_json(entries)
    if not ours:
        del document["$schema"]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
