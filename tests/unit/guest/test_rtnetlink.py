"""The kernel's answers about queues, as they are read."""

import struct

import pytest

from conformance.guest import changes, netlink, rtnetlink
from conformance.model.emulation.netlink_message import attribute


def answer(options, out, standing, dropped, kind=36):
    counts = attribute(1, struct.pack("=QI", 1500 * out, out & 0xFFFFFFFF))
    counts += attribute(3, struct.pack("=5I", standing, 1500 * standing, dropped, 0, 0))
    counts += attribute(8, struct.pack("=Q", out))
    body = bytes(20) + attribute(2, options) + attribute(7, counts)
    return (struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body).hex()


def refused(code):
    return (struct.pack("=IHHII", 36, 2, 0, 1, 0) + struct.pack("=i", -code) + bytes(16)).hex()


NETEM = struct.pack("=6I", 0, 1000, 0xFFFFFFFF, 0, 0, 0) + attribute(10, struct.pack("=q", 20_000_000))
SPEC = struct.pack("=BBHhHI", 0, 1, 0, -1, 0, 1_250_000)
HTB = attribute(1, SPEC + SPEC + bytes(20))


def test_each_interface_is_asked_about_root_queue_and_class():
    asked = rtnetlink.questions([7, 9])
    rows = [struct.unpack_from("=IHHIIBxxxiIII", asked, at) for at in range(0, len(asked), 36)]
    assert [row[3] for row in rows] == [1, 2, 3, 4, 5, 6] and [row[6] for row in rows] == [7, 7, 7, 9, 9, 9]
    assert [row[1] for row in rows[:3]] == [38, 38, 42] and not any(row[2] & 0x4 for row in rows)


def test_counts_and_what_is_in_force_are_read():
    (found,) = rtnetlink.counted([answer(NETEM, 5_000_000_000, 3, 70), answer(b"", 9, 1, 30), answer(HTB, 9, 0, 0)])
    assert found == {
        "out_packets": 5_000_000_000, "dropped_packets": 70, "standing_packets": 3, "queue_dropped_packets": 30,
        "delay_ns": 20_000_000, "loss": 0xFFFFFFFF, "rate_bytes_per_s": 1_250_000,
    }  # fmt: skip


def test_a_rate_beyond_32_bits_is_in_an_attribute_of_its_own():
    options = HTB + attribute(6, struct.pack("=Q", 12_500_000_000))
    (found,) = rtnetlink.counted([answer(NETEM, 1, 0, 0), refused(2), answer(options, 0, 0, 0)])
    assert (found["rate_bytes_per_s"], found["queue_dropped_packets"]) == (12_500_000_000, None)


@pytest.mark.parametrize("nothing", ["-", refused(2), "00"])
def test_what_is_not_there_is_none(nothing):
    (found,) = rtnetlink.counted([nothing] * 3)
    assert set(found.values()) == {None}


def test_a_discipline_that_is_not_there_is_refused_in_the_kernels_words(monkeypatch):
    monkeypatch.setattr(rtnetlink, "_exchange", lambda *about: bytes.fromhex(refused(2)))
    with pytest.raises(RuntimeError, match="rtnetlink: data0: No such file or directory"):
        rtnetlink.send(None, "data0", "00" * 40)
    with pytest.raises(RuntimeError, match="No such file"):
        rtnetlink.dualpi2(None, "data0", 0x100000)


def test_the_rate_of_a_class_is_asked_for_and_read(monkeypatch):
    asked = []
    monkeypatch.setattr(
        rtnetlink, "_exchange", lambda *about: asked.append(about) or bytes.fromhex(answer(HTB, 9, 0, 0))
    )
    assert rtnetlink.class_rate(None, "acks0") == 1_250_000
    ((_, interface, message),) = asked
    assert interface == "acks0" and struct.unpack_from("=IHHIIBxxxiIII", message)[7] == 0x50001


def test_a_dualpi2_is_shown_as_a_newer_tc_shows_it(monkeypatch):
    options = attribute(1, struct.pack("=I", 10_000)) + attribute(8, struct.pack("=I", 1000)) + attribute(14, b"\1")
    counts = attribute(4, struct.pack("=8Ii3I", 0, 1, 2, 30, 40, 5, 6, 7, -8, 9, 10, 11))
    body = bytes(20) + attribute(2, options) + attribute(7, counts)
    monkeypatch.setattr(rtnetlink, "_exchange", lambda *about: struct.pack("=IHHII", 0, 36, 0, 0, 0) + body)
    found = rtnetlink.dualpi2(None, "data0", 0x100000)
    assert found["options"] == {"limit": 10_000, "step_thresh_us": 1000, "ecn_mask": 1}
    assert (found["packets_in_c"], found["packets_in_l"], found["ecn_mark"], found["credit"]) == (30, 40, 6, -8)
    assert dict(netlink.attributes(options))[1] == struct.pack("=I", 10_000)


@pytest.mark.parametrize(("directions", "message_bytes", "asks", "sizes"), [
    (1, 200, True, [1]), (16, 200, True, [16]), (17, 200, True, [16, 1]), (40, 200, False, [40]),
    (20, 700, True, [10, 10]), (2, 9000, False, [1, 1]),
])  # fmt: skip
def test_what_is_due_at_one_time_is_made_in_as_few_parts_as_the_program_takes(directions, message_bytes, asks, sizes):
    touched = {(link, 0): (link + 7, bytes([link]) * message_bytes) for link in range(directions)}
    found = list(changes.batches(touched, asks))
    each = message_bytes + (108 if asks else 0)
    assert [len(data) // each for _, data in found] == sizes
    assert [asked for asked, _ in found if asked] == ([] if not asks else [
        list(touched)[sum(sizes[:at]) : sum(sizes[: at + 1])] for at in range(len(sizes))
    ])  # fmt: skip
    assert all(data.startswith(b"".join(touched[one][1] for one in asked)) for asked, data in found)
