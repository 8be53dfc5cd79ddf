"""Draw trials over time as panels of plain SVG: goodput, congestion window, round-trip time, queue, losses.

The chart library is not used, as it takes 50 to 100 ms a chart: the 7,500 panels of ten schemes with 150 cells would
take ten minutes instead of a few seconds. The SVG has lines only: numbers and words are in the HTML around it, so that
they stay readable when a phone squeezes the drawing.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.support import schema

#: {column: values} as a file has it, by the schema of result lines; values that are not numbers are not known
Trace = Mapping[str, object]
#: a line to draw: (style, times, values (None if the column is missing), label)
_Drawn = tuple[str, Sequence[float], Sequence[float | None] | None, str]

#: size in units of the drawing; the page stretches it, but strokes keep their width
WIDTH, HEIGHT = 1000, 100
#: goodput is averaged over steps of at least 1/_RATE_STEPS of the time axis
_RATE_STEPS = 50
#: if all goodput is below this share of the link's rate, that rate is not drawn: it would press all else to the floor
_LEAST_OF_LINK = 0.5
_MISSING_TCP = "not known: only Linux TCP reports its {}"
_MISSING_COLUMN = "not recorded by the version of the suite that measured this"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line:
    """A line with gaps where nothing was seen. `pieces`: the `points` of an SVG polyline for each part between gaps."""

    style: str
    label: str
    pieces: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TracePanel:
    """A quantity over time: lines and the scale's top, or `missing`, a sentence on why there is nothing to draw."""

    title: str
    unit: str
    top: str = ""
    lines: tuple[Line, ...] = ()
    missing: str | None = None
    words: str = ""
    hint: str = ""


def end_s(traces: Iterable[Trace]) -> float:
    """Return the end of the time axis that these traces share, in seconds."""
    return max((end for times in map(_times, traces) if times and (end := times[-1]) > 0), default=1.0)


def panels(traces: dict[str, Trace], end: float, bandwidth_mbps: float) -> tuple[TracePanel, ...]:
    """Return the five Panels of {style: trace} over `end` seconds.

    The first style is in front, so its lines come last.
    """
    columns = {style: _Columns(trace) for style, trace in reversed(traces.items())}
    return (
        _goodput(columns, end, bandwidth_mbps),
        _simple(columns, end, "Congestion window", "segments", "cwnd_segments", _MISSING_TCP.format("window")),
        _simple(columns, end, "Round-trip time", "ms", "rtt_ms", _MISSING_TCP.format("round-trip time")),
        _simple(columns, end, "Bottleneck queue", "kB", "queue_bytes", "not recorded", 1e-3),
        _losses(columns, end),
    )


def of_flows(flows: Sequence[Mapping[str, object]]) -> tuple[tuple[TracePanel, ...], float]:
    """Return a TracePanel for each group of a trial's flows, its first flow in front, and the end of the axis in s.

    All groups have one scale, as they stand side by side.
    """
    series = [(str(flow["group"]), _numbers(flow["goodput_series_mbps"])) for flow in flows]
    end = float(max((len(values) for _, values in series), default=0))
    groups: dict[str, list[_Drawn]] = {}
    for group, values in series:
        if any(rate is not None for rate in values):
            of_group = groups.setdefault(group, [])
            style = "highest" if of_group else "median"
            times = [at + 0.5 for at in range(len(values))]
            of_group.append((style, times, values, f"flow {len(of_group)}"))
    titles = {group: f"Goodput of {group}, {len(of)} flow{'s' if len(of) > 1 else ''}" for group, of in groups.items()}
    top = max((_top(of) for of in groups.values()), default=1)
    return tuple(
        _panel(
            titles[group], "Mbit/s", of[::-1], end, "solid: the first flow; dotted: the others" if len(of) > 1 else "",
            top,
        )
        for group, of in groups.items()
    ), end  # fmt: skip


class _Columns:
    """A trace's columns as numbers or None, each as long as the times, whatever the file has."""

    def __init__(self, trace: Trace) -> None:
        self.t = _times(trace)
        self._trace = trace

    def get(self, name: str, scale: float = 1.0) -> list[float | None] | None:
        """Return a column times `scale`; None if it is missing or has no numbers."""
        values = _numbers(self._trace.get(name))[: len(self.t)]
        if all(v is None for v in values):
            return None
        return [None if v is None else v * scale for v in values] + [None] * (len(self.t) - len(values))

    def rate_mbps(self, name: str, over_s: float) -> tuple[list[float], list[float]] | None:
        """Return (ends, mean rates) of steps of at least `over_s` seconds, from a column that counts bytes.

        Acknowledgements are cumulative: when a gap is filled, all data received behind it counts at once. Over shorter
        steps that would look like bursts beyond the link's rate.
        """
        counted = self.get(name)
        if counted is None:
            return None
        known = [(t, v) for t, v in zip(self.t, counted, strict=True) if v is not None]
        # Values missing at the start are from before the connection, when nothing had been acknowledged.
        times: list[float] = []
        rates: list[float] = []
        last_t, last = 0.0, 0.0
        for t, value in known:
            if t > last_t and t - last_t >= over_s:
                times.append(t)
                rates.append((value - last) * 8e-6 / (t - last_t))
                last_t, last = t, value
        return times, rates


def _times(trace: Trace) -> list[float]:
    return [0.0 if t is None else t for t in _numbers(trace.get("t_s"))]


def _numbers(values: object) -> list[float | None]:
    if not isinstance(values, list):
        return []
    return [v if type(v) in (int, float) and abs(v) < schema.LARGEST else None for v in values]


def _goodput(columns: Mapping[str, _Columns], end: float, bandwidth_mbps: float) -> TracePanel:
    """Draw what the receiver acknowledged, if the kernel's TCP reports it; for other stacks, what left the queue."""
    for title, name in (
        ("Goodput", "bytes_acked"),
        ("Throughput, with headers and retransmissions", "queue_out_bytes"),
    ):
        rates_of = {style: c.rate_mbps(name, end / _RATE_STEPS) for style, c in columns.items()}
        drawn = [(style, *rates, title) for style, rates in rates_of.items() if rates and rates[0]]
        if drawn:
            if max(rate for _, _, rates, _ in drawn for rate in rates) < _LEAST_OF_LINK * bandwidth_mbps:
                return _panel(title, "Mbit/s", drawn, end, f"the link's rate is {bandwidth_mbps:g} Mbit/s")
            link = ("link", [0.0, end], [bandwidth_mbps, bandwidth_mbps], "the link's rate")
            return _panel(title, "Mbit/s", [link, *drawn], end, "dotted: the link's rate")
    return TracePanel(title="Goodput", unit="Mbit/s", missing=_MISSING_COLUMN)


def _simple(
    columns: Mapping[str, _Columns], end: float, title: str, unit: str, name: str, missing: str, scale: float = 1.0
) -> TracePanel:
    drawn = [(style, c.t, c.get(name, scale), title) for style, c in columns.items()]
    if not any(values for _, _, values, _ in drawn):
        return TracePanel(title=title, unit=unit, missing=missing)
    return _panel(title, unit, drawn, end)


def _losses(columns: Mapping[str, _Columns], end: float) -> TracePanel:
    """Draw the front trial's packets dropped so far, in all and by the queue; lines of several trials would tangle."""
    front = list(columns.values())[-1]
    everything, queue = front.get("dropped_packets"), front.get("queue_dropped_packets")
    if not everything or not queue:
        return TracePanel(title="Losses so far", unit="packets", missing=_MISSING_COLUMN)
    drawn: list[_Drawn] = [("all", front.t, everything, "in all"), ("queue", front.t, queue, "by the queue")]
    return _panel("Losses so far", "packets", drawn, end, "dashed: dropped by the queue")


def _top(drawn: Sequence[_Drawn]) -> float:
    """Return the largest value that is drawn, where a scale ends."""
    return max((v for _, _, values, _ in drawn for v in values or () if v is not None), default=0) or 1


def _panel(
    title: str, unit: str, drawn: Sequence[_Drawn], end: float, hint: str = "", top: float | None = None
) -> TracePanel:
    """Return the panel of lines, the front one last; `top`: where the scale ends, by default at the largest value."""
    top = top or _top(drawn)
    lines = tuple(
        Line(style=style, label=label, pieces=tuple(_pieces(t, values, end, top)))
        for style, t, values, label in drawn
        if values
    )
    front = [v for v in next(values for _, _, values, _ in reversed(drawn) if values) if v is not None]
    said = f"from {_number(min(front))} to {_number(max(front))} {unit}, {_number(front[-1])} at the end"
    return TracePanel(title=title, unit=unit, top=_number(top), lines=lines, words=said, hint=hint)


def _number(value: float) -> str:
    """Return a number with three significant digits, or with all digits before the decimal point if these are more."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _pieces(t: Sequence[float], values: Sequence[float | None], end: float, top: float) -> Iterator[str]:
    """Yield runs of points without a gap; a lone point is doubled to a line, as it would not be visible otherwise."""
    piece: list[str] = []
    # The gap that is added after the last point ends its run; the time added with it is not used.
    for at, value in zip([*t, end], [*values, None], strict=True):
        if value is not None:
            piece.append(f"{at / end * WIDTH:.0f},{HEIGHT - max(value, 0) / top * HEIGHT:.0f}")
        elif piece:
            yield " ".join(piece if len(piece) > 1 else [piece[0], piece[0]])
            piece = []
