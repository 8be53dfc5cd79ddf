"""Describe proxies that split connections: the program, its options, and its node in a network that flows share."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Self

from conformance.model.errors import UserError, located
from conformance.model.records import Sparse

#: the suite's own proxy, and another one that can take its place
SPLITTER, PEPSAL = "splitter", "pepsal"
_ALGORITHM_NAME = re.compile(r"[a-z0-9_]{1,15}\Z")


def check_algorithm(name: str, value: object) -> None:
    """Raise UserError unless a value has the form of a kernel's name of a congestion control."""
    if not isinstance(value, str) or not _ALGORITHM_NAME.match(value):
        raise UserError(f"{name} is {value!r}", "it must be a kernel name of a congestion control, such as cubic")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Proxy(Sparse):
    """A proxy that splits connections on the router. An option that is None leaves the kernel's default.

    program: SPLITTER or PEPSAL; digest: that of a program that is not the suite's own, None for SPLITTER.
    to_client, to_server: kernel's name of the congestion control on each side; None is the sender's own algorithm.
    send_buffer_bytes, receive_buffer_bytes, unsent_bytes: SO_SNDBUF, SO_RCVBUF, TCP_NOTSENT_LOWAT of both its sockets.
    back_pressure_bytes: the bound on bytes in the proxy or unacknowledged by the receiver (docs/proxy.md).
    """

    program: str = SPLITTER
    digest: str | None = None
    to_client: str | None = None
    to_server: str | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    unsent_bytes: int | None = None
    back_pressure_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.program not in (SPLITTER, PEPSAL):
            raise UserError(f"proxy {self.program!r} is not known", f"choose {SPLITTER} or {PEPSAL}")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None or field.name in ("program", "digest"):
                continue
            if self.program == PEPSAL:
                raise UserError(f"{PEPSAL} has no {field.name}", f"only {SPLITTER} has it")
            if field.name.endswith("_bytes"):
                if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= 1 << 30:
                    raise UserError(f"{field.name} is {value!r}", "it must be a whole number from 2 to 2^30")
            else:
                check_algorithm(field.name, value)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Splitter(Sparse):
    """A splitter at a node between links of a network: connections that cross the node become two there."""

    node: str
    proxy: Proxy = Proxy()

    def to_json(self) -> dict[str, Any]:
        return {"node": self.node, **self.proxy.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the Splitter that to_json() wrote."""
        rest = {name: value for name, value in data.items() if name != "node"}
        return cls(node=data["node"], proxy=Proxy(**rest))

    @classmethod
    def of_box(cls, box: Mapping[str, Any], where: str) -> Self:
        """Return the Splitter that a box of a scenario's document describes. Raises UserError with a JSON pointer."""
        options = dict(box.get("options", {}))
        known = [field.name for field in dataclasses.fields(Proxy) if field.name not in ("program", "digest")]
        for name in options:
            if name not in known:
                raise UserError(
                    f"{where}/options/{name}: a splitter has no such option", f"choose one of {', '.join(known)}"
                )
        for name in ("ends", "links"):
            if name in box:
                raise UserError(f"{where}/{name}: a splitter is at one node", "name that in node instead")
        with located(f"{where}/options"):
            return cls(node=box["node"], proxy=Proxy(**options))
