"""Define pytest's options for testing a stack, and find what they name before anything is measured."""

import argparse
import dataclasses
from collections.abc import Sequence

import pytest

from conformance.catalogue import documents
from conformance.engine.benches import Choice
from conformance.lab import manifest, sources
from conformance.lab.manifest import Manifest
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.results.store import DEFAULT_RESULTS
from conformance.support import paths

Options = argparse.Namespace
#: the setting's name in an ini file
FIRST_SEED = "conformance_first_seed"
#: the greatest seed that users may choose
_MOST_SEED = 2**31
#: options whose argument may be a path
_MAY_BE_PATHS = (
    "--stack",
    "--source",
    "--client",
    "--interop-rootfs",
    "--results",
    "--baseline",
    "--keep-traces",
)


def add(parser: pytest.Parser) -> None:
    """Add our options to pytest's."""
    group = parser.getgroup("conformance", "congestion-control conformance")
    group.addoption(
        "--stack", default="linux-tcp", help="name of an adapter, or path of an adapter.json (default: linux-tcp)"
    )
    group.addoption(
        "--source", action="append", metavar="NAME=PATH",
        help="build the stack with this working tree as crate, Go module or library NAME (repeatable; or CC_SOURCE)",
    )  # fmt: skip
    group.addoption("--client", default="common", help="which client fetches: common (default), own, or an adapter's")
    group.addoption("--interop-rootfs", default=None, help="instead of --stack: an exported interop runner image")
    group.addoption("--trials", type=int, default=5, help="trials of each cell, to begin with (default: 5)")
    group.addoption(
        "--max-trials", type=int, default=None, help="most trials of an unclear cell (default: 20, or --trials if more)"
    )
    group.addoption(
        "--first-seed", type=int, default=None, metavar="N",
        help=f"seed of the first trial (ini: {FIRST_SEED}; default: {seeds.JUDGED}, clear of the references' seeds)",
    )  # fmt: skip
    parser.addini(FIRST_SEED, "seed of the first trial of each cell", default=str(seeds.JUDGED))
    group.addoption(
        "--no-confirm", dest="confirm", action="store_false",
        help="let a new violation fail at once, without repeating it with fresh seeds",
    )  # fmt: skip
    group.addoption(
        "--grid",
        default=None,
        help="full, 10mbps ... (all cells at a bandwidth), or cells such as 10mbps-20ms-1pct, separated by commas"
        " (default: full; for a zone's split part 10mbps)",
    )
    group.addoption("--kernel", default=None, help="name of the guest kernel (default: the one that has the algorithm)")
    group.addoption(
        "--results",
        default=DEFAULT_RESULTS,
        help=f"results file; what it holds is not measured again (default: {DEFAULT_RESULTS})",
    )
    group.addoption("--baseline", default=None, help="judge by change from this results file instead of by zones")
    group.addoption(
        "--workers", type=int, default=None, help="how many guests run at a time (default: one for each core)"
    )
    group.addoption(
        "--keep-traces", default=None, metavar="DIR", help="folder to keep packets and qlog of a few violating cells in"
    )
    group.addoption(
        "--flow", default=None, metavar="GROUP/N",
        help="flow of --keep-traces (default: the first one of the judged group)",
    )  # fmt: skip
    group.addoption("--no-why", action="store_true", help="do not trace violating cells to find what looks wrong")
    group.addoption(
        "--no-blame", action="store_true",
        help="do not repeat trials of violating cells to find what violations are due to (--no-why implies this)",
    )  # fmt: skip
    group.addoption("--fail-inconclusive", action="store_true", help="let inconclusive cells fail (so does --strict)")


def settle_first_seed(config: pytest.Config) -> None:
    """Take the first seed from the ini file if the command line gives none. Raise UserError for an invalid seed."""
    given = config.option.first_seed
    text = config.getini(FIRST_SEED) if given is None else given
    try:
        seed = int(text)
    except ValueError:
        seed = 0
    if not 1 <= seed <= _MOST_SEED:
        where = FIRST_SEED if given is None else "--first-seed"
        raise UserError(f"{where} {text}", f"give a number from 1 to {_MOST_SEED}")
    config.option.first_seed = seed


def joined(arguments: Sequence[object]) -> list[str]:
    """Return the arguments, with each option of ours that may have a path joined to it by an equals sign."""
    words: list[str] = []
    for word in map(str, arguments):
        if words and words[-1] in _MAY_BE_PATHS and not word.startswith("-"):
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


def chosen(option: Options) -> Choice:
    """Return the Choice that the options make."""
    given = {field.name: getattr(option, field.name) for field in dataclasses.fields(Choice)}
    return Choice(**{**given, "source": sources.chosen(option.source)})


def manifest_of(option: Options) -> Manifest:
    """Return the manifest of the stack under test. Raises UserError."""
    return manifest.read("interop" if option.interop_rootfs else option.stack)


def profile(option: Options) -> str:
    """Return the profile that the stack is judged under; for an interop image, that of the adapter for such images."""
    return documents.PROFILES[manifest_of(option).transport]


def stack_name(option: Options) -> str:
    """Return the stack's name in results, and so in the ids of tests. Raise UserError if there is no such stack."""
    rootfs = option.interop_rootfs
    return manifest_of(option).named(rootfs and paths.given(rootfs).resolve())
