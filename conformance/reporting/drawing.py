"""Whether figures can be drawn here: altair and vl-convert are heavy, and an installation may do without them."""

import importlib.util

#: modules that one thing each is done with, and no verdict: what `pip` calls them
EXTRAS = {"altair": "altair", "vl_convert": "vl-convert-python", "pyarrow": "pyarrow"}


def is_possible() -> bool:
    """Return whether figures can be drawn; pages and reports leave them out otherwise."""
    return all(importlib.util.find_spec(module) for module in ("altair", "vl_convert"))
