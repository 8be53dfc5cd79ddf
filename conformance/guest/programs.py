"""Start the suite's programs that watch queues, change links, impair packets, bond links or split connections."""

from __future__ import annotations

import os
import time

from conformance.guest import clock, hop_probe
from conformance.guest.bonding import Bonding
from conformance.guest.capture import HEAD_BYTES, HEADS_BLOCK_BYTES, Capture
from conformance.guest.changes import Changes
from conformance.guest.flow_looks import QueueLooks
from conformance.guest.hop import Hop
from conformance.guest.kernel_flows import Watch
from conformance.guest.splitting import Splitting, ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    import contextlib
    from collections.abc import Sequence

    from conformance.guest.network_job import HopProbe, TrialJob
    from conformance.guest.seen import HopSeen
    from conformance.guest.stage import Stage

_PROBES_SEED = 1


def hops(stage: Stage, asked: TrialJob, begin_ns: int, cleanup: contextlib.ExitStack) -> dict[tuple[int, int], Hop]:
    """Start the programs that impair packets. Return {(link, way): program}."""
    found = {}
    for at, ways in enumerate(asked.impairments):
        node = stage.place.hops[at]
        for way, rules in enumerate(ways):
            if node is not None and stage.job.network.links[at].impaired[way]:
                program = os.path.join(stage.scratch, stage.job.network.hop)
                found[at, way] = Hop(program, folder(stage), stage.net[node], (at, way), rules, begin_ns, asked.seed)
                cleanup.callback(found[at, way].end)
    return found


def changes(stage: Stage, asked: TrialJob, begin_ns: int, cleanup: contextlib.ExitStack) -> Changes | None:
    """Start the program that changes links while the trial runs. Return None if nothing changes."""
    if not asked.changes:
        return None
    program = os.path.join(stage.scratch, stage.job.network.change)
    nodes = {port.node: stage.net[port.node] for both in stage.place.directions for port in both}
    found = Changes(program, folder(stage), nodes, stage.place.directions, asked.changes, begin_ns)
    cleanup.callback(found.end)
    return found


def bond(stage: Stage, asked: TrialJob, cleanup: contextlib.ExitStack) -> Bonding | None:
    """Start the programs that bond two links. Return None if there is no bond."""
    where, about = stage.place.bond, stage.job.network.bond
    if where is None or about is None or asked.bond is None:
        return None
    program = os.path.join(stage.scratch, about.program)
    found = Bonding(program, folder(stage), stage.net, where, asked.bond)
    cleanup.callback(found.end)
    return found


def splitters(stage: Stage, asked: TrialJob, cleanup: contextlib.ExitStack) -> list[Splitting]:
    """Start the splitters. Raises RuntimeError if one is never ready."""
    network, found = stage.job.network, []
    for at, (where, options) in enumerate(zip(stage.place.splitters, asked.splitters, strict=True)):
        splitter = network.splitters[at]
        program = os.path.join(stage.scratch, splitter.program)
        own = ports(network, at, stage.job.port)
        found.append(Splitting(stage.net[where.node], splitter, [program, *options], own, folder(stage)))
        cleanup.callback(found[-1].end)
    return found


def folder(stage: Stage) -> str:
    """Return the folder of the files that the suite's programs read and write."""
    folder = os.path.join(stage.job.work_dir, "load")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def watches(
    stage: Stage, asked: TrialJob, cleanup: contextlib.ExitStack
) -> tuple[list[tuple[Watch, int] | None], list[tuple[QueueLooks, QueueLooks]]]:
    """Start the watches. Return, for each link, (the watch of its data's queue, n) and the samplers of both queues.

    A watch watches one packet in n.
    """
    watches: list[tuple[Watch, int] | None] = []
    queues = []
    net, handle = stage.net, int(stage.job.queue_handle, 16) << 16
    where = folder(stage)
    for interfaces, mask in zip(stage.place.directions, asked.watch_masks, strict=True):
        data, acks = interfaces
        watch = None
        if mask is not None:
            program = os.path.join(stage.scratch, stage.job.network.watch)
            watch = Watch(program, where, net[data.node], data.name, mask, asked.trips), mask + 1
            cleanup.callback(watch[0].end)
        watches.append(watch)
        looks = QueueLooks(net[data.node], data.name, handle), QueueLooks(net[acks.node], acks.name, handle)
        for one in looks:
            cleanup.callback(one.close)
        queues.append(looks)
    return watches, queues


def captures(stage: Stage, asked: TrialJob) -> dict[str, Capture]:
    """Capture the packets of a flow, if the trial asks for that. Return {name: capture}."""
    if not asked.captured_bytes:
        return {}
    detailed = stage.job.network.detailed
    how = {"most_bytes": HEAD_BYTES} if asked.headers else {}
    if asked.headers and detailed:
        how["block_bytes"] = HEADS_BLOCK_BYTES
    return {
        name: Capture(stage.net[port.node], port.name, asked.captured_bytes, **how)
        for name, port in stage.place.taps(asked.tested, asked.flow, detailed).items()
    }


def tried(stage: Stage, probes: Sequence[HopProbe]) -> tuple[HopSeen, ...]:
    """Send probe packets through hops, one hop after the other, before the first trial of a cell."""
    clock.start(stage.net, _PROBES_SEED)
    found = []
    for probe in probes:
        node = stage.place.hops[probe.link]
        if node is None:
            raise ValueError(f"link {probe.link} has no hop")
        program, net = os.path.join(stage.scratch, stage.job.network.hop), stage.net
        place = probe.link, probe.way
        hop = Hop(program, folder(stage), net[node], place, (probe.rule,), time.monotonic_ns(), _PROBES_SEED)
        # Wait until the program has opened its sockets.
        time.sleep(0.1)
        both = stage.place.directions[probe.link]
        before, behind = both[probe.way], both[1 - probe.way]
        try:
            found.append(
                hop_probe.observe(
                    (net[before.node], before.name), (net[behind.node], behind.name), probe.packets, probe.longest_ms
                )
            )
        finally:
            hop.end()
    return tuple(found)
