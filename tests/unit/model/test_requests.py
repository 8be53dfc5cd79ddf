"""Requests: what a client asks for on one connection, whether its report is believed, and what metrics make of it."""

import copy
import itertools
import json

import helpers
import pytest
from hypothesis import given, strategies as st

from conformance.model.emulation import request_facts
from conformance.model.errors import UserError
from conformance.model.metrics import request_metrics, table as metrics
from conformance.model.networks.flow_group import Flows, Request
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.support import schema

DOCUMENT = {
    "name": "s", "title": "a test", "timeout_s": 60,
    "links": [helpers.link()],
    "flows": [{"name": "test", "requests": [{"bytes": 1000, "every_s": 0.02, "times": 50}, {"bytes": 250_000}]}],
}  # fmt: skip
REQUESTS = st.builds(
    Request, bytes=st.integers(1, 10**9), pause_s=st.floats(0, 100), times=st.integers(1, 5)
) | st.builds(Request, bytes=st.integers(1, 10**9), every_s=st.floats(0.001, 100), times=st.integers(1, 5))


def group(*requests):
    return Flows(name="test", ends=("left", "right"), requests=requests)


def setting(**flows):
    found = copy.deepcopy(DOCUMENT)
    found["flows"][0].update(flows)
    schema.check("scenario", found, "test")
    made = Scenario.from_json(found, lambda data: schema.check("scenario", data, "test"))
    return made.setting(made.point({}))


def test_requests_are_a_setting_that_is_read_back():
    found = setting()
    assert found.network.flows[0].requests[0] == Request(bytes=1000, every_s=0.02, times=50)
    assert found.network.transfer_bytes(found.network.flows[0]) == 300_000
    assert found.transfer_s == pytest.approx(50 * 0.02 + 0.24)
    read = Setting.from_json(json.loads(json.dumps(found.to_json(), sort_keys=True)))
    assert read == found
    assert "requests" not in json.dumps(setting_of_one_body().to_json())


def setting_of_one_body():
    found = copy.deepcopy(DOCUMENT)
    found["flows"] = [{"name": "test", "bytes": 1000, "start": {"at_s": 1}}]
    made = Scenario.from_json(found)
    return made.setting(made.point({}))


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ([{"bytes": 0}], "/flows/0/requests/0/bytes: a request of 0 bytes asks for nothing; ask for 1 or more"),
        ([{"bytes": 5}, {"bytes": 5, "times": 0}], "/flows/0/requests/1/times: a request that is made 0 times is"),
        ([{"bytes": 5, "pause_s": 1, "every_s": 1}], "/flows/0/requests/0/every_s: the next request comes after"),
        ([{"bytes": 5, "times": 501}] * 2, "/flows/0/requests: a flow has at most 1000 requests"),
        ([{"bytes": 5, "pause_s": -1}], "/flows/0/requests/0/pause_s: -1 is less than the minimum of 0"),
        ([{"bytes": 5, "every_s": 0}], "/flows/0/requests/0/every_s: 0 is less than or equal to the minimum of 0"),
        ([], "/flows/0/requests: [] should be non-empty"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(requests, words):
    assert words in helpers.refusal(setting, requests=requests)


@pytest.mark.parametrize("amount", [{"bytes": 5}, {"seconds": 3}, {"seconds_at_rate": 3}])
def test_requests_stand_in_place_of_an_amount(amount):
    with pytest.raises(UserError, match=r"^/flows/0/requests: requests say how much is sent; leave out bytes"):
        setting(**amount)


@given(st.lists(REQUESTS, min_size=1, max_size=6))
def test_lines_say_all_of_requests(requests):
    found = [Request.parse(line) for line in group(*requests).request_lines]
    assert [one.bytes for one in found] == [one.bytes for one in requests for _ in range(one.times)]
    assert sum(one.waits_s for one in found) == pytest.approx(group(*requests).waits_s, abs=1e-6)


def made(requests, took_s, late_s=0.0):
    """Return the report of a client that does as asked; each body takes `took_s`, each request is `late_s` late."""
    rows, due_s, there_s = [], 0.1, 0.0
    for request in (one for one in requests for _ in range(one.times)):
        made_s = due_s + late_s
        there_s = max(there_s, made_s + took_s)
        rows.append([request.bytes, made_s, made_s + took_s / 2, made_s + took_s])
        due_s = there_s + request.pause_s if request.every_s is None else due_s + request.every_s
    return {"bytes": sum(row[0] for row in rows), "completion_s": there_s, "handshake_s": 0.1, "requests": rows}


@given(st.lists(REQUESTS, min_size=1, max_size=6), st.floats(0, 5), st.floats(0, 0.2))
def test_who_does_as_told_is_believed(requests, took_s, late_s):
    assert request_facts.lie(group(*requests), made(requests, took_s, late_s)) is None


PLAN = (Request(bytes=10, every_s=1, times=2), Request(bytes=20, pause_s=2), Request(bytes=30))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("requests",), None, "reports one body, but 4 were requested: it does not read CC_REQUESTS"),
        (("requests",), [[10, 0, 0, 0]], "reports another number of requests than it was to make: 1, not 4"),
        (("requests", 1), "all", "reports request 2 as 'all'"),
        (("requests", 1), [10, 1.1, 1.2], "reports request 2 as"),
        (("requests", 1, 0), 11, "not a body of 10 bytes and its times"),
        (("requests", 1, 0), True, "not a body of 10 bytes and its times"),
        (("requests", 1, 2), 0.5, "not a body of 10 bytes and its times"),
        (("requests", 0, 1), -0.1, "not a body of 10 bytes and its times"),
        (("requests", 3, 3), 1e9, "request 4 ended at 1000000000.000 s, after all had ended"),
        (("requests", 1, 1), 0.9, "made request 2 at 0.900 s, early: it was due at 1.100"),
        (("requests", 3, 1), 4.0, "made request 4 at 4.000 s, early: it was due at 4.600"),
    ],
)
def test_a_report_that_cannot_be_true_is_named(place, value, words):
    assert words in request_facts.lie(group(*PLAN), helpers.replaced(made(PLAN, 0.5), place, value))


def test_a_late_request_is_no_pace():
    assert "late: it was due at" in request_facts.lie(group(*PLAN), made(PLAN, 0.5, 0.3))


def test_a_client_may_wait_while_a_server_permits_no_further_request():
    plan = (Request(bytes=10, every_s=0.02, times=154), Request(bytes=10, every_s=0.02, times=2))
    report = made(plan, 30.0)
    for row in report["requests"][154:]:
        row[1:] = [14.0, 30.0, 33.1]  # all bodies before are still to come
    assert request_facts.lie(group(*plan), report) is None
    for row in report["requests"][:120]:
        row[2:] = [row[1] + 0.2, row[1] + 0.5]  # 34 are
    assert "made request 155 at 14.000 s, late" in request_facts.lie(group(*plan), report)


def test_one_body_is_not_asked_for_more():
    assert request_facts.lie(group(), {"bytes": 1}) is None


class Measured:
    """A measurement as far as metrics read it."""

    setting, links = None, ()

    def __init__(self, *flows):
        self.flows = [{"group": "test", "judged": True, "requests": requests} for requests in flows]


def rows(*took_s, size=1_000_000):
    """Return records of requests one after the other, which took `took_s`; the client's clock begins at 1 s."""
    ends = list(itertools.accumulate(took_s))
    return request_facts.records(
        [[size, end - took, end - took / 2, end] for end, took in zip(ends, took_s, strict=True)], 1.0
    )


def test_metrics_of_requests():
    found = Measured(rows(1.0, 2.0, 4.0))
    assert metrics.METRICS["request_p50_s"].value(found) == 2
    assert metrics.METRICS["request_p95_s"].value(found) == 4
    assert metrics.METRICS["last_request_s"].value(found) == 4
    assert metrics.METRICS["bulk_goodput_mbps"].value(found) == 2
    both = Measured(rows(1.0), rows(3.0))
    assert metrics.METRICS["last_request_s"].value(both) == 2


@pytest.mark.parametrize("requests", [None, [], "absent"])
def test_what_was_not_seen_has_no_value(requests):
    found = Measured(requests)
    if requests == "absent":
        del found.flows[0]["requests"]
    for name in ("request_p50_s", "last_request_s", "bulk_goodput_mbps"):
        assert metrics.METRICS[name].value(found) is None


def test_a_body_that_never_came_has_no_time():
    unfinished = Measured([*rows(1.0), {"bytes": 5, "start_s": 3.0, "first_byte_s": None, "end_s": None}])
    assert request_metrics.request_s(50)(unfinished, None) == 1
    assert request_metrics.request_s(95)(unfinished, None) is None
    assert request_metrics.last_request_s(unfinished, "test") is None
    assert request_metrics.bulk_goodput_mbps(unfinished, None) == 8
