"""Where things are: the data that ships with the suite, and the user's cache."""

import os
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parent.parent


def data(*parts: str) -> pathlib.Path:
    """A file or folder that ships with the suite: from the checkout, or from the installed package."""
    checkout = PACKAGE.parent
    root = checkout if (checkout / "zones").is_dir() else PACKAGE / "_data"
    return root.joinpath(*parts)


def cache(*parts: str) -> pathlib.Path:
    """In the user's cache: CC_CONFORMANCE_CACHE, else XDG_CACHE_HOME, else ~/.cache."""
    own = os.environ.get("CC_CONFORMANCE_CACHE")
    if own:
        root = pathlib.Path(own)
    else:
        home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        root = pathlib.Path(home) / "cc-conformance"
    return root.expanduser().absolute().joinpath(*parts)
