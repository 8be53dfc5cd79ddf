"""Convert between networks and the form of Setting from before there were scenarios, which only this module knows.

If a network can be expressed in that form, its Setting's JSON, and so every digest and every key of a stored result, is
as it was then. Such a network is one link of equal directions with one flow of the stack under test, perhaps beside a
rival that was there first; or two such links with a router between them, perhaps with a proxy on it. The Settings of
all other networks are made by Setting.shared().
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.model.errors import UserError
from conformance.model.flow_group import Flows, Start
from conformance.model.links import Direction, Link, Queue
from conformance.model.network import Network
from conformance.model.proxy import Proxy
from conformance.model.setting import RIVAL_TOPOLOGY, Cell, Setting, end_to_end

#: fields of a scenario's document that are not fields of its network
FIELDS = ("boxes",)
#: names of the topologies of one link, and of two
_ONE, _TWO = "one_segment", "two_segment"
#: when the flow under test begins beside a rival, which has the path to itself until then
_BESIDE_A_RIVAL = Start(at_s=5, spread_s=5)
_PLAIN_QUEUES = ("red", "fq_codel", "codel", "cake", "pie", "policer")


def setting(name: str, network: Network, boxes: Sequence[Mapping[str, Any]], timeout_s: float) -> Setting | None:
    """Return the Setting of the older form that says the same as a network with its boxes; None if there is none."""
    links = network.links
    impaired = any(way.impairments is not None for link in links for _, way in link.directions)
    if network.schedule or network.delivery or network.round_trips or impaired:
        return None
    cells = [_cell(link) for link in links]
    queue = _queue(links[0].data)
    test, rival = _flows(network.flows, bool(boxes) or len(links) == 2)
    if test is None or queue is None or None in cells or len(links) != 1 + (rival is None and bool(boxes)):
        return None
    if any(_queue(link.data) != queue for link in links) or test.seconds_at_rate is None:
        return None
    own = [cell for cell in cells if cell is not None]
    split = _split(links, boxes) if len(links) == 2 else {}
    if split is None:
        return None
    return Setting(
        cell=end_to_end(own) if split else own[0],
        profile=name,
        queue=queue,
        offload=network.offload,
        bursts=network.bursts,
        transfer_s=test.seconds_at_rate,
        timeout_s=timeout_s,
        topology=_TWO if split else RIVAL_TOPOLOGY if rival else _ONE,
        host_queue=test.host_queue,
        sysctls=network.sysctls,
        rival=rival,
        **({"segments": tuple(own), **split} if split else {}),
    )


def _cell(link: Link) -> Cell | None:
    """Return the Cell that describes all of a link except its queue; None if no Cell does."""
    if link.data != link.acks or link.data.limiter != "htb" or link.data.rate_mbps is None:
        return None
    if link.data.delay_packets is not None or link.data.burst_bytes is not None:
        return None
    return Cell(link.data.rate_mbps, link.data.delay_ms, link.data.loss_pct)


def _queue(direction: Direction) -> str | None:
    """Return the name that a Setting has for a queue; None if it has none."""
    queue = direction.queue
    if queue is None:
        return None
    plain = Queue(kind=queue.kind, rtt_ms=queue.rtt_ms)
    if queue == plain and queue.kind in _PLAIN_QUEUES:
        return queue.kind
    if queue.size is None or queue.ecn is not None:
        return None
    if queue.kind != "pfifo" and not (queue.kind == "bfifo" and queue.in_bdp):
        return None
    # Neither tc nor a queue's name takes an exponent.
    size = f"{queue.size:g}"
    return f"{queue.kind}:{size}" if "e" not in size and float(size) == queue.size else None


def _flows(groups: Sequence[Flows], split: bool) -> tuple[Flows | None, str | None]:
    """Return the stack's flow and its rival's algorithm; the flow is None if a Setting cannot express the groups."""
    test = groups[0]
    plain = Flows(
        name=test.name, ends=test.ends, seconds_at_rate=test.seconds_at_rate, start=test.start,
        host_queue=test.host_queue,
    )  # fmt: skip
    if test != plain or len(groups) > 2:
        return None, None
    if len(groups) == 1:
        return (test, None) if test.start == Start() else (None, None)
    rival = groups[1]
    beside = Flows(
        name=rival.name, ends=rival.ends, sender="kernel", algorithm=rival.algorithm, judged=False,
        host_queue=test.host_queue,
    )  # fmt: skip
    if split or rival != beside or rival.algorithm is None or test.start != _BESIDE_A_RIVAL:
        return None, None
    return (test, rival.algorithm) if rival.ends == test.ends else (None, None)


def _split(links: Sequence[Link], boxes: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return a split path's fields of Setting from two links and their box; None if a Setting cannot express them.

    The box has "node", "does" ("split" or "route") and options.
    """
    first, second = links
    if len(boxes) != 1 or first.ends[1] != second.ends[0] or boxes[0]["node"] != first.ends[1]:
        return None
    options = dict(boxes[0].get("options", {}))
    by = {_sized_by(link, links) for link in links}
    if len(by) != 1 or None in by:
        return None
    proxy = None
    if boxes[0]["does"] == "split":
        try:
            proxy = Proxy(**options)
        except TypeError:
            raise UserError("/boxes/0/options: a splitter has no such options", "docs/proxy.md lists them") from None
    return {"proxy": proxy, "queue_sized_by": by.pop()}


def _sized_by(link: Link, links: Sequence[Link]) -> str | None:
    """Return whose BDP sizes a link's queue: "path" if no round trip is given, "segment" if its own; else None."""
    rtt_ms = link.data.queue.rtt_ms if link.data.queue else None
    if rtt_ms is None:
        return "path"
    return "segment" if math.isclose(rtt_ms, 2 * link.data.delay_ms) else None


def scenario_of_profile(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario's document that is equivalent to a profile's, with a cell's three quantities as axes.

    Its Setting at each cell is the profile's own: scenario.setting(point) == documents.profile(name, cell).
    """
    kind, _, size = profile["queue"].partition(":")
    direction = {
        "rate_mbps": 10, "delay_ms": 20, "loss_pct": 0,
        "queue": {"kind": kind, **({"size": float(size)} if size else {})},
    }  # fmt: skip
    host = {"host_queue": profile["host_queue"]} if profile["host_queue"] else {}
    test = {"name": "test", "sender": "stack", "seconds_at_rate": profile["transfer_s"], **host}
    flows = [test]
    if profile.get("rival"):
        test["start"] = _BESIDE_A_RIVAL.to_json()
        flows.append({"name": "rival", "sender": "kernel", "algorithm": profile["rival"], "judged": False, **host})
    return {
        "name": profile["name"],
        "title": profile["title"],
        "timeout_s": profile["timeout_s"],
        "offload": profile["offload"],
        **({"bursts": True} if profile.get("bursts") else {}),
        "sysctls": dict(profile["sysctls"]),
        "links": [{"name": "bottleneck", "ends": ["left", "right"], "data": direction, "acks": dict(direction)}],
        "flows": flows,
        "axes": [
            {"name": name, "sets": [f"/links/0/{way}/{field}" for way in ("data", "acks")], "values": list(values)}
            for name, field, values in (
                ("bandwidth_mbps", "rate_mbps", (10, 20, 30, 40, 50)),
                ("one_way_delay_ms", "delay_ms", (20, 1, 40, 60, 80, 100)),
                ("loss_pct", "loss_pct", (0, 1, 2, 3, 4)),
            )
        ],
    }
