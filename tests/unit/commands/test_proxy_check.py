"""`conformance proxy check`: what must be, what is told, and the suite's own splitter's failures on real kernels."""

import json

import pytest
from click.testing import CliRunner

from conformance.cli import main
from conformance.commands import proxy_check
from conformance.commands.proxy_check import END_TO_END, Checked, Row
from conformance.commands.status import ExitStatus
from conformance.lab import proxy_network
from conformance.support import schema

KILLED = {
    "client_noticed_s": 0.0, "client_how": "reset", "server_noticed_s": 0.1, "server_how": "reset", "right": True,
}  # fmt: skip
DOWN = {"case": "down", "seconds": 5}


@pytest.mark.parametrize(
    ("asked", "seen", "holds"),
    [
        ({"case": "killed"}, KILLED, True),
        ({"case": "killed"}, {**KILLED, "client_how": "end"}, False),
        ({"case": "killed"}, {**KILLED, "server_noticed_s": None}, False),
        ({"case": "killed"}, {**KILLED, "right": False}, False),
        ({"case": "restarted"}, {"served_s": 4.9}, True),
        ({"case": "restarted"}, {"served_s": None}, False),
        ({"case": "undelivered", "bound": 1000}, {"undelivered_bytes": 3000}, True),
        ({"case": "undelivered", "bound": 1000}, {"undelivered_bytes": 3001}, False),
        ({"case": "undelivered", "bound": 0}, {"undelivered_bytes": 1}, False),
        ({"case": "undelivered", "bound": None}, {"undelivered_bytes": 10**6}, None),
        (DOWN, {"resumed_s": 6.4, "whole": True}, True),
        (DOWN, {"resumed_s": 6.6, "whole": True}, False),
        (DOWN, {"resumed_s": 1.0, "whole": False}, False),
        (DOWN, {"resumed_s": None, "whole": False}, False),
    ],
)
def test_what_must_be(asked, seen, holds):
    assert proxy_check.judged(asked, seen)[1] is holds


def row(via="splitter", holds=True, trouble=None):
    return Row(case="killed", via=via, about="", seen=KILLED, asked="x", holds=holds, trouble=trouble)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([row(), row(holds=None)], ExitStatus.DONE),
        ([row(holds=False)], ExitStatus.VIOLATES),
        # What fails end to end, too, is this machine's fault; and what could not be tried says nothing.
        ([row(holds=False), row(END_TO_END, False)], ExitStatus.ERROR),
        ([row(holds=None, trouble="no room")], ExitStatus.ERROR),
    ],
)
def test_a_failure_of_the_control_is_no_failure_of_the_proxy(rows, status):
    assert Checked(proxy="splitter", rows=tuple(rows)).exit_status is status


def test_without_namespaces_or_pepsal_one_line_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = CliRunner().invoke(main, ["proxy", "check", "--proxy", "pepsal"])
    assert found.exit_code == 2
    monkeypatch.undo()
    monkeypatch.setattr(proxy_network, "allowed", lambda: "no network namespaces here: not permitted")
    found = CliRunner().invoke(main, ["proxy", "check"])
    assert found.exit_code == 2


@pytest.mark.slow
def test_the_suites_splitter_outlives_its_links_and_keeps_its_bounds(monkeypatch):
    if why_not := proxy_network.allowed():
        pytest.skip(why_not)
    found = proxy_check.compute("splitter", down_s=(1,))
    told = found.to_json()
    schema.check("proxy-check", told, "test")
    assert json.loads(json.dumps(told)) == told
    assert [one.trouble for one in found.rows] == [None] * len(found.rows)
    by_case = {}
    for one in found.rows:
        by_case.setdefault((one.case, one.via), []).append(one)
    # Both sections with each, both as end to end: nothing is lost, and it goes on.
    assert all(one.holds for via in ("splitter", END_TO_END) for one in by_case["down", via])
    assert [one.holds for one in by_case["undelivered", "splitter"]] == [None, True, True, True]
    figures = [one.seen["undelivered_bytes"] for one in by_case["undelivered", "splitter"]]
    assert figures[0] > figures[2] > figures[3] > 0
    (control,) = by_case["undelivered", END_TO_END]
    assert control.seen["undelivered_bytes"] == 0 < control.seen["acked_bytes"]
    (restarted,) = by_case["restarted", "splitter"]
    assert restarted.holds and not restarted.seen["served_meanwhile"]
    (killed,) = by_case["killed", "splitter"]
    # It was killed by SIGKILL, and still no end takes that for the stream's own.
    assert killed.holds and killed.seen["client_how"] == killed.seen["server_how"] == "reset"
    assert found.exit_status is ExitStatus.DONE
