"""Traces: what they hold, and that capturing packets does not change results."""

import json
import struct

import pytest
import rich.console
from helpers import line

from conformance.commands import trace
from conformance.engine import benches, runs
from conformance.model.errors import UserError
from conformance.model.trial import Measurement
from conformance.reporting.text import trace as shown
from conformance.reporting.text.progress import ConsoleNotes
from conformance.results import store
from conformance.support import schema

STACK = benches.Choice()


def traced(target, choice=STACK, packets_only=True, cell="10mbps-1ms-1pct"):
    console = rich.console.Console(record=True, width=200, markup=False)
    found = trace.compute(
        "cubic",
        choice,
        cell=cell,
        seed=3,
        profile="atc25",
        packets_only=packets_only,
        target=target,
        notes=ConsoleNotes(console),
    )
    schema.check("trace", found.to_json(), "trace")
    shown.show(found, console)
    return found.exit_status, console.export_text()


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
        ("is not a single cell", {"target": tmp_path / "t", "cell": "10mbps"}),
    ):
        with pytest.raises(UserError, match=words):
            traced(**arguments)
