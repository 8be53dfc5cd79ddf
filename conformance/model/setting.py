"""Define a Setting: everything about the network and the transfer that a result depends on.

A *cell* (bandwidth, one-way delay, loss) is one point of a grid. A *profile* holds the rest: queue, offload, transfer
length, sysctls. A Setting is both. It is validated once, here, so that nothing later has to.

A *path* has two segments, each a cell, the client's first, with a router between them. The Setting's cell is then the
end-to-end cell of the two, so all that is said of a cell (transfer, utilization, bandwidth-delay product) is said of
the whole path. On the router there may be a *proxy*, which splits the connection.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from conformance.model import digest
from conformance.model.errors import UserError
from conformance.model.network import Network
from conformance.model.proxy import Proxy, check_algorithm

#: queues by name -> the unit of the size after the colon, or None if they take no size
QUEUES = {
    "red": None,
    "bfifo": "bdp",
    "pfifo": "packets",
    "fq_codel": None,
    "codel": None,
    "cake": None,
    "pie": None,
    "policer": None,
}
#: the largest size of a queue, in packets or bytes, that the kernel can count
_LARGEST_QUEUE = 2**32 - 1
_SYSCTL_NAME = re.compile(r"net\.(ipv4|ipv6|core)\.[a-z0-9_.]+\Z")


#: a number in an id, as `exact` writes it or as a person may write it instead
NUMBER = r"-?[\d.]+(?:e-?\d+)?"
_CELL = re.compile(rf"({NUMBER})mbps-({NUMBER})ms-({NUMBER})pct")


def number(value: float) -> int | float:
    """Return the shortest form of a number: 10 for 10.0, so that equal settings read and digest alike."""
    return int(value) if float(value).is_integer() else float(value)


def exact(value: float) -> str:
    """Return a number as ids have it: short, and read back as exactly the same number."""
    return repr(number(value))


@dataclasses.dataclass(frozen=True, order=True)
class Cell:
    """One point of a grid. `one_way_delay_ms` is per segment: the round-trip time is twice that."""

    bandwidth_mbps: float
    one_way_delay_ms: float
    loss_pct: float

    def __post_init__(self) -> None:
        for name, low, high, why in (
            ("bandwidth_mbps", 0.1, 10_000, "must be from 0.1 to 10000"),
            ("one_way_delay_ms", 0, 10_000, "must be from 0 to 10000"),
            ("loss_pct", 0, 50, "must be from 0 to 50: no transfer ends beyond that"),
        ):
            value = getattr(self, name)
            # A comparison, as math.isfinite() raises for integers that no float holds.
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < math.inf:
                raise UserError(f"{name} is {value!r}", "it must be a number")
            if not low <= value <= high:
                raise UserError(f"{name} is {value!r:.20}", f"it {why}")
            object.__setattr__(self, name, number(value))

    @property
    def id(self) -> str:
        """The text that `parse` reads back: equal cells, and no others, have equal ids."""
        return f"{exact(self.bandwidth_mbps)}mbps-{exact(self.one_way_delay_ms)}ms-{exact(self.loss_pct)}pct"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the Cell of an id. Raises UserError."""
        match = _CELL.fullmatch(text)
        if not match:
            raise UserError(f"cell {text!r} is not of the form 10mbps-20ms-1pct")
        try:
            return cls(*(float(x) for x in match.groups()))
        except ValueError:
            raise UserError(f"cell {text!r} is not of the form 10mbps-20ms-1pct") from None

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def end_to_end(segments: Sequence[Cell]) -> Cell:
    """Return the end-to-end Cell of segments in a row: the smallest bandwidth, the sum of delays, the loss of all.

    A packet may be lost in each segment, independently: l1 + l2 - l1 l2 for two. The result is the same in any order,
    and for any grouping up to rounding. Raises UserError if it is no Cell (loss above 50 %).
    """
    kept = math.prod(1 - cell.loss_pct / 100 for cell in segments)
    return Cell(
        min(cell.bandwidth_mbps for cell in segments),
        round(math.fsum(cell.one_way_delay_ms for cell in segments), 9),
        round(100 * (1 - kept), 9),
    )


def path_id(segments: Sequence[Cell]) -> str:
    return "+".join(cell.id for cell in segments)


def parse_path(text: str) -> tuple[Cell, Cell]:
    """Return the two segments of what `path_id` wrote. Raises UserError."""
    parts = text.split("+")
    if len(parts) != 2:
        raise UserError(
            f"path {text!r} is not of the form 10mbps-20ms-0pct+50mbps-60ms-1pct", "name the client's side first"
        )
    first, second = (Cell.parse(part.strip()) for part in parts)
    return first, second


#: the topology in which a rival shares the bottleneck
RIVAL_TOPOLOGY = "dumbbell"
#: the name of the topology of a network that flows share; no file of topologies/ has it
SHARED_TOPOLOGY = "shared"
#: whose BDP sizes the queue of a path's link: the whole path's, as in the published testbed, or that of the link's own
#: segment
QUEUE_SIZED_BY = ("path", "segment")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """A cell under a profile, or a path of two segments under it. Raises UserError if a value makes no sense."""

    cell: Cell
    profile: str
    queue: str
    offload: bool
    transfer_s: float
    timeout_s: float
    topology: str
    host_queue: str | None
    sysctls: tuple[tuple[str, str], ...]
    #: no segments, or two, the client's side first
    segments: tuple[Cell, ...] = ()
    queue_sized_by: str = "path"
    proxy: Proxy | None = None
    #: the kernel's name of the congestion control of a second flow, which starts first and fills the bottleneck; or
    #: none
    rival: str | None = None
    #: whether the server's link is captured, to see how many packets it sends at once
    bursts: bool = False
    #: whether its measurement keeps the packets of the tested group's first flow
    packets: bool = False
    #: a network that the fields above cannot express, and the point of its scenario; or none
    network: Network | None = None
    point: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for name in ("transfer_s", "timeout_s"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 < value <= 100_000:
                raise UserError(f"{name} is {value!r}", "it must be a number of seconds above 0, at most 100000")
            object.__setattr__(self, name, number(value))
        if self.network is not None:
            assert self.sysctls == self.network.sysctls, "a trial is known by its network's"
            return  # the network was checked when it was made
        self._check_path()
        kind, _, size = self.queue.partition(":")
        if kind not in QUEUES:
            raise UserError(f"queue {self.queue!r} is not known", f"choose one of {', '.join(QUEUES)}")
        unit = QUEUES[kind]
        if bool(size) != bool(unit):
            form = f"{kind}:SIZE, SIZE in {unit}" if unit else kind
            raise UserError(f"queue {self.queue!r} is not of the form {form}")
        if unit:
            try:
                positive = math.isfinite(float(size)) and float(size) > 0
            except ValueError:
                positive = False
            if not positive or (unit == "packets" and not size.isdigit()):
                raise UserError(f"queue {self.queue!r}: the size must be a positive number of {unit}")
            if float(size) > _LARGEST_QUEUE:
                raise UserError(f"queue {self.queue!r}: the size is too large", f"give at most {_LARGEST_QUEUE} {unit}")
        if self.host_queue not in (None, "fq"):
            raise UserError(f"host_queue is {self.host_queue!r}", "it must be null or fq")
        for name, _ in self.sysctls:
            if not _SYSCTL_NAME.match(name):
                raise UserError(f"sysctl {name!r} is not a network sysctl", "names begin with net.")

    def _check_path(self) -> None:
        if self.rival is not None and self.segments:
            raise UserError("a path of two segments cannot have a rival", "choose a profile without one")
        if (self.topology == RIVAL_TOPOLOGY) != (self.rival is not None):
            raise UserError(
                f"topology {self.topology} does not go with rival {self.rival}",
                f"a rival needs {RIVAL_TOPOLOGY}, and {RIVAL_TOPOLOGY} needs a rival",
            )
        if self.rival is not None:
            check_algorithm("rival", self.rival)
        if self.queue_sized_by not in QUEUE_SIZED_BY:
            raise UserError(f"queue_sized_by is {self.queue_sized_by!r}", f"choose {' or '.join(QUEUE_SIZED_BY)}")
        if not self.segments:
            if self.proxy or self.queue_sized_by != "path":
                raise UserError("a proxy, and queues sized by segment, need a path of two segments")
        elif len(self.segments) != 2 or self.cell != end_to_end(self.segments):
            raise UserError(f"{path_id(self.segments)} is not a path of two segments that add up to {self.cell.id}")

    @property
    def links(self) -> tuple[Cell, ...]:
        """The cells of its links, the client's first: one cell, or the two of a path."""
        return self.segments or (self.cell,)

    @property
    def bottleneck(self) -> int:
        """Index of the slowest link, where the transfer's data queues. Ties go to the link nearest the server."""
        return max(range(len(self.links)), key=lambda i: (-self.links[i].bandwidth_mbps, i))

    @property
    def id(self) -> str:
        if self.network is not None:
            return ",".join(f"{name}={value}" for name, value in self.point) or self.profile
        return path_id(self.links)

    @property
    def transfer_bytes(self) -> int:
        """The bytes of `transfer_s` seconds at the bottleneck's rate, as the ATC'25 testbed sizes its transfers."""
        return math.floor(self.transfer_s * 1e6 * self.cell.bandwidth_mbps / 8)

    def to_json(self) -> dict[str, Any]:
        if self.network is not None:
            about = {"scenario": self.profile, "point": dict(self.point), "timeout_s": self.timeout_s}
            return {**about, "network": self.network.to_json(), **({"packets": True} if self.packets else {})}
        data = {**dataclasses.asdict(self), "sysctls": dict(self.sysctls), "cell": self.cell.to_json()}
        del data["network"], data["point"]
        if self.rival is None:
            del data["rival"]
        for name in ("bursts", "packets"):
            if not data[name]:
                del data[name]
        if self.segments:
            data["segments"] = [cell.to_json() for cell in self.segments]
        else:
            # Without paths it is as it was before there were any, so that older measurements and zones keep their
            # digests.
            del data["segments"], data["queue_sized_by"], data["proxy"]
        return data

    @classmethod
    def shared(cls, name: str, network: Network, point: Sequence[tuple[str, Any]], timeout_s: float) -> Self:
        """Return the Setting of a network at a point of scenario `name`.

        Code that reads cells gets figures of the first judged group: the cell has the bottleneck's rate, half of the
        path's round-trip time, and the loss on the data's route. Raises UserError if nothing limits the group's rate.
        """
        tested = network.tested
        bottleneck = network.bottleneck(tested)
        if bottleneck is None:
            raise UserError("/links: nothing limits the rate of the group that is judged", "give a link rate_mbps")
        direction = bottleneck[0].direction(bottleneck[1])
        rate_mbps = network.rate_mbps(tested) or 0
        lasts_s = tested.seconds or tested.seconds_at_rate or 8 * (tested.total_bytes or 0) / rate_mbps / 1e6
        return cls(
            cell=Cell(rate_mbps, round(500 * network.rtt_s(tested), 9), round(network.loss_pct(tested), 9)),
            profile=name,
            queue=direction.queue.kind if direction.queue else "pfifo",
            offload=network.offload,
            transfer_s=lasts_s + tested.waits_s or timeout_s,
            timeout_s=timeout_s,
            topology=SHARED_TOPOLOGY,
            host_queue=tested.host_queue,
            sysctls=network.sysctls,
            network=network,
            point=tuple(sorted(point)),  # as it comes back from a result line, which sorts names
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        if "network" in data:
            point = tuple(data["point"].items())
            shared = cls.shared(data["scenario"], Network.from_json(data["network"]), point, data["timeout_s"])
            return dataclasses.replace(shared, packets=data.get("packets", False))
        path = {
            "segments": tuple(Cell(**cell) for cell in data.get("segments", ())),
            "proxy": Proxy(**data["proxy"]) if data.get("proxy") else None,
        }
        return cls(**{**data, **path, "cell": Cell(**data["cell"]), "sysctls": tuple(sorted(data["sysctls"].items()))})

    @functools.cached_property
    def profile_digest(self) -> str:
        """Digest of all but the cell and the segments: it must be equal before results may be compared."""
        data = self.to_json()
        data.pop("cell", None)
        data.pop("segments", None)
        return digest.of_value(data)

    @functools.cached_property
    def guest_digest(self) -> str:
        """Digest of what settings in one guest must have in common: of a network its structure, not its values."""
        if self.network is None:
            return self.profile_digest
        structure = [
            [[link.name, link.ends] for link in self.network.links],
            [[group.name, group.ends, group.sender, group.count if group.is_stack else 0, group.ecn, group.host_queue,
              bool(group.requests)] for group in self.network.flows],
            self.network.offload, self.sysctls, self.timeout_s, self.profile, *(["packets"] if self.packets else []),
        ]  # fmt: skip
        # A link with impairments has a node in its middle.
        impaired = [self.network.impaired(link) for link in self.network.links]
        if any(map(any, impaired)):
            structure.append(impaired)
        if self.network.bond is not None:
            structure.append([self.network.bond.ends, self.network.bond.links])
        if self.network.splitters or self.network.delivery:
            nodes = [splitter.node for splitter in self.network.splitters]
            structure.append(["split", *nodes, self.network.delivery])
        return digest.of_value(structure)
