"""`--baseline RESULTS`: zones made from what the same stack did before: a gate fails on change, not on deviation.

They are derived as any zone is (conformance/catalogue/derive.py), by the same margin rule, and a change is judged as
strictly. What an algorithm's document predicts is no part of them: the stack may never have done so.
"""

import collections
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from conformance.catalogue import derive, documents
from conformance.model import zone as zones
from conformance.model.errors import UserError, located
from conformance.model.trial import SHORT_DIGEST, Measurement, Outcome, Scheme
from conformance.results import store
from conformance.support.console import one_line


def zones_of(measurements: Sequence[Measurement], profile: str) -> list[tuple[str, zones.Zone]]:
    """Return [(kind, Zone)] of each algorithm in a stack's measurements. Raises UserError where they cannot serve."""
    found = []
    for algorithm in sorted({m.trial.scheme.algorithm for m in measurements}):
        for kind, under in documents.kinds(profile).items():
            held = [
                m for m in measurements if (m.trial.scheme.algorithm, m.trial.setting.profile) == (algorithm, under)
            ]
            if under != profile:
                held = _enough(held)
            if not held:
                continue
            document = derive.derive(
                held, algorithm, "as it was", documents.metric_of(kind), under, f"{kind}-baseline", baseline=True
            )
            made = zones.from_json(document, f"baseline, {algorithm}")
            # Nobody chose cells of a baseline: its smoke tier is that of the algorithm's zone, where it has one.
            files = [p for p in documents.zone_files(kind, profile) if p.parent.name == algorithm]
            smoke = tuple(c for p in files for c in documents.zone(p).smoke if c in made.intervals)
            found.append((kind, dataclasses.replace(made, smoke=smoke)))
    return found


def _enough(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return those of cells that have trials enough. `identify` has fewer: it makes no baseline, and hinders none."""
    trials = collections.Counter(m.trial.setting for m in measurements)
    return [m for m in measurements if trials[m.trial.setting] >= derive.MIN_TRIALS]


def read(path: pathlib.Path | str, stack: str, profile: str) -> list[tuple[str, zones.Zone]]:
    """Return [(kind, Zone)] of a results file's measurements of a stack that is judged under `profile`. Raises
    UserError.
    """
    profiles = set(documents.kinds(profile).values())
    own = [
        m
        for m in store.read(path)
        if m.trial.scheme.stack == stack and m.trial.setting.profile in profiles and not m.trial.setting.segments
    ]
    measured = [m for m in own if m.outcome is Outcome.OK]
    if not any(m.trial.setting.profile == profile for m in measured):
        raise UserError(f"{path} has no measurements of stack {stack} under profile {profile}", "measure it first")
    # What was unsupported or an error then is no baseline, and neither is a cell with one of them.
    bad = {(m.trial.scheme.algorithm, m.trial.setting) for m in own if m.outcome is not Outcome.OK}
    with located(path):
        return zones_of([m for m in measured if (m.trial.scheme.algorithm, m.trial.setting) not in bad], profile)


def kernel_notes(
    path: pathlib.Path | str, made: Iterable[zones.Zone], scheme_of: Callable[[str], Scheme]
) -> Iterator[str]:
    """Yield a line where a baseline's zones were measured on another kernel than what is compared with them.

    `scheme_of`: what measures an algorithm now. Of a stack in user space the kernel is not under test, though it may
    show. Where the kernel's TCP is, a baseline of another kernel is refused: raises UserError.
    """
    told: set[str] = set()
    for zone in made:
        here = scheme_of(zone.algorithm)
        for source, about in zone.references.items():
            digest, release = about["kernel_digest"], source.removeprefix("linux-")
            if not here.kernel_digest or digest == here.kernel_digest:
                continue
            by_digest = release == here.kernel_release  # one release may be built in many ways
            was, is_now = (
                f"Linux {one_line(name)}" + (f" ({d[:SHORT_DIGEST]})" if by_digest else "")
                for name, d in ((release, digest), (here.kernel_release, here.kernel_digest))
            )
            if here.in_kernel:
                raise UserError(
                    f"baseline {path} was measured on {was}, and this run is on {is_now}, whose TCP is what is tested",
                    "measure the baseline anew, name its kernel with --kernel, or compare two kernels with"
                    " `conformance compare`",
                )
            told.add(f"baseline {path} was measured on guest kernel {was}, this run is on {is_now}: that may show, too")
    yield from sorted(told)
