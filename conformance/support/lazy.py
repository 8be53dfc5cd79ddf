"""Import the modules of a package when they are first named, since some take a second."""

import importlib
from collections.abc import Callable
from types import ModuleType


def modules_of(package: str) -> Callable[[str], ModuleType]:
    """Return the `__getattr__` of a package, which imports the module with a name."""

    def module(name: str) -> ModuleType:
        whole = f"{package}.{name}"
        try:
            return importlib.import_module(whole)
        except ModuleNotFoundError as error:
            if error.name != whole:
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    return module
