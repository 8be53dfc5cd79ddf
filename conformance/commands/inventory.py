"""`conformance adapter list` and `conformance kernel list`: the adapters that ship and the kernels that are built."""

import dataclasses
from typing import Annotated

from conformance.commands.result import Result
from conformance.kernel import store
from conformance.kernel.store import Kernel
from conformance.lab import manifest
from conformance.lab.manifest import Manifest, NotPublic
from conformance.support.record import At, Record


class AdapterRecord(Record):
    name: str
    title: str
    transport: str
    #: {our name of an algorithm: the stack's own name}
    algorithms: Annotated[dict[str, str], At("own_names")]
    #: Whether its programs come from another root file system.
    rootfs: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adapters(Result):
    """The adapters that ship. Listing them neither builds nor runs any."""

    SCHEMA = "adapter-list"

    adapters: Annotated[tuple[Manifest, ...], list[AdapterRecord]]
    #: Stacks that have an entry but cannot be run, because they are not public.
    not_public: tuple[NotPublic, ...] = ()


def adapters() -> Adapters:
    """Find the adapters that ship. Raises UserError."""
    return Adapters(adapters=tuple(manifest.shipped()), not_public=tuple(manifest.not_public()))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kernels(Result):
    """The guest kernels that are built."""

    SCHEMA = "kernel-list"

    kernels: tuple[Kernel, ...]


def kernels() -> Kernels:
    """Find the guest kernels that are built. Raises UserError."""
    return Kernels(kernels=tuple(store.kernels()))
