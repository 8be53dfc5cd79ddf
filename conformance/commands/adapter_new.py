"""Create an adapter from a scaffold (`conformance adapter new`), and build adapters (`conformance adapter build`)."""

import json
import os
import pathlib
import re
import tempfile
import time
from collections.abc import Iterable, Sequence

from conformance.commands.result import Item, Made
from conformance.commands.status import ExitStatus
from conformance.lab import adapter, manifest, sources
from conformance.model.errors import UserError
from conformance.support import files, paths, schema
from conformance.support.console import duration
from conformance.support.notes import Notes

_SCAFFOLD = paths.PACKAGE / "scaffold"
#: the name in all files of a scaffold, which new() replaces by the adapter's
_PLACEHOLDER = "my-stack"
#: the crate that the suite's own Rust adapters share, and where a new adapter gets a copy, as it may lie anywhere
_SHARED_CRATE, _CRATE = paths.data("adapters", "common", "rust"), pathlib.Path("cc-adapter")
#: most characters of a build's output line that are shown beside the progress bar
_LINE_CHARACTERS = 60


def languages(transport: str) -> list[str]:
    """Return the languages that have a scaffold for this transport, in order."""
    return sorted(path.name for path in (_SCAFFOLD / transport).iterdir() if path.is_dir())


def new(name: str, language: str, into: str | pathlib.Path = ".", transport: str = "tcp") -> pathlib.Path:
    """Write a working adapter to the folder `into`/`name`, and return its manifest's path.

    Raises UserError if that fails or the language has no scaffold for this transport.
    """
    if language not in languages(transport):
        others = " or ".join(languages(transport))
        raise UserError(f"there is no scaffold for {transport} in {language}", f"choose --lang {others}")
    if not re.fullmatch(schema.pattern("adapter", "name"), name):
        raise UserError(
            f"adapter name {name!r} is not allowed", "use at most 63 lower-case letters, digits, dots and hyphens"
        )
    home = pathlib.Path(into, name)
    if os.path.lexists(home):
        raise UserError(f"{home} already exists", "choose another name, or another folder with --into")
    # The folder is made elsewhere and renamed, so that it appears complete or not at all.
    aside, mend = f".{name}.", "name another folder with --into"
    with files.errors(home, mend), tempfile.TemporaryDirectory(dir=into, prefix=aside) as temporary:
        scaffold = pathlib.Path(temporary, name)
        _fill(scaffold, name, _SCAFFOLD / transport / language)
        scaffold.rename(home)
    return home / "adapter.json"


def _fill(home: pathlib.Path, name: str, scaffold: pathlib.Path) -> None:
    """Copy a language's scaffold, the README of its transport and the shared crate that it uses, under a new name."""
    sources = {file.relative_to(scaffold): file for file in scaffold.rglob("*") if "__pycache__" not in file.parts}
    sources[pathlib.Path("README.txt")] = scaffold.parent / "README.txt"
    if (scaffold / "Cargo.toml").exists() and _CRATE.name in (scaffold / "Cargo.toml").read_text():
        sources |= {_CRATE / file.relative_to(_SHARED_CRATE): file for file in _SHARED_CRATE.rglob("*")}
    for at, source in sources.items():
        if source.is_file():
            file = home / at
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source.read_text().replace(_PLACEHOLDER, name))
    # Stacks run as the user `nobody`, which must be able to read these files whatever our umask is.
    about = json.loads((home / "adapter.json").read_text())
    programs = {home / about["program"], home / about.get("build", about)["program"]}
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path in programs else 0o644)


def build(stacks: Iterable[str], again: bool, notes: Notes, source: Sequence[str] = ()) -> Made:
    """Build stacks one after the other, and go on if one fails; `notes` reports each as soon as it is built.

    `again`: also build stacks that are built already. `source`: see `given` of adapter.load().
    """
    built, failed = [], False
    for stack in stacks:
        try:
            _build_client(stack, notes)
            built.append(_build(stack, again, notes, source))
            notes.say(built[-1].words)
        except UserError as error:
            failed = True
            notes.mistake(error)
    return Made(
        command="adapter build", items=tuple(built), exit_status=ExitStatus.MISUSE if failed else ExitStatus.DONE
    )


def _build_client(stack: str, notes: Notes) -> None:
    """Build the client that fetches from a stack, and warn if that fails.

    It comes first, so that the warning comes before minutes of compiling. The failure does not end the command, because
    a later one may name another client, or the stack's own. Raises UserError if the manifest names a client that is
    not known, or cannot fetch from the stack.
    """
    client = adapter.fetcher(manifest.read(stack))
    if client is None:
        return
    try:
        adapter.load(client, adapter.OWN)
    except UserError as error:
        notes.warn(f"{stack} is tested with {client}, which cannot be built: {error}")


def _build(stack: str, again: bool, notes: Notes, source: Sequence[str]) -> Item:
    began, worked = time.monotonic(), False
    with notes.bar(f"building {stack}") as bar:
        bar.stage("starting")

        def show(done: int | None, total: int | None, line: str) -> None:
            nonlocal worked
            worked = True
            bar.say(line[:_LINE_CHARACTERS])
            if total:
                bar.reached(done or 0, total)

        folder = adapter.build(stack, again, show, source)
    if folder is None:
        return Item(name=stack, words=f"{stack}: there is nothing to build")
    # load() also asks the built program for its version: a build that does not run counts as failed.
    built = adapter.load(stack, adapter.OWN, source)
    when = f"built in {duration(time.monotonic() - began)}" if worked else "was built before"
    commits = [f"{s.short} is at {s.commit}" for s in sources.find(manifest.read(stack), source) if s.commit]
    words = "; ".join([f"{stack}: {built.version}", *commits, f"{when}, {folder}"])
    return Item(name=stack, words=words, path=str(folder), digest=built.digest)
