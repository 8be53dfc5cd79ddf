"""From the facts that a guest reports to a Measurement. The harness believes no adapter.

The client's byte count is checked against the interface counters, its time against the harness's own
clock, its goodput against the link's rate. A lie, a crash or a server that dies is an error that says so.
"""

import json

from conformance.model.emulation import congestion
from conformance.model.trial import Measurement, Outcome

#: the client's clock may start and stop this much later and earlier than the harness's, plus 2 %
_CLOCK_SLACK_S = 0.25
#: goodput above the link's rate by more than its token bucket can explain
_RATE_SLACK = 1.02
_BURST_BYTES = 65_536
_TAIL = 300
_CALIBRATION = ("rate_mbps", "delays_ms", "loss_sent", "loss_lost")
#: what crosses the link before the first byte of the body, at most
_HANDSHAKE_BYTES = 20_000


def _tail(text):
    """The last words of untrusted output, on one line, without control characters."""
    clean = "".join(c if c.isprintable() else " " for c in text.strip())
    return " ".join(clean.split())[-_TAIL:]


def _status(process):
    why = " (its guest's memory ran out)" if process.get("ran_out_of_memory") else ""
    return f"status {process['exit_status']}{why}"


def _said(process):
    words = _tail(process["stderr"]) or _tail(process["stdout"])
    return f": {words}" if words else ""


def _round(value, digits=6):
    return None if value is None else round(value, digits)


def measurement(trial, facts, network, host):
    """Judge one trial's facts (conformance/guest/trial.py) for credibility, and derive the metrics.

    `network` is the guest's network event (sysctls, offload, kernel as read back), `host` what depends
    on the machine.
    """

    def failed(outcome, message):
        return Measurement(trial=trial, outcome=outcome, message=message, host=host)

    algorithm, stack = trial.scheme.algorithm, trial.scheme.stack
    if facts.get("fault"):
        return failed(Outcome.ERROR, facts["fault"])
    server, client, proxy = facts["server"], facts["client"], facts.get("proxy")
    if proxy is not None and proxy["exit_status"] is not None:
        # First: whatever else went wrong, went wrong because of that.
        return failed(Outcome.ERROR, f"the proxy died with {_status(proxy)} during the transfer{_said(proxy)}")
    for role, process in (("server", server), ("client", client)):
        if process is not None and process["exit_status"] == 127:
            if facts["ready"] and _crossed_bytes(facts) >= _HANDSHAKE_BYTES:
                # Who does not offer an algorithm knows so before the transfer, however that goes.
                return failed(Outcome.ERROR, f"the {role} of {stack} ended with status 127 during the transfer")
            return failed(Outcome.UNSUPPORTED, f"{stack} does not offer {algorithm}{_said(process)}")
    if not facts["ready"]:
        gone = server["exit_status"] is not None
        how = f"ended with {_status(server)} before it was ready" if gone else "was never ready"
        return failed(Outcome.ERROR, f"the server of {stack} {how}{_said(server)}")
    if server["exit_status"] is not None:
        return failed(
            Outcome.ERROR,
            f"the server of {stack} died with {_status(server)} during the transfer{_said(server)}",
        )
    metrics, evidence = _metrics(trial, facts), _evidence(facts, network)
    other = _other_transfer(stack, facts, network)
    if facts["timed_out"]:
        crossed, timeout_s = _crossed_bytes(facts), trial.setting.timeout_s
        if crossed < _HANDSHAKE_BYTES:
            return failed(Outcome.ERROR, f"{stack} transferred nothing in {timeout_s:g} s of virtual time")
        if crossed > trial.setting.transfer_bytes:
            return failed(
                Outcome.ERROR, f"the client of {stack} did not end within {timeout_s:g} s, though all bytes had come"
            )
        if facts["half_time"] and crossed - _crossed_bytes(facts, facts["half_time"]) < _HANDSHAKE_BYTES:
            return failed(Outcome.ERROR, f"{stack} stood still after {crossed} bytes, for half of {timeout_s:g} s")
        if other:
            return failed(Outcome.ERROR, other)
        bits = 8 * trial.setting.transfer_bytes
        bound = bits / (trial.setting.timeout_s * trial.setting.cell.bandwidth_mbps * 1e6)
        metrics["utilization"] = _round(bound)
        return Measurement(
            trial=trial, outcome=Outcome.TIMEOUT, metrics=metrics, evidence=evidence, host=host,
            message=f"the transfer took longer than {trial.setting.timeout_s:g} s of virtual time",
        )  # fmt: skip
    if client["exit_status"] != 0:
        return failed(Outcome.ERROR, f"the client of {stack} ended with {_status(client)}{_said(client)}")
    report, lie = _client_report(trial, facts)
    if lie:
        return failed(Outcome.ERROR, f"the client of {stack} {lie}")
    if other:
        return failed(Outcome.ERROR, other)
    goodput = 8 * report["bytes"] / report["completion_s"] / 1e6
    metrics.update(
        bytes=facts["transfer_bytes"],
        completion_s=_round(report["completion_s"]),
        handshake_s=_round(report["handshake_s"]),
        goodput_mbps=_round(goodput),
        utilization=_round(goodput / trial.setting.cell.bandwidth_mbps),
    )
    return Measurement(trial=trial, outcome=Outcome.OK, metrics=metrics, evidence=evidence, host=host)


def _other_transfer(stack, facts, network):
    """Why what was measured is not one transfer with the algorithm asked for, or None."""
    sampled = facts["sampled"]
    why = congestion.not_as_set(network.get("kernel_algorithm"), sampled["congestion_control"], facts["elapsed_s"])
    if why:
        return f"the server of {stack} {why}"
    passed = _difference(facts, "router", "Tcp.ActiveOpens")
    if facts.get("proxy") is not None and passed == 0:
        return "the connection did not pass through the proxy"
    # Of TCP only: a QUIC stack's programs may talk to each other by TCP, and its connections are not the kernel's.
    opened = _difference(facts, "client", "Tcp.ActiveOpens") if sampled["tcp_info"] else None
    if opened is not None and opened > 1:
        return f"the client of {stack} opened {opened} connections in the place of one"
    return None


def _refuse(constant):
    raise ValueError(constant)


def _once(pairs):
    """A JSON object whose keys occur once each: of two, which one counts?"""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def _client_report(trial, facts):
    """(what the client reports, None), or (None, why it is not to be believed)."""
    lines = facts["client"]["stdout"].strip().splitlines()
    results = sum('"completion_s"' in line for line in lines)
    if results > 1:
        return None, f"printed {results} result lines"
    try:
        report = json.loads(lines[-1], parse_constant=_refuse, object_pairs_hook=_once)
        size, seconds, handshake = (report[k] for k in ("bytes", "completion_s", "handshake_s"))
        if not _is_number(size) or not _is_number(seconds) or not (handshake is None or _is_number(handshake)):
            raise ValueError
        if seconds > 0 and handshake is not None and not 0 <= handshake <= seconds:
            raise ValueError
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None, f"printed no valid result line: {_tail(facts['client']['stdout']) or 'nothing'}"
    wanted = facts["transfer_bytes"]
    if size != wanted:
        return None, f"reports {size} bytes, {wanted} were to be sent"
    if seconds <= 0:
        return None, f"reports a completion time of {seconds} s"
    crossed = _crossed_bytes(facts)
    if crossed < wanted:
        return None, f"reports {size} bytes, but only {crossed} crossed its link"
    elapsed = facts["elapsed_s"]
    if abs(elapsed - seconds) > _CLOCK_SLACK_S + 0.02 * elapsed:
        return None, f"reports {seconds:.3f} s, the harness saw it run for {elapsed:.3f} s"
    rate = trial.setting.cell.bandwidth_mbps * 1e6
    if 8 * (size - _BURST_BYTES) / seconds > rate * _RATE_SLACK:
        return None, f"reports {8 * size / seconds / 1e6:.3g} Mbit/s over a link of {rate / 1e6:g}"
    return report, None


def _difference(facts, *path):
    before, after = facts["counters"]["before"], facts["counters"]["after"]
    for name in path:
        before, after = before.get(name), after.get(name)
        if before is None or after is None:
            return None
    return after - before


def _crossed_bytes(facts, by=None):
    """Bytes that came in at the client's interfaces, in all or until the counters `by` were read."""
    before = facts["counters"]["before"]["interfaces"]["client"]
    after = by or facts["counters"]["after"]["interfaces"]["client"]
    return sum(counters["rx_bytes"] - before[name]["rx_bytes"] for name, counters in after.items())


def _metrics(trial, facts):
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
    }


def _evidence(facts, network):
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
        **({"proxy": _proxy(facts)} if facts.get("proxy") else {}),
    }


def _proxy(facts):
    """What is known of a proxy's sending half: the kernel's words on its socket towards the client."""
    info = dict(facts["sampled"]["proxy"] or {})
    info.pop("bbr", None)
    return {"tcp_info": info or None, "connections": _difference(facts, "router", "Tcp.ActiveOpens")}
