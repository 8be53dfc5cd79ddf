"""Observables of the cases in the BBR draft, with made-up senders: paced, and through an unlimited queue."""

import pytest
from made_senders import paced, permitted, why_not

SLOW = [(0.5, 4.0)]
#: start-up doubles for a large body, or keeps what it found
DOUBLES, KEEPS = [*SLOW, (1.1, 0.2), (2.6, 0.2), (1.0, 2.0)], [*SLOW, (0.6, 2.0), (0.75, 1.0)]
BULK = {"requests": [*((at / 2, 12_500) for at in range(8)), (3.9, 2_500_000)]}
LATE = {"requests": [(0.0, 12_500), (3.9, 2_500_000)]}
#: start-up puts two BDP in flight
FILLS = [(0.5, 0.08), (1.0, 0.08), (2.0, 0.08), (1.0, 0.16)]
DRAINS_SLOWLY = {"slower": (0.4, 0.55), "triggered": {"drain": 0.4}}
PROBED, REFILLS = [(1.0, 1.0), (1.25, 0.1)], [(0.99, 0.04), (1.25, 0.1), (0.89, 2.0)]
NEVER_DRAINS = {"slower": (1.1, 0.89), "triggered": {"probe_down": 1.1}}
CRUISE, PROBE = {"triggered": {"cruise": 1.0}}, {"triggered": {"probe_up": 0.92}}
#: a probe ends where several packets are lost at once, and goes on after a single loss
ENDS = [(1.0, 1.0), (1.25, 0.12), (0.9, 0.4), (1.0, 3.0)]
GOES_ON = [(1.0, 1.0), (1.25, 0.4), (0.9, 0.4), (1.0, 3.0)]
SEVERAL, SINGLE = {**PROBE, "lost": set(range(840, 844))}, {**PROBE, "lost": {840}}
OVER = [(1.0, 1.04), (0.9, 0.4), (1.0, 3.0)]
RATE_UP = {"slower": (0.9, 10)}
PAUSES = {"requests": [(at, 400_000) for at in (0.0, 1.0, 2.0, 3.0, 4.0)]}
BURSTS = [(0.98, 0.32), (0.001, 0.68)] * 6


@pytest.mark.parametrize(
    ("clause", "right", "wrong", "how"),
    [
        pytest.param("BBR07", DOUBLES, KEEPS, BULK, id="start-up-goes-on"),
        pytest.param("BBR02", KEEPS, DOUBLES, BULK, id="start-up-was-over"),
        pytest.param(
            "BBR04", [*FILLS, (0.5, 0.8), (0.89, 0.16), (0.55, 2.0)], [*FILLS, (0.5, 3.0)], DRAINS_SLOWLY,
            id="drain-waits-for-the-flight-alone",
        ),
        pytest.param(
            "BBR09", [*PROBED, (0.89, 2.5), *REFILLS], [*PROBED, (0.89, 6.0), *REFILLS], NEVER_DRAINS,
            id="the-next-probe-comes-in-time",
        ),
        pytest.param(
            "BBR09", [*PROBED, (0.89, 2.5), *REFILLS], [*PROBED, (0.89, 4.0), (0.1, 0.3), *REFILLS], NEVER_DRAINS,
            id="no-pause-before-the-next-probe",
        ),
        pytest.param(
            "BBR12", [(0.5, 0.04), (1.0, 0.04), (2.7, 0.04), (1.0, 3.0)], [(0.8, 3.0)], {}, id="aggregation-is-no-cost"
        ),
        pytest.param(
            "BBR112", [(0.5, 0.04), (1.0, 0.04), (2.7, 0.04), (1.0, 3.0)], [(0.5, 0.04), (4.0, 0.04), (1.0, 3.0)], {},
            id="aggregation-is-no-bandwidth",
        ),
        pytest.param("BBR13", [(1.0, 6.0)], [(1.0, 1.0), (0.8, 5.0)], CRUISE, id="aggregation-begins"),
        pytest.param(
            "BBR15", [(1.0, 2.5), (1.25, 0.04), (4.0, 0.04), (9.5, 1.0)], [(1.0, 2.5), (2.0, 4.0)], RATE_UP,
            id="a-higher-rate-is-used-soon",
        ),
        pytest.param("BBR16", [(1.0, 1.5), (0.1, 4.0)], [(1.0, 1.5), (0.2, 4.0)], {}, id="the-rate-falls"),
        pytest.param("BBR18", [(1.0, 2.7)], [(1.0, 1.2), (0.5, 1.5)], CRUISE, id="late-is-not-lost"),
        pytest.param(
            "BBR19", [(1.0, 1.2), (0.1, 1), (1.0, 1.5)], [(1.0, 1.2), (0.1, 1), (0.5, 1.5)], CRUISE, id="held-not-lost"
        ),
        pytest.param("BBR21", ENDS, GOES_ON, SEVERAL, id="several-losses-end-a-probe"),
        pytest.param("BBR121", GOES_ON, ENDS, SINGLE, id="a-loss-ends-no-probe"),
        pytest.param("BBR118", GOES_ON, ENDS, SINGLE, id="a-loss-costs-no-rate"),
        pytest.param(
            "BBR121", GOES_ON, [(1.0, 1.0), (1.25, 0.1), (0.0006, 2.0), (1.0, 1.0)], SINGLE, id="a-loss-silences-nobody"
        ),
        pytest.param(
            "BBR118", GOES_ON, [(1.0, 1.0), (1.25, 0.1), (0.0006, 2.0), (1.0, 1.0)], SINGLE, id="silence-is-no-rate"
        ),
        pytest.param(
            "BBR118", GOES_ON, [(1.0, 1.0), (1.25, 0.16), (0.3, 0.08), (1.0, 3.0)], SINGLE, id="a-dip-is-no-rate"
        ),
        *(
            pytest.param("BBR401", [(1.0, 1.45), (0.69, 2.0)], [(1.0, 1.45), (left, 2.0)], CRUISE, id=f"leaves-{left}")
            for left in (0.99, 0.6, 0.5)
        ),
        pytest.param("BBR402", [(1.0, 4.2), (0.71, 10.0)], [(1.0, 4.2), (0.9, 10.0)], {}, id="losses-above-threshold"),
        pytest.param("BBR402", [(1.0, 4.2), (0.71, 10.0)], [(1.0, 4.2), (0.4, 10.0)], {}, id="less-than-losses-ask"),
        pytest.param("BBR502", [(1.0, 4.2), (0.89, 10.0)], [(1.0, 4.2), (0.72, 10.0)], {}, id="losses-below-threshold"),
        pytest.param("BBR22", BURSTS, [(0.6, 0.5), (0.001, 0.5)] * 6, PAUSES, id="pauses-cost-no-bandwidth"),
    ],
)  # fmt: skip
def test_a_case_permits_one_sender_and_not_the_other(clause, right, wrong, how):
    assert permitted(clause, paced, right, **how)
    assert not permitted(clause, paced, wrong, **how)


@pytest.mark.parametrize(
    ("clause", "parts", "how", "ended_s"),
    [
        ("BBR04", [*FILLS, (0.5, 0.2)], DRAINS_SLOWLY, 4.0),
        ("BBR13", [(1.0, 2.0)], CRUISE, 6.0),
        ("BBR15", [(1.0, 2.5)], RATE_UP, 7.0),
        ("BBR217", [(1.0, 12.0)], {}, 20.0),
    ],
)
def test_a_sender_that_falls_silent_until_the_client_is_done_is_not_permitted(clause, parts, how, ended_s):
    assert not permitted(clause, paced, parts, **how, ended_s=ended_s)


@pytest.mark.parametrize(
    ("clause", "parts", "how", "words"),
    [
        ("BBR07", KEEPS, LATE, "the sender was slower than its application, which had to wait"),
        ("BBR02", KEEPS, {}, "it is not known when bodies were asked for"),
        ("BBR02", [*SLOW, (0.6, 0.1)], BULK, "the last body was over within a round trip"),
        ("BBR04", [*FILLS, (1.0, 3.0)], DRAINS_SLOWLY, "never sent slower"),
        ("BBR09", [*PROBED, (0.89, 0.2), (0.1, 0.3), (0.89, 2.0), *REFILLS], NEVER_DRAINS, "the path drained, or the"),
        ("BBR09", [*PROBED, (0.89, 1.0)], NEVER_DRAINS, "the path drained, or the transfer was over"),
        ("BBR12", [(1.0, 1.0)], {}, "two seconds"),
        ("BBR112", [(1.0, 0.03)], {}, "a round trip"),
        ("BBR13", [(1.0, 6.0)], {}, "it is not known when the state began that the change waited for"),
        ("BBR16", [(1.0, 1.5)], {}, "too soon"),
        ("BBR21", OVER, PROBE, "it no longer probed when it could know what had happened"),
        ("BBR121", OVER, PROBE, "it no longer probed when it could know what had happened"),
        ("BBR118", OVER, PROBE, "it no longer probed when it could know what had happened"),
        ("BBR118", GOES_ON[:2], PROBE, "too soon"),
        ("BBR21", GOES_ON[:2], SEVERAL, "the transfer was over while it probed"),
        ("BBR401", [(0.8, 1.45), (0.56, 2.0)], CRUISE, "nine tenths"),
        ("BBR401", [(1.0, 1.45), (0.69, 0.2)], CRUISE, "too soon"),
        ("BBR22", BURSTS, {"requests": PAUSES["requests"][:2]}, "no large body"),
        ("BBR317", [(1.0, 8.0)], {"ended_s": 20.0}, "nothing was sent in the second half"),
    ],
)
def test_what_shows_nothing_of_a_case_says_why(clause, parts, how, words):
    assert words in why_not(clause, paced, parts, **how)


@pytest.mark.parametrize(
    ("clause", "rate"),
    [("BBR16", 0.1), ("BBR512", 0.1), ("BBR15", 10), ("BBR519", 4), ("BBR507", 0.5), ("BBR508", 1), ("BBR529", 1)],
)
def test_a_sender_that_was_slower_before_the_path_changed_shows_nothing(clause, rate):
    slow = why_not(clause, paced, [(0.5, 30.0)], slower=(0.9, rate), triggered={"cruise": 1.0})
    assert slow.startswith("it did not use the link before the path changed")


def test_what_is_sent_to_a_client_that_has_left_is_no_part_of_the_second_half():
    """A server may send probes for seconds after that; picoquic's did so behind the policer with a large bucket."""
    left = [(1.0, 20.0), (0.002, 15.0)]
    assert permitted("BBR217", paced, left, ended_s=20.0)
    assert not permitted("BBR217", paced, left, ended_s=35.0)
    assert permitted("BBR317", paced, left, lost=range(20_000, 20_020), ended_s=20.0)
