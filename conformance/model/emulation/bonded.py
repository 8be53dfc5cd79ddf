"""Build the tc command that delays packets in a bond, and check that the bond did what it was asked to do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.networks.bond import Bond
from conformance.model.networks.links import Link

#: netem's limit in packets, far more than it ever holds
_NO_LIMIT_PACKETS = 1_000_000
#: how long a packet may wait to be read, in ns. Each side reads a packet when it arrives, but one of many that arrive
#: at once waits for a system call or two for each one before it.
_MOST_STOOD_NS = 2_000_000

Counts = Mapping[str, int]


def cost_lines(bond: Bond) -> list[str]:
    """Return the tc commands for the egress {dev} of a side; none if a packet costs no time.

    All packets leave equally late, so packets that arrive together leave together: the study's cost is a latency, not a
    limit on the rate.
    """
    if not bond.cost_ms:
        return []
    cost = f"delay {bond.cost_ms * 1000:.12g}us"
    return [f"qdisc add dev {{dev}} root handle 1: netem limit {_NO_LIMIT_PACKETS} {cost}"]


def problems(bond: Bond, links: Sequence[Link], facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about what a bond did that was not requested, or counted differently than the kernel."""
    split, merge = facts["split"], facts["merge"]
    yield from _other_counts(split, merge, facts["interfaces"])
    for side, counts in (("split", split), ("merge", merge)):
        if counts["dropped"]:
            yield f"the bond's {side} had no room for {counts['dropped']} packets"
        if counts["stood_ns"] > _MOST_STOOD_NS:
            yield f"a packet waited {counts['stood_ns'] / 1e6:g} ms before the bond's {side} read it"
    expected = dealt(bond, links, split["came"] - split["other"])
    counted = split["one"] - split["other"], split["two"]
    if counted != expected:
        instead = f"instead of {expected[0]} and {expected[1]}"
        yield f"the bond dealt {counted[0]} and {counted[1]} packets to its links {instead}"
    delayed = sum(q.get("kind") == "netem" for q in facts["qdiscs"])
    if delayed != (3 if bond.cost_ms else 0):
        yield f"{delayed} sides of the bond delay packets, although a cost of {bond.cost_ms:g} ms was requested"
    came = merge["one"] + merge["two"] - merge["other"]
    through = merge["left"] + merge["copies"] + merge["late"] + merge["beyond"] + merge["waiting"]
    if came != through:
        yield f"{came} packets reached the bond's far side, which accounts for {through}"
    if merge["copies"] and not bond.duplicate:
        yield f"{merge['copies']} packets arrived twice, but none was sent twice"
    if not bond.reorder_ms and (merge["held"] or merge["expiries"]):
        yield f"{merge['held']} packets were held, and none should have been"


def _other_counts(split: Counts, merge: Counts, interfaces: Mapping[str, Counts]) -> Iterator[str]:
    """Yield sentences about interface counters that differ from what a program of the bond counted there."""
    for interface, way, counts, names in (
        ("b-split:hosts", "rx", split, ("came",)),
        ("b-split:one", "tx", split, ("one",)),
        ("b-split:two", "tx", split, ("two",)),
        ("b-merge:one", "rx", merge, ("one",)),
        ("b-merge:two", "rx", merge, ("two",)),
        ("b-merge:hosts", "tx", merge, ("left",)),
    ):
        for unit in ("packets", "bytes"):
            (name,) = names
            counted = counts[name if unit == "packets" else f"{name}_bytes"]
            if name == "left" and merge["other"]:
                continue  # frames that are not IPv4 pass uncounted
            kernel = interfaces[interface][f"{way}_{unit}"]
            if kernel != counted:
                yield f"{interface} counted {kernel} {unit}, but the bond {counted}"


def dealt(bond: Bond, links: Sequence[Link], packets: int) -> tuple[int, int]:
    """Return how many of `packets` packets each link is dealt."""
    if bond.duplicate:
        return packets, packets
    first = bond.packets(links)[0]
    turns, rest = divmod(packets, bond.batch)
    first_packets = turns * first + min(rest, first)
    return first_packets, packets - first_packets
