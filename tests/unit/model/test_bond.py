"""A bond in a scenario's document: the path that it makes, and what is refused."""

import dataclasses
import json

import helpers
import pytest
from hypothesis import given, strategies as st

from conformance.catalogue import scenarios
from conformance.model.emulation import bonded
from conformance.model.networks.bond import Bond
from conformance.model.networks.network import Network

DOCUMENT = json.loads(scenarios.files()["bond-options"].read_text())


def network(document=DOCUMENT):
    made = scenarios.of_document({**document, "axes": [], "grids": {}})
    return made.network(made.point({}))


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("/boxes/0/options/split_pct", [90, 20], "/boxes/0/options/split_pct: 90 and 20 sum to 110; give percentages"),
        ("/boxes/0/options/split_pct", [100], "/boxes/0/options/split_pct: it does not give the shares of two links"),
        ("/boxes/0/options/split_pct", 5, "/boxes/0/options/split_pct: it does not give the shares of two links"),
        ("/boxes/0/options/split_pct", "evenly", "/boxes/0/options/split_pct: 'evenly' is not a split"),
        ("/boxes/0/options/batch", 0, "/boxes/0/options/batch: a batch cannot have 0 packets"),
        ("/boxes/0/options/batch", 1, "/boxes/0/options/batch: of 1 packets, link two would get none"),
        ("/boxes/0/options/reorder_ms", -1, "/boxes/0/options/reorder_ms: -1 ms is not valid"),
        ("/boxes/0/options/cost_us", 1, "/boxes/0/options/cost_us: a bond has no such option; choose one of batch"),
        ("/boxes/0/links", ["one", "two", "three"], "/boxes/0/links: a bond has two links, not 3"),
        ("/boxes/0/links", ["one", "one"], "/boxes/0/links/1: link one is listed twice"),
        ("/boxes/0/links", ["one", "three"], "/boxes/0/links/1: there is no link three"),
        ("/boxes/0/ends", ["phone"], "/boxes/0/ends: a bond has two ends, not 1"),
        ("/boxes/0/ends/0", "near-one", "/boxes/0/ends/0: a link ends at near-one, too"),
        ("/boxes/0/node", "phone", "/boxes/0/node: a bond joins two nodes"),
        ("/links/1/ends/1", "far-one", "/boxes/0/links/1: links one and two meet at far-one"),
        ("/links/1/data", {"delay_ms": 5}, "/boxes/0/links/1: link two has no rate"),
        ("/flows/0/ends", ["site", "phone"], "/flows/0/ends: no links lead from phone to site"),
        ("/offload", True, "/offload: a bond deals single packets"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(where, value, words):
    assert helpers.refusal(network, helpers.pointed(DOCUMENT, where, value)).startswith(words)


def test_a_bonded_flow_crosses_both_links_and_its_path_is_the_shorter_one():
    document = helpers.pointed(DOCUMENT, "/links/0/data/delay_ms", 30)
    document["links"][0]["acks"] = {"delay_ms": 3}
    found = network(document)
    (group,) = found.flows
    assert [link.name for link in found.route(group)] == ["one", "two"]
    assert found.rate_mbps(group) == 40
    # Data take the second link, which is shorter, acknowledgements the first; both sides' cost is added.
    assert found.rtt_s(group) == pytest.approx(0.010 + 0.002 + 0.003)
    # A round trip of that length is not too short to be believed, either.
    assert found.least_rtt_ms(group, until_s=10) == pytest.approx(15)


def test_duplicates_carry_what_one_link_does_and_lose_what_both_lose():
    document = helpers.pointed(DOCUMENT, "/boxes/0/options/duplicate", True)
    for link in document["links"]:
        link["data"]["loss_pct"] = 5
    found = network(document)
    (group,) = found.flows
    assert found.rate_mbps(group) == 20
    assert found.loss_pct(group) == pytest.approx(0.25)
    made = scenarios.of_document({**document, "axes": [], "grids": {}})
    setting = made.setting(made.point({}))
    assert (setting.cell.bandwidth_mbps, setting.cell.loss_pct) == (20, 0.25)


@pytest.mark.parametrize(
    ("rates", "split_pct", "bound_mbps"),
    [
        ((20, 20), [50, 50], 40), ((20, 20), [90, 10], 22.2), ((26.7, 13.3), [50, 50], 26.6), ((30, 10), [50, 50], 20),
        ((33.3, 6.7), [50, 50], 13.4), ((33.3, 6.7), "as_rates", 40), ((20, 20), [100, 0], 20),
    ],
)  # fmt: skip
def test_the_bound_is_the_method_pages(rates, split_pct, bound_mbps):
    document = helpers.pointed(DOCUMENT, "/boxes/0/options/split_pct", split_pct)
    for link, rate in zip(document["links"], rates, strict=True):
        link["data"]["rate_mbps"] = rate
    found = network(document)
    assert found.bond.bound_mbps(found.links) == pytest.approx(bound_mbps, rel=0.02)


def test_a_matched_split_of_100_is_that_of_the_method_page():
    for rates, packets in (((30, 10), (75, 25)), ((32, 8), (80, 20)), ((100 / 3, 20 / 3), (83, 17))):
        document = helpers.pointed(DOCUMENT, "/boxes/0/options/split_pct", "as_rates")
        for link, rate in zip(document["links"], rates, strict=True):
            link["data"]["rate_mbps"] = rate
        found = network(document)
        assert found.bond.packets(found.links) == packets


@pytest.mark.slow
@given(st.integers(1, 1000), st.integers(0, 100), st.integers(0, 5000))
def test_what_is_dealt_is_what_turns_come_to(batch, percent, packets):
    bond = Bond(ends=("a", "b"), links=("one", "two"), batch=batch, split_pct=(percent, 100 - percent))
    links = network().links
    first = bond.packets(links)[0]
    one = sum(count % batch < first for count in range(packets))
    assert bonded.dealt(bond, links, packets) == (one, packets - one)


def test_a_bond_survives_json_and_what_is_usual_is_left_out():
    found = network()
    again = Network.from_json(json.loads(json.dumps(found.to_json())))
    assert again == found
    plain = dataclasses.replace(found.bond, cost_ms=0)
    assert plain.to_json() == {"ends": ["phone", "site"], "links": ["one", "two"]}


def test_points_of_a_bond_share_guests_and_have_digests_of_their_own():
    made = scenarios.of_document(DOCUMENT)
    one, other = (made.setting(made.point({"batch": batch})) for batch in (100, 300))
    assert one.guest_digest == other.guest_digest
    assert one.profile_digest != other.profile_digest


def test_an_axis_puts_something_of_its_own_at_each_place():
    made = scenarios.of_document(DOCUMENT)
    found = made.network(made.point({"rates": "3:1", "delays": "16.7+3.3"}))
    assert [(link.data.rate_mbps, link.data.delay_ms) for link in found.links] == [(30, 16.7), (10, 3.3)]
    assert [link.data.loss_pct for link in made.network(made.point({"loss_pct": 0.08})).links] == [0.08, 0.08]


# --- facts


def seen(split=(), merge=(), **interfaces):
    """Return what is seen of a bond that distributed 250 packets of 100 bytes, all of which arrived."""
    one, two = 150, 100
    counts = {
        "split:hosts": 250, "split:one": one, "split:two": two, "merge:one": one, "merge:two": two, "merge:hosts": 250,
    }  # fmt: skip
    counters = {
        f"b-{name}": {f"{way}_{unit}": count * factor for way in ("rx", "tx") for unit, factor in
                      (("packets", 1), ("bytes", 100))}
        for name, count in {**counts, **{key.replace("_", ":"): value for key, value in interfaces.items()}}.items()
    }  # fmt: skip
    sent = {"came": 250, "one": one, "two": two}
    got = {"one": one, "two": two, "left": 250}
    rest = {
        "copies": 0, "late": 0, "beyond": 0, "waiting": 0, "held": 40, "expiries": 0, "reordered": 5, "missing": 0,
    }  # fmt: skip
    common = {"other": 0, "dropped": 0, "stood_ns": 1000}
    return {
        "split": {**sent, **{f"{name}_bytes": 100 * n for name, n in sent.items()}, **common, **dict(split)},
        "merge": {**got, **{f"{name}_bytes": 100 * n for name, n in got.items()}, **common, **rest, **dict(merge)},
        "interfaces": counters,
        "qdiscs": [{"kind": "netem"}] * 3,
    }


def problems(facts, **options):
    found = network()
    bond = dataclasses.replace(found.bond, **options)
    return list(bonded.problems(bond, found.links, facts))


def test_a_bond_that_did_as_asked_has_no_problems():
    assert problems(seen()) == []


@pytest.mark.parametrize(
    ("facts", "options", "words"),
    [
        (seen(split_one=149), {}, "b-split:one counted 149 packets, but the bond 150"),
        (seen(merge_hosts=251), {}, "b-merge:hosts counted 251 packets, but the bond 250"),
        (seen(split={"dropped": 3}), {}, "the bond's split had no room for 3 packets"),
        (seen(merge={"stood_ns": 5_000_000}), {}, "a packet waited 5 ms before the bond's merge read it"),
        (seen(), {"split_pct": (90, 10)}, "the bond dealt 150 and 100 packets to its links instead of 230 and 20"),
        (seen(), {"cost_ms": 0}, "3 sides of the bond delay packets, although a cost of 0 ms was requested"),
        (seen(merge={"late": 2}), {}, "250 packets reached the bond's far side, which accounts for 252"),
        (seen(merge={"copies": 2, "waiting": -2}), {}, "2 packets arrived twice, but none was sent twice"),
        (seen(), {"reorder_ms": 0}, "40 packets were held, and none should have been"),
    ],
)
def test_what_a_bond_was_not_asked_for_is_named(facts, options, words):
    assert words in problems(facts, **options)


def test_where_zones_judge_each_link_gets_as_much_as_it_carries_and_only_order_is_lost():
    made = scenarios.find("bonded")
    networks = {point: made.setting(point).network for point in made.grid(scenarios.ZONE)}
    assert len(networks) == 6
    for point, found in networks.items():
        (group,) = found.flows
        assert found.bound_mbps(group) == found.rate_mbps(group) == 40
        assert found.loss_pct(group) == 0
        assert found.bond.reorder_ms == (200 if point["reordering"] == "on" else 0)
        assert found.bond.batch == point["batch"]
