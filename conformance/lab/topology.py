"""What a file in topologies/ says of its network: read here, without Mininet; the guest builds it."""

import functools
import runpy

from conformance.guest.topology import Topology
from conformance.model.errors import UserError
from conformance.model.setting import Setting
from conformance.support import paths


def of(setting: Setting) -> Topology:
    """Return what is known of a setting's network. Raises UserError for a topology that the suite does not have."""
    return _named(setting.topology)


@functools.cache
def _named(name: str) -> Topology:
    files = {path.stem: path for path in paths.data("topologies").glob("*.py")}
    # Names come from results, too: one that is no file's must not lead anywhere else.
    if name not in files:
        raise UserError(f"no topology {name}", f"there are {', '.join(sorted(files))}")
    found: Topology = runpy.run_path(str(files[name]))["TOPOLOGY"]
    return found
