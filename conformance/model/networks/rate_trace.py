"""Read the rates of a link over time from a file: a trace of Mahimahi's, or a rate for each step."""

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance.model import digest
from conformance.model.errors import UserError

#: formats, by what a line is: the millisecond of an opportunity to deliver one packet (Mahimahi), or a rate in Mbit/s
MAHIMAHI, STEPS = "mahimahi", "steps"
#: `step_s` unless given: the step in which opportunities are counted, and the time that a line of `steps` holds
_STEP_S: Mapping[str, float] = {MAHIMAHI: 0.1, STEPS: 1.0}
#: bits that one of Mahimahi's opportunities delivers
_OPPORTUNITY_BITS = 1500 * 8
_MOST_STEPS, _MOST_MBPS, _LEAST_MBPS = 10_000, 10_000, 0.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class RateTrace:
    """Rates that follow each other, each for `step_s`, and begin again after the last. A rate of 0 holds packets.

    `digest`: that of the file's bytes.
    """

    file: str
    digest: str
    step_s: float
    rates_mbps: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file, "digest": self.digest, "step_s": self.step_s, "rates_mbps": list(self.rates_mbps),
        }  # fmt: skip

    def steps(self, start_s: float, end_s: float) -> Iterator[tuple[float, float, float]]:
        """Yield (from, until, rate) for each change of rate from `start_s` to `end_s`; equal rates in a row are one."""
        at, count = 0, len(self.rates_mbps)
        while start_s + at * self.step_s < end_s:
            first, rate = at, self.rates_mbps[at % count]
            while self.rates_mbps[at % count] == rate and start_s + at * self.step_s < end_s:
                at += 1
            yield start_s + first * self.step_s, min(start_s + at * self.step_s, end_s), rate


def read(source: Mapping[str, Any], load: Callable[[str], bytes]) -> RateTrace:
    """Return the trace of {"file", "format", "step_s"}, or what to_json() wrote. Raises UserError naming the line."""
    if "rates_mbps" in source:
        return RateTrace(**{**source, "rates_mbps": tuple(source["rates_mbps"])})
    file, form = source["file"], source["format"]
    data = load(file)
    step_s = source.get("step_s", _STEP_S[form])
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        raise UserError(f"{file} is not a text file", "give a trace, one number per line") from None
    numbers = [_number(file, at, line) for at, line in enumerate(_lines(text), 1) if line.strip()]
    if not numbers:
        raise UserError(f"{file} contains no numbers", "give a trace, one number per line")
    rates = _binned(file, numbers, step_s) if form == MAHIMAHI else _rates(file, numbers)
    if len(rates) > _MOST_STEPS:
        raise UserError(f"{file} has {len(rates)} steps", f"at most {_MOST_STEPS} fit; give a longer step_s")
    if not any(rates):
        raise UserError(f"{file} never lets anything pass", "give a rate above 0")
    return RateTrace(file=file, digest=digest.of_bytes(data), step_s=step_s, rates_mbps=tuple(rates))


def _lines(text: str) -> Iterator[str]:
    """Yield lines one by one: a list of millions takes hundreds of megabytes."""
    return (match.group() for match in re.finditer(r"(?m)^.*$", text))


def _number(file: str, line: int, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UserError(f"{file}, line {line}: {text.strip()[:20]!r} is not a number") from None
    if not math.isfinite(number) or number < 0:
        raise UserError(
            f"{file}, line {line}: {text.strip()[:20]} is negative or not finite", "give a finite number from 0 on"
        )
    return number


def _rates(file: str, numbers: list[float]) -> list[float]:
    for line, rate in enumerate(numbers, 1):
        if rate and not _LEAST_MBPS <= rate <= _MOST_MBPS:
            why = f"a rate is 0, or from {_LEAST_MBPS} to {_MOST_MBPS} Mbit/s"
            raise UserError(f"{file}, number {line}: {rate:g} is out of range", why)
    return numbers


def _binned(file: str, times_ms: list[float], step_s: float) -> list[float]:
    """Return the rate of each step from its number of opportunities. As in Mahimahi, the last one ends the trace."""
    if sorted(times_ms) != times_ms:
        at = next(at for at, (earlier, other) in enumerate(itertools.pairwise(times_ms), 2) if other < earlier)
        raise UserError(f"{file}, number {at}: it goes back in time", "give the opportunities in order")
    if times_ms[-1] <= 0:
        raise UserError(f"{file} ends at 0 ms", "the last opportunity ends the trace; give it a later time")
    count = math.ceil(round(times_ms[-1] / 1000 / step_s, 9))
    if count > _MOST_STEPS:
        raise UserError(f"{file} has {count} steps", f"at most {_MOST_STEPS} fit; give a longer step_s")
    counts = [0] * count
    for time_ms in times_ms:
        # An opportunity at the very end of a step belongs to that step, as the trace begins after 0.
        counts[max(math.ceil(round(time_ms / 1000 / step_s, 9)) - 1, 0)] += 1
    rates = [round(bin_ * _OPPORTUNITY_BITS / step_s / 1e6, 6) for bin_ in counts]
    return [rate if rate == 0 or rate >= _LEAST_MBPS else _LEAST_MBPS for rate in rates]
