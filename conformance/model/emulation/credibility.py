"""Find out why what a guest reports of a trial cannot be believed, or says nothing about congestion control.

Nothing that a stack or program reports is taken on trust if it can be checked: a client's byte count is checked against
what arrived at its interface, its time against the harness's own clock, its goodput against the path's rate, the
congestion control of the kernel's flows against the one that was requested, and each link against what was asked of it.
A lie makes the trial an error, with a message that says so. If the stack's programs end, break off or stay silent in a
transfer, and nothing is known against the emulator, the trial failed. CHECKS lists the checks of a flow in order.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance.model.emulation import (
    beside,
    bonded,
    client_report,
    congestion,
    connection_facts,
    handshake,
    impairing,
    moves,
    outages,
    queue_counts,
    queue_options,
    request_facts,
    scheduled,
    shaping,
    splitting,
)
from conformance.model.emulation.client_report import said, status
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.links import WAYS, Direction, Link
from conformance.model.networks.network import Network
from conformance.model.networks.schedule import Change, carried_bytes
from conformance.model.networks.setting import READY_S, SILENCE_S, Setting
from conformance.model.trials.trial import Outcome, Trial

#: the client's clock may start this much later, and stop this much earlier, than the harness's, in s, plus 2 %
_CLOCK_SLACK_S = 0.25
#: goodput beyond this multiple of the path's rate is more than the rate and its token bucket can explain
_RATE_SLACK, _BURST_BYTES = 1.02, 65_536
#: by how much the bytes that leave a link may exceed its rate, as a factor and in bytes, because of the clock's start
#: and a token bucket's first packets
_LINK_SLACK, _LINK_SLACK_BYTES = 1.01, 200_000
#: How much shorter than requested a round trip may be, in ms: for each link, since a trial's delays differ in both
#: directions; and once more, since TCP's timestamps, which tell the round trip of what was retransmitted, count
#: milliseconds.
_OFF_MS, _STAMP_MS = 0.025, 1.0
#: a flow that lasts longer, in s, must have reached its server if its path neither changes nor does more to packets
#: than lose some
_LONG_ENOUGH_S = 5.0
#: the share of watched packets that may lack the time when they entered the queue: more would change its quantiles
_MOST_UNMATCHED = 0.01
#: how many packets may leave a queue after the hop has ended, from connections that end
_LAST_PACKETS = 64
#: if the bytes on the wire, with headers and duplicates, exceed this multiple of the body, all of it may have arrived
_ALL_CAME = 1.1
#: the most bytes that cross the link before the first byte of the body
_HANDSHAKE_BYTES = 20_000
#: how many of an emulator's problems a message names
_MOST_PROBLEMS = 10
#: exit status of a program that does not offer an algorithm
NOT_OFFERED = 127

#: JSON that a guest reports about a trial (guest/seen.py: TrialFacts), a flow, its network or a process
Facts = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class TrialFault:
    """Why a trial says nothing about the stack's congestion control."""

    message: str
    outcome: Outcome = Outcome.ERROR


def _failure(message: str, process: Facts | None = None) -> TrialFault:
    """Return the TrialFault of a stack that did not do its work.

    `process`: the one of its programs that ended. If its guest had no memory left, the stack may not be to blame.
    """
    short = process is not None and process["ran_out_of_memory"]
    return TrialFault(message, Outcome.ERROR if short else Outcome.FAILED)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A flow of the stack, and what the guest reports of it, of its group and of the whole trial."""

    trial: Trial
    group: Flows
    number: int
    of_group: Facts
    facts: Facts
    network: Facts

    @property
    def stack(self) -> str:
        return self.trial.scheme.stack

    @property
    def seen(self) -> Facts:
        flow: Facts = self.of_group["flows"][self.number]
        return flow

    @property
    def client(self) -> Facts:
        process: Facts = self.seen["client"]
        return process

    @property
    def detail(self) -> Facts | None:
        """What was recorded of the flow in detail, if it was."""
        detail: Facts | None = self.facts["detail"]
        return detail

    @functools.cached_property
    def broken_off(self) -> bool:
        """Whether the client gave up after it had been moved."""
        return (self.group.name, self.number) in moves.broken_off(self.trial.setting.network, self.facts)

    @property
    def completed(self) -> bool:
        """Whether the client ended by itself, so that there is a report to check."""
        return bool(self.seen["complete"]) and not self.broken_off

    @property
    def wanted_bytes(self) -> int | None:
        """The bytes of the flow's bodies; None if they are larger than what the path carries in the flow's time."""
        return connection_facts.wanted(self.group, self.trial.setting.network.transfer_bytes(self.group), self.report)

    @property
    def lasted_s(self) -> float:
        end_s = self.facts["elapsed_s"] if self.detail or self.seen["end_s"] is None else self.seen["end_s"]
        return float(end_s - self.seen["start_s"])

    @property
    def crossed_bytes(self) -> int:
        """The bytes that arrived at the client's interfaces."""
        return crossed_bytes(self.detail) if self.detail else self.seen["arrived_bytes"] or 0

    @property
    def excused(self) -> bool:
        """Whether what became of the path, or a move of its client, explains that the flow ended or fell silent."""
        network, end_s = self.trial.setting.network, self.seen["start_s"] + self.lasted_s
        return moves.asked(network, self.group) or outages.explains(network, self.group, end_s)

    @property
    def congestion_control(self) -> congestion.Found:
        of: Facts = self.detail["sampled"] if self.detail else self.seen
        return of["congestion_control"]  # type: ignore[no-any-return]

    @property
    def looks(self) -> list[tuple[float, float | None]]:
        """(seconds since the client's process started, bytes that had come)."""
        if self.detail:
            trace = self.detail["sampled"]["trace"]
            return list(zip(trace.get("t_s", ()), trace.get("bytes_acked", ()), strict=True))
        table, start_s = self.seen["looks"], self.seen["start_s"]
        columns = table.get("t_s", ()), table.get("acked_bytes", ())
        return [(t_s - start_s, n) for t_s, n in zip(*columns, strict=True)]

    @functools.cached_property
    def report(self) -> Facts | None:
        """The client's result line: "bytes", "completion_s", "handshake_s"; None if there is no valid one."""
        return client_report.report_of(self.client["stdout"])


def faults(trial: Trial, facts: Facts, network: Facts) -> Iterator[TrialFault]:
    """Yield what is wrong with a trial, beginning with faults that may have caused the others.

    `network` is the guest's network event (sysctls, offload, kernel as read back).
    """
    requested = trial.setting.network
    groups = list(zip(requested.flows, facts["groups"], strict=True))
    of_stack = [(group, of) for group, of in groups if of["server"]]
    late = [(group, of) for group, of in of_stack if not of["ready"]]
    for _, of in late:
        # Nothing ran, so the links did not do what was requested either.
        yield from _of_server(trial, of, 0)
    if late:
        return
    if problems := list(_link_problems(trial.setting, facts)):
        more = f"; and {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
        yield TrialFault(f"calibration: {'; '.join(problems[:_MOST_PROBLEMS])}{more}")
    several = sum(len(of["flows"]) for _, of in of_stack) > 1
    for group, of in groups:
        if not of["server"]:
            yield from _of_kernel(trial, group, of)
            continue
        cases = [
            Case(trial=trial, group=group, number=number, of_group=of, facts=facts, network=network)
            for number in range(len(of["flows"]))
        ]
        yield from _of_server(trial, of, sum(case.crossed_bytes for case in cases))
        for case in cases:
            where = f"flow {case.number} of group {group.name}: " if several else ""
            for fault in filter(None, (check(case) for check in CHECKS)):
                yield dataclasses.replace(fault, message=where + fault.message)
    if network.get("kernel_algorithm") is not None:
        # The kernel does not know the packets of a stack in user space from others (docs/security.md).
        yield from _beside_connections(trial, [group for group, _ in of_stack], facts)


# --- links


def _link_problems(setting: Setting, facts: Facts) -> Iterator[str]:
    network = setting.network
    for link, both in zip(network.links, facts["links"], strict=True):
        for way, direction in zip(WAYS, both, strict=True):
            yield from _direction_problems(setting, link, way, direction, facts)
    yield from scheduled.change_problems(network, facts)
    if network.bond is not None and facts["bond"] is not None:
        yield from bonded.problems(network.bond, network.links, facts["bond"])
    connected = [sum(_connected(flow, facts["detail"]) for flow in of["flows"]) for of in facts["groups"]]
    yield from splitting.problems(network, facts["splitters"], connected)
    yield from moves.problems(network, facts)
    for group, of in zip(network.flows, facts["groups"], strict=True):
        yield from _too_early(network, group, of, facts["elapsed_s"])


def _connected(flow: Facts, detail: Facts | None) -> bool:
    """Return whether a flow must have had a connection: it is the kernel's, or its client was served.

    A client that ended before it connected failed, and so says nothing about splitters.
    """
    if flow["client"] is None or (flow["complete"] and flow["client"]["exit_status"] == 0):
        return True
    arrived: int = crossed_bytes(detail) if detail else flow["arrived_bytes"] or 0
    return arrived >= _HANDSHAKE_BYTES


def _direction_problems(setting: Setting, link: Link, way: str, shown: Facts, facts: Facts) -> Iterator[str]:
    """Yield sentences about what a link's direction did that was not requested."""
    network = setting.network
    changes = network.changes(link, way, scheduled.looked_at_s(facts))
    last = changes[-1].direction if changes else link.direction(way)
    # The size of a queue changes if a change says so, not with the rate.
    resized = (change.direction for change in reversed(changes) if change.direction.queue != change.before.queue)
    bdp = setting.bdp_bytes(next(resized, link.direction(way)))
    lines = shaping.tc_lines(network, last, held=network.held(link, way), bdp=bdp)
    problems = [*shaping.problems(last, shown["qdiscs"], network.held(link, way))]
    problems += queue_options.problems(lines, shown["qdiscs"])
    problems += _beyond_rate(link.direction(way), changes, shown)
    if (unmatched := shown["unmatched"] or 0) > _MOST_UNMATCHED * (unmatched + (shown["delays"] or 0)):
        problems.append(f"{unmatched} packets that left the queue were not seen to enter it")
    counts = scheduled.behind_changes(facts, network.links.index(link), WAYS.index(way))
    starts_s = [flow["start_s"] for of in facts["groups"] if of["server"] for flow in of["flows"]]
    problems += scheduled.problems(
        link.direction(way), changes, shown, counts, facts["elapsed_s"], network.offload, starts_s
    )
    if shown["hop"] is not None:
        impaired = [c.direction.impairments for c in changes if c.direction.impairments != c.before.impairments]
        problems += impairing.problems([link.direction(way).impairments, *impaired], shown["hop"])
        out, came = queue_counts.root(shown["qdiscs"]).get("packets"), shown["hop"]["came"] + shown["hop"]["other"]
        # The hop ends before the kernel's counter is read.
        if out is not None and not 0 <= out - came <= _LAST_PACKETS:
            problems.append(f"{out} packets left the queue, but {came} reached the hop")
    yield from (f"{problem} ({link.name}, {way})" for problem in problems)


def _beyond_rate(direction: Direction, changes: Sequence[Change], shown: Facts) -> Iterator[str]:
    times: Sequence[float] = shown["looks"].get("t_s") or ()
    out: Sequence[int] = shown["looks"].get("out_bytes") or ()
    if direction.rate_mbps is None or len(times) <= 1:
        return
    carried = carried_bytes(direction, changes, times[0], times[-1])
    most = carried * _LINK_SLACK + _LINK_SLACK_BYTES
    if out[-1] - out[0] > most + (direction.burst_bytes or 0):
        mean_mbps = 8 * carried / (times[-1] - times[0]) / 1e6
        yield f"{out[-1] - out[0]} bytes left the queue in {times[-1] - times[0]:.3g} s, at {mean_mbps:g} Mbit/s"


def _too_early(network: Network, group: Flows, of: Facts, elapsed_s: float) -> Iterator[str]:
    """Yield sentences about round trips shorter than the least sum of the delays on the path: a delay was missing."""
    least_ms = network.least_rtt_ms(group, elapsed_s)
    for number, rtt_ms in enumerate(flow["min_rtt_ms"] for flow in of["flows"]):
        if rtt_ms is not None and rtt_ms < least_ms - _STAMP_MS - _OFF_MS * len(network.links):
            yield (
                f"flow {number} of group {group.name} had a round trip of {rtt_ms:g} ms instead of {least_ms:g} or more"
            )


# --- programs


def _of_kernel(trial: Trial, group: Flows, of: Facts) -> Iterator[TrialFault]:
    algorithm = group.algorithm or trial.scheme.algorithm
    for flow in of["flows"]:
        if why := congestion.not_as_asked(algorithm, flow["congestion_control"] if flow["acked_bytes"] else None):
            yield TrialFault(f"group {group.name}: {why}", Outcome.UNSUPPORTED)
            return


def _of_server(trial: Trial, of: Facts, crossed: int) -> Iterator[TrialFault]:
    """Yield what is wrong with a group's programs. `crossed`: the bytes that arrived at its clients."""
    stack, server = trial.scheme.stack, of["server"]
    clients = [flow["client"] for flow in of["flows"]]
    for role, process in (("server", server), *(("client", client) for client in clients)):
        if process is None or process["exit_status"] != NOT_OFFERED:
            continue
        if crossed >= _HANDSHAKE_BYTES:
            # A stack knows before the transfer whether it offers an algorithm, however the transfer goes.
            how = f"ended with status {NOT_OFFERED} during the transfer"
            yield _failure(f"the {role} of {stack} {how}{said(process)}", process)
        else:
            yield TrialFault(f"{trial.scheme.not_offered}{said(process)}", Outcome.UNSUPPORTED)
    if server["exit_status"] is not None:
        died = "died with {} during the transfer" if of["ready"] else "ended with {} before it was ready"
        why = f"the server of {stack} {died.format(status(server))}{said(server)}"
        yield _failure(why, server) if of["ready"] else TrialFault(why)
    elif not of["ready"]:
        yield TrialFault(f"the server of {stack} did not bind CC_PORT within {READY_S} s{said(server)}")


def _beside_connections(trial: Trial, groups: Sequence[Flows], facts: Facts) -> Iterator[TrialFault]:
    splitters, detail = trial.setting.network.splitters, facts["detail"]
    sent = facts["sent"]
    if detail:
        sent = [beside.sent(detail["counters"], node) for node in ("server", *(["router"] if splitters else []))]
    several = len(groups) > 1
    servers = [f"the server of {trial.scheme.stack}" + (f" (group {group.name})" * several) for group in groups]
    names = [*servers, *(f"the splitter at {splitter.node}" for splitter in splitters)]
    for name, sent_by_it in zip(names, sent, strict=True):
        # A splitter's work is to open connections.
        if why := beside.problem(sent_by_it) or (beside.opened(sent_by_it) if name in servers else None):
            yield TrialFault(f"{name} {why}")


def ended_silent(trial: Trial, facts: Facts) -> bool:
    """Return whether the guest ended a trial before its time, because no packet came any more."""
    return bool(facts["timed_out"]) and facts["elapsed_s"] < trial.setting.timeout_s


# --- the checks of a flow; each may rely on those before it in CHECKS


def _nothing_transferred(case: Case) -> TrialFault | None:
    if case.completed or case.lasted_s <= _LONG_ENOUGH_S or case.trial.setting.network.interferes(case.group):
        return None
    if case.crossed_bytes >= (_HANDSHAKE_BYTES if case.detail else 1):
        return None
    return _failure(f"{case.stack} transferred nothing in {case.lasted_s:g} s of virtual time")


def _stood_still(case: Case) -> TrialFault | None:
    if not case.facts["timed_out"] or case.completed or case.excused:
        return None
    if case.detail and ended_silent(case.trial, case.facts):
        why = f"stood still after {case.crossed_bytes} bytes: no packet came for {SILENCE_S} s"
        return _failure(f"{case.stack} {why}")
    if case.detail:
        half_time = case.detail["half_time"]
        still = half_time and case.crossed_bytes - crossed_bytes(case.detail, half_time) < _HANDSHAKE_BYTES
    else:
        early = [n or 0 for at_s, n in case.looks if at_s < case.lasted_s / 2]
        still = case.seen["end_s"] is None and early and (case.looks[-1][1] or 0) - early[-1] < _HANDSHAKE_BYTES
    how = f"stood still after {case.crossed_bytes} bytes, for half of {case.trial.setting.timeout_s:g} s"
    return _failure(f"{case.stack} {how}") if still else None


def _client_did_not_end(case: Case) -> TrialFault | None:
    setting = case.trial.setting
    if case.completed or not case.detail or case.crossed_bytes <= _ALL_CAME * setting.transfer_bytes:
        return None
    # Many duplicates cross the link, too, so a transfer that still goes on may lack a part of its body.
    if _last_bytes(case, case.detail["sampled"]["trace"]) >= _HANDSHAKE_BYTES:
        return None
    how = f"did not end within {setting.timeout_s:g} s, though all bytes had arrived"
    return _failure(f"the client of {case.stack} {how}")


def _last_bytes(case: Case, trace: Facts) -> float:
    """Return how many bytes came in the last tenth of a transfer's time: as the kernel's TCP or else the queue says."""
    for name in ("bytes_acked", "queue_out_bytes"):
        points = zip(trace.get("t_s", ()), trace.get(name, ()), strict=False)
        counted = [(at_s < 0.9 * case.lasted_s, count) for at_s, count in points if count is not None]
        if early := [count for is_early, count in counted if is_early]:
            return float(counted[-1][1] - early[-1])
    return math.inf


def _client_failed(case: Case) -> TrialFault | None:
    if not case.completed:
        return None
    who = f"the client of {case.stack}"
    if case.client["exit_status"] != 0:
        why = f"{who} ended with {status(case.client)}{said(case.client)}"
        return TrialFault(why) if case.excused else _failure(why, case.client)
    if case.wanted_bytes is None and not case.group.requests:
        return TrialFault(f"{who} ended before its time was up")
    return None


def _client_lies(case: Case) -> TrialFault | None:
    if not case.completed:
        return None
    report = case.report or {}
    why = _lie(case) or connection_facts.lie(case.group, report) or request_facts.lie(case.group, report)
    return TrialFault(f"the client of {case.stack} {why}") if why else None


def _not_supported(case: Case) -> TrialFault | None:
    """Return what the client was asked for and the server does not support; None if there is nothing."""
    # Nobody asked another client to migrate, so its word would be a way out of a cell that goes badly.
    if not case.completed or case.report is None or case.group.client.migrate_s is None:
        return None
    why = client_report.why_unsupported(case.report)
    return TrialFault(f"the server of {case.stack} {why}", Outcome.UNSUPPORTED) if why else None


def _other_algorithm(case: Case) -> TrialFault | None:
    name = case.network.get("kernel_algorithm")
    if why := congestion.not_as_set(name, case.congestion_control, case.facts["elapsed_s"]):
        return TrialFault(f"the server of {case.stack} {why}")
    # If the harness chose the kernel's algorithm, a wrong version is not the stack's fault.
    why = congestion.not_as_asked(case.trial.scheme.algorithm, case.congestion_control) if name else None
    return TrialFault(why, Outcome.UNSUPPORTED) if why else None


def _passed_by_the_proxy(case: Case) -> TrialFault | None:
    if not case.detail or not case.trial.setting.network.splitters:
        return None
    if difference(case.detail, "router", "Tcp.ActiveOpens") != 0:
        return None
    if difference(case.detail, "client", "Tcp.ActiveOpens") == 0:
        return None  # the client never tried
    return TrialFault("the connection did not pass through the proxy")


def _several_connections(case: Case) -> TrialFault | None:
    # This holds for TCP only: a QUIC stack's programs may talk to each other over TCP, and the kernel does not know the
    # stack's own connections.
    if not case.detail or not case.detail["sampled"]["tcp_info"]:
        return None
    opened, accepted = (difference(case.detail, "client", f"Tcp.{how}Opens") or 0 for how in ("Active", "Passive"))
    if opened > 1:
        return TrialFault(f"the client of {case.stack} opened {opened} connections instead of one")
    return TrialFault(f"the client of {case.stack} accepted connections ({accepted})") if accepted else None


#: The first check that finds a fault names the cause: later ones may fail because of it.
CHECKS: tuple[Callable[[Case], TrialFault | None], ...] = (
    _passed_by_the_proxy,
    _nothing_transferred,
    _stood_still,
    _client_did_not_end,
    _client_failed,
    _client_lies,
    _not_supported,
    _other_algorithm,
    _several_connections,
)


def _lie(case: Case) -> str | None:
    """Return why the client's report cannot be believed, as the end of a sentence; None if it can."""
    printed, network = case.client["stdout"], case.trial.setting.network
    lines = sum('"completion_s"' in line for line in printed.splitlines())
    if lines > 1:
        return f"printed {lines} result lines"
    if case.report is None:
        return f"printed no valid result line: {client_report.tail(printed) or 'nothing'}"
    size, seconds = case.report["bytes"], case.report["completion_s"]
    wanted, elapsed_s, crossed = case.wanted_bytes, case.lasted_s, case.crossed_bytes
    rate = (network.highest_mbps(case.group) or case.trial.setting.cell.bandwidth_mbps) * 1e6
    for kept, why in (
        (size == wanted, f"reports {size} bytes, but {wanted} were requested"),
        (seconds > 0, f"reports a completion time of {seconds} s"),
        (crossed >= size, f"reports {size} bytes, but only {crossed} crossed its link"),
        (
            abs(elapsed_s - seconds) <= _CLOCK_SLACK_S + 0.02 * elapsed_s,
            f"reports {seconds:.3f} s, but the harness saw it run for {elapsed_s:.3f} s",
        ),
    ):
        if not kept:
            return why
    burst_bytes = sum(link.direction(way).burst_bytes or 0 for link, way in network.towards_client(case.group))
    if 8 * (size - _BURST_BYTES - burst_bytes) / seconds > rate * _RATE_SLACK:
        return f"reports {8 * size / seconds / 1e6:.3g} Mbit/s over a link of {rate / 1e6:g} Mbit/s"
    exchange, rtt_s = case.detail["exchange"] if case.detail else None, case.trial.setting.cell.rtt_s
    return handshake.too_late(case.report, case.looks) or handshake.lie(case.report, exchange, rtt_s)


def difference(detail: Facts, *path: str) -> int | None:
    """Return by how much a counter grew; None if it was not read."""
    before, after = detail["counters"]["before"], detail["counters"]["after"]
    for name in path:
        before, after = (before or {}).get(name), (after or {}).get(name)
        if before is None or after is None:
            return None
    grown: int = after - before
    return grown


def crossed_bytes(detail: Facts, by: Facts | None = None) -> int:
    """Return the bytes that arrived at the client's interfaces, in all or until the counters `by` were read."""
    before = detail["counters"]["before"]["interfaces"]["client"]
    after = by or detail["counters"]["after"]["interfaces"]["client"]
    return sum(counters["rx_bytes"] - before[name]["rx_bytes"] for name, counters in after.items())
