"""Commands that build and check what runs need: guest kernels, adapters, the machine."""

from collections.abc import Sequence

import click

from conformance.cli.base import FORMAT, err, finish, progress_console


@click.group()
def kernel() -> None:
    """Guest kernels: build and list."""


_SOURCE = click.option("--source", help="Kernel source: folder, tarball, or a package such as linux-source-6.1.")
_PATCHES = click.option(
    "--patch", "patches", multiple=True, type=click.Path(), help="Apply this patch first (repeatable)."
)


@kernel.command("build")
@click.argument("name", default="default")
@_SOURCE
@_PATCHES
@click.option("--jobs", type=click.IntRange(1), help="Compile this many files at once (default: all cores).")
@FORMAT
def kernel_build(name: str, source: str | None, patches: Sequence[str], jobs: int | None, form: str) -> None:
    """Build a guest kernel and give it NAME; one that was built before is only found."""
    from conformance.commands.made import Item, Made
    from conformance.kernel import build
    from conformance.reporting.text import made, progress

    with progress.bar(err, f"kernel {name}") as bar:

        def show(done: int, total: int, what: str) -> None:
            bar.stage(what)
            if total:
                bar.reached(done, total)

        built = build.build(name, source, patches, show, jobs)
    words = f"kernel {built.name}: Linux {built.release}, {built.digest}, {built.binary}"
    item = Item(name=built.name, words=words, path=str(built.binary), digest=built.digest)
    finish(Made(command="kernel build", items=[item]), form, made.show)


@kernel.command("variant")
@click.argument("name")
@click.option("--of", default="default", show_default=True, help="The kernel it is a variant of.")
@click.option("--parameter", "parameters", multiple=True, required=True, help="MODULE.NAME=VALUE (repeatable).")
@FORMAT
def kernel_variant(name: str, of: str, parameters: Sequence[str], form: str) -> None:
    """Give a built kernel with other module parameters a NAME of its own; boots it once, to see that it has them."""
    from conformance.commands.made import Item, Made
    from conformance.lab import kernel_variant
    from conformance.reporting.text import made, setup

    kernel = kernel_variant.make(name, of, kernel_variant.parse(parameters))
    words = f"kernel {kernel.name}: {setup.described(kernel)}"
    item = Item(name=kernel.name, words=words, path=str(kernel.binary), digest=kernel.digest)
    finish(Made(command="kernel variant", items=[item]), form, made.show)


@kernel.command("digest")
@_SOURCE
@_PATCHES
@FORMAT
def kernel_digest(source: str | None, patches: Sequence[str], form: str) -> None:
    """The digest that `build` would store a kernel under, for CI's caches; fetches the source, compiles nothing."""
    from conformance.commands.made import Item, Made
    from conformance.kernel import build
    from conformance.reporting.text import made

    digest = build.digest_of(source, patches, lambda what: err.print(what, soft_wrap=True))
    finish(Made(command="kernel digest", items=[Item(name="kernel", words=digest, digest=digest)]), form, made.show)


@kernel.command("list")
@FORMAT
def kernel_list(form: str) -> None:
    """List the guest kernels that are built."""
    from conformance.commands import inventory
    from conformance.reporting.text import setup

    finish(inventory.kernels(), form, setup.show_kernels)


@click.command()
@click.option("--lab", type=click.Choice(["virtual", "host"]), default="virtual", show_default=True)
@click.option("--kernel", "kernel_name", default="default", show_default=True)
@FORMAT
def doctor(lab: str, kernel_name: str, form: str) -> None:
    """Check everything a run needs, and say how to mend what is missing."""
    from conformance.commands import doctor
    from conformance.reporting.text import setup

    # Each as soon as it was made: some take seconds.
    found = doctor.compute(lab, kernel_name, lambda check: setup.show_check(check, progress_console(form)))
    finish(found, form, lambda found, console: None)


@click.group()
def adapter() -> None:
    """Adapters: list them, begin a new one, build them, check one against the contract."""


@adapter.command("list")
@FORMAT
def adapter_list(form: str) -> None:
    """List the adapters that ship, and which algorithms each offers; builds and runs nothing."""
    from conformance.commands import inventory
    from conformance.reporting.text import setup

    finish(inventory.adapters(), form, setup.show_adapters)


@adapter.command("new")
@click.argument("name")
@click.option("--lang", "language", required=True, type=click.Choice(["c", "go", "python", "rust"]))
@click.option("--into", default=".", show_default=True, metavar="DIR", help="The folder NAME is made in this one.")
@click.option(
    "--transport", type=click.Choice(["tcp", "udp"]), default="tcp", show_default=True,
    help="udp: a QUIC stack with HTTP/3, in go or rust.",
)  # fmt: skip
@FORMAT
def adapter_new(name: str, language: str, into: str, transport: str, form: str) -> None:
    """Begin an adapter called NAME, from a scaffold that works as it is."""
    from conformance.commands import adapter_new
    from conformance.commands.made import Item, Made
    from conformance.lab import manifest
    from conformance.reporting.text import made

    path = adapter_new.new(name, language, into, transport)
    algorithm = manifest.read(str(path)).offered()[0]
    words = f"{path.parent} is ready: its README.txt says what to change first. Now run"
    for command in ("adapter build", "adapter check", f"run {algorithm} --grid 10mbps-20ms-1pct --stack"):
        words += f"\n  conformance {command} {path}"
    finish(Made(command="adapter new", items=[Item(name=name, words=words, path=str(path))]), form, made.show)


@adapter.command("build")
@click.argument("stacks", nargs=-1, required=True)
@click.option("--again", is_flag=True, help="Also what is built already.")
@FORMAT
def adapter_build(stacks: Sequence[str], again: bool, form: str) -> None:
    """Build what STACKS (names, or paths of adapter.json) compile, into the cache."""
    from conformance.commands import adapter_new

    # Each is told as soon as it is built: some take minutes.
    finish(adapter_new.build(stacks, again, err), form, lambda made, console: None)


@adapter.command("check")
@click.argument("stack")
@click.option("--cca", help="Algorithm to try it with (default: the first it offers).")
@click.option("--client", default="common", show_default=True, help="Who fetches: common, own, or an adapter.")
@click.option("--kernel", help="Guest kernel's name (default: the one that has the algorithm).")
@FORMAT
def adapter_check(stack: str, cca: str | None, client: str, kernel: str | None, form: str) -> None:
    """Try STACK (a name, or the path of an adapter.json) against every clause of the contract."""
    from conformance.commands import adapter_check
    from conformance.engine.benches import Choice
    from conformance.reporting.text import setup

    finish(adapter_check.compute(Choice(stack=stack, client=client, kernel=kernel), cca), form, setup.show_clauses)


COMMANDS = (kernel, adapter, doctor)
