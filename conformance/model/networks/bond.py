"""Describe a bond of two links: which packets take which link, and how they are put in order again.

A bond has two sides, like the PDCP of a 5G base station and of a phone under dual connectivity (3GPP TS 36.323). The
side at its second end numbers data packets and deals them to the links in turn. The side at its first end puts them in
order again, with one timer. Acknowledgements go over the first link, in the order in which they come.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from conformance.model.errors import UserError
from conformance.model.networks.links import Link
from conformance.model.records import Sparse

#: value of `split_pct` that deals packets in proportion to the links' rates
AS_RATES = "as_rates"
BATCH, REORDER_MS = 100, 200
_WHOLE_PCT, _SLACK_PCT = 100, 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bond(Sparse):
    """A bond between two nodes, the client's side first, over two links.

    Of each `batch` of packets, the first link gets its share, then the second. `split_pct`: both shares in percent, or
    AS_RATES, in proportion to the links' rates. `duplicate`: each packet takes both links. `reorder_ms`: how long the
    bond waits for a missing packet; 0 means not at all. `cost_ms`: how long each of the two sides holds each packet.
    """

    ends: tuple[str, str]
    links: tuple[str, str]
    batch: int = BATCH
    split_pct: tuple[float, float] | str = (50, 50)
    duplicate: bool = False
    reorder_ms: float = REORDER_MS
    cost_ms: float = 0

    @classmethod
    def of_box(cls, box: Mapping[str, Any], where: str) -> Self:
        """Return the Bond that a box of a scenario's document describes.

        Raises UserError with a JSON pointer that begins with `where`, the box's own.
        """
        for name, kind in (("ends", "nodes, the client's side first"), ("links", "links")):
            count = len(box.get(name, ()))
            if count != 2:
                raise UserError(f"{where}/{name}: a bond has two {name}, not {count}", f"name two {kind}")
        if "node" in box:
            raise UserError(f"{where}/node: a bond joins two nodes", "name both in ends instead")
        options = dict(box.get("options", {}))
        known = [field.name for field in dataclasses.fields(cls) if field.name not in ("ends", "links")]
        for name in options:
            if name not in known:
                raise UserError(
                    f"{where}/options/{name}: a bond has no such option", f"choose one of {', '.join(known)}"
                )
        bond = cls.from_json({**options, "ends": box["ends"], "links": box["links"]})
        for place, why in bond.form_problems():
            cause, _, mend = why.partition("; ")
            raise UserError(f"{where}/options{place}: {cause}", mend or None)
        return bond

    def form_problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from the box's options, what is wrong) for mistakes that the options alone show."""
        if isinstance(self.batch, bool) or not isinstance(self.batch, int) or not 1 <= self.batch <= 1_000_000:
            yield "/batch", f"a batch cannot have {self.batch} packets; give a whole number from 1 to 1000000"
        if not isinstance(self.split_pct, str):
            parts = self.split_pct
            if not isinstance(parts, tuple) or len(parts) != 2 or not all(_is_number(p) and p >= 0 for p in parts):
                yield "/split_pct", "it does not give the shares of two links; give two percentages, or as_rates"
            elif abs(sum(parts) - _WHOLE_PCT) > _SLACK_PCT:
                yield "/split_pct", f"{_text(parts)} sum to {sum(parts):g}; give percentages that sum to 100"
        elif self.split_pct != AS_RATES:
            yield "/split_pct", f"{self.split_pct!r} is not a split; give two percentages, or {AS_RATES}"
        if not isinstance(self.duplicate, bool):
            yield "/duplicate", "it is neither true nor false"
        for name, value, most in (("reorder_ms", self.reorder_ms, 100_000), ("cost_ms", self.cost_ms, 1000)):
            if not _is_number(value) or not 0 <= value <= most:
                yield f"/{name}", f"{value} ms is not valid; give 0 to {most}"

    def problems(self, links: Sequence[Link]) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from the bond's box, what is wrong) for mistakes that the links of its network show."""
        known = {link.name: link for link in links}
        for at, name in enumerate(self.links):
            if name not in known:
                yield f"/links/{at}", f"there is no link {name}; choose two of {', '.join(known)}"
            elif known[name].data.rate_mbps is None:
                yield f"/links/{at}", f"link {name} has no rate; give it rate_mbps"
        if self.links[0] == self.links[1]:
            yield "/links/1", f"link {self.links[1]} is listed twice; name two links"
        elif all(name in known for name in self.links):
            for node in sorted(set(known[self.links[0]].ends) & set(known[self.links[1]].ends)):
                yield "/links/1", f"links {self.links[0]} and {self.links[1]} meet at {node}; give each its own nodes"
        ends = [end for link in links for end in link.ends]
        for at, end in enumerate(self.ends):
            if end in ends:
                yield f"/ends/{at}", f"a link ends at {end}, too; give the bond a node of its own"
        if self.ends[0] == self.ends[1]:
            yield "/ends/1", f"both ends are {self.ends[1]}; name two nodes"
        if all(name in known and known[name].data.rate_mbps for name in self.links):
            share = self.share(links)
            for at, part in enumerate((share, 1 - share)):
                if part > 0 and not self.duplicate and self.packets(links)[at] == 0:
                    yield "/options/batch", f"of {self.batch} packets, link {self.links[at]} would get none; give more"

    def of(self, links: Sequence[Link]) -> tuple[Link, Link]:
        """Return the bond's two links."""
        first, second = (next(link for link in links if link.name == name) for name in self.links)
        return first, second

    def share(self, links: Sequence[Link]) -> float:
        """Return the share of the packets that the first link is to get, from 0 to 1."""
        if not isinstance(self.split_pct, str):
            return self.split_pct[0] / _WHOLE_PCT
        first, second = (link.data.rate_mbps or 0 for link in self.of(links))
        return first / (first + second)

    def packets(self, links: Sequence[Link]) -> tuple[int, int]:
        """Return how many packets of a batch each link gets: whole ones, with a half rounded up for the first link."""
        first = int(self.batch * self.share(links) + 0.5)
        return first, self.batch - first

    def rate_mbps(self, links: Sequence[Link]) -> float:
        """Return the rate of both links together; with `duplicate`, that of the faster link."""
        rates = [link.data.rate_mbps or 0 for link in self.of(links)]
        return max(rates) if self.duplicate else sum(rates)

    def bound_mbps(self, links: Sequence[Link]) -> float:
        """Return the highest sustainable rate of data in order: the lesser of the links' rates over their shares."""
        if self.duplicate:
            return self.rate_mbps(links)
        rates = [link.data.rate_mbps or 0 for link in self.of(links)]
        counts = self.packets(links)
        return min(rate * self.batch / count for rate, count in zip(rates, counts, strict=True) if count)

    def rtt_s(self, links: Sequence[Link]) -> float:
        """Return the empty path's round-trip time: data by the link of shorter delay, acknowledgements by the first."""
        first, second = self.of(links)
        return (min(first.data.delay_ms, second.data.delay_ms) + first.acks.delay_ms + 2 * self.cost_ms) / 1000

    def loss_pct(self, links: Sequence[Link]) -> float:
        """Return the percentage of packets that is lost at random."""
        first, second = (link.data.loss_pct / 100 for link in self.of(links))
        share = self.share(links)
        return 100 * (first * second if self.duplicate else share * first + (1 - share) * second)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(parts: Sequence[float]) -> str:
    return " and ".join(f"{part:g}" for part in parts)
