"""Ask topologies/network.py where the parts of a network are, without Mininet; the guest builds the network."""

import functools
import runpy
from collections.abc import Callable
from typing import Any

from conformance.guest.network_job import NetworkJob
from conformance.guest.topology import Place
from conformance.support import paths

BUILDER = paths.data("topologies", "network.py")


def place(network: NetworkJob) -> Place:
    """Return where the parts of a network will be."""
    places: Callable[[NetworkJob], Place] = builder()["place"]
    return places(network)


@functools.cache
def builder() -> dict[str, Any]:
    """Return what topologies/network.py defines."""
    return runpy.run_path(str(BUILDER))
