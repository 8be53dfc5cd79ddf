"""Check for extras of the package: heavy libraries that no verdict needs and that need not be installed."""

import importlib.util

from conformance.model.errors import UserError

#: {name of an extra in pyproject.toml: the modules that it installs}
_MODULES = {"figures": ("altair", "vl_convert"), "parquet": ("pyarrow",)}


def installed(extra: str) -> bool:
    """Return whether the modules of an extra are installed."""
    return not _missing(extra)


def need(extra: str) -> None:
    """Raise UserError unless the modules of an extra are installed. Call this before any long work."""
    if missing := _missing(extra):
        raise UserError(
            f"not installed: {' and '.join(missing)}, which this needs",
            f"install the suite's wheel with the extra {extra} (docs/install.md), or run ./setup.sh in a checkout",
        )


def _missing(extra: str) -> list[str]:
    return [module for module in _MODULES[extra] if importlib.util.find_spec(module) is None]
