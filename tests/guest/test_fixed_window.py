"""The congestion control `fixed` of studies/kernels has a window of 116 packets. Skip the test if it is not built."""

import threading

import pytest

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.kernel import store as kernels
from conformance.model.networks.place import Cell
from conformance.model.networks.scenario import Scenario
from conformance.model.trials.trial import Outcome

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif("fixed" not in {one.name for one in kernels.kernels()}, reason="no kernel fixed is built"),
]

SYSCTLS = dict(documents.profile("packets", Cell(10, 20, 0)).sysctls)
#: data bytes of a packet with timestamps, and the packets of tcp_fixed.window
SEGMENT_BYTES, WINDOW = 1448, 116
SECONDS = 10


def setting(loss_pct, rate_mbps, queue_bytes):
    """Return the Setting of a flow of `fixed` over a link with a round trip of 100 ms."""
    queue = {"kind": "bfifo", "size": queue_bytes, "unit": "bytes"}
    data = {"rate_mbps": rate_mbps, "delay_ms": 50, "loss_pct": loss_pct, "queue": queue}
    link = {"name": "bottleneck", "ends": ["left", "right"], "data": data, "acks": {"delay_ms": 50}}
    flow = {"name": "test", "sender": "kernel", "algorithm": "fixed", "seconds": SECONDS}
    made = Scenario.from_json(
        {"name": "test", "title": "a test", "timeout_s": 60, "sysctls": SYSCTLS, "links": [link], "flows": [flow]}
    )
    return made.setting(made.point({}))


def test_a_window_stays_through_loss_and_its_first_one_does_not_flood_a_queue():
    bench = benches.find(benches.Choice(kernel="fixed"))
    # Links with room for a window in flight, and the long link of the study `tng`, whose queue holds 43 packets.
    asked = [setting(0, 100, 400_000), setting(5, 100, 400_000), setting(0, 10.48576, 65536)]
    batches = [bench.trials("cubic", one, [1]) for one in asked]
    found = list(bench.place("cubic").room.run(bench.adapter, batches, threading.Event()))
    assert [one.outcome for one in found] == [Outcome.OK] * 3, [one.message for one in found]
    clean, lossy, queued = (one.flows[0] for one in found)
    per_s_mbps = WINDOW * SEGMENT_BYTES * 8 / 0.1 / 1e6
    # The first seconds include the handshake; in each later one, a window is delivered in each round trip.
    assert clean["goodput_series_mbps"][2:-1] == pytest.approx([per_s_mbps] * (SECONDS - 3), rel=0.02)
    assert clean["retransmitted_segments"] == 0
    # A lost packet takes a place in the window for the round trip until its repair. A halved window has 6.7 Mbit/s.
    assert min(lossy["goodput_series_mbps"][2:-1]) > 0.75 * per_s_mbps
    assert 0.04 < lossy["retransmitted_segments"] / lossy["out_segments"] < 0.07
    assert queued["retransmitted_segments"] == 0
    assert min(queued["goodput_series_mbps"][2:-1]) > 0.95 * 10.48576
