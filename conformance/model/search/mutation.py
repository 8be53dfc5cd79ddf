"""Change a scenario at random: what its link does, what happens to it, and what the application asks for.

The language is that of scenarios (docs/scenarios.md), so what is searched is also what `trace` and `why` take. Each
document has one link and one judged flow, and departs from STEADY by what was changed.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # the caller gives the generator: nothing is drawn here but from it
    from random import Random

_T = TypeVar("_T")
Document = dict[str, Any]

LINK, FLOW = "bottleneck", "test"
#: one steady link with one bulk flow
STEADY: Mapping[str, Any] = {
    "name": "search",
    "title": "One steady link with one bulk flow",
    "timeout_s": 60,
    # With mtu_probing the reference gets through where large packets vanish.
    "sysctls": {
        "net.ipv4.tcp_mtu_probing": "1",
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_rmem": "4096 131072 67108864",
        "net.ipv4.tcp_tso_rtt_log": "0",
        "net.ipv4.tcp_wmem": "4096 16384 67108864",
    },
    "links": [
        {
            "name": LINK,
            "ends": ["client", "server"],
            "data": {"rate_mbps": 10, "delay_ms": 20, "queue": {"kind": "bfifo", "size": 1}},
            "acks": {"delay_ms": 20},
        }
    ],
    "flows": [{"name": FLOW, "bytes": 2_500_000, "ecn": True}],
}

RATES_MBPS = (0.5, 1, 2, 5, 10, 20, 50)
DELAYS_MS = (1, 5, 20, 50, 100, 250)
QUEUES_BDP = (0.25, 0.5, 1, 2, 4, 8)
LOSSES_PCT = (0, 0.1, 0.5, 1, 3)
BODIES_BYTES = (100_000, 500_000, 1_500_000, 2_500_000, 5_000_000)
_SHORT_BODIES_BYTES = (1_000, 7_500, 30_000, 100_000)
_TIMES_S = (0.05, 0.2, 0.5, 1, 2, 4)
_LAST_S = (0.05, 0.2, 1, 3, 6)
_COUNTS = (1, 2, 3, 5, 10, 30)

#: what a trial may take: so many bytes of bodies, and so many seconds at the lowest rates; half of `timeout_s`, so that
#: a stack that times out takes at least twice what it should
_MOST_BYTES, _MOST_S = 6_000_000, 30.0
#: what makes a scenario hard to read: more changes of the path, more kinds of requests
_MOST_ENTRIES, _MOST_REQUESTS = 4, 3
#: a queue that holds fewer full packets measures the queue alone
_LEAST_QUEUE_BYTES = 6_000
#: how often a child is drawn anew because it is no scenario, or takes too long
_MOST_DRAWS = 200


def steady() -> Document:
    """Return the steady link, to be changed."""
    return copy.deepcopy(dict(STEADY))


def pick(random: "Random", values: Sequence[_T]) -> _T:
    """Return one of some values. Of `random`, only random() is used: Python promises its sequence for a seed."""
    return values[int(random.random() * len(values))]


def mutated(document: Document, random: "Random", is_valid: Callable[[Document], bool]) -> Document:
    """Return the document with one to three changes; itself if none of many draws makes a scenario that `is_valid`."""
    for _ in range(_MOST_DRAWS):
        child = copy.deepcopy(document)
        for _ in range(pick(random, (1, 1, 2, 3))):
            pick(random, _CHANGES)(child, random)
        if child != document and is_affordable(child) and is_valid(child):
            return child
    return document


def is_affordable(document: Document) -> bool:
    """Return whether a trial of this network takes as little as a search can spend on each.

    A client's move is the only impairment on a schedule: another one would take it back, in one direction perhaps.
    """
    data, flow = document["links"][0]["data"], document["flows"][0]
    requests, entries = flow.get("requests", ()), document.get("schedule", ())
    bodies = sum(each["bytes"] * each.get("times", 1) for each in requests) or flow["bytes"]
    waits_s = sum((each.get("pause_s") or each.get("every_s") or 0) * each.get("times", 1) for each in requests)
    rates = [data["rate_mbps"], *(entry["set"].get("rate_mbps") for entry in entries)]
    slowest_mbps = min(rate for rate in rates if rate)
    held_s = sum(entry.get("for_s", 0) for entry in entries)
    scheduled = [entry["set"]["impairments"] for entry in entries if "impairments" in entry["set"]]
    queue_bytes = data["queue"]["size"] * slowest_mbps / 8 * 1e3 * _round_trip_ms(document)
    return (
        bodies <= _MOST_BYTES
        and 8 * bodies / slowest_mbps / 1e6 + waits_s + held_s <= _MOST_S
        and queue_bytes >= _LEAST_QUEUE_BYTES
        and len(entries) <= _MOST_ENTRIES
        and len(requests) <= _MOST_REQUESTS
        and not (len(scheduled) > 1 and any("rebind" in impairments for impairments in scheduled))
    )


def _round_trip_ms(document: Document) -> float:
    link = document["links"][0]
    return float(link["data"]["delay_ms"] + link["acks"]["delay_ms"])


# --- the link


def _rate(document: Document, random: "Random") -> None:
    document["links"][0]["data"]["rate_mbps"] = pick(random, RATES_MBPS)


def _delay(document: Document, random: "Random") -> None:
    delay_ms = pick(random, DELAYS_MS)
    for way in ("data", "acks"):
        document["links"][0][way]["delay_ms"] = delay_ms


def _queue(document: Document, random: "Random") -> None:
    document["links"][0]["data"]["queue"]["size"] = pick(random, QUEUES_BDP)


def _loss(document: Document, random: "Random") -> None:
    side = document["links"][0][pick(random, ("data", "data", "acks"))]
    if loss_pct := pick(random, LOSSES_PCT):
        side["loss_pct"] = loss_pct
    else:
        side.pop("loss_pct", None)


def _impair(document: Document, random: "Random") -> None:
    way = pick(random, ("data", "data", "acks"))
    name, make = pick(random, _IMPAIRMENTS if way == "data" else _OF_ACKS)
    document["links"][0][way].setdefault("impairments", {})[name] = make(random)


def _heal(document: Document, random: "Random") -> None:
    """Remove an impairment of the link, if it has any."""
    impaired = [side for way in ("data", "acks") if "impairments" in (side := document["links"][0][way])]
    if impaired:
        side = pick(random, impaired)
        del side["impairments"][pick(random, sorted(side["impairments"]))]
        if not side["impairments"]:
            del side["impairments"]


def _reorder(random: "Random") -> Document:
    how = ("by_packets", _COUNTS) if random.random() < 0.5 else ("by_ms", (2, 10, 50, 200))
    return {"share_pct": pick(random, (0.2, 1, 5, 20)), how[0]: pick(random, how[1])}


def _lost(random: "Random") -> Document:
    chosen = {"first": pick(random, (1, 2, 5, 10, 20, 50, 100, 300)), "at_least_bytes": pick(random, (0, 1000))}
    if random.random() < 0.25:
        return {**chosen, "every": pick(random, (20, 50, 100, 300)), "of": pick(random, (1, 2, 5))}
    return {**chosen, "count": pick(random, _COUNTS)}


def _held(random: "Random") -> Document:
    return {**_lost(random), "by_ms": pick(random, (5, 20, 100, 500, 1500))}


def _bursts(random: "Random") -> Document:
    return {"enter_pct": pick(random, (0.05, 0.2, 1)), "leave_pct": pick(random, (5, 20, 50))}


def _slots(random: "Random") -> Document:
    return {"every_ms": pick(random, (2, 10, 30, 100)), "keep": pick(random, ("all", "newest"))}


def _one_of(values: Sequence[Any]) -> Callable[["Random"], Any]:
    return lambda random: pick(random, values)


_Maker = tuple[str, Callable[["Random"], Any]]
_IMPAIRMENTS: Sequence[_Maker] = (
    ("reorder", _reorder),
    ("duplicate_pct", _one_of((0.5, 3, 20))),
    ("burst_loss", _bursts),
    ("jitter_ms", _one_of((1, 5, 20, 60))),
    ("mark_pct", _one_of((0.3, 2, 10, 100))),
    ("largest_bytes", _one_of((1280, 1400, 1492))),
    ("lose", _lost),
    ("lose", _lost),
    ("hold", _held),
)
_OF_ACKS: Sequence[_Maker] = (
    ("slots", _slots),
    ("slots", _slots),
    ("jitter_ms", _one_of((1, 5, 20, 60))),
    ("burst_loss", _bursts),
    ("reorder", _reorder),
    ("lose", _lost),
    ("hold", _held),
)


# --- what happens to it


def _happen(document: Document, random: "Random") -> None:
    entry: Document = {"at_s": _instant_s(document, random), "link": LINK, **pick(random, _HAPPENINGS)(random)}
    document.setdefault("schedule", []).append(entry)


def _shift(document: Document, random: "Random") -> None:
    """Let what happens do so at another time, or for another while."""
    if entries := document.get("schedule"):
        entry = pick(random, entries)
        if "for_s" in entry and random.random() < 0.5:
            entry["for_s"] = pick(random, _LAST_S)
        else:
            entry["at_s"] = _instant_s(document, random)


def _drop(document: Document, random: "Random") -> None:
    if entries := document.get("schedule"):
        del entries[int(random.random() * len(entries))]
        if not entries:
            del document["schedule"]


def _instant_s(document: Document, random: "Random") -> float:
    """Return a time within what the transfer would take on the steady link."""
    flow = document["flows"][0]
    bodies = sum(each["bytes"] * each.get("times", 1) for each in flow.get("requests", ())) or flow["bytes"]
    lasts_s: float = 8 * bodies / document["links"][0]["data"]["rate_mbps"] / 1e6 + 0.5
    return math.floor(20 * lasts_s * random.random()) / 20


def _outage(random: "Random") -> Document:
    way = pick(random, ("forward", "backward", "both"))
    return {"direction": way, "set": {"loss_pct": 100}, "for_s": pick(random, _LAST_S)}


def _lossy(random: "Random") -> Document:
    return {"direction": "forward", "set": {"loss_pct": pick(random, (5, 20, 50))}, "for_s": pick(random, _LAST_S)}


def _stopped(random: "Random") -> Document:
    return {"direction": "forward", "set": {"rate_mbps": 0}, "for_s": pick(random, _LAST_S[:-1])}


def _other_rate(random: "Random") -> Document:
    return {"direction": "forward", "set": {"rate_mbps": pick(random, RATES_MBPS)}, **_for_a_while(random)}


def _other_delay(random: "Random") -> Document:
    way = pick(random, ("forward", "backward", "both"))
    return {"direction": way, "set": {"delay_ms": pick(random, DELAYS_MS)}, **_for_a_while(random)}


def _impaired(random: "Random") -> Document:
    way = pick(random, ("forward", "forward", "backward"))
    name, make = pick(random, _IMPAIRMENTS if way == "forward" else _OF_ACKS)
    return {"direction": way, "set": {"impairments": {name: make(random)}}, **_for_a_while(random)}


def _moved(random: "Random") -> Document:
    return {"set": {"impairments": {"rebind": pick(random, ("port", "address"))}}}


def _for_a_while(random: "Random") -> Document:
    return {"for_s": pick(random, _LAST_S)} if random.random() < 0.5 else {}


_HAPPENINGS = (_outage, _outage, _lossy, _stopped, _other_rate, _other_delay, _impaired, _impaired, _moved)


# --- the application


def _body(document: Document, random: "Random") -> None:
    flow = document["flows"][0]
    (flow["requests"][-1] if "requests" in flow else flow)["bytes"] = pick(random, BODIES_BYTES)


def _requests(document: Document, random: "Random") -> None:
    """Ask for several bodies in place of one, or the other way round."""
    flow = document["flows"][0]
    if "requests" in flow and random.random() < 0.5:
        flow["bytes"] = max(request["bytes"] for request in flow.pop("requests"))
        return
    flow.pop("bytes", None)
    bulk = {"bytes": pick(random, BODIES_BYTES)}
    paused = {"bytes": pick(random, BODIES_BYTES), "pause_s": pick(random, (*_TIMES_S, 7))}
    trickle = {
        "bytes": pick(random, _SHORT_BODIES_BYTES), "every_s": pick(random, (0.02, 0.05, 0.2, 1)),
        "times": pick(random, (5, 20, 50)),
    }  # fmt: skip
    flow["requests"] = pick(random, ([trickle, bulk], [paused, bulk], [paused, trickle, bulk], [trickle]))


def _client(document: Document, random: "Random") -> None:
    """Tell the client when to acknowledge, or no longer."""
    flow = document["flows"][0]
    if "client" in flow:
        del flow["client"]
    else:
        often = pick(random, ({"packets": 1}, {"packets": 10}, {"packets": 25}, {"round_trips": 0.25}))
        often = pick(random, ({"packets": 1}, {"packets": 10}, {"packets": 25}, {"round_trips": 0.25}))
        flow["client"] = {"acks": often}


#: each as often as it should be tried
_CHANGES = (
    _rate, _delay, _queue, _loss, _impair, _impair, _heal, _happen, _happen, _happen, _shift, _shift, _drop, _body,
    _requests, _requests, _client,
)  # fmt: skip
