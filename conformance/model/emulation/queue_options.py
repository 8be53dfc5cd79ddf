"""Compare sizes, rates and marks of an interface's qdiscs, as tc shows them, with the lines that tc was given."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: handle, kind and options of a qdisc in a line for tc, and a number among these with its unit
_QDISC = re.compile(r" handle (\w+:) (\w+) (.*)")
_NUMBER = re.compile(r"([0-9.e+-]+)(mbit|us)?\Z")
_BYTES_PER_S = 1e6 / 8
#: {option: by which share the kernel may round it to units of its own}
_ROUNDED = {"limit": 0, "min": 0, "max": 0, "rate": 0.001, "burst": 0.01, "ce_threshold": 0.01}


def problems(lines: Sequence[str], qdiscs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield sentences about options of qdiscs that differ from `lines` (shaping.tc_lines).

    A number that tc does not show is not compared. It shows ecn and thresholds only where they are in force.
    """
    shown = {(str(queue.get("handle")), str(queue.get("kind"))): queue.get("options") or {} for queue in qdiscs}
    for handle, kind, text in (qdisc.groups() for line in lines if (qdisc := _QDISC.search(line))):
        options: Mapping[str, Any] | None = shown.get((handle, kind))
        if options is None:
            continue
        words = text.split()
        for name, word in itertools.pairwise(words):
            if name not in _ROUNDED or (number := _number(options, name)) is None:
                continue
            if not math.isclose(number, requested := _requested(word), rel_tol=_ROUNDED[name]):
                yield f"a {kind} with {name} {number:g} instead of {requested:g}"
        marks = bool(options.get("ecn"))
        if {"ecn", "noecn"}.intersection(words) and marks != ("ecn" in words):
            yield f"a {kind} that {'marks' if marks else 'does not mark'}"


def _requested(word: str) -> float:
    number = _NUMBER.match(word)
    if number is None:
        raise ValueError(word)
    return float(number[1]) * (_BYTES_PER_S if number[2] == "mbit" else 1)


def _number(options: Mapping[str, Any], name: str) -> float | None:
    option = options.get(name, 0 if name == "ce_threshold" else None)
    # netem's rate is one of several numbers of that name.
    number = option.get(name) if isinstance(option, Mapping) else option
    return None if number is None else float(number)
