"""Read what a file in topologies/ says about its network, without Mininet; the guest builds the network."""

import functools
import runpy

from conformance.guest.topology import Topology
from conformance.model.networks.legacy import CellForm
from conformance.support import paths


def of(form: CellForm) -> Topology:
    """Return the Topology of what a profile says."""
    return _named(form.topology)


@functools.cache
def _named(name: str) -> Topology:
    found: Topology = runpy.run_path(str(paths.data("topologies", f"{name}.py")))["TOPOLOGY"]
    return found
