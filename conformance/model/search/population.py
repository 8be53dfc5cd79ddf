"""Keep the best scenarios of a search by each goal, and make the next ones of them.

A search begins with each kind of change alone, in an order that its seed decides.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from conformance.model import digest
from conformance.model.search.alone import alone
from conformance.model.search.mutation import STEADY, Document, mutated, pick, steady

if TYPE_CHECKING:
    from random import Random

#: how many scenarios are kept for each goal: several, so that a lucky one does not decide where all others come from
_KEPT = 4
#: how often a chain begins with the steady link again
_ANEW = 0.15


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tried:
    """A scenario that was tried, and its score by each goal; goals that its trials do not show are missing."""

    number: int
    document: Document
    scores: Mapping[str, float]


class Population:
    """What a search has tried. It asks `random` for all that is drawn, so a seed and the scores decide the sequence.

    `goals`: their names. `is_valid`: whether both stacks can be tried in a scenario.
    """

    def __init__(self, goals: Sequence[str], random: "Random", is_valid: Callable[[Document], bool]) -> None:
        self._goals, self._random, self._is_valid = goals, random, is_valid
        self._best: dict[str, list[Tried]] = {goal: [] for goal in goals}
        self._digests = {digest.of_value(STEADY)}
        self._first = alone()
        self.tried = 0

    def children(self, count: int) -> list[Document]:
        """Return the next scenarios to try, none of which was tried before; the goals take turns."""
        drawn: list[Document] = []
        while self._first and len(drawn) < count:
            first = pick(self._random, self._first)
            self._first.remove(first)
            if self._is_valid(first):
                self._digests.add(digest.of_value(first))
                drawn.append(first)
        for _ in range(count - len(drawn)):
            parent = self._parent(self._goals[(self.tried + len(drawn)) % len(self._goals)])
            child = mutated(parent, self._random, self._is_new)
            if child is not parent:
                self._digests.add(digest.of_value(child))
                drawn.append(child)
        return drawn

    def _is_new(self, document: Document) -> bool:
        return digest.of_value(document) not in self._digests and self._is_valid(document)

    def _parent(self, goal: str) -> Document:
        best = [tried.document for tried in self._best[goal]]
        return steady() if not best or self._random.random() < _ANEW else pick(self._random, best)

    def add(self, document: Document, scores: Mapping[str, float]) -> None:
        """Note the scores of a scenario. Of equal ones the latest comes first, so that a search wanders."""
        tried = Tried(number=self.tried, document=document, scores=scores)
        self.tried += 1
        for goal in self._goals:
            if goal in scores:
                ranked = sorted([tried, *self._best[goal]], key=lambda each: (-each.scores[goal], -each.number))
                self._best[goal] = ranked[:_KEPT]

    def best(self, goal: str) -> Sequence[Tried]:
        """Return the best scenarios by a goal, the best one first."""
        return tuple(self._best[goal])
