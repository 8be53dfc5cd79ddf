"""Turn the facts that a guest reports about a trial into a Measurement, without trusting any adapter.

The client's byte count is checked against the interface counters, its time against the harness's own clock, and its
goodput against the link's rate. A lie, a crash or a server that dies makes the trial an error, with a message that says
so. CHECKS lists the checks in order.
"""

import collections.abc
import dataclasses
import functools
import typing

from conformance.model.emulation import beside, client_report, congestion, handshake
from conformance.model.trials.trial import Measurement, Outcome, Trial

#: the client's clock may start this much later, and stop this much earlier, than the harness's, in s, plus 2 %
_CLOCK_SLACK_S = 0.25
#: goodput beyond this multiple of the link's rate is more than the rate and its token bucket can explain
_RATE_SLACK = 1.02
BURST_BYTES = 65_536
_TAIL = 300
_CALIBRATION = ("rate_mbps", "delays_ms", "loss_sent", "loss_lost")
#: if the bytes on the wire, with headers and duplicates, exceed this multiple of the body, all of it has arrived
_ALL_CAME = 1.1
#: the most bytes that cross the link before the first byte of the body
_HANDSHAKE_BYTES = 20_000
#: exit status of a program that does not offer an algorithm
NOT_OFFERED = 127

#: JSON that a guest reports about a trial (reader.in_detail()), its network or a process
Facts = collections.abc.Mapping[str, typing.Any]


def measurement(trial: Trial, facts: Facts, network: Facts, host: Facts) -> Measurement:
    """Judge one trial's facts (lab/reader.py: in_detail) for credibility, and derive the metrics.

    `network` is the guest's network event (sysctls, offload, kernel as read back), and `host` is what depends on the
    machine.
    """
    trace = facts["sampled"]["trace"] if facts["ready"] else {}
    looks = list(zip(trace.get("t_s", ()), trace.get("bytes_acked", ()), strict=True))
    case = Case(trial=trial, facts=facts, network=network, looks=looks)
    fault = next(filter(None, (check(case) for check in CHECKS)), None)
    if fault:
        return Measurement(trial=trial, outcome=fault.outcome, message=fault.message, host=dict(host))
    timed_out, message = facts["timed_out"], None
    if timed_out:
        message = f"the transfer took longer than {trial.setting.timeout_s:g} s of virtual time"
    return Measurement(
        trial=trial,
        outcome=Outcome.TIMEOUT if timed_out else Outcome.OK,
        message=message,
        metrics={**_metrics(facts), **(_bound(trial) if timed_out else _completed(case))},
        evidence=_evidence(trial, facts, network),
        host=dict(host),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A trial and what the guest reports of it."""

    trial: Trial
    facts: Facts
    network: Facts
    #: the highest rate that the flow's path ever has, if that is not the cell's bandwidth
    most_mbps: float | None = None
    #: bytes that may pass in one burst beyond that rate
    burst_bytes: int = BURST_BYTES
    #: (seconds since the client's process started, bytes that had come)
    looks: collections.abc.Sequence[tuple[float, float | None]] = ()

    @property
    def stack(self) -> str:
        return self.trial.scheme.stack

    @property
    def server(self) -> Facts:
        process: Facts = self.facts["server"]
        return process

    @property
    def client(self) -> Facts:
        process: Facts = self.facts["client"]
        return process

    @property
    def completed(self) -> bool:
        """Whether the client ended by itself, so that there is a report to check."""
        return not self.facts["timed_out"]

    @functools.cached_property
    def crossed_bytes(self) -> int:
        """The bytes that arrived at the client's interfaces."""
        return _crossed_bytes(self.facts)

    @functools.cached_property
    def report(self) -> Facts | None:
        """The client's result line: "bytes", "completion_s", "handshake_s"; None if there is no valid one."""
        return client_report.report_of(self.client["stdout"])

    @functools.cached_property
    def result_lines(self) -> int:
        """The number of lines that look like results."""
        return sum('"completion_s"' in line for line in self.client["stdout"].splitlines())


@dataclasses.dataclass(frozen=True)
class Fault:
    """Why a trial says nothing about the stack's congestion control."""

    message: str
    outcome: Outcome = Outcome.ERROR


# --- the checks; each may rely on those before it in CHECKS


def _not_carried_out(case: Case) -> Fault | None:
    return Fault(case.facts["fault"]) if case.facts.get("fault") else None


def _algorithm_not_offered(case: Case) -> Fault | None:
    for role, process in (("server", case.facts["server"]), ("client", case.facts["client"])):
        if process is None or process["exit_status"] != NOT_OFFERED:
            continue
        if case.facts["ready"] and case.crossed_bytes >= _HANDSHAKE_BYTES:
            # A stack knows before the transfer whether it offers an algorithm, however the transfer goes.
            return Fault(f"the {role} of {case.stack} ended with status {NOT_OFFERED} during the transfer")
        why = f"{case.stack} does not offer {case.trial.scheme.algorithm}{said(process)}"
        return Fault(why, Outcome.UNSUPPORTED)
    return None


def _server_not_ready(case: Case) -> Fault | None:
    if case.facts["ready"]:
        return None
    gone = case.server["exit_status"] is not None
    how = f"ended with {status(case.server)} before it was ready" if gone else "was never ready"
    return Fault(f"the server of {case.stack} {how}{said(case.server)}")


def _server_died(case: Case) -> Fault | None:
    if case.server["exit_status"] is None:
        return None
    return Fault(f"the server of {case.stack} died with {status(case.server)} during the transfer{said(case.server)}")


def _nothing_transferred(case: Case) -> Fault | None:
    if case.completed or case.crossed_bytes >= _HANDSHAKE_BYTES:
        return None
    return Fault(f"{case.stack} transferred nothing in {case.trial.setting.timeout_s:g} s of virtual time")


def _client_did_not_end(case: Case) -> Fault | None:
    setting = case.trial.setting
    if case.completed or case.crossed_bytes <= _ALL_CAME * setting.transfer_bytes:
        return None
    return Fault(f"the client of {case.stack} did not end within {setting.timeout_s:g} s, though all bytes had arrived")


def _stood_still(case: Case) -> Fault | None:
    crossed, half_time = case.crossed_bytes, case.facts["half_time"]
    if case.completed or not half_time or crossed - _crossed_bytes(case.facts, half_time) >= _HANDSHAKE_BYTES:
        return None
    timeout_s = case.trial.setting.timeout_s
    return Fault(f"{case.stack} stood still after {crossed} bytes, for half of {timeout_s:g} s")


def _client_failed(case: Case) -> Fault | None:
    if not case.completed or case.client["exit_status"] == 0:
        return None
    return Fault(f"the client of {case.stack} ended with {status(case.client)}{said(case.client)}")


def _client_lies(case: Case) -> Fault | None:
    why = lie(case) if case.completed else None
    return Fault(f"the client of {case.stack} {why}") if why else None


def not_supported(case: Case) -> Fault | None:
    """Return what the client was asked for and the server does not support; None if there is nothing."""
    why = client_report.why_unsupported(case.report) if case.completed and case.report else None
    return Fault(f"the server of {case.stack} {why}", Outcome.UNSUPPORTED) if why else None


def _other_algorithm(case: Case) -> Fault | None:
    name, found = case.network.get("kernel_algorithm"), case.facts["sampled"]["congestion_control"]
    why = congestion.not_as_set(name, found, case.facts["elapsed_s"])
    return Fault(f"the server of {case.stack} {why}") if why else None


def _passed_by_the_proxy(case: Case) -> Fault | None:
    if not case.trial.setting.network.splitters or _difference(case.facts, "router", "Tcp.ActiveOpens") != 0:
        return None
    return Fault("the connection did not pass through the proxy")


def _several_connections(case: Case) -> Fault | None:
    # This holds for TCP only: a QUIC stack's programs may talk to each other over TCP, and the kernel does not know the
    # stack's own connections.
    if not case.facts["sampled"]["tcp_info"]:
        return None
    opened = _difference(case.facts, "client", "Tcp.ActiveOpens")
    if opened is None or opened <= 1:
        return None
    return Fault(f"the client of {case.stack} opened {opened} connections instead of one")


def _beside_the_connection(case: Case) -> Fault | None:
    # The kernel does not know the packets of a stack in user space from others (docs/security.md).
    if case.network.get("kernel_algorithm") is None:
        return None
    nodes = {
        "server": f"the server of {case.stack}",
        **({"router": "the proxy"} if case.trial.setting.network.splitters else {}),
    }
    for node, name in nodes.items():
        if why := beside.problem(beside.sent(case.facts["counters"], node)):
            return Fault(f"{name} {why}")
    return None


#: The first check that finds a fault names the cause: later ones may fail because of it.
CHECKS: tuple[collections.abc.Callable[[Case], Fault | None], ...] = (
    _not_carried_out,
    _algorithm_not_offered,
    _server_not_ready,
    _server_died,
    _nothing_transferred,
    _stood_still,
    _client_did_not_end,
    _client_failed,
    _client_lies,
    not_supported,
    _other_algorithm,
    _passed_by_the_proxy,
    _several_connections,
    _beside_the_connection,
)


def lie(case: Case) -> str | None:
    """Return why the client's report cannot be believed, as the end of a sentence; None if it can."""
    if case.result_lines > 1:
        return f"printed {case.result_lines} result lines"
    if case.report is None:
        return f"printed no valid result line: {_tail(case.client['stdout']) or 'nothing'}"
    size, seconds = case.report["bytes"], case.report["completion_s"]
    wanted, elapsed_s = case.facts["transfer_bytes"], case.facts["elapsed_s"]
    rate = (case.most_mbps or case.trial.setting.cell.bandwidth_mbps) * 1e6
    for kept, why in (
        (size == wanted, f"reports {size} bytes, but {wanted} were requested"),
        (seconds > 0, f"reports a completion time of {seconds} s"),
        (case.crossed_bytes >= wanted, f"reports {size} bytes, but only {case.crossed_bytes} crossed its link"),
        (
            abs(elapsed_s - seconds) <= _CLOCK_SLACK_S + 0.02 * elapsed_s,
            f"reports {seconds:.3f} s, but the harness saw it run for {elapsed_s:.3f} s",
        ),
    ):
        if not kept:
            return why
    if 8 * (size - case.burst_bytes) / seconds > rate * _RATE_SLACK:
        return f"reports {8 * size / seconds / 1e6:.3g} Mbit/s over a link of {rate / 1e6:g} Mbit/s"
    rtt_s = case.trial.setting.cell.rtt_s
    return handshake.too_late(case.report, case.looks) or handshake.lie(case.report, case.facts["exchange"], rtt_s)


# --- wording


def _tail(text: str) -> str:
    """Return the last words of untrusted output, on one line, without control characters."""
    clean = "".join(c if c.isprintable() else " " for c in text.strip())
    return " ".join(clean.split())[-_TAIL:]


def status(process: Facts) -> str:
    why = " (its guest's memory ran out)" if process.get("ran_out_of_memory") else ""
    return f"status {process['exit_status']}{why}"


def said(process: Facts) -> str:
    words = _tail(process["stderr"]) or _tail(process["stdout"])
    return f": {words}" if words else ""


# --- metrics and evidence


def _round(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(value, digits)


def _bound(trial: Trial) -> dict[str, float | None]:
    """Return the metrics of a transfer that did not end in time: an upper bound of its utilization."""
    bits = 8 * trial.setting.transfer_bytes
    return {"utilization": _round(bits / (trial.setting.timeout_s * trial.setting.cell.bandwidth_mbps * 1e6))}


def _completed(case: Case) -> dict[str, float | None]:
    """Return the metrics from a report that passed the checks."""
    report = case.report or {}
    goodput = 8 * report["bytes"] / report["completion_s"] / 1e6
    return {
        "bytes": case.facts["transfer_bytes"],
        "completion_s": _round(report["completion_s"]),
        "handshake_s": _round(report["handshake_s"]),
        "goodput_mbps": _round(goodput),
        "utilization": _round(goodput / case.trial.setting.cell.bandwidth_mbps),
    }


def _difference(facts: Facts, *path: str) -> int | None:
    """Return by how much a counter grew; None if it was not read."""
    before, after = facts["counters"]["before"], facts["counters"]["after"]
    for name in path:
        before, after = before.get(name), after.get(name)
        if before is None or after is None:
            return None
    grown: int = after - before
    return grown


def _crossed_bytes(facts: Facts, by: Facts | None = None) -> int:
    """Return the bytes that arrived at the client's interfaces, in all or until the counters `by` were read."""
    before = facts["counters"]["before"]["interfaces"]["client"]
    after = by or facts["counters"]["after"]["interfaces"]["client"]
    return sum(counters["rx_bytes"] - before[name]["rx_bytes"] for name, counters in after.items())


def _metrics(facts: Facts) -> dict[str, float | None]:
    """Return the metrics that every transfer has, with None for those that only a completed one has."""
    sampled = facts["sampled"]
    info = sampled["tcp_info"]
    return {
        "bytes": None,
        "completion_s": None,
        "handshake_s": None,
        "goodput_mbps": None,
        "utilization": None,
        "min_rtt_ms": info["min_rtt_ms"] if info else None,
        "retransmitted_segments": _difference(facts, "server", "Tcp.RetransSegs") if info else None,
        "sent_segments": _difference(facts, "server", "Tcp.OutSegs") if info else None,
        "queue_mean_bytes": sampled["queue_mean_bytes"],
        "queue_peak_bytes": sampled["queue_peak_bytes"],
        "queue_peak_packets": sampled["queue_peak_packets"],
        "virtual_s": facts["virtual_s"],
        **_bursts(facts.get("bursts")),
    }


def _bursts(seen: Facts | None) -> dict[str, float | None]:
    """Return the metrics of bursts: none if bursts were not watched, and None if the capture lacks packets."""
    if seen is None:
        return {}
    names = {"back_to_back_packets": "usual", "longest_burst_packets": "longest"}
    return {name: None if seen["unseen"] else seen[of] for name, of in names.items()}


def _evidence(trial: Trial, facts: Facts, network: Facts) -> dict[str, typing.Any]:
    interfaces = {
        node: {
            name: {counter: value - before[name][counter] for counter, value in counters.items()}
            for name, counters in after.items()
        }
        for node, after in facts["counters"]["after"]["interfaces"].items()
        for before in (facts["counters"]["before"]["interfaces"][node],)
    }
    return {
        "kernel_release": network["kernel"],
        "sysctls": network["sysctls"],
        "offload": network["offload"],
        "qdiscs": facts["qdiscs"],
        "interfaces": interfaces,
        "snmp": {
            side: {name: _difference(facts, side, name) for name in facts["counters"]["after"][side]}
            for side in ("server", "client", "router")
            if facts["counters"]["after"].get(side) is not None
        },
        "tcp_info": facts["sampled"]["tcp_info"],
        "congestion_control": congestion.describe(facts["sampled"]["congestion_control"]),
        "trace": facts["sampled"]["trace"],
        "calibration": [{name: seen[name] for name in _CALIBRATION} for seen in network["calibration"]],
        **({"proxy": _proxy(facts)} if trial.setting.network.splitters else {}),
    }


def _proxy(facts: Facts) -> dict[str, typing.Any]:
    """Return what the kernel says about a proxy's sending half, its socket towards the client."""
    info = dict(facts["sampled"]["proxy"] or {})
    info.pop("bbr", None)
    return {"tcp_info": info or None, "connections": _difference(facts, "router", "Tcp.ActiveOpens")}
