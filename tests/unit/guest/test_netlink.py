"""Netlink messages of the kernel, read from bytes: reading any bytes ends, and gives only what they contain."""

import struct

from hypothesis import given, strategies as st

from conformance.guest import netlink

ATTRIBUTES = st.lists(st.tuples(st.integers(0, 0x3FFF), st.binary(max_size=40)), max_size=6)


def attribute(kind, data):
    """Return one attribute as the kernel lays it out: length, kind, data, and padding to four bytes."""
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


@given(ATTRIBUTES)
def test_attributes_are_read_back(attributes):
    data = b"".join(attribute(kind, data) for kind, data in attributes)
    assert list(netlink.attributes(data)) == attributes


@given(ATTRIBUTES.filter(bool), st.sampled_from([0x4000, 0x8000, 0xC000]))
def test_flags_are_no_part_of_the_kind(attributes, flags):
    """The two upper bits mean "nested" and "in network byte order" (linux/netlink.h)."""
    data = b"".join(attribute(kind | flags, data) for kind, data in attributes)
    assert list(netlink.attributes(data)) == attributes


@given(st.binary(max_size=200))
def test_random_bytes_end_and_give_only_what_stands_there(data):
    found = list(netlink.attributes(data))
    assert len(found) <= len(data) // 4 + 1
    for kind, inner in found:
        assert 0 <= kind <= 0x3FFF
        assert inner in data


@given(ATTRIBUTES, st.integers(0, 200))
def test_what_was_cut_short_begins_as_it_did(attributes, keeps):
    data = b"".join(attribute(kind, data) for kind, data in attributes)[:keeps]
    found = list(netlink.attributes(data))
    assert len(found) <= len(attributes)
    assert [kind for kind, _ in found] == [kind for kind, _ in attributes[: len(found)]]
    assert found[:-1] == attributes[: len(found) - 1] if found else len(data) < 4
    assert not found or attributes[len(found) - 1][1].startswith(found[-1][1])
