"""Make a kernel variant (`conformance kernel variant`): a built kernel with other module parameters and its own name.

A kernel silently ignores parameters that it does not know. So each new variant is booted once, and has to report the
parameters as they were given.
"""

import json
import time
from collections.abc import Iterable, Mapping

from conformance.kernel import store
from conformance.lab import allowance, cores, virtual
from conformance.model.errors import UserError
from conformance.support import limits, scratch as scratch_place

_WALL_TIMEOUT_S = 60
_MARK = "parameters: "
_READ_BACK = """
import json
found = {{}}
for name in {names!r}:
    module, _, parameter = name.partition(".")
    try:
        with open(f"/sys/module/{{module}}/parameters/{{parameter}}") as f:
            found[name] = f.read().strip()
    except OSError:
        found[name] = None
print({mark!r} + json.dumps(found), flush=True)
"""


def make(name: str, of: str, parameters: Mapping[str, str]) -> store.Kernel:
    """Give the kernel `of` with `parameters`, {"module.name": "value"}, the name `name`, and return the Kernel.

    Raises UserError if the kernel does not have such a parameter, does not take the value, or does not boot.
    """
    kernel = ready(name, of, parameters)
    store.link(name, kernel.digest)
    return kernel


def ready(name: str, of: str, parameters: Mapping[str, str]) -> store.Kernel:
    """Return the Kernel that make() makes, checked to have the parameters, without storing the name."""
    base = store.find(of)
    kernel = store.variant(name, base, parameters)
    if not (store.folder(kernel.digest) / "kernel.json").exists():
        _check(kernel, of)
        store.keep_variant(kernel, base)
    return kernel


def parse(words: Iterable[str]) -> dict[str, str]:
    """Return ["module.name=value", ...] as a dictionary. Raises UserError."""
    parameters: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in parameters:
            why = "is given twice" if equals else "has no value"
            raise UserError(f"--parameter {word}: it {why}", "give each parameter once, such as tcp_cubic.beta=610")
        parameters[name] = value
    store.check_parameters(parameters)
    return parameters


def _check(kernel: store.Kernel, of: str) -> None:
    values = _tell_back(kernel)
    for name, value in kernel.parameters:
        held = values[name]
        if held is None:
            raise UserError(
                f"kernel {of} has no parameter {name}",
                "a module is named like its file, and the parameter must be readable in /sys/module",
            )
        if _number(held) != _number(value):
            raise UserError(f"kernel {of} has {name} at {held} instead of {value}", "give a value that it accepts")


def _number(text: str) -> int | str:
    """Return the value that a parameter's text means, so that 0x10 and 16, or Y and 1, are the same."""
    try:
        return int({"Y": "1", "N": "0"}.get(text, text), 0)
    except ValueError:
        return text


def _tell_back(kernel: store.Kernel) -> dict[str, str | None]:
    """Return {parameter: its value in the booted kernel, or None}. Raises UserError if the kernel does not boot."""
    program = _READ_BACK.format(names=[name for name, _ in kernel.parameters], mark=_MARK)
    with (
        scratch_place.disk_errors(), allowance.OURS.hold(limits.WORKER_MB), cores.one_core() as core,
        scratch_place.folder() as scratch,
    ):  # fmt: skip
        (scratch / "read-back.py").write_text(program)
        guest = virtual.boot(kernel, scratch, core, run="/run/scratch/read-back.py")
        try:
            deadline = time.monotonic() + _WALL_TIMEOUT_S
            while guest.exit_status is None and time.monotonic() < deadline:
                time.sleep(0.02)
            said = (scratch / "console.log").read_text(errors="replace").splitlines()
        finally:
            guest.end()
    for line in said:
        if line.startswith(_MARK):
            values: dict[str, str | None] = json.loads(line.removeprefix(_MARK))
            return values
    given = " ".join(f"{name}={value}" for name, value in kernel.parameters)
    telling = [line for line in said if "invalid" in line or "panic" in line] or said or ["it printed nothing"]
    raise UserError(f"the kernel does not boot with {given}: {telling[0].strip()[:200]}", "give other values")
