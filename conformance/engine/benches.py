"""Benches: from what a user chooses by name to the stack, the kernel and the room that its trials are run with."""

import collections.abc
import dataclasses
import functools
import shlex

from conformance.catalogue import documents
from conformance.kernel import store as kernels
from conformance.lab import adapter as adapters
from conformance.lab import version
from conformance.model.errors import UserError
from conformance.model.trial import Scheme, Trial


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """What a user chooses to test, by names that are not looked up yet.

    `kernel` None is the one that an algorithm asks for; `client`: see adapter.load(); `interop_rootfs`, a folder,
    stands in the place of `stack`.
    """

    stack: str = "linux-tcp"
    client: str = adapters.COMMON
    interop_rootfs: str | None = None
    kernel: str | None = None
    lab: str = "virtual"

    def options(self, *without):
        """What is not as usual, as options of a command line, each with a space before it; `without` these fields."""
        given = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in without and getattr(self, field.name) != field.default
        }
        return "".join(f" --{name.replace('_', '-')} {shlex.quote(value)}" for name, value in given.items())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """Room and kernel that an algorithm's trials are run in; no room, and why not, where the kernel is not built."""

    kernel: kernels.Kernel
    room: object
    why_not: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """Stack, lab and kernel that trials are run with, and the `choice` they were found by.

    `place` finds the Place of an algorithm.
    """

    adapter: adapters.Adapter
    lab: str
    place: collections.abc.Callable
    lab_digest: str
    choice: Choice

    @property
    def profile(self):
        """Name of the profile that this stack is judged under."""
        return documents.PROFILES[self.adapter.manifest.transport]

    def scheme(self, algorithm):
        kernel = self.place(algorithm).kernel
        return Scheme(
            algorithm=algorithm,
            stack=self.adapter.name,
            stack_version=self.adapter.version,
            stack_digest=self.adapter.digest,
            kernel=kernel.name,
            kernel_release=kernel.release,
            kernel_digest=kernel.digest,
        )

    def elsewhere(self, room):
        """The same bench, with `room` instead of its own rooms for kernels that are built. Raises UserError."""
        if self.lab != "virtual":
            raise UserError(f"workers do not share the {self.lab} lab", "leave --lab or --executor out")

        def place(algorithm):
            here = self.place(algorithm)
            return here if here.room is None else dataclasses.replace(here, room=room)

        return dataclasses.replace(self, place=place)

    def trials(self, algorithm, setting, seeds):
        scheme = self.scheme(algorithm)
        return [
            Trial(setting=setting, scheme=scheme, seed=seed, room=self.lab, lab_digest=self.lab_digest)
            for seed in seeds
        ]


def find(choice=Choice()):
    """Find the stack, the room and the kernel of a Choice.

    Raises UserError where one is missing; a kernel that only some algorithm asks for makes that unsupported.
    """
    if choice.interop_rootfs:
        adapter = adapters.load_interop(choice.interop_rootfs)
    else:
        adapter = adapters.load(choice.stack, choice.client)
        if adapter.manifest.rootfs:
            raise UserError(f"stack {adapter.name} runs other root file systems", "name one with --interop-rootfs")
    lab, kernel = choice.lab, choice.kernel
    if lab == "virtual":
        from conformance.lab.virtual import VirtualRoom

        usual = kernels.usual(user_space=adapter.manifest.transport == "udp")
        kernels.find(kernel or usual)

        @functools.cache
        def place(algorithm):
            name = kernel or adapter.kernel(algorithm) or usual
            try:
                found = kernels.find(name)
            except UserError as error:
                return Place(kernel=kernels.missing(name), room=None, why_not=str(error))
            return Place(kernel=found, room=VirtualRoom(found))

    elif lab == "host":
        from conformance.lab.host import HostRoom, this_kernel

        here = Place(kernel=this_kernel(), room=HostRoom())

        def place(algorithm):
            return here

    else:
        raise UserError(f"lab {lab!r} is not known", "choose virtual or host")
    return Bench(adapter=adapter, lab=lab, place=place, lab_digest=version.lab_version(), choice=choice)
