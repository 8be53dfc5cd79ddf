"""Benches: look up the stack, kernel and room that a user chose by name, to run trials with."""

import dataclasses
import functools
import pathlib
import shlex
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from conformance.catalogue import documents
from conformance.kernel import store as kernels
from conformance.lab import adapter as adapters, version
from conformance.lab.room import ROOM, Room
from conformance.model.errors import UserError
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Scheme, Trial
from conformance.support.notes import Notes

if TYPE_CHECKING:
    from conformance.engine.workers import Executor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a user chose to test, by names that are not looked up yet.

    `kernel`: None for the kernel that each algorithm asks for. `client`: see adapter.load(). `interop_rootfs`: a folder
    that is tested instead of `stack`. `source`: working trees to build the stack with, each as NAME=PATH.
    """

    stack: str = "linux-tcp"
    source: tuple[str, ...] = ()
    client: str = adapters.COMMON
    interop_rootfs: str | None = None
    kernel: str | None = None

    def options(self, *without: str) -> str:
        """Return command-line options for all fields that differ from their defaults, except the fields `without`.

        Each option comes after a space.
        """
        given = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in without and getattr(self, field.name) != field.default
        }
        repeated = given.pop("source", ())
        words = [*given.items(), *(("source", text) for text in repeated)]
        return "".join(f" --{name.replace('_', '-')} {shlex.quote(value)}" for name, value in words)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """With what a command measures: the results file, how many guests run at a time, and who hears how far it is.

    `workers`: None for one on each core. `executor` makes trials elsewhere (conformance/engine/workers.py).
    """

    results: str | pathlib.Path
    notes: Notes
    workers: int | None = None
    executor: "Callable[[], Executor] | None" = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlace:
    """The room and kernel for an algorithm's trials; if the kernel is not built, no room, and `why_not`."""

    kernel: kernels.Kernel
    room: Room | None
    why_not: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """The stack and kernels that trials are run with, and the `choice` that they were found by.

    `place` finds the BenchPlace of an algorithm. `lab_digest` is the lab version (lab/version.py).
    """

    adapter: adapters.Adapter
    place: Callable[[str], BenchPlace]
    lab_digest: str
    choice: Choice

    @property
    def profile(self) -> str:
        """The name of the profile that this stack is judged under."""
        return documents.PROFILES[self.adapter.manifest.transport]

    def scheme(self, algorithm: str) -> Scheme:
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

    def elsewhere(self, room: Room) -> "Bench":
        """Return the same bench with `room` in place of its own rooms, for all built kernels."""

        def in_room(algorithm: str) -> BenchPlace:
            here = self.place(algorithm)
            return here if here.room is None else dataclasses.replace(here, room=room)

        return dataclasses.replace(self, place=in_room)

    def trials(self, algorithm: str, setting: Setting, seeds: Iterable[int]) -> list[Trial]:
        scheme = self.scheme(algorithm)
        return [
            Trial(setting=setting, scheme=scheme, seed=seed, room=ROOM, lab_digest=self.lab_digest) for seed in seeds
        ]


def find(choice: Choice | str = Choice(), remembers: bool = True) -> Bench:
    """Return the Bench of a Choice, or of a stack by its name.

    One that does not remember calibrations makes them anew in every guest.

    Raise UserError if its stack or kernel is missing. If only the kernel that some algorithm asks for is missing,
    that algorithm is unsupported instead.
    """
    if isinstance(choice, str):
        choice = Choice(stack=choice)
    for name in ("stack", "client", "kernel", "interop_rootfs"):
        if getattr(choice, name) == "":
            raise UserError(f"--{name.replace('_', '-')} is empty", "give it a value, or leave it out")
    if choice.interop_rootfs:
        usual = Choice()
        if choice.source or (choice.stack, choice.client) != (usual.stack, usual.client):
            raise UserError("an exported image is run as it is", "leave out --stack, --client and --source")
        adapter = adapters.load_interop(choice.interop_rootfs)
    else:
        adapter = adapters.load(choice.stack, choice.client, choice.source)
        if adapter.manifest.rootfs:
            raise UserError(
                f"stack {adapter.name} runs a root file system that you provide", "name it with --interop-rootfs"
            )
    place = _place(choice, adapter, remembers)
    return Bench(adapter=adapter, place=place, lab_digest=version.lab_version(), choice=choice)


def room(kernel: kernels.Kernel, remembers: bool = True) -> Room:
    """Return the room in which trials run on a kernel."""
    from conformance.lab.virtual import VirtualRoom

    return VirtualRoom(kernel, remembers=remembers)


def _place(choice: Choice, adapter: adapters.Adapter, remembers: bool) -> Callable[[str], BenchPlace]:
    kernels.find(choice.kernel or kernels.DEFAULT_NAME)

    @functools.cache
    def on_own_kernel(algorithm: str) -> BenchPlace:
        name = choice.kernel or adapter.kernel(algorithm) or kernels.DEFAULT_NAME
        try:
            kernel = kernels.find(name)
        except UserError as error:
            return BenchPlace(kernel=kernels.missing(name), room=None, why_not=str(error))
        return BenchPlace(kernel=kernel, room=room(kernel, remembers))

    return on_own_kernel
