"""A Source keeps what verdicts need of each line, and no more."""

import pytest
from helpers import as_read, measurement, refusal, results_file

from conformance.model.errors import UserError
from conformance.model.metrics.table import METRICS
from conformance.results import store
from conformance.results.source import Source


def test_a_source_remembers_all_that_verdicts_need(tmp_path):
    """This includes the size of packets, because stacks with small packets are judged by other intervals."""
    counters = {"eth0": {"rx_bytes": 12_900_000, "rx_packets": 10_700, "tx_bytes": 300_000, "rx_dropped": 0}}
    made = measurement(utilization=0.9)
    trace = {"t_s": [0.5 * at for at in range(40)], "queue_dropped_packets": [at // 4 for at in range(40)]}
    evidence = {**made.evidence, "interfaces": {"client": counters, "server": counters}, "trace": trace}
    whole = as_read(made, evidence=evidence)
    path = tmp_path / "results.jsonl"
    path.write_bytes(store.dumps(whole))
    (read,) = Source([path]).measurements
    assert whole.packet_bytes and read.packet_bytes == whole.packet_bytes
    assert {name: read.value(name) for name in METRICS} == {name: whole.value(name) for name in METRICS}
    assert whole.value("loss_events_per_min")
    assert not read.evidence


def test_lines_that_were_all_cut_short_are_said_to_be(tmp_path):
    path = tmp_path / "trunc.jsonl"
    results_file(path)
    lines = path.read_bytes().splitlines()
    path.write_bytes(lines[0][:200])
    with pytest.raises(UserError, match=r"^no results in .*trunc\.jsonl: the only line there was cut short; measure"):
        Source([path])
    path.write_bytes(lines[0][:200] + b"\n" + lines[1][:300] + b"\n")
    assert "all 2 lines there were cut short" in refusal(Source, [path])
    path.write_bytes(lines[0][:200] + b"\n" + lines[1] + b"\n")
    assert len(Source([path]).measurements) == 1
