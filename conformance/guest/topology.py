"""Describe topologies: their segments and addresses, and where captures are taken and programs run.

A file in topologies/ has a TOPOLOGY, and a build() that returns it as a started Mininet network. Only build() needs
Mininet, so that a TOPOLOGY can be read anywhere.
"""

from __future__ import annotations

import dataclasses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Interface:
    """An interface of a node."""

    node: str
    name: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Host:
    """A host of a group: its node and interface in Mininet, its address, and the bridge's port that leads to it."""

    node: str
    interface: str
    address: str
    mac: str
    port: Interface


@dataclasses.dataclass(frozen=True, kw_only=True)
class Segment:
    """One emulated link.

    `queues` are the interfaces whose egress carries the queue chain; the first one queues the transfer's data.
    `sender` is the node that sends data into the segment, `receiver` the one that receives them, at `address`.
    """

    queues: tuple[Interface, Interface]
    sender: str
    receiver: str
    address: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Router:
    """The node that a proxy may run on, with its interface on each side."""

    node: str
    client_side: str
    server_side: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RivalFlow:
    """The nodes between which a second flow runs, from `source` to `address` of `sink`."""

    source: str
    sink: str
    address: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Topology:
    """What is known of a network before it is built.

    `segments`: the client's first. `addresses`: of client and server, which are nodes of every topology. `taps`: {name
    of a capture: the interface where a trace takes it}. `router` and `rival`: None if there is no place for a proxy, or
    for a second flow.
    """

    segments: tuple[Segment, ...]
    addresses: Mapping[str, str]
    taps: Mapping[str, Interface]
    router: Router | None = None
    rival: RivalFlow | None = None
