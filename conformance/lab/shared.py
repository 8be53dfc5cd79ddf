"""Turn trials whose flows share a network into what a guest is told about them."""

import dataclasses
import math
import pathlib
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.guest import hop_probe, shared_job
from conformance.guest.exchange import MOST_BYTES
from conformance.lab import load, proxy
from conformance.lab.adapter import Adapter
from conformance.lab.manifest import SEVERAL_REQUESTS
from conformance.model.emulation import bonded, calibration, hop_checks, impairing, rtnl, shaping
from conformance.model.errors import UserError
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.impairments import Impairments
from conformance.model.networks.links import WAYS, Link
from conformance.model.networks.network import Network
from conformance.model.networks.proxy import Proxy
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import KERNEL_STACK, Trial, is_in_kernel

#: {the suite's name of an algorithm: the names that kernels have for it}; other algorithms have one name
KERNEL_NAMES = {"bbrv1": ("bbr1", "bbr"), "bbrv2": ("bbr2", "bbr"), "bbrv3": ("bbr",)}
#: {the suite's name of an algorithm: the one name that a splitter is told}, as it tries only one
_SPLITTER_NAMES = {"bbrv1": "bbr", "bbrv2": "bbr2", "bbrv3": "bbr"}
#: about how many packets of a queue are watched in a trial at most; if more come, one in two, in four, ... is watched
_MOST_WATCHED = 100_000
_FRAME_BITS = 1514 * 8
#: how many probe packets pass each hop, one a millisecond: they tell a share of 1 % to within 0.5 percentage points
_PROBE_PACKETS = 3000
#: bytes of the body of a flow of the stack that the clock ends, if no link limits its rate
_UNLIMITED_BYTES = 1 << 30
#: largest per-trial offset of a link's one-way delay, up or down, in ns
_DELAY_OFF_NS = 10_000
#: Memory that a guest needs, as measured: for the kernel and the harness; for a flow of the stack, and one of the
#: kernel, with its threads and sockets; and for a packet in a queue or in flight, with the part of its sender's buffer
#: that waits for its acknowledgement.
_GUEST_MB, _STACK_FLOW_MB, _FLOW_MB, _PACKET_BYTES = 200, 24, 0.5, 4096
#: A server in user space may hold a body once, as it read it, and twice more for each flow while it hands the body to
#: its stack (measured with aioquic 1.7.2: 3.0 bodies of one flow). Most servers hold less, so all bodies together count
#: for no more than this many MB.
_BODIES_A_FLOW, _MOST_BODIES_MB = 2, 2048
#: the file of the program that splits connections
_SPLITTER = "splitter"
#: memory in MB that every guest has at least
LEAST_MB = 512
#: room for the packets of one side of a flow whose measurement needs them; what did not fit is counted
CAPTURED_BYTES = 48 << 20
#: by how much more a server may send than bodies have; and the most bytes of packets that a trace has room for
_RESENT, _MOST_TRACED_BYTES = 2, 512 << 20
#: a flow: the index of its group, and its number in the group
FlowOf = tuple[int, int]


def is_detailed(setting: Setting) -> bool:
    """Return whether a setting's trials record in detail what happens to one flow, as those of cells do."""
    form = setting.cell_form
    return form is not None and form.rival is None and not form.segments


def network_of(network: Network, stack: str, scratch: pathlib.Path, detailed: bool) -> shared_job.SharedNetwork:
    """Return the network that a guest builds, and copy the programs that it needs into the scratch folder.

    `detailed`: whether its trials record one flow in detail. Raises UserError.
    """
    for name, path in load.programs().items() if not detailed else ():
        shutil.copy(path, scratch / name)
    if network.bond is not None:
        shutil.copy(load.bond(), scratch / load.BOND)
    if network.splitters:
        shutil.copy(proxy.PROGRAM.ensure() / _SPLITTER, scratch / _SPLITTER)
    names = [link.name for link in network.links]
    nodes = [splitter.node for splitter in network.splitters]
    return shared_job.SharedNetwork(
        links=tuple(
            shared_job.SharedLink(name=link.name, ends=link.ends, impaired=network.impaired(link))
            for link in network.links
        ),
        groups=tuple(
            shared_job.Group(
                name=group.name, stack=is_by_stack(group, stack), clients=group.count, ends=group.ends,
                ecn=None if group.ecn is None else int(group.ecn), host_queue=group.host_queue,
                splitters=tuple(nodes.index(splitter.node) for splitter in network.splitters_of(group)),
            )
            for group in network.flows
        ),
        detailed=detailed,
        flows=load.FLOWS,
        watch=load.WATCH,
        change=load.CHANGE,
        hop=load.HOP,
        bond=None if network.bond is None else shared_job.SharedBond(
            ends=network.bond.ends,
            links=(names.index(network.bond.links[0]), names.index(network.bond.links[1])),
            program=load.BOND,
        ),
        splitter=_SPLITTER,
        splitters=tuple(
            shared_job.SharedSplitter(
                node=splitter.node,
                algorithms=tuple(name for name in (own.to_client, own.to_server) if name is not None),
            )
            for splitter, own in ((one, _of_kernel(one.proxy)) for one in network.splitters)
        ),
    )  # fmt: skip


def _of_kernel(of: Proxy) -> Proxy:
    """Return a splitter's options with the kernel's names of congestion controls."""
    both = [None if name is None else _SPLITTER_NAMES.get(name, name) for name in (of.to_client, of.to_server)]
    return dataclasses.replace(of, to_client=both[0], to_server=both[1])


def is_by_stack(group: Flows, stack: str) -> bool:
    """Return whether a stack's programs make a group's flows; if not, the suite's own program does, with kernel TCP.

    The suite's program also makes those of linux-tcp if they have several requests, since that stack's client asks for
    one body only.
    """
    return group.is_stack and not (group.requests and stack == KERNEL_STACK)


def lacks_tcp(setting: Setting, adapter: Adapter) -> bool:
    """Return whether a setting has splitters, which split TCP, and the adapter does not serve over TCP."""
    return bool(setting.network.splitters) and adapter.manifest.transport != "tcp"


def why_not(setting: Setting, adapter: Adapter) -> str | None:
    """Return why an adapter cannot take part in a setting; None if it can."""
    groups = setting.network.flows
    if lacks_tcp(setting, adapter):
        return f"a splitter splits TCP, but {adapter.name} serves over {adapter.manifest.transport}"
    if not any(group.requests and is_by_stack(group, adapter.name) for group in groups):
        return None
    client = adapter.client or adapter
    for one, what in ((adapter, "serves"), (client, "asks for")):
        if one.manifest.contract < SEVERAL_REQUESTS:
            return f"{one.name} {what} only one body on a connection (contract {one.manifest.contract} in its manifest)"
    return None


def cell_of(trials: Sequence[Trial], traced: FlowOf | None = None, trace: str | None = None) -> shared_job.SharedCell:
    """Return what a guest has to know about the trials of one setting.

    `traced`: the flow whose packets are kept. `trace`: what is recorded of a flow that is recorded in detail, one of
    protocol.TRACES.
    """
    network = trials[0].setting.network
    return shared_job.SharedCell(
        tc=tuple((_lines(network, link, "data", 0), _lines(network, link, "acks", 0)) for link in network.links),
        calibrate=link_probes(network),
        trials=tuple(_trial(trial, traced, trace) for trial in trials),
        probes=tuple(
            shared_job.HopProbe(
                link=at, way=way, rule=impairing.rule(asked, 0), packets=_PROBE_PACKETS,
                longest_ms=impairing.longest_ms(asked),
            )
            for at, way, asked in _tried(trials[0])
        ),
    )  # fmt: skip


def link_probes(network: Network) -> tuple[shared_job.LinkProbe, ...]:
    """Return the probes that calibrate the links of a network."""
    return tuple(
        shared_job.LinkProbe(
            link=at, way=WAYS.index(way), rate_mbps=calibration.probed_mbps(asked), delay_ms=asked.delay_ms,
            loss_pct=asked.loss_pct, rate_packets=calibration.rate_packets(asked),
            pace_mbps=calibration.pace_mbps(asked),
        )
        for at, way, asked in calibration.probed(network)
    )  # fmt: skip


def _tried(trial: Trial) -> Iterator[tuple[int, int, Impairments]]:
    """Yield (link, direction, impairments) of all impairments that a trial's setting ever has, each once."""
    network = trial.setting.network
    for at, link in enumerate(network.links):
        for number, way in enumerate(WAYS):
            yield from ((at, number, asked) for asked in network.impairments(link, way) if not asked.none)


def hop_problems(trial: Trial, observed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the hops of a trial's setting did to probe packets (shared_job.HopSeen) that was not requested."""
    network, found = trial.setting.network, []
    tried = list(_tried(trial))
    if len(observed) != len(tried):
        return ["the guest did not say what happened to impaired packets"] if tried else []
    for (at, way, asked), seen in zip(tried, observed, strict=True):
        where = f"({network.links[at].name}, {WAYS[way]})"
        found += [f"{problem} {where}" for problem in hop_checks.problems(asked, hop_probe.SIZES, seen)]
    return found


def _trial(trial: Trial, traced: FlowOf | None, trace: str | None) -> shared_job.SharedTrial:
    network, seed = trial.setting.network, trial.seed
    detail, captured_bytes = _detail(trial.setting), _captured_bytes(trial)
    headers = network.delivery and not trial.setting.packets
    if detail is not None:
        trace = trace or ("heads" if trial.setting.packets else None)
        captured_bytes, headers = trial.setting.transfer_bytes if trace else 0, trace == "heads"
    elif traced is not None:
        captured_bytes, headers = traced_bytes(trial.setting, traced), False
    lasts_s = network.tested.end_s or trial.setting.timeout_s
    off_ns = [delay_off_ns(seed, at) for at in range(len(network.links))]
    return shared_job.SharedTrial(
        seed=seed,
        tc=tuple(
            (_lines(network, link, "data", off_ns[at]), _lines(network, link, "acks", off_ns[at]))
            for at, link in enumerate(network.links)
        ),
        delay_tc=tuple(tuple(shaping.extra_delay_lines(group)) for group in network.flows),
        watch_masks=tuple(None if detail else _mask(network, link, lasts_s) for link in network.links),
        trips=network.round_trips,
        groups=tuple(_group(network, group, trial) for group in network.flows),
        changes=tuple(_changes(trial, network, off_ns)),
        impairments=tuple(
            (_rules(network, link, "data", trial), _rules(network, link, "acks", trial)) for link in network.links
        ),
        tested=network.flows.index(network.tested) if traced is None else traced[0],
        flow=0 if traced is None else traced[1],
        captured_bytes=captured_bytes,
        headers=headers,
        bond=_bond(network),
        splitters=tuple(tuple(proxy.options(_of_kernel(splitter.proxy))) for splitter in network.splitters),
        detail=detail,
    )


def _detail(setting: Setting) -> shared_job.Detail | None:
    """Return what trials of a setting record in detail of one flow; None if they do not."""
    network = setting.network
    bottleneck = network.bottleneck(network.tested)
    if not is_detailed(setting) or bottleneck is None:
        return None
    link, way = bottleneck
    return shared_job.Detail(
        link=network.links.index(link), rate_mbps=link.direction(way).rate_mbps or 0, bursts=network.bursts,
        exchange=setting.transfer_bytes <= MOST_BYTES and not network.bursts,
    )  # fmt: skip


def _captured_bytes(trial: Trial) -> int:
    """Return the room for packets at each end of the tested group's first flow; 0 if they are not captured."""
    network = trial.setting.network
    wanted = network.states or trial.setting.packets or network.delivery
    return CAPTURED_BYTES if wanted else 0


def traced_bytes(setting: Setting, traced: FlowOf) -> int:
    """Return the bytes that the server of a flow may send in a trial. Raises UserError if a guest has no room for them.

    A server sends to all flows of its group.
    """
    network = setting.network
    group = network.flows[traced[0]]
    size, rate_mbps = network.transfer_bytes(group), network.highest_mbps(group)
    bounds: list[float] = [] if size is None else [_RESENT * size * group.count]
    if rate_mbps is not None:
        bounds.append(rate_mbps * 1e6 / 8 * min(group.end_s or math.inf, setting.timeout_s))
    most = round(min(bounds, default=_MOST_TRACED_BYTES + 1))
    if most > _MOST_TRACED_BYTES:
        raise UserError(
            f"the packets of group {group.name} may take {most >> 20} MB, more than the {_MOST_TRACED_BYTES >> 20} MB"
            " that a trace has room for",
            "trace a point with less data",
        )
    return most


def delay_off_ns(seed: int, link: int) -> int:
    """Return how much longer (or shorter) the one-way delay of a link is in the trial with this seed, in ns.

    A delay of exactly so many milliseconds is a coincidence that no network has. TCP compares times in milliseconds,
    and if neither loss nor queue drew random numbers, every trial was the same one, decided by whether something took
    one round trip or a microsecond less. CUBIC's mean queue differed by up to 12 % (zones/README.md).
    """
    return random.Random(f"delay {link} {seed}").randint(-_DELAY_OFF_NS, _DELAY_OFF_NS)


def _bond(network: Network) -> shared_job.BondTrial | None:
    bond = network.bond
    if bond is None:
        return None
    return shared_job.BondTrial(
        batch=bond.batch, first=bond.packets(network.links)[0], copies=bond.duplicate,
        timer_ns=round(bond.reorder_ms * 1e6), cost_ns=round(bond.cost_ms * 1e6),
        cost_tc=tuple(bonded.cost_lines(bond)),
    )  # fmt: skip


def _lines(network: Network, link: Link, way: str, off_ns: int) -> tuple[str, ...]:
    return tuple(
        shaping.tc_lines(
            network, link.direction(way), off_ns, changes=network.changes_delay(link, way), held=network.held(link, way)
        )
    )


def _changes(trial: Trial, network: Network, off_ns: Sequence[int]) -> Iterator[shared_job.Change]:
    for at, link in enumerate(network.links):
        for number, way in enumerate(WAYS):
            for change in network.changes(link, way, trial.setting.timeout_s):
                seed = random.Random(f"change {at} {way} {change.at_ns} {trial.seed}").getrandbits(63)
                made = rtnl.messages(network, change.direction, change.before, off_ns[at], seed)
                if made:
                    messages = tuple(message.hex() for message in made)
                    yield shared_job.Change(at_ns=change.at_ns, link=at, way=number, messages=messages)


def _rules(network: Network, link: Link, way: str, trial: Trial) -> tuple[str, ...]:
    """Return the rules of hop.c for a direction, in order of time; none if it is never impaired."""
    if not network.impaired(link)[WAYS.index(way)]:
        return ()
    later = random.Random(f"pattern {link.name} {way} {trial.seed}").randrange
    found = [impairing.rule(link.direction(way).impairments, 0, later)]
    for change in network.changes(link, way, trial.setting.timeout_s):
        if change.direction.impairments != change.before.impairments:
            if change.at_ns == 0:
                found.clear()
            found.append(impairing.rule(change.direction.impairments, change.at_ns, later))
    return tuple(found)


def _mask(network: Network, link: Link, lasts_s: float) -> int | None:
    """Return the mask that samples a queue's packets: one in mask + 1 is watched. None if there is no queue."""
    rate_mbps = network.highest_of(link, "data")
    if rate_mbps is None:
        return None
    if network.round_trips:
        # Retransmissions are recognized only if all packets are watched.
        return 0
    sizes = [network.transfer_bytes(group) for group in network.flows]
    packets = rate_mbps * 1e6 * lasts_s / _FRAME_BITS
    if all(size is not None for size in sizes):
        packets = min(
            packets, sum((size or 0) * group.count / 1400 for size, group in zip(sizes, network.flows, strict=True))
        )
    return (1 << max(0, math.ceil(math.log2(max(packets, 1) / _MOST_WATCHED)))) - 1


def _group(network: Network, group: Flows, trial: Trial) -> shared_job.GroupFlows:
    asked = group.algorithm or trial.scheme.algorithm
    size = _body_bytes(network, group)
    return shared_job.GroupFlows(
        algorithms=() if is_by_stack(group, trial.scheme.stack) else KERNEL_NAMES.get(asked, (asked,)),
        pace=0 if group.pace_mbps is None else round(group.pace_mbps * 1e6 / 8),
        flows=tuple(
            shared_job.Flow(
                start_ns=start_ns,
                bytes=size,
                stop_ns=0 if group.seconds is None else start_ns + round(group.seconds * 1e9),
            )
            for start_ns in starts_ns(group, trial.seed)
        ),
        requests=group.request_lines,
    )


def _body_bytes(network: Network, group: Flows) -> int:
    """Return the size of each flow's body, or of its largest one; 0 for the kernel's flows that the clock ends."""
    size = max((one.bytes for one in group.requests), default=network.transfer_bytes(group))
    if size is not None or not group.is_stack:
        return size or 0
    rate_mbps = network.highest_mbps(group)
    if rate_mbps is None or group.seconds is None:
        return _UNLIMITED_BYTES
    # The link carries this much in that time; less arrives, since headers take part of it.
    return max(math.ceil(rate_mbps * 1e6 / 8 * group.seconds), 1)


def starts_ns(group: Flows, seed: int) -> list[int]:
    """Return when the flows of a group start, in ns after a trial with this seed begins."""
    late = random.Random(f"start {group.name} {seed}")
    start = group.start
    return [
        round((start.at_s + number * start.every_s + start.spread_s * late.random()) * 1e9)
        for number in range(group.count)
    ]


def memory_mb(network: Network, stack: str = KERNEL_STACK) -> int:
    """Return the memory in MB that a guest has for a network: at least LEAST_MB, in steps of 256.

    It has room for bodies if the stack runs in user space, where it may hold whole bodies.
    """
    bodies = 0.0 if is_in_kernel(stack) else min(_bodies_bytes(network) / 2**20, _MOST_BODIES_MB)
    return max(LEAST_MB, math.ceil((_GUEST_MB + bodies + network_mb(network, _STACK_FLOW_MB)) / 256) * 256)


def network_mb(network: Network, stack_flow_mb: float) -> float:
    """Return the memory in MB for a network's flows, `stack_flow_mb` for each of the stack's, and for its packets."""
    packets = 0.0
    for link in network.links:
        for _, direction in link.directions:
            if direction.rate_mbps is not None and direction.queue is not None:
                queue = direction.queue
                bdp = network.bdp_bytes(direction)
                packets += (queue.size or 1000) if queue.in_packets else shaping.limit_bytes(queue, bdp) / 1514
    for group in network.flows:
        packets += (network.rate_mbps(group) or 1000) * 1e6 / _FRAME_BITS * network.rtt_s(group)
    flows = sum(group.count * (stack_flow_mb if group.is_stack else _FLOW_MB) for group in network.flows)
    return flows + packets * _PACKET_BYTES / 2**20


def _bodies_bytes(network: Network) -> int:
    """Return the most bytes of bodies that servers of the stack hold."""
    groups = [group for group in network.flows if group.is_stack]
    return sum((1 + _BODIES_A_FLOW * group.count) * _body_bytes(network, group) for group in groups)


def check_memory(network: Network, stack: str, free_mb: int) -> None:
    """Raise UserError unless `free_mb` of memory suffices for one guest with a network and a stack."""
    needed = memory_mb(network, stack)
    if needed > free_mb:
        flows = sum(group.count for group in network.flows)
        raise UserError(
            f"/flows: {flows} flows and their queues need a guest of {needed} MB, but only {free_mb} MB are free",
            "ask for fewer flows, a lower rate or a smaller queue",
        )
