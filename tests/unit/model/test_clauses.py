"""Clauses: packets are kept to the nanosecond, documents are read strictly, and verdicts follow from bounds."""

import dataclasses
import itertools
import json
import pathlib
import random
import re

import helpers
import numpy
import pytest
import scipy.stats
import senders

from conformance.catalogue import clause_record, clauses
from conformance.lab import manifest
from conformance.model.captures import packets
from conformance.model.clauses import verdict
from conformance.model.clauses.document import Bound, Specification
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.clauses.seen import View
from conformance.model.diagnosis import pcap
from conformance.model.diagnosis.pcap import Packet
from conformance.model.errors import UserError
from conformance.model.judging import statistics
from conformance.model.judging.session import Session, plan
from conformance.model.judging.verdict import ALPHA, USUAL_LOOKS, Status, level
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome
from conformance.support import paths, schema

RENO = clauses.find("CL012")
#: the network of 10 Mbit/s and 20 ms in which isolated losses are looked for
FEW = {"one_way_s": 0.02, "bytes_per_s": 1.25e6, "queue_packets": 33}


def frame(number, seconds, tos=0, to=b"\x0a\0\0\1", size=1514):
    """Return a packet with an IPv4 header (`number` as identification, addresses) and some bytes of payload."""
    header = bytes([0x45, tos]) + size.to_bytes(2, "big") + number.to_bytes(4, "big") + b"\x40\x11"
    checksum = (tos * 257 + number).to_bytes(4, "big")[2:]
    return Packet(seconds, size, header + checksum + b"\x0a\0\0\3" + to + bytes(60))


def frames(packets):
    """Return the same packets as columns."""
    identities = numpy.zeros((len(packets), 96), numpy.uint8)
    for row, packet in zip(identities, packets, strict=True):
        row[: len(packet.identity)] = list(packet.identity)
    columns = [numpy.array([packet[at] for packet in packets]) for at in range(2)]
    sizes = numpy.array([len(packet.identity) for packet in packets], int)
    return pcap.Frames(seconds=columns[0], bytes=columns[1], identities=identities, identity_bytes=sizes)


def measured(sender, seed=1, clause=RENO, **network):
    trial = helpers.trial_at(clauses.setting(clause.network), seed, helpers.scheme(clause.algorithms[0]))
    kept = senders.packets(sender, **{**FEW, **network}).to_json()
    return Measurement(trial=trial, outcome=Outcome.OK, metrics={}, packets=kept)


def lossy(seed, **changes):
    """Return a Reno sender that loses one packet in three hundred at random, drawn by the seed."""
    draw = random.Random(seed)
    lost = frozenset(at for at in range(200, 6000) if draw.random() < 1 / 300)
    return senders.Sender(lost=lost, ssthresh=20, **changes)


def judge(clause, measurements, twice=False, **how):
    rule = verdict.ClauseRule(clause, clause.algorithms[0], twice)
    return verdict.judge(rule, clauses.setting(clause.network), measurements, **how)


# --- packets


def test_packets_come_back_from_a_line_as_they_went_in():
    kept = senders.packets(lossy(1))
    again = packets.Packets.from_json(json.loads(json.dumps(kept.to_json())))
    for field in dataclasses.fields(kept):
        assert numpy.array_equal(getattr(kept, field.name), getattr(again, field.name)), field.name
    assert len(kept.to_json()["columns"]) < 8 * len(kept)


def test_a_marked_packet_is_the_same_packet_and_a_doubled_one_is_no_stranger():
    sent = [frame(number, number / 1000, tos=2) for number in range(5)]
    came = [frame(0, 0.02, tos=2), frame(1, 0.021, tos=3), frame(1, 0.022, tos=3), frame(3, 0.023, tos=2)]
    kept = packets.matched(*map(frames, (sent, came, [])))
    assert list(kept.ecn_sent) == [packets.ECT_0] * 5
    assert [int(mark) for mark, out in zip(kept.ecn_out, kept.out_ns, strict=True) if out >= 0] == [2, 3, 2]
    assert list(kept.out_ns) == [20_000_000, 21_000_000, packets.LOST, 23_000_000, packets.LOST]


def test_captures_of_two_transfers_are_refused():
    with pytest.raises(UserError, match="never sent"):
        packets.matched(*map(frames, ([frame(0, 0.0)], [frame(number, 1.0) for number in range(100, 120)], [])))
    assert "nothing" in helpers.refusal(packets.matched, *map(frames, ([], [], [])))


@pytest.mark.parametrize(
    ("sent", "columns", "words"),
    [
        *((3, columns, "packets of a result line") for columns in ("", "!", "eJw=", "eJwDAAAAAAE=")),
        (10**9, "", "at most"),
    ],
)
def test_packets_that_cannot_be_read_are_refused(sent, columns, words):
    with pytest.raises(UserError, match=words):
        packets.Packets.from_json({"began_ns": 0, "sent": sent, "asked": 0, "columns": columns})


# --- settings


def test_a_setting_that_keeps_packets_is_another_setting_and_others_stay_what_they_are():
    setting = clauses.setting(RENO.network)
    plain = dataclasses.replace(setting, packets=False)
    assert setting.packets and Setting.from_json(setting.to_json()) == setting
    assert setting.profile_digest != plain.profile_digest
    assert "packets" not in plain.to_json()


# --- verdicts


@pytest.mark.slow
def test_a_reno_that_halves_conforms_and_one_that_keeps_seven_tenths_does_not():
    right = judge(RENO, [measured(lossy(seed), seed) for seed in range(1, 6)])
    assert right.status is Status.CONFORMS and right.samples > right.n == 5
    wrong = judge(RENO, [measured(lossy(seed, beta=0.7), seed) for seed in range(1, 6)])
    assert wrong.status is Status.VIOLATES and wrong.value == pytest.approx(0.7, abs=0.05)
    assert wrong.p is not None and wrong.p < 1e-6
    seen = wrong.evidence[0]
    assert seen.seed in range(1, 6) and seen.value > RENO.bound.high and seen.packet > 0


def test_what_a_document_permits_as_well_is_shown_and_accuses_nobody():
    may = dataclasses.replace(RENO, level="MAY")
    keeps = [measured(lossy(seed, beta=0.7), seed, may) for seed in range(1, 9)]
    shown = judge(may, keeps)
    assert (shown.status, shown.value > 0.6) == (Status.NOT_JUDGED, True)
    assert "which RFC 9002 leaves open" in shown.reason
    assert judge(RENO, keeps).status is Status.VIOLATES


def test_a_beta_that_some_losses_take_twice_shows_in_the_lower_quartile():
    clause, other = clauses.find("CL111"), clauses.find("CL011")
    # each second loss comes soon, so in a window that is smaller than at the last one
    lost = frozenset(itertools.accumulate([400, 700, 300] + [700, 300] * 5))

    def value(of, **changes):
        return judge(of, [measured(senders.Sender(beta=0.7, ssthresh=20, lost=lost, **changes), 1, of)]).value

    assert value(clause) in clause.bound and value(other) in other.bound
    assert value(clause, beta_below=0.595) == pytest.approx(0.62, abs=0.03)
    assert value(clause, beta_below=0.595) not in clause.bound and value(other, beta_below=0.595) in other.bound
    few = judge(clause, [measured(senders.Sender(lost=frozenset((900,))), 1, clause)])
    assert "a quartile needs 8 isolated losses" in few.reason


@pytest.mark.parametrize(("clause", "how", "right"), [
    ("CL064", {"increase": 0.53, "beta": 0.7}, True), ("CL064", {"increase": 1.0, "beta": 0.7}, False),
    ("CL012", {"beta": 0.4}, True), ("CL012", {"beta": 0.6}, False),
])  # fmt: skip
def test_a_number_of_a_document_is_told_from_others(clause, how, right):
    of = clauses.find(clause)
    assert (judge(of, [measured(lossy(1, **how), 1, of)]).value in of.bound) is right


@pytest.mark.parametrize(("how", "right"), [({}, True), ({"every_loss": True}, False), ({"beta": 0.99}, False)])
def test_several_losses_reduce_a_window_once_and_not_less(how, right):
    of = clauses.find("CL013")
    together = senders.Sender(lost=frozenset([*range(2000, 2003), *range(4000, 4003)]), ssthresh=40, **how)
    assert (judge(of, [measured(together, 1, of, queue_packets=200)]).value in of.bound) is right


def test_what_is_nowhere_to_be_seen_is_inconclusive_and_says_why():
    lossless = [measured(senders.Sender(ssthresh=20, packets=300), seed) for seed in range(1, 6)]
    found = judge(RENO, lossless)
    assert found.status is Status.INCONCLUSIVE and found.hidden
    assert found.reason == "not visible in 5 of 5 trials: no loss was isolated in a window of 8 packets or more"


@pytest.mark.slow
def test_what_few_trials_show_is_inconclusive():
    some = [measured(lossy(seed), seed) for seed in range(1, 5)]
    found = judge(RENO, [*some, measured(senders.Sender(ssthresh=20, packets=300), 5)])
    assert found.status is Status.INCONCLUSIVE and not found.hidden


def test_a_line_without_packets_is_not_judged():
    bare = [dataclasses.replace(measured(lossy(seed), seed), packets=None) for seed in range(1, 6)]
    assert judge(RENO, bare).reason.endswith("its packets were not kept")


def test_an_error_and_an_unsupported_algorithm_say_nothing_of_the_stack():
    good = measured(lossy(1))
    for outcome, status in ((Outcome.ERROR, Status.ERROR), (Outcome.UNSUPPORTED, Status.UNSUPPORTED)):
        bad = dataclasses.replace(good, outcome=outcome, message="why", packets=None)
        assert judge(RENO, [bad] * 5).status is status
    assert judge(RENO, []).status is Status.ERROR


def test_runs_that_are_unlike_are_refused():
    one = measured(lossy(1))
    other = helpers.of_trial(one, lab_digest="8" * 16)
    assert "different runs" in helpers.refusal(judge, RENO, [one, other])


def test_one_value_a_trial_takes_as_many_trials_as_the_family_asks_for():
    bound = Bound(high=12.6, why="")
    wide = [32.0] * 8
    assert verdict.compare(bound, wide, 1, True, False)[0] is Status.INCONCLUSIVE
    assert verdict.compare(bound, [32.0] * 13, 10, True, False)[0] is Status.VIOLATES
    assert verdict.compare(bound, [10.0] * 5, 1000, True, False)[0] is Status.CONFORMS


def test_eight_trials_are_half_of_a_violation_that_is_repeated():
    bound = Bound(high=12.6, why="")
    assert verdict.compare(bound, [32.0] * 8, 40, True, True) == (
        Status.VIOLATES, "above the document's bound", pytest.approx(0.5**16)
    )  # fmt: skip
    assert verdict.compare(bound, [32.0] * 8, 40, True, False)[0] is Status.INCONCLUSIVE
    assert verdict.compare(bound, [32.0] * 5, 40, True, True)[0] is Status.INCONCLUSIVE
    asked = plan([_twice(RENO)], trials=5, most_trials=20, beside=map(_twice, clauses.all_clauses()))
    again = asked.repeating(asked.questions)
    assert again.family == asked.family > 50
    alone = plan([_question(RENO)], trials=5, most_trials=20, beside=map(_question, clauses.all_clauses()))
    assert alone.repeating(alone.questions).family == 1


@pytest.mark.slow
@pytest.mark.parametrize(("twice", "status"), [(True, Status.INCONCLUSIVE), (False, Status.VIOLATES)])
def test_half_of_a_violation_without_its_repeat_is_none(twice, status):
    question = verdict.ask(RENO, clauses.setting(RENO.network), "reno", twice)
    asked = plan([question], trials=5, most_trials=20)
    first = [measured(lossy(seed, beta=0.7), seed) for seed in range(1001, 1006)]
    (finding,) = Session(plan=asked).findings(lambda plan: () if plan.repeats else plan.judged(question.key, first))
    assert finding.status is status
    assert not twice or "trials with fresh seeds are missing" in finding.verdict.reason


@pytest.mark.parametrize("sided", [1, 2])
def test_two_halves_and_four_looks_at_each_keep_the_rate_of_a_session(sided):
    """The chance that any clause of a family violates twice, for senders on each bound, is counted over all looks."""
    for family in range(1, 400):
        most = dict.fromkeys(USUAL_LOOKS, level(family) ** 0.5)
        assert family * _crosses(sided, most) ** 2 <= ALPHA


@pytest.mark.parametrize(
    "looks", [(20, 34, 58, 100), (8, 14, 23, 40), (5, 14, 37, 100), (5, 8, 12, 18), (5, 7, 13, 20)]
)
def test_other_looks_keep_the_rate_of_a_session_too(looks):
    """Looks differ with other numbers of trials, or if some trials show nothing."""
    for family in (1, 2, 3, 5, 10, 20, 40, 80, 163, 199):
        enough = level(family)
        most = {n: max(once for once in _STEPS if verdict._chance(once, n, twice=True) <= enough) for n in looks}
        assert family * _crosses(1, most) ** 2 <= ALPHA


def _crosses(sided, most):
    """Return the chance that fair coins show too many heads, or tails, by the level most[n] at a look at n coins."""
    unlikely = {
        n: [k for k in range(n + 1) if sided * statistics.sign_test_p(n, k) <= once] for n, once in most.items()
    }
    paths, crossed = {0: 1.0}, 0.0
    for n in range(1, max(most) + 1):
        paths = {k: (paths.get(k, 0.0) + paths.get(k - 1, 0.0)) / 2 for k in range(n + 1)}
        for k in unlikely.get(n, ()):
            crossed += paths.pop(k, 0.0)
            if sided == 2:
                crossed += paths.pop(n - k, 0.0)
    return crossed


@pytest.mark.slow
@pytest.mark.parametrize("samples", [2, 20, 100])
def test_pooled_samples_keep_the_rate_of_a_session(samples):
    """With many samples from each trial, a sign test of hundreds of values comes close to its level at each look."""
    for family in (1, 5, 20, 60, 163, 400):
        most = max(once for once in _STEPS if verdict._chance(once, 5, twice=True, pooled=True) <= level(family))
        assert family * _crosses_pooled(most, samples) ** 2 <= ALPHA
        # The square of the chance alone, which is enough for one value a trial, would not keep it.
        assert samples < 100 or family * _crosses_pooled(level(family) ** 0.5, samples) ** 2 > ALPHA


#: levels of one run, in fine steps
_STEPS = [10 ** (-at / 500) for at in range(3000)]


def _crosses_pooled(most, samples):
    """Return the chance that fair coins, `samples` a trial, show too many heads for `most` at one of the looks."""
    tossed, ways, crossed = 0, numpy.array([1.0]), 0.0
    for look in USUAL_LOOKS:
        more = look * samples - tossed
        ways = numpy.convolve(ways, scipy.stats.binom.pmf(numpy.arange(more + 1), more, 0.5))
        tossed += more
        outside = scipy.stats.binom.sf(numpy.arange(tossed + 1) - 1, tossed, 0.5) <= most
        crossed += ways[outside].sum()
        ways = numpy.where(outside, 0, ways)
    return crossed


def test_a_sender_on_the_bound_is_seldom_said_to_violate():
    """The median is on the bound; the sign test holds its level for any distribution."""
    draw = random.Random(7)
    bound = Bound(high=1.0, why="")
    rounds = 4000
    wrong = sum(
        verdict.compare(bound, [draw.gauss(1.0, 0.1) for _ in range(20)], 1, False, False)[0] is Status.VIOLATES
        for _ in range(rounds)
    )
    assert wrong / rounds <= 0.01


def test_too_few_trials_to_ever_violate_are_refused():
    initial = clauses.find("CL017")
    with pytest.raises(UserError, match="CL017: 5 trials can never show"):
        plan([_question(initial)], trials=5).refuse_blind()
    for question, trials in ((_question(initial), 20), (_twice(initial), 8), (_question(RENO), 5)):
        # Each of many losses is a value of RENO's.
        plan([question], trials=trials).refuse_blind()


# --- documents


def test_every_document_that_ships_is_read_and_every_clause_has_a_network():
    for clause in clauses.all_clauses():
        assert clauses.setting(clause.network).packets
        assert clause.observable in OBSERVABLES.values()
    assert set(clauses.files()) == {one.name for one in clauses.specifications()}


def test_each_of_the_22_cases_of_the_bbr_draft_is_judged_or_said_to_be_invisible():
    (draft,) = [one for one in clauses.specifications() if one.name == "bbr_draft"]
    told = " ".join(one.section for one in (*draft.clauses, *draft.not_visible))
    assert {int(number) for number in re.findall(r"case (\d+);?", told)} == set(range(1, 23))


def test_a_state_that_never_came_hides_a_clause_and_is_no_error():
    clause = clauses.find("BBR21")
    trial = dataclasses.replace(helpers.trial(1, algorithm="bbrv3"), setting=clauses.setting(clause.network))
    never = Measurement(
        trial=trial, outcome=Outcome.ERROR, message="state probe_up never came", evidence={"never_came": ["probe_up"]}
    )
    found = judge(clause, [never] * 5)
    assert found.status is Status.INCONCLUSIVE and found.hidden and "probe_up never came" in found.reason
    # The state would never come in another run of the same trial.
    assert never.settled


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"observable": "mood"}, "/clauses/0: observable 'mood' is not known"),
        ({"bound": {"why": "no number at all"}}, "/clauses/0: the bound permits everything or nothing"),
        ({"bound": {"low": 2, "high": 1, "why": "the wrong way round"}}, "/clauses/0: the bound permits"),
    ],
)
def test_a_mistake_in_a_document_is_named_by_its_place(change, says):
    document = json.loads((paths.data("clauses") / "rfc9002.json").read_text())
    document["clauses"][0] |= change
    schema.check("clauses", document, "it")
    with pytest.raises(UserError, match=says):
        Specification.from_json(document)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"id": "12"}, "/clauses/0/id"),
        ({"network": {"cell": "10mbps-20ms-0pct", "transfer_s": 1}}, "/clauses/0/network"),
        ({"network": {"scenario": "events", "profile": "atc25"}}, "/clauses/0/network"),
    ],
)
def test_the_schema_refuses_other_ids_and_networks_of_two_kinds_or_none(change, place):
    document = json.loads((paths.data("clauses") / "rfc9002.json").read_text())
    document["clauses"][0] |= change
    with pytest.raises(UserError, match=place):
        schema.check("clauses", document, "it")


def test_a_clause_that_is_misspelt_is_named():
    assert "CL999" in helpers.refusal(clauses.find, "CL999")


DRAFTS = clauses.first_for("bbrv3").drafts


def claiming(draft, algorithm="bbrv3"):
    """Return the manifest of a stack that claims to keep a draft."""
    return manifest.Manifest(
        path=pathlib.Path("own/adapter.json"), name="own", title="t", program="p", transport="udp",
        algorithms={algorithm: {"called": "b", "draft": draft, "evidence": "e"}},
    )  # fmt: skip


def test_an_older_draft_that_a_stack_claims_asks_by_its_own_bound():
    drain = clauses.find("BBR03")
    bounds = {draft: clauses.claimed(drain, claiming(draft), "bbrv3").permitted for draft in DRAFTS}
    assert bounds == {draft: "0.31..0.58" if draft < "draft-ietf-ccwg-bbr-05" else "0.44..0.58" for draft in DRAFTS}
    claimed = clauses.claimed(drain, claiming("draft-ietf-ccwg-bbr-02"), "bbrv3")
    assert drain.judged_by(0.31, 0.58) == claimed and drain.judged_by(0.44, 0.58) == drain
    # What is on record by another bound violates only if it does so by both.
    for interval, status in (((0.36, 0.37), "conforms"), ((0.2, 0.3), "violates"), ((0.3, 0.4), "inconclusive")):
        assert verdict.on_record(claimed, Status.VIOLATES, "", interval)[0] == status


def test_what_an_older_draft_does_not_have_is_not_asked_and_not_measured():
    claimed = clauses.claimed(clauses.find("BBR501"), claiming("draft-ietf-ccwg-bbr-05"), "bbrv3")
    question = verdict.ask(claimed, clauses.setting(claimed.network), "bbrv3")
    judged = plan([question], trials=5).judge(question, {})
    assert plan([question], trials=5).work == () and judged.status is Status.NOT_JUDGED
    assert judged.verdict.reason == "not asked of draft-ietf-ccwg-bbr-05: precautionary probing is new in -06"
    assert verdict.on_record(claimed, Status.VIOLATES, "above", (2.4, 3.2)) == (judged.status, judged.verdict.reason)
    assert clauses.claimed(clauses.find("BBR501"), claiming(DRAFTS[-1]), "bbrv3") == clauses.find("BBR501")


def test_a_draft_that_nobody_knows_is_one_line_that_lists_the_known_ones():
    refused = helpers.refusal(clauses.claimed, RENO, claiming("draft-ietf-ccwg-bbr-99"), "bbrv3")
    assert "own/adapter.json: bbrv3: draft 'draft-ietf-ccwg-bbr-99' is not known" in refused
    assert DRAFTS[0] in refused and DRAFTS[-1] in refused


def test_every_stack_that_ships_claims_a_known_draft_and_the_document_follows_the_last():
    for about in manifest.shipped():
        for algorithm in about.offered():
            clauses.claimed(RENO, about, algorithm)
    assert clauses.first_for("bbrv3").document == DRAFTS[-1]
    noq = {one.clause: one.verdict for one in clause_record.load() if one.who == "noq"}
    assert noq["BBR501"] == "not judged"


def test_what_algorithms_share_is_judged_of_one_of_them():
    shared, own = clauses.find("CL003"), clauses.find("CL001")
    assert shared.once and not own.once
    assert (shared.judged_of(["cubic", "reno"]), own.judged_of(["cubic", "reno"])) == (["reno"], ["reno", "cubic"])
    assert shared.judged_of(["cubic", "reno"], ["cubic"]) == ["cubic"]
    every = [(one.id, algorithm) for one, algorithm in clauses.asked(["rfc9002"], "udp", ["cubic", "reno"], ["cubic"])]
    assert [one for one in every if one[0] in ("CL001", "CL003")] == [
        ("CL001", "reno"),
        ("CL001", "cubic"),
        ("CL003", "cubic"),
    ]


def test_one_trial_tells_that_a_stack_sends_no_ect_and_nothing_else():
    marks = clauses.find("CL030")
    asked = plan([_question(marks)], trials=5, most_trials=20)
    assert asked.looks[:2] == (1, 5) and asked.trials == asked.repeating(asked.questions).trials == 5
    (found,) = asked.judged(_question(marks).key, [measured(lossy(1), clause=marks)])
    assert found.verdict.absent and asked.is_settled(found) and "no packet with ECT" in found.verdict.reason
    # Many losses in one trial do not replace five trials, and one trial without losses does not exclude later ones.
    asked = plan([_question(marks), _question(RENO)], trials=5, most_trials=20)
    assert plan([_question(RENO)], trials=5, most_trials=20).looks[0] == 5
    for sender in (lossy(1), senders.Sender(ssthresh=20, packets=300)):
        (found,) = asked.judged(_question(RENO).key, [measured(sender)])
        assert not asked.is_settled(found)


def _question(clause):
    return verdict.ask(clause, clauses.setting(clause.network), clause.algorithms[0], twice=False)


def _twice(clause):
    return verdict.ask(clause, clauses.setting(clause.network), clause.algorithms[0])


def test_what_is_sent_to_a_client_that_has_left_is_not_looked_at():
    """A server that is not told sends probes for seconds more, which belong neither to its rate nor to its flight."""
    whole = measured(senders.Sender())
    sent_s = View.read(whole).sent_s
    end_s = float(sent_s[len(sent_s) // 2])
    cut = dataclasses.replace(whole, flows=({"judged": True, "end_s": end_s},))
    found = View.read(cut)
    assert found.ended_s == pytest.approx(end_s)
    assert len(found.sent_s) == numpy.searchsorted(sent_s, end_s, side="right")
    assert len(found.packets.out_ns) == len(found.sent_s) < len(sent_s)
