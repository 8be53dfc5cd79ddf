"""The harness takes no report of an adapter on trust."""

import copy
import dataclasses

import pytest
from helpers import NETWORK, facts, process, trial

from conformance.catalogue import documents
from conformance.model.emulation import congestion
from conformance.model.emulation.facts import measurement
from conformance.model.networks.place import Cell
from conformance.model.networks.proxy import Proxy
from conformance.model.trials.trial import Measurement, Outcome
from conformance.support import schema


def made(given):
    return measurement(trial(), given, NETWORK, {"wall_s": 0.1})


def client(stdout="", exit_status=0, stderr=""):
    return process(exit_status, stdout, stderr)


def line(size=12_500_000, seconds=20.0, handshake=0.08):
    return f'{{"bytes": {size}, "completion_s": {seconds}, "handshake_s": {handshake}}}\n'


def test_a_good_trial():
    found = made(facts())
    assert found.outcome is Outcome.OK
    assert found.metrics["goodput_mbps"] == 5.0
    assert found.utilization == 0.5
    assert found.metrics["retransmitted_segments"] == 90
    schema.check("measurement", found.to_json(), "test")
    assert Measurement.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"client": client(line(size=1))}, "reports 1 bytes, but 12500000 were requested"),
        ({"client": client(line(seconds=10.0))}, "reports 10.000 s, but the harness saw it run for 20.010"),
        ({"client": client(line(seconds=0))}, "completion time of 0"),
        ({"client": client(line(seconds=-1))}, "completion time of -1"),
        ({"client": client(line(seconds="NaN"))}, "no valid result line"),
        ({"client": client(line(seconds="1e999"))}, "no valid result line"),
        ({"client": client(line(seconds=10**400))}, "no valid result line"),
        ({"client": client("[" * 60_000)}, "no valid result line"),
        ({"client": client("hello")}, "printed no valid result line: hello"),
        ({"client": client("")}, "printed no valid result line: nothing"),
        ({"client": client(line() + line())}, "printed 2 result lines"),
        ({"client": client('{"bytes": 1, ' + line()[1:])}, "no valid result line"),
        ({"client": client("[1]")}, "no valid result line"),
        ({"client": client('{"bytes": true, "completion_s": 20, "handshake_s": 0}')}, "no valid result line"),
        ({"client": client(line(handshake=30))}, "no valid result line"),
        ({"ready": False, "server": client(exit_status=3)}, "ended with status 3 before it was ready"),
        ({"ready": False, "server": client(exit_status=None)}, "did not bind CC_PORT within 30 s"),
    ],
)
def test_lies_and_crashes_are_errors_that_say_so(change, words):
    found = made(facts(**change))
    assert found.outcome is Outcome.ERROR
    assert words in found.message
    assert "\x1b" not in found.message
    assert found.metrics == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"client": client(exit_status=7, stderr="refused\x1b[31m")},
            "the client of linux-tcp ended with status 7: refused",
        ),
        ({"client": client(exit_status=-9)}, "status -9"),
        ({"server": client(exit_status=1, stderr="oops")}, "died with status 1 during the transfer: oops"),
        ({"server": client(exit_status=127, stderr="no such symbol")}, "ended with status 127 during the transfer"),
    ],
)
def test_programs_that_end_during_a_transfer_fail(change, words):
    found = made(facts(**change))
    assert found.outcome is Outcome.FAILED
    assert words in found.message
    assert "\x1b" not in found.message
    assert found.metrics == {}


def test_who_is_killed_for_want_of_memory_may_not_be_to_blame():
    found = made(facts(client={**client(exit_status=-9), "ran_out_of_memory": True}))
    assert found.outcome is Outcome.ERROR


def test_bytes_that_did_not_cross_the_link_are_a_lie():
    given = copy.deepcopy(facts())
    given["detail"]["counters"]["after"]["interfaces"]["client"]["eth0"]["rx_bytes"] = 1000
    assert "only 1000 crossed its link" in made(given).message


def test_faster_than_the_link_is_a_lie():
    quick = facts(client=client(line(seconds=9.0)), elapsed_s=9.0)
    assert "over a link of 10 Mbit/s" in made(quick).message


def sampled(names=("cubic",), **changes):
    found = {"name": names[-1], "names": list(names), "bbr": None} if names else None
    return {**facts()["detail"]["sampled"], "congestion_control": found, **changes}


@pytest.mark.parametrize(
    ("names", "elapsed_s", "words"),
    [
        (["cubic"], 20.01, None),
        (["reno"], 20.01, "the server of linux-tcp sent with reno instead of cubic"),
        (["cubic", "bbr", "cubic"], 20.01, "sent with bbr instead of cubic"),
        (None, 20.01, "had no connection from its port"),
    ],
)
def test_another_algorithm_than_was_set_in_the_kernel_is_an_error(names, elapsed_s, words):
    given = facts(sampled=sampled(names), elapsed_s=elapsed_s)
    found = measurement(trial(), given, {**NETWORK, "kernel_algorithm": "cubic"}, {})
    assert (found.message is None) if words is None else (words in found.message)
    assert (found.outcome is Outcome.ERROR) == (words is not None)
    # For a stack with its own congestion control, none is set.
    assert made(given).outcome is Outcome.OK


def test_between_two_looks_nothing_is_missed():
    assert congestion.not_as_set("cubic", None, 0.05) is None


@pytest.mark.parametrize(("opened", "outcome"), [(1, Outcome.OK), (4, Outcome.ERROR)])
def test_several_connections_are_not_one(opened, outcome):
    given = copy.deepcopy(facts())
    for when, count in (("before", 7), ("after", 7 + opened)):
        given["detail"]["counters"][when]["client"] = {"Tcp.ActiveOpens": count}
    found = made(given)
    assert found.outcome is outcome
    assert outcome is Outcome.OK or "opened 4 connections" in found.message
    # Nor is one that a server opens to its client: nobody looks at its algorithm.
    given["detail"]["counters"]["after"]["client"] = {"Tcp.ActiveOpens": 8, "Tcp.PassiveOpens": 4}
    given["detail"]["counters"]["before"]["client"] |= {"Tcp.PassiveOpens": 4}
    assert made(given).outcome is Outcome.OK
    given["detail"]["counters"]["after"]["client"]["Tcp.PassiveOpens"] = 5
    assert "the client of linux-tcp accepted connections (1)" in made(given).message
    # The kernel counts no connections over UDP, and programs may have TCP connections of their own.
    given["detail"]["sampled"]["tcp_info"] = None
    assert made(given).outcome is Outcome.OK


def sending(packets, size, segments, again=0, node="server", **known):
    """Return the facts of a trial in which so much left a node."""
    given = copy.deepcopy(facts(sampled=sampled(proxy=None), **known))
    for when, share in (("before", 0), ("after", 1)):
        counters = given["detail"]["counters"][when]
        out = {"tx_packets": share * packets, "tx_bytes": share * size}
        counters["interfaces"] = {**counters["interfaces"], node: {"eth0": out}}
        names = ("Tcp.OutSegs", "Tcp.RetransSegs", "Tcp.ActiveOpens")
        opened = int(node == "router")
        counters[node] = {name: share * n for name, n in zip(names, (segments, again, opened), strict=True)}
    return given


def beside(given, asked=None, **network):
    return measurement(asked or trial(), given, {**NETWORK, "kernel_algorithm": "cubic", **network}, {})


@pytest.mark.parametrize(
    ("packets", "size", "segments", "again"),
    [
        (8668, 13_117_143, 8650, 18),  # a trial of linux-tcp
        (4823, 12_943_013, 8650, 73),  # with segmentation offload, a packet holds several segments
        (8, 4000, 0, 0),  # ICMP
        (26_000 + 268, 39_700_000, 26_000, 0),  # so few packets change no verdict
    ],
)
def test_what_tcp_explains_is_the_connections(packets, size, segments, again):
    assert beside(sending(packets, size, segments, again)).message is None


@pytest.mark.parametrize(
    ("packets", "size", "segments"),
    [
        (8700, 12_700_000, 90),  # 1 % goes over TCP
        (220, 12_700_000, 90),  # the same in super-packets
        (17_300, 13_400_000, 8650),  # a segment with few bytes beside each datagram
        (30, 32_000, 18),  # a short transfer
    ],
)
def test_what_left_beside_the_connection_is_an_error(packets, size, segments):
    found = beside(sending(packets, size, segments))
    assert found.outcome is Outcome.ERROR
    assert f"the server of linux-tcp sent beside its connection: {packets} packets" in found.message
    assert f"only {segments} TCP segments" in found.message
    # A stack in user space has no TCP of the kernel's.
    assert beside(sending(packets, size, segments), kernel_algorithm=None).outcome is Outcome.OK


def test_a_server_opens_no_connection():
    given = sending(8668, 13_117_143, 8650, 18)
    given["detail"]["counters"]["after"]["server"]["Tcp.ActiveOpens"] = 3
    assert "the server of linux-tcp opened connections itself (3)" in beside(given).message
    assert beside(given, kernel_algorithm=None).outcome is Outcome.OK


def test_a_proxy_sends_only_what_its_connections_do():
    ways = (Cell(10, 10, 0), Cell(50, 10, 0))
    split = dataclasses.replace(trial(), setting=documents.path("atc25", ways, Proxy(), transfer_s=10))
    splitter = {"node": "middle", "port": 443, "connections": 1, "refused": 0, "resets": 0, "bytes_to_client": 1}
    known = {"node": "router", "network": split.setting.network, "splitters": [splitter]}
    assert beside(sending(9000, 13_000_000, 12_800, **known), split).outcome is Outcome.OK
    found = beside(sending(9000, 13_000_000, 90, **known), split)
    assert (found.outcome, "the splitter at middle sent beside" in found.message) == (Outcome.ERROR, True)


@pytest.mark.parametrize("who", ["server", "client"])
def test_status_127_is_unsupported(who):
    given = copy.deepcopy(facts(**{who: client(exit_status=127)}, ready=who == "client"))
    if given["detail"]:
        given["detail"]["counters"]["after"]["interfaces"]["client"]["eth0"]["rx_bytes"] = 900
    found = made(given)
    assert found.outcome is Outcome.UNSUPPORTED
    assert "does not offer cubic" in found.message


@pytest.mark.parametrize("who", ["server", "client"])
def test_status_127_in_the_middle_of_a_transfer_is_no_way_out(who):
    found = made(facts(**{who: client(exit_status=127)}))
    assert found.outcome is Outcome.FAILED
    assert f"the {who} of linux-tcp ended with status 127 during the transfer" in found.message


def timed_out(crossed, at_half_time=0):
    given = copy.deepcopy(facts(timed_out=True, elapsed_s=3600.0, client=client(exit_status=None)))
    given["detail"]["half_time"] = {"eth0": {"rx_bytes": at_half_time}}
    given["detail"]["counters"]["after"]["interfaces"]["client"]["eth0"]["rx_bytes"] = crossed
    return given


def test_a_timeout_keeps_an_upper_bound_and_no_goodput():
    found = made(timed_out(6_000_000, at_half_time=3_000_000))
    assert found.outcome is Outcome.TIMEOUT
    assert found.metrics["goodput_mbps"] is None
    assert found.utilization == pytest.approx(8 * 12_500_000 / (3600 * 10e6), abs=1e-6)


@pytest.mark.parametrize(
    ("crossed", "words"),
    [
        (900, "transferred nothing in 3600 s"),
        (6_000_000, "stood still after 6000000 bytes, for half of 3600 s"),
        (13_000_000, "stood still after 13000000 bytes, for half of 3600 s"),
    ],
)
def test_a_client_that_hangs_fails_and_is_no_slow_transfer(crossed, words):
    found = made(timed_out(crossed, at_half_time=crossed))
    assert found.outcome is Outcome.FAILED
    assert words in found.message


def test_a_transfer_that_ended_in_silence_fails_and_says_so():
    given = timed_out(6_000_000) | {"elapsed_s": 130.5}
    given["detail"]["half_time"] = None
    found = made(given)
    assert found.outcome is Outcome.FAILED
    assert "stood still after 6000000 bytes: no packet came for 120 s" in found.message


def test_a_transfer_that_time_ends_near_its_end_timed_out():
    """Headers alone are 4.6 % of what crosses the link, so bytes a little above the body's size may lack part of it."""
    assert made(with_trace(timed_out(12_900_000, at_half_time=6_000_000), 0)).outcome is Outcome.TIMEOUT


@pytest.mark.parametrize("column", ["bytes_acked", "queue_out_bytes"])
@pytest.mark.parametrize(("late", "outcome"), [(0, Outcome.FAILED), (900_000, Outcome.TIMEOUT)])
def test_a_client_that_does_not_end_failed_only_if_nothing_came_at_last(column, late, outcome):
    """With many duplicates, more bytes than the body's may have come, and a part of it still be missing."""
    found = made(with_trace(timed_out(14_000_000, at_half_time=6_000_000), late, column))
    assert found.outcome is outcome
    assert ("did not end within 3600 s" in found.message) == (outcome is Outcome.FAILED)
    assert made(timed_out(14_000_000, at_half_time=6_000_000)).outcome is Outcome.TIMEOUT


def with_trace(given, late, column="bytes_acked"):
    """Return facts with a trace in which so many bytes came in the last seconds of an hour."""
    trace = {"t_s": [0, 1800, 3200, 3600], "bytes_acked": [None] * 4, "queue_out_bytes": [None] * 4}
    given["detail"]["sampled"]["trace"] = {**trace, column: [0, 6_000_000, 14_000_000 - late, 14_000_000]}
    return given


def test_a_stack_without_tcp_info_has_no_zero_in_its_place():
    given = copy.deepcopy(facts())
    given["detail"]["sampled"]["tcp_info"] = None
    assert made(given).metrics["retransmitted_segments"] is None
    assert made(given).metrics["min_rtt_ms"] is None


def test_long_output_is_cut():
    assert len(made(facts(client=client(exit_status=1, stderr="x" * 100_000))).message) < 500
