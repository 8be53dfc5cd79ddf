"""Functions that make model values, with defaults for all that a test does not care about."""

import copy
import dataclasses
import functools
import json
import math
import threading
import types

import click.testing
import pytest
import rich.console
from hypothesis import strategies as st

from conformance.catalogue import documents, own_kind
from conformance.model.errors import UserError
from conformance.model.judging import session
from conformance.model.judging.verdict import ask
from conformance.model.judging.zone import Basis, Interval, Margin, Zone, hull
from conformance.model.networks.links import WAYS
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting
from conformance.model.split.split_rates import Rates
from conformance.model.trials.trial import Measurement, Outcome, Scheme, Trial
from conformance.results import store

CELL = Cell(10, 20, 1)


def known_rates(rates):
    """Return the Rates of {cell: Mbit/s} that are known exactly."""
    return Rates(low=rates, high=rates)


def judge_zones(held, family=1):
    """Judge [(zone, {place: measurements})] as lines of files, in one family; return a ZoneVerdict of each zone."""
    lines = {
        ask(zone, made[0].trial.setting, made[0].trial.scheme.algorithm): {made[0].trial.setting: made}
        for zone, measured in held
        for made in measured.values()
    }
    found = session.by_zone(session.stored(lines, family))
    return [found[zone.id] for zone, _ in held]


def zone_verdicts(asked, measured):
    """Return {zone's id: ZoneVerdict} of a plan's questions that {key: measurements} answer, settled."""

    def source(plan):
        return (one for key, made in measured.items() for one in plan.judged(key, made))

    return session.by_zone(session.Session(plan=asked, confirms=False).findings(source))


def setting(cell=CELL, **overrides):
    return documents.profile("atc25", cell, **overrides) if overrides else _usual(cell)


@functools.cache  # tests make tens of thousands of measurements, and a setting takes a millisecond
def _usual(cell):
    return documents.profile("atc25", cell)


def changed(setting, **changes):
    """Return what a setting's profile would say with other values."""
    return Setting.of_form(dataclasses.replace(setting.cell_form, **changes))


def scheme(algorithm="cubic", **changes):
    fields = {
        "algorithm": algorithm, "stack": "linux-tcp", "stack_version": "v1", "stack_digest": "5" * 16,
        "kernel": "default", "kernel_release": "6.12.0", "kernel_digest": "6" * 16,
    }  # fmt: skip
    return Scheme(**{**fields, **changes})


def trial(seed=1, cell=CELL, algorithm="cubic", lab_digest="7" * 16, **scheme_changes):
    return Trial(
        setting=setting(cell),
        scheme=scheme(algorithm, **scheme_changes),
        seed=seed,
        room="virtual",
        lab_digest=lab_digest,
    )


def trial_at(setting, seed=1, of=None):
    """Return a trial of a setting; `of`: its scheme."""
    return Trial(setting=setting, scheme=of or scheme(), seed=seed, room="virtual", lab_digest="7" * 16)


def stored(path, measurements):
    """Write a results file that holds these measurements, and return its path."""
    kept = store.Store(path)
    for made in measurements:
        kept.add(made)
    return path


def measurement(utilization=0.5, seed=1, outcome=Outcome.OK, message=None, **trial_changes):
    made = trial(seed, **trial_changes)
    metrics = {}
    if outcome in (Outcome.OK, Outcome.TIMEOUT):
        metrics = {
            "bytes": made.setting.transfer_bytes, "completion_s": 20.0, "goodput_mbps": 5.0, "utilization": utilization,
        }  # fmt: skip
    return as_read(Measurement(trial=made, outcome=outcome, message=message, metrics=metrics, host={"wall_s": 0.1}))


def as_read(measurement, **changes):
    """Return a measurement with other metrics or evidence, and with the records of flows and links that follow."""
    return store.with_records(dataclasses.replace(measurement, **{"flows": (), "links": (), **changes}))


def line(measurement):
    """Return the result line without what depends on the machine."""
    return json.dumps({**measurement.to_json(), "host": None}, sort_keys=True)


def of_trial(measurement, **changes):
    """Return a measurement of a trial with other values."""
    return dataclasses.replace(measurement, trial=dataclasses.replace(measurement.trial, **changes))


def of_scheme(measurement, **changes):
    """Return a measurement of a scheme with other values."""
    return of_trial(measurement, scheme=dataclasses.replace(measurement.trial.scheme, **changes))


def measurements(values, **changes):
    return [measurement(value, seed, **changes) for seed, value in enumerate(values, 1)]


def measurements_of(metric, values, **changes):
    """Return measurements like measurements(), but with these values of any metric that a zone may be about."""
    made = []
    for m in measurements([0.5] * len(values), **changes):
        value = values[len(made)]
        if metric == "utilization":
            m = as_read(m, metrics={**m.metrics, "utilization": value})
        elif metric == "transfer_rtts":
            rtt_s = 2 * m.trial.setting.cell.one_way_delay_ms / 1000
            m = as_read(m, metrics={"handshake_s": 0.1, "completion_s": 0.1 + value * rtt_s})
        elif metric == "back_to_back_packets":
            m = as_read(m, metrics={metric: value})
        elif metric == "queue_mean_bdp":
            m = as_read(m, metrics={"queue_mean_bytes": value * m.trial.setting.cell.bdp_bytes})
        elif metric == "loss_events_per_min":
            m = as_read(m, evidence={"trace": overflows(value)})
        else:
            sent = 1_000_000_000
            came = round(sent * (1 - value / 100))
            interfaces = counted(sent, came)
            m = as_read(m, evidence={"interfaces": interfaces})
        assert abs(m.value(metric) - value) < 1e-6
        made.append(m)
    return made


def overflows(per_min, n=5):
    """Return a trace in which the queue drops a packet `n` times, `per_min` times a minute."""
    gap_s = 60 / per_min if per_min else 100.0
    looks = [(at * gap_s + 1 + after_s, at + dropped) for at in range(n) for after_s, dropped in ((0, 0), (0.01, 1))]
    return {
        "t_s": [t_s for t_s, _ in looks],
        "queue_dropped_packets": [dropped if per_min else 0 for _, dropped in looks],
    }


#: metrics of flows that share a network, where a test asks for no others
SHARED = {
    "jain_index": 0.9, "unequal_pct": 10.0, "harm_pct": 20.0, "share": 0.5, "fct_p50_s": 1.0, "dropped_pct": 1.0,
    "queue_delay_p95_ms": 10.0, "utilization": 0.9,
}  # fmt: skip


def shared_measurement(trial, value=types.MappingProxyType({})):
    """Return a Measurement of flows that share a network; its metrics are SHARED, or those of `value`."""
    value = SHARED | dict(value)
    network = trial.setting.network
    link, way = network.bottleneck(network.tested)
    own = [group for group in network.flows if group.judged for _ in range(group.count)]
    others = [group for group in network.flows if not group.judged for _ in range(group.count)]
    # Half of the flows have 1 + d, the others 1 - d, for which Jain's index is 1 / (1 + d^2).
    off = math.sqrt(1 / value["jain_index"] - 1)
    theirs = len(own) * (1 / value["share"] - 1) / max(len(others), 1)
    before, after = {"from_s": 0.0, "to_s": 8.0}, {"from_s": 8.0, "to_s": 20.0}
    lost = value.get("recovery_lost_pct", 1.0)
    # The goodput in Mbit/s that harm leaves one of the others: of its goodput beside its own kind if a zone says that,
    # else of an equal share.
    beside = own_kind.known(trial.setting, trial.scheme.algorithm)
    equal = link.direction(way).rate_mbps / (len(own) + len(others))
    left = beside.mbps / len(others) * (1 - value["harm_pct"] / 100) if beside else equal

    def flow(group, at, goodput, second):
        return {
            "group": group.name, "index": at, "judged": group.judged, "algorithm": "cubic", "goodput_mbps": goodput,
            "start_s": 0.0, "end_s": 10.0,
            "goodput_series_mbps": [second] * 10, "completion_s": value["fct_p50_s"], "rtt_ms": None,
            "phases": [before | {"reached_s": 0.0}, after | {"reached_s": value.get("recovery_s", 1.0)}],
            **dict.fromkeys(("sent_bytes", "retransmitted_bytes", "out_segments", "bytes"), 1),
        }  # fmt: skip

    sign = [1 if at % 2 else -1 for at in range(len(own))] if len(own) > 1 else [0]
    beyond = 2 * value["unequal_pct"] / 100
    flows = [flow(g, at, 1 + off * sign[at], 1 + beyond * sign[at]) for at, g in enumerate(own)]
    flows += [flow(g, at, theirs, left) for at, g in enumerate(others)]
    dropped = value["dropped_pct"]
    after |= {"dropped_packets": lost, "out_bytes": (100 - lost) / (100 - dropped), "queue_peak_bytes": 0}
    after["rate_mbps"] = 8 * after["out_bytes"] / 12e6 / value.get("later_utilization", 1.0)
    links = [
        {
            "link": link.name, "direction": way, "rate_mbps": link.direction(way).rate_mbps, "marked_packets": 0,
            "out_packets": 100 - dropped, "dropped_packets": dropped, "out_bytes": 1,
            "queue_delay_ms": dict.fromkeys(("p50", "p95", "p99"), value["queue_delay_p95_ms"]),
            "phases": [before, after],
        }
    ]  # fmt: skip
    metrics = {"bytes": 1, "completion_s": 1.0, "goodput_mbps": 1.0, "utilization": value["utilization"]}
    return store.with_records(Measurement(
        trial=trial, outcome=Outcome.OK, metrics=metrics, flows=tuple(flows), links=tuple(links), host={"wall_s": 0.1}
    ))  # fmt: skip


def zone(low=0.4, high=0.6, cell=CELL, **changes):
    basis = Basis.of("r", [low + (high - low) * at / 19 for at in range(20)])
    permitted = Interval(low=low, high=high, bases=(basis,), margin=Margin(relative=0.0, absolute=0.0))
    fields = {
        "id": "cubic/heatmap", "algorithm": "cubic", "metric": "utilization", "profile": "atc25",
        "profile_digest": setting().profile_digest, "margin_rule": {"text": "a rule"}, "references": {"r": {}},
        "intervals": {cell: permitted}, "smoke": (cell,),
    }  # fmt: skip
    return Zone(**{**fields, **changes})


def zone_on(*bases, cell=CELL, relative=0.1, absolute=0.0, **changes):
    """Return a zone that rests on these bases, by default with a margin of 10 %."""
    margin = Margin(relative=relative, absolute=absolute)
    low, high = hull(bases, margin)
    permitted = Interval(low=low, high=high, bases=bases, margin=margin)
    references = {basis.reference: {} for basis in bases}
    return zone(intervals={cell: permitted}, references=references, **changes)


def facts(size=12_500_000, network=None, splitters=(), **changes):
    """Return what a guest reports (TrialFacts) of a good trial of 10mbps-20ms-1pct, or `network`, that took 20 s."""
    network = network or setting().network
    counters = {
        "rx_bytes": 0, "rx_packets": 0, "rx_dropped": 0, "tx_bytes": 0, "tx_packets": 0, "tx_dropped": 0,
    }  # fmt: skip
    snmp = {"Tcp.OutSegs": 0, "Tcp.RetransSegs": 0}
    interfaces = {"client": {"eth0": counters}, "server": {"eth0": counters}}
    before = {"interfaces": interfaces, "server": {**snmp, "Tcp.ActiveOpens": 0}, "client": snmp, "router": None}
    after = {
        "interfaces": {**interfaces, "client": {"eth0": {**counters, "rx_bytes": size + size // 20}}},
        "server": {"Tcp.OutSegs": 9000, "Tcp.RetransSegs": 90, "Tcp.ActiveOpens": 0},
        "client": snmp,
        "router": None,
    }
    line = f'{{"bytes": {size}, "completion_s": 20.0, "handshake_s": 0.08}}\n'
    known = {
        "ready": True, "client": process(0, line), "server": process(None),
        "half_time": None, "counters": {"before": before, "after": after}, "bursts": None, "exchange": None,
        "sampled": {"trace": {}, "tcp_info": {"min_rtt_ms": 40.0}, "congestion_control": None, "proxy": None,
                    "queue_mean_bytes": 10.0, "queue_peak_bytes": 20, "queue_peak_packets": 1},
        "seed": 1, "virtual_s": 20.1, "elapsed_s": 20.01, "timed_out": False, "system_calls": 7, **changes,
    }  # fmt: skip
    ready, server, client = (known.pop(name) for name in ("ready", "server", "client"))
    detail = {name: known.pop(name) for name in ("half_time", "counters", "bursts", "exchange", "sampled")}
    ended = ready and not known["timed_out"]
    flow = {
        "start_s": 0.0, "connected_s": None, "end_s": known["elapsed_s"] if ended else None, "complete": ended,
        "acked_bytes": None, "sent_bytes": None, "retransmitted_bytes": None, "out_segments": None,
        "retransmitted_segments": None, "marked_segments": None, "min_rtt_ms": None, "arrived_bytes": None,
        "looks": {}, "client": client if ready else None, "congestion_control": None, "requests": None,
    }  # fmt: skip
    return {
        **known, "groups": [{"algorithm": None, "server": server, "ready": ready, "flows": [flow]}],
        "links": [[direction_seen(link, way) for way in WAYS] for link in network.links],
        "changes": [], "captured": {}, "bond": None, "splitters": splitters, "sent": [],
        "detail": detail if ready else None,
    }  # fmt: skip


def process(status=0, stdout="", stderr=""):
    """Return what a guest reports of a process."""
    return {"exit_status": status, "ran_out_of_memory": False, "stdout": stdout, "stderr": stderr}


def direction_seen(link, way, **changes):
    """Return what a guest reports of a direction of a link that does what was asked of it."""
    asked = link.direction(way)
    options = {"delay": {"delay": asked.delay_ms / 1000}, "loss-random": {"loss": asked.loss_pct / 100}}
    kinds = (asked.limiter, asked.queue.kind) if asked.queue else ()
    return {
        "qdiscs": [{"kind": "netem", "root": True, "options": options}, *({"kind": kind} for kind in kinds)],
        "looks": {}, "delays": None, "delays_ms": None, "watched_one_in": None, "unmatched": None, "hop": None,
        "trips": None, **changes,
    }  # fmt: skip


NETWORK = {
    "kernel": "6.12.0", "sysctls": {}, "offload": {},
    "calibration": [{"rate_mbps": 10.0, "delays_ms": [20.1], "loss_sent": 2000, "loss_lost": 20}],
}  # fmt: skip


def trace(points=40, seconds=20.0, size=12_500_000, drops=True, tcp=True):
    """Return a sampler's trace; without `drops`, of an older line that lacks these columns; without `tcp`, over UDP."""
    share = [at / (points - 1) for at in range(points)]
    none = [None] * points
    made = {
        "t_s": [round(seconds * s, 4) for s in share],
        "cwnd_segments": [round(10 + 30 * s) for s in share] if tcp else none,
        "rtt_ms": [40 + 10 * s for s in share] if tcp else none,
        "in_flight_segments": [round(10 + 30 * s) for s in share] if tcp else none,
        "bytes_acked": [round(size * s) for s in share] if tcp else none,
        "queue_bytes": [round(30_000 * s) for s in share],
    }
    if drops:
        made["queue_out_bytes"] = [round(1.05 * size * s) for s in share]
        made["queue_dropped_packets"] = [round(10 * s) for s in share]
        made["dropped_packets"] = [round(90 * s) for s in share]
    return made


#: text that no page may contain unescaped
EVIL = "<script>alert('x')</script>\"&<img src=x onerror=alert(1)>"


def results_file(path):
    """Write result lines of every kind: each verdict, TCP and UDP, old and new traces, an evil stack; return `path`."""

    def with_evidence(made, **options):
        evidence = {"interfaces": counted(1000, 981), "trace": trace(**options), "kernel_release": "6.12.0"}
        # Lines of older labs have one calibration, today's have one for each segment.
        (calibration,) = NETWORK["calibration"]
        evidence["calibration"] = [calibration] if options.get("drops", True) else calibration
        return [
            as_read(
                m,
                evidence=evidence if m.metrics else {},
                metrics={**m.metrics, "queue_mean_bytes": 5000.0} if m.metrics else {},
            )
            for m in made
        ]

    def cell_of(zone_cell, **scheme):
        return {"cell": Cell(*zone_cell), **scheme}

    ok = [0.42, 0.41, 0.43, 0.44, 0.40]
    lines = [
        *with_evidence(measurements(ok)),
        *with_evidence(measurements([0.9, 0.91, 0.92, 0.93, 0.94], **cell_of((10, 40, 1)))),
        *with_evidence(measurements([0.17, 0.31, 0.32, 0.33, 0.34], **cell_of((10, 60, 1))), drops=False),
        *with_evidence(measurements([0.95], **cell_of((20, 20, 0)))),
        measurement(seed=1, outcome=Outcome.ERROR, message=f"the server died: {EVIL}", **cell_of((10, 80, 1))),
        measurement(0.01, 1, Outcome.TIMEOUT, "the transfer took longer than 3600 s", **cell_of((10, 100, 4))),
        *with_evidence(measurements(ok, stack=f"evil{EVIL}", stack_version=EVIL), tcp=False),
        *with_evidence(measurements(ok, stack="quick", kernel_release="7.2.0"), tcp=False),
        measurement(seed=1, outcome=Outcome.UNSUPPORTED, message="no prague here", algorithm="prague"),
        *with_evidence(measurements(ok, algorithm="newalgo")),
    ]
    return stored(path, lines)


def counted(sent, came):
    """Return interface counters: `sent` bytes left the server, and `came` bytes reached the client."""
    return {
        "server": {"eth0": {"tx_bytes": sent, "rx_bytes": 0, "rx_packets": 0}},
        "client": {"eth0": {"tx_bytes": 0, "rx_bytes": came, "rx_packets": round(came / 1514)}},
    }


#: values that a document may have in the wrong places
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**309, -(10**400), "1mbps-1ms-1pct", "full", "1mbps-1ms-0pct+1mbps-1ms-1pct", "\n", "[/]"])
    | st.floats()
    | st.text(st.characters(), max_size=8),  # with halves of surrogate pairs, too
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def replaced(data, place, value):
    """Return a copy of a document with `value` at one of its places()."""
    data = copy.deepcopy(data)
    *within, last = place
    inner = data
    for step in within:
        inner = inner[step]
    inner[last] = value
    return data


def pointed(data, pointer, value):
    """Return a copy of a document with `value` at a JSON pointer."""
    return replaced(data, [int(step) if step.isdigit() else step for step in pointer.split("/")[1:]], value)


def invoke(*arguments, **options):
    """Run `conformance` with these arguments in this process; return click's result."""
    from conformance.cli import main

    return click.testing.CliRunner().invoke(main, [str(argument) for argument in arguments], **options)


def shown(show, *arguments, width=300):
    """Return what a function prints that takes these arguments and then a console."""
    console = rich.console.Console(record=True, width=width, markup=False)
    show(*arguments, console)
    return console.export_text()


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def refusal(function, *arguments, **options):
    """Return the line by which a function refuses what a user gave it."""
    with pytest.raises(UserError) as refused:
        function(*arguments, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def link(name="link", delay_ms=20, **more):
    """Return the document of a link of 10 Mbit/s from `left` to `right` with a queue of one BDP."""
    data = {"rate_mbps": 10, "delay_ms": delay_ms, "queue": {"kind": "bfifo", "size": 1}}
    return {"name": name, "ends": ["left", "right"], "data": data, **more}


def program(path, text=""):
    """Write a shell script that can be run, and the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def places(data, *within):
    """Yield every place in a document as keys and indices; of a list, whose entries are alike, only the first entry."""
    inner = data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ()
    for step, value in inner:
        yield (*within, step)
        yield from places(value, *within, step)


def reference_scheme(algorithm):
    """Return the id of the scheme from which the algorithm's zones were made, such as cubic/linux-tcp/7.2.11."""
    from conformance.catalogue import documents
    from conformance.support import paths

    (reference,) = documents.zone(paths.data("zones", algorithm, "heatmap.json")).references.values()
    return reference["scheme"]


def at_once(*functions):
    """Call these functions at the same time, each in a thread of its own, and wait until all return."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
