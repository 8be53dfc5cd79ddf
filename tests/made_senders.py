"""Made-up senders to test clauses: they send on a clause's own network, through an unlimited queue."""

import numpy
import pytest

from conformance.catalogue import clauses
from conformance.model.captures import packets
from conformance.model.clauses.seen import Invisible, View

FULL = 1500
BEGAN_NS = 100_000_000


def paced(parts, rate, rtt_s):
    """Return when a paced sender sends packets, in seconds; `parts` are (factor of the link's rate, seconds)."""
    found, at_s = [], 0.0
    for times, seconds in parts:
        count = round(seconds * rate * times / FULL)
        found += [at_s + i * seconds / count for i in range(count)]
        at_s += seconds
    return found


def by_fours(parts, rate, rtt_s):
    """Return when packets are sent, in seconds: as in paced(), but four at once."""
    found = paced(parts, rate, rtt_s)
    return [found[number - number % 4] for number in range(len(found))]


def windows(counts, rate, rtt_s):
    """Return when packets are sent, in seconds: `counts` in each round trip, which ends when its first is acked."""
    found, at_s, free_s = [], 0.0, 0.0
    for count in counts:
        # Each acknowledgement releases one packet, so a window leaves at the rate of the link.
        begin_s = at_s
        free_s = max(free_s, at_s + rtt_s / 2)
        at_s = free_s + FULL / rate + rtt_s / 2
        free_s += round(count) * FULL / rate
        found += [begin_s + i * (at_s - begin_s) / round(count) for i in range(round(count))]
    return found


def timed(parts, rate, rtt_s):
    """Return when packets are sent, in seconds: at the times in `parts`."""
    return sorted(parts)


def seen(clause_id, how, parts, **rest):
    """Return a clause and what is seen of a sender on its network; see view()."""
    clause = clauses.find(clause_id)
    return clause, view(clause.network, clause.algorithms[0], how, parts, **rest)


def view(
    network, algorithm, how, parts, *,
    lost=(), outage=None, ect=False, slower=None, requests=(), connections=(), triggered=None, ended_s=None,
    answers=(), sizes=None,
):  # fmt: skip
    """Return what is seen of a sender on a ClauseNetwork.

    `how`: `paced`, `windows` or `timed`, which turns `parts` into the times of packets; `slower`: (second, factor of
    the link's rate from then on); `lost`: numbers of lost packets; `outage`: (second, second) between which all packets
    sent are lost; `ect`: True to send all packets with ECT(0), or another codepoint; `requests`: (second, bytes);
    `connections`: when the client could ask on each; `triggered`: {state: second}; `ended_s`: when the client was done;
    `answers`: when its packets came to the server, of 80 bytes, or (second, bytes); `sizes`: {number of a packet:
    bytes}, 1500 of the others.
    """
    setting = clauses.setting(network)
    rate = setting.cell.bandwidth_mbps * 1e6 / 8
    network = setting.network
    rtt_s = network.rtt_s(network.tested) if network else 2 * setting.cell.one_way_delay_ms / 1000
    sent_s, out_s, free_s = how(parts, rate, rtt_s), [], 0.0
    for number, now_s in enumerate(sent_s):
        if number in lost or (outage and outage[0] <= now_s < outage[1]):
            out_s.append(None)
            continue
        begins_s = max(free_s, now_s + rtt_s / 2)
        carries = slower[1] if slower and begins_s - rtt_s / 2 >= slower[0] else 1
        free_s = begins_s + FULL / rate / carries
        out_s.append(free_s)
    answers = [at if isinstance(at, tuple) else (at, 80) for at in answers]
    client_ns = numpy.array([round(at * 1e9) for at, _ in answers], dtype=int)
    kept = packets.Packets(
        began_ns=BEGAN_NS, sent_ns=numpy.array([round(at * 1e9) for at in sent_s]),
        bytes=numpy.array([(sizes or {}).get(number, FULL) for number in range(len(sent_s))]),
        out_ns=numpy.array([packets.LOST if at is None else round(at * 1e9) for at in out_s]),
        ecn_sent=numpy.full(len(sent_s), packets.ECT_0 if ect is True else int(ect)),
        ecn_out=numpy.zeros(len(sent_s), int), client_ns=client_ns,
        client_bytes=numpy.array([size for _, size in answers], int),
    )  # fmt: skip
    states = {state: at_s + BEGAN_NS / 1e9 for state, at_s in (triggered or {}).items()}
    return View(
        packets=kept, setting=setting, algorithm=algorithm, requests=tuple(requests), connections=tuple(connections),
        triggered=states, ended_s=ended_s,
    )  # fmt: skip


def permitted(clause_id, how, parts, **rest):
    """Return whether the clause permits what the sender does."""
    clause, found = seen(clause_id, how, parts, **rest)
    return clause.observable.value(clause.observable.samples(found)) in clause.bound


def why_not(clause_id, how, parts, **rest):
    """Return why a trial of this sender shows nothing of the clause."""
    clause, found = seen(clause_id, how, parts, **rest)
    with pytest.raises(Invisible) as why:
        clause.observable.samples(found)
    return str(why.value)
