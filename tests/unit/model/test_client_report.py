"""What a client reports of its connections is read strictly (docs/contract.md)."""

import json

import pytest

from conformance.model.emulation import client_report

CONNECTION = {
    "start_s": 0.5, "handshake_s": 0.6, "end_s": 2.0, "early_data": None, "migration": "validated",
    "resets": ["H3_REQUEST_CANCELLED"],
}  # fmt: skip


def read(*connections, **changes):
    """Return the report with these connections, as it is read; None if it is not valid."""
    report = {"bytes": 1000, "completion_s": 2.0, "handshake_s": 0.1, "connections": list(connections), **changes}
    return client_report.report_of(json.dumps(report))


@pytest.mark.parametrize("early", [None, "accepted", "refused"])
def test_connections_are_reported_as_they_went(early):
    connection = {**CONNECTION, "early_data": early}
    assert read(CONNECTION, connection)["connections"] == [CONNECTION, connection]


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_s": None}, {"start_s": -1}, {"handshake_s": 0.4}, {"end_s": 0.4}, {"end_s": "2"}, {"end_s": True},
        {"early_data": "yes"}, {"early_data": True}, {"migration": "done"}, {"migration": []}, {"resets": None},
        {"handshake_s": 2.1}, {"resets": [1]}, {"resets": [""]}, {"resets": ["x" * 61]}, {"resets": ["\x1b[2J"]},
        {"resets": ["\ud800"]}, {"resets": ["H3_NO_ERROR\n"]},
    ],
    ids=repr,
)  # fmt: skip
def test_another_record_of_a_connection_makes_the_report_invalid(wrong):
    assert read(CONNECTION, {**CONNECTION, **wrong}) is None


LACKING = [[{name: value for name, value in CONNECTION.items() if name != missing}] for missing in CONNECTION]


@pytest.mark.parametrize("connections", ["none", 1, {"start_s": 0}, [[]], *LACKING])
def test_connections_that_are_no_list_of_whole_records_make_the_report_invalid(connections):
    assert read(connections=connections) is None


@pytest.mark.parametrize(
    ("migration", "why"),
    [
        ("forbidden", "forbids migration"), ("no connection ID", "gives no connection ID to migrate with"),
        ("failed", None), ("validated", None), (None, None),
    ],
)  # fmt: skip
def test_a_server_that_makes_migration_impossible_does_not_support_it(migration, why):
    assert client_report.why_unsupported(read(CONNECTION, {**CONNECTION, "migration": migration})) == why


def test_a_report_without_connections_lacks_no_support():
    report = client_report.report_of('{"bytes": 1, "completion_s": 1, "handshake_s": null}')
    assert client_report.why_unsupported(report) is None
