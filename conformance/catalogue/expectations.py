"""adapters/STACK/expected.json: read it, and rewrite it from results (`conformance expect update`)."""

import collections
import dataclasses
import json
import os

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.lab import manifest
from conformance.model import expectation
from conformance.model.errors import UserError, located
from conformance.model.split import split_zone
from conformance.model.verdict import ZoneVerdict, judge_zone
from conformance.model.zone import Zone
from conformance.results import store
from conformance.support import files, paths, schema
from conformance.support.console import count, one_line

FILE = "expected.json"


def load(stack):
    """The entries of a stack (a name, or the path of an adapter.json); none where it has no such file."""
    about = manifest.read(stack)
    path = about.folder / FILE
    # A link that leads nowhere is no sign that nothing is known.
    if not os.path.lexists(path):
        return ()
    entries = expectation.from_json(schema.load("expected", path), path)
    for at, entry in enumerate(entries):
        # A name that nothing has would never be found, and never be missed.
        with located(f"{path}: /expected/{at}/zone"):
            documents.shipped_path(entry.zone_id)
        if not documents.judges(entry.zone_id, documents.PROFILES[about.transport]):
            why = f"stacks over {about.transport} are not judged by zone {entry.zone_id!r}"
            raise UserError(f"{path}: /expected/{at}/zone: {why}", "take the entry out")
        if strange := sorted((entry.cells or frozenset()) - places(entry.zone_id)):
            name = getattr(strange[0], "id", strange[0])
            raise UserError(f"{path}: /expected/{at}/cells: zone {entry.zone_id} has no {name}")
    return entries


def of(bench):
    """The entries that what a Bench measures is compared with. Raises UserError.

    None for an interop image, which is no adapter's stack; none of an algorithm whose kernel is not built: whether it
    still does what it is known for, nobody can see.
    """
    if bench.choice.interop_rootfs:
        return ()
    return tuple(e for e in load(bench.choice.stack) if bench.scheme(e.zone_id.partition("/")[0]).kernel_digest)


def places(zone_id):
    """All that an entry may be about: cells of a zone that ships, or ids of a split zone's checks. Raises UserError."""
    zone = documents.any_zone(documents.zone_path(zone_id))
    return frozenset(zone.cells if isinstance(zone, Zone) else (check.id for check in zone.checks))


def update(stack, results, console, choice=None, add=True):
    """Rewrite a stack's file from the verdicts on its results, and say what changed; for review. Raises UserError.

    Without `add` only what does not happen any more is taken out.

    Only what an engine.Choice would measure today counts: what another build did says nothing of this one. Without a
    choice any build does, but one at a time.
    """
    about = manifest.read(stack)
    before = load(stack)
    measured = runs(about.name, results)
    if choice:
        measured = _of_today(measured, benches.find(choice), results, console)
    found = verdicts(measured)
    judged = [v for v in found if documents.judges(v.zone_id, documents.PROFILES[about.transport])]
    after = expectation.update(before, judged, places, add)
    path = about.folder / FILE
    text = dumps(after, ours=path.is_relative_to(paths.data("adapters")))
    if not path.exists() and not after:
        console.print(f"{stack} does as its zones say in these results: there is nothing to keep", soft_wrap=True)
        return
    if path.exists() and path.read_text(encoding="utf-8") == text:
        console.print(f"{path}: as it was, {count(len(after), 'entry', 'entries')}")
        return
    files.write(path, text)
    for sign, entries in (("-", set(before) - set(after)), ("+", set(after) - set(before))):
        for entry in sorted(entries, key=lambda e: e.zone_id):
            n = "all cells" if entry.cells is None else count(len(entry.cells), "cell")
            what = f"{entry.zone_id}, {n}: {entry.verdict}, {one_line(entry.reason)}"
            console.print(f"{sign} {what}", soft_wrap=True)
    unexplained = any(entry.reason == expectation.UNEXPLAINED for entry in after)
    ask = f"; say why of what is {expectation.UNEXPLAINED!r}" if unexplained else ""
    console.print(f"{path}: {count(len(after), 'entry', 'entries')}{ask}", soft_wrap=True)


def runs(stack, results):
    """{(Scheme, room, lab digest): {setting: measurements}} of a stack's lines in result files. Raises UserError.

    Digests say what is one run: of schemes that differ in names only the first one's names are taken.
    """
    found, first, unbuilt = collections.defaultdict(lambda: collections.defaultdict(list)), {}, 0
    for m in store.read(*results):
        scheme = m.trial.scheme
        if scheme.stack != stack:
            continue
        if not scheme.kernel_digest:
            unbuilt += 1  # nothing is known of the stack
            continue
        scheme = first.setdefault((scheme.algorithm, scheme.stack_digest, scheme.kernel_digest), scheme)
        trial = dataclasses.replace(m.trial, scheme=scheme)
        found[scheme, trial.room, trial.lab_digest][trial.setting].append(dataclasses.replace(m, trial=trial))
    if not found:
        but = f" but {unbuilt} on kernels that are not built" if unbuilt else ""
        raise UserError(f"no measurements of stack {stack} in {_names(results)}{but}")
    return found


def _of_today(all_runs, bench, results, console):
    """Those of the runs that this bench would make; says what it leaves out. Raises UserError where that is all."""
    kept, left = {}, collections.Counter()
    for run, measured in all_runs.items():
        trial = next(m.trial for found in measured.values() for m in found)
        (same,) = bench.trials(trial.scheme.algorithm, trial.setting, [trial.seed])
        if same.key == trial.key:
            kept[run] = measured
        else:
            left[one_line(trial.scheme.id), _unlike(trial, same)] += sum(map(len, measured.values()))
    others = "; ".join(f"{n} measurements of {scheme}, of another {unlike}" for (scheme, unlike), n in left.items())
    if not kept:
        raise UserError(
            f"{_names(results)}: no measurement of {bench.adapter.name} is as it would be made today: {others}",
            "measure again, name the --client, --kernel and --lab they were made with, or take them with --any-build",
        )
    if left:
        console.print(f"left out: {others}", soft_wrap=True)
    return kept


def _unlike(trial, same):
    """In what a Trial differs from the same one of today, in words."""
    was, is_now = trial.scheme, same.scheme
    said = []
    for what, name, digest in (
        ("build", "stack_version", "stack_digest"),
        ("kernel", "kernel_release", "kernel_digest"),
    ):
        if getattr(was, digest) != getattr(is_now, digest):
            # One version may be built in many ways.
            by = name if getattr(was, name) != getattr(is_now, name) else digest
            said.append(f"{what} ({one_line(getattr(was, by))}; now {one_line(getattr(is_now, by))})")
    return " and ".join(said) or "lab"


def _names(results):
    return ", ".join(str(path) for path in results)


def verdicts(all_runs):
    """ZoneVerdicts of runs, one for each zone that applies. Raises UserError where one has two."""
    found = {}
    for (scheme, _, _), measured in all_runs.items():
        for judged in _verdicts(scheme.algorithm, measured):
            if judged.zone_id in found:
                raise UserError(
                    f"the results hold more than one run of {scheme.algorithm}/{scheme.stack}: builds, kernels or labs"
                    " differ",
                    "give the results of one run",
                )
            found[judged.zone_id] = judged
    return list(found.values())


def _verdicts(algorithm, measured):
    """Yield the ZoneVerdict of each zone that {setting: measurements} of one run are about."""
    for digest in {setting.profile_digest: None for setting in measured}:
        cells = {setting.cell: found for setting, found in measured.items() if setting.profile_digest == digest}
        for zone in documents.zones_for(algorithm, digest):
            if held := {cell: found for cell, found in cells.items() if cell in zone.intervals}:
                yield judge_zone(zone, held)
        for zone in documents.split_zones_for(algorithm, digest):
            checks = zone.checks_within(cells)
            through = {check.id: measured[path] for check in checks if (path := _split_path(zone, check)) in measured}
            # As pytest counts them: cells, and paths that were split.
            family = len({cell for check in checks for cell in check.cells}) + len(through)
            held = {
                check.id: split_zone.judge(
                    zone, check, {cell: cells[cell] for cell in check.cells}, through.get(check.id), family
                )
                for check in checks
            }
            if held:
                yield ZoneVerdict(zone_id=zone.id, verdicts=held, family=family)


def _split_path(zone, check):
    """The Setting of a check's path, split, or None of a check that is about predictions alone."""
    return documents.split_path(zone.profile, check.path.segments) if check.measured else None


def dumps(entries, ours=True):
    """The document as text, a cell a line where they are many. `ours`: it lies where it finds its schema."""
    document = expectation.to_json(entries)
    if not ours:
        del document["$schema"]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
