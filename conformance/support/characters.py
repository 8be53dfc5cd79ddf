"""Say which characters of texts of others are shown as they are: they cannot move a terminal's cursor, end a line or
switch the direction of text.
"""


def is_shown(character: str) -> bool:
    """Return whether a character that ends no line is shown as it is."""
    return character.isprintable() or character == "\N{NO-BREAK SPACE}"


def has_control(text: str) -> bool:
    """Return whether text has a character that is not shown as it is. A tab is, and lone surrogates are not counted:
    they are no characters at all.
    """
    return not text.isprintable() and any(map(_is_control, text))


def without_control(text: str) -> str:
    """Return text with a space for each character that has_control() finds."""
    return "".join(" " if _is_control(c) else c for c in text) if has_control(text) else text


def _is_control(character: str) -> bool:
    return not (is_shown(character) or character == "\t" or "\ud800" <= character <= "\udfff")
