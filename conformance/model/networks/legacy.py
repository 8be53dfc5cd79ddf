"""Keep the form that settings had before there were scenarios: stored results, keys and digests have it to this day.

It says what a profile says at a cell, or over a path of two segments. `canonical` writes it, for settings at such
points; `CellForm.from_json` reads it. All other settings are written as a scenario's name, a point and a network.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from conformance.model.errors import UserError
from conformance.model.networks.flow_group import Flows, Start
from conformance.model.networks.links import Direction, Link, Queue
from conformance.model.networks.network import Network
from conformance.model.networks.place import Cell, CellPath, end_to_end, number
from conformance.model.networks.proxy import Proxy, Splitter, check_algorithm

if TYPE_CHECKING:
    from conformance.model.networks.setting import Setting

#: names of the topologies: one link, two of them, and one that a rival shares
ONE_SEGMENT, TWO_SEGMENTS, RIVAL_TOPOLOGY = "one_segment", "two_segment", "dumbbell"
#: whose BDP sizes the queue of a path's link: the whole path's, as in the published testbed, or that of the link's own
#: segment
QUEUE_SIZED_BY = ("path", "segment")
#: when the flow under test begins beside a rival, which has the path to itself until then
_BESIDE_A_RIVAL = Start(at_s=5, spread_s=5)
#: nodes of a network: at its ends, and the router of a path
_CLIENT, _SERVER, _ROUTER = "left", "right", "middle"
#: {number of links: (name, ends) of each}
_LINKS: Mapping[int, tuple[tuple[str, tuple[str, str]], ...]] = {
    1: (("bottleneck", (_CLIENT, _SERVER)),),
    2: (("client", (_CLIENT, _ROUTER)), ("server", (_ROUTER, _SERVER))),
}
#: names of the flow under test and of its rival
_FLOWS = ("test", "rival")


def seconds(name: str, given: float) -> int | float:
    """Return a number of seconds in its shortest form. Raises UserError if a trial cannot last so long."""
    if not isinstance(given, (int, float)) or not 0 < given <= 100_000:
        raise UserError(f"{name} is {given!r}", "it must be a number of seconds above 0, at most 100000")
    return number(given)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellForm:
    """What a profile says at a cell or over a path, whose end-to-end cell `cell` then is. Raises UserError.

    `segments`: none, or two, the client's side first. `rival`: the kernel's name of the congestion control of a second
    flow, which starts first and fills the bottleneck. `bursts`: whether the server's link is captured, to see how many
    packets it sends at once. `packets`: whether a measurement keeps the packets of the flow.
    """

    cell: Cell
    profile: str
    queue: str
    offload: bool
    transfer_s: float
    timeout_s: float
    host_queue: str | None
    sysctls: tuple[tuple[str, str], ...]
    segments: tuple[Cell, ...] = ()
    queue_sized_by: str = "path"
    proxy: Proxy | None = None
    rival: str | None = None
    bursts: bool = False
    packets: bool = False

    def __post_init__(self) -> None:
        if self.rival is not None and self.segments:
            raise UserError("a path of two segments cannot have a rival", "choose a profile without one")
        if self.rival is not None:
            check_algorithm("rival", self.rival)
        if self.queue_sized_by not in QUEUE_SIZED_BY:
            raise UserError(f"queue_sized_by is {self.queue_sized_by!r}", f"choose {' or '.join(QUEUE_SIZED_BY)}")
        if not self.segments and (self.proxy or self.queue_sized_by != "path"):
            raise UserError("a proxy, and queues sized by segment, need a path of two segments")
        if self.segments and self.cell != end_to_end(self.segments):
            raise UserError(f"{self.point.id} is not a path of two segments that add up to {self.cell.id}")
        for name in ("transfer_s", "timeout_s"):
            object.__setattr__(self, name, seconds(name, getattr(self, name)))
        if self.host_queue not in (None, "fq"):
            raise UserError(f"host_queue is {self.host_queue!r}", "it must be null or fq")

    @property
    def point(self) -> Cell | CellPath:
        return CellPath(self.segments) if self.segments else self.cell

    @property
    def topology(self) -> str:
        return RIVAL_TOPOLOGY if self.rival else TWO_SEGMENTS if self.segments else ONE_SEGMENT

    @property
    def links(self) -> tuple[Cell, ...]:
        """The cells of its links, the client's first: one cell, or the two of a path."""
        return self.segments or (self.cell,)

    @property
    def bottleneck(self) -> int:
        """Index of the slowest link, where the transfer's data queues. Ties go to the link nearest the server."""
        return max(range(len(self.links)), key=lambda i: (-self.links[i].bandwidth_mbps, i))

    @property
    def network(self) -> Network:
        """The network that it describes. Raises UserError."""
        test = Flows(
            name=_FLOWS[0], ends=(_CLIENT, _SERVER), seconds_at_rate=self.transfer_s, host_queue=self.host_queue,
            start=_BESIDE_A_RIVAL if self.rival else Start(),
        )  # fmt: skip
        rival = Flows(
            name=_FLOWS[1], ends=test.ends, sender="kernel", algorithm=self.rival, judged=False,
            host_queue=self.host_queue,
        )  # fmt: skip
        return Network(
            links=tuple(
                self._link(name, ends, cell)
                for (name, ends), cell in zip(_LINKS[len(self.links)], self.links, strict=True)
            ),
            flows=(test, rival) if self.rival else (test,),
            offload=self.offload,
            bursts=self.bursts,
            sysctls=self.sysctls,
            splitters=(Splitter(node=_ROUTER, proxy=self.proxy),) if self.proxy else (),
        )

    def _link(self, name: str, ends: tuple[str, str], cell: Cell) -> Link:
        rtt_ms = 2 * cell.one_way_delay_ms if self.queue_sized_by == "segment" else None
        queue = dataclasses.replace(Queue.parse(self.queue), rtt_ms=rtt_ms)
        both = Direction(
            rate_mbps=cell.bandwidth_mbps, delay_ms=cell.one_way_delay_ms, loss_pct=cell.loss_pct, queue=queue
        )
        return Link(name=name, ends=ends, data=both, acks=both)

    @classmethod
    def of(cls, setting: "Setting") -> Self | None:
        """Return the form of a setting; None if it has none."""
        network, point = setting.network, setting.point
        test, queue = network.tested, network.links[0].data.queue
        if not isinstance(point, (Cell, CellPath)) or queue is None or test.seconds_at_rate is None:
            return None
        segments = point.segments if isinstance(point, CellPath) else ()
        rivals = [group.algorithm for group in network.flows if not group.judged]
        if (segments and rivals) or (network.splitters and not segments):
            return None
        form = cls(
            cell=end_to_end(segments) if isinstance(point, CellPath) else point,
            profile=setting.profile,
            queue=queue.text,
            offload=network.offload,
            transfer_s=test.seconds_at_rate,
            timeout_s=setting.timeout_s,
            host_queue=test.host_queue,
            sysctls=network.sysctls,
            segments=segments,
            queue_sized_by="path" if queue.rtt_ms is None or not segments else "segment",
            proxy=network.splitters[0].proxy if network.splitters else None,
            rival=rivals[0] if rivals else None,
            bursts=network.bursts,
            packets=setting.packets,
        )
        return form if form.network == network else None

    def to_json(self) -> dict[str, Any]:
        """Return the form as it is digested: what was added later is left out where it has no use."""
        document = {
            **dataclasses.asdict(self), "topology": self.topology, "sysctls": dict(self.sysctls),
            "cell": self.cell.to_json(), "segments": [cell.to_json() for cell in self.segments],
        }  # fmt: skip
        unused = () if self.segments else ("segments", "queue_sized_by", "proxy")
        absent = [name for name in ("rival", "bursts", "packets") if not document[name]]
        return {name: content for name, content in document.items() if name not in (*unused, *absent)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the form that to_json() wrote. Raises UserError."""
        form = cls(
            **{name: content for name, content in document.items() if name != "topology"}
            | {
                "cell": Cell(**document["cell"]),
                "sysctls": tuple(sorted(document["sysctls"].items())),
                "segments": tuple(Cell(**cell) for cell in document.get("segments", ())),
                "proxy": Proxy(**document["proxy"]) if document.get("proxy") else None,
            }
        )
        if form.topology != document["topology"]:
            raise UserError(f"topology {document['topology']} does not go with rival {form.rival}", "measure it again")
        return form


def at_cells(network: Network) -> tuple[Cell | CellPath, Network] | None:
    """Return (the point, the network with a profile's names) of a network that has the shape of a profile's; or None.

    What else a profile cannot say is left to CellForm.of().
    """
    links, flows = network.links, network.flows
    ends = (links[0].ends[0], links[-1].ends[1])
    straight = len(links) == 1 or (len(links) == 2 and links[0].ends[1] == links[1].ends[0])
    if not straight or len(flows) > len(_FLOWS) or any(group.ends != ends for group in flows):
        return None
    if any(link.data.rate_mbps is None for link in links):
        return None
    cells = [Cell(link.data.rate_mbps or 0, link.data.delay_ms, link.data.loss_pct) for link in links]
    renamed = dataclasses.replace(
        network,
        links=tuple(
            dataclasses.replace(link, name=name, ends=between)
            for link, (name, between) in zip(links, _LINKS[len(links)], strict=True)
        ),
        flows=tuple(
            dataclasses.replace(group, name=name, ends=(_CLIENT, _SERVER))
            for group, name in zip(flows, _FLOWS, strict=False)
        ),
        splitters=tuple(dataclasses.replace(splitter, node=_ROUTER) for splitter in network.splitters),
    )
    return (CellPath(tuple(cells)) if len(cells) > 1 else cells[0]), renamed


def canonical(setting: "Setting") -> dict[str, Any]:
    """Return what the digests of a setting, and the keys of its trials, are made of."""
    form = setting.cell_form
    if form is not None:
        return form.to_json()
    point = dict(sorted(setting.point.values))
    about = {"scenario": setting.profile, "point": point, "timeout_s": setting.timeout_s}
    return {**about, "network": setting.network.to_json(), **({"packets": True} if setting.packets else {})}
