"""Whether an outage explains that a client gave up."""

import pytest
from helpers import link

from conformance.model.emulation import outages
from conformance.model.networks.network import Network


def network(direction, fields):
    return Network.from_json(
        {
            "links": [link(delay_ms=10, acks={})],
            "flows": [{"name": "test", "bytes": 1_000_000}],
            "schedule": [{"at_s": 3, "link": "link", "direction": direction, "set": fields, "for_s": 5}],
        }
    )  # fmt: skip


@pytest.mark.parametrize("direction", ["forward", "both"])
@pytest.mark.parametrize("fields", [{"loss_pct": 100}, {"rate_mbps": 0}])
@pytest.mark.parametrize(
    ("at_s", "explained"),
    [
        (2.9, False),
        (5.0, True),
        # A sender whose probes come at doubling periods sends the next one by then.
        (12.9, True),
        (13.1, False),
    ],
)
def test_an_outage_explains_that_a_client_gave_up_until_the_next_probe_was_due(direction, fields, at_s, explained):
    if direction == "both" and "rate_mbps" in fields:
        pytest.skip("this network's other direction has no rate")
    down = network(direction, fields)
    assert outages.explains(down, down.tested, at_s) is explained


def test_losses_are_no_outage():
    lossy = network("forward", {"loss_pct": 40})
    assert not outages.explains(lossy, lossy.tested, 5.0)
