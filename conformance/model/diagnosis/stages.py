"""Order what departs from a document by the time of a transfer that shows it: in stages, and in each of these.

What comes first in a transfer may cause what comes later, and not the other way round: a sender that has no window
bursts, loses, recovers slowly and uses a path badly. So of several observables the first one names the likeliest cause,
and rates, which follow from everything, name it least. What a loss leaves of a window decides how it grows from there:
of 18 mutants of CUBIC and Reno whose traces show another response and another growth (mutants/why.json), 14 have
another response, and 2 another growth. Features of `compare` are weighed instead (ranking.py): many are read from whole
transfers, so a smaller beta also moves what start-up and queues show.
"""

import functools
from collections.abc import Mapping

#: (what a transfer does, the observables that show it, the first to show it first)
STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "the first flight",
        ("handshake_ratio", "initial_window", "next_connection_window", "first_burst"),
    ),
    (
        "pacing",
        ("burst",),
    ),
    (
        "start-up",
        (
            "start_up_growth", "rise_ignored", "slow_growth", "growth_after",
            "bbr_start_up_rounds", "bbr_start_up_flight", "bbr_drain_rate", "bbr_drained_rtts", "early_throughput",
            "growing_throughput", "bbr_bulk_rate", "most_rate", "bbr_growth_after_dip", "request_rtts", "response_rtts",
        ),
    ),
    (
        "ProbeRTT",
        ("bbr_dip_interval", "bbr_dip_depth", "bbr_dip_length", "flight_least"),
    ),
    (
        "the response to a loss",
        (
            "responded", "kept_of_probe", "kept", "kept_low", "first_kept", "kept_of_several", "kept_of_last",
            "window_later", "window_least", "sent_in_recovery", "sent_after_loss", "doubling", "returned", "rate_left",
            "bbr_probe_ends_rtts", "bbr_probe_flight",
        ),
    ),
    (
        "growth between losses",
        (
            "growth", "growth_most", "bbr_cruise_rate", "bbr_up_rate", "bbr_up_flight", "bbr_down_rate", "usual_flight",
            "flight_packets", "later_rate", "bbr_probe_interval", "bbr_probe_again", "bbr_drain_rounds", "bbr_down_s",
        ),
    ),
    (
        "the way back after a loss",
        ("epoch_s", "regrowth", "regrowth_late", "growth_beyond", "growth_after_loss", "full_again_s"),
    ),
    (
        "packets out of order",
        ("window_after_late", "rate_back"),
    ),
    (
        "marks",
        ("kept_of_mark", "window_when_marked", "rate_when_marked", "window_after_marks", "ect_late", "ect_1"),
    ),
    (
        "a change of the path",
        (
            "rate_after", "full_after_s", "lost_after", "flight_sooner", "flight_later", "flight_soon", "flight_most",
            "after_move", "before_validation",
        ),
    ),
    (
        "little to send",
        (
            "unused_growth", "unused_growth_later", "burst_after_pause", "packets_after_pause", "window_after_pause",
            "reduced_window_after_pause", "rate_after_pause", "rate_soon_after_pause", "rate_of_bodies",
        ),
    ),
    (
        "timeouts",
        (
            "first_probe_rtts", "probe_timeout_rtts", "probe_ratio", "last_probe_ratio", "probe_packets",
            "probes_at_rest", "late_in_outage", "silent_share", "idle_rtts", "after_outage", "after_outage_share",
            "after_held_share", "restart_window", "restart_end", "restart_after_s",
        ),
    ),
    (
        "rates",
        ("during", "recovered", "small_share", "throughput", "later_throughput", "later_lost"),
    ),
)  # fmt: skip


@functools.cache
def _places() -> Mapping[str, tuple[int, int]]:
    """Return {observable: (number of its stage, its own number in the order of all)}."""
    of_stages = [(number, name) for number, (_, names) in enumerate(STAGES) for name in names]
    return {name: (number, at) for at, (number, name) in enumerate(of_stages)}


def stage(observable: str) -> int:
    """Return the number of the stage that an observable shows; one that shows none comes last."""
    places = _places()
    return places[observable][0] if observable in places else len(STAGES)


def precedence(observable: str) -> int:
    """Return the number of an observable in the order of all; one that shows no stage comes last."""
    places = _places()
    return places[observable][1] if observable in places else len(places)


def is_rate(observable: str) -> bool:
    """Return whether an observable is a rate of a transfer, or of a part of it, which names a cause least."""
    return observable in STAGES[-1][1]
