"""`--baseline RESULTS`: make zones from earlier results of the same stack, so that a gate fails on change, not on
deviation.

These zones are derived as any zone is (conformance/catalogue/derive.py), by the same margin rule, and a change is
judged as strictly. They do not rest on what an algorithm's document predicts, because the stack may never have done
that.
"""

import collections
import dataclasses
import math
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from conformance.catalogue import derive, documents, own_kind, scenarios
from conformance.model.errors import UserError, located
from conformance.model.judging import zone as zones
from conformance.model.judging.question import Key, Measured, Question, Rule
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.judging.zone import NO_MARGIN, Interval, Zone
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import SHORT_DIGEST, Measurement, Outcome, Scheme
from conformance.results import store
from conformance.support.console import one_line

#: what is said of places that nothing judges because the baseline measured them in vain
LOST = "without baseline, as a trial of it timed out, failed or ended in an error there"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baseline:
    """What a results file says of a stack: its `zones` are (kind, Zone), `schemes` all that it measured, and `labs` the
    lab versions that did.

    `lost` are the (algorithm, setting) of which a trial timed out, failed or ended in an error.
    """

    zones: list[tuple[str, Zone]]
    lost: frozenset[Key]
    schemes: frozenset[Scheme]
    labs: frozenset[str]

    def of_build(self, here: Scheme) -> bool:
        """Return whether it measured an algorithm with the build of `here`, of the kernel's TCP on its kernel."""
        return any(
            (was.algorithm, was.stack_digest) == (here.algorithm, here.stack_digest)
            and (was.kernel_digest == here.kernel_digest or not here.in_kernel)
            for was in self.schemes
        )

    def notes(
        self, path: pathlib.Path | str, zones: Collection[Zone], scheme_of: Callable[[str], Scheme], lab: str
    ) -> Iterator[str]:
        """Yield lines about what a session by some of the baseline's zones cannot tell, or may tell wrongly.

        `scheme_of` returns the scheme that runs an algorithm now; `lab`: the lab version of now. Raises UserError for a
        baseline of another kernel, if the kernel's TCP is under test.
        """
        if zones and all(self.of_build(scheme_of(zone.algorithm)) for zone in zones):
            yield f"baseline {path} is of the build that is tested: this cannot show a change"
        yield from kernel_notes(path, zones, scheme_of)
        if self.labs != {lab}:
            yield f"baseline {path} was measured by another version of the lab, so what changed may be the emulator"

    def lost_questions(self, profile: str) -> list[tuple[str, Question]]:
        """Return [(kind, Question)] about what is lost, of all kinds that judge a stack under `profile`."""
        return [
            (kind, Question(rule=LostRule(f"{algorithm}/{_stem(kind)}", s.point), algorithm=algorithm, settings=(s,)))
            for kind, under in documents.kinds(profile).items()
            for algorithm, s in sorted(self.lost, key=lambda key: (key[0], type(key[1].point).__name__, key[1].point))
            if s.profile == under
        ]

    def lost_of(self, zone: Zone) -> list[Point]:
        """Return the places that a zone would judge if nothing were lost."""
        return sorted(s.point for algorithm, s in self.lost if (algorithm, s.profile) == (zone.algorithm, zone.profile))


@dataclasses.dataclass(frozen=True)
class LostRule(Rule):
    """A place that a zone would judge if the baseline had not measured it in vain; so it stays open."""

    zone_id: str
    at: Point

    @property
    def id(self) -> str:
        return self.zone_id

    @property
    def place(self) -> Point:
        return self.at

    @property
    def judgeable(self) -> bool:
        return False

    def judge(self, measured: Measured, family: int, more: bool) -> Verdict:
        return Verdict(
            status=Status.INCONCLUSIVE, zone_id=self.id, place=self.at, reason=LOST, hidden=True,
            permitted=Interval(low=0.0, high=math.inf, bases=(), margin=NO_MARGIN),
        )  # fmt: skip

    def fewest(self, family: int, least: int = 1) -> int:
        return least

    def lines(self, verdict: Verdict, before: str | None = None) -> list[tuple[str, str]]:
        return []


def _stem(kind: str) -> str:
    """Return what a baseline's zone of a kind is called, after its algorithm."""
    return f"{kind}-baseline"


def zones_of(measurements: Sequence[Measurement], profile: str) -> list[tuple[str, Zone]]:
    """Return [(kind, Zone)] of each algorithm in a stack's measurements. Raises UserError if they cannot serve as a
    baseline.
    """
    kinds_and_zones = []
    for algorithm in sorted({m.scheme.algorithm for m in measurements}):
        of_algorithm = [m for m in measurements if m.scheme.algorithm == algorithm]
        for kind, under in documents.kinds(profile).items():
            held = _judged(of_algorithm, under, documents.metric_of(kind))
            if under != profile:
                held = _enough(held)
            if not held:
                continue
            document = derive.derive(
                held, algorithm, "as it was", documents.metric_of(kind), under, _stem(kind), baseline=True
            )
            zone = zones.from_json(document, f"baseline, {algorithm}")
            # A baseline has no smoke cells of its own, so it gets those of the algorithm's zone, if there is one.
            files = [p for p in documents.zone_files(kind, profile) if p.parent.name == algorithm]
            smoke = tuple(c for p in files for c in documents.zone(p).smoke if c in zone.intervals)
            kinds_and_zones.append((kind, dataclasses.replace(zone, smoke=smoke)))
    return kinds_and_zones


def _judged(measurements: Iterable[Measurement], under: str, metric: str) -> list[Measurement]:
    """Return the measurements of the settings that sessions judge under a profile or scenario, by this metric.

    Trials of clauses are under a profile with another length, say, and some points have no zone. A metric may lack a
    value, too: a client that reports no handshake has no startup.
    """
    held = _as_judged([m for m in measurements if m.setting.profile == under])
    lacking = {m.setting for m in held if own_kind.value(m, metric) is None}
    return [m for m in held if m.setting not in lacking]


def _as_judged(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of settings that are as this version of the suite measures them."""
    judged = {setting: _is_judged(setting) for setting in {m.setting for m in measurements}}
    return [m for m in measurements if judged[m.setting]]


def _is_judged(setting: Setting) -> bool:
    try:
        return setting == scenarios.setting(setting.profile, setting.point)
    except UserError:
        return False  # a point that the scenario no longer has


def _enough(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of settings that have enough trials. `identify` makes fewer: its trials neither make a
    baseline nor prevent one.
    """
    trials = collections.Counter(m.setting for m in measurements)
    return [m for m in measurements if trials[m.setting] >= derive.MIN_TRIALS]


def read(path: pathlib.Path | str, stack: str, profile: str) -> Baseline:
    """Return the Baseline of a results file's measurements of a stack that is judged under `profile`. Raises
    UserError.
    """
    profiles = set(documents.kinds(profile).values())
    measurements = [
        m
        for m in store.read(path)
        if m.scheme.stack == stack and m.setting.profile in profiles and not m.setting.segments
    ]
    measured = [m for m in measurements if m.outcome is Outcome.OK]
    if not _as_judged([m for m in measured if m.setting.profile == profile]):
        raise UserError(
            f"{path} has no measurements of stack {stack} under profile {profile} as it is now", "measure it first"
        )
    # Trials that were unsupported or an error then make no baseline, nor does any cell that has one of them.
    bad = [m for m in measurements if m.outcome is not Outcome.OK]
    enough = _keys(m for m in measurements if m.setting.profile == profile) | _keys(_enough(measurements))
    lost = _keys(_as_judged([m for m in bad if m.outcome is not Outcome.UNSUPPORTED])) & enough
    unusable = _keys(bad)
    with located(path):
        derived = zones_of([m for m in measured if (m.scheme.algorithm, m.setting) not in unusable], profile)
    return Baseline(
        zones=derived,
        lost=lost,
        schemes=frozenset(m.scheme for m in measured),
        labs=frozenset(m.trial.lab_digest for m in measured),
    )


def _keys(measurements: Iterable[Measurement]) -> frozenset[Key]:
    return frozenset((m.scheme.algorithm, m.setting) for m in measurements)


def kernel_notes(path: pathlib.Path | str, zones: Iterable[Zone], scheme_of: Callable[[str], Scheme]) -> Iterator[str]:
    """Yield a line for each kernel, other than the present run's, on which a baseline's zones were measured.

    `scheme_of` returns the scheme that runs an algorithm now. If the stack is in user space, the kernel is not under
    test, though it may affect results. If the kernel's TCP is under test, a baseline of another kernel is refused:
    raises UserError.
    """
    sentences: set[str] = set()
    for zone in zones:
        here = scheme_of(zone.algorithm)
        for source, about in zone.references.items():
            digest, release = about["kernel_digest"], about.get("kernel_release", source.removeprefix("linux-"))
            if not here.kernel_digest or digest == here.kernel_digest:
                continue
            by_digest = release == here.kernel_release  # one release may be built in many ways
            was, is_now = (
                f"Linux {one_line(name)}" + (f" ({d[:SHORT_DIGEST]})" if by_digest else "")
                for name, d in ((release, digest), (here.kernel_release, here.kernel_digest))
            )
            if here.in_kernel:
                raise UserError(
                    f"baseline {path} was measured on {was}, but this run tests the TCP of {is_now}",
                    "measure the baseline again, name its kernel with --kernel, or compare two kernels with"
                    " `conformance compare`",
                )
            sentences.add(
                f"baseline {path} was measured on guest kernel {was}, but this run uses {is_now}:"
                " this may affect results"
            )
    yield from sorted(sentences)
