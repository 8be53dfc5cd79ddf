"""Define a Setting: everything about the network and the flows that a result depends on.

A Setting is a scenario at a point. Profiles are scenarios, too: their axes are the rate, delay and loss of one link, so
each of their points is a Cell. All of this is checked once, here, so that nothing later has to.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from typing import Any, Self

from conformance.model import digest
from conformance.model.errors import UserError
from conformance.model.networks import legacy
from conformance.model.networks.links import Direction
from conformance.model.networks.network import Network
from conformance.model.networks.place import Cell, CellPath, Point

#: a trial that is recorded in detail ends once so many seconds have passed without a packet: the kernel's TCP waits no
#: longer before it sends again
SILENCE_S = 120
#: how long a server may take, in s, until its port is bound (docs/contract.md)
READY_S = 30


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """The network of a scenario at a point. Raises UserError if a value makes no sense.

    `profile`: the name of the scenario. `packets`: whether its measurement keeps the packets of the tested group's
    first flow.
    """

    profile: str
    point: Point
    network: Network
    timeout_s: float
    packets: bool = False

    def __post_init__(self) -> None:
        if self.network.bottleneck(self.network.tested) is None:
            raise UserError("/links: nothing limits the rate of the group that is judged", "give a link rate_mbps")
        object.__setattr__(self, "point", self.point.by_name)  # as result lines have it
        object.__setattr__(self, "timeout_s", legacy.seconds("timeout_s", self.timeout_s))
        legacy.seconds("transfer_s", self.transfer_s)

    def __hash__(self) -> int:
        # Settings that differ in their networks alone are rare, and networks are large.
        return hash((self.profile, self.point, self.timeout_s))

    @property
    def id(self) -> str:
        return self.point.id or self.profile

    @functools.cached_property
    def cell(self) -> Cell:
        """The path of the judged group in three figures: its rate, half of its round-trip time, its random loss."""
        network, tested = self.network, self.network.tested
        if isinstance(self.point, Cell):
            return self.point
        half_ms, loss_pct = round(500 * network.rtt_s(tested), 9), round(network.loss_pct(tested), 9)
        return Cell(network.rate_mbps(tested) or 0, half_ms, loss_pct)

    @property
    def segments(self) -> tuple[Cell, ...]:
        """The cells of a path of two segments, the client's side first; none at other points."""
        return self.point.segments if isinstance(self.point, CellPath) else ()

    def bdp_bytes(self, direction: Direction) -> float:
        """Return the bandwidth-delay product that sizes a direction's queue.

        As in the published testbed, that of a whole path sizes the queues of its segments.
        """
        whole = self.segments and direction.queue is not None and direction.queue.rtt_ms is None
        return self.cell.bdp_bytes if whole else self.network.bdp_bytes(direction)

    @property
    def of_profile(self) -> bool:
        """Whether it is a profile at a cell or over a path: all of its points have one digest and are compared."""
        return isinstance(self.point, Cell | CellPath)

    @property
    def sysctls(self) -> tuple[tuple[str, str], ...]:
        return self.network.sysctls

    @property
    def offload(self) -> bool:
        return self.network.offload

    @property
    def queue(self) -> str:
        """The queue at the judged group's bottleneck, with its size."""
        link, way = self.network.bottleneck(self.network.tested) or (self.network.links[0], "data")
        queue = link.direction(way).queue
        return queue.text if queue else "pfifo"

    @property
    def rival(self) -> str | None:
        """The algorithm of the one flow beside that of a cell; None if there is none, or at other points."""
        beside = [group.algorithm for group in self.network.flows if not group.judged]
        return beside[0] if beside and isinstance(self.point, Cell) else None

    @property
    def transfer_s(self) -> float:
        """How long each judged flow takes at the bottleneck's rate, with the time that its client waits."""
        tested = self.network.tested
        rate_mbps = self.network.rate_mbps(tested) or 0
        lasts_s = tested.seconds or tested.seconds_at_rate or 8 * (tested.total_bytes or 0) / rate_mbps / 1e6
        return lasts_s + tested.waits_s or self.timeout_s

    @property
    def transfer_bytes(self) -> int:
        """The bytes of `transfer_s` seconds at the bottleneck's rate, as the ATC'25 testbed sizes its transfers."""
        return math.floor(self.transfer_s * 1e6 * self.cell.bandwidth_mbps / 8)

    @functools.cached_property
    def cell_form(self) -> legacy.CellForm | None:
        """What the setting says in the form from before there were scenarios; None if that cannot say it."""
        return legacy.CellForm.of(self)

    def to_json(self) -> dict[str, Any]:
        return legacy.canonical(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> "Setting":
        """Return the Setting of a stored result, of today's form or of that from before there were scenarios."""
        return _read(digest.canonical(document))

    @classmethod
    def of_form(cls, form: legacy.CellForm) -> Self:
        """Return the Setting that a form describes. Raises UserError."""
        return cls(
            profile=form.profile, point=form.point, network=form.network, timeout_s=form.timeout_s,
            packets=form.packets,
        )  # fmt: skip

    @functools.cached_property
    def profile_digest(self) -> str:
        """Digest of all but the cell and the segments: it must be equal before results may be compared."""
        document = self.to_json()
        document.pop("cell", None)
        document.pop("segments", None)
        return digest.of_value(document)

    @functools.cached_property
    def guest_digest(self) -> str:
        """Digest of what settings in one guest must have in common: all that its job says (conformance/lab/job.py).

        The values of links and the sizes of flows are not in a job, but in what the guest is fed.
        """
        network = self.network
        return digest.of_value([
            [[link.name, link.ends, network.impaired(link)] for link in network.links],
            [[group.name, group.ends, group.sender, group.count if group.is_stack else 0, group.ecn, group.host_queue,
              bool(group.requests), group.client.ports] for group in network.flows],
            network.offload, self.sysctls, self.timeout_s, self.packets, network.needs_ports, network.delivery,
            self.cell_form is not None, network.bond and [network.bond.ends, network.bond.links],
            [[splitter.node, splitter.proxy.program, splitter.proxy.to_client, splitter.proxy.to_server]
             for splitter in network.splitters],
        ])  # fmt: skip


@functools.lru_cache(maxsize=4096)
def _read(written: str) -> Setting:
    """Return the Setting in a JSON document; files hold thousands of lines of one setting."""
    document = json.loads(written)
    if "cell" in document:
        return Setting.of_form(legacy.CellForm.from_json(document))
    return Setting(
        profile=document["scenario"], point=Point.of(document["point"]), network=Network.from_json(document["network"]),
        timeout_s=document["timeout_s"], packets=document.get("packets", False),
    )  # fmt: skip
