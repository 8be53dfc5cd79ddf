"""Stand in for cargo and go while a stack is built with working trees, and make them use these trees.

An adapter's `build` knows nothing of this: it finds this program under their names on its PATH. It is run as
`stand_ins.py TOOL ABOUT ARGUMENT...`, with the standard library only; sources.workshop() writes the file ABOUT.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from typing import Any, NoReturn

ABOUT = "about.json"
#: commands that compile, or read what would be compiled; all others are passed on unchanged
_BUILDS = {
    "cargo": {"b", "bench", "build", "c", "check", "fetch", "install", "metadata", "r", "run", "rustc", "t", "test"},
    "go": {"build", "install", "list", "run", "test", "vet"},
}
_PACKAGE = "\n[[package]]\n"


def _fail(cause: str) -> NoReturn:
    print(f"error: {cause}", file=sys.stderr)
    sys.exit(1)


def _hand_on(words: list[str], **environment: str) -> NoReturn:
    sys.stdout.flush()
    os.execve(words[0], words, {**os.environ, **environment})


def cargo(about: dict[str, Any], arguments: list[str]) -> NoReturn:
    """Run cargo with the crates' trees instead of their releases, and adapt its lock file."""
    at = 1 if arguments[:1] and arguments[0].startswith("+") else 0
    toolchain, words = arguments[:at], arguments[at:]
    real, crates = about["tools"]["cargo"], about["crates"]
    if not crates or not _BUILDS["cargo"].intersection(words[:1]):
        _hand_on([real, *arguments])
    if not pathlib.Path.cwd().is_relative_to(about["work"]):
        _fail(f"the build runs cargo in {pathlib.Path.cwd()}; to build with --source, it must copy that folder first")
    end = words.index("--") if "--" in words else len(words)
    words = [word for word in words[:end] if word not in ("--locked", "--frozen")] + words[end:]
    patches = [f"patch.crates-io.{name}.path={json.dumps(path)}" for name, path in crates.items()]
    patched = [real, *toolchain, *(word for patch in patches for word in ("--config", patch))]
    _relock(patched, crates)
    # Adapters find in `target` what they look for there, but it outlives this folder.
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    if not os.path.lexists(target):
        pathlib.Path(about["target"]).mkdir(exist_ok=True)
        target.symlink_to(about["target"])
    _hand_on([*patched, *words])


def _relock(patched: Sequence[str], crates: dict[str, str]) -> None:
    """Put the trees' versions into the lock file, and leave all other crates as they are locked."""
    versions = {name: version(pathlib.Path(path)) for name, path in crates.items()}
    manifest, lock = pathlib.Path("Cargo.toml"), pathlib.Path("Cargo.lock")
    text = manifest.read_text()
    for name, tree_version in versions.items():
        text = freed(text, name, tree_version) if tree_version else text
    manifest.write_text(text)
    if lock.exists():
        head, *packages = lock.read_text().split(_PACKAGE)
        left = [p for p in packages if not any(p.startswith(f'name = "{name}"\n') for name in crates)]
        lock.write_text(_PACKAGE.join([head, *left]))
    if status := subprocess.run([*patched, "update", "--workspace"]).returncode:
        sys.exit(status)
    for name in unused(lock.read_text()):
        if versions.get(name):  # cargo does not take a version older than the registry's by itself
            subprocess.run([*patched, "update", name, "--precise", versions[name]])
    for name in unused(lock.read_text()):
        _fail(f"{name} {versions.get(name)} in {crates[name]} does not have a version that other crates here accept")


def unused(lock: str) -> list[str]:
    """Return the names of the crates that a lock file lists as unused patches."""
    return [str(crate["name"]) for crate in tomllib.loads(lock).get("patch", {}).get("unused", ())]


def version(folder: pathlib.Path) -> str:
    """Return the version of the crate in a folder, which its workspace may give; "" if none is given."""
    declared = _toml(folder / "Cargo.toml").get("package", {}).get("version", "")
    if isinstance(declared, str):
        return declared
    for parent in folder.parents:
        declared = _toml(parent / "Cargo.toml").get("workspace", {}).get("package", {}).get("version")
        if declared:
            return str(declared)
    return ""


def _toml(file: pathlib.Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def freed(manifest: str, name: str, version: str) -> str:
    """Return a Cargo.toml that requires this version of a crate where it required exactly another (`"=1.2.3"`)."""
    crate = re.escape(name)
    forms = (
        rf"^{crate}\s*=\s*",
        rf"^{crate}\s*=\s*\{{[^}}\n]*\bversion\s*=\s*",
        rf"^\[[\w.-]*dependencies\.{crate}\]\n(?:[^\[\n].*\n)*?version\s*=\s*",
    )
    for before in forms:
        manifest = re.sub(rf'({before}")=[^"]*"', rf'\g<1>={version}"', manifest, flags=re.MULTILINE)
    return manifest


def go(about: dict[str, Any], arguments: list[str]) -> NoReturn:
    """Run go with the modules' trees instead of their releases, by means of a go.mod of its own."""
    real, modules = about["tools"]["go"], about["modules"]
    if not modules or not _BUILDS["go"].intersection(arguments[:1]):
        _hand_on([real, *arguments])
    said = subprocess.run([real, "env", "GOMOD"], stdout=subprocess.PIPE, text=True).stdout.strip()
    if not pathlib.Path(said).is_file():  # /dev/null outside of modules
        _fail(f"there is no go.mod in {pathlib.Path.cwd()}")
    changed = pathlib.Path(about["work"]).parent / "tools" / "go.mod"
    for file in (pathlib.Path(said), pathlib.Path(said).with_suffix(".sum")):
        if file.exists():
            shutil.copyfile(file, changed.with_name(file.name))
    replacements = [f"-replace={name}={path}" for name, path in modules.items()]
    if status := subprocess.run([real, "mod", "edit", *replacements, str(changed)]).returncode:
        sys.exit(status)
    flags = f"{os.environ.get('GOFLAGS', '')} -modfile={changed} -mod=mod".strip()
    _hand_on([real, *arguments], GOFLAGS=flags)


if __name__ == "__main__":
    {"cargo": cargo, "go": go}[sys.argv[1]](json.loads(pathlib.Path(sys.argv[2]).read_text()), sys.argv[3:])
