"""A Source remembers of each line what verdicts need, and no more."""

import dataclasses

from helpers import measurement

from conformance.model.metrics import METRICS
from conformance.results import store
from conformance.results.source import Source


def test_a_source_remembers_all_that_verdicts_need(tmp_path):
    """The size of packets is one such thing: stacks with small ones are judged by other intervals."""
    counters = {"eth0": {"rx_bytes": 12_900_000, "rx_packets": 10_700, "tx_bytes": 300_000, "rx_dropped": 0}}
    made = measurement(utilization=0.9)
    whole = dataclasses.replace(
        made, evidence={**made.evidence, "interfaces": {"client": counters, "server": counters}}
    )
    path = tmp_path / "results.jsonl"
    path.write_bytes(store.dumps(whole))
    (read,) = Source([path]).measurements
    assert whole.packet_bytes and read.packet_bytes == whole.packet_bytes
    assert {name: read.value(name) for name in METRICS} == {name: whole.value(name) for name in METRICS}
    assert "rx_dropped" not in read.evidence["interfaces"]["client"]["eth0"]
