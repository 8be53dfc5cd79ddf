"""How each Status looks, defined once: its mark, its tone, its words in legends, its stroke in small heatmaps."""

from typing import NamedTuple

from conformance.model.judging.verdict import Status


class Tone(NamedTuple):
    """How words look that say alike. `name` is their class on pages (style.css), and `style` is of rich. White text on
    `colour` has a contrast of at least 4.5 to 1.
    """

    name: str
    style: str
    colour: str


AGAINST = Tone("against", "bold red", "#b33a00")
FAULT = Tone("fault", "bold magenta", "#8a2a6b")
OPEN = Tone("open", "yellow", "#7a5200")
FOR = Tone("for", "", "#00664a")
QUIET = Tone("quiet", "dim", "#57606a")


class Stroke(NamedTuple):
    """A mark as a path of SVG in a square of 10 by 10, its form and what it marks, in words."""

    path: str
    form: str
    marked: str


class Look(NamedTuple):
    """`mark` stands beside a number. Where there is no room for text, `stroke` does, if there is one."""

    tone: Tone
    mark: str
    meaning: str = ""
    stroke: Stroke | None = None

    @property
    def symbol(self) -> str:
        """The mark where there is more room, so that what conforms has one, too."""
        return self.mark or "✓"


#: in the order of legends
LOOKS = {
    Status.CONFORMS: Look(FOR, "", "the median\N{RIGHT SINGLE QUOTATION MARK}s 90 % interval is inside the zone"),
    Status.COMPATIBLE: Look(FOR, "≈", "the median is inside, but trials spread too widely to say more"),
    Status.VIOLATES: Look(
        AGAINST,
        "✗",
        "the median is outside, farther than chance explains",
        Stroke("m1.5 1.5l7 7m0 -7l-7 7", "a cross", "a violation"),
    ),
    Status.FAILS: Look(
        AGAINST,
        "☠",
        "trials end or break off where another stack gets through",
        Stroke("m1.5 5h7m-3.5 -3.5v7", "a plus", "a stack that fails"),
    ),
    Status.INCONCLUSIVE: Look(
        OPEN, "?", "neither inside nor outside is certain", Stroke("m2 8l6 -6", "a stroke", "an inconclusive cell")
    ),
    Status.ERROR: Look(
        FAULT,
        "!",
        "emulator, guest or adapter failed; or the stack did, and no other is known to get through",
        Stroke("m1.5 1.5h7v7h-7z", "a frame", "an error"),
    ),
    Status.UNSUPPORTED: Look(
        QUIET, "-", "the stack does not offer it", Stroke("m4 5h2", "a dash", "an unsupported cell")
    ),
    Status.NOT_JUDGED: Look(QUIET, "·", "the cell cannot tell a difference of 30 %, or no zone is about it"),
}
