"""Libraries that are heavy and that no verdict needs: extras of the package, which an installation may do without."""

import importlib.util

from conformance.model.errors import UserError

#: {extra, as pyproject.toml has it: the modules that it brings}
_MODULES = {"figures": ("altair", "vl_convert"), "parquet": ("pyarrow",)}


def installed(extra: str) -> bool:
    """Return whether what an extra brings is there."""
    return not _missing(extra)


def need(extra: str) -> None:
    """Raise UserError unless what an extra brings is there. To be called before anything takes long."""
    if missing := _missing(extra):
        raise UserError(
            f"this needs {' and '.join(missing)}, not installed here",
            f"install the suite's wheel with the extra {extra} (docs/install.md), or run ./setup.sh in a checkout",
        )


def _missing(extra: str) -> list[str]:
    return [module for module in _MODULES[extra] if importlib.util.find_spec(module) is None]
