"""Report stored results that a run does not use: those of another kernel, build or version of the suite, and those of
an unknown version of a stack.

Results are found by digests. So after a kernel was built or rebuilt, trials that a results file seems to hold are made
again; lines() tells the user why.
"""

import collections
from collections.abc import Iterator

from conformance.engine.benches import Bench
from conformance.lab.room import ROOM
from conformance.model.judging.session import Plan
from conformance.model.trials.trial import SHORT_DIGEST, Scheme
from conformance.results.store import Store
from conformance.support.console import count, one_line


def lines(plan: Plan, bench: Bench, store: Store, *, named: bool = False) -> Iterator[str]:
    """Yield a line if the store has results of an unknown version of a stack, one for each kernel that a plan is
    measured on while the store has trials of the plan on other kernels, and one if all its trials of the plan are of
    another build of the stack, or made by another version of the suite.

    Those of other kernels are trials of the same build of the stack in the same settings, with the same seeds. Kernels
    that are not built are passed over. `named`: count only trials on kernels of the same name, because kernels of other
    names may be different on purpose, as those of mutants are.
    """
    if store.without_version:
        number = count(store.without_version, "stored result")
        yield f'{number} in {store.path} not used: the version of the stack in them is "not found"'
    schemes = {algorithm: bench.scheme(algorithm) for algorithm, _ in plan.work}
    work, seeds = set(plan.work), plan.seeds
    kernels: dict[str, collections.Counter[tuple[str, str]]] = collections.defaultdict(collections.Counter)
    same, other = 0, 0
    for measurement in store.settled():
        trial = measurement.trial
        here = schemes.get(trial.scheme.algorithm)
        if (
            here is None
            or (trial.scheme.stack, trial.room) != (here.stack, ROOM)
            or trial.seed not in seeds
            or (trial.scheme.algorithm, trial.setting) not in work
        ):
            continue
        if (trial.scheme.stack_digest, trial.lab_digest) != (here.stack_digest, bench.lab_digest):
            other += 1
            continue
        same += 1
        if _elsewhere(trial.scheme, here) and (trial.scheme.kernel == here.kernel or not named):
            kernels[here.kernel_digest][trial.scheme.kernel_release, trial.scheme.kernel_digest] += 1
    # One file may hold many builds: only if none of it is of use was the wrong one given, or something changed.
    if other and not same:
        number = count(other, "stored result")
        yield f"{number} in {store.path} not used: another build of the stack or version of the suite made them"
    releases = {scheme.kernel_digest: scheme.kernel_release for scheme in schemes.values()}
    for digest, others in kernels.items():
        releases_digests = [(releases[digest], digest), *others]
        # Kernels of one release may be built in several ways: digests tell them apart.
        alike = len({release for release, _ in releases_digests}) < len(releases_digests)
        first, *rest = [
            f"Linux {one_line(r)}" + (f" ({d[:SHORT_DIGEST]})" if alike else "") for r, d in releases_digests
        ]
        left = " and ".join(f"{others[key]} stored results of {name}" for key, name in zip(others, rest, strict=True))
        yield f"guest kernel {first}; {left} are not used"


def _elsewhere(scheme: Scheme, here: Scheme) -> bool:
    """Return whether a scheme has another kernel, and both kernels are built."""
    digests = {scheme.kernel_digest, here.kernel_digest}
    return len(digests) == 2 and "" not in digests
