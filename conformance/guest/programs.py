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


def hops(stage: Stage, trial_job: TrialJob, begin_ns: int, cleanup: contextlib.ExitStack) -> dict[tuple[int, int], Hop]:
    """Start the programs that impair packets. Return {(link, way): program}."""
    by_place = {}
    for at, ways in enumerate(trial_job.impairments):
        node = stage.place.hops[at]
        for way, rules in enumerate(ways):
            if node is not None and stage.job.network.links[at].impaired[way]:
                program = os.path.join(stage.scratch, stage.job.network.hop)
                by_place[at, way] = Hop(
                    program, folder(stage), stage.net[node], (at, way), rules, begin_ns, trial_job.seed
                )
                cleanup.callback(by_place[at, way].end)
    return by_place


def changes(stage: Stage, trial_job: TrialJob, begin_ns: int, cleanup: contextlib.ExitStack) -> Changes | None:
    """Start the program that changes links while the trial runs. Return None if nothing changes."""
    if not trial_job.changes:
        return None
    program = os.path.join(stage.scratch, stage.job.network.change)
    nodes = {port.node: stage.net[port.node] for both in stage.place.directions for port in both}
    changing = Changes(program, folder(stage), nodes, stage.place.directions, trial_job.changes, begin_ns)
    cleanup.callback(changing.end)
    return changing


def bond(stage: Stage, trial_job: TrialJob, cleanup: contextlib.ExitStack) -> Bonding | None:
    """Start the programs that bond two links. Return None if there is no bond."""
    where, about = stage.place.bond, stage.job.network.bond
    if where is None or about is None or trial_job.bond is None:
        return None
    program = os.path.join(stage.scratch, about.program)
    bonding = Bonding(program, folder(stage), stage.net, where, trial_job.bond)
    cleanup.callback(bonding.end)
    return bonding


def splitters(stage: Stage, trial_job: TrialJob, cleanup: contextlib.ExitStack) -> list[Splitting]:
    """Start the splitters. Raises RuntimeError if one is never ready."""
    network, started = stage.job.network, []
    for at, (where, options) in enumerate(zip(stage.place.splitters, trial_job.splitters, strict=True)):
        splitter = network.splitters[at]
        program = os.path.join(stage.scratch, splitter.program)
        port_options = ports(network, at, stage.job.port)
        started.append(Splitting(stage.net[where.node], splitter, [program, *options], port_options, folder(stage)))
        cleanup.callback(started[-1].end)
    return started


def folder(stage: Stage) -> str:
    """Return the folder of the files that the suite's programs read and write."""
    path = os.path.join(stage.job.work_dir, "load")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def watches(
    stage: Stage, trial_job: TrialJob, cleanup: contextlib.ExitStack
) -> tuple[list[tuple[Watch, int] | None], list[tuple[QueueLooks, QueueLooks]]]:
    """Start the watches. Return, for each link, (the watch of its data's queue, n) and the samplers of both queues.

    A watch watches one packet in n.
    """
    of_links: list[tuple[Watch, int] | None] = []
    queues = []
    net, handle = stage.net, int(stage.job.queue_handle, 16) << 16
    where = folder(stage)
    for interfaces, mask in zip(stage.place.directions, trial_job.watch_masks, strict=True):
        data, acks = interfaces
        watch = None
        if mask is not None:
            program = os.path.join(stage.scratch, stage.job.network.watch)
            watch = Watch(program, where, net[data.node], data.name, mask, trial_job.trips), mask + 1
            cleanup.callback(watch[0].end)
        of_links.append(watch)
        looks = QueueLooks(net[data.node], data.name, handle), QueueLooks(net[acks.node], acks.name, handle)
        for look in looks:
            cleanup.callback(look.close)
        queues.append(looks)
    return of_links, queues


def captures(stage: Stage, trial_job: TrialJob) -> dict[str, Capture]:
    """Capture the packets of a flow, if the trial asks for that. Return {name: capture}."""
    if not trial_job.captured_bytes:
        return {}
    detailed = stage.job.network.detailed
    how = {"most_bytes": HEAD_BYTES} if trial_job.headers else {}
    if trial_job.headers and detailed:
        how["block_bytes"] = HEADS_BLOCK_BYTES
    return {
        name: Capture(stage.net[port.node], port.name, trial_job.captured_bytes, **how)
        for name, port in stage.place.taps(trial_job.tested, trial_job.flow, detailed).items()
    }


def tried(stage: Stage, probes: Sequence[HopProbe]) -> tuple[HopSeen, ...]:
    """Send probe packets through hops, one hop after the other, before the first trial of a cell."""
    clock.start(stage.net, _PROBES_SEED)
    programs = []
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
            programs.append(
                hop_probe.observe(
                    (net[before.node], before.name), (net[behind.node], behind.name), probe.packets, probe.longest_ms
                )
            )
        finally:
            hop.end()
    return tuple(programs)
