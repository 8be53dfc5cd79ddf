"""DualPI2 on a link: what the kernel is told and what it shows, and counts of marks."""

import struct

import pytest

from conformance.guest.netlink import attributes
from conformance.model.emulation import dualpi2, queue_counts, shaping
from conformance.model.networks.links import Direction, Queue
from conformance.model.networks.network import Network

PLAIN = Queue(kind="dualpi2")
ASKED = Queue(kind="dualpi2", size=500, ce_threshold_us=2000, any_ect=True)


def told(queue):
    """Return {attribute: value} of the message that adds a queue, and the message's header."""
    word, dev, text = dualpi2.line(queue, 0x100000, 0x50001).split()
    assert (word, dev) == ("rtnetlink", "{dev}")
    message = bytes.fromhex(text)
    head = struct.unpack_from("=IHHII", message), struct.unpack_from("=BxxxiIII", message, 16)
    options = dict(attributes(message[36:]))
    assert options[1] == b"dualpi2\0"
    return head, {kind: int.from_bytes(value, "little") for kind, value in attributes(options[2])}


def shown(**options):
    return {"kind": "dualpi2", "options": {"limit": 10_000, "step_thresh_us": 1000, "ecn_mask": 1, **options}}


def test_the_message_adds_the_queue_before_the_limiter_with_its_limit_threshold_and_which_packets_are_l4s():
    ((size, kind, flags, number, port), (family, index, handle, parent, info)), options = told(PLAIN)
    # It asks for an answer.
    assert (kind, flags, number, port) == (36, 0x1 | 0x4 | 0x200 | 0x400, 0, 0)
    assert (family, index, handle, parent, info) == (0, 0, 0x100000, 0x50001, 0) and size % 4 == 0
    assert options == {1: 10_000, 8: 1000, 14: 1}
    assert told(ASKED)[1] == {1: 500, 8: 2000, 14: 3}


def test_a_chain_ends_with_it():
    direction = Direction(rate_mbps=40, delay_ms=10, queue=PLAIN)
    document = {
        "links": [{"name": "l", "ends": ["a", "b"], "data": direction.to_json(), "acks": {}}],
        "flows": [{"name": "test", "seconds": 5}],
    }
    *_, limiter, queue = shaping.tc_lines(Network.from_json(document), direction)
    assert "classid 5:1 htb rate 40mbit" in limiter and queue == dualpi2.line(PLAIN, 0x100000, 0x50001)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (shown(), None),
        (shown(ecn_mask=3), "dualpi2 has ecn_mask 3 instead of 1"),
        (shown(limit=7), "dualpi2 has limit 7 instead of 10000"),
        ({"kind": "dualpi2"}, "dualpi2 has step_thresh_us None instead of 1000"),
    ],
)
def test_what_the_kernel_shows_is_compared_with_what_was_asked_for(found, why):
    direction = Direction(rate_mbps=40, queue=PLAIN)
    problems = shaping.problems(direction, [{"kind": "netem"}, {"kind": "htb"}, found])
    assert why in problems if why else problems == []


def test_marks_of_its_threshold_are_among_its_marks():
    assert queue_counts.marked([{"kind": "dualpi2", "ecn_mark": 7, "step_marks": 5}], None) == 7


def test_it_alone_takes_other_packets_for_l4s():
    assert list(ASKED.problems()) == []
    assert list(Queue(kind="codel", any_ect=True).problems()) == [
        ("/any_ect", "a codel has no queue for L4S; choose dualpi2")
    ]
    assert "any_ect" not in PLAIN.to_json()
