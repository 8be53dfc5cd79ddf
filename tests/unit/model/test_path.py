"""Paths of two segments: their end-to-end cells, what their links are told, and what is checked and believed."""

import contextlib
import copy

import pytest
from helpers import NETWORK, facts, refusal, scheme, setting, trial_at
from hypothesis import example, given, strategies as st
from test_calibration import GOOD, QDISCS
from test_setting import cells as any_cell

from conformance.catalogue import documents
from conformance.lab import job
from conformance.model.emulation import calibration
from conformance.model.emulation.facts import measurement
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell, CellPath, end_to_end, parse_path
from conformance.model.networks.proxy import Proxy
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome
from conformance.support import schema

CLIENTS, SERVERS = Cell(10, 20, 1), Cell(50, 60, 3)
segment = st.builds(Cell, st.floats(0.1, 10_000), st.floats(0, 5_000), st.floats(0, 25))


def path(proxy=None, segments=(CLIENTS, SERVERS), **overrides):
    return documents.path("atc25", segments, proxy, **overrides)


def trial(made):
    return trial_at(made)


@given(segment, segment)
def test_end_to_end_is_the_slowest_the_sum_and_either_loss(first, second):
    whole = end_to_end((first, second))
    assert whole == end_to_end((second, first))
    assert whole.bandwidth_mbps == min(first.bandwidth_mbps, second.bandwidth_mbps)
    # The sum is exact to the picosecond, with decimals that a file can hold.
    assert whole.one_way_delay_ms == pytest.approx(first.one_way_delay_ms + second.one_way_delay_ms, abs=1e-9)
    added = first.loss_pct + second.loss_pct
    assert max(first.loss_pct, second.loss_pct) - 1e-6 <= whole.loss_pct <= added + 1e-6


def test_a_loss_or_delay_on_one_side_only_stays_exact():
    assert end_to_end((Cell(10, 80, 0), Cell(10, 1, 4))) == Cell(10, 81, 4)
    assert end_to_end((Cell(10, 0.1, 0), Cell(10, 0.2, 0))) == Cell(10, 0.3, 0)
    assert end_to_end((CLIENTS, SERVERS)) == Cell(10, 80, 3.97)


@pytest.mark.slow
@given(segment, segment, st.sampled_from(["path", "segment"]), st.sampled_from([None, Proxy(to_client="bbr")]))
def test_a_path_survives_json_and_the_schema(first, second, sized_by, proxy):
    made = path(proxy, (first, second), queue_sized_by=sized_by)
    assert Setting.from_json(made.to_json()) == made
    line = Measurement(trial=trial(made), outcome=Outcome.ERROR, message="x").to_json()
    schema.check("measurement", line, "test")
    assert Measurement.from_json(line).trial.key == line["key"]


@given(any_cell, any_cell)
@example(Cell(10, 20.5, 1.23), Cell(10, 3.25, 4.56))
@example(Cell(1234.5678, 1e-05, 1e-300), Cell(1234.5678, 1e-05, 1e-300))
def test_any_path_survives_its_id_and_so_does_what_it_comes_to(first, second):
    assert parse_path(CellPath((first, second)).id) == (first, second)
    with contextlib.suppress(UserError):  # delays and losses may add up to more than a cell may have
        whole = end_to_end((first, second))
        assert Cell.parse(whole.id) == whole


def test_ids():
    assert path().id == "10mbps-20ms-1pct+50mbps-60ms-3pct"
    assert setting(CLIENTS).id == CLIENTS.id
    assert parse_path(path().id) == (CLIENTS, SERVERS)
    for wrong in ("10mbps-20ms-1pct", "a+b", "1+2+3", ""):
        assert "not of the form" in refusal(parse_path, wrong)


def test_a_cell_is_the_setting_it_was_before_there_were_paths():
    assert set(setting().to_json()) == {
        "cell", "profile", "queue", "offload", "transfer_s", "timeout_s", "topology", "host_queue", "sysctls",
    }  # fmt: skip
    assert setting().profile_digest == documents.zone_of("cubic").profile_digest


def test_only_what_is_compared_shares_a_profile_digest():
    assert path().profile_digest == path(segments=(SERVERS, CLIENTS)).profile_digest
    others = [setting(CLIENTS), path(), path(queue_sized_by="segment"), path(Proxy()), path(Proxy(to_client="bbr"))]
    assert len({made.profile_digest for made in others}) == len(others)
    assert trial(path()).key != trial(path(segments=(SERVERS, CLIENTS))).key


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"segments": []}, "need a path of two segments"),
        ({"segments": [CLIENTS.to_json()]}, "not a path of two segments"),
        ({"cell": CLIENTS.to_json()}, r"not a path of two segments that add up to 10mbps-20ms-1pct"),
        ({"queue_sized_by": "whim"}, "queue_sized_by is 'whim'; choose path or segment"),
        ({"proxy": {"program": "squid"}}, "proxy 'squid' is not known; choose splitter or pepsal"),
        ({"proxy": {"back_pressure_bytes": 1}}, "it must be a whole number"),
        ({"proxy": {"send_buffer_bytes": 2.5}}, "it must be a whole number"),
        ({"proxy": {"to_client": "rm -rf"}}, "a kernel name"),
        ({"proxy": {"program": "pepsal", "to_client": "bbr"}}, "pepsal has no to_client; only splitter has it"),
    ],
)
def test_impossible_paths_are_refused_with_the_reason(change, words):
    with pytest.raises(UserError, match=words):
        Setting.from_json({**path(Proxy()).to_json(), **change})


def test_the_transfer_is_sized_by_the_bottleneck():
    assert path().transfer_bytes == 12_500_000


def test_data_queue_at_the_slowest_link_or_at_the_first_of_equals():
    assert path().cell_form.bottleneck == 0
    assert path(segments=(SERVERS, CLIENTS)).cell_form.bottleneck == 1
    assert path(segments=(CLIENTS, CLIENTS)).cell_form.bottleneck == 1
    assert setting().cell_form.bottleneck == 0


def tc_of(setting):
    """Return the tc commands of each link of a cell or a path."""
    asked = trial_at(setting, 1, scheme("cubic"))
    found = job.cell_of([asked]).tc
    assert all(data == acks for data, acks in found)
    return [data for data, _ in found]


def test_as_published_the_whole_path_sizes_both_queues_and_each_link_keeps_its_rate():
    """Both queues are sized by the BDP of 2 (20 + 60) ms x 10 Mbit/s = 200,000 bytes, as in the ATC'25 testbed."""
    lines = list(map(list, tc_of(path())))
    assert lines[0] == [
        "qdisc add dev {dev} root handle 1: netem limit 1000000 delay 20000us loss 1%",
        "qdisc add dev {dev} parent 1: handle 5: htb default 1",
        "class add dev {dev} parent 5: classid 5:1 htb rate 10mbit quantum 125000",
        "qdisc add dev {dev} parent 5:1 handle 10: red limit 800000 min 66666 max 200000 avpkt 1000 burst 67"
        " probability 0.02 adaptive harddrop bandwidth 10mbit",
    ]
    assert lines[1] == [
        "qdisc add dev {dev} root handle 1: netem limit 1000000 delay 60000us loss 3%",
        "qdisc add dev {dev} parent 1: handle 5: htb default 1",
        "class add dev {dev} parent 5: classid 5:1 htb rate 50mbit quantum 200000",
        lines[0][3].replace("10mbit", "50mbit"),
    ]


@given(segment, segment, st.sampled_from(["red", "bfifo:1", "pie", "policer"]))
def test_sized_by_segment_each_link_is_what_it_is_alone(first, second, queue):
    made = path(segments=(first, second), queue=queue, queue_sized_by="segment")
    alone = [tc_of(setting(cell, queue=queue))[0] for cell in (first, second)]
    assert list(tc_of(made)) == alone


def observed(cell, **changes):
    netem = {"delay": {"delay": cell.one_way_delay_ms / 1000}, "loss-random": {"loss": cell.loss_pct / 100}}
    return {
        **GOOD, "rate_mbps": cell.bandwidth_mbps, "delays_ms": [cell.one_way_delay_ms + 0.1],
        "loss_lost": round(20 * cell.loss_pct), "qdiscs": [{**QDISCS[0], "options": netem}, *QDISCS[1:]], **changes,
    }  # fmt: skip


def test_each_segment_is_calibrated_and_a_wrong_one_named():
    good = [observed(CLIENTS), observed(SERVERS)]
    network = path().network
    assert calibration.problems(network, good) == []
    assert calibration.problems(network, [good[0], observed(SERVERS, rate_mbps=40)]) == [
        "the emulator delivered 40 Mbit/s instead of 50 (server, data)"
    ]
    (lost,) = calibration.problems(network, [observed(CLIENTS, loss_lost=200), good[1]])
    assert lost == "the emulator lost 200 of 2000 probe packets instead of 1 % (client, data)"
    assert len(calibration.problems(network, list(reversed(good)))) > 5
    assert calibration.problems(network, good[:1]) == ["1 directions of links were calibrated instead of 2"]


def split_facts(connections=1):
    splitter = {"node": "middle", "port": 443, "connections": 1, "refused": 0, "resets": 0, "bytes_to_client": 1}
    made = copy.deepcopy(facts(network=path(Proxy()).network, splitters=[splitter]))
    router = {"Tcp.ActiveOpens": connections, "Tcp.PassiveOpens": connections, "Tcp.OutSegs": 0, "Tcp.RetransSegs": 0}
    made["detail"]["counters"]["before"]["router"] = dict.fromkeys(router, 0)
    made["detail"]["counters"]["after"]["router"] = router
    made["detail"]["sampled"]["proxy"] = {"congestion_control": "cubic", "bytes_acked": 12_000_000, "bbr": None}
    return made


def judged(given):
    return measurement(trial(path(Proxy())), given, NETWORK, {})


def test_a_good_split_trial_says_what_its_proxy_did():
    found = judged(split_facts())
    assert found.outcome is Outcome.OK, found.message
    assert found.evidence["proxy"] == {
        "tcp_info": {"congestion_control": "cubic", "bytes_acked": 12_000_000}, "connections": 1,
    }  # fmt: skip
    assert found.evidence["snmp"]["router"]["Tcp.ActiveOpens"] == 1


def test_a_connection_past_the_proxy_is_an_error():
    found = judged(split_facts(connections=0))
    assert (found.outcome, found.message) == (Outcome.ERROR, "the connection did not pass through the proxy")
