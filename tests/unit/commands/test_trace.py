"""Traces: what they hold, and that capturing packets does not change results."""

import dataclasses
import json
import struct

import helpers
import pytest
import rich.console
from helpers import line, refusal

from conformance.catalogue import documents
from conformance.commands import trace
from conformance.commands.result import printed
from conformance.engine import benches, runs
from conformance.lab import job
from conformance.model.errors import UserError
from conformance.model.networks.network import Network
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement
from conformance.reporting.text import trace as shown
from conformance.reporting.text.progress import ConsoleNotes
from conformance.results import store
from conformance.support import schema

STACK = benches.Choice()


def traced(target, choice=STACK, packets_only=True, point="10mbps-1ms-1pct", profile="atc25", flow=None):
    found = trace.compute(
        "cubic",
        choice,
        point=point,
        seed=3,
        profile=profile,
        flow=flow,
        packets_only=packets_only,
        target=target,
        notes=ConsoleNotes(rich.console.Console()),
    )
    schema.check("trace", printed(found), "trace")
    return found.exit_status, helpers.shown(shown.show, found)


def frames(path):
    """Return [(seconds, frame)] of a pcap file with nanoseconds."""
    data, at, found = path.read_bytes(), 24, []
    assert struct.unpack_from("=I", data)[0] == 0xA1B23C4D
    while at < len(data):
        seconds, nanoseconds, kept, length = struct.unpack_from("=IIII", data, at)
        assert kept == length
        found.append((seconds + nanoseconds / 1e9, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


@pytest.mark.guest
def test_packets_are_captured_and_the_trial_is_the_same(tmp_path):
    status, text = traced(tmp_path / "t")
    assert status == 0, text
    found = Measurement.from_json(json.loads((tmp_path / "t" / "measurement.json").read_text()))
    bench = benches.find()
    kept = store.Store(tmp_path / "r.jsonl")
    with runs.Run(bench, kept, [("cubic", found.trial.setting)], [3]) as run:
        (measured,) = run.result("cubic", found.trial.setting)
    assert line(measured) == line(found)
    sent, came = (frames(tmp_path / "t" / f"emulator-to_{side}.pcap") for side in ("server", "client"))
    from_server = [f for _, f in sent if f[26:30] == bytes((10, 0, 0, 3))]
    to_client = [f for _, f in came if f[26:30] == bytes((10, 0, 0, 3))]
    assert sum(map(len, from_server)) > sum(map(len, to_client)) > found.trial.setting.transfer_bytes
    seconds = [t for t, _ in came]
    assert seconds == sorted(seconds)
    assert seconds[-1] - seconds[0] == pytest.approx(found.metrics["completion_s"], abs=1)
    assert not (tmp_path / "t" / "client" / "keys.log").exists()


@pytest.mark.guest
def test_a_flow_of_a_scenario_is_captured_and_the_trial_is_the_same(tmp_path):
    status, text = traced(tmp_path / "t", point="flows=2", profile="fairness", flow="test/1")
    assert status == 0, text
    found = Measurement.from_json(json.loads((tmp_path / "t" / "measurement.json").read_text()))
    kept = store.Store(tmp_path / "r.jsonl")
    with runs.Run(benches.find(), kept, [("cubic", found.trial.setting)], [3]) as run:
        (measured,) = run.result("cubic", found.trial.setting)
    assert line(measured) == line(found)
    came = [frame for _, frame in frames(tmp_path / "t" / "came.pcap")]
    from_server = [frame for frame in came if frame[26:30] == bytes((10, 0, 0, 1))]
    assert {frame[30:34] for frame in from_server} == {bytes((10, 1, 0, 2))}
    assert sum(map(len, from_server)) > found.flows[1]["bytes"]


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ("test/1", "there is no flow 'test/1'; choose of test/0, other/0"),
        ("others", "there is no flow 'others'"),
        ("test/x", "there is no flow 'test/x'"),
    ],
)
def test_a_flow_that_is_not_there_is_named(tmp_path, flow, words):
    with pytest.raises(UserError, match=words):
        traced(tmp_path / "t", point="others=1", profile="coexistence", flow=flow)


def test_what_has_one_flow_or_needs_two_trials_is_refused(tmp_path):
    assert "there is no flow 'test/1'; choose of test/0" in refusal(traced, tmp_path / "t", flow="test/1")
    with pytest.raises(UserError, match="after-start-up waits for a state"):
        traced(tmp_path / "t", point="rate_mbps=5", profile="after-start-up")


def test_packets_that_no_guest_has_room_for_are_refused_before_the_trial():
    link = {"rate_mbps": 1000, "queue": {"kind": "bfifo", "size": 1}}
    both = Network.from_json(
        {
            "links": [{"name": "link", "ends": ["client", "server"], "data": link, "acks": {}}],
            "flows": [{"name": "test", "seconds": 10}],
        }
    )
    setting = Setting(profile="s", network=both, point=Point(()), timeout_s=60)
    with pytest.raises(UserError, match="the packets of group test may take 1192 MB, more than the 512 MB"):
        job.traced_bytes(setting, (0, 0))
    short = dataclasses.replace(both, flows=(dataclasses.replace(both.flows[0], seconds=1),))
    assert job.traced_bytes(dataclasses.replace(setting, network=short), (0, 0)) == 125_000_000
    cell = documents.profile("atc25", Cell(1000, 10, 0))
    with pytest.raises(UserError, match="the packets of this transfer may take 1192 MB, more than the 512 MB"):
        job.memory_mb(cell, trace="packets")


@pytest.mark.guest
def test_secrets_are_kept_on_request(tmp_path):
    status, text = traced(tmp_path / "t", packets_only=False)
    assert status == 0, text
    secrets = (tmp_path / "t" / "client" / "keys.log").read_text()
    assert "CLIENT_TRAFFIC_SECRET_0 " in secrets
    assert "client/keys.log" in text


def test_mistakes_are_named(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    for words, arguments in (
        ("is not empty", {"target": tmp_path / "there"}),
        ("is not a single cell", {"target": tmp_path / "t", "point": "10mbps"}),
    ):
        with pytest.raises(UserError, match=words):
            traced(**arguments)
