"""Samples of a client of the stack with several connections are of the busiest one."""

import types

from conformance.guest.stack_flows import StackGroup


def test_the_row_of_a_sample_is_the_busiest_connections():
    infos = [{"acked_bytes": bytes_, "rtt_ms": 1.0, "cwnd_segments": 10} for bytes_ in (100, 900)]
    group = StackGroup.__new__(StackGroup)
    group._tcp = types.SimpleNamespace(of_clients=lambda port: [("10.0.0.1", info) for info in infos])
    group._stage = types.SimpleNamespace(job=types.SimpleNamespace(port=443))
    group._numbers, group._addresses = {"10.0.0.1": 0}, {}
    group._infos, group._rows = [None], [[]]
    group._algorithms = [types.SimpleNamespace(see=lambda info: None)]
    for t_s in (0.1, 0.2):
        group.look(t_s)
    assert group._rows == [[(0.1, 900, 1.0, 10), (0.2, 900, 1.0, 10)]] and group._infos == [infos[1]]
