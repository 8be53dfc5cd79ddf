"""`conformance expect`: show a stack's known deviations, or rewrite them from verdicts on results, for review."""

import collections
import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from conformance.catalogue import documents, expectations
from conformance.catalogue.questions import split_questions, zone_questions
from conformance.commands.result import Result
from conformance.engine import benches
from conformance.engine.benches import Bench, Choice
from conformance.lab import manifest
from conformance.model.errors import UserError
from conformance.model.judging import expectation
from conformance.model.judging.expectation import Expected
from conformance.model.judging.question import MeasuredSettings, Question
from conformance.model.judging.session import by_zone, stored
from conformance.model.judging.verdict import ZoneVerdict
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, RunKey, Scheme, Trial
from conformance.results import store
from conformance.support import files, paths
from conformance.support.console import count, one_line


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Update(Result):
    """A stack's list before and after an update."""

    SCHEMA = "expect-update"
    SHOWN = ("stack", "written", "left_out", "gone", "new", "entries")

    stack: str
    path: pathlib.Path
    before: tuple[Expected, ...]
    after: tuple[Expected, ...]
    #: Whether expected.json changed.
    written: bool
    #: Measurements that do not count, and why.
    left_out: tuple[str, ...]

    @property
    def gone(self) -> list[Expected]:
        """The entries that were removed."""
        return [entry for entry in self.before if entry not in self.after]

    @property
    def new(self) -> list[Expected]:
        """The entries that were added."""
        return [entry for entry in self.after if entry not in self.before]

    @property
    def entries(self) -> int:
        """How many entries there are now."""
        return len(self.after)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KnownDeviations(Result):
    """The known deviations of a stack."""

    SCHEMA = "expect-show"

    stack: str
    entries: tuple[Expected, ...]


def known(stack: str) -> KnownDeviations:
    """Return the known deviations of a stack (a name, or the path of an adapter.json). Raises UserError."""
    return KnownDeviations(stack=stack, entries=expectations.load(stack))


def update(stack: str, results: Sequence[pathlib.Path | str], choice: Choice | None = None, add: bool = True) -> Update:
    """Rewrite a stack's expected.json from the verdicts on its results. Raises UserError.

    Without `add`, deviations that no longer happen are removed, and none is added. Only measurements that `choice`
    would give today count, because another build says nothing about this one. Without a choice, measurements of any
    build count, but all must be of the same one.
    """
    about = manifest.read(stack)
    before = expectations.load(stack)
    measured = runs(about.name, results)
    left_out: tuple[str, ...] = ()
    if choice:
        measured, left_out = _of_today(measured, benches.find(choice), results)
    zone_verdicts = verdicts(measured)
    judged = [v for v in zone_verdicts if documents.judges(v.zone_id, documents.PROFILES[about.transport])]
    after = expectation.update(before, judged, expectations.places, add)
    path = about.folder / expectations.FILE
    text = expectations.dumps(after, ours=path.is_relative_to(paths.data("adapters")))
    written = bool(after) if not path.exists() else path.read_text(encoding="utf-8") != text
    if written:
        files.write(path, text)
    return Update(stack=stack, path=path, before=before, after=after, written=written, left_out=left_out)


def runs(stack: str, results: Sequence[pathlib.Path | str]) -> dict[RunKey, dict[Setting, list[Measurement]]]:
    """Return {(Scheme, room, lab version): {setting: measurements}} of a stack's lines in files. Raises UserError.

    Digests decide what is one run: if schemes differ in names only, the first one's names are used.
    """
    measurements: dict[RunKey, dict[Setting, list[Measurement]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    first: dict[tuple[str, str, str], Scheme] = {}
    unbuilt = 0
    for m in store.read(*results):
        scheme = m.scheme
        if scheme.stack != stack:
            continue
        if not scheme.kernel_digest:
            unbuilt += 1  # it says nothing about the stack
            continue
        scheme = first.setdefault((scheme.algorithm, scheme.stack_digest, scheme.kernel_digest), scheme)
        trial = dataclasses.replace(m.trial, scheme=scheme)
        measurements[trial.run][trial.setting].append(dataclasses.replace(m, trial=trial))
    if not measurements:
        but = f", except {unbuilt} on kernels that are not built" if unbuilt else ""
        raise UserError(f"no measurements of stack {stack} in {_names(results)}{but}")
    return measurements


def _of_today(
    all_runs: dict[RunKey, dict[Setting, list[Measurement]]], bench: Bench, results: Sequence[pathlib.Path | str]
) -> tuple[dict[RunKey, dict[Setting, list[Measurement]]], tuple[str, ...]]:
    """Return the runs that this bench would make today, and, in words, the others. Raises UserError if none is left."""
    kept = {}
    left: collections.Counter[tuple[str, str]] = collections.Counter()
    for run, measured in all_runs.items():
        trial = next(m.trial for measurements in measured.values() for m in measurements)
        (same,) = bench.trials(trial.scheme.algorithm, trial.setting, [trial.seed])
        if same.key == trial.key:
            kept[run] = measured
        else:
            left[one_line(trial.scheme.id), _unlike(trial, same)] += sum(map(len, measured.values()))
    left_out = tuple(
        f"{count(n, 'measurement')} of {scheme} from another {unlike}" for (scheme, unlike), n in left.items()
    )
    if not kept:
        others = "; ".join(left_out)
        raise UserError(
            f"{_names(results)}: no measurement of {bench.adapter.name} is of today's build, kernel and lab: {others}",
            "measure again, name the --client and --kernel they were made with, or take them with --any-build",
        )
    return kept, left_out


def _unlike(trial: Trial, same: Trial) -> str:
    """Return in words how a Trial differs from the same trial of today."""
    was, is_now = trial.scheme, same.scheme
    said = []
    for what, name, digest in (
        ("build", "stack_version", "stack_digest"),
        ("kernel", "kernel_release", "kernel_digest"),
    ):
        if getattr(was, digest) != getattr(is_now, digest):
            # Builds of one version may differ; their digests tell them apart.
            by = name if getattr(was, name) != getattr(is_now, name) else digest
            said.append(f"{what} ({one_line(getattr(was, by))}; now {one_line(getattr(is_now, by))})")
    return " and ".join(said) or "lab"


def _names(results: Sequence[pathlib.Path | str]) -> str:
    return ", ".join(str(path) for path in results)


def verdicts(all_runs: Mapping[RunKey, MeasuredSettings]) -> list[ZoneVerdict]:
    """Return the verdicts of runs, one for each zone that applies. Raises UserError if a zone has two."""
    zone_verdicts: dict[str, ZoneVerdict] = {}
    for (scheme, _, _), measured in all_runs.items():
        for judged in _verdicts(scheme.algorithm, measured):
            if judged.zone_id in zone_verdicts:
                raise UserError(
                    f"the results hold more than one run of {scheme.algorithm}/{scheme.stack}: builds, kernels or labs"
                    " differ",
                    "give the results of one run",
                )
            zone_verdicts[judged.zone_id] = judged
    return list(zone_verdicts.values())


def _verdicts(algorithm: str, measured: MeasuredSettings) -> Iterable[ZoneVerdict]:
    """Return the verdicts of each zone that applies to one run, which is given as {setting: measurements}."""
    questions: list[Question] = []
    parts = [checks for profile in documents.PROFILES.values() for checks in documents.split_checks(profile).values()]
    for digest in {setting.profile_digest: None for setting in measured}:
        settings = {setting.point: setting for setting in measured if setting.profile_digest == digest}
        for zone in documents.zones_for(algorithm, next(iter(settings.values()))):
            questions += zone_questions(zone, settings.values(), algorithm)
        for checks in parts:
            if (checks[0].heatmap.algorithm, checks[0].heatmap.profile_digest) == (algorithm, digest):
                questions += split_questions(checks, settings)
    lines = {question: {setting: measured[setting] for setting in question.settings} for question in questions}
    return by_zone(stored(lines)).values() if lines else ()
