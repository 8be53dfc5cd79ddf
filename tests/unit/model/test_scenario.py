"""Scenarios: axes, points and what they set, and that older settings are scenarios with the same digests."""

import copy
import functools
import json
import math

import helpers
import pytest
from hypothesis import given, settings, strategies as st

from conformance.catalogue import documents, scenarios
from conformance.model.errors import UserError
from conformance.model.networks.network import Network
from conformance.model.networks.place import Cell, Point, parse_value
from conformance.model.networks.proxy import Proxy
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.support import schema

LINK = helpers.link("bottleneck")
FLOWS = {"name": "test", "count": 2, "bytes": 1000}
DOCUMENT = {
    "name": "s", "title": "a test", "timeout_s": 10, "links": [LINK], "flows": [FLOWS],
    "axes": [
        {"name": "rate", "sets": ["/links/0/data/rate_mbps"], "values": [10, 20]},
        {"name": "flows", "sets": ["/flows/0/count"], "values": [2, 3, 4]},
        {"name": "kind", "sets": ["/links/0/data/queue/kind"], "values": ["bfifo"]},
    ],
    "grids": {"few": [{"rate": 10, "flows": [2, 4]}, {"rate": 20, "flows": 3}]},
}  # fmt: skip
NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9, allow_nan=False)
VALUES = NUMBERS | st.booleans() | st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True)


def document(*change):
    """Return DOCUMENT with another value at a JSON pointer."""
    return helpers.pointed(DOCUMENT, *change) if change else copy.deepcopy(DOCUMENT)


def scenario_of(found):
    schema.check("scenario", found, "test")
    return Scenario.from_json(found)


@functools.cache
def scenario(*changes):
    return scenario_of(document(*changes))


def test_a_point_sets_what_its_axes_name():
    setting = scenario().setting(scenario().parse("flows=4,rate=20"))
    assert (setting.network.flows[0].count, setting.network.links[0].data.rate_mbps) == (4, 20)
    assert setting.cell == Cell(20, 20, 0)
    assert setting.id == "flows=4,kind=bfifo,rate=20"


def test_axes_without_a_value_have_their_first():
    assert scenario().point({}).id == "rate=10,flows=2,kind=bfifo"


def test_an_axis_that_came_later_leaves_points_as_they_were():
    later = {"name": "bytes", "sets": ["/flows/0/bytes"], "values": [1000, 5000], "later": True}
    before, after = scenario(), scenario_of({**document(), "axes": [*DOCUMENT["axes"], later]})
    for point in before.grid("few"):
        assert after.parse(point.id) == point
        assert after.setting(point) == before.setting(point)
        assert after.setting(point).profile_digest == before.setting(point).profile_digest
    assert after.parse("bytes=1000") == before.parse("")
    other = after.parse("bytes=5000")
    assert other.id == "rate=10,flows=2,kind=bfifo,bytes=5000"
    assert after.setting(other).network.flows[0].bytes == 5000
    assert after.values(before.parse("")) == {"rate": 10, "flows": 2, "kind": "bfifo", "bytes": 1000}
    assert len(after.grid("all")) == 2 * len(before.grid("all"))


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(["rate", "flows", "kind"]), VALUES))
def test_the_id_of_a_point_is_exact(given):
    made = scenario()
    point = made.point(given)
    if all(not isinstance(value, str) or parse_value(value) == value for value in given.values()):
        assert made.parse(point.id) == point


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 32), st.sampled_from([10, 20])), min_size=1, max_size=5))
def test_equal_points_make_equal_settings_and_others_do_not(points):
    made = scenario()
    found = {(flows, rate): made.setting(made.point({"flows": flows, "rate": rate})) for flows, rate in points}
    assert len({json.dumps(one.to_json(), sort_keys=True) for one in found.values()}) == len(found)
    assert len({one.profile_digest for one in found.values()}) == len(found)
    for one in found.values():
        read = Setting.from_json(json.loads(json.dumps(one.to_json(), sort_keys=True)))
        assert read == one
        assert hash(read) == hash(one)


def test_grids_select_points():
    made = scenario()
    assert [point.id for point in made.grid("few")] == [
        "rate=10,flows=2,kind=bfifo", "rate=10,flows=4,kind=bfifo", "rate=20,flows=3,kind=bfifo",
    ]  # fmt: skip
    assert len(made.grid("all")) == 6
    assert len({made.setting(point).guest_digest for point in made.grid("all")}) > 1  # a stack's clients are hosts
    assert "no grid 'other'; choose all, few" in helpers.refusal(made.grid, "other")


def test_points_that_share_a_guest_differ_in_values_only():
    made = Scenario.from_json(document("/flows/0", {"name": "test", "sender": "kernel", "count": 2, "bytes": 9}))
    assert len({made.setting(point).guest_digest for point in made.grid("all")}) == 1


@pytest.mark.parametrize(
    ("pointer", "value", "words"),
    [
        ("/axes/0/sets/0", "/links/0/data/rate", "/axes/0/sets/0: it sets nothing: the document has no /links/0"),
        ("/axes/0/sets/0", "/links/3/data", "/axes/0/sets/0: it sets nothing"),
        ("/axes/0/sets/0", "/links/\N{SUPERSCRIPT TWO}/data", "/axes/0/sets/0: it sets nothing"),
        ("/axes/0/sets/0", "rate", "/axes/0/sets/0: 'rate' is not a JSON pointer"),
        ("/axes/1/name", "rate", "/axes/1/name: there are two axes called rate"),
        ("/axes/1/values", [2, 2.0], "/axes/1/values: the list contains a value twice"),
        ("/axes/2/values", ["bfifo", "sfq"], "/axes/2/values/1: /links/0/data/queue/kind: queue 'sfq' is not known"),
        ("/grids/few/0", {"speed": 1}, "/grids/few/0: scenario s has no axis 'speed'; its axes are rate, flows, kind"),
        ("/links/0/data/queue", {"kind": "pfifo"}, "/links/0/data/queue/size: a pfifo needs a size"),
        ("/links/0/data/limiter", "tbf", "/links/0/data/burst_bytes: a tbf needs a burst"),
        ("/links/0/data/burst_bytes", 5000, "/links/0/data/burst_bytes: only a tbf or a policer has a burst"),
        ("/links/0/data/queue/unit", "packets", "/links/0/data/queue/unit: a bfifo has no size in packets; choose"),
        ("/links/0/data/queue/ecn", True, "/links/0/data/queue/ecn: a bfifo cannot be told to mark"),
        ("/links/0/data/queue", {"kind": "cake", "ecn": False}, "/links/0/data/queue/ecn: a cake cannot be told to"),
        ("/links/0/data/delay_packets", 10, "/links/0/data/delay_packets: it would also count"),
        ("/links/0/ends", ["left", "left"], "/links/0/ends: links form a loop"),
        ("/flows/0/ends", ["left", "nowhere"], "/flows/0/ends: no links lead from nowhere to left"),
        ("/flows/0/algorithm", "cubic", "/flows/0/algorithm: the stack's algorithm is the one under test"),
        ("/flows/0/seconds", 3, "/flows/0/seconds: give only one of bytes, seconds and seconds_at_rate"),
        ("/flows/0/judged", False, "/flows: no group is judged"),
        ("/flows/0/count", 33, "/flows/0/count: a stack has at most 32 flows"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(pointer, value, words):
    axes = {} if "axes" in pointer or "grids" in pointer else {"axes": [], "grids": {}}
    assert words in helpers.refusal(Scenario.from_json, {**document(pointer, value), **axes})


def test_a_link_that_no_flow_crosses_is_named():
    lonely = {**LINK, "name": "lonely", "ends": ["right", "far"]}
    found = {**document(), "links": [LINK, lonely], "flows": [{**FLOWS, "ends": ["left", "right"]}]}
    assert helpers.refusal(Scenario.from_json, found).startswith("/links/1: no flow crosses link lonely; leave it out")


def test_flows_that_only_wait_for_others_would_never_begin_to_end():
    waiting = {"name": "test", "sender": "kernel", "algorithm": "cubic"}
    with pytest.raises(UserError, match=r"^/flows: no flow ever ends; give one group bytes, seconds"):
        Network.from_json({"links": [LINK], "flows": [waiting]})
    assert Network.from_json({"links": [LINK], "flows": [{**waiting, "requests": [{"bytes": 1}]}]})


def test_a_change_after_the_clock_has_ended_some_flows_may_meet_those_that_ask_for_more():
    flows = [
        {"name": "test", "seconds": 5},
        {"name": "other", "sender": "kernel", "algorithm": "cubic", "requests": [{"bytes": 9, "pause_s": 30}] * 2},
    ]
    schedule = [{"at_s": 20, "link": LINK["name"], "set": {"delay_ms": 30}}]
    assert Network.from_json({"links": [LINK], "flows": flows, "schedule": schedule}).latest_end_s == math.inf
    with pytest.raises(UserError, match=r"^/schedule/0/at_s: it takes effect at 20 s, but the trial ends by 5"):
        Network.from_json({"links": [LINK], "flows": flows[:1], "schedule": schedule})


@pytest.mark.parametrize(("kind", "size"), [("pfifo", 1_000_000), ("pfifo", 1_234_567), ("bfifo", 2_000_000)])
def test_a_size_that_names_would_round_is_kept_as_it_is(kind, size):
    sized = {"kind": kind, "size": size}
    alike = {**LINK, "data": {**LINK["data"], "queue": sized}, "acks": {**LINK["data"], "queue": sized}}
    found = Scenario.from_json(
        {**document(), "axes": [], "grids": {}, "links": [alike], "flows": [{"name": "test", "seconds_at_rate": 5}]}
    ).setting(Point(()))
    assert found.network is not None
    assert found.network.links[0].data.queue.size == size


@pytest.mark.parametrize(
    "queue", [{"kind": "dualpi2"}, {"kind": "fq_codel", "size": 100}, {"kind": "pie", "size": 100}]
)
def test_a_lone_flow_may_have_a_queue_that_no_profile_can_name(queue):
    alone = {**document("/links/0/data/queue", queue), "flows": [{"name": "test", "seconds_at_rate": 5}]}
    found = scenario_of({**alone, "axes": [], "grids": {}}).setting(Point(()))
    assert (found.profile, found.point) == ("s", Point(()))


def test_a_whole_number_may_be_written_as_a_float():
    def network(number):
        requests = [{"bytes": number(9), "every_s": 1, "times": number(3)}]
        flows = [{"name": "test", "count": number(2), "requests": requests}]
        queue = {"kind": "pfifo", "size": number(30)}
        impairments = {"largest_bytes": number(1400), "reorder": {"every": number(20), "by_packets": number(3)}}
        data = {**LINK["data"], "queue": queue, "impairments": impairments}
        found = {**document(), "axes": [], "grids": {}, "links": [{**LINK, "data": data}], "flows": flows}
        return scenario_of(found).network(Point(()))

    assert repr(network(float)) == repr(network(int))


@pytest.mark.parametrize("value", ["1.0", "a,b", " a"])
def test_a_value_that_an_id_cannot_hold_is_refused(value):
    kinds = {"name": "kind", "sets": ["/links/0/data/queue/kind"], "values": ["fifo", value]}
    kinds["means"] = dict.fromkeys(kinds["values"], "bfifo")
    words = f"/axes/0/values/1: {value!r} cannot stand in an id; give a plain word"
    assert words in helpers.refusal(Scenario.from_json, {**document(), "grids": {}, "axes": [kinds]})


def test_a_name_may_look_like_a_number():
    acks = scenarios.find("ack-policy")
    assert dict(acks.parse("acks=1").values)["acks"] == "1"


def test_two_axes_that_set_one_place_are_refused():
    again = {"name": "again", "sets": ["/flows/0/bytes", "/flows/0/count"], "values": [2, 3]}
    words = "/axes/3/sets/1: an axis before sets it, too; leave it to one of them"
    assert words in helpers.refusal(Scenario.from_json, {**document(), "axes": [*DOCUMENT["axes"], again]})


def test_a_thousand_flows_are_enough():
    many = [{"name": f"g{at}", "sender": "kernel", "count": 501, "bytes": 1} for at in (1, 2)]
    with pytest.raises(UserError, match=r"^/flows: there are more than 1000 flows"):
        Network.from_json({"links": [LINK], "flows": many})


@pytest.mark.parametrize("cell", [Cell(10, 20, 0), Cell(12.5, 0.5, 1.5)])
@pytest.mark.parametrize("name", documents.profile_names())
def test_profiles_are_scenarios_whose_points_are_cells(name, cell):
    made = scenarios.find(name)
    assert made.setting(made.parse(cell.id)) == documents.profile(name, cell)
    assert documents.profile(name, cell).point == cell


@pytest.mark.parametrize("proxy", [None, Proxy(), Proxy(to_client="cubic", back_pressure_bytes=200_000)])
@pytest.mark.parametrize("sized_by", ["path", "segment"])
def test_split_paths_are_scenarios_of_two_links_and_a_box(proxy, sized_by):
    cells = Cell(10, 20, 0), Cell(20, 5, 1)
    before = documents.path("identify", cells, proxy, queue_sized_by=sized_by)
    made = json.loads(scenarios.profiles()["identify"].read_text())
    links = []
    for at, cell in enumerate(cells):
        queue = {"kind": "bfifo", "size": 1, **({"rtt_ms": 2 * cell.one_way_delay_ms} if sized_by == "segment" else {})}
        way = {
            "rate_mbps": cell.bandwidth_mbps, "delay_ms": cell.one_way_delay_ms, "loss_pct": cell.loss_pct,
            "queue": queue,
        }  # fmt: skip
        links.append({"name": f"link{at}", "ends": [f"n{at}", f"n{at + 1}"], "data": way})
    options = {} if proxy is None else {
        name: value for name, value in before.to_json()["proxy"].items() if value is not None and name != "program"
    }  # fmt: skip
    box = {"node": "n1", "does": "split" if proxy else "route", "options": options}
    document = {**made, "links": links, "boxes": [box], "axes": []}
    schema.check("scenario", document, "test")
    assert Scenario.from_json(document).setting(Point(())) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(scenarios.files()))
def test_what_ships_can_be_read_at_every_point(name):
    made = scenarios.find(name)
    assert made.name == name
    assert all(made.setting(point).network for points in made.grids.values() for point in points)


@pytest.mark.parametrize("text", ["flows=many", "flows=2.5", "buffer_bdp=-1", "others=0"])
def test_a_point_whose_value_is_of_another_form_is_refused(text):
    made = scenarios.find("beside-cubic")
    with pytest.raises(UserError, match=r"at this value: /(flows/\d/count|links/0/data/queue/size)"):
        made.setting(made.parse(text))


def test_an_unknown_scenario_is_named():
    assert "there is no scenario 'nowhere'" in helpers.refusal(scenarios.find, "nowhere")


def test_a_file_with_a_mistake_is_named_with_its_place(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**DOCUMENT, "flows": []}))
    assert "mine.json: /flows: " in helpers.refusal(scenarios.find, str(file))
    file.write_text(json.dumps(document("/axes/0/sets/0", "/links/9/data")))
    assert "mine.json: /axes/0/sets/0: it sets nothing" in helpers.refusal(scenarios.find, str(file))
