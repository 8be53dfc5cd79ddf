"""Find the bases of a zone besides its reference: what documents say, and other implementations that were measured.

A document's basis is played: transfers follow the document's equations alone (played.py), and packets are lost
one by one at random. A measured basis is another implementation's trials in the same settings.
"""

import functools
import math
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from conformance.model.emulation import shaping
from conformance.model.judging import played
from conformance.model.judging.zone import REFERENCE_PACKET_BYTES, SMALL_PACKET_BYTES, Basis
from conformance.model.metrics.table import BACK_TO_BACK, UTILIZATION
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting

PLAYED_TRIALS = 60
#: how many random numbers are drawn at a time
_AT_A_TIME = 4096
#: the name in zones of the document that limits bursts to the initial window
_BURST_LIMIT = "rfc9002"
#: size of the headers of Ethernet, IPv4 and TCP with timestamps; QUIC's are of about this size, too
_HEADERS_BYTES = 66


def documented(algorithm: str, metric: str, setting: Setting) -> tuple[tuple[Basis, ...], float] | None:
    """Return (the bases that documents give for a metric in a setting, the factor of small packets); None if there are
    none.

    Documents say nothing of networks that are not those of cells.
    """
    if not isinstance(setting.point, Cell):
        return None
    if metric == UTILIZATION.name:
        return played_bases(algorithm, setting)
    if metric == BACK_TO_BACK.name:
        return (Basis.of(_BURST_LIMIT, [played.INITIAL_WINDOW_PACKETS] * PLAYED_TRIALS),), 1.0
    return None


def played_bases(algorithm: str, setting: Setting) -> tuple[tuple[Basis, ...], float] | None:
    """Return (the bases that documents give for the algorithm in a setting, the factor of small packets), if they apply
    to it.

    Documents are about packets that are lost one by one, at random: neither about losses of the queue alone, nor about
    super-packets.
    """
    if setting.offload or not setting.cell.loss_pct:
        return None
    named = played.documents(algorithm, _path(setting, REFERENCE_PACKET_BYTES))
    if not named:
        return None
    bases = tuple(Basis.of(_called(name), _played(name, setting, REFERENCE_PACKET_BYTES)) for name in named)
    small = statistics.median(_played(named[0], setting, SMALL_PACKET_BYTES))
    return bases, round(small / bases[0].median, 4)


def _called(name: str) -> str:
    """Return the name of a played document among a zone's references."""
    return f"{name.lower().replace(' ', '')}-played"


def _path(setting: Setting, packet_bytes: int) -> played.PlayedPath:
    return played.PlayedPath(
        bandwidth_mbps=setting.cell.bandwidth_mbps,
        rtt_s=setting.cell.rtt_s,
        loss=setting.cell.loss_pct / 100,
        packet_bytes=packet_bytes,
        wire_bytes=packet_bytes + _HEADERS_BYTES,
        queue_packets=_queue_bytes(setting) / (packet_bytes + _HEADERS_BYTES),
        transfer_bytes=setting.transfer_bytes,
    )


def _queue_bytes(setting: Setting) -> float:
    """Return how many bytes a queue holds before it drops: a bfifo's size, or RED's upper threshold.

    All other queues are treated as RED, whose threshold is about a BDP.
    """
    kind, _, size = setting.queue.partition(":")
    if kind == "bfifo":
        return float(size) * setting.cell.bdp_bytes
    return shaping.red_parameters(setting.cell.bdp_bytes)["max_bytes"]


def passing(loss: float, seed: str) -> Iterator[float]:
    """Yield how many packets pass before each lost one; packets are lost independently, with probability `loss`.

    `seed` initializes Python's generator. NumPy has the same generator, and draws thousands of numbers at a time.
    """
    _, state, _ = random.Random(seed).getstate()
    draws = numpy.random.RandomState()
    draws.set_state(("MT19937", numpy.array(state[:-1], dtype=numpy.uint32), state[-1], 0, 0.0))
    passed = 0
    while loss:
        last = -1
        for at in numpy.flatnonzero(draws.random_sample(_AT_A_TIME) < loss).tolist():
            yield passed + at - last - 1
            passed, last = 0, at
        passed += _AT_A_TIME - last - 1
    yield math.inf


@functools.lru_cache(maxsize=1024)
def _played(name: str, setting: Setting, packet_bytes: int) -> tuple[float, ...]:
    path = _path(setting, packet_bytes)
    seeds = (f"{name} {setting.cell.id} {seed}" for seed in range(1, PLAYED_TRIALS + 1))
    return tuple(round(played.utilization(name, path, passing(path.loss, seed)), 4) for seed in seeds)


def document_references(algorithm: str, named: Iterable[str]) -> dict[str, Any]:
    """Return {name: about} of those references in `named` that are documents, as a zone describes them."""
    used = set(named)
    limit = {
        _BURST_LIMIT: {
            "scheme": f"{algorithm}/RFC 9002",
            "trials": PLAYED_TRIALS,
            "what": "the most that may be sent at once without pacing, in each transfer: the initial window"
            " (section 7.7; RFC 6928)",
        }
    }
    by_name = {_called(name): name for name in played.CONTROLLERS}
    return {name: about for name, about in limit.items() if name in used} | {
        name: {
            "scheme": f"{algorithm}/{by_name[name]}",
            "trials": PLAYED_TRIALS,
            "what": f"transfers that follow {by_name[name]} alone, each packet lost by chance",
        }
        for name in sorted(used & set(by_name))
    }


def is_measured(about: Mapping[str, Any]) -> bool:
    """Return whether a reference in a zone rests on trials, not on a document; `about`: what the zone says of it."""
    return "kernel_digest" in about


def measured(of_point: Sequence[Basis], references: Mapping[str, Mapping[str, Any]]) -> tuple[Basis, ...]:
    """Return those of a place's bases that were measured: the reference first, then other implementations."""
    first, *further = of_point
    return (first, *(basis for basis in further if is_measured(references[basis.reference])))
