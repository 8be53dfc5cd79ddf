"""Records that a guest works with: the stage of a whole job, and the seats of the stack's programs."""

from __future__ import annotations

import contextlib
import dataclasses
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from conformance.guest.protocol import Job, StackProgram
    from conformance.guest.topology import Host, Place


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A job, the started network that it is carried out in with the place of its parts, and where its files are.

    `net` is Mininet's network. `pki` is the job's folder of certificates, copied to where stacks may read it.
    """

    job: Job
    net: Any
    place: Place
    scratch: str
    pki: str

    def node(self, host: Host) -> Any:
        return self.net[host.node]

    def program(self, role: str) -> StackProgram:
        """Return the stack's program for "server" or "client"."""
        return self.job.server if role == "server" else self.job.client

    def seat(self, group: int, role: str, number: int = 0) -> Seat:
        """Return where the server of a group of the stack runs, or its client with this number."""
        server, clients = self.place.senders[group], self.place.receivers[group]
        host = server if role == "server" else clients[number]
        # What is recorded in detail has the folders that it had before there were groups: their names reach the stack.
        within = () if self.job.network.detailed else (host.node,)
        folder = os.path.join(self.job.work_dir, *within, role)
        return Seat(stage=self, role=role, host=host, folder=folder, server_address=server.address)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seat:
    """Where a program of the stack runs: in which role, on which host, in which folder, and the server's address."""

    stage: Stage
    role: str
    host: Host
    folder: str
    server_address: str

    @property
    def node(self) -> Any:
        return self.stage.node(self.host)

    @property
    def command(self) -> tuple[str, str]:
        return self.stage.program(self.role).path, self.role

    def environment(self, transfer_bytes: int, logs: str | None = None) -> dict[str, str]:
        """Return the environment variables of the contract; `logs`: the folder that it may write logs to, if any."""
        job, program = self.stage.job, self.stage.program(self.role)
        return {
            **{k: v for k, v in os.environ.items() if k in ("PATH", "LC_ALL", "OPENSSL_ia32cap")},
            "HOME": self.folder,
            "TMPDIR": self.folder,
            "CC_ROLE": self.role,
            "CC_ALGORITHM": job.algorithm,
            "CC_CALLED": job.called,
            "CC_ADDRESS": self.server_address,
            "CC_HOSTNAME": job.hostname,
            "CC_PORT": str(job.port),
            "CC_BYTES": str(transfer_bytes),
            "CC_WWW": _www(job),
            "CC_CERT": self.stage.pki + "/server.crt",
            "CC_KEY": self.stage.pki + "/server.key",
            "CC_CA": self.stage.pki + "/ca.crt",
            "CC_SCRATCH": self.folder,
            "CC_BUILD": program.build_dir,
            **_trace_variables(logs),
            **({"CC_ROOTFS": program.rootfs} if program.rootfs else {}),
        }


def _trace_variables(folder: str | None) -> Mapping[str, str]:
    """Return the variables that say where to write qlog and TLS secrets; none if the trial is not traced."""
    return {"CC_QLOG": f"{folder}/qlog", "SSLKEYLOGFILE": f"{folder}/keys.log"} if folder else {}


def _www(job: Job) -> str:
    return os.path.join(job.work_dir, "www")


def make_body(job: Job, size: int) -> None:
    """Make a file of `size` zero bytes for servers, named by its size.

    It is a hole, which costs no memory to read. A server that maps it fills it.
    """
    os.makedirs(_www(job), mode=0o755, exist_ok=True)
    with open(os.path.join(_www(job), str(size)), "wb") as f:
        f.truncate(size)


def remove_bodies(job: Job) -> None:
    """Remove the files of make_body(): those of all cells of a guest, filled, are more than its folder holds."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(_www(job)):
            os.unlink(os.path.join(_www(job), name))
