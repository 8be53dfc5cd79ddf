"""Records that a guest works with: the stage that a whole job is carried out on, and one transfer on it."""

from __future__ import annotations

import dataclasses
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from conformance.guest.protocol import CellJob, Job, Program
    from conformance.guest.topology import Interface, RivalFlow, Router, Topology


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A job, the started network that it is carried out in, and where its files are.

    `net` is Mininet's network, `topology` its builder's description.
    `pki` is the job's folder of certificates, copied to where stacks may read it.
    """

    job: Job
    net: Any
    topology: Topology
    scratch: str
    pki: str

    @property
    def router(self) -> Router:
        """The router of this topology. Raises ValueError if it has none."""
        if self.topology.router is None:
            raise ValueError("this topology has no router for a proxy")
        return self.topology.router

    @property
    def rival(self) -> RivalFlow:
        """The place of a second flow in this topology. Raises ValueError if it has none."""
        if self.topology.rival is None:
            raise ValueError("this topology has no place for a rival")
        return self.topology.rival

    def bottleneck(self, transfer: Transfer) -> Interface:
        """Return the interface whose egress queue holds the data of a transfer."""
        return self.topology.segments[transfer.slowest].queues[0]

    def program(self, role: str) -> Program:
        """Return the stack's program for "server" or "client"."""
        return self.job.server if role == "server" else self.job.client

    def folder(self, role: str) -> str:
        """Return the folder that the program of a role works in."""
        return os.path.join(self.job.work_dir, role)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Transfer:
    """One transfer to be made: its bytes, the tc commands of each link, and the index of the slowest link.

    `www` is a folder with a file of that size. `logs`: for each role the folder that it may write logs to, if any.
    """

    seed: int
    transfer_bytes: int
    slowest: int
    tc: tuple[tuple[str, ...], ...]
    www: str
    logs: Mapping[str, str] = dataclasses.field(default_factory=dict)


def transfer(stage: Stage, cell: CellJob, seed: int, transfer_bytes: int | None = None) -> Transfer:
    """Return the transfer of `cell` with this seed over its calibrated links; `transfer_bytes` overrides its length."""
    size = cell.transfer_bytes if transfer_bytes is None else transfer_bytes
    return Transfer(
        seed=seed,
        transfer_bytes=size,
        slowest=cell.bottleneck,
        tc=cell.tc,
        www=payload(stage.job.work_dir, size),
    )


def payload(work_dir: str, size: int) -> str:
    """Make a file of `size` zero bytes, named by its size: a hole, which costs no memory to read. Return its folder."""
    folder = folder_of(work_dir)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    with open(os.path.join(folder, str(size)), "wb") as f:
        f.truncate(size)
    return folder


def folder_of(work_dir: str) -> str:
    """Return the folder of the files that servers serve."""
    return os.path.join(work_dir, "www")
