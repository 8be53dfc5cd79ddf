"""Define what a session asks: whether a scheme keeps a rule, by measurements of some settings.

There are four kinds of rules: a zone at a place (verdict.py), a zone in all cells of a kind (kinds.py), a clause of a
document (clauses/verdict.py), and a check of what a proxy may bring (split/split_zone.py). All else in the suite takes
any Rule, so that a new kind is a subclass, and the code that asks about it.
"""

import abc
import dataclasses
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from conformance.model.networks.place import Point, Value
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement

if TYPE_CHECKING:  # verdict.py has a kind of rule
    from conformance.model.judging.verdict import Verdict

#: what is measured: (algorithm, setting)
Key = tuple[str, Setting]
MeasuredSettings = Mapping[Setting, Sequence[Measurement]]
#: a place that shows a verdict best, and the values of the zone's metric there
Witness = tuple[Point, tuple[float, ...]]


@dataclasses.dataclass(frozen=True, order=True)
class Named(Point):
    """A place that is no point of a network, but has a name: a check of a zone's split part, a clause's algorithm."""

    values: tuple[tuple[str, Value], ...] = dataclasses.field(default=(), init=False, repr=False, compare=False)
    name: str

    @property
    def id(self) -> str:
        return self.name


class Rule(abc.ABC):
    """What a scheme may do, at one place. `id` and `place` name it in reports and in lists of known deviations."""

    #: what the rules that are counted together are called, before the name of their group
    noun: ClassVar[str] = "zone"
    #: whether a violation counts only if trials with fresh seeds show it, too, so that each time shows half of it
    twice: bool = False

    @property
    @abc.abstractmethod
    def id(self) -> str: ...

    @property
    @abc.abstractmethod
    def place(self) -> Point: ...

    @property
    def judgeable(self) -> bool:
        """Whether it can tell enough to be judged; if not, no trial is worth its time."""
        return True

    @property
    def glances(self) -> bool:
        """Whether the first trial may show that no other one helps."""
        return False

    @property
    def group(self) -> str:
        """What reports of a session count it under."""
        return self.id

    @property
    def version(self) -> str:
        """The version of the algorithm that it was made for; "" if it does not say."""
        return ""

    @property
    def named(self) -> str:
        """What it is called in errors."""
        return f"zone {self.id}"

    @property
    def where(self) -> str:
        """The place, for people."""
        return self.place.id

    @property
    def selection(self) -> tuple[str, str]:
        """The option of pytest, and its value, that choose this rule besides a marker."""
        return "--grid", self.where

    @abc.abstractmethod
    def judge(self, measured: MeasuredSettings, family: int, more: bool) -> "Verdict":
        """Judge by measurements of one scheme, as one of `family` questions; `more`: whether more trials may follow.

        Raise UserError for measurements of unlike runs, or of another place or profile.
        """

    def unclear(self, verdict: "Verdict", measured: MeasuredSettings) -> Collection[Setting]:
        """Return the settings of which more trials might make a verdict on these measurements clear."""
        return tuple(measured)

    @abc.abstractmethod
    def fewest(self, family: int, least: int = 1) -> int:
        """Return how many trials, `least` or more, can show that it is violated, as one of `family` questions."""

    def values(self, measured: MeasuredSettings) -> tuple[float, ...]:
        """Return the values of the zone's metric, trial by trial; none if it is no zone's."""
        return ()

    def witness(self, measured: MeasuredSettings) -> Witness | None:
        """Return the place that shows a verdict best; None if the rule is no zone's."""
        values = self.values(measured)
        return (self.place, values) if values else None

    def members(self, keys: Iterable[Key]) -> set[Hashable]:
        """Return what it adds to its family, if it is asked about measurements of these keys."""
        return {(self.id, *key) for key in keys}

    def headline(self, scheme: str, verdict: "Verdict") -> str:
        """Return the first line about a verdict: the scheme, the verdict, the rule and the place."""
        return f"{scheme} {verdict.status} {self.noun} {self.id} at {self.where}: {verdict.words}"

    @abc.abstractmethod
    def lines(self, verdict: "Verdict", before: str | None = None) -> list[tuple[str, str]]:
        """Return (title, text) of what a person needs to know about a verdict: measured, permitted, basis.

        `before`: the file with the stack's earlier results, if the rule was made of these.
        """


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Asks whether what measurements of an algorithm in these settings show is within a rule.

    `algorithm` is the rule's own unless one algorithm is judged by another's zone (`conformance dev cross`).
    """

    rule: Rule
    algorithm: str
    settings: tuple[Setting, ...]

    @property
    def id(self) -> str:
        return self.rule.id

    @property
    def place(self) -> Point:
        return self.rule.place

    @property
    def name(self) -> tuple[str, str, Point]:
        """What tells it from all other questions of a session."""
        return self.algorithm, self.id, self.place

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple((self.algorithm, setting) for setting in self.settings)

    @property
    def key(self) -> Key:
        """The one key whose measurements answer it; the first if there are several."""
        return self.keys[0]

    @property
    def setting(self) -> Setting:
        return self.settings[0]
