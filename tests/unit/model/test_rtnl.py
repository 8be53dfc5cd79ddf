"""Changes as rtnetlink messages: what they say, and that they do not mention what stays the same."""

import dataclasses
import struct

import pytest
from hypothesis import given, strategies as st

from conformance.guest import rtnetlink
from conformance.guest.netlink import attributes
from conformance.model.emulation import netlink_message, rtnl
from conformance.model.networks.links import Direction, Queue
from conformance.model.networks.network import Network

DOCUMENT = {
    "links": [
        {
            "name": "l", "ends": ["a", "b"], "acks": {"delay_ms": 20},
            "data": {"rate_mbps": 10, "delay_ms": 20, "queue": {"kind": "bfifo", "size": 2}},
        }
    ],
    "flows": [{"name": "test", "seconds": 5}],
}  # fmt: skip
NETWORK = Network.from_json(DOCUMENT)
DATA = NETWORK.links[0].data


def said(after, before=DATA, off_ns=0):
    """Return [(type, handle, kind, options)] of the messages; check that each is whole and asks for an answer."""
    found = []
    for message in rtnl.messages(NETWORK, after, before, off_ns, 7):
        length, kind, flags = struct.unpack_from("=IHH", message)
        assert length == len(message) and flags == 5 and len(message) % 4 == 0
        _, index, handle, _, _ = struct.unpack_from("=BxxxiIII", message, 16)
        assert index == 0
        own = dict(attributes(message[36:]))
        found.append((kind, handle, own[1].rstrip(b"\0").decode(), own[2]))
    return found


def test_what_stays_is_not_said():
    assert said(DATA) == []
    assert [one[2] for one in said(dataclasses.replace(DATA, rate_mbps=20))] == ["htb"]
    assert [one[2] for one in said(dataclasses.replace(DATA, loss_pct=3))] == ["netem"]


@given(st.floats(0.001, 10_000), st.floats(0, 100), st.integers(-10_000, 10_000))
def test_a_netem_has_the_delay_and_the_loss_and_keeps_order(delay_ms, loss_pct, off_ns):
    after = dataclasses.replace(DATA, delay_ms=delay_ms, loss_pct=loss_pct)
    ((_, handle, _, options),) = said(after, off_ns=off_ns)
    _, limit, loss, gap, duplicate, jitter = struct.unpack_from("=6I", options)
    own = dict(attributes(options[24:]))
    assert handle == 0x10000 and limit == 1_000_000 and (gap, duplicate, jitter) == (0, 0, 0)
    assert loss == pytest.approx(loss_pct / 100 * 2**32, abs=2)
    asked_ns = max(round(delay_ms * 1e6) + off_ns, 1000)
    assert struct.unpack("=q", own[10])[0] == asked_ns
    assert struct.unpack("=Q", own[8])[0] >= 10**12  # a rate, so that packets do not overtake


@pytest.mark.parametrize("rate_mbps", [0.1, 10, 9.5, 10_000])
def test_a_class_has_the_rate_and_a_bucket_of_a_packet(rate_mbps):
    after = dataclasses.replace(DATA, rate_mbps=rate_mbps)
    before = dataclasses.replace(DATA, rate_mbps=1)
    ((kind, handle, _, options),) = said(after, before)
    parms = dict(attributes(options))[1]
    rate, ceil = (struct.unpack_from("=BBHhHI", parms, at)[5] for at in (0, 12))
    bucket, _, quantum, _, _ = struct.unpack_from("=5I", parms, 24)
    assert (kind, handle, rate) == (40, 0x50001, round(rate_mbps * 1e6 / 8)) and ceil == rate
    assert bucket * 64 == pytest.approx(1600 * 1e9 / rate, abs=64)
    assert 1514 <= quantum <= 200_000


def test_a_rate_of_0_stops_the_queue_and_a_rate_starts_it():
    stopped = dataclasses.replace(DATA, rate_mbps=0)
    assert [(kind, struct.unpack("=iI", options)) for *_, kind, options in said(stopped)] == [("plug", (0, 0))]
    assert [kind for *_, kind, _ in said(dataclasses.replace(DATA, rate_mbps=5), stopped)] == ["htb", "plug"]


@pytest.mark.parametrize(
    ("queue", "size"),
    [
        (Queue(kind="bfifo", size=1), 50_000),
        (Queue(kind="bfifo", size=3000, unit="bytes"), 3000),
        (Queue(kind="pfifo", size=7), 7),
    ],
)
def test_a_queue_has_its_size(queue, size):
    ((_, handle, kind, options),) = said(dataclasses.replace(DATA, queue=queue))
    assert (handle, kind, struct.unpack("=I", options)[0]) == (0x100000, queue.kind, size)


@pytest.mark.parametrize("kind", ["fq_codel", "codel", "pie"])
def test_other_queues_have_their_limit_in_an_attribute(kind):
    before = dataclasses.replace(DATA, queue=Queue(kind=kind))
    ((_, _, name, options),) = said(dataclasses.replace(before, queue=Queue(kind=kind, size=40)), before)
    assert name == kind and struct.unpack("=I", dict(attributes(options))[2])[0] == 40


def test_netem_as_a_limiter_has_its_rate():
    before = Direction(rate_mbps=10, limiter="netem", queue=Queue(kind="pfifo", size=50))
    ((_, handle, _, options),) = said(dataclasses.replace(before, rate_mbps=5), before)
    assert handle == 0x100000 and struct.unpack_from("=I", dict(attributes(options[24:]))[6])[0] == 625_000


def test_the_guest_finds_the_place_for_the_interface():
    assert rtnetlink.INDEX_AT == netlink_message.INDEX_AT
