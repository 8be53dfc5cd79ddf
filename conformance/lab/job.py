"""From trials of one cell to the job that a guest carries out, and from its events back to measurements."""

import json
import random
import shutil

from conformance.lab import pki, proxy, version
from conformance.model.emulation import calibration, congestion, credibility
from conformance.model.emulation import tc_commands as network
from conformance.model.errors import UserError
from conformance.model.setting import SPLITTER
from conformance.model.trial import Measurement, Outcome
from conformance.support import paths

_READY_TIMEOUT_S = 30
#: address space, as much as runtimes like to reserve; processes are threads as well
_LIMITS = {"memory_bytes": 1 << 36, "file_bytes": 1 << 30, "processes": 256}
#: a policer lets a full bucket of tokens pass first: at one and a half times the rate, three times its size
_RATE_PACKETS, _POLICER_RATE_PACKETS, _LOSS_PACKETS = 120, 600, 2000
_CALIBRATION_SEED = 1
#: by as much as this a trial's one-way delays differ from what the cell says, either way
_DELAY_OFF_NS = 10_000


def write(scratch, adapter, at, batches, probe=False, trace=None):
    """Fill the scratch folder: job.json, the topology, the certificates. Raises UserError.

    `at` is where the stack's folders are: "adapter", "build" (what was compiled for it), "client", "client-build".
    `batches` is a list of lists of trials, one list for each cell; all share the scheme and the profile.
    `probe`: try out the adapter's contract in the first cell in the place of making trials. `trace`: "packets" or
    "all" to write down what happens in each trial, in the scratch folder's trace/CELL'S INDEX-SEED.
    """
    if batches[0][0].lab_digest != version.lab_version():
        # A guest reads the suite's files when it starts; results must not be kept under what the code was before.
        raise UserError("the suite's own code changed while it was measuring", "run the same command again")
    setting, scheme, room = batches[0][0].setting, batches[0][0].scheme, batches[0][0].room
    shutil.copytree(pki.ensure(), scratch / "pki")
    shutil.copy(paths.data("topologies", f"{setting.topology}.py"), scratch / "topology.py")
    guest_scratch = scratch if room == "host" else "/run/scratch"
    job = {
        "probe": probe,
        "trace": trace,
        "algorithm": scheme.algorithm,
        "kernel_algorithms": adapter.kernel_names(scheme.algorithm),
        "called": adapter.called(scheme.algorithm),
        "server": _own(adapter, at),
        "client": _client(adapter, at),
        "transport": adapter.manifest.transport,
        "port": adapter.manifest.port,
        "hostname": pki.HOSTNAME,
        "pki": f"{guest_scratch}/pki",
        "proxy": _proxy(setting, adapter, scratch),
        "rival": setting.rival,
        "ready_timeout_s": _READY_TIMEOUT_S,
        "limits": _LIMITS,
        # In a guest, memory; on a host, the scratch folder, which nobody else writes and which is removed.
        "work_dir": f"{scratch}/work" if room == "host" else "/run/work",
        "rate_packets": _POLICER_RATE_PACKETS if setting.queue == "policer" else _RATE_PACKETS,
        "loss_packets": _LOSS_PACKETS,
        "calibration_seed": _CALIBRATION_SEED,
        "queue_handle": network.QUEUE_HANDLE,
        "host_queue": setting.host_queue,
        "offload": setting.offload,
        "sysctls": dict(setting.sysctls),
        "timeout_s": setting.timeout_s,
        "cells": [_cell(trials) for trials in batches],
    }
    # What the network is like is nothing that a stack should read.
    (scratch / "job.json").touch(mode=0o600)
    (scratch / "job.json").write_text(json.dumps(job, indent=1))


def _proxy(setting, adapter, scratch):
    """How to run the setting's proxy, whose program is put into the scratch folder; or None."""
    if setting.proxy is None:
        return None
    if adapter.manifest.transport != "tcp":
        raise UserError(f"a proxy splits TCP, and {adapter.name} serves over {adapter.manifest.transport}")
    shutil.copy(proxy.program(setting.proxy), scratch / "proxy")
    return {
        "program": "proxy",
        "ours": setting.proxy.program == SPLITTER,
        "options": proxy.options(setting.proxy, adapter.manifest.port),
    }


def _own(adapter, at):
    rootfs = f"{at}/rootfs" if adapter.rootfs else None
    return {"program": f"{at}/adapter/{adapter.manifest.program}", "build_dir": f"{at}/build", "rootfs": rootfs}


def _client(adapter, at):
    if adapter.client is None:
        return _own(adapter, at)
    program = f"{at}/client/{adapter.client.manifest.program}"
    return {"program": program, "build_dir": f"{at}/client-build", "rootfs": None}


def _cell(trials):
    setting = trials[0].setting
    links = range(len(setting.links))
    return {
        "bandwidth_mbps": setting.cell.bandwidth_mbps,
        "one_way_delay_ms": setting.cell.one_way_delay_ms,
        "loss_pct": setting.cell.loss_pct,
        "transfer_bytes": setting.transfer_bytes,
        # A list of tc commands for each link, to calibrate it, and for each trial; and which of them is the bottleneck.
        "tc": [network.tc_lines(setting, link) for link in links],
        "tc_by_seed": {
            trial.seed: [network.tc_lines(setting, link, delay_off_ns(trial.seed, link)) for link in links]
            for trial in trials
        },
        "links": [link.to_json() for link in setting.links],
        "bottleneck": setting.bottleneck,
        "seeds": [trial.seed for trial in trials],
    }


def delay_off_ns(seed, link):
    """By how much the trial with this seed has another one-way delay on a link than its cell says.

    A delay of exactly so many milliseconds is a coincidence that no network has: TCP compares times in milliseconds,
    and where neither loss nor queue draws random numbers every trial was the same one, decided by whether something
    took one round trip or a microsecond less. CUBIC's mean queue differed by up to 12 % (zones/README.md).
    """
    return random.Random(f"delay {link} {seed}").randint(-_DELAY_OFF_NS, _DELAY_OFF_NS)


class Reader:
    """Turns a guest's events into measurements as they come; knows which trials are still owed."""

    def __init__(self, batches, adapter):
        # Where the harness chose the kernel's algorithm, another version is no fault of the stack's.
        self._kernels_own = adapter.kernel_algorithms is not None
        self._owed = [{trial.seed: trial for trial in trials} for trials in batches]
        self._settings = [trials[0].setting for trials in batches]
        self._algorithm = batches[0][0].scheme.algorithm
        self._at = 0
        self._network = None
        self._calibration = None
        self._problems = []

    @property
    def owed(self):
        """The batches of trials that are still to come, without the empty ones."""
        return [list(batch.values()) for batch in self._owed if batch]

    def feed(self, event, host):
        """Yield the measurements that one event completes; `host` is what to note about wall time."""
        kind = event["event"]
        if event.get("system_calls") is not None:
            # A cost, and no part of the result: it counts what earlier trials left to do, too.
            host = {**host, "system_calls": event["system_calls"]}
        if kind == "network":
            self._network = event
        elif kind == "congestion_control":
            why_not = self._kernels_other(event["found"])
            if why_not:
                yield from self._unsupported(why_not, host)
        elif kind == "cell":
            self._at = event["index"]
        elif kind == "calibration":
            self._calibration = event["observed"]
            setting = self._settings[self._at]
            self._problems = [
                *calibration.problems(setting, event["observed"]),
                *calibration.sysctl_problems(setting, self._network["sysctls"]),
            ]
        elif kind == "trial":
            trial = self._owed[event["index"]].pop(event["seed"])
            # Once more, since the warm-up may have been too short to be looked at.
            why_not = self._kernels_other(event.get("sampled", {}).get("congestion_control"))
            if why_not:
                yield Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why_not, host=host)
            elif self._problems:
                yield self._error(trial, "calibration: " + "; ".join(self._problems), host)
            else:
                network = {**self._network, "calibration": self._calibration}
                yield credibility.measurement(trial, event, network, host)
        elif kind == "unsupported":
            yield from self._unsupported(event["message"], host)
        elif kind == "fault":
            yield from self.give_up(event["message"], host)

    def give_up(self, why, host):
        """An error for every trial still owed in the cell that was under way; other cells are unharmed."""
        batch = self._owed[self._at] or next((b for b in self._owed if b), {})
        while batch:
            yield self._error(batch.pop(min(batch)), why, host)

    def _kernels_other(self, found):
        """Why what the kernel had is not what was asked for, where the harness chose it; or None."""
        return congestion.not_as_asked(self._algorithm, found) if self._kernels_own else None

    def _unsupported(self, why, host):
        for batch in self._owed:
            while batch:
                trial = batch.pop(min(batch))
                yield Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why, host=host)

    @staticmethod
    def _error(trial, why, host):
        return Measurement(trial=trial, outcome=Outcome.ERROR, message=why, host=host)
