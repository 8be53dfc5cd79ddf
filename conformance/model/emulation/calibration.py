"""Check that the emulator delivered what was requested. If it did not, a trial is an error and never a violation.

What tc reads back (delay, loss and kind of queue) must equal what was requested, and what probe packets saw of rate,
delay and loss must agree with it. Tolerances: 3 % of the rate; 0.5 ms + 2 % of the delay beyond the probe's own
serialization; for the loss, an exact two-sided binomial test at 1e-6, so that a
correct emulator fails once in a million calibrations.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.place import Cell
from conformance.model.setting import Setting

#: what was seen of a link (conformance/guest/seen.py: LinkSeen); what tc shows of a queue; {node: {sysctl: value}}
LinkSeen = Mapping[str, Any]
Qdisc = Mapping[str, Any]
Sysctls = Mapping[str, Mapping[str, str | None]]

RATE_TOLERANCE = 0.03
DELAY_TOLERANCE_MS, DELAY_TOLERANCE = 0.5, 0.02
LOSS_P_VALUE = 1e-6
#: size of the delay probe's frame in bits: 64 bytes of payload and 42 of headers (conformance/guest/calibrate.py)
PROBE_FRAME_BITS = 106 * 8
#: far beyond any option of a queue: larger numbers are ignored
_MOST = 1e15


def binomial_p_value(lost: int, sent: int, probability: float) -> float:
    """Return the two-sided p-value of `lost` out of `sent`: twice the smaller tail, at most 1.

    It is exact, computed with the log-gamma function; 0.0 if the observation is impossible.
    """
    if probability <= 0:
        return 1.0 if lost == 0 else 0.0
    if probability >= 1:
        return 1.0 if lost == sent else 0.0

    def log_pmf(k: int) -> float:
        return (
            math.lgamma(sent + 1) - math.lgamma(k + 1) - math.lgamma(sent - k + 1)
            + k * math.log(probability) + (sent - k) * math.log1p(-probability)
        )  # fmt: skip

    below = math.fsum(math.exp(log_pmf(k)) for k in range(lost + 1))
    above = math.fsum(math.exp(log_pmf(k)) for k in range(lost, sent + 1))
    return min(1.0, 2 * min(below, above))


def _read_back(cell: Cell, queue: str, qdiscs: Sequence[Qdisc]) -> Iterator[str]:
    """Yield problems with what tc shows: each netem, on every interface, must have the requested delay and loss."""
    netems = [q for q in qdiscs if q.get("kind") == "netem"]
    if not netems:
        yield "no netem qdisc is installed"
    for q in netems:
        delay_ms = _option(q, "delay", "delay") * 1000
        loss_pct = _option(q, "loss-random", "loss") * 100
        if not math.isclose(delay_ms, cell.one_way_delay_ms, rel_tol=1e-3, abs_tol=2e-3):
            yield f"netem on {q.get('dev')} has a delay of {delay_ms:g} ms instead of {cell.one_way_delay_ms:g}"
        if not math.isclose(loss_pct, cell.loss_pct, rel_tol=1e-3, abs_tol=1e-6):
            yield f"netem on {q.get('dev')} has a loss of {loss_pct:g} % instead of {cell.loss_pct:g}"
    wanted = queue.partition(":")[0]
    wanted = "bfifo" if wanted == "policer" else wanted
    if not any(q.get("kind") == wanted for q in qdiscs):
        yield f"no {wanted} qdisc is installed"


def _option(queue: Qdisc, *path: str) -> float:
    """Return a number from the options that tc shows of a queue; 0 if there is none, since tc leaves zeros out."""
    found = queue.get("options")
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, (int, float)) and abs(found) < _MOST else 0


def sysctl_problems(setting: Setting, found: Sysctls) -> Iterator[str]:
    """Yield sentences about sysctls that differ from the request, except those that a node's kernel lacks (None)."""
    for node, values in sorted(found.items()):
        for name, asked in setting.sysctls:
            held = values.get(name)
            if held is not None and held.split() != asked.split():
                yield f"{name} on the {node} is {held!r} instead of {asked!r}"


def problems(setting: Setting, observed: Sequence[LinkSeen]) -> list[str]:
    """Return sentences about what the emulators did not deliver; empty if they delivered everything.

    `observed`: for each link, the client's first, what was seen (conformance/guest/calibrate.py) and its "qdiscs".
    """
    form = setting.cell_form
    if form is None or len(observed) != len(form.links):
        return [f"{len(observed)} links were calibrated, but the setting has {len(setting.network.links)}"]
    found: list[str] = []
    for cell, seen, side in zip(form.links, observed, ("client", "server"), strict=False):
        where = f" ({side}'s segment)" if form.segments else ""
        found += [f"{problem}{where}" for problem in _link_problems(cell, form.queue, seen)]
    return found


def _link_problems(cell: Cell, queue: str, observed: LinkSeen) -> list[str]:
    found = list(_read_back(cell, queue, observed["qdiscs"]))
    rate = observed["rate_mbps"]
    if rate is None:
        found.append("no probe packet for the rate arrived")
    elif abs(rate - cell.bandwidth_mbps) > RATE_TOLERANCE * cell.bandwidth_mbps:
        found.append(f"the emulator delivered {rate:.3g} Mbit/s instead of {cell.bandwidth_mbps:g}")
    delays = sorted(observed["delays_ms"])
    if not delays:
        found.append("no probe packet for the delay arrived")
    else:
        low, asked = delays[0], cell.one_way_delay_ms
        serialization_ms = PROBE_FRAME_BITS / (cell.bandwidth_mbps * 1000)
        if not asked - 0.01 <= low <= asked + serialization_ms + DELAY_TOLERANCE_MS + DELAY_TOLERANCE * asked:
            found.append(f"the emulator delayed packets by {low:.4g} ms instead of {asked:g}")
    sent, lost = observed["loss_sent"], observed["loss_lost"]
    if binomial_p_value(lost, sent, cell.loss_pct / 100) < LOSS_P_VALUE:
        found.append(f"the emulator lost {lost} of {sent} probe packets instead of {cell.loss_pct:g} %")
    return found
