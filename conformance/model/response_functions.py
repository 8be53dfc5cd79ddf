"""What the documents themselves predict: response functions of Reno and CUBIC under random loss.

A second basis of zones, beside reference runs: a reference that were wrong, or measured wrongly, would not meet it.

Reno: an average window of 1.22 / sqrt(p) segments (M. Mathis et al., The Macroscopic Behavior of the TCP Congestion
Avoidance Algorithm, CCR 27(3), 1997; RFC 3649, section 2; the reaction to loss is RFC 5681's). CUBIC: RFC 9438,
section 5.1: 1.054 (RTT / p)^(3/4) with C = 0.4 and beta = 0.7, and never less than Reno's, by its Reno-friendly region
(section 4.3). That has a loss every 1 / p packets; here each packet is lost or not by chance.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from conformance.model.emulation import tc_commands
from conformance.model.setting import Setting

#: payload of a full segment on Ethernet with TCP timestamps, as the references send them
SEGMENT_BYTES = 1448
#: Both functions hold for rare losses that are repaired without a timeout, on a link that is not the limit, in a
#: transfer that is long against a sawtooth. Outside these bounds they are not asked.
_MOST_UTILIZATION = 0.5
_LEAST_WINDOW_SEGMENTS = 8
_LEAST_LOSSES = 30
#: For Reno's constant the literature has 0.93 to 1.31 (Mathis, table 1: random or periodic losses, one acknowledgement
#: for each segment or for two), which is 0.76 to 1.07 times 1.22.
TOLERANCE = 0.25
#: How much more than RFC 9438's function CUBIC gets when each packet is lost by chance, and not one every 1 / p: after
#: a long time without a loss a cubic grows fast. The RFC's own equations, with fast convergence, give 1.12 to 1.19
#: (tests/unit/model/test_response_functions.py plays them). S. Poojary and V. Sharma, An Asymptotic Approximation of
#: TCP CUBIC, arXiv 1510.08496, study the same question.
RANDOM_LOSSES = 1.15


def reno_window_segments(loss: float) -> float:
    """Return the average congestion window at this loss probability."""
    return 1.22 / math.sqrt(loss)


def cubic_window_segments(loss: float, rtt_s: float, random_losses: float = 1.0) -> float:
    """Return the same of CUBIC, `random_losses` times what periodic ones would leave."""
    return max(random_losses * 1.054 * math.pow(rtt_s / loss, 0.75), reno_window_segments(loss))


_WINDOWS: Mapping[str, tuple[str, Callable[[float, float], float]]] = {
    "reno": ("1.22 / sqrt(p), RFC 3649 section 2", lambda loss, rtt_s: reno_window_segments(loss)),
    "cubic": (
        f"1.054 (RTT / p)^(3/4) x {RANDOM_LOSSES} for random losses, not below 1.22 / sqrt(p), RFC 9438 section 5.1",
        lambda loss, rtt_s: cubic_window_segments(loss, rtt_s, RANDOM_LOSSES),
    ),
}


def formula(algorithm: str, setting: Setting) -> dict[str, Any] | None:
    """Return {"text", "utilization"}, what the documents predict for a setting; None where they do not apply.

    Segments must be lost one by one, which segmentation offload undoes.
    """
    cell = setting.cell
    if algorithm not in _WINDOWS or setting.offload or not cell.loss_pct or not cell.one_way_delay_ms:
        return None
    text, window_segments = _WINDOWS[algorithm]
    loss, rtt_s = cell.loss_pct / 100, tc_commands.rtt_s(cell)
    window = window_segments(loss, rtt_s)
    utilization = 8 * SEGMENT_BYTES * window / rtt_s / (cell.bandwidth_mbps * 1e6)
    losses = loss * setting.transfer_bytes / SEGMENT_BYTES
    if utilization > _MOST_UTILIZATION or window < _LEAST_WINDOW_SEGMENTS or losses < _LEAST_LOSSES:
        return None
    return {"text": text, "utilization": round(utilization, 4)}


def agrees(utilization: float, formula: Mapping[str, Any]) -> bool:
    """Whether a measured utilization is what a formula() predicts, within TOLERANCE."""
    return abs(utilization / float(formula["utilization"]) - 1) <= TOLERANCE
