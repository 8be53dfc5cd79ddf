"""Name the faults that explain how a stack departs from a document, by what clauses measured of it and of faults.

What a clause measures becomes a *share*: the distance from the document's own value, by that from there to the bound.
Beyond a share of 1 the clause is violated. A fault's signature is its shares in all clauses. A stack may have several
faults, and of those that act on a clause the farthest one shows. So faults are taken one after another, each time the
one that brings what is explained nearest to the stack. A clause counts the more, the fewer faults violate it.
"""

import dataclasses
import math
from collections.abc import Mapping

from conformance.model.clauses.document import Bound

#: {clause's id: share}
ClauseShares = Mapping[str, float]
#: a share beyond this says no more, and a difference beyond this does not speak against a fault any further
_MOST, _CAP = 2.0, 1.5
#: how much nearer a fault must bring what is explained
_LEAST_GAIN = 0.5
#: the least distance from the document's value to a bound, as a share of the value; and where that is zero
_LEAST_SHARE, _LEAST = 0.05, 1e-6


def share(bound: Bound, amount: float, of_document: float) -> float:
    """Return how far an amount is from the document's, by how far a bound is; with one bound, that in both directions.

    It is negative below the document's, and at most 2.
    """
    ways = [bound.high - of_document, of_document - bound.low]
    way = ways[amount < of_document]
    if math.isinf(way):
        way = ways[amount >= of_document]
    least = max(_LEAST_SHARE * abs(of_document), _LEAST)
    return max(-_MOST, min(_MOST, (amount - of_document) / max(way, least)))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A fault, the violated clauses that it explains, and how much nearer it brings what is explained by itself."""

    fault: str
    clauses: tuple[str, ...]
    gain: float


def likeliest(shares: ClauseShares, signatures: Mapping[str, ClauseShares]) -> list[Explanation]:
    """Return the faults that explain a violated clause of a stack, the likeliest first.

    First those that explain it together, and then those that would explain some of it, too.
    """
    weights = _weights(shares, signatures)
    explained = dict.fromkeys(shares, 0.0)
    alone = {
        fault: explanation
        for fault, signature in signatures.items()
        if (explanation := _explanation(fault, signature, shares, explained, weights)) is not None
    }
    together: list[Explanation] = []
    rest = set(alone)
    while rest:
        steps = [_explanation(fault, signatures[fault], shares, explained, weights) for fault in rest]
        step = max((step for step in steps if step is not None), key=_by_gain, default=None)
        if step is None:
            break
        together.append(step)
        rest.remove(step.fault)
        explained = {clause: _farther(signatures[step.fault], clause, before) for clause, before in explained.items()}
    return together + sorted((alone[fault] for fault in rest), key=_by_gain, reverse=True)


def _by_gain(explanation: Explanation) -> tuple[float, str]:
    return explanation.gain, explanation.fault


def _weights(shares: ClauseShares, signatures: Mapping[str, ClauseShares]) -> dict[str, float]:
    """Return what each clause counts: the information in its violation, if each fault is as likely."""
    violating = {clause: sum(abs(of.get(clause, 0.0)) > 1 for of in signatures.values()) for clause in shares}
    return {clause: math.log((len(signatures) + 1) / (count + 1)) for clause, count in violating.items()}


def _explanation(
    fault: str, signature: ClauseShares, shares: ClauseShares, explained: ClauseShares, weights: Mapping[str, float]
) -> Explanation | None:
    """Return what a fault explains beyond what is explained; None if that is no violated clause, or too little."""
    gains = {
        clause: weights[clause]
        * (_distance(of_stack, explained[clause]) - _distance(of_stack, _farther(signature, clause, explained[clause])))
        for clause, of_stack in shares.items()
        if clause in signature
    }
    gain = sum(gains.values())
    violated = tuple(clause for clause, of_clause in gains.items() if of_clause > 0 and abs(shares[clause]) > 1)
    return Explanation(fault=fault, clauses=violated, gain=gain) if violated and gain > _LEAST_GAIN else None


def _distance(of_stack: float, explained: float) -> float:
    return min(abs(of_stack - explained), _CAP)


def _farther(signature: ClauseShares, clause: str, before: float) -> float:
    return max(before, signature.get(clause, 0.0), key=abs)
