"""Read what a file in topologies/ says about its network, without Mininet; the guest builds the network."""

import functools
import runpy

from conformance.guest.topology import Topology
from conformance.model.errors import UserError
from conformance.model.setting import Setting
from conformance.support import paths


def of(setting: Setting) -> Topology:
    """Return the Topology of a setting. Raises UserError if the suite does not have it."""
    return _named(setting.topology)


@functools.cache
def _named(name: str) -> Topology:
    files = {path.stem: path for path in paths.data("topologies").glob("*.py")}
    # Names come from results, too: a name without a file must not lead anywhere else.
    if name not in files:
        raise UserError(f"there is no topology {name}", f"choose one of {', '.join(sorted(files))}")
    found: Topology = runpy.run_path(str(files[name]))["TOPOLOGY"]
    return found
