"""Shrink a scenario: take away what it has beyond the steady link, as long as it still shows what it was kept for."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from conformance.model.search.mutation import BODIES_BYTES, STEADY, Document

#: times of what happens, and how long it lasts, are made multiples of these where that changes nothing
_STEPS_S = (1.0, 0.5)
_WAYS = ("data", "acks")
#: what lasts no longer than this is not made shorter
_SHORT_S = 0.2
#: fields of a direction that have a usual value, and where STEADY has it
_FIELDS = ("rate_mbps", "delay_ms", "loss_pct")
#: what `complexity` returns
Complexity = tuple[int, float, float, float]


def complexity(document: Document) -> Complexity:
    """Return how much there is to a scenario: its departures from the steady link first, then bytes, then times.

    Departures are what happens, impairments, values that are not the steady link's, requests, and a client's orders.
    """
    link, flow, entries = document["links"][0], document["flows"][0], document.get("schedule", ())
    departures = len(entries) + sum(len(link[way].get("impairments", ())) for way in _WAYS)
    departures += sum(link[way].get(name, 0) != _steady(way).get(name, 0) for way in _WAYS for name in _FIELDS)
    departures += link["data"]["queue"] != _steady("data")["queue"]
    requests = flow.get("requests", ())
    departures += len(requests) + ("client" in flow)
    total = sum(each["bytes"] * each.get("times", 1) for each in requests) or flow["bytes"]
    lasts_s = sum(entry.get("for_s", 0.0) for entry in entries)
    lasts_s += sum((each.get("pause_s") or each.get("every_s") or 0.0) * each.get("times", 1) for each in requests)
    crooked = sum(not (entry["at_s"] / step_s).is_integer() for entry in entries for step_s in _STEPS_S)
    return departures, total, lasts_s, crooked


def simpler(document: Document) -> Iterator[Document]:
    """Yield what is left of a document if one thing is taken away, the largest first; each is less complex."""
    before = complexity(document)
    for candidate in _candidates(document):
        if complexity(candidate) < before:
            yield candidate


def shrunk(document: Document, first: Callable[[Sequence[Document]], Document | None]) -> Document:
    """Return the smallest document that is reached by taking away one thing after the other.

    `first(candidates)` returns the first of several documents that still shows what is looked for; None if none does.
    """
    while (smaller := first(list(simpler(document)))) is not None:
        document = smaller
    return document


def _steady(way: str) -> Document:
    side: Document = STEADY["links"][0][way]
    return side


def _candidates(document: Document) -> Iterator[Document]:
    yield from _with_less_happening(document)
    yield from _with_a_plainer_link(document)
    yield from _with_a_plainer_application(document)
    yield from _shorter(document)


def _with_less_happening(document: Document) -> Iterator[Document]:
    entries = document.get("schedule", ())
    if entries:
        yield _without(document, "schedule")
    for at in range(len(entries) if len(entries) > 1 else 0):
        yield _without(document, "schedule", at)


def _with_a_plainer_link(document: Document) -> Iterator[Document]:
    link = document["links"][0]
    for way in _WAYS:
        impairments = link[way].get("impairments", ())
        for name in impairments:
            field = ("links", 0, way, "impairments")
            yield _without(document, *field, *([name] if len(impairments) > 1 else []))
    if any(link[way]["delay_ms"] != _steady(way)["delay_ms"] for way in _WAYS):
        plain = document
        for way in _WAYS:
            plain = _with(_steady(way)["delay_ms"], plain, "links", 0, way, "delay_ms")
        yield plain
    for name in ("rate_mbps", "queue"):
        if link["data"][name] != _steady("data")[name]:
            yield _with(_steady("data")[name], document, "links", 0, "data", name)
    for way in _WAYS:
        if "loss_pct" in link[way]:
            yield _without(document, "links", 0, way, "loss_pct")


def _with_a_plainer_application(document: Document) -> Iterator[Document]:
    flow = document["flows"][0]
    if "client" in flow:
        yield _without(document, "flows", 0, "client")
    requests = flow.get("requests", ())
    if requests:
        largest = max(request["bytes"] for request in requests)
        yield _with(largest, _without(document, "flows", 0, "requests"), "flows", 0, "bytes")
    for at in range(len(requests) if len(requests) > 1 else 0):
        yield _without(document, "flows", 0, "requests", at)


def _shorter(document: Document) -> Iterator[Document]:
    """Yield the document with less to send, with less time in what happens, and with round times."""
    flow = document["flows"][0]
    flow_at: tuple[str | int, ...] = ("flows", 0)
    for number, body in enumerate(flow.get("requests", [flow])):
        at = (*flow_at, "requests", number) if "requests" in flow else flow_at
        for size in BODIES_BYTES:
            if size < body["bytes"]:
                yield _with(size, document, *at, "bytes")
        if body.get("times", 1) > 1:
            yield _with(body["times"] // 2, document, *at, "times")
    for number, entry in enumerate(document.get("schedule", ())):
        if entry.get("for_s", 0) > _SHORT_S:
            yield _with(round(entry["for_s"] / 2, 2), document, "schedule", number, "for_s")
        for step_s in _STEPS_S:
            yield _with(round(entry["at_s"] / step_s) * step_s, document, "schedule", number, "at_s")


def _with(content: Any, document: Document, *path: str | int) -> Document:
    """Return a document with this content at a place."""
    changed = copy.deepcopy(document)
    _holder(changed, path)[path[-1]] = copy.deepcopy(content)
    return changed


def _without(document: Document, *path: str | int) -> Document:
    """Return a document without what is at a place."""
    changed = copy.deepcopy(document)
    del _holder(changed, path)[path[-1]]
    return changed


def _holder(document: Document, path: Sequence[str | int]) -> Any:
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    return holder
