"""`conformance expect`: show a stack's known deviations, or rewrite them from verdicts on results, for review."""

import collections
import dataclasses
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated

from conformance.catalogue import documents, expectations
from conformance.commands.result import At, Record, Result
from conformance.engine import benches
from conformance.engine.benches import Bench, Choice
from conformance.engine.plan import plan
from conformance.engine.questions import CellQuestion, SplitQuestion, split_question
from conformance.lab import manifest
from conformance.model import expectation
from conformance.model.errors import UserError
from conformance.model.expectation import Expected, JudgedZone
from conformance.model.family import at_first_clear, judge_zones, looks_at, looks_of, unless_repeated
from conformance.model.judging.seeds import repeats_apart
from conformance.model.judging.verdict import Status
from conformance.model.networks.setting import Setting
from conformance.model.split.split_zone import SplitVerdict
from conformance.model.trials.trial import Measurement, Scheme, Trial
from conformance.results import store
from conformance.support import files, paths
from conformance.support.console import count, one_line

#: (scheme, room, lab version): measurements with the same are judged together
Run = tuple[Scheme, str, str]
Measured = Mapping[Setting, Sequence[Measurement]]


class ExpectedRecord(Record):
    zone: Annotated[str, At("zone_id")]
    #: Ids of cells; null for all of the zone's.
    cells: Annotated[list[str] | None, At("ids")]
    verdict: expectation.Known
    reason: str
    link: str | None


class UpdateRecord(Record):
    stack: str
    #: Whether expected.json changed.
    written: bool
    #: Measurements that do not count, and why.
    left_out: list[str]
    gone: list[ExpectedRecord]
    new: list[ExpectedRecord]
    entries: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Update(Result):
    """A stack's list before and after an update. `written`: whether its file changed.

    `left_out` says in words which measurements do not count.
    """

    SCHEMA = "expect-update"
    RECORD = UpdateRecord

    stack: str
    path: pathlib.Path
    before: tuple[Expected, ...]
    after: tuple[Expected, ...]
    written: bool
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


class KnownRecord(Record):
    stack: str
    entries: list[ExpectedRecord]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Known(Result):
    """The known deviations of a stack."""

    SCHEMA = "expect-show"
    RECORD = KnownRecord

    stack: str
    entries: tuple[Expected, ...]


def known(stack: str) -> Known:
    """Return the known deviations of a stack (a name, or the path of an adapter.json). Raises UserError."""
    return Known(stack=stack, entries=expectations.load(stack))


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
    found = verdicts(measured)
    judged = [v for v in found if documents.judges(v.zone_id, documents.PROFILES[about.transport])]
    after = expectation.update(before, judged, expectations.places, add)
    path = about.folder / expectations.FILE
    text = expectations.dumps(after, ours=path.is_relative_to(paths.data("adapters")))
    written = bool(after) if not path.exists() else path.read_text(encoding="utf-8") != text
    if written:
        files.write(path, text)
    return Update(stack=stack, path=path, before=before, after=after, written=written, left_out=left_out)


def runs(stack: str, results: Sequence[pathlib.Path | str]) -> dict[Run, dict[Setting, list[Measurement]]]:
    """Return {(Scheme, room, lab version): {setting: measurements}} of a stack's lines in files. Raises UserError.

    Digests decide what is one run: if schemes differ in names only, the first one's names are used.
    """
    found: dict[Run, dict[Setting, list[Measurement]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    first: dict[tuple[str, str, str], Scheme] = {}
    unbuilt = 0
    for m in store.read(*results):
        scheme = m.trial.scheme
        if scheme.stack != stack:
            continue
        if not scheme.kernel_digest:
            unbuilt += 1  # it says nothing about the stack
            continue
        scheme = first.setdefault((scheme.algorithm, scheme.stack_digest, scheme.kernel_digest), scheme)
        trial = dataclasses.replace(m.trial, scheme=scheme)
        found[scheme, trial.room, trial.lab_digest][trial.setting].append(dataclasses.replace(m, trial=trial))
    if not found:
        but = f", except {unbuilt} on kernels that are not built" if unbuilt else ""
        raise UserError(f"no measurements of stack {stack} in {_names(results)}{but}")
    return found


def _of_today(
    all_runs: dict[Run, dict[Setting, list[Measurement]]], bench: Bench, results: Sequence[pathlib.Path | str]
) -> tuple[dict[Run, dict[Setting, list[Measurement]]], tuple[str, ...]]:
    """Return the runs that this bench would make today, and, in words, the others. Raises UserError if none is left."""
    kept = {}
    left: collections.Counter[tuple[str, str]] = collections.Counter()
    for run, measured in all_runs.items():
        trial = next(m.trial for found in measured.values() for m in found)
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SplitZoneVerdict:
    """The verdicts on the checks of a split zone, by the checks' ids. A ZoneVerdict holds those on cells."""

    zone_id: str
    verdicts: Mapping[str, SplitVerdict]
    #: how many cells and split paths share the chance of a false alarm
    family: int


def verdicts(all_runs: Mapping[Run, Measured]) -> list[JudgedZone]:
    """Return the verdicts of runs, one for each zone that applies. Raises UserError if a zone has two."""
    found: dict[str, JudgedZone] = {}
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


def _verdicts(algorithm: str, measured: Measured) -> Iterator[JudgedZone]:
    """Yield the verdicts of each zone that applies to one run, which is given as {setting: measurements}."""
    cells: list[CellQuestion] = []
    splits: list[SplitQuestion] = []
    for digest in {setting.profile_digest: None for setting in measured}:
        settings = {setting.point: setting for setting in measured if setting.profile_digest == digest}
        cells += [
            CellQuestion(zone=zone, setting=setting, algorithm=algorithm)
            for zone in documents.zones_for(algorithm, next(iter(settings.values())))
            for place, setting in settings.items()
            if place in zone.intervals
        ]
        for zone in documents.split_zones_for(algorithm, digest):
            checks_here = zone.checks_within(setting.cell for setting in settings.values())
            splits += [split_question(zone, check) for check in checks_here]
    family = plan([*cells, *splits], trials=1).family
    zones = {question.zone.id: question.zone for question in cells}
    yield from judge_zones(
        [
            (zone, {q.place: measured[q.setting] for q in cells if q.zone.id == zone_id})
            for zone_id, zone in zones.items()
        ],
        family,
    )
    checks: dict[str, dict[str, SplitVerdict]] = collections.defaultdict(dict)
    for question in splits:
        checks[question.zone.id][question.place] = _of_check(question, measured, family)
    for zone_id, held in checks.items():
        yield SplitZoneVerdict(zone_id=zone_id, verdicts=held, family=family)


def _of_check(question: SplitQuestion, measured: Measured, family: int) -> SplitVerdict:
    """Return the verdict on a check; a violation that trials with fresh seeds do not show again is withdrawn."""
    apart = {setting: repeats_apart(measured[setting]) for setting in question.settings}
    looks = looks_of(len(own) for own, _ in apart.values())
    verdict = _at_first_clear(question, {setting: own for setting, (own, _) in apart.items()}, family, looks)
    again = {setting: fresh for setting, (_, fresh) in apart.items()}
    if verdict.status is not Status.VIOLATES or not all(again.values()):
        return verdict
    return unless_repeated(verdict, _at_first_clear(question, again, 1, looks), looks)


def _at_first_clear(question: SplitQuestion, measured: Measured, family: int, usual: Sequence[int]) -> SplitVerdict:
    """Return the verdict at the first look that is clear; if it passes, it is sure as soon as any later look is."""
    available = {setting: len(found) for setting, found in measured.items()}
    looks = looks_at(available.values(), usual)

    def first(numbers: Mapping[Setting, int]) -> Measured:
        return {setting: found[: numbers[setting]] for setting, found in measured.items()}

    def judge(numbers: Mapping[Setting, int], more: bool) -> SplitVerdict:
        return question.judge(first(numbers), family, more)

    def at(is_clear: Callable[[SplitVerdict], bool]) -> SplitVerdict:
        def unclear(found: SplitVerdict, numbers: Mapping[Setting, int]) -> Collection[Setting]:
            return () if is_clear(found) else question.unclear(found, first(numbers))

        return at_first_clear(looks, available, judge, unclear, ends=True)

    found = at(lambda one: one.status is not Status.INCONCLUSIVE)
    if found.status.passes and not found.sure and at(lambda one: one.sure).sure:
        # A known deviation gets more trials to be sure. These extra trials may not turn the verdict.
        found = dataclasses.replace(found, findings=tuple(dataclasses.replace(f, sure=True) for f in found.findings))
    return found
