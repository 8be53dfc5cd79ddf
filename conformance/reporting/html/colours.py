"""Define colours that colour-blind people and printers can tell apart, and marks that say the same without colour.

Values: viridis (S. van der Walt, N. Smith, 2015), whose lightness grows evenly, so it also works in print. Differences:
PuOr of ColorBrewer (C. Brewer, 2002), safe for red-green blindness; in print, the sign in every cell tells the scale's
ends apart. Verdicts: colours of Okabe and Ito (2008), never without their mark
(marks.py).
"""

from collections.abc import Sequence

from conformance.model.metrics.table import METRICS

#: red, green, blue, each from 0 to 255
Colour = tuple[int, int, int]
#: number of steps of a scale; pages name a step by its CSS class (u0 ... u20, d0 ... d20) instead of a colour
STEPS = 21
VIRIDIS = ("440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725")
PUOR = ("2d004b", "542788", "8073ac", "b2abd2", "d8daeb", "f7f7f7", "fee0b6", "fdb863", "e08214", "b35806", "7f3b08")


def value_step(metric: str, value: float | None) -> str:
    """Return the CSS class of a measured value; "none" if it is missing."""
    return "none" if value is None else f"u{_step(value / METRICS[metric].full_scale)}"


#: the distance from the reference at which a cell's colour is strongest; the zone's bound is at 1
FULL_DISTANCE = 2.0


def distance(value: float, reference: float, low: float, high: float) -> float:
    """Return how far a value is from the reference, where 1 is the distance of the zone's bound.

    The widths of permitted intervals differ by a factor of 100 between cells: if all differences were on one scale, the
    worst violations at high loss would be white.
    """
    room = high - reference if value > reference else reference - low
    return (value - reference) / room if room > 0 else float((value > reference) - (value < reference))


def distance_step(value: float | None, reference: float, low: float, high: float) -> str:
    """Return the CSS class of a value by its distance(); "none" if it is missing."""
    if value is None:
        return "none"
    return f"d{_step(0.5 + distance(value, reference, low, high) / FULL_DISTANCE / 2)}"


def _step(share: float) -> int:
    return round(min(max(share, 0.0), 1.0) * (STEPS - 1))


def ramp(anchors: Sequence[str]) -> list[Colour]:
    """Return the STEPS colours of a scale."""
    colours: list[Colour] = []
    for step in range(STEPS):
        at = step / (STEPS - 1) * (len(anchors) - 1)
        left = min(int(at), len(anchors) - 2)
        pair = [[int(anchor[i : i + 2], 16) for i in (0, 2, 4)] for anchor in anchors[left : left + 2]]
        red, green, blue = (round(a + (b - a) * (at - left)) for a, b in zip(*pair, strict=True))
        colours.append((red, green, blue))
    return colours


def luminance(colour: Colour) -> float:
    """Return the relative luminance, from 0 to 1 (WCAG 2.2)."""
    linear: list[float] = [
        c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: Colour, second: Colour) -> float:
    """Return the contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def ink(colour: Colour) -> Colour:
    """Return black or white, whichever has more contrast to this colour: at least 4.58 to 1, which meets WCAG's AA."""
    return max(((0, 0, 0), (255, 255, 255)), key=lambda text: contrast(colour, text))


def ink_of(step: str) -> str:
    """Return the name of the text colour, black or white, on a step of either scale; "none" is a white background."""
    if step == "none":
        return "black"
    colour = ramp(VIRIDIS if step[0] == "u" else PUOR)[int(step[1:])]
    return "black" if ink(colour) == (0, 0, 0) else "white"


def css() -> str:
    """Return CSS with a class for each step of both scales: `fill` is for drawings, the rest for table cells."""
    lines = []
    for letter, anchors in (("u", VIRIDIS), ("d", PUOR)):
        for step, colour in enumerate(ramp(anchors)):
            back, text = ("#{:02x}{:02x}{:02x}".format(*c) for c in (colour, ink(colour)))
            lines.append(f".{letter}{step}{{background:{back};color:{text};fill:{back}}}")
    return "\n".join(lines)
