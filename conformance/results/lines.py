"""Lines of our files that a crash or a full disk ended early."""

import json


def is_beginning(line: bytes, beginning: bytes) -> bool:
    """Say whether a line begins as all lines of its file do, with `beginning`, as far as it goes."""
    return line.startswith(beginning) or beginning.startswith(line)


def cut_short(line: bytes, beginning: bytes) -> bool:
    """Say whether a line is the beginning of one that an append wrote in part. An empty line is none."""
    line = line.rstrip()
    if not line.startswith(beginning):
        return bool(line) and is_beginning(line, beginning)
    if not line.endswith(b"}"):
        return True
    if line.count(b"{") <= line.count(b"}"):
        return False
    # An object within the line ended there, or a text holds a brace.
    try:
        json.loads(line)
    except ValueError:
        return True
    except RecursionError:
        pass
    return False
