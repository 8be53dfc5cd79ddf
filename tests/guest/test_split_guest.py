"""Split paths in real guests: both halves are as asked for, and a program that breaks is told from one that is slow."""

import json
import os
import threading

import pytest

from conformance.catalogue import documents
from conformance.lab import job, proxy
from conformance.model.networks.place import Cell
from conformance.model.networks.proxy import Proxy
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import paths

pytestmark = pytest.mark.guest

TESTS = str(paths.PACKAGE.parent / "tests")
#: the cache with the kernels, whatever home a test is given
CACHE = str(paths.cache())
#: the lossy half is short and the long one has no loss: end to end, CUBIC meets the losses with a long round trip
PATH = (Cell(10, 40, 0), Cell(10, 2, 3))


def path(through=None, segments=PATH, **overrides):
    return documents.path("atc25", segments, through, **{"transfer_s": 2, **overrides})


def go(bench, settings, seeds=(1,), algorithm="cubic"):
    batches = [bench.trials(algorithm, setting, seeds) for setting in settings]
    return list(bench.place(algorithm).room.run(bench.adapter, batches, threading.Event()))


def line(measurement):
    return json.dumps({**measurement.to_json(), "host": None}, sort_keys=True)


@pytest.fixture(scope="module")
def split(bench):
    return go(bench, [path(Proxy()), path(Proxy(), (Cell(50, 1, 0), Cell(10, 20, 1)))], (1, 2))


@pytest.fixture(scope="module")
def whole(bench):
    return go(bench, [path()], (1, 2))


def test_a_split_transfer_passes_the_proxy_over_two_segments_as_asked(split):
    for found in split:
        assert found.outcome is Outcome.OK, found.message
        evidence, setting = found.evidence, found.trial.setting
        assert evidence["proxy"]["connections"] == 1
        assert evidence["proxy"]["tcp_info"]["congestion_control"] == "cubic"
        assert evidence["proxy"]["tcp_info"]["bytes_acked"] > setting.transfer_bytes / 2  # at the last look
        assert evidence["sysctls"]["router"]["net.ipv4.tcp_rmem"] == "4096 131072 6291456"
        # Each half has its own round-trip time: the server measures that to the proxy, the proxy that to the client.
        assert found.metrics["min_rtt_ms"] == pytest.approx(2 * setting.segments[1].one_way_delay_ms, abs=2)
        assert evidence["proxy"]["tcp_info"]["min_rtt_ms"] == pytest.approx(
            2 * setting.segments[0].one_way_delay_ms, abs=2
        )
        for observed, cell in zip(evidence["calibration"], setting.segments, strict=True):
            assert observed["rate_mbps"] == pytest.approx(cell.bandwidth_mbps, rel=0.03)
            assert observed["delays_ms"][0] == pytest.approx(cell.one_way_delay_ms, abs=0.2)
            assert (observed["loss_lost"] > 0) == (cell.loss_pct > 0)
        assert {q["dev"] for q in evidence["qdiscs"]} == {"to_client", "up_to_router", "down_to_router", "to_server"}
        assert found.value("lost_pct") is None


def test_without_a_proxy_the_same_path_is_one_connection_end_to_end(whole, split):
    for found, other in zip(whole, split, strict=False):
        assert found.outcome is Outcome.OK, found.message
        assert found.metrics["min_rtt_ms"] == pytest.approx(84, abs=2)
        assert "router" not in found.evidence["snmp"]
        assert "proxy" not in found.evidence
        assert other.utilization > 2 * found.utilization


def test_the_same_trial_gives_the_same_bytes(bench, split):
    again = go(bench, [path(Proxy(), (Cell(50, 1, 0), Cell(10, 20, 1))), path(Proxy())], (2, 1))
    assert {line(m) for m in again} == {line(m) for m in split}
    assert all(Measurement.from_json(m.to_json()) == m for m in split)


def test_back_pressure_bounds_what_the_proxy_takes_ahead(bench, split):
    """A proxy that may be 20 KB ahead of its receiver cannot fill a round trip of 50 KB."""
    (found,) = go(bench, [path(Proxy(back_pressure_bytes=20_000, to_client="reno"))])
    assert found.outcome is Outcome.OK, found.message
    assert found.utilization < 0.45 < split[0].utilization
    assert found.evidence["proxy"]["tcp_info"]["congestion_control"] == "reno"


@pytest.mark.parametrize("link", [0, 1])
def test_an_emulator_that_does_not_deliver_is_an_error_that_names_the_segment(bench, monkeypatch, link):
    right = job.shaping.tc_lines

    def wrong(network, direction, *delay_off_ns, **how):
        lines = right(network, direction, *delay_off_ns, **how)
        of = network.links[link].data
        return [text.replace("rate 10mbit", "rate 9mbit") if direction is of else text for text in lines]

    monkeypatch.setattr(job.shaping, "tc_lines", wrong)
    (found,) = go(bench, [path(Proxy())])
    assert found.outcome is Outcome.ERROR
    assert "the emulator delivered 9 Mbit/s" in found.message or "the emulator delivered 9.0" in found.message
    assert f"({('client', 'server')[link]}, data)" in found.message
    assert f"({('server', 'client')[link]}, data)" not in found.message


@pytest.fixture
def fake_pepsal(tmp_path, monkeypatch):
    """Return a function that puts a program named pepsal on PATH: shell commands, then the suite's own splitter."""

    def make(commands):
        own = proxy.program(Proxy()).read_bytes()
        fake = tmp_path / "pepsal"
        # The guest sees the scratch folder only, so the program carries the suite's own in itself.
        head = f"""#!/bin/sh
{commands}
tail -c {len(own)} "$0" > /run/own && chmod 700 /run/own
exec /run/own "$@"
"""
        fake.write_bytes(head.encode() + own)
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return proxy.choose("pepsal")

    return make


def test_a_proxy_that_is_killed_in_mid_transfer_is_an_error(bench, fake_pepsal):
    (found,) = go(bench, [path(fake_pepsal("(sleep 1.5; kill -9 $$) &"))])
    assert found.outcome is Outcome.ERROR
    assert found.message == "the splitter at middle ended with status -9 before the flows did"


def test_pepsal_on_path_can_take_its_place(bench, fake_pepsal):
    (found,) = go(bench, [path(fake_pepsal('[ "$*" = "-p 4433" ] || exit 9'))])
    assert found.outcome is Outcome.OK, found.message
    assert found.evidence["proxy"]["connections"] == 1
    (refused,) = go(bench, [path(fake_pepsal("echo no such option >&2; exit 3"))])
    assert refused.message == "the splitter at middle ended with status 3 before it was ready: no such option"


def test_connections_do_not_pass_by_the_proxy(bench, fake_pepsal):
    """If connections were not handed over, the path would be measured end to end, but called split."""
    (found,) = go(bench, [path(fake_pepsal("ip rule del lookup 100; ip rule del lookup 100"))])
    assert found.outcome is Outcome.ERROR and "did not pass through the proxy" in found.message


def test_the_suite_measures_a_path_of_the_zone_through_the_proxy(pytester, monkeypatch):
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", CACHE)
    name = "10mbps-40ms-0pct+10mbps-40ms-0pct"
    grid = ("--grid", name, "--trials", "5", "--max-trials", "5", "--results", "r.jsonl")
    result = pytester.runpytest_subprocess(
        "--pyargs", "conformance.suite", "-p", "no:cacheprovider", "-m", "cubic and split", *grid, "-rs"
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*cubic/split-utilization: 1 *"])
    measured = store.read(pytester.path / "r.jsonl")
    assert [m.trial.setting.point.id for m in measured] == [name] * 5
    assert all(m.evidence["proxy"]["connections"] == 1 for m in measured)
    assert all(0.8 < m.utilization < 1 for m in measured)
