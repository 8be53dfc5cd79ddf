"""`conformance dev proxy check`: what must hold, what is only reported, and the suite's splitter on real kernels."""

import json
import os

import helpers
import pytest
from helpers import invoke

from conformance.commands import proxy_check
from conformance.commands.proxy_check import END_TO_END, Checked, ProxyRow
from conformance.commands.result import printed
from conformance.commands.status import ExitStatus
from conformance.lab import proxy, proxy_network
from conformance.support import schema

KILLED = {
    "client_noticed_s": 0.0, "client_how": "reset", "server_noticed_s": 0.1, "server_how": "reset", "right": True,
    "goes_on": False,
}  # fmt: skip
DOWN = {"case": "down", "seconds": 5}
RESTARTED = {"served_s": 0.1, "served_meanwhile": True, "client_how": "nothing", "server_how": "nothing"}
BOUNDED = {"case": "undelivered", "most": 3000}


@pytest.mark.parametrize(
    ("asked", "seen", "holds"),
    [
        ({"case": "killed"}, KILLED, True),
        ({"case": "killed"}, {**KILLED, "client_how": "end"}, False),
        ({"case": "killed"}, {**KILLED, "server_how": "end"}, False),
        ({"case": "killed"}, {**KILLED, "server_noticed_s": None}, False),
        ({"case": "killed"}, {**KILLED, "right": False}, False),
        ({"case": "killed", "via": END_TO_END}, {"goes_on": True, "right": True}, True),
        ({"case": "killed", "via": END_TO_END}, {"goes_on": False, "right": True}, False),
        ({"case": "killed", "via": END_TO_END}, {"goes_on": True, "right": False}, False),
        ({"case": "restarted", "via": END_TO_END}, RESTARTED, True),
        ({"case": "restarted", "via": END_TO_END}, {**RESTARTED, "client_how": "reset"}, False),
        ({"case": "restarted", "via": END_TO_END}, {**RESTARTED, "served_meanwhile": False}, False),
        ({"case": "restarted"}, {"served_s": 4.9}, True),
        ({"case": "restarted"}, {"served_s": None}, False),
        (BOUNDED, {"undelivered_bytes": 3000}, True),
        (BOUNDED, {"undelivered_bytes": 3001}, False),
        ({**BOUNDED, "most": 0}, {"undelivered_bytes": 1}, False),
        ({**BOUNDED, "most": None}, {"undelivered_bytes": 10**6}, None),
        (DOWN, {"resumed_s": 6.4, "whole": True}, True),
        (DOWN, {"resumed_s": 6.6, "whole": True}, False),
        (DOWN, {"resumed_s": 1.0, "whole": False}, False),
        (DOWN, {"resumed_s": None, "whole": False}, False),
    ],
)
def test_what_must_be(asked, seen, holds):
    assert proxy_check.judged(asked, seen)[1] is holds


@pytest.mark.parametrize(
    ("bound", "receive", "most"), [(262_144, None, 786_432), (65_536, 16_384, 98_304), (16_384, 65_536, 147_456)]
)
def test_what_can_be_lost_is_the_bound_and_a_receive_buffer_that_the_kernel_doubles(bound, receive, most):
    assert proxy_check.most_undelivered(bound, receive) == most


def row(via="splitter", holds=True, trouble=None):
    return ProxyRow(case="killed", via=via, about="", observed=KILLED, required="x", holds=holds, trouble=trouble)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([row(), row(holds=None)], ExitStatus.DONE),
        ([row(holds=False)], ExitStatus.VIOLATES),
        # A case that also fails end to end is this machine's fault, and a case that could not be tried says nothing.
        ([row(holds=False), row(END_TO_END, False)], ExitStatus.ERROR),
        ([row(holds=None, trouble="no room")], ExitStatus.ERROR),
    ],
)
def test_a_failure_of_the_control_is_no_failure_of_the_proxy(rows, status):
    assert Checked(proxy="splitter", rows=tuple(rows)).exit_status is status


def test_without_namespaces_or_pepsal_one_line_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = invoke("dev", "proxy", "check", "--proxy", "pepsal")
    assert found.exit_code == 2
    monkeypatch.undo()
    monkeypatch.setattr(proxy_network, "allowed", lambda: "no network namespaces here: not permitted")
    found = invoke("dev", "proxy", "check")
    assert found.exit_code == 2


@pytest.mark.slow
def test_the_suites_splitter_outlives_its_links_and_keeps_its_bounds(monkeypatch):
    if why_not := proxy_network.allowed():
        pytest.skip(why_not)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # an ordinary user's, who lacks sbin
    found = proxy_check.compute("splitter", down_s=(1,))
    assert found.left_out is None
    told = printed(found)
    schema.check("proxy-check", told, "test")
    assert json.loads(json.dumps(told)) == told
    assert [one.trouble for one in found.rows] == [None] * len(found.rows)
    by_case = {}
    for one in found.rows:
        by_case.setdefault((one.case, one.via), []).append(one)
    # Either section may be down, with the splitter and end to end: no bytes are lost, and the transfer goes on.
    assert all(one.holds for via in ("splitter", END_TO_END) for one in by_case["down", via])
    assert [one.holds for one in by_case["undelivered", "splitter"]] == [None, True, True, True, True, True]
    figures = {one.about: one.observed["undelivered_bytes"] for one in by_case["undelivered", "splitter"]}
    assert figures["no back-pressure"] > figures["-b 65536"] > figures["-b 16384"] > 0
    # The bound and the receive buffer count separately if they differ.
    assert figures["-b 65536"] > figures["-b 65536 -R 16384"] > 65_536 > figures["-b 16384"]
    assert figures["-b 16384 -R 65536"] > 65_536
    (control,) = by_case["undelivered", END_TO_END]
    assert control.observed["undelivered_bytes"] == 0 < control.observed["acked_bytes"]
    (unharmed,) = by_case["killed", END_TO_END]
    assert unharmed.holds and unharmed.observed["client_noticed_s"] is unharmed.observed["server_noticed_s"] is None
    (still_served,) = by_case["restarted", END_TO_END]
    assert still_served.holds and still_served.observed["served_meanwhile"]
    (restarted,) = by_case["restarted", "splitter"]
    assert restarted.holds and not restarted.observed["served_meanwhile"]
    (killed,) = by_case["killed", "splitter"]
    # The splitter was killed by SIGKILL, and still neither end takes that for the end of the stream.
    assert killed.holds and killed.observed["client_how"] == killed.observed["server_how"] == "reset"
    assert found.exit_status is ExitStatus.DONE


def test_without_a_pepsal_the_default_says_that_none_was_tried(monkeypatch, tmp_path):
    monkeypatch.setattr(proxy_network, "allowed", lambda: None)
    monkeypatch.setattr(proxy_check, "_row", lambda asked: row(asked["via"]))
    program = proxy.program(proxy.choose("splitter"))
    monkeypatch.setattr(proxy, "program", lambda chosen: program)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = invoke("dev", "proxy", "check")
    assert found.exit_code == 0, found.output
    assert "not tried: pepsal is not on PATH" in found.output
    told = proxy_check.compute()
    assert {one.via for one in told.rows} == {"splitter", END_TO_END}
    assert (told.proxy, told.left_out[:21]) == ("splitter", "pepsal is not on PATH")


@pytest.mark.slow
def test_a_pepsal_that_is_on_path_is_tried_beside_the_suites_own(monkeypatch, tmp_path):
    """The stand-in of that name is the suite's splitter, which accepts the one option that pepsal is given."""
    if why_not := proxy_network.allowed():
        pytest.skip(why_not)
    stand_in = tmp_path / "pepsal"
    splitter = proxy.program(proxy.choose("splitter"))
    helpers.program(stand_in, f'[ "$*" = "-p {proxy_network.PORT}" ] || exit 9\nexec {splitter} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = proxy_check.compute(down_s=())
    assert (found.proxy, found.left_out) == ("splitter, pepsal", None)
    assert [one.trouble for one in found.rows] == [None] * len(found.rows)
    its = {one.case: one for one in found.rows if one.via == "pepsal"}
    assert its["killed"].holds and its["restarted"].holds
    # It has no back-pressure: its losses are reported, but no bound holds for them.
    assert its["undelivered"].holds is None and its["undelivered"].observed["undelivered_bytes"] > 0
    assert [one.about for one in found.rows if one.via == "pepsal"] == ["", "", "no back-pressure"]
