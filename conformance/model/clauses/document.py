"""Read clauses from JSON: each has what a document says, the network in which it shows, an observable and a bound."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Self

from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.clauses.seen import Observable
from conformance.model.diagnosis import stages
from conformance.model.errors import UserError, located

#: the fewest trials whose median has a confidence interval
LEAST_TRIALS = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The interval that the document permits for an observable; `why` says how the numbers follow from the document."""

    low: float = -math.inf
    high: float = math.inf
    why: str

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def sided(self) -> int:
        """The number of its finite ends."""
        return int(self.low > -math.inf) + int(self.high < math.inf)

    def words(self, digits: int) -> str:
        """Return the bound as people write it: 0.45..0.55, at most 10, at least 2."""
        if self.sided == 2:
            return f"{self.low:.{digits}f}..{self.high:.{digits}f}"
        return f"at most {self.high:.{digits}f}" if self.high < math.inf else f"at least {self.low:.{digits}f}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClauseNetwork:
    """The network in which a clause shows: a cell of a profile, with changes to the profile; or a scenario's point."""

    profile: str | None = None
    cell: str | None = None
    queue: str | None = None
    transfer_s: float | None = None
    sysctls: tuple[tuple[str, str], ...] = ()
    scenario: str | None = None
    point: tuple[tuple[str, Any], ...] = ()

    @property
    def words(self) -> str:
        """A short description for people."""
        if self.scenario is not None:
            return " ".join([self.scenario, ",".join(f"{name}={value}" for name, value in self.point)]).strip()
        return " ".join(part for part in (self.cell, self.queue, f"{self.transfer_s:g} s") if part)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clause:
    """One sentence of a document, and how it is tested.

    `text` is in our words. `older`: (draft, its bound or why it does not ask) of drafts that differ; `unasked` says
    that it is as one of these, and why that does not ask. `also`: (specification, section) of other documents that say
    the same. `trials`: the fewest trials that must show the behaviour. `invisible`: what hides it. `controls`:
    algorithms that do not claim to keep the clause, and are judged only if they are named. `once`: the clause is about
    what algorithms share, such as loss recovery, so it is judged only for the first of its algorithms that a stack has.
    """

    SHOWN = ("id", "source", "level", "text", "also=others")

    id: str
    specification: str
    document: str
    section: str
    level: str
    text: str
    algorithms: tuple[str, ...]
    transports: tuple[str, ...]
    network: ClauseNetwork
    observable: Observable
    bound: Bound
    trials: int
    invisible: str
    also: tuple[tuple[str, str], ...] = ()
    controls: tuple[str, ...] = ()
    once: bool = False
    older: tuple[tuple[str, Bound | str], ...] = ()
    unasked: str = ""

    @property
    def only_shows(self) -> bool:
        """Whether its document permits what is beyond the bound as well, or contradicts itself there.

        Such a clause shows who does what, and accuses nobody.
        """
        return self.level in ("MAY", "open")

    @property
    def stage(self) -> int:
        """The stage of a transfer that shows it: the earlier, the likelier is a violation the cause of others."""
        return stages.stage(self.observable.name)

    @property
    def precedence(self) -> int:
        """A key that sorts what a stack violates: likelier causes first."""
        return stages.precedence(self.observable.name)

    def as_in(self, draft: str | None) -> "Clause":
        """Return the clause as this draft of its document has it: itself, unless an older one differs."""
        differs = dict(self.older).get(draft or "")
        if isinstance(differs, Bound):
            return dataclasses.replace(self, bound=differs)
        return dataclasses.replace(self, unasked=f"not asked of {draft}: {differs}") if differs else self

    def judged_by(self, low: float, high: float) -> "Clause":
        """Return the clause with that of its bounds which has these ends, as a verdict on it says."""
        bounds = (bound for _, bound in self.older if isinstance(bound, Bound))
        return next((dataclasses.replace(self, bound=b) for b in bounds if (b.low, b.high) == (low, high)), self)

    def judged_of(self, offered: Collection[str], named: Collection[str] = ()) -> list[str]:
        """Return the algorithms, of those that a stack offers, for which the clause is judged.

        If algorithms are `named`, these are only the named ones, controls included.
        """
        wanted = named or self.algorithms
        judged = [
            algorithm
            for algorithm in (*self.algorithms, *self.controls)
            if algorithm in offered and algorithm in wanted
        ]
        return judged[:1] if self.once else judged

    @property
    def markers(self) -> tuple[str, ...]:
        """The pytest markers that select it: its document's, and those of documents that say the same."""
        return (self.specification, *(specification for specification, _ in self.also))

    @property
    def others(self) -> list[str]:
        """The places in other documents that say the same, for people."""
        return [f"{specification} {section}" for specification, section in self.also]

    @property
    def permitted(self) -> str:
        """The values that are permitted, for people."""
        return self.bound.words(self.observable.digits)

    @property
    def source(self) -> str:
        """The place of the clause in the document, for people: RFC 9002, 7.3.2."""
        return f"{self.document}, {self.section}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NotVisible:
    """A sentence of a document that no packet shows; `why` is the reason."""

    section: str
    text: str
    why: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Specification:
    """A document and its clauses. `name` is what `pytest -m` calls it.

    `first_for`: algorithms that are judged by these clauses first, and by zones second. `drafts`: its versions that a
    stack may claim, the oldest first; the last is `document`. `smoke`: ids of the clauses that tell most at small cost.
    """

    SHOWN = ("name", "title", "url", "clauses", "not_visible")

    name: str
    title: str
    document: str
    url: str
    clauses: tuple[Clause, ...]
    #: Statements of the document that no packet shows.
    not_visible: tuple[NotVisible, ...] = ()
    first_for: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    smoke: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the Specification of a document of schemas/clauses.json. Raises UserError with the JSON pointer."""
        clauses: list[Clause] = []
        for at, fields in enumerate(data["clauses"]):
            with located(f"/clauses/{at}"):
                parsed = _clause(data, fields)
                if parsed.id in {clause.id for clause in clauses}:
                    raise UserError(f"there are two clauses called {parsed.id}", "give each an id of its own")
                clauses.append(parsed)
        for at, name in enumerate(data.get("smoke", ())):
            with located(f"/smoke/{at}"):
                if name not in {clause.id for clause in clauses}:
                    raise UserError(f"there is no clause {name} in this document", "name one of its clauses")
        return cls(
            name=data["name"], title=data["title"], document=data["document"], url=data["url"], clauses=tuple(clauses),
            not_visible=tuple(NotVisible(**fields) for fields in data.get("not_visible", ())),
            first_for=tuple(data.get("first_for", ())), drafts=tuple(data.get("drafts", ())),
            smoke=tuple(data.get("smoke", ())),
        )  # fmt: skip


def _clause(data: Mapping[str, Any], fields: Mapping[str, Any]) -> Clause:
    if fields["observable"] not in OBSERVABLES:
        raise UserError(f"observable {fields['observable']!r} is not known", f"choose one of {', '.join(OBSERVABLES)}")
    network = dict(fields["network"])
    for name in ("point", "sysctls"):
        network[name] = tuple(sorted(network.get(name, {}).items()))
    return Clause(
        id=fields["id"], specification=data["name"], document=data["document"], section=fields["section"],
        level=fields["level"], text=fields["text"], algorithms=tuple(fields["algorithms"]),
        transports=tuple(fields["transports"]), network=ClauseNetwork(**network),
        observable=OBSERVABLES[fields["observable"]], bound=_bound(fields["bound"]), older=tuple(_older(data, fields)),
        trials=fields.get("trials", LEAST_TRIALS), invisible=fields["invisible"],
        controls=tuple(fields.get("controls", ())), once=fields.get("once", False),
        also=tuple((other["specification"], other["section"]) for other in fields.get("also", ())),
    )  # fmt: skip


def _bound(fields: Mapping[str, Any]) -> Bound:
    bound = Bound(**fields)
    if not bound.sided or bound.low > bound.high:
        raise UserError("the bound permits everything or nothing", "give low, high, or both, in order")
    return bound


def _older(data: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[tuple[str, Bound | str]]:
    """Yield (draft, its bound or why it does not ask) of the drafts that differ: the first that reaches far enough."""
    known, at = data.get("drafts", ()), 0
    for differs in fields.get("older", ()):
        before = differs["before"]
        if before not in known:
            raise UserError(f"there is no draft {before}", f"choose one of {', '.join(known)}")
        for draft in known[at : known.index(before)]:
            yield draft, _bound(differs["bound"]) if "bound" in differs else differs["not_asked"]
        at = known.index(before)
