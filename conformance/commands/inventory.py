"""`conformance adapter list` and `conformance kernel list`: the adapters that ship and the kernels that are built."""

import dataclasses

from conformance.commands.result import Document, Done, document
from conformance.kernel import store
from conformance.kernel.store import Kernel
from conformance.lab import manifest
from conformance.lab.manifest import Manifest, NotPublic


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adapters(Done):
    """The adapters that ship. Listing them neither builds nor runs any."""

    manifests: tuple[Manifest, ...]
    #: adapters that are listed but cannot be run, because their stacks are not public
    not_public: tuple[NotPublic, ...] = ()

    def to_json(self) -> Document:
        """Return a document of schemas/adapter-list.json."""
        return document(
            "adapter-list", self.exit_status,
            adapters=[
                {
                    "name": about.name, "title": about.title, "transport": about.transport,
                    "algorithms": {name: about.called(name) for name in about.offered()}, "rootfs": about.rootfs,
                }
                for about in self.manifests
            ],
            not_public=[dataclasses.asdict(one) for one in self.not_public],
        )  # fmt: skip


def adapters() -> Adapters:
    """Find the adapters that ship. Raises UserError."""
    return Adapters(manifests=tuple(manifest.shipped()), not_public=tuple(manifest.not_public()))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kernels(Done):
    """The guest kernels that are built."""

    kernels: tuple[Kernel, ...]

    def to_json(self) -> Document:
        """Return a document of schemas/kernel-list.json."""
        return document(
            "kernel-list", self.exit_status,
            kernels=[
                {
                    "name": k.name, "release": k.release, "digest": k.digest, "source": k.source,
                    "binary": str(k.binary), "patches": list(k.patches),
                    "parameters": {name: str(value) for name, value in k.parameters},
                }
                for k in self.kernels
            ],
        )  # fmt: skip


def kernels() -> Kernels:
    """Find the guest kernels that are built. Raises UserError."""
    return Kernels(kernels=tuple(store.kernels()))
