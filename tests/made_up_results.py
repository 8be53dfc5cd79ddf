"""Made-up result lines for tests of sites: ten schemes, 150 cells, always the same lines."""

import json
import math
import random

from conformance.catalogue import documents
from conformance.model.judging import grid as grids
from conformance.model.trials.trial import Measurement, Outcome, Scheme, Trial

_SCHEMES = (("cubic", 4), ("reno", 2), ("bbrv1", 4))
_POINTS = 128


def synthetic(trials):
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


def _measurement(trial, chance):
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
