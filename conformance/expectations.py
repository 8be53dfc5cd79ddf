"""adapters/STACK/expected.json: read it, and rewrite it from results (`conformance expect update`)."""

import collections
import json

from conformance import schema, specs, store
from conformance.lab import manifest
from conformance.model import expectation
from conformance.model.errors import UserError
from conformance.model.verdict import judge_zone

FILE = "expected.json"


def load(stack):
    """The entries of a stack (a name, or the path of an adapter.json); none where it has no such file."""
    path = manifest.read(stack).folder / FILE
    return expectation.from_json(schema.load("expected", path), path) if path.exists() else ()


def update(stack, results, console):
    """Rewrite a stack's file from the verdicts on its results, and say what changed; for review. Raises UserError."""
    about = manifest.read(stack)
    before = load(stack)
    after = expectation.update(before, verdicts(about.name, results))
    path = about.folder / FILE
    text = dumps(after)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        console.print(f"{path}: as it was, {len(after)} entries")
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    for sign, entries in (("-", set(before) - set(after)), ("+", set(after) - set(before))):
        for entry in sorted(entries, key=lambda e: e.zone_id):
            n = "all" if entry.cells is None else len(entry.cells)
            console.print(f"{sign} {entry.zone_id}, {n} cells: {entry.verdict}, {entry.reason}", soft_wrap=True)
    console.print(f"{path}: {len(after)} entries; say why of those that are {expectation.UNEXPLAINED!r}")


def verdicts(stack, results):
    """ZoneVerdicts of a stack's measurements in result files, one for each zone that applies. Raises UserError."""
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in results:
        for m in store.read(path):
            if m.trial.scheme.stack == stack:
                run = m.trial.scheme, m.trial.setting.profile_digest, m.trial.room, m.trial.lab_digest
                groups[run][m.trial.setting.cell].append(m)
    if not groups:
        raise UserError(f"no measurements of stack {stack} in {', '.join(str(p) for p in results)}")
    found = {}
    for (scheme, profile_digest, _, _), cells in groups.items():
        for zone in specs.zones_for(scheme.algorithm, profile_digest):
            measured = {cell: measurements for cell, measurements in cells.items() if cell in zone.intervals}
            if not measured:
                continue
            if zone.id in found:
                raise UserError(
                    f"the results hold more than one run of {scheme.algorithm}/{stack}", "give those of one run"
                )
            found[zone.id] = judge_zone(zone, measured)
    return list(found.values())


def dumps(entries):
    """The document as text, a cell a line where they are many."""
    return json.dumps(expectation.to_json(entries), indent=2, ensure_ascii=False) + "\n"
