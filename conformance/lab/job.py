"""From trials of one cell to the job that a guest carries out, and from its events back to measurements."""

import hashlib
import json
import shutil

from conformance import paths
from conformance.lab import pki
from conformance.model import calibration, measure, network
from conformance.model import digest as digests
from conformance.model.trial import Measurement, Outcome

_PORT = 4433
_READY_TIMEOUT_S = 30
_LIMITS = {"memory_bytes": 1 << 36, "file_bytes": 1 << 30}
_CALIBRATION_PACKETS = 2000
#: files of the suite that decide what happens inside a guest
_LAB_FILES = ("conformance/guest/*.py", "conformance/lab/job.py", "conformance/model/network.py", "topologies/*.py")


def lab_digest():
    """Digest of the suite's own code and choices that a result depends on."""
    total = hashlib.sha256()
    for pattern in _LAB_FILES:
        base = paths.PACKAGE.parent if pattern.startswith("conformance") else paths.data()
        for file in sorted(base.glob(pattern)):
            total.update(file.name.encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[: digests.DIGITS]


def write(scratch, adapter, adapter_dir, trials):
    """Fill the scratch folder: job.json, the topology, the certificates. All trials share setting and scheme."""
    setting, scheme = trials[0].setting, trials[0].scheme
    shutil.copytree(pki.ensure(), scratch / "pki")
    shutil.copy(paths.data("topologies", f"{setting.topology}.py"), scratch / "topology.py")
    guest_scratch = "/run/scratch" if trials[0].room != "host" else str(scratch)
    job = {
        "algorithm": scheme.algorithm,
        "kernel_algorithm": adapter.kernel_algorithm(scheme.algorithm),
        "adapter_dir": adapter_dir,
        "program": adapter.program,
        "transport": adapter.transport,
        "port": _PORT,
        "hostname": pki.HOSTNAME,
        "pki": f"{guest_scratch}/pki",
        "server_address": "10.0.0.3",
        "transfer_bytes": setting.transfer_bytes,
        "timeout_s": setting.timeout_s,
        "ready_timeout_s": _READY_TIMEOUT_S,
        "limits": _LIMITS,
        "bandwidth_mbps": setting.cell.bandwidth_mbps,
        "one_way_delay_ms": setting.cell.one_way_delay_ms,
        "calibration_packets": _CALIBRATION_PACKETS,
        "tc": network.tc_lines(setting),
        "queue_handle": network.QUEUE_HANDLE,
        "host_queue": setting.host_queue,
        "offload": setting.offload,
        "sysctls": dict(setting.sysctls),
        "seeds": [trial.seed for trial in trials],
    }
    (scratch / "job.json").write_text(json.dumps(job, indent=1))


class Reader:
    """Turns a guest's events into measurements as they come; knows which trials are still owed."""

    def __init__(self, trials):
        self._owed = {trial.seed: trial for trial in trials}
        self._network = None
        self._problems = []

    @property
    def owed(self):
        return list(self._owed.values())

    def feed(self, event, host):
        """Yield the measurements that one event completes; `host` is what to note about wall time."""
        kind = event["event"]
        if kind == "network":
            self._network = event
        elif kind == "calibration":
            self._network["calibration"] = event["observed"]
            setting = next(iter(self._owed.values())).setting
            self._problems = calibration.problems(setting, event["observed"])
        elif kind == "trial":
            trial = self._owed.pop(event["seed"])
            if self._problems:
                yield self._error(trial, "calibration: " + "; ".join(self._problems), host)
            else:
                yield measure.measurement(trial, event, self._network, host)
        elif kind == "fault":
            yield from self.give_up(event["message"], host)

    def give_up(self, why, host):
        """An error for every trial still owed."""
        while self._owed:
            yield self._error(self._owed.pop(min(self._owed)), why, host)

    @staticmethod
    def _error(trial, why, host):
        return Measurement(trial=trial, outcome=Outcome.ERROR, message=why, host=host)
