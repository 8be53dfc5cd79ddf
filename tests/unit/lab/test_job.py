"""What a guest is told about flows that share a network."""

import collections
import dataclasses
import itertools
import types

import helpers
import pytest
from hypothesis import given, strategies as st

from conformance.catalogue import documents, scenarios, studies
from conformance.guest import kernel_flows, protocol, splitting, wire
from conformance.guest.network_job import BondJob, GroupJob, LinkJob, NetworkJob, SplitterJob
from conformance.lab import job, topology
from conformance.model.errors import UserError
from conformance.model.networks.flow_group import Flows, Start
from conformance.model.networks.place import Cell
from conformance.model.networks.scenario import Scenario


def setting(name="two-links", text=""):
    found = scenarios.find(name)
    return found.setting(found.parse(text))


def trial(seed=1, **about):
    return dataclasses.replace(helpers.trial(seed), setting=setting(**about))


@given(st.integers(1, 50), st.integers(0, 2**31), st.floats(0, 10), st.floats(0, 10), st.floats(0, 10))
def test_flows_start_in_order_and_no_later_than_their_spread(count, seed, at_s, every_s, spread_s):
    start = Start(at_s=at_s, every_s=every_s, spread_s=spread_s)
    group = Flows(name="test", ends=("left", "right"), count=count, start=start)
    found = job.starts_ns(group, seed)
    assert found == job.starts_ns(group, seed)
    for number, start_ns in enumerate(found):
        late_s = start_ns / 1e9 - at_s - number * every_s
        assert -1e-6 <= late_s <= spread_s + 1e-6


def test_seeds_and_groups_draw_other_starts():
    group = Flows(name="test", ends=("left", "right"), count=3, start=Start(spread_s=1))
    other = dataclasses.replace(group, name="other")
    assert len({tuple(job.starts_ns(one, seed)) for one in (group, other) for seed in (1, 2)}) == 4


def test_a_cell_survives_the_wire():
    cell = job.cell_of([trial(1), trial(2)])
    assert protocol.parse_cell(wire.dumps(cell)) == cell
    assert [one.seed for one in cell.trials] == [1, 2]
    through, near, far = cell.trials[0].groups
    assert near.algorithms == ("cubic",)
    # A stack's flow that ends at a given time gets a body of what its slowest link carries until then.
    assert {flow.bytes for flow in through.flows} == {20 * 20_000_000 // 8}
    assert all(flow.stop_ns == flow.start_ns + 20 * 10**9 for group in (through, near, far) for flow in group.flows)


def test_the_suites_names_of_algorithms_are_translated_to_the_kernels():
    made = scenarios.find("beside-cubic")
    for name, known in (("bbrv3", ("bbr",)), ("bbrv2", ("bbr2", "bbr")), ("vegas", ("vegas",))):
        own = dataclasses.replace(helpers.trial(), setting=made.setting(made.point({"other_algorithm": name})))
        assert job.cell_of([own]).trials[0].groups[1].algorithms == known


def test_of_a_fast_link_not_every_packet_is_watched():
    slow, fast = (job.cell_of([trial(name=name)]).trials[0].watch_masks for name in ("ten-flows", "hundred-flows"))
    assert slow == (None, 0)
    assert fast == (None, 31)


ASKED = {"name": "test", "requests": [{"bytes": 5000, "every_s": 0.02, "times": 2}, {"bytes": 9000, "pause_s": 1}]}


def asking(*flows):
    """Return the setting of groups of flows on one link."""
    link = {"name": "link", "ends": ["left", "right"], "acks": {},
            "data": {"rate_mbps": 10, "queue": {"kind": "bfifo", "size": 9000, "unit": "bytes"}}}  # fmt: skip
    made = Scenario.from_json({"name": "s", "title": "t", "timeout_s": 60, "links": [link], "flows": flows or [ASKED]})
    return made.setting(made.point({}))


def test_a_guest_is_told_of_each_request():
    own = dataclasses.replace(helpers.trial(), setting=asking())
    cell = job.cell_of([own])
    assert protocol.parse_cell(wire.dumps(cell)) == cell
    (group,) = cell.trials[0].groups
    assert group.requests == ("5000 every 0.020000000",) * 2 + ("9000 pause 1.000000000",)
    # The server gets the size of the largest body as CC_BYTES, and there is a file of that size.
    assert [flow.bytes for flow in group.flows] == [9000]


def test_linux_tcp_is_asked_by_the_suites_own_program():
    asked, one = (asking(flows).network.flows[0] for flows in (ASKED, {"name": "test", "bytes": 5}))
    assert [job.is_by_stack(group, "linux-tcp") for group in (asked, one)] == [False, True]
    assert [job.is_by_stack(group, "linux-tcp-h2") for group in (asked, one)] == [True, True]
    trials = [dataclasses.replace(helpers.trial(), setting=asking(flows)) for flows in (ASKED, {**ASKED, "count": 2})]
    assert [job.cell_of([own]).trials[0].groups[0].algorithms for own in trials] == [("cubic",)] * 2
    # The guest of one setting has no hosts for the clients of the other.
    assert asking().guest_digest != asking({"name": "test", "bytes": 5}).guest_digest


def every_setting():
    """Yield a setting at each point of each scenario, and under each profile at two cells."""
    for name in scenarios.names():
        made = scenarios.find(name)
        yield from (made.setting(point) for point in made.grid("all"))
    for name, cell in itertools.product(documents.profile_names(), (Cell(10, 20, 0), Cell(50, 100, 1))):
        yield documents.profile(name, cell)


def test_settings_that_may_share_a_guest_have_one_job():
    jobs = collections.defaultdict(set)
    for made in every_setting():
        network, trace = job.network_job_of(made, "quinn"), job._usual_trace(made)
        # All flows of a group of the kernel's have one host at each end (topologies/network.py).
        groups = tuple(dataclasses.replace(g, clients=g.clients if g.stack else 1) for g in network.groups)
        jobs[made.guest_digest].add((dataclasses.replace(network, groups=groups), made.sysctls, made.offload,
                                     made.timeout_s, trace))  # fmt: skip
    assert {len(found) for found in jobs.values()} == {1}


def test_profiles_that_differ_in_sizes_and_queues_share_a_guest():
    startup, sawtooth, competing = (
        documents.profile(name, Cell(10, 100, 0)) for name in ("startup", "sawtooth", "competing")
    )
    assert startup.queue != sawtooth.queue and startup.transfer_s != sawtooth.transfer_s
    assert startup.guest_digest == sawtooth.guest_digest != competing.guest_digest


@pytest.mark.parametrize(
    "entries",
    [
        [{"set": {"rate_mbps": 5}}],
        [{"set": {"rate_mbps": 5}}, {"set": {"rate_mbps": 10}, "at_s": {"state": "probe_up"}}],
        [{"set": {"delay_ms": 30}, "direction": "both", "for_s": 1}],
        [{"set": {"loss_pct": 1}}, {"set": {"rate_mbps": 5}, "at_s": 3}],
        [{"set": {"loss_pct": 1}, "direction": "backward"}, {"set": {"rate_mbps": 5}, "at_s": 3}],
        [{"trace": {"file": "f", "digest": "d", "rates_mbps": [10, 5], "step_s": 1}}],
    ],
)
def test_a_first_pass_prepares_the_changes_of_the_second_and_makes_none(entries):
    """The program that makes them has to start in both: as it starts, the kernel draws random numbers."""
    common = {"at_s": {"state": "first_loss", "plus_s": 1}, "link": "bottleneck", "direction": "forward"}
    way = {"rate_mbps": 10, "delay_ms": 20, "queue": {"kind": "bfifo", "size": 1}}
    scenario = Scenario.from_json(
        {
            "name": "s", "title": "a test", "timeout_s": 20, "flows": [{"name": "test", "seconds": 10}],
            "links": [{"name": "bottleneck", "ends": ["left", "right"], "data": way, "acks": {"delay_ms": 20}}],
            "schedule": [{**common, **entry} for entry in entries],
        }
    )  # fmt: skip
    first = helpers.trial_at(scenario.setting(scenario.point({})))
    network = first.setting.network.at(dict.fromkeys(("first_loss", "probe_up"), (2.0, 0.04)))
    second = dataclasses.replace(first, setting=dataclasses.replace(first.setting, network=network))
    prepared, made = (job.cell_of([each]).trials[0].changes for each in (first, second))
    places = [list(dict.fromkeys((change.link, change.way) for change in each)) for each in (prepared, made)]
    assert places[0] == places[1] != []
    in_time = [change for change in prepared if change.at_ns <= 20e9]
    assert all(change.at_ns > 3600e9 for change in prepared if change not in in_time)
    assert {change.at_ns for change in in_time} == {3 * 10**9 for entry in entries if entry.get("at_s") == 3}


def test_a_trace_changes_nothing_after_the_flows_have_ended():
    trace = {"file": "f", "digest": "d", "rates_mbps": [10, 5], "step_s": 1}
    way = {"rate_mbps": 10, "delay_ms": 20, "queue": {"kind": "bfifo", "size": 1}}
    scenario = Scenario.from_json(
        {
            "name": "s", "title": "a test", "timeout_s": 3600, "flows": [{"name": "test", "seconds": 5}],
            "links": [{"name": "bottleneck", "ends": ["left", "right"], "data": way, "acks": {"delay_ms": 20}}],
            "schedule": [{"at_s": 0, "link": "bottleneck", "direction": "forward", "trace": trace}],
        }
    )  # fmt: skip
    made = job.cell_of([helpers.trial_at(scenario.setting(scenario.point({})))]).trials[0].changes
    assert [change.at_ns // 10**9 for change in made] == [1, 2, 3, 4, 5]


def stack(name, contract, client=None):
    about = types.SimpleNamespace(name=name, contract=contract)
    return types.SimpleNamespace(name=name, manifest=about, client=client)


@pytest.mark.parametrize(
    ("adapter", "why"),
    [
        (stack("new", 2), None),
        (stack("new", 2, stack("h3-client", 2)), None),
        (stack("linux-tcp", 1), None),
        (
            stack("old", 1, stack("h3-client", 2)),
            "old serves only one body on a connection (contract 1 in its manifest)",
        ),
        (stack("new", 2, stack("mine", 1)), "mine asks for only one body on a connection (contract 1 in its manifest)"),
    ],
)
def test_a_stack_of_one_body_is_not_asked_for_more(adapter, why):
    assert job.why_not(asking(), adapter) == why
    assert job.why_not(asking({"name": "test", "bytes": 5}), adapter) is None
    kernels = {**ASKED, "name": "other", "sender": "kernel"}
    assert job.why_not(asking({"name": "test", "bytes": 5}, kernels), adapter) is None


def test_memory_grows_with_queues_and_flows():
    small, large = (setting("hundred-flows", f"buffer_bdp={size}") for size in (1, 100))
    assert job.memory_mb(small) == job.LEAST_MB
    assert job.memory_mb(large) >= 2 * job.LEAST_MB
    job.check_memory(small, "linux-tcp", 512)
    with pytest.raises(UserError, match=r"^/flows: 100 flows and their queues need a guest of \d+ MB, but only 600 MB"):
        job.check_memory(large, "linux-tcp", 600)


def test_memory_holds_the_bodies_of_stacks_in_user_space():
    study = studies.find("dual-connectivity")
    long, short = (
        next(study.setting(point) for point in study.points["full"] if point.scenario == name)
        for name in ("beside", "single")
    )
    # The long setting has bodies of 150, 75 and 75 MB, each of which is held three times; the short one has 20 MB.
    assert job.memory_mb(long, "aioquic") == 1280
    assert job.memory_mb(short, "aioquic") == job.LEAST_MB
    assert {job.memory_mb(long, stack) for stack in ("linux-tcp", "linux-tcp-h2")} == {job.LEAST_MB}
    with pytest.raises(UserError, match=r"^/flows: 3 flows and their queues need a guest of 1280 MB, but only 600 MB"):
        job.check_memory(long, "aioquic", 600)


def test_of_large_bodies_no_guest_has_more_than_two_gigabytes():
    large = setting("two-links")
    groups = [group for group in large.network.flows if group.is_stack]
    flows = tuple(dataclasses.replace(group, seconds=None, bytes=10**10) for group in groups)
    network = dataclasses.replace(large.network, flows=flows)
    needed = job.memory_mb(dataclasses.replace(large, network=network), "quinn")
    assert 2048 < needed <= 2560


def flows(name, ends, **about):
    """Return a group of flows in a guest's network."""
    usual = {"stack": True, "clients": 1, "ports": 2, "ecn": None, "host_queue": None, "splitters": ()}
    return GroupJob(name=name, ends=ends, **(usual | about))


def network_of(links, groups, **about):
    """Return a guest's network with links between the ends given."""
    links = tuple(LinkJob(name="-".join(ends), ends=tuple(ends), impaired=(False, False)) for ends in links)
    usual = {
        "detailed": False,
        "own_ports": False,
        "flows": "",
        "watch": "",
        "change": "",
        "hop": "",
        "bond": None,
        "splitters": (),
    }
    return NetworkJob(links=links, groups=groups, **(usual | about))


def test_a_bridge_knows_the_way_to_every_other():
    network = network_of(("ab", "bc", "bd", "de"), (flows("g", ("a", "e"), clients=3),))
    place = topology.place(network)
    ways = topology.builder()["_ways"]("n-b", place.directions)
    assert ways == {"n-a": "data0", "n-c": "acks1", "n-d": "acks2", "n-e": "acks2"}
    assert len({host.address for host in place.hosts}) == len({host.mac for host in place.hosts}) == 4


def test_no_node_of_one_flow_over_one_link_has_a_bridge_of_its_own():
    network = network_of(["ab"], (flows("g", ("a", "b")),))
    place = topology.place(network)
    assert place.chain
    ((data, acks),) = place.directions
    assert data.node == acks.node
    # What leaves the link for a host leaves it by the port that the host is connected to.
    assert (place.receivers[0][0].port, place.senders[0].port) == (data, acks)
    two = (flows("g", ("a", "b"), clients=2),)
    for bridged in (network_of(["ab"], two), network_of(["ab"], network.groups, own_ports=True)):
        assert not topology.place(bridged).chain


def test_a_bond_survives_the_wire_and_tells_the_program_its_turns():
    own = dataclasses.replace(helpers.trial(), setting=setting("bond-options", "split=9:1,batch=10"))
    cell = job.cell_of([own])
    assert protocol.parse_cell(wire.dumps(cell)) == cell
    bond = cell.trials[0].bond
    assert (bond.batch, bond.first, bond.copies, bond.timer_ns, bond.cost_ns) == (10, 9, False, 200_000_000, 1_000_000)
    assert bond.cost_tc == ("qdisc add dev {dev} root handle 1: netem limit 1000000 delay 1000us",)
    assert job.cell_of([trial()]).trials[0].bond is None


def test_bridges_of_a_bond_send_data_by_their_link_and_acknowledgements_by_the_first_one():
    bond = BondJob(ends=("phone", "site"), links=(0, 1), program="bond")
    ends = (("near-one", "far-one"), ("near-two", "far-two"))
    network = network_of(ends, (flows("g", bond.ends),), bond=bond)
    found = topology.place(network).bond
    phone, site = "n-phone", "n-site"
    assert [found.ways[f"n-{node}", phone] for node in ("site", "far-one", "near-one", "far-two", "near-two")] == [
        "bond", "data0", "bond", "data1", "bond",
    ]  # fmt: skip
    assert [found.ways[f"n-{node}", site] for node in ("phone", "near-one", "far-one")] == ["bond", "acks0", "bond"]
    assert {(gate.node, gate.name) for gate in found.gates} == {
        (site, "bond"), ("n-near-one", "bond"), ("n-near-two", "bond"),
    }  # fmt: skip


def test_a_splitter_survives_the_wire_and_is_told_algorithms_by_the_kernels_names():
    own = dataclasses.replace(helpers.trial(), setting=setting("three-sections", "wan=bbrv1"))
    cell = job.cell_of([own])
    assert protocol.parse_cell(wire.dumps(cell)) == cell
    assert cell.trials[0].splitters == (("-b", "131072"), ("-c", "bbr", "-b", "131072"))
    assert (cell.trials[0].captured_bytes, cell.trials[0].headers) == (job.CAPTURED_BYTES, True)


def test_each_node_on_a_split_way_knows_the_next_one_and_nobody_else_does():
    groups = (
        flows("g", ("a", "d"), splitters=(1, 0)),
        flows("h", ("b", "d"), stack=False, splitters=(0,)),
        flows("i", ("c", "d"), stack=False),
    )
    splitters = tuple(SplitterJob(node=node, program="splitter", ours=True, algorithms=()) for node in "cb")
    network = network_of(("ab", "bc", "cd"), groups, splitters=splitters)
    place = topology.place(network)
    far, near = place.splitters
    told = [
        {(own.node, own.interface): (address, mac) for own, address, mac in splitting.hops(
            group, place.splitters, place.receivers[at][0], place.senders[at])}
        for at, group in enumerate(network.groups)
    ]  # fmt: skip
    client, server = place.receivers[0][0], place.senders[0]
    assert told[0] == {
        (client.node, "up"): (server.address, near.near.mac),
        (near.node, "far"): (server.address, far.near.mac),
        (far.node, "far"): (server.address, server.mac),
        (near.node, "near"): (client.address, client.mac),
        (far.node, "near"): (client.address, near.far.mac),
        (server.node, "up"): (client.address, far.far.mac),
    }
    assert {node for node, _ in told[1]} == {place.receivers[1][0].node, far.node, place.senders[1].node}
    assert {node for node, _ in told[2]} == {place.receivers[2][0].node, place.senders[2].node}
    # A splitter handles the stack's port and that of the kernel's flows if such flows cross it.
    assert splitting.ports(network, 0, 443) == (443, kernel_flows.PORT)
    assert splitting.ports(network, 1, 443) == (443,)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_splitter_takes_no_stack_over_udp(transport):
    manifest = types.SimpleNamespace(transport=transport, contract=2)
    stack = types.SimpleNamespace(name="mine", manifest=manifest, client=None)
    refused = None if transport == "tcp" else "a splitter splits TCP, but mine serves over udp"
    assert job.why_not(setting("three-sections"), stack) == refused
