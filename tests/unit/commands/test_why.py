"""`why`: flows from captures, features of senders whose rules are known, suspects, and the command."""

import dataclasses
import json
import pathlib
import struct
import threading

import helpers
import made_senders
import numpy
import pytest
import rich.console
import senders
from helpers import shown
from hypothesis import given, strategies as st

from conformance.catalogue import documents, recorded_features
from conformance.commands import blame, clause, identify, tracing, why
from conformance.commands.result import printed
from conformance.commands.status import ExitStatus
from conformance.engine import benches
from conformance.lab import kernel_variant
from conformance.model.clauses import changes
from conformance.model.clauses.changes import Changed
from conformance.model.diagnosis import feature_table, features, flow, pcap, ranking
from conformance.model.diagnosis.pcap import Packet
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.reporting.text import why as showing
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import paths, schema

SERVER = bytes((10, 0, 0, 3))
STACK = benches.Choice()
#: a stack without Reno
RELABELLED = str(paths.PACKAGE.parent / "tests" / "stacks" / "relabelled" / "adapter.json")


def capture(frames):
    """Return a pcap file of (seconds, nanoseconds, frame) as guest/capture.py writes it."""
    header = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)
    return header + b"".join(struct.pack("=IIII", s, ns, len(f), len(f)) + f for s, ns, f in frames)


def frame(source, payload, protocol=17):
    ip = bytes((0x45, 0, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0)) + source + bytes((10, 0, 0, 1))
    return bytes(12) + b"\x08\x00" + ip + payload


def test_packets_are_told_by_side_and_protocol():
    data = capture(
        [
            (5, 1, frame(SERVER, b"a" * 200)),
            (5, 2, frame(bytes((10, 0, 0, 1)), b"b")),
            (5, 3, frame(SERVER, b"c", protocol=1)),
            (5, 4, b"\0" * 60),
            (6, 0, frame(SERVER, b"a" * 199)),
        ]
    )
    theirs, others = pcap.packets(data, 17, SERVER)
    assert [(p.seconds, p.bytes) for p in theirs] == [(5 + 1e-9, 234), (6.0, 233)]
    assert [p.bytes for p in others] == [35]
    assert len(theirs[0].identity) == 96
    assert pcap.packets(data, 17, SERVER, clients=[bytes((10, 0, 0, 2))]) == ([], [])
    assert pcap.first_s(data) == 5 + 1e-9
    assert "no frame" in helpers.refusal(pcap.first_s, capture([]))


def test_a_packet_whose_target_changes_on_the_way_is_the_same_where_clients_move():
    client, other = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 101))
    sent = frame(SERVER, b"\1\2\3\4\5\6\7\7" + b"a" * 200)
    came = bytearray(sent)
    came[30:34], came[36:38], came[40:42] = other, b"\x09\x09", b"\0\1"
    for moves in (False, True):
        (there,), _ = pcap.packets(capture([(5, 1, sent)]), 17, SERVER, [client, other], moves)
        (arrived,), _ = pcap.packets(capture([(5, 2, bytes(came))]), 17, SERVER, [client, other], moves)
        assert (there.identity == arrived.identity) == moves
        assert pcap.packets(capture([(5, 2, bytes(came))]), 17, SERVER, [client], moves) == ([], [])


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_capture_that_ends_early_is_an_error(cut):
    data = capture([(5, 1, frame(SERVER, b"a" * 200))])
    assert "ends in the middle" in helpers.refusal(pcap.packets, data[:-cut] if cut > 1 else data + b"\0", 17, SERVER)


@given(st.binary(max_size=300))
def test_whatever_a_capture_holds_there_is_no_traceback(rubbish):
    for data in (rubbish, capture([])[:24] + rubbish, capture([(1, 1, rubbish)])):
        try:
            theirs, others = pcap.packets(data, 17, SERVER)
        except UserError:
            continue
        assert len(theirs) + len(others) <= len(data) / 16


@st.composite
def transfers(draw):
    """Draw (sent, came): any packets, of which some are lost, with any delays that keep their order."""
    gaps = draw(st.lists(st.integers(0, 3000), min_size=25, max_size=80))
    delays = draw(st.lists(st.integers(0, 5000), min_size=len(gaps), max_size=len(gaps)))
    kept = draw(st.lists(st.booleans(), min_size=len(gaps), max_size=len(gaps)))
    kept = [True] * 20 + kept[20:]
    names = draw(st.lists(st.integers(0, 5), min_size=len(gaps), max_size=len(gaps)))
    times = numpy.cumsum(gaps) / 1e5
    out = numpy.maximum.accumulate(times + 0.01 + numpy.array(delays) / 1e5)
    sent = [Packet(float(t), 100 + 50 * n, bytes([n])) for t, n in zip(times, names, strict=True)]
    came = [Packet(float(o), p.bytes, p.identity) for o, p, k in zip(out, sent, kept, strict=True) if k]
    return sent, came


@pytest.mark.slow
@given(transfers())
def test_packets_are_conserved_and_flight_is_never_negative(found):
    sent, came = found
    of = flow.flow(sent, came, [], forward_s=0.01, back_s=0.01, bytes_per_s=1e6)
    assert (~of.lost).sum() == len(came)
    assert not of.lost[-1] and len(of.sent_s) <= len(sent)
    assert numpy.all(of.flight >= of.bytes)
    assert numpy.all(of.flight <= numpy.cumsum(of.bytes))
    assert numpy.all(of.known_s > of.sent_s)
    assert sum(event.losses for event in flow.loss_events(of)) == of.lost.sum()


@pytest.mark.slow
@given(transfers(), st.floats(0, 1000))
def test_a_flow_does_not_depend_on_when_it_was(found, later_s):
    moved = [[p._replace(seconds=p.seconds + later_s) for p in packets] for packets in found]
    a, b = (
        flow.flow(*packets, [], forward_s=0.01, back_s=0.01, bytes_per_s=1e6, first_s=first_s)
        for packets, first_s in ((found, 0), (moved, later_s))
    )
    assert numpy.allclose(a.sent_s, b.sent_s) and numpy.array_equal(a.lost, b.lost)
    assert abs(a.began_s - b.began_s) < 1e-9


def written(folder, name, packets):
    """Write packets of senders.transfer() as a capture."""
    frames = [
        (10 + int(p.seconds), round(p.seconds % 1 * 1e9), frame(SERVER, p.identity + bytes(p.bytes - 34 - 8)))
        for p in packets
    ]
    (folder / f"{name}.pcap").write_bytes(capture(frames))


@pytest.mark.slow
def test_of_a_capture_that_is_full_what_came_first_is_looked_at(tmp_path):
    sender = senders.Sender(beta=1.0, packets=3000)
    sent, came, _ = senders.transfer(sender)
    written(tmp_path, tracing.captures().sent, sent[:2000])
    written(tmp_path, "emulator-to_client", came)
    made = helpers.measurement(cell=Cell(10, 20, 0.3))

    def read(full):
        captured = {tracing.captures().sent: (2000, full), "emulator-to_client": (len(came), 0)}
        return tracing._flow(made, captured, tmp_path, 17)

    assert "that came out of the queue never entered it" in helpers.refusal(read, 0)
    found, full_s = read(1000)
    assert full_s == pytest.approx(sent[1999].seconds, abs=1e-6)
    assert 1800 < len(found.sent_s) <= 2000
    whole = senders.flow(sender)
    assert numpy.allclose(found.sent_s, whole.sent_s[: len(found.sent_s)], atol=1e-6)
    assert numpy.array_equal(found.lost, whole.lost[: len(found.sent_s)])


def test_captures_of_two_transfers_are_an_error():
    packets = [Packet(k / 100, 100, bytes([k])) for k in range(60)]
    others = [p._replace(identity=p.identity + b"x") for p in packets]
    with pytest.raises(UserError, match="never entered"):
        flow.flow(packets, others, [], forward_s=0.01, back_s=0.01, bytes_per_s=1e6)
    assert "too few" in helpers.refusal(flow.flow, packets, [], [], forward_s=0.01, back_s=0.01, bytes_per_s=1e6)
    with pytest.raises(UserError, match="clocks"):
        early = [p._replace(seconds=0.0) for p in packets]
        flow.flow(packets, early, [], forward_s=0.01, back_s=0.01, bytes_per_s=1e6)


@pytest.mark.parametrize("beta", [0.25, 0.5, 0.7, 0.85])
def test_the_beta_of_a_sawtooth_is_measured(beta):
    of = senders.flow(senders.Sender(beta=beta, lost=senders.every(500)))
    kept = features.kept(of).values
    assert len(kept) >= 5
    # The value includes a round trip's growth, and a window is a whole number of packets.
    assert numpy.median(kept) == pytest.approx(beta, abs=0.07)
    assert features.responded(of).values.mean() == 1


@pytest.mark.parametrize("increase", [0.5, 1, 2])
def test_growth_is_measured(increase):
    of = senders.flow(senders.Sender(increase=increase, lost=senders.every(500)))
    assert numpy.median(features.growth(of).values) == pytest.approx(increase, rel=0.15)
    assert numpy.median(features.doubling(of).values) < 1.2


def test_a_sender_that_does_not_respond_is_seen():
    of = senders.flow(senders.Sender(beta=1, increase=0, ssthresh=25, lost=senders.every(500)))
    assert features.responded(of).values.mean() == 0
    assert features.kept(of).values.min() >= 0.95


def test_a_reduction_for_every_packet_lost_is_seen():
    lost = frozenset(k for first in range(600, 6000, 600) for k in (first, first + 2))
    once, often = (
        numpy.median(features.kept_of_several(senders.flow(senders.Sender(beta=0.7, lost=lost, every_loss=e))).values)
        for e in (False, True)
    )
    assert once == pytest.approx(0.7, abs=0.08)
    assert often == pytest.approx(0.49, abs=0.08)


@pytest.mark.parametrize("initial_window", [2, 10, 20])
def test_the_initial_window_and_slow_start_are_measured(initial_window):
    of = senders.flow(senders.Sender(initial_window=initial_window, ssthresh=1000))
    assert features.initial_window(of).values[0] == initial_window
    assert features.start_up_growth(of).values[0] == pytest.approx(2, rel=0.1)
    assert features.start_up_losses(of).values[0] > 0.5


def test_packets_that_grow_with_the_path_s_mtu_are_full_as_they_are():
    """QUIC: ten packets, with the handshake's rest and a probe for a larger MTU among them, then larger packets."""
    sizes = [328, 1368, *[1242] * 8, *[1494] * 50]
    times = [0.01] * 10 + [0.09 + 0.002 * n for n in range(50)]
    sent = [Packet(t, size, bytes([at])) for at, (t, size) in enumerate(zip(times, sizes, strict=True))]
    came = [p._replace(seconds=p.seconds + 0.02) for p in sent]
    of = flow.flow(sent, came, [], forward_s=0.02, back_s=0.02, bytes_per_s=1e6)
    (window,) = features.initial_window(of).values
    assert window == pytest.approx((328 + 1368 + 8 * 1242) / 1242)


def test_a_window_above_the_bdp_stands_in_the_queue():
    of = senders.flow(senders.Sender(increase=0, ssthresh=49, packets=9000))
    bdp = of.bdp_bytes / senders.FULL_BYTES
    assert features.queue_mean(of).values[0] == pytest.approx((49 - bdp) / bdp, abs=0.05)
    assert features.flight_high(of).values[0] == pytest.approx(49 / bdp, abs=0.05)
    assert features.rate_high(of).values[0] == pytest.approx(1, abs=0.05)


def test_bursts_are_told_from_paced_packets():
    at = [k * 0.001 for k in range(4000)]
    for together in (1, 5):
        sent = [Packet(at[k - k % together], 1250, k.to_bytes(4, "big")) for k in range(len(at))]
        came = [p._replace(seconds=max(p.seconds, t) + 0.03) for p, t in zip(sent, at, strict=True)]
        of = flow.flow(sent, came, [], forward_s=0.02, back_s=0.02, bytes_per_s=1.25e6)
        assert features.burst(of).values[0] == pytest.approx(together, rel=0.01)


@pytest.mark.slow
@given(st.integers(1, 60), st.floats(0.2, 3))
def test_no_flow_makes_a_feature_fail(n, pause_s):
    """For short, stalled or lossy flows, a feature may have no sample, but never an error or a non-finite value."""
    sent = [Packet(k // 7 * pause_s + k * 1e-4, 60 + 97 * (k % 16), k.to_bytes(2, "big")) for k in range(20 + n)]
    came = [p._replace(seconds=p.seconds + 0.02) for k, p in enumerate(sent) if k % n or k < 1 or n < 2]
    try:
        of = flow.flow(sent, came, sent[:3], forward_s=0.01, back_s=0.01, bytes_per_s=1.25e6)
    except UserError:
        return
    for feature in feature_table.FEATURES:
        samples = getattr(features, feature.name)(of)
        assert len(samples.values) == len(samples.times_s)
        assert numpy.all(numpy.isfinite(samples.values))


def traced(sender, few):
    """Return the Traced of a sender, without random loss and with a loss now and then."""
    found = {
        feature_table.CLEAN: {
            1: senders.flow(dataclasses.replace(sender, packets=9000), one_way_s=0.04, queue_packets=66)
        },
        feature_table.FEW: {seed: senders.flow(dataclasses.replace(sender, lost=few(seed))) for seed in (1, 2)},
    }
    bench = benches.find()
    return tracing.Traced(scheme=bench.scheme("reno"), flows=found, problems=[])


def losses(seed):
    return senders.every(400 + 40 * seed)


@pytest.mark.parametrize(
    ("label", "changes"),
    [
        ("beta", {"beta": 0.8}),
        ("response", {"beta": 1.0}),
        ("growth", {"increase": 3}),
        ("initial_window", {"initial_window": 32}),
        ("slow_start", {"ssthresh": 2}),
    ],
)
def test_the_top_suspect_is_what_is_wrong(label, changes):
    theirs = ranking.readings(traced(senders.Sender(), losses).flows)
    ours = ranking.readings(traced(dataclasses.replace(senders.Sender(), **changes), losses).flows)
    found = ranking.suspects("reno", ours, theirs)
    assert found[0].label == label, [(s.label, s.weight, s.evidence[0].sentence) for s in found]
    assert ranking.suspects("reno", theirs, theirs) == []


@pytest.mark.slow
def test_documents_stand_in_for_a_reference_that_is_not_there():
    ours = ranking.readings(traced(senders.Sender(beta=0.8), losses).flows)
    found = ranking.suspects("reno", ours, ranking.documented("reno"))
    assert found[0].label == "beta"
    assert "the document 0.50: as if beta were" in found[0].evidence[0].sentence
    assert ranking.documented("nosuchalgorithm") == {}
    names = {(f.name, f.cell) for f in feature_table.FEATURES}
    assert all({(f.name, f.cell) for f in ranking.documented(a)} <= names for a in ("cubic", "bbrv1", "bbrv3"))


def test_features_are_named_once_and_known():
    ids = [feature.id for feature in feature_table.FEATURES]
    assert len(ids) == len(set(ids))
    for feature in feature_table.FEATURES:
        assert callable(getattr(features, feature.name))
        assert feature.cell in feature_table.CELLS
        assert feature.tolerance > (1 if feature.ratio else 0)
        feature.says.format(value="1", low="1", high="1", n=1)


@pytest.mark.slow
def test_a_report_is_shown_drawn_and_written():
    report = why.Report(
        algorithm="reno", stack=traced(senders.Sender(beta=0.8), losses), reference=traced(senders.Sender(), losses)
    )
    schema.check("why", json.loads(json.dumps(printed(report))), "why.json")
    text = shown(showing.show, report)
    assert "beta" in text and "see 10mbps-20ms-0.3pct, seed 1, " in text
    assert text.count("; see ") == sum(min(len(suspect.evidence), 3) for suspect in report.suspects)
    assert showing.svg(report).startswith("<svg")
    name = report.reference.scheme.id
    assert f"{name} against the reference {name}" in text
    changed = dataclasses.replace(report.stack, kernel="mutants")
    other = why.Report(algorithm="reno", stack=changed, reference=report.reference)
    assert f"{name} on kernel mutants against the reference {name}" in shown(showing.show, other)
    same = why.Report(algorithm="reno", stack=report.reference, reference=report.reference)
    assert "nothing looks wrong" in shown(showing.show, same)


def read(**values):
    """Return {Feature: Reading} of these values, each named after a feature's id with _ for -."""
    by_id = {feature.id.replace("-", "_"): feature for feature in feature_table.FEATURES}
    return {
        by_id[name]: ranking.Reading(value=value, low=value, high=value, n=5, spread=0.0, sightings=((1, 0.0),))
        for name, value in values.items()
    }


def reported(ours, theirs, **rest):
    """Return the Report on these readings, and what is shown of it."""
    flow = senders.flow(senders.Sender())
    flows = {cell: {1: flow} for cell in feature_table.CELLS}
    stack = tracing.Traced(scheme=benches.find().scheme("bbrv3"), flows=flows, problems=[])
    report = why.Report(algorithm="bbrv3", stack=stack, reference=None, no_reference="not built", **rest)
    report.__dict__.update(ours=ours, theirs=theirs)  # in place of what would be read from the flows
    schema.check("why", json.loads(json.dumps(printed(report))), "why.json")
    return report, shown(showing.show, report)


START_UP = {"start_up_time_clean": 5, "start_up_burst_clean": 2.9}
LINUX = {"start_up_time_clean": 4, "start_up_burst_clean": 1.7}


def test_suspects_that_do_not_explain_the_violation_are_said_not_to():
    """Bursts in start-up cannot make a transfer at 3 % of loss faster."""
    zone = documents.zone(documents.shipped_path("bbrv3/heatmap-packets"))
    place = next(p for p in zone.intervals if p.id == "10mbps-80ms-3pct")
    violation = blame.Violation(zone=zone, place=place, values=(0.73, 0.74, 0.75))
    report, text = reported(read(**START_UP), read(**LINUX), violations=(violation,))
    assert [suspect.label for suspect in report.suspects] == ["pacing"]
    assert "no suspect explains this: at 10mbps-80ms-3pct it had 0.74 of the link's rate, the reference 0.6" in text
    assert "(pacing: it acts in start-up alone, " in text
    assert any("no suspect explains this" in line for line in showing.lines(report))


def test_without_a_violation_the_rates_of_the_traces_are_to_be_explained():
    _, text = reported(read(throughput_many=0.74, **START_UP), read(throughput_many=0.57, **LINUX))
    assert "no suspect explains" not in text  # a response to losses is a suspect
    report, text = reported(read(throughput_clean=0.80, **LINUX), read(throughput_clean=0.97, **LINUX))
    assert "no suspect explains" not in text
    assert [one.label for one in report.suspects] == ["response"]
    _, text = reported(read(**START_UP), read(**LINUX))
    assert "no suspect explains" not in text


@pytest.mark.parametrize(
    ("stack", "version", "words"),
    [
        ("ngtcp2-1.11", "1.11.0", "clauses: bbrv3/ngtcp2-1.11/1.11.0 fails "),
        (
            "ngtcp2-1.11",
            "1.12.0",
            "this is bbrv3/ngtcp2-1.11/1.12.0: `conformance clause run --algorithm bbrv3 --stack",
        ),
        (
            "none-such",
            "1.0",
            "no verdict on bbrv3/none-such/1.0 is recorded; `conformance clause run --algorithm bbrv3",
        ),
    ],
)
def test_the_clauses_that_a_stack_fails_are_named_with_the_command_that_judges(stack, version, words):
    found = clause.failing(helpers.scheme("bbrv3", stack=stack, stack_version=version), benches.Choice(stack=stack))
    _, text = reported(read(**START_UP), read(**LINUX), clauses=found)
    assert words in text
    assert ("BBR31 (" in text and "`conformance clause show " in text) == (stack != "none-such")
    assert ("likely by these clauses: 5.5.10.2: a probe is too high only" in text) == (stack != "none-such")


@pytest.mark.slow
def test_without_anything_to_compare_with_nothing_is_known():
    stack = traced(senders.Sender(), losses)
    report = why.Report(algorithm="copa", stack=stack, reference=None, no_reference="Linux has none")
    assert report.exit_status == ExitStatus.UNKNOWN
    assert "not known: no feature was seen on both sides" in shown(showing.show, report)
    schema.check("why", json.loads(json.dumps(printed(report))), "why.json")


def test_what_only_the_reference_shows_is_named_and_leaves_it_open():
    same = traced(senders.Sender(), losses)
    report = why.Report(algorithm="reno", stack=same, reference=same)
    assert not report.not_shown and report.exit_status == ExitStatus.DONE
    vars(report)["ours"] = {feature: reading for feature, reading in report.ours.items() if feature.name != "kept"}
    assert report.exit_status == ExitStatus.UNKNOWN
    assert "not compared, as only the reference shows it: beta: kept" in shown(showing.show, report)
    assert "- not compared, as only the reference shows it: beta: kept" in "\n".join(showing.lines(report))


@pytest.mark.slow
def test_what_changes_show_is_told_with_the_rest():
    def changed(rate):
        _, found = made_senders.seen(
            "CL005", made_senders.paced, [(0.3, 3.0), (rate, 1.0)], requests=[(0.0, 7_500), (3.0, 2_500_000)]
        )
        return Changed(views={changes.SLOW: {1: found}}, problems=("it is gone at marks",))

    same = traced(senders.Sender(), losses)
    report = why.Report(
        algorithm="reno", stack=same, reference=same, changed={"stack": changed(3.0), "reference": changed(0.4)}
    )
    schema.check("why", json.loads(json.dumps(printed(report))), "why.json")
    text = shown(showing.show, report)
    assert "app_limited" in text and f"see {changes.SLOW}, seed 1, 3." in text
    assert "not looked at: it is gone at marks" in text
    assert [suspect.label for suspect in report.suspects] == ["app_limited"]


@pytest.mark.slow
def test_what_documents_permit_under_disorder_is_said_and_is_no_suspect():
    def changed(rate):
        _, found = made_senders.seen("CL016", made_senders.paced, [(1.0, 1.0), (rate, 5.0)])
        return Changed(views={changes.DISORDER: {1: found}})

    same = traced(senders.Sender(), losses)
    report = why.Report(
        algorithm="reno", stack=same, reference=same, changed={"stack": changed(0.3), "reference": changed(1.0)}
    )
    assert not report.suspects and report.exit_status is ExitStatus.DONE
    for text in (shown(showing.show, report), "\n".join(showing.lines(report))):
        assert "differs as documents permit: while some packets came five late, 0.3" in text
        # Of 37 networks, 36 are left to `compare`.
        assert "36 networks in which `compare` looks at two builds (outage of 1.5 s, " in text
    document = json.loads(json.dumps(printed(report)))
    schema.check("why", document, "why.json")
    assert document["features"]["during-packets five late"]["reference"]["value"] > 0.9


def ask(tmp_path, algorithm="cubic", choice=STACK, target=None, changes=False):
    console = rich.console.Console(record=True, width=160, markup=False)
    found = why.compute(
        algorithm,
        choice,
        trials=2,
        first_seed=1,
        target=target,
        workers=None,
        changes=changes,
        notes=ConsoleNotes(console),
    )
    document = json.loads(json.dumps(printed(found)))
    schema.check(document["schema"].partition("/")[0], document, "why")
    showing.show_asked(found, console)
    return found.exit_status, console.export_text()


def test_mistakes_are_named(tmp_path):
    (tmp_path / "file").touch()
    assert "is not empty" in helpers.refusal(ask, tmp_path, target=tmp_path)


@pytest.mark.guest
def test_what_a_stack_does_not_offer_is_unsupported_and_what_nothing_has_is_a_mistake(tmp_path):
    status, text = ask(tmp_path, algorithm="reno", choice=benches.Choice(stack=RELABELLED))
    assert status == 4 and "does not offer" in text
    assert "does not offer cubik; did you mean cubic?" in helpers.refusal(ask, tmp_path, algorithm="cubik")


@pytest.mark.guest
def test_a_wrong_beta_is_the_top_suspect(tmp_path):
    kernel_variant.make("why-test", "default", {"tcp_cubic.beta": "870"})
    try:
        status, text = ask(tmp_path, choice=benches.Choice(kernel="why-test"), target=tmp_path / "out")
    finally:
        paths.cache("kernels", "names", "why-test").unlink()
    assert status == 1
    document = schema.load("why", pathlib.Path(tmp_path, "out", "why.json"))
    assert document["suspects"][0]["label"] == "beta"
    kept = document["features"]["kept-few"]
    assert kept["stack"]["value"] == pytest.approx(0.85, abs=0.03)
    assert kept["reference"]["value"] == pytest.approx(0.7, abs=0.03)
    assert "as if beta were" in text
    assert (tmp_path / "out" / "stack" / "10mbps-40ms-0pct-1" / "emulator-to_client.pcap").exists()


def test_an_interrupt_keeps_and_shows_what_was_found(monkeypatch):
    report = why.Report(algorithm="reno", stack=traced(senders.Sender(), losses), reference=None)
    asked = []

    def look(algorithm, *_):
        asked.append(algorithm)
        if algorithm == "cubic":
            raise KeyboardInterrupt
        return report

    monkeypatch.setattr(why, "look", look)
    console = rich.console.Console(record=True, width=300, markup=False)
    assert why.of_violations(
        ["reno", "cubic", "bbrv1"], STACK, ConsoleNotes(console), lambda report: showing.show(report, console)
    ) == {"reno": report}
    assert asked == ["reno", "cubic"]
    text = console.export_text()
    assert "nothing looks wrong" in text or "suspect" in text
    assert "cubic: interrupted; run `conformance why cubic` to try again" in text


def test_when_time_is_up_guests_are_ended_and_what_was_traced_is_returned(monkeypatch):
    ended = []

    class Guest:
        def end(self):
            ended.append(self)

    def traced(bench, algorithm, plan, target, bar, stop, on_start, on_flow, under, of):
        on_start(Guest())
        assert stop.wait(10)
        return f"what was traced of {bench}"

    monkeypatch.setattr(tracing, "traced", traced)
    found = tracing.traced_all({"head": ("quinn", "cubic")}, {"head": {"few": [1]}}, budget_s=0.05)
    assert found == {"head": "what was traced of quinn"} and len(ended) == 1


def test_an_interrupt_ends_the_guests(monkeypatch):
    class Guest:
        ended = False

        def end(self):
            self.ended = True

    guests, started = [], threading.Event()

    def traced(bench, algorithm, plan, target, bar, stop, on_start, on_flow, under, of):
        guests.append(Guest())
        on_start(guests[-1])
        if bench == "stack":
            started.wait(10)
            raise KeyboardInterrupt  # as a signal would
        started.set()
        assert stop.wait(10)

    monkeypatch.setattr(tracing, "traced", traced)
    with pytest.raises(KeyboardInterrupt):
        schemes = {"stack": ("stack", "reno"), "reference": ("usual", "reno")}
        tracing.traced_all(schemes, {role: {"few": [1]} for role in schemes})
    assert [guest.ended for guest in guests] == [True, True]


def test_a_flow_of_a_scenario_is_compared_with_references_in_its_place(tmp_path, monkeypatch):
    """Reno is told from what grows and reduces otherwise, by the same traces as `why` reads."""
    asked = []

    def traced_all(schemes, plans, *_, under, of, **__):
        asked.append((under, of))
        senders_of = {"stack": senders.Sender(beta=0.9), "cubic": senders.Sender(beta=0.8, increase=3.0)}
        return {
            role: tracing.Traced(
                scheme=bench.scheme(algorithm), problems=[], under=under[role],
                flows={name: {1: senders.flow(senders_of.get(role, senders.Sender()), one_way_s=0.04)} for name in own},
            )
            for (role, (bench, algorithm)), own in zip(schemes.items(), plans.values(), strict=True)
        }  # fmt: skip

    monkeypatch.setattr(tracing, "traced_all", traced_all)
    notes = ConsoleNotes(rich.console.Console(record=True))
    where = {"point": "flows=2", "profile": "fairness", "flow": "test/1"}
    usual = {"trials": 1, "first_seed": 1, **where}
    report = why.compute("reno", STACK, target=None, changes=False, workers=1, notes=notes, **usual)
    assert {place for one in report.suspects for place, *_ in report.pcap_s(one.evidence[0])} == {"flows=2"}
    found = identify.of_flow("reno", STACK, benches.Means(results="", workers=1, notes=notes), **usual)
    best, *others = found.scores
    assert best.share == 1 and next(score for score in others if score.algorithm == "cubic").share < 1
    schema.check("identify", printed(found), "identify")
    (setting,) = asked[0][0]["stack"].values()
    assert (setting.id, {of for _, of in asked}) == ("flows=2", {(0, 1)})
    with pytest.raises(UserError, match="the packets of other/0 cannot be told from those of its group's other flows"):
        kernels = {**usual, "profile": "coexistence", "point": "others=4", "flow": "other/0"}
        why.compute("reno", STACK, target=None, changes=False, workers=1, notes=notes, **kernels)


@pytest.mark.guest
@pytest.mark.thorough
def test_nothing_is_suspected_of_the_reference_where_networks_change(tmp_path):
    status, text = ask(tmp_path, algorithm="reno", changes=True)
    assert status == 0 and "nothing looks wrong in" in text
    assert text.count("not looked at:") == text.count("not looked at: 28 networks") == 1


def test_bbr_is_traced_with_every_seed_in_every_cell_and_at_more_loss_than_it_bears():
    """BBRv2 and BBRv3 probe at random times; CUBIC and Reno use no random numbers."""
    seeds = (1, 2, 3)
    assert tracing.plan("cubic", seeds) == tracing.plan("reno", seeds) == {"clean": (1,), "few": seeds, "many": seeds}
    for version in ("bbrv1", "bbrv2", "bbrv3"):
        assert tracing.plan(version, seeds) == {"clean": seeds, "few": seeds, "many": seeds, "heavy": seeds}


@pytest.mark.parametrize("spreads", [(0.0, 0.05), (0.05, 0.0)])
def test_what_either_side_varies_by_on_its_own_is_no_evidence(spreads):
    feature = next(f for f in feature_table.FEATURES if f.id == "rate_high-clean")
    ours, theirs = (
        ranking.Reading(value=value, low=value, high=value, n=3, spread=spread, sightings=())
        for value, spread in zip((1.36, 1.22), spreads, strict=True)
    )
    assert ranking.difference(feature, ours, theirs) < 1
    steady = [dataclasses.replace(reading, spread=0.0) for reading in (ours, theirs)]
    assert ranking.difference(feature, *steady) > 1


@pytest.mark.slow
def test_what_was_recorded_stands_in_the_place_of_a_reference_that_is_not_built():
    recorded = recorded_features.find("bbrv3")
    report = why.Report(
        algorithm="bbrv3", stack=traced(senders.Sender(beta=0.8), losses), reference=None,
        no_reference="kernel bbrv3 is not built", recorded=recorded,
    )  # fmt: skip
    words = f"the recorded features of {recorded.scheme} (no reference here: kernel bbrv3 is not built)"
    assert report.against == words
    assert 5 < report.compared < len(report.ours.keys() & recorded.readings.keys())
    assert "the reference " in report.suspects[0].evidence[0].sentence
    document = json.loads(json.dumps(printed(report)))
    schema.check("why", document, "why.json")
    assert (document["reference"], document["recorded"]) == (None, recorded.scheme)
    assert ">stack<" in showing.svg(report) and ">reference<" not in showing.svg(report)


def test_what_is_traced_wherever_linux_runs_is_not_recorded():
    assert recorded_features.find("cubic") is None
    assert recorded_features.find("bbrv2").readings.keys() <= set(feature_table.FEATURES)
