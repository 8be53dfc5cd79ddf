"""Measure what building a site costs, for `conformance bench --site`.

The command builds from synthetic results of ten schemes, 150 cells and 20 trials a cell.
"""

import dataclasses
import json
import math
import pathlib
import random
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence

from conformance.catalogue import documents
from conformance.model import grid as grids
from conformance.model.trial import Measurement, Outcome, Scheme, Trial
from conformance.reporting.html import site
from conformance.results import source

_SCHEMES = (("cubic", 4), ("reno", 2), ("bbrv1", 4))
_POINTS = 128


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SiteCost:
    """The cost of building a site: wall seconds, and the sizes of results, front page, site and peak memory in MB."""

    trials: int
    results_mb: float
    built_s: float
    reading_s: float
    front_mb: float
    files: int
    site_mb: float
    peak_mb: float


def measure(results: Sequence[pathlib.Path], trials: int) -> SiteCost:
    """Build a site from `results`, or if there are none from synthetic ones with `trials` a cell; return its cost."""
    with tempfile.TemporaryDirectory(prefix="conformance-bench-") as temporary:
        folder = pathlib.Path(temporary)
        if not results:
            results = (folder / "synthetic.jsonl",)
            with open(results[0], "wb") as f:
                f.writelines(synthetic(trials))
        began = time.monotonic()
        read = source.Source(results)
        reading_s = time.monotonic() - began
        front = site.write(read, folder / "site")
        built_s = time.monotonic() - began
        files = [path for path in (folder / "site").rglob("*") if path.is_file()]
        return SiteCost(
            trials=len(read.measurements),
            results_mb=sum(path.stat().st_size for path in results) / 1e6,
            built_s=built_s,
            reading_s=reading_s,
            front_mb=front.stat().st_size / 1e6,
            files=len(files),
            site_mb=sum(path.stat().st_size for path in files) / 1e6,
            peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        )


def synthetic(trials: int) -> Iterator[bytes]:
    """Yield synthetic result lines, the same each time: as long as those of real trials, and with traces as full."""
    chance = random.Random(1)
    for algorithm, count in _SCHEMES:
        for number in range(count):
            scheme = Scheme(
                algorithm=algorithm, stack=f"stack-{number}", stack_version="1.0", stack_digest=f"{number:016x}",
                kernel="default", kernel_release="6.12.0", kernel_digest="0" * 16,
            )  # fmt: skip
            for cell in grids.cells("full"):
                setting = documents.profile("atc25", cell)
                for seed in range(1, trials + 1):
                    trial = Trial(setting=setting, scheme=scheme, seed=seed, room="virtual", lab_digest="0" * 16)
                    line = json.dumps(_measurement(trial, chance).to_json(), sort_keys=True, separators=(",", ":"))
                    yield line.encode() + b"\n"


def _measurement(trial: Trial, chance: random.Random) -> Measurement:
    cell = trial.setting.cell
    utilization = round(max(0.95 - 0.2 * cell.loss_pct - chance.random() * 0.05, 0.02), 6)
    size = trial.setting.transfer_bytes
    seconds = 8e-6 * size / (utilization * cell.bandwidth_mbps)
    times = [round(seconds * at / _POINTS, 4) for at in range(_POINTS)]
    acked = [round(size * at / _POINTS) for at in range(_POINTS)]
    window = [round(20 + 15 * math.sin(at / 3) + 4 * chance.random()) for at in range(_POINTS)]
    lost = sorted(chance.randrange(200) for _ in times)
    trace = {
        "t_s": times, "cwnd_segments": window, "in_flight_segments": window, "bytes_acked": acked,
        "rtt_ms": [round(2 * cell.one_way_delay_ms + chance.random() * 20, 3) for _ in times],
        "queue_bytes": [chance.randrange(60_000) for _ in times], "queue_out_bytes": acked,
        "queue_dropped_packets": [n // 2 for n in lost], "dropped_packets": lost,
    }  # fmt: skip
    counters = {
        side: {f"{side}-eth0": {"tx_bytes": round(size * 1.05), "rx_bytes": round(size * 1.04)}}
        for side in ("client", "server")
    }
    metrics = {
        "bytes": size, "completion_s": round(seconds, 6), "handshake_s": 0.1,
        "goodput_mbps": round(utilization * cell.bandwidth_mbps, 6), "utilization": utilization,
        "min_rtt_ms": 2.0 * cell.one_way_delay_ms, "retransmitted_segments": lost[-1], "sent_segments": size // 1448,
        "queue_mean_bytes": 30_000.0, "queue_peak_bytes": 60_000, "queue_peak_packets": 40, "virtual_s": 30.0,
    }  # fmt: skip
    return Measurement(
        trial=trial, outcome=Outcome.OK, metrics=metrics, evidence={"interfaces": counters, "trace": trace}
    )
