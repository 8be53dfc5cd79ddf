"""Remember calibrations in the user's cache, one file each, as they are deterministic and need no second measurement.

What the probe packets of a calibration see depends on the kernel, on the suite's own code (by its lab version), on `tc`
and on the link that they cross, but on no host, stack or algorithm. The file's name is a digest of all that.
"""

import contextlib
import dataclasses
import functools
import pathlib

from conformance.guest import protocol, wire
from conformance.guest.network_job import CellJob
from conformance.guest.seen import LinkSeen
from conformance.lab import manifest
from conformance.model import digest as digests
from conformance.model.emulation import calibration
from conformance.model.errors import UserError
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Trial
from conformance.support import files, paths

#: what was seen of each link, the client's first
Observed = tuple[LinkSeen, ...]


def folder() -> pathlib.Path:
    """Return the folder of the remembered calibrations."""
    return paths.cache("calibrations")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Entry:
    """The content of a file."""

    observed: Observed


def recall(trial: Trial, cell: CellJob, probing: protocol.Probing) -> Observed | None:
    """Return what was seen when the links of a trial's cell were calibrated; None if nothing good is remembered."""
    try:
        entry = wire.read(_Entry, wire.loads(_place(trial, cell, probing).read_bytes()))
    except (OSError, wire.ProtocolError):
        return None
    return entry.observed if _is_good(trial.setting, entry.observed) else None


def remember(trial: Trial, cell: CellJob, probing: protocol.Probing, observed: Observed) -> None:
    """Keep what was seen of the links of a trial's cell, unless they failed or the cache is not writable."""
    if _is_good(trial.setting, observed):
        with contextlib.suppress(UserError):
            files.write(_place(trial, cell, probing), wire.dumps(_Entry(observed=observed)) + "\n")


def _is_good(setting: Setting, observed: Observed) -> bool:
    return not calibration.problems(setting.network, [wire.to_json(link) for link in observed])


def _place(trial: Trial, cell: CellJob, probing: protocol.Probing) -> pathlib.Path:
    depends_on = {
        "lab": trial.lab_digest,
        "kernel": trial.scheme.kernel_digest,
        "probing": wire.to_json(probing),
        "links": wire.to_json(cell.calibrate),
        "tc": wire.to_json(cell.tc),
        "tc_program": _tc_digest(),
    }
    digest = digests.of_value(depends_on)
    return folder() / digest[:2] / f"{digest}.json"


@functools.cache
def _tc_digest() -> str | None:
    """Return the digest of the guests' `tc`, whose versions round delays differently; None if there is none."""
    program = manifest.which("tc")
    return digests.of_bytes(pathlib.Path(program).read_bytes()) if program else None
