"""Change one thing of the steady link at a time, and by much: what a search tries before it mixes changes.

A bug often shows in one kind of network, whatever else is there. Drawn at random, most kinds come late or never.
"""

from typing import Any

from conformance.model.search.mutation import FLOW, LINK, Document, steady

#: when something happens: start-up is over, and half of the transfer is still to come
_AT_S = 1.0
_BULK = {"bytes": 2_500_000}
_TRICKLE = {"bytes": 7_500, "every_s": 0.05, "times": 50}


def alone() -> list[Document]:
    """Return each kind of change alone."""
    return [
        _link(rate_mbps=2),
        _link(rate_mbps=50),
        _link(queue={"kind": "bfifo", "size": 0.25}),
        _link(queue={"kind": "bfifo", "size": 8}),
        _link(loss_pct=3),
        _longer(),
        _impaired("data", reorder={"share_pct": 5, "by_packets": 10}),
        _impaired("data", reorder={"share_pct": 5, "by_ms": 50}),
        _impaired("data", duplicate_pct=20),
        _impaired("data", burst_loss={"enter_pct": 0.2, "leave_pct": 20}),
        _impaired("data", jitter_ms=60),
        _impaired("data", mark_pct=10),
        _impaired("data", largest_bytes=1280),
        _impaired("data", lose={"first": 100, "at_least_bytes": 0, "count": 30}),
        _impaired("acks", slots={"every_ms": 100, "keep": "all"}),
        _impaired("acks", slots={"every_ms": 30, "keep": "newest"}),
        _impaired("acks", burst_loss={"enter_pct": 1, "leave_pct": 5}),
        _happening(direction="both", set={"loss_pct": 100}, for_s=3),
        _happening(direction="backward", set={"loss_pct": 100}, for_s=0.2),
        _happening(direction="forward", set={"loss_pct": 20}, for_s=3),
        _happening(direction="forward", set={"rate_mbps": 0}, for_s=1),
        _happening(direction="forward", set={"rate_mbps": 2}),
        _happening(direction="both", set={"delay_ms": 100}),
        _happening(set={"impairments": {"rebind": "port"}}),
        _happening(set={"impairments": {"rebind": "address"}}),
        _flow(requests=[_TRICKLE, _BULK]),
        _flow(requests=[_BULK, {**_BULK, "pause_s": 4}]),
        _flow(bytes=2_500_000, client={"acks": {"packets": 25}}),
    ]


def _link(**data: Any) -> Document:
    document = steady()
    document["links"][0]["data"] |= data
    return document


def _longer() -> Document:
    document = _link(delay_ms=250)
    document["links"][0]["acks"]["delay_ms"] = 250
    return document


def _impaired(way: str, **impairments: Any) -> Document:
    document = steady()
    document["links"][0][way]["impairments"] = impairments
    return document


def _happening(**entry: Any) -> Document:
    return {**steady(), "schedule": [{"at_s": _AT_S, "link": LINK, **entry}]}


def _flow(**fields: Any) -> Document:
    return {**steady(), "flows": [{"name": FLOW, "ecn": True, **fields}]}
