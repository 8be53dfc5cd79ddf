"""A Setting: everything about the network and the transfer that a result depends on.

A *cell* (bandwidth, one-way delay, loss) is one point of a grid. A *profile* holds the rest: queue, offload,
transfer length, sysctls. A Setting is both, validated once, here, so that nothing later has to ask.
"""

import dataclasses
import functools
import math
import re

from conformance.model import digest
from conformance.model.errors import UserError

#: queues by name -> what their size after the colon counts, or None where they take no size
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
_SYSCTL_NAME = re.compile(r"net\.(ipv4|ipv6|core)\.[a-z0-9_.]+\Z")


def number(value):
    """The shortest form of a number: 10 for 10.0, so that equal settings read and digest alike."""
    return int(value) if float(value).is_integer() else float(value)


@dataclasses.dataclass(frozen=True, order=True)
class Cell:
    """One point of a grid. `one_way_delay_ms` is per segment: the round-trip time is twice that."""

    bandwidth_mbps: float
    one_way_delay_ms: float
    loss_pct: float

    def __post_init__(self):
        for name, low, high, why in (
            ("bandwidth_mbps", 0.1, 10_000, "must be from 0.1 to 10000"),
            ("one_way_delay_ms", 0, 10_000, "must be from 0 to 10000"),
            ("loss_pct", 0, 50, "must be from 0 to 50: no transfer ends beyond that"),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise UserError(f"{name} is {value!r}", "it must be a number")
            if not low <= value <= high:
                raise UserError(f"{name} is {value:g}", f"it {why}")
            object.__setattr__(self, name, number(value))

    @property
    def id(self):
        return f"{self.bandwidth_mbps:g}mbps-{self.one_way_delay_ms:g}ms-{self.loss_pct:g}pct"

    @classmethod
    def parse(cls, text):
        """The inverse of `id`; raises UserError."""
        match = re.fullmatch(r"(-?[\d.]+)mbps-(-?[\d.]+)ms-(-?[\d.]+)pct", text)
        if not match:
            raise UserError(f"cell {text!r} is not of the form 10mbps-20ms-1pct")
        try:
            return cls(*(float(x) for x in match.groups()))
        except ValueError:
            raise UserError(f"cell {text!r} is not of the form 10mbps-20ms-1pct") from None

    def to_json(self):
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """A cell under a profile. Raises UserError where a value makes no sense."""

    cell: Cell
    profile: str
    queue: str
    offload: bool
    transfer_s: float
    timeout_s: float
    topology: str
    host_queue: str | None
    sysctls: tuple[tuple[str, str], ...]

    def __post_init__(self):
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
        for name in ("transfer_s", "timeout_s"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 < value <= 100_000:
                raise UserError(f"{name} is {value!r}", "it must be a number of seconds above 0, at most 100000")
            object.__setattr__(self, name, number(value))
        if self.host_queue not in (None, "fq"):
            raise UserError(f"host_queue is {self.host_queue!r}", "it must be null or fq")
        for name, _ in self.sysctls:
            if not _SYSCTL_NAME.match(name):
                raise UserError(f"sysctl {name!r} is not one of the network's", "names begin with net.")

    @property
    def transfer_bytes(self):
        """`transfer_s` seconds at the bottleneck's rate, as the ATC'25 testbed sizes its transfers."""
        return math.floor(self.transfer_s * 1e6 * self.cell.bandwidth_mbps / 8)

    def to_json(self):
        return {**dataclasses.asdict(self), "sysctls": dict(self.sysctls), "cell": self.cell.to_json()}

    @classmethod
    def from_json(cls, data):
        return cls(**{**data, "cell": Cell(**data["cell"]), "sysctls": tuple(sorted(data["sysctls"].items()))})

    @functools.cached_property
    def profile_digest(self):
        """Digest of all but the cell: what must agree before results may be compared."""
        data = self.to_json()
        del data["cell"]
        return digest.of_value(data)
