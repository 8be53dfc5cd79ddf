"""Commands that build and check what runs need: guest kernels, adapters, the machine."""

from collections.abc import Sequence

import click

from conformance import commands
from conformance.cli.base import FORMAT, err, finish, finish_made, progress_console, resumes
from conformance.cli.measuring import SOURCE
from conformance.commands.result import Item
from conformance.reporting import text


@click.group()
def kernel() -> None:
    """Build and list guest kernels."""


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
    """Build a guest kernel and give it NAME.

    Without --source, the source is Debian's linux-source-7.2. A kernel that is already built is not built again.
    """
    from conformance.kernel import build

    with text.progress.bar(err, f"kernel {name}") as bar:

        def show(done: int, total: int, what: str) -> None:
            bar.stage(what)
            if total:
                bar.reached(done, total)

        built = build.build(name, source, patches, show, jobs, text.progress.ConsoleNotes(err).say)
    words = f"kernel {built.name}: Linux {built.release}, {built.digest}, {built.binary}"
    item = Item(name=built.name, words=words, path=str(built.binary), digest=built.digest)
    finish_made("kernel build", [item], form)


@kernel.command("variant")
@click.argument("name")
@click.option("--of", default="default", show_default=True, help="The built kernel that it is a variant of.")
@click.option("--parameter", "parameters", multiple=True, required=True, help="MODULE.NAME=VALUE (repeatable).")
@FORMAT
def kernel_variant(name: str, of: str, parameters: Sequence[str], form: str) -> None:
    """Give a built kernel other module parameters.

    The variant is called NAME. It is booted once, to check that it has the parameters.
    """
    from conformance.lab import kernel_variant

    variant = kernel_variant.make(name, of, kernel_variant.parse(parameters))
    words = f"kernel {variant.name}: {text.setup.described(variant)}"
    item = Item(name=variant.name, words=words, path=str(variant.binary), digest=variant.digest)
    finish_made("kernel variant", [item], form)


@kernel.command("digest")
@_SOURCE
@_PATCHES
@FORMAT
def kernel_digest(source: str | None, patches: Sequence[str], form: str) -> None:
    """Print the digest of a kernel, for CI's caches.

    If the source is on this machine, it is the digest that `build` would store the kernel under. If not, the package's
    hash in apt's lists, or else its name, stands for the source. Nothing is fetched, and nothing is compiled.
    """
    from conformance.kernel import build

    digest = build.digest_of(source, patches, lambda what: err.print(what, soft_wrap=True))
    finish_made("kernel digest", [Item(name="kernel", words=digest, digest=digest)], form)


@kernel.command("list")
@FORMAT
def kernel_list(form: str) -> None:
    """List the guest kernels that are built."""
    finish(commands.inventory.kernels(), form, text.setup.show_kernels)


@click.command()
@click.option("--kernel", "kernel_name", default="default", show_default=True)
@FORMAT
def doctor(kernel_name: str, form: str) -> None:
    """Check that a run has everything it needs.

    Says how to install or fix what is missing.
    """
    # Each check is shown as soon as it is made, as some take seconds.
    health = commands.doctor.compute(kernel_name, lambda check: text.setup.show_check(check, progress_console(form)))
    finish(health, form)


@click.group()
def adapter() -> None:
    """List, create, build and check adapters."""


@adapter.command("list")
@FORMAT
def adapter_list(form: str) -> None:
    """List the adapters that ship.

    Shows which algorithms each offers. Builds and runs nothing.
    """
    finish(commands.inventory.adapters(), form, text.setup.show_adapters)


@adapter.command("new")
@click.argument("name")
@click.option("--lang", "language", required=True, type=click.Choice(["c", "go", "python", "rust"]), help="Language.")
@click.option("--into", default=".", show_default=True, metavar="DIR", help="Folder to make the folder NAME in.")
@click.option(
    "--transport", type=click.Choice(["tcp", "udp"]), default="tcp", show_default=True,
    help="tcp, or udp for a QUIC stack with HTTP/3 (go or rust only).",
)  # fmt: skip
@FORMAT
def adapter_new(name: str, language: str, into: str, transport: str, form: str) -> None:
    """Create an adapter called NAME.

    It is made from a scaffold that already works.
    """
    from conformance.lab import manifest

    path = commands.adapter_new.new(name, language, into, transport)
    algorithm = manifest.read(str(path)).offered()[0]
    words = f"{path.parent} is ready: its README.txt says what to change first. Now run"
    for command in ("adapter build", "adapter check", f"run {algorithm} --grid 10mbps-20ms-1pct --stack"):
        words += f"\n  conformance {command} {path}"
    finish_made("adapter new", [Item(name=name, words=words, path=str(path))], form)


@adapter.command("build")
@click.argument("stacks", nargs=-1, required=True)
@SOURCE
@click.option("--again", is_flag=True, help="Also build what is already built.")
@FORMAT
def adapter_build(stacks: Sequence[str], source: tuple[str, ...], again: bool, form: str) -> None:
    """Build adapters into the cache.

    STACKS are names of adapters, or paths of adapter.json.
    """
    if len(stacks) > 1 and not again:  # what is half built is removed
        resumes()
    # Each build is reported as soon as it is done, as some take minutes.
    built = commands.adapter_new.build(stacks, again, text.progress.ConsoleNotes(err), source)
    finish(built, form)


@adapter.command("check")
@click.argument("stack")
@SOURCE
@click.option("--algorithm", help="Algorithm to try the stack with (default: the first it offers).")
@click.option(
    "--client", default="common", show_default=True, help="Which client fetches: common, own, or an adapter's."
)
@click.option("--kernel", help="Name of the guest kernel (default: the one that has the algorithm).")
@FORMAT
def adapter_check(
    stack: str, source: tuple[str, ...], algorithm: str | None, client: str, kernel: str | None, form: str
) -> None:
    """Check an adapter against the contract.

    STACK is the name of an adapter, or the path of an adapter.json. Every clause is tried.
    """
    from conformance.engine.benches import Choice

    choice = Choice(stack=stack, source=source, client=client, kernel=kernel)
    finish(commands.adapter_check.compute(choice, algorithm), form, text.setup.show_clauses)


COMMANDS = (kernel, adapter, doctor)
