"""Compute what the documents predict under random loss: response functions of Reno and CUBIC, in closed form.

Reno: an average window of 1.22 / sqrt(p) segments (M. Mathis et al., The Macroscopic Behavior of the TCP Congestion
Avoidance Algorithm, CCR 27(3), 1997; RFC 3649, section 2; the reaction to loss is RFC 5681's). CUBIC: RFC 9438,
section 5.1: 1.054 (RTT / p)^(3/4) with C = 0.4 and beta = 0.7, and never less than Reno's, by its Reno-friendly region
(section 4.3). Both assume a loss every 1 / p packets; if each packet is lost or not by chance, played.py says more.
"""

import math


def reno_window_segments(loss: float) -> float:
    """Return Reno's average congestion window at this loss probability, in segments."""
    return 1.22 / math.sqrt(loss)


def cubic_window_segments(loss: float, rtt_s: float) -> float:
    """Return CUBIC's average congestion window at this loss probability and round-trip time, in segments."""
    return max(1.054 * math.pow(rtt_s / loss, 0.75), reno_window_segments(loss))


def reno_friendly(loss: float, rtt_s: float) -> bool:
    """Say whether CUBIC does as Reno does, because its own curve would be slower."""
    return cubic_window_segments(loss, rtt_s) <= reno_window_segments(loss)


def rfc5348_segments_a_second(loss: float, rtt_s: float, timer_s: float) -> float:
    """Return RFC 5348's X_Bps / s (section 3.1), with b = 1: Reno's rate with timeouts after `timer_s`."""
    timeouts = timer_s * 3 * math.sqrt(3 * loss / 8) * loss * (1 + 32 * loss**2)
    return 1 / (rtt_s * math.sqrt(2 * loss / 3) + timeouts)
