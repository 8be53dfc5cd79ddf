"""Compose the commands that repeat a cell's trials, trace one trial, or diagnose a series."""

import functools
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from conformance.catalogue import documents, scenarios
from conformance.lab import manifest
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Trial
from conformance.reporting.heatmaps import Series
from conformance.support import paths

#: {field of a Setting that `conformance run` has an option for: function that writes the option's value}
_OPTIONS: dict[str, Callable[[Any], str]] = {
    "queue": str,
    "offload": lambda on: "on" if on else "off",
    "transfer_s": "{:g}".format,
    "rival": str,
}


def cell(measurements: Sequence[Measurement]) -> tuple[str | None, str | None]:
    """Return (command, why there is none); one of them is None. `measurements`: all those of one cell.

    `conformance run` takes consecutive seeds; trials with other seeds have one command each, from trial().
    """
    # Repeats of a violation have fresh seeds, far from the others, and are no part of the cell's verdict.
    judged, _ = seeds.repeats_apart(measurements)
    trial_there = judged[0].trial
    numbers = sorted({m.trial.seed for m in judged})
    options, why_not = _options(trial_there.setting)
    if why_not:
        return None, why_not
    first, last = numbers[0], numbers[-1]
    if numbers != list(range(first, last + 1)):
        return (
            None,
            f"conformance run takes consecutive seeds, but these {len(numbers)} from {first} to {last} have gaps",
        )
    words = [
        "conformance",
        "run",
        trial_there.scheme.algorithm,
        "--grid",
        trial_there.setting.cell.id,
        "--trials",
        str(len(numbers)),
    ]
    of_seeds = [] if first == seeds.JUDGED else ["--first-seed", str(first)]
    return shlex.join(words + of_seeds + _choice(trial_there) + options), None


def trial(measurement: Measurement) -> str | None:
    """Return the command that repeats one trial and captures its packets; None if there is none."""
    of = measurement.trial
    setting = of.setting
    try:
        usual = scenarios.setting(setting.profile, setting.point)
    except UserError:  # this suite has no such scenario, or no such point of it
        return None
    if usual != setting:
        return None
    words = ["conformance", "trace", of.scheme.algorithm, setting.id, "--seed", str(of.seed)]
    return shlex.join([*words, *_choice(of), "--profile", setting.profile, "--packets-only"])


def why(series: Series) -> str | None:
    """Return the command that shows from traces what looks wrong with a series; None if it does not violate."""
    if not series.verdict.against:
        return None
    first = next(m.trial for result in series.utilization.results.values() for m in result.measurements)
    return shlex.join(["conformance", "why", first.scheme.algorithm, *_choice(first)])


@functools.cache
def _stack(name: str) -> tuple[str, str]:
    """Return the options that choose a stack. The path of one that does not ship is a placeholder: results lack it.

    The result is cached, since a report asks for each of its cells and trials.
    """
    if any(file.parent.name == name for file in paths.data("adapters").glob("*/adapter.json")):
        return ("--stack", name)
    if name.startswith("interop-"):
        return ("--interop-rootfs", f"path/to/{name.removeprefix('interop-')}")
    return ("--stack", f"path/to/{name}/adapter.json")


def _choice(trial: Trial) -> list[str]:
    stack = _stack(trial.scheme.stack)
    shipped = stack[1] == trial.scheme.stack
    client = _client(trial.scheme.client, _usual_client(trial.scheme.stack)) if shipped else []
    # Results have a working tree's content but not its path. Adapters that do not ship may name their own trees.
    names = [tree.partition("@")[0] for tree in trial.scheme.trees if shipped]
    return [
        *stack,
        *client,
        *(word for name in names for word in ("--source", f"{name}=path/to/{name}")),
        "--kernel",
        trial.scheme.kernel,
    ]


@functools.cache
def _usual_client(stack: str) -> str | None:
    """Return the adapter whose client usually fetches from a stack that ships.

    None if that is the stack itself, or if the adapter cannot be read.
    """
    try:
        about = manifest.read(stack)
        named = about.client and manifest.read(about.client).name
    except UserError:  # an adapter that is being changed here keeps nobody from reading results
        return None
    return None if named == about.name else named


def _client(name: str | None, usual: str | None) -> list[str]:
    """Return the option that chooses a client; no option if it is the usual one."""
    if name == usual:
        return []
    return ["--client", "own" if name is None else _stack(name)[1]]


def _options(setting: Setting) -> tuple[list[str], str | None]:
    """Return (options of `conformance run` that turn the profile into this setting, why there are none)."""
    if setting.packets:
        return [], "they are trials of `conformance clause run`, which keeps their packets"
    usual = documents.profile_or_none(setting.profile, setting.cell)
    if usual is None:
        return [], f"this suite has no profile {setting.profile!r}"
    changed = {name: getattr(setting, name) for name in _OPTIONS if getattr(setting, name) != getattr(usual, name)}
    usual = documents.profile(setting.profile, setting.cell, **changed)
    if usual != setting:
        return [], f"`conformance run` has no options for these settings: {_differences(setting, usual)}"
    words = [word for name, value in changed.items() for word in (f"--{name.replace('_', '-')}", _OPTIONS[name](value))]
    return ["--profile", setting.profile, *words], None


def _differences(setting: Setting, usual: Setting) -> str:
    ours, theirs = Setting.to_json(setting), Setting.to_json(usual)
    # A field that a Setting's document leaves out has its usual value.
    return ", ".join(f"{name} {ours.get(name)}" for name in ours | theirs if ours.get(name) != theirs.get(name))
