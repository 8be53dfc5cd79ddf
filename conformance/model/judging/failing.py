"""Judge failures: does a stack fail where another one gets through?

A trial *failed* if the stack's programs ended, broke off or stayed silent, and nothing is known against the emulator
(Outcome.FAILED). Its measurement says what became of another stack's trials in the same setting, with the same seeds
and, where that is possible, the same client (Control). For TCP, that stack is the kernel's.

A stack *fails* if so many trials failed that, of two stacks which fail equally often, one would have as many more in at
most half of the question's share of ALPHA of all runs (Fisher's exact test, one-sided: R. A. Fisher, Statistical
Methods for Research Workers, 5th edition, 1934). The other half of the share is for the question itself, which the
other trials answer as before; they let the stack pass only if few failed. What failed in both stacks, or where there is
no other stack, is an error, because nothing is known about the stack then.

A place in which few trials failed passes, and so may every place of a stack that breaks off now and then. So the
failures of all places are judged together, too: all of the stack's trials beside those of the control, which is tried
only where some failed. Where it is tried networks are harder, if anything, so this accuses nobody.

What a stack supports in one trial, it supports in all. So a trial that says it does not, beside others that ran, is an
error: a stack that knows its cell could leave a bad one that way.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from conformance.model.judging.expectation import Expected, Known
from conformance.model.judging.question import MeasuredSettings, Rule
from conformance.model.judging.verdict import Status, Verdict, level
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome

#: failures and the question itself share a question's chance of a false alarm
_TESTS = 2
#: a stack of whose trials a larger share failed does not pass by the others alone
_MOST_FAILED = 1 / 8
#: what a message of one trial says, when others show that the stack does offer the algorithm
ELSEWHERE = "although it does in other trials"
_NO_OTHER = "whether another stack gets through there is not known: none is built, or its trial failed in the lab"


def leaves_open(verdict: Verdict, expected: Expected | None) -> bool:
    """Return whether a verdict is open because trials failed, and the stack's list expects no failure."""
    is_expected = expected is not None and expected.verdict is Known.FAILS
    return (verdict.status, verdict.leaning) == (Status.INCONCLUSIVE, Status.FAILS) and not is_expected


def is_alone(verdict: Verdict, expected: Expected | None) -> bool:
    """Return whether a place fails by itself, or its list expects that, so that its failures say nothing of others."""
    return verdict.status is Status.FAILS or (expected is not None and expected.verdict is Known.FAILS)


def judge(rule: Rule, measured: MeasuredSettings, family: int, more: bool, ran: bool = False) -> Verdict:
    """Judge a rule by the trials that did not fail, and the stack by those that did; see Rule.judge().

    `ran`: whether other trials of these settings are known to have run.
    """
    measured = _believed(measured, ran)
    everything = [m for measurements in measured.values() for m in measurements]
    failed = [m for m in everything if m.outcome is Outcome.FAILED]
    if not failed or not rule.judgeable:
        return rule.judge(measured, family, more)
    others = {setting: [m for m in of if m.outcome is not Outcome.FAILED] for setting, of in measured.items()}
    rest = rule.judge(others, _TESTS * family, more)
    controls = _controls(measured)
    # Of several settings, those count in which another stack was tried.
    ours = sum(len(seeds) for seeds, control in controls if seeds & control.keys())
    theirs = sum(len(seeds & control.keys()) for seeds, control in controls)
    also = sum(control[seed] for seeds, control in controls for seed in seeds & control.keys())
    compared = sum(m.control is not None for m in failed)
    p = min(1.0, _TESTS * more_failures_p(compared, ours, also, theirs))
    why = words(failed, len(everything))
    if p <= level(family):
        return _only(rest, Status.FAILS, why, len(everything), p)
    if unexplained := [m for m in failed if m.control is None or m.trial.seed in m.control.failures]:
        control = unexplained[0].control
        reason = _NO_OTHER if control is None else f"{control.scheme} does not get through either"
        return _only(rest, Status.ERROR, f"{words(unexplained, len(everything))}: {reason}", len(everything), None)
    few = len(failed) <= _MOST_FAILED * len(everything)
    if rest.status.against or (rest.status.passes and few):
        return dataclasses.replace(rest, reason=f"{rest.reason}; {why}", p=_doubled(rest.p))
    known = all(others.values())
    if known and not rest.status.passes and rest.status is not Status.INCONCLUSIVE:
        return rest
    otherwise = 1.0 if rest.p is None else _TESTS * rest.p
    reason = f"{why}: more trials needed" + (f"; {rest.reason}" if known else "")
    return dataclasses.replace(
        rest, status=Status.INCONCLUSIVE, reason=reason, n=len(everything), p=min(p, otherwise), hidden=False,
        absent=False, leaning=Status.FAILS if p <= otherwise else Status.VIOLATES,
    )  # fmt: skip


def _believed(measured: MeasuredSettings, ran: bool) -> MeasuredSettings:
    """Return the trials, those as errors that say a stack lacks what it has in others."""
    outcomes = {m.outcome for of in measured.values() for m in of}
    if Outcome.UNSUPPORTED not in outcomes or not (ran or outcomes - {Outcome.UNSUPPORTED, Outcome.ERROR}):
        return measured
    return {
        setting: [
            dataclasses.replace(m, outcome=Outcome.ERROR, message=f"{m.message}, {ELSEWHERE}")
            if m.outcome is Outcome.UNSUPPORTED
            else m
            for m in of
        ]
        for setting, of in measured.items()
    }


def words(failed: Sequence[Measurement], of: int) -> str:
    """Return what the stack's programs said when they failed, how often, and what became of another stack there.

    Text from stacks has no control characters (emulation/credibility.py).
    """
    (message, _), *others = collections.Counter(str(m.message) for m in failed).most_common()
    different = f", with {len(others) + 1} messages" if others else ""
    through = [m.control for m in failed if m.control is not None and m.trial.seed not in m.control.failures]
    other = f"; {through[0].scheme} gets through there" if through else ""
    return f"{message} ({len(failed)} of {of} trials failed{different}{other})"


def more_failures_p(failures: int, trials: int, others_failures: int, others_trials: int) -> float:
    """Return how likely a stack would have so many of all failures, or more, if both failed equally often."""
    total, drawn = trials + others_trials, failures + others_failures
    ways = math.comb(total, drawn)
    likely = sum(
        math.comb(trials, n) * math.comb(others_trials, drawn - n) for n in range(failures, min(trials, drawn) + 1)
    )
    return likely / ways


def _controls(measured: MeasuredSettings) -> Iterable[tuple[set[int], Mapping[int, bool]]]:
    """Return, of each setting, its trials' seeds, and {seed: whether another stack failed}."""
    return [
        (
            {m.trial.seed for m in of},
            {seed: seed in m.control.failures for m in of if m.control is not None for seed in m.control.trials},
        )
        for of in measured.values()
    ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SettingEnds:
    """How the trials of a setting ended: `failed` of `trials`, and `others_failed` of the `others` of the control.

    What failed without a control is left out, as it says nothing.
    """

    profile_digest: str
    place: Point
    trials: int
    failed: int
    others: int
    others_failed: int
    said: str


def ended(measured: MeasuredSettings) -> tuple[SettingEnds, ...]:
    """Return how the trials of each setting ended."""
    return tuple(_ended(setting, measurements) for setting, measurements in measured.items() if measurements)


def _ended(setting: Setting, measurements: Sequence[Measurement]) -> SettingEnds:
    ((seeds, control),) = _controls({setting: measurements})
    failed = [m for m in measurements if m.control is not None]
    tried = seeds & control.keys()
    return SettingEnds(
        profile_digest=setting.profile_digest, place=setting.point, trials=len(seeds), failed=len(failed),
        others=len(tried), others_failed=sum(control[seed] for seed in tried),
        said=words(failed, len(measurements)) if failed else "",
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failed trials of an algorithm in all places together, beside those of another stack, where any failed."""

    SHOWN = ("algorithm", "failed", "trials", "others_failed", "others", "p", "worst")

    algorithm: str
    failed: int
    trials: int
    others_failed: int
    others: int
    #: Of two stacks that fail equally often, how likely one has so many more.
    p: float
    #: What was said in the place where most failed.
    worst: str

    @property
    def words(self) -> str:
        """How many trials failed, as a sentence."""
        beside = f"{self.others_failed or 'none'} of {self.others} of another stack"
        return f"{self.failed} of {self.trials} trials of {self.algorithm} failed, and {beside}; {self.worst}"

    @classmethod
    def of(cls, algorithm: str, ends: Iterable[SettingEnds]) -> Self | None:
        """Return the Failures in these settings; None if no trial failed."""
        everything = sorted(ends, key=lambda each: -each.failed)
        failed, trials, also, others = (
            sum(getattr(each, name) for each in everything) for name in ("failed", "trials", "others_failed", "others")
        )
        if not failed:
            return None
        return cls(
            algorithm=algorithm, failed=failed, trials=trials, others_failed=also, others=others,
            p=more_failures_p(failed, trials, also, others), worst=everything[0].said,
        )  # fmt: skip


def _only(verdict: Verdict, status: Status, reason: str, n: int, p: float | None) -> Verdict:
    """Return a verdict that says this alone, in place of one on the trials that did not fail."""
    return dataclasses.replace(
        verdict, status=status, reason=reason, n=n, value=None, least=None, interval=None, p=p, detectable=None,
        sure=False, parts=(), samples=0, evidence=(), hidden=False, absent=False,
    )  # fmt: skip


def _doubled(p: float | None) -> float | None:
    return None if p is None else min(1.0, _TESTS * p)
