"""The sides of `conformance compare`: each is a results file, a stack, or a stack on a kernel."""

import dataclasses
import pathlib
import shlex
from collections.abc import Sequence

from conformance.commands import compare_clauses, compare_features
from conformance.commands.common import require_offered
from conformance.commands.compare_features import side_of
from conformance.engine import benches
from conformance.engine.benches import Bench, Choice
from conformance.lab.room import ROOM
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging.question import Key
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Scheme, family_of
from conformance.results import features, store
from conformance.support import paths

_RESULTS = (".jsonl", ".jsonl.xz", ".jsonl.gz")
#: the room in which trials run, and the lab version (lab/version.py)
Lab = tuple[str, str]
Sysctls = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stack:
    """A side that is measured."""

    given: str
    bench: Bench
    #: sysctls of the guest's hosts, besides those of the profile
    sysctls: Sysctls = ()

    def under(self, setting: Setting) -> Setting:
        """Return a setting with this side's sysctls. Raises UserError if a sysctl's name does not begin with `net.`."""
        together = tuple(sorted((dict(setting.sysctls) | dict(self.sysctls)).items()))
        return dataclasses.replace(setting, network=dataclasses.replace(setting.network, sysctls=together))

    def algorithms(self) -> list[str]:
        """Return the algorithms that the stack offers, by this suite's names."""
        return list(self.bench.adapter.manifest.offered())

    def labs(self, algorithm: str) -> set[Lab]:
        """Return the one lab in which this side is measured."""
        return {(ROOM, self.bench.lab_digest)}

    def scheme(self, algorithm: str) -> Scheme:
        """Return the scheme of an algorithm. Raises UserError if the algorithm is not offered or cannot run."""
        require_offered(self.bench, algorithm)
        if why_not := self.bench.place(algorithm).why_not:
            raise UserError(f"{self.given}: {why_not}")
        return self.bench.scheme(algorithm)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Results:
    """A side that was measured before: a results file, and the features of its traced trials."""

    given: str
    measurements: Sequence[Measurement]
    features: Sequence[features.TrialFeatures]
    #: none to be set: each measured setting holds its own
    sysctls: Sysctls = ()

    def algorithms(self) -> list[str]:
        """Return the algorithms that the file has measurements of."""
        return list(dict.fromkeys(m.scheme.algorithm for m in self.measurements))

    def scheme(self, algorithm: str) -> Scheme:
        """Return the one scheme that the file has of an algorithm.

        Raises UserError if there is none, if there are several, or if its trials were made in several labs.
        """
        held_schemes = [m.scheme for m in self.measurements] + [f.trial.scheme for f in self.features]
        schemes = list(
            {(s.stack, s.stack_digest, s.kernel_digest): s for s in held_schemes if s.algorithm == algorithm}.values()
        )
        if len(schemes) != 1:
            ids = ", ".join(f"{s.id} (build {s.stack_digest[:8]}, Linux {s.kernel_release})" for s in schemes)
            raise UserError(
                f"{self.given} holds {ids or 'no results'} for {algorithm}",
                "give a file with results of one build" if schemes else "measure it, or choose another --algorithm",
            )
        if len(labs := self.labs(algorithm)) > 1:
            versions = ", ".join(f"{room} lab {digest[:8]}" for room, digest in sorted(labs))
            raise UserError(f"{self.given} has {schemes[0].id} from {versions}", "give a file with results of one lab")
        return schemes[0]

    def labs(self, algorithm: str) -> set[Lab]:
        """Return the labs in which its trials of an algorithm were made, traced or not."""
        trials = [m.trial for m in self.measurements] + [f.trial for f in self.features]
        return {(trial.room, trial.lab_digest) for trial in trials if trial.scheme.algorithm == algorithm}

    def measured(self, algorithm: str) -> dict[Key, list[Measurement]]:
        """Return {(algorithm, setting): measurements in order of seed}."""
        in_order = sorted(self.measurements, key=lambda m: m.trial.seed)
        return grouped(((algorithm, m.setting), m) for m in in_order if m.scheme.algorithm == algorithm)

    def traits(self, algorithm: str) -> compare_features.SideSamples:
        """Return the features of an algorithm's traced trials."""
        return side_of([f for f in self.features if f.trial.scheme.algorithm == algorithm])


def sysctls(text: str) -> Sysctls:
    """Parse `net.ipv4.NAME=VALUE,...`. Raises UserError."""
    pairs = []
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or not value:
            raise UserError(f"sysctls {text!r} are not of the form net.ipv4.NAME=VALUE,...")
        pairs.append((name, value))
    return tuple(sorted(pairs))


def is_results(text: str) -> bool:
    """Return whether a side is given as a results file."""
    return text.endswith(_RESULTS)


def parse(text: str, choice: Choice, sysctls: Sysctls = ()) -> Stack | Results:
    """Parse a side: `results.jsonl`, STACK, STACK@KERNEL, or @KERNEL for `choice`'s stack. Raises UserError."""
    path = pathlib.Path(text)
    if is_results(text):
        if sysctls:
            raise UserError(f"{text} was already measured, so no sysctl can be set for it", "leave that option out")
        return Results(
            given=text, measurements=store.read(path), features=features.read(features.beside(path)),
        )  # fmt: skip
    stack, at, kernel = (
        (text, "", "") if paths.exists(path) else text.rpartition("@") if "@" in text else (text, "", "")
    )
    if at and not kernel:
        raise UserError(f"{text}: the name of a kernel must follow the @", "give STACK@KERNEL, such as quinn@6.1")
    chosen = dataclasses.replace(choice, stack=stack or choice.stack)
    given = " ".join([text, *(f"{name}={value}" for name, value in sysctls)])
    bench = benches.find(dataclasses.replace(chosen, kernel=kernel) if kernel else chosen)
    return Stack(given=given, bench=bench, sysctls=sysctls)


def baseline(path: str, stack: str, algorithms: Sequence[str]) -> Results:
    """Return the features that a results file has of a stack, as a side, and what it does when its network changes.

    Raises UserError if it has none of one of the algorithms.
    """
    kept = features.beside(path)
    held = [f for f in features.read(kept) if f.trial.scheme.stack == stack]
    lacking = [a for a in algorithms if a not in {f.trial.scheme.algorithm for f in held}]
    if lacking:
        why = "were read by another version of the suite" if features.stale(kept) else "are missing"
        command = f"conformance gate {' '.join(lacking)} --features --results {shlex.quote(path)}"
        raise UserError(
            f"{kept}: features of {stack}'s {', '.join(lacking)} {why}", f"measure the baseline with `{command} ...`"
        )
    builds = {f.trial.scheme for f in held}
    kept_lines = store.read(path) if pathlib.Path(path).exists() else []
    events = [m for m in kept_lines if compare_clauses.is_change(m.setting) and m.scheme in builds]
    return Results(given=path, measurements=events, features=held)


def alike(first: Stack | Results, second: Stack | Results) -> bool:
    """Return whether the lab and the sysctls of both sides are the same, so that one build cannot differ.

    Return False for two files, which are compared in any case: that costs nothing, as both were measured before.
    """
    if isinstance(first, Results) and isinstance(second, Results):
        return False
    return _labs(first) == _labs(second) and first.sysctls == second.sysctls


def one_build(first: Scheme, second: Scheme) -> bool:
    """Return whether two schemes are the same build on the same kernel, and so must behave alike."""
    return (first.stack_digest, first.kernel_digest) == (second.stack_digest, second.kernel_digest)


def on_two_kernels(both: tuple[Stack | Results, Stack | Results], schemes: Sequence[tuple[Scheme, Scheme]]) -> bool:
    """Return whether the sides are the same build and differ only in their kernels or their sysctls."""
    first, second = both
    return bool(schemes) and all(
        x.stack_digest == y.stack_digest and (x.kernel_digest != y.kernel_digest or first.sysctls != second.sysctls)
        for x, y in schemes
    )


def _labs(side: Stack | Results) -> set[str]:
    if isinstance(side, Stack):
        return {side.bench.lab_digest}
    return {m.trial.lab_digest for m in side.measurements} | {f.trial.lab_digest for f in side.features}


def require_one_stack(first: Scheme, second: Scheme) -> None:
    """Raise UserError if two schemes are of different stacks: a difference is then not a change of either."""
    if family_of(first.stack) != family_of(second.stack):
        raise UserError(
            f"{first.stack} and {second.stack} are different stacks",
            "compare two builds of one, or give --across-stacks if you mean to compare these",
        )


def common(first: Stack | Results, second: Stack | Results) -> list[str]:
    """Return the algorithms that both sides have, in the first's order. Raises UserError if there are none."""
    theirs = second.algorithms()
    shared_algorithms = [algorithm for algorithm in first.algorithms() if algorithm in theirs]
    if not shared_algorithms:
        raise UserError(f"{first.given} and {second.given} have no algorithm in common", "name one with --algorithm")
    return shared_algorithms
