"""How each Status looks: its mark, its style in a terminal, and its colour on a badge, defined once."""

from typing import NamedTuple

from conformance.model.judging.verdict import Status


class Look(NamedTuple):
    """`mark` stands beside a number, and `meaning` says what it means. `style` is of rich. White text on `colour` has a
    contrast of at least 4.5 to 1.
    """

    mark: str
    style: str
    colour: str
    meaning: str = ""


LOOKS = {
    Status.VIOLATES: Look("✗", "bold red", "#b33a00", "the median is outside the zone"),
    Status.FAILS: Look("☠", "bold red", "#b33a00", "the stack does not get through"),
    Status.ERROR: Look(
        "!",
        "bold magenta",
        "#8a2a6b",
        "emulator, guest or adapter failed; or the stack did, and no other is known to get through",
    ),
    Status.INCONCLUSIVE: Look("?", "yellow", "#7a5200", "more trials would be needed"),
    Status.UNSUPPORTED: Look("-", "dim", "#57606a", "the stack does not offer this"),
    Status.COMPATIBLE: Look("≈", "", "#00664a", "the median is inside, but trials spread too widely to say more"),
    Status.CONFORMS: Look("", "", "#00664a"),
    Status.NOT_JUDGED: Look("·", "dim", "#57606a"),
}
#: {status: its mark where there is more room, and that which conforms has one, too}
SYMBOLS = {status: look.mark for status, look in LOOKS.items()} | {Status.CONFORMS: "✓"}
