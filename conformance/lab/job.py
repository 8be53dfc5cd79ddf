"""Turn trials into what a guest is told: its job, and the cells that it is fed."""

import dataclasses
import math
import pathlib
import random
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformance.guest import hop_probe, network_job, protocol, wire
from conformance.guest.exchange import MOST_BYTES
from conformance.lab import load, pki, proxy, topology, version
from conformance.lab.adapter import Adapter
from conformance.lab.manifest import CONNECTIONS, SEVERAL_REQUESTS
from conformance.model.emulation import bonded, calibration, hop_checks, impairing, rtnl, shaping
from conformance.model.errors import UserError
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.impairments import Impairments
from conformance.model.networks.links import WAYS, Link
from conformance.model.networks.network import Network
from conformance.model.networks.proxy import SPLITTER, Proxy
from conformance.model.networks.setting import READY_S, SILENCE_S, Setting
from conformance.model.trials.trial import KERNEL_STACK, Trial, is_in_kernel

#: limits of a stack: the address space is as large as runtimes like to reserve; threads count as processes, too
_LIMITS = protocol.Limits(memory_bytes=1 << 36, file_bytes=1 << 30, processes=256)
PROBING = protocol.Probing(loss_packets=2000, seed=1)
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
#: how long after the end of a first pass its changes are due, in s, so that none is ever made
_TOO_LATE_S = 3600
#: Memory that a guest needs, as measured: for the kernel and the harness; for a flow of the stack, and one of the
#: kernel, with its threads and sockets; and for a packet in a queue or in flight, with the part of its sender's buffer
#: that waits for its acknowledgement.
_GUEST_MB, _STACK_FLOW_MB, _FLOW_MB, _PACKET_BYTES = 200, 24, 0.5, 4096
#: A server in user space may hold a body once, as it read it, and twice more for each flow while it hands the body to
#: its stack (measured with aioquic 1.7.2: 3.0 bodies of one flow). Most servers hold less, so all bodies together count
#: for no more than this many MB.
_BODIES_A_FLOW, _MOST_BODIES_MB = 2, 2048
#: memory in MB that every guest has at least
LEAST_MB = 512
#: room for the packets of one side of a flow whose measurement needs them; what did not fit is counted
CAPTURED_BYTES = 48 << 20
#: by how much more a server may send than bodies have; and the most bytes of packets that a trace has room for
_RESENT, _MOST_TRACED_BYTES = 2, 512 << 20
#: Memory for the captures of one trial: two rings, allocated as a whole (guest/capture.py), and two files on their way
#: to the host. In order: the part of the transfer's size that a ring takes, the MB that it takes besides, the part that
#: a file takes, and the number of captures; captures of packets' heads take a quarter of that (guest/trace.py).
_RING_SHARE, _RING_SPARE_MB, _FILE_SHARE, _CAPTURES, _HEADS_SHARE = 1.3, 24, 1.0, 2, 0.25
#: memory in MB that a guest has at least if it captures the flow that it records in detail
_CAPTURING_MB = 1024
#: a flow: the index of its group, and its number in the group
FlowOf = tuple[int, int]


def write(
    scratch: pathlib.Path,
    adapter: Adapter,
    at: pathlib.Path | str,
    first: Trial,
    probe: bool = False,
    trace: str | None = None,
) -> None:
    """Fill the scratch folder with all but cells: job.json, the topology, the certificates. Raises UserError.

    `first` is any of the trials, which all share its scheme and its profile. `at` is where the guest finds the stack's
    folders: "adapter", "build" (what was compiled for it), "client", "client-build". `probe`: try out the adapter's
    contract in each cell instead of making trials. `trace`: one of protocol.TRACES, to record what happens in each
    trial in the scratch folder's trace/CELL'S INDEX-SEED.
    """
    if first.lab_digest != version.lab_version():
        # A guest reads the suite's files when it starts; its results must not be kept under an earlier version.
        raise UserError("the suite's own code changed while it was measuring", "run the same command again")
    setting = first.setting
    shutil.copytree(pki.ensure(), scratch / "pki")
    shutil.copy(topology.BUILDER, scratch / "topology.py")
    if probe and not is_detailed(setting):
        raise UserError("an adapter is probed in cells only")
    for name, program in _programs(setting.network, first.scheme.stack, is_detailed(setting)).items():
        shutil.copy(program, scratch / name)
    job = protocol.Job(
        algorithm=first.scheme.algorithm,
        called=adapter.called(first.scheme.algorithm),
        kernel_algorithms=_tuple(adapter.kernel_names(first.scheme.algorithm)),
        server=_own(adapter, at),
        client=_client(adapter, at),
        transport=adapter.manifest.transport,
        port=adapter.manifest.port,
        hostname=pki.HOSTNAME,
        pki="/run/scratch/pki",
        work_dir="/run/work",
        limits=_LIMITS,
        ready_timeout_s=READY_S,
        timeout_s=setting.timeout_s,
        silence_s=SILENCE_S,
        sysctls=dict(setting.sysctls),
        offload=setting.offload,
        queue_handle=shaping.QUEUE_HANDLE,
        network=network_job_of(setting, first.scheme.stack),
        probing=PROBING,
        probe=probe,
        trace=trace or _usual_trace(setting),
    )
    _write(scratch / "job.json", wire.dumps(job))


class Feeder:
    """Feeds cells to a guest by files in its scratch folder, in the order in which the guest carries them out."""

    def __init__(self, scratch: pathlib.Path) -> None:
        self._scratch, self._next = scratch, 0

    def feed(self, cell: network_job.CellJob | None) -> None:
        """Give the guest one more cell; None says that no more follow."""
        _write(self._scratch / protocol.cell_file(self._next), "null" if cell is None else wire.dumps(cell))
        self._next += 1

    def feed_all(self, cells: Iterable[network_job.CellJob]) -> None:
        """Give the guest these cells and no more: it ends when they are done."""
        for cell in (*cells, None):
            self.feed(cell)


def _write(target: pathlib.Path, text: str) -> None:
    """Write a file as a whole, as the guest may be waiting for it. No stack may read it: it describes the network."""
    aside = target.with_suffix(".aside")
    aside.touch(mode=0o600)
    aside.write_text(text)
    aside.rename(target)


def _tuple(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _own(adapter: Adapter, at: pathlib.Path | str) -> protocol.StackProgram:
    rootfs = f"{at}/rootfs" if adapter.rootfs else None
    return protocol.StackProgram(
        path=f"{at}/adapter/{adapter.manifest.program}", build_dir=f"{at}/build", rootfs=rootfs
    )


def _client(adapter: Adapter, at: pathlib.Path | str) -> protocol.StackProgram:
    if adapter.client is None:
        return _own(adapter, at)
    program = f"{at}/client/{adapter.client.manifest.program}"
    return protocol.StackProgram(path=program, build_dir=f"{at}/client-build", rootfs=None)


def is_detailed(setting: Setting) -> bool:
    """Return whether a setting's trials record in detail what happens to one flow, as those of cells do."""
    return setting.cell_form is not None


def _usual_trace(setting: Setting) -> str | None:
    """Return what is recorded of a flow that is recorded in detail, unless the user asks for more."""
    return "heads" if setting.packets and is_detailed(setting) else None


def network_job_of(setting: Setting, stack: str) -> network_job.NetworkJob:
    """Return the network that a guest builds for a setting."""
    network = setting.network
    names = [link.name for link in network.links]
    nodes = [splitter.node for splitter in network.splitters]
    return network_job.NetworkJob(
        links=tuple(
            network_job.LinkJob(name=link.name, ends=link.ends, impaired=network.impaired(link))
            for link in network.links
        ),
        groups=tuple(
            network_job.GroupJob(
                name=group.name, stack=is_by_stack(group, stack), clients=group.count, ports=group.client.ports,
                ends=group.ends, ecn=None if group.ecn is None else int(group.ecn), host_queue=group.host_queue,
                splitters=tuple(nodes.index(splitter.node) for splitter in network.splitters_of(group)),
            )
            for group in network.flows
        ),
        detailed=is_detailed(setting),
        own_ports=network.needs_ports,
        flows=load.FLOWS,
        watch=load.WATCH,
        change=load.CHANGE,
        hop=load.HOP,
        bond=None if network.bond is None else network_job.BondJob(
            ends=network.bond.ends,
            links=(names.index(network.bond.links[0]), names.index(network.bond.links[1])),
            program=load.BOND,
        ),
        splitters=tuple(
            network_job.SplitterJob(
                node=splitter.node,
                program=_splitter_file(splitter.proxy),
                ours=splitter.proxy.program == SPLITTER,
                algorithms=tuple(name for name in (kernels.to_client, kernels.to_server) if name is not None),
            )
            for splitter, kernels in ((each, _of_kernel(each.proxy)) for each in network.splitters)
        ),
    )  # fmt: skip


def _splitter_file(of: Proxy) -> str:
    return f"splitter-{of.program}"


def _programs(network: Network, stack: str, detailed: bool) -> dict[str, pathlib.Path]:
    """Return {file in the scratch folder: the program} of the programs that a network needs. Raises UserError."""
    # A flow that is recorded in detail has neither watches, changes nor impairments beside it.
    kernels = () if all(is_by_stack(group, stack) for group in network.flows) else (load.FLOWS,)
    needed = kernels if detailed else load.PROGRAMS
    programs = {name: path for name, path in (load.programs() if needed else {}).items() if name in needed}
    if network.bond is not None:
        programs[load.BOND] = load.bond()
    return programs | {_splitter_file(splitter.proxy): proxy.program(splitter.proxy) for splitter in network.splitters}


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
    client = adapter.client or adapter
    if any(group.client for group in groups) and client.manifest.contract < CONNECTIONS:
        return (
            f"{client.name} cannot be told how to acknowledge or to use connections"
            f" (contract {client.manifest.contract} in its manifest, not {CONNECTIONS})"
        )
    if not any(group.requests and is_by_stack(group, adapter.name) for group in groups):
        return None
    for stack, what in ((adapter, "serves"), (client, "asks for")):
        if stack.manifest.contract < SEVERAL_REQUESTS:
            contract = f"(contract {stack.manifest.contract} in its manifest)"
            return f"{stack.name} {what} only one body on a connection {contract}"
    return None


def cell_of(trials: Sequence[Trial], traced: FlowOf | None = None, trace: str | None = None) -> network_job.CellJob:
    """Return what a guest has to know about the trials of one setting.

    `traced`: the flow whose packets are kept. `trace`: what is recorded of a flow that is recorded in detail, one of
    protocol.TRACES.
    """
    network = trials[0].setting.network
    return network_job.CellJob(
        tc=_both_lines(trials[0].setting, [0 for _ in network.links]),
        calibrate=link_probes(network),
        trials=tuple(_trial(trial, traced, trace) for trial in trials),
        probes=tuple(
            network_job.HopProbe(
                link=at, way=way, rule=impairing.rule(impairments, 0), packets=_PROBE_PACKETS,
                longest_ms=impairing.longest_ms(impairments),
            )
            for at, way, impairments in _tried(trials[0])
        ),
    )  # fmt: skip


def link_probes(network: Network) -> tuple[network_job.LinkProbe, ...]:
    """Return the probes that calibrate the links of a network."""
    return tuple(
        network_job.LinkProbe(
            link=at, way=WAYS.index(way), rate_mbps=calibration.probed_mbps(direction), delay_ms=direction.delay_ms,
            loss_pct=direction.loss_pct, rate_packets=calibration.rate_packets(direction),
            pace_mbps=calibration.pace_mbps(direction),
        )
        for at, way, direction in calibration.probed(network)
    )  # fmt: skip


def _tried(trial: Trial) -> Iterator[tuple[int, int, Impairments]]:
    """Yield (link, direction, impairments) of all impairments that a trial's setting ever has, each once."""
    network = trial.setting.network
    for at, link in enumerate(network.links):
        for number, way in enumerate(WAYS):
            yield from (
                (at, number, impairments) for impairments in network.impairments(link, way) if not impairments.none
            )


def hop_problems(trial: Trial, observed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the hops of a trial's setting did to probe packets (seen.HopSeen) that was not requested."""
    network, problems = trial.setting.network, []
    tried = list(_tried(trial))
    if len(observed) != len(tried):
        return ["the guest did not say what happened to impaired packets"] if tried else []
    for (at, way, impairments), shown in zip(tried, observed, strict=True):
        where = f"({network.links[at].name}, {WAYS[way]})"
        problems += [f"{problem} {where}" for problem in hop_checks.problems(impairments, hop_probe.SIZES, shown)]
    return problems


def _trial(trial: Trial, traced: FlowOf | None, trace: str | None) -> network_job.TrialJob:
    network, seed = trial.setting.network, trial.seed
    detail = _detail(trial.setting)
    captured_bytes, headers = _captured(trial.setting, trace, traced)
    lasts_s = network.tested.end_s or trial.setting.timeout_s
    off_ns = [delay_off_ns(seed, at) for at in range(len(network.links))]
    return network_job.TrialJob(
        seed=seed,
        tc=_both_lines(trial.setting, off_ns),
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


def _detail(setting: Setting) -> network_job.Detail | None:
    """Return what trials of a setting record in detail of one flow; None if they do not."""
    network = setting.network
    bottleneck = network.bottleneck(network.tested)
    if not is_detailed(setting) or bottleneck is None:
        return None
    link, way = bottleneck
    return network_job.Detail(
        link=network.links.index(link), rate_mbps=link.direction(way).rate_mbps or 0, bursts=network.bursts,
        exchange=setting.transfer_bytes <= MOST_BYTES and not network.bursts,
    )  # fmt: skip


def _captured(setting: Setting, trace: str | None, traced: FlowOf | None) -> tuple[int, bool]:
    """Return the room for packets at each end of a flow, 0 if they are not captured; and whether only for their heads.

    `traced`, `trace`: as in cell_of(). Raises UserError if a guest has no room for them.
    """
    network = setting.network
    if is_detailed(setting):
        how = trace or _usual_trace(setting)
        size = setting.transfer_bytes if how else 0
        return _with_room(size, size if how != "heads" else size * _HEADS_SHARE, "of this transfer"), how == "heads"
    if traced is not None:
        return traced_bytes(setting, traced), False
    wanted = network.states or setting.packets or network.delivery
    return CAPTURED_BYTES if wanted else 0, network.delivery and not setting.packets


def captures_mb(setting: Setting, trace: str | None, traced: FlowOf | None) -> int:
    """Return the memory in MB that the captures of a trial take. Raises UserError if it is more than a guest has."""
    size, heads = _captured(setting, trace, traced)
    share = _HEADS_SHARE if heads else 1.0
    each_mb = (_RING_SHARE + _FILE_SHARE) * size / 2**20 + _RING_SPARE_MB
    return round(_CAPTURES * share * each_mb) if size else 0


def _with_room(size: int, kept: float, whose: str) -> int:
    """Return the size of packets of which so many bytes are kept. Raises UserError if a trace has no room for them."""
    if kept > _MOST_TRACED_BYTES:
        raise UserError(
            f"the packets {whose} may take {round(kept) >> 20} MB, more than the {_MOST_TRACED_BYTES >> 20} MB"
            " that a trace has room for",
            "trace a point with less data",
        )
    return size


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
    return _with_room(most, most, f"of group {group.name}")


def delay_off_ns(seed: int, link: int) -> int:
    """Return how much longer (or shorter) the one-way delay of a link is in the trial with this seed, in ns.

    A delay of exactly so many milliseconds is a coincidence that no network has. TCP compares times in milliseconds,
    and if neither loss nor queue drew random numbers, every trial was the same one, decided by whether something took
    one round trip or a microsecond less. CUBIC's mean queue differed by up to 12 % (zones/README.md).
    """
    return random.Random(f"delay {link} {seed}").randint(-_DELAY_OFF_NS, _DELAY_OFF_NS)


def _bond(network: Network) -> network_job.BondTrial | None:
    bond = network.bond
    if bond is None:
        return None
    return network_job.BondTrial(
        batch=bond.batch, first=bond.packets(network.links)[0], copies=bond.duplicate,
        timer_ns=round(bond.reorder_ms * 1e6), cost_ns=round(bond.cost_ms * 1e6),
        cost_tc=tuple(bonded.cost_lines(bond)),
    )  # fmt: skip


def _both_lines(setting: Setting, off_ns: Sequence[int]) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Return the tc commands of both directions of each link, whose delays are off by `off_ns`."""
    return tuple(
        (_lines(setting, link, "data", off), _lines(setting, link, "acks", off))
        for link, off in zip(setting.network.links, off_ns, strict=True)
    )


def _lines(setting: Setting, link: Link, way: str, off_ns: int) -> tuple[str, ...]:
    network, direction = setting.network, link.direction(way)
    return tuple(
        shaping.tc_lines(
            network,
            direction,
            off_ns,
            changes=network.changes_delay(link, way),
            held=network.held(link, way),
            bdp=setting.bdp_bytes(direction),
        )
    )


def _changes(trial: Trial, network: Network, off_ns: Sequence[int]) -> Iterator[network_job.ChangeJob]:
    """Yield the changes of a trial; in a first pass, those that wait for a state come when the trial is over.

    So the program that makes changes starts in both passes. As it starts and opens sockets, the kernel draws random
    numbers, and later draws, such as BBR's of the phase that its cycle begins with, must be the same.
    """
    timeout_s = trial.setting.timeout_s
    # A trace would go on changing the network for as long as a trial may last.
    end_s = min(timeout_s, network.latest_end_s + 1)
    for at, link in enumerate(network.links):
        for number, way in enumerate(WAYS):
            changes = network.changes(link, way, end_s)
            for change in (*changes, *network.waiting_changes(link, way, timeout_s + _TOO_LATE_S)):
                seed = random.Random(f"change {at} {way} {change.at_ns} {trial.seed}").getrandbits(63)
                requests = rtnl.messages(network, change.direction, change.before, off_ns[at], seed)
                if requests:
                    messages = tuple(message.hex() for message in requests)
                    yield network_job.ChangeJob(at_ns=change.at_ns, link=at, way=number, messages=messages)


def _rules(network: Network, link: Link, way: str, trial: Trial) -> tuple[str, ...]:
    """Return the rules of hop.c for a direction, in order of time; none if it is never impaired."""
    if not network.impaired(link)[WAYS.index(way)]:
        return ()
    later = random.Random(f"pattern {link.name} {way} {trial.seed}").randrange
    rules = [impairing.rule(link.direction(way).impairments, 0, later)]
    for change in network.changes(link, way, trial.setting.timeout_s):
        if change.direction.impairments != change.before.impairments:
            if change.at_ns == 0:
                rules.clear()
            rules.append(impairing.rule(change.direction.impairments, change.at_ns, later))
    return tuple(rules)


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


def _group(network: Network, group: Flows, trial: Trial) -> network_job.GroupFlows:
    algorithm = group.algorithm or trial.scheme.algorithm
    size = _body_bytes(network, group)
    return network_job.GroupFlows(
        algorithms=() if is_by_stack(group, trial.scheme.stack) else KERNEL_NAMES.get(algorithm, (algorithm,)),
        pace=0 if group.pace_mbps is None else round(group.pace_mbps * 1e6 / 8),
        flows=tuple(
            network_job.FlowJob(
                start_ns=start_ns,
                bytes=size,
                stop_ns=0 if group.seconds is None else start_ns + round(group.seconds * 1e9),
            )
            for start_ns in starts_ns(group, trial.seed)
        ),
        requests=group.request_lines,
        connections=group.client.connection_lines,
        variables=group.client.variables,
    )


def _body_bytes(network: Network, group: Flows) -> int:
    """Return the size of each flow's body, or of its largest one; 0 for the kernel's flows that the clock ends."""
    size = max(group.bodies, default=network.transfer_bytes(group))
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


def memory_mb(
    setting: Setting, stack: str = KERNEL_STACK, trace: str | None = None, traced: FlowOf | None = None
) -> int:
    """Return the memory in MB that a guest has for a setting: at least LEAST_MB, in steps of 256.

    It has room for bodies if the stack runs in user space, where it may hold whole bodies. `traced`, `trace`: as in
    cell_of(). Raises UserError if captures need more than a guest has.
    """
    network = setting.network
    captures = captures_mb(setting, trace, traced)
    if is_detailed(setting):
        return max(_CAPTURING_MB, LEAST_MB + captures) if captures else LEAST_MB
    bodies = 0.0 if is_in_kernel(stack) else min(_bodies_bytes(network) / 2**20, _MOST_BODIES_MB)
    own_mb = max(LEAST_MB, math.ceil((_GUEST_MB + bodies + network_mb(network, _STACK_FLOW_MB)) / 256) * 256)
    return own_mb + (captures if traced else 0)


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


def check_memory(setting: Setting, stack: str, free_mb: int) -> None:
    """Raise UserError unless `free_mb` of memory suffices for one guest with a setting and a stack."""
    needed = memory_mb(setting, stack)
    if needed > free_mb:
        flows = sum(group.count for group in setting.network.flows)
        raise UserError(
            f"/flows: {flows} flows and their queues need a guest of {needed} MB, but only {free_mb} MB are free",
            "ask for fewer flows, a lower rate or a smaller queue",
        )
