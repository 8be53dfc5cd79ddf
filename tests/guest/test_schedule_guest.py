"""Networks that change, impaired packets and two passes: exact, and the same whatever the guest did before."""

import dataclasses
import itertools
import shutil
import threading

import pytest
from helpers import line
from test_scenario_guest import FIFO, kernels, network

from conformance.lab import job, two_passes
from conformance.lab.reader import Reader
from conformance.model.diagnosis import pcap
from conformance.model.emulation import impairing
from conformance.model.networks.impairments import Impairments
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest

AT_S = 2
#: when a change comes where packets are so fast that a capture holds only half a second of them
SOON_S = 0.2
LATE_NS = 1000
FLOW = kernels(1, seconds=4, start={})
#: a link so fast that a packet comes every 12 us, with a queue that holds all of them
FAST = {"rate_mbps": 1000, "delay_ms": 1, "queue": {"kind": "bfifo", "size": 1_000_000, "unit": "bytes"}}


@pytest.fixture
def captured(monkeypatch, tmp_path):
    """Capture every trial, and return a function: number of a trial -> (packets sent, packets that came).

    With `acks`, each of the two is (packets from the server, packets to it).
    """
    plain, remove = job._trial, Reader._without_captures
    made = []

    def kept(self, measurement, index):
        folder = tmp_path / str(len(made))
        shutil.copytree(self._captures_of(index, measurement.trial), folder)
        made.append(folder)
        return remove(self, measurement, index)

    def packets(path, protocol, server):
        return pcap.packets(path.read_bytes(), protocol, server)

    def read(number, acks=False):
        files = [made[number] / f"{side}.pcap" for side in ("sent", "came")]
        sides = [packets(file, 6, bytes([10, 0, 0, 1])) for file in files]
        return sides if acks else [theirs for theirs, _ in sides]

    monkeypatch.setattr(
        job, "_trial", lambda *about: dataclasses.replace(plain(*about), captured_bytes=job.CAPTURED_BYTES)
    )
    monkeypatch.setattr(Reader, "_without_captures", kept)
    # Keep a first pass's captures, too.
    monkeypatch.setattr(two_passes, "_captured", lambda path, protocol, where: packets(path, protocol, where.server))
    return read


def measure(bench, *asked):
    """Return the measurements of (setting, seed) pairs, in order; they share guests if they can."""
    batches = [bench.trials("cubic", setting, [seed]) for setting, seed in asked]
    found = {m.trial.key: m for m in bench.place("cubic").room.run(bench.adapter, batches, threading.Event())}
    made = [found[trial.key] for batch in batches for trial in batch]
    assert [m.outcome for m in made] == [Outcome.OK] * len(asked), [m.message for m in made]
    return made


def change(**about):
    return {"at_s": AT_S, "link": "bottleneck", "direction": "forward", **about}


def test_rate_delay_and_outage_change_at_the_very_instant(bench, captured):
    """A guest that has made trials before changes them within a microsecond, while a packet comes every 12 us."""
    flow = {**FLOW, "seconds": 0.4}
    outage = network([flow], FAST, schedule=[change(at_s=SOON_S, set={"loss_pct": 100}, for_s=0.1)])
    slower = network([flow], FAST, schedule=[change(at_s=SOON_S, set={"rate_mbps": 10})])
    longer = network([flow], FAST, schedule=[change(at_s=SOON_S, direction="backward", set={"delay_ms": 3})])
    made = measure(bench, (network([flow], FAST), 1), (outage, 1), (slower, 1), (longer, 1))
    for one in made[1:]:
        assert all(0 <= change["late_ns"] <= LATE_NS for change in one.evidence["changes"])
    sent, came = captured(1)
    arrived = {packet.identity for packet in came}
    near = [packet for packet in sent if abs(packet.seconds - SOON_S) < 0.0005]
    assert min(p.seconds for p in near) < SOON_S < max(p.seconds for p in near)
    assert all((packet.identity in arrived) == (packet.seconds < SOON_S) for packet in near)
    _, came = captured(2)
    leaves = [packet.seconds for packet in came if abs(packet.seconds - SOON_S) < 0.01]
    gaps_us = [round((b - a) * 1e6, 1) for a, b in itertools.pairwise(leaves) if b > SOON_S + 2e-5]
    before_us = [round((b - a) * 1e6, 1) for a, b in itertools.pairwise(leaves) if b <= SOON_S]
    assert set(before_us) == {12.1} and min(gaps_us) > 1000
    (_, here), (_, gone) = captured(3, acks=True)
    arrival = {packet.identity: packet.seconds for packet in here}
    near = [p for p in gone if abs(p.seconds - SOON_S) < 0.0005]
    assert min(p.seconds for p in near) < SOON_S < max(p.seconds for p in near)
    for packet in near:
        took_s = arrival[packet.identity] - packet.seconds
        assert took_s == pytest.approx(0.001 if packet.seconds < SOON_S else 0.003, abs=15e-6)


def test_the_same_trial_gives_the_same_bytes_in_any_order(bench):
    stepped = network([FLOW], FIFO, schedule=[change(set={"rate_mbps": 5}, for_s=1)])
    entries = [change(set={"rate_mbps": 0}, for_s=0.3), change(at_s=1, set={"delay_ms": 5})]
    held = network([FLOW], FIFO, schedule=entries)
    waits = network([FLOW], FIFO, schedule=[change(at_s={"state": "start_up_ends"}, set={"rate_mbps": 5})])
    assert stepped.guest_digest == waits.guest_digest == held.guest_digest
    asked = [(stepped, 1), (waits, 1), (held, 1), (stepped, 2)]
    one, other = measure(bench, *asked), measure(bench, *reversed(asked))[::-1]
    assert [line(m) for m in one] == [line(m) for m in other]


def test_a_second_pass_is_the_first_until_the_state_begins(bench, captured):
    waits = network([FLOW], FIFO, schedule=[change(at_s={"state": "first_loss", "plus_s": 0.25}, set={"rate_mbps": 2})])
    (found,) = measure(bench, (waits, 1))
    at_s = found.evidence["triggered"]["first_loss"]
    assert 0.02 < at_s < 2 and found.evidence["changes"][0]["at_s"] == pytest.approx(at_s + 0.25, abs=1e-9)
    assert found.trial.setting == waits
    require_equal(captured, at_s + 0.25)


def require_equal(captured, until_s):
    """Require that until a time, the packets of two passes are sent at the same times."""
    # Sequence numbers and timestamps begin with the clock, but that does not change the packets' times and sizes.
    first, second = (
        [(packet.seconds, packet.bytes) for packet in captured(number)[0] if packet.seconds < until_s]
        for number in (0, 1)
    )
    assert len(first) > 100 and first == second


def test_the_passes_of_a_sender_that_draws_random_numbers_are_equal_too(bench, captured):
    """BBR draws the phase in which its cycle begins, and a change must find it in the state that it waited for."""
    flow = kernels(1, seconds=6, start={}, algorithm="bbr")
    entry = change(at_s={"state": "probe_up", "plus_s": 2}, set={"rate_mbps": 9.99})
    (found,) = measure(bench, (network([flow], FIFO, schedule=[entry]), 1))
    require_equal(captured, found.evidence["triggered"]["probe_up"] + 2)


def test_a_state_that_never_comes_is_an_error_that_says_so(bench):
    entry = change(at_s={"state": "first_loss"}, set={"loss_pct": 1})
    waits = network([kernels(1, bytes=200_000)], FAST, schedule=[entry])
    (found,) = bench.place("cubic").room.run(bench.adapter, [bench.trials("cubic", waits, [1])], threading.Event())
    assert found.outcome is Outcome.ERROR
    assert found.message.startswith("state first_loss never came in the first pass"), found.message


def test_a_rate_of_0_holds_packets_and_loses_none(bench):
    held = network([FLOW], FIFO, schedule=[change(set={"rate_mbps": 0}, for_s=0.01)])
    longer = network([FLOW], FIFO, schedule=[change(set={"rate_mbps": 0}, for_s=1)])
    short, found = measure(bench, (held, 1), (longer, 1))
    assert short.utilization > 0.9
    data = next(one for one in found.links if one["direction"] == "data")
    assert data["rate_mbps"] == pytest.approx(7.5, abs=0.02)
    assert min(data["out_series_mbps"]) < 0.1


IMPAIRED = {
    "reordered": {"reorder": {"share_pct": 5, "by_packets": 3}},
    "duplicated": {"duplicate_pct": 5},
    "burst": {"burst_loss": {"enter_pct": 1, "leave_pct": 30}},
    "too_long": {"largest_bytes": 1400},
    "chosen": {"lose": {"first": 20, "count": 2}},
    "again": {"lose": {"first": 20, "again": 1}},
    "held": {"hold": {"first": 20, "count": 2, "by_ms": 15}},
    "marked": {"mark_pct": 5},
    "bleached": {"ecn": "bleached"},
}


def test_each_impairment_is_calibrated_and_done_in_any_order(bench):
    flow = {**FLOW, "ecn": True, "seconds": 2}
    asked = [(network([flow], {**FIFO, "impairments": one}, timeout_s=30), 1) for one in IMPAIRED.values()]
    asked.append((network([flow], {**FIFO, "impairments": {}}, timeout_s=30, schedule=[
        {"at_s": 1, "link": "bottleneck", "direction": "forward", "set": {"impairments": {"jitter_ms": 3}}}
    ]), 1))  # fmt: skip
    assert len({setting.guest_digest for setting, _ in asked}) == 1
    made, again = measure(bench, *asked), measure(bench, *reversed(asked))[::-1]
    for what, found in zip(IMPAIRED, made, strict=False):
        (impaired,) = (one["impaired"] for one in found.links if one["direction"] == "data")
        assert impaired[what] > 0, what
    assert [line(m) for m in made] == [line(m) for m in again]


def test_a_hop_that_does_something_else_is_an_error(bench, monkeypatch):
    plain = impairing.rule
    wrong = Impairments(duplicate_pct=9)
    monkeypatch.setattr(impairing, "rule", lambda asked, *when: plain(wrong, *when))
    setting = network([FLOW], {**FIFO, "impairments": IMPAIRED["reordered"]})
    (found,) = bench.place("cubic").room.run(bench.adapter, [bench.trials("cubic", setting, [1])], threading.Event())
    assert found.outcome is Outcome.ERROR
    assert found.message.startswith("calibration: ") and "packets arrived twice instead of 0 %" in found.message


def test_acknowledgements_leave_in_slots(bench):
    def slots(keep):
        link = {
            "name": "bottleneck", "ends": ["left", "right"], "data": FIFO,
            "acks": {"delay_ms": 10, "impairments": {"slots": {"every_ms": 20, "keep": keep}}},
        }  # fmt: skip
        return network([FLOW], FIFO, links=[link])

    for keep, found in zip(("all", "newest"), measure(bench, (slots("all"), 1), (slots("newest"), 1)), strict=True):
        impaired = next(one["impaired"] for one in found.links if one["direction"] == "acks")
        assert (impaired["thinned"] > 0) == (keep == "newest")
        # 4 s have 200 slots; packets that open or end a connection are not thinned.
        assert keep == "all" or impaired["left"] < 260


def test_two_passes_serve_a_stack_over_udp(quic_bench):
    flows = [{"name": "test", "seconds": 4}]
    waits = network(flows, FIFO, schedule=[change(at_s={"state": "start_up_ends"}, set={"loss_pct": 100}, for_s=0.5)])
    (found,) = measure(quic_bench, (waits, 1))
    assert 0 < found.evidence["triggered"]["start_up_ends"] < 2
