"""Commands that build and check what runs need: guest kernels, adapters, the machine."""

import sys

import click
import rich.progress
import rich.text

from conformance.cli.base import err, out


@click.group()
def kernel():
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
def kernel_build(name, source, patches, jobs):
    """Build a guest kernel and give it NAME; one that was built before is only found."""
    from conformance.kernel import build

    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=err) as bar:
        task = bar.add_task("kernel", total=None)
        shown = None

        def progress(done, total, what):
            nonlocal shown
            if what != shown and not err.is_terminal:
                err.print(f"kernel {name}: {what}")
            shown = what
            bar.update(task, description=f"kernel {name}: {what}", completed=done, total=total or None)

        built = build.build(name, source, patches, progress, jobs)
    out.print(f"kernel {built.name}: Linux {built.release}, {built.digest}, {built.binary}", soft_wrap=True)


@kernel.command("variant")
@click.argument("name")
@click.option("--of", default="default", show_default=True, help="The kernel it is a variant of.")
@click.option("--parameter", "parameters", multiple=True, required=True, help="MODULE.NAME=VALUE (repeatable).")
def kernel_variant(name, of, parameters):
    """Give a built kernel with other module parameters a NAME of its own; boots it once, to see that it has them."""
    from conformance.lab import kernel_variant as variants

    made = variants.make(name, of, variants.parse(parameters))
    out.print(f"kernel {made.name}: {_described(made)}", soft_wrap=True)


@kernel.command("digest")
@_SOURCE
@_PATCHES
def kernel_digest(source, patches):
    """The digest that `build` would store a kernel under, for CI's caches; fetches the source, compiles nothing."""
    from conformance.kernel import build

    click.echo(build.digest_of(source, patches, lambda what: err.print(what, soft_wrap=True)))


@kernel.command("list")
def kernel_list():
    """List the guest kernels that are built."""
    from conformance.kernel import store

    found = store.kernels()
    if not found:
        out.print("no guest kernel is built; run `conformance kernel build`")
    for k in found:
        out.print(f"{k.name:12} {_described(k)}", soft_wrap=True)


def _described(kernel):
    added = [*kernel.patches, *(f"{name}={value}" for name, value in kernel.parameters)]
    plus = f" + {', '.join(added)}" if added else ""
    return f"Linux {kernel.release:14} {kernel.digest}  {kernel.source}{plus}"


@click.command()
@click.option("--lab", type=click.Choice(["virtual", "host"]), default="virtual", show_default=True)
@click.option("--kernel", "kernel_name", default="default", show_default=True)
def doctor(lab, kernel_name):
    """Check everything a run needs, and say how to mend what is missing."""
    from conformance.commands import doctor as checks

    bad = 0
    for check in checks.run(lab, kernel_name):
        bad += not check.ok
        mark = ("ok   ", "green") if check.ok else ("BAD  ", "red")
        out.print(rich.text.Text.assemble(mark, check.what), soft_wrap=True)
        if not check.ok:
            out.print(f"     mend: {check.mend}", soft_wrap=True)
    sys.exit(2 if bad else 0)


@click.group()
def adapter():
    """Adapters: list them, begin a new one, build them, check one against the contract."""


@adapter.command("list")
def adapter_list():
    """List the adapters that ship, and which algorithms each offers; builds and runs nothing."""
    from conformance.lab import manifest

    found = manifest.shipped()
    width = max(len(about.name) for about in found)
    for about in found:
        offered = ", ".join(about.offered()) or ("whatever is in it" if about.rootfs else "a client only")
        out.print(f"{about.name:{width}}  {about.title}: {offered}", soft_wrap=True)


@adapter.command("new")
@click.argument("name")
@click.option("--lang", "language", required=True, type=click.Choice(["c", "go", "python", "rust"]))
@click.option("--into", default=".", show_default=True, metavar="DIR", help="The folder NAME is made in this one.")
@click.option(
    "--transport", type=click.Choice(["tcp", "udp"]), default="tcp", show_default=True,
    help="udp: a QUIC stack with HTTP/3, in go or rust.",
)  # fmt: skip
def adapter_new(name, language, into, transport):
    """Begin an adapter called NAME, from a scaffold that works as it is."""
    from conformance.commands import adapter_new as adapters
    from conformance.lab import manifest

    path = adapters.new(name, language, into, transport)
    out.print(f"{path.parent} is ready: its README.txt says what to change first. Now run", soft_wrap=True)
    algorithm = manifest.read(str(path)).offered()[0]
    for command in ("adapter build", "adapter check", f"run {algorithm} --grid 10mbps-20ms-1pct --trials 3 --stack"):
        out.print(f"  conformance {command} {path}", soft_wrap=True)


@adapter.command("build")
@click.argument("stacks", nargs=-1, required=True)
@click.option("--again", is_flag=True, help="Also what is built already.")
def adapter_build(stacks, again):
    """Build what STACKS (names, or paths of adapter.json) compile, into the cache."""
    from conformance.commands import adapter_new as adapters

    sys.exit(adapters.build(stacks, again, err))


@adapter.command("check")
@click.argument("stack")
@click.option("--cca", help="Algorithm to try it with (default: the first it offers).")
@click.option("--client", default="common", show_default=True, help="Who fetches: common, own, or an adapter.")
@click.option("--kernel", help="Guest kernel's name (default: the one that has the algorithm).")
def adapter_check(stack, cca, client, kernel):
    """Try STACK (a name, or the path of an adapter.json) against every clause of the contract."""
    from conformance.commands import adapter_check as check
    from conformance.engine import benches

    sys.exit(check.run(benches.Choice(stack=stack, client=client, kernel=kernel), cca, out))


COMMANDS = (kernel, adapter, doctor)
