"""When a client's packets asked for a body, and when it came, from the packets that passed the client."""

import pytest

from conformance.guest.exchange import exchange

MS = 1_000_000
#: TLS 1.3 over a round trip of 100 ms: hello; hello and certificates; finished and request; the body of 30 kB
GOOD = [
    (500 * MS, 300, "client"), (600 * MS, 1500, "server"), (600 * MS, 1500, "server"), (601 * MS, 220, "client"),
    *((at_ms * MS, 1500, "server") for at_ms in range(701, 723)), (802 * MS, 120, "client"),
]  # fmt: skip


def test_times_count_from_the_first_packet():
    seen = exchange(GOOD, 30_000)
    assert (seen.asked_s, seen.whole_s, seen.last_s) == (((0.101, 0.206),), 0.218, 0.222)


@pytest.mark.parametrize("packets", [[], GOOD[:4], [packet for packet in GOOD if packet[2] != "server"]])
def test_without_a_body_there_are_no_times(packets):
    assert exchange(packets, 30_000) is None


def test_what_the_client_sends_while_the_body_comes_is_noted_with_what_comes_after():
    early = (703 * MS, 120, "client")
    seen = exchange([*GOOD[:7], early, *GOOD[7:]], 30_000)
    assert seen.asked_s == ((0.101, 0.206), (0.203, 0.209))


def test_packets_of_others_do_not_count():
    assert exchange([*GOOD[:4], (650 * MS, 9000, None), *GOOD[4:]], 30_000) == exchange(GOOD, 30_000)
