"""The stage of flows that share a network: what their trials and the suite's helper programs work on."""

from __future__ import annotations

import dataclasses
import os

from conformance.guest.topology import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from conformance.guest.shared_job import SharedNetwork
    from conformance.guest.shared_network import Place
    from conformance.guest.stage import Stage
    from conformance.guest.topology import Host


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedStage:
    """The stage of a job whose flows share a network, with that network and where its parts are."""

    stage: Stage
    network: SharedNetwork
    place: Place

    def of_host(self, host: Host, server: Host) -> Stage:
        """Return the stage for a stack's program on one host, with its own folders and its group's server address."""
        job = self.stage.job
        if not self.network.detailed:
            job = dataclasses.replace(job, work_dir=os.path.join(job.work_dir, host.node))
        addresses = {"server": server.address, "client": host.address}
        return dataclasses.replace(self.stage, job=job, topology=Topology(segments=(), addresses=addresses, taps={}))

    def node(self, host: Host) -> Any:
        return self.stage.net[host.node]
