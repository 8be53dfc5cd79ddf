"""`conformance doctor`: check everything that a run needs, and say how to install or fix what is missing."""

import ctypes
import dataclasses
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.kernel import build, store as kernels
from conformance.lab import adapter, building, endings, manifest, memory, pki, virtual
from conformance.model.errors import UserError
from conformance.support import files, limits, paths, scratch as scratch_place
from conformance.support.record import At, Record

_PROGRAMS = ("tc", "ip", "ifconfig", "bash", "mnexec", "nginx", "openssl")
_PTRACE_TRACEME = 0
_WHEEL = ", or install the wheel cc-conformance-kernel, which has it built (docs/install.md)"
#: bytes of extended register state that our first kernel patch makes room for
_XSTATE_BYTES = 12_288


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """Something that a run needs, whether it is there, and how to install or fix it."""

    ok: bool
    what: str
    mend: str = ""


class CheckRecord(Record):
    ok: bool
    what: str
    #: How to fix it; null if nothing is missing.
    mend: Annotated[str | None, At(lambda check: None if check.ok else check.mend)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Health(Result):
    """Everything that a run needs, checked."""

    SCHEMA = "doctor"

    checks: Annotated[tuple[Check, ...], list[CheckRecord]]

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if nothing is missing, else MISUSE, because the user can fix that."""
        return ExitStatus.DONE if all(check.ok for check in self.checks) else ExitStatus.MISUSE


def compute(
    kernel_name: str = kernels.DEFAULT_NAME,
    on_check: Callable[[Check], None] = lambda check: None,
) -> Health:
    """Check everything; `on_check` is called with each Check as soon as it is made."""
    results = []
    for check in checks(kernel_name):
        results.append(check)
        on_check(check)
    return Health(checks=tuple(results))


def checks(kernel_name: str = kernels.DEFAULT_NAME) -> Iterator[Check]:
    """Make and yield one Check after the other; a check that needs another to pass comes after it."""
    yield _platform()
    yield _processor()
    yield _python()
    for program in _PROGRAMS:
        if program != "openssl" or not pki.exists():
            program_path = manifest.which(program)
            package = manifest.PACKAGES.get(program, program)
            yield Check(bool(program_path), f"{program}: {program_path or 'not found'}", f"apt-get install {package}")
    yield _mininet()
    yield _builds("linux-tcp")
    yield _cache()
    yield (temporary := _temp_folder())
    yield _ptrace()
    yield _pinning()
    yield _processes()
    yield _memory()
    yield Check(True, f"guests at a time: {limits.workers()} (limited by cores, processor time, memory and processes)")
    try:
        kernel = kernels.find(kernel_name)
    except UserError as error:
        lacking = build.missing_tools()
        yield _tools("a kernel", lacking, lacking)
        yield Check(
            False,
            f"guest kernel {kernel_name}: not built",
            f"{error}{_WHEEL if kernel_name == kernels.DEFAULT_NAME else ''}",
        )
        return
    again = f"; another version of the suite built it: to renew it, run `{kernels.how_to_build(kernel.name)}`"
    words = f"guest kernel {kernel.name}: Linux {kernel.release}, {kernel.digest}"
    yield Check(True, words if build.is_current(kernel) else words + again)
    if temporary.ok:
        yield (place := _guest_memory(kernel))
        if place.ok:
            yield _boots(kernel)


def _cache() -> Check:
    """Check that builds can be kept in the cache."""
    try:
        paths.refuse_spaces(paths.cache(), "set CC_CONFORMANCE_CACHE to another folder")
        files.check_writable(paths.cache(), "set CC_CONFORMANCE_CACHE to another folder")
        return Check(True, f"cache: {paths.cache()}")
    except UserError as error:
        return Check(False, f"cache: {error.cause}", error.mend or "")


def _platform() -> Check:
    ok = platform.system() == "Linux" and platform.machine() == "x86_64"
    return Check(ok, f"{platform.system()} on {platform.machine()}", "the suite needs Linux on x86-64")


def _processor() -> Check:
    """Check that guest kernels have room for the processor's extended register state.

    The sizes in bytes: x87 and SSE 576, AVX 256, AVX-512 1664, PKRU 8, AMX 8256 (Intel SDM 1, 13).
    """
    with open("/proc/cpuinfo") as f:
        flags = set(next((line for line in f if line.startswith("flags")), "").split())
    size = (
        576 + 256 * ("avx" in flags) + 1664 * ("avx512f" in flags) + 8 * ("pku" in flags) + 8256 * ("amx_tile" in flags)
    )
    extensions = ", ".join(sorted(flags & {"avx", "avx512f", "amx_tile"})) or "no extensions"
    return Check(
        size <= _XSTATE_BYTES,
        f"processor: {extensions}; about {size} of {_XSTATE_BYTES} bytes of register state",
        "raise the size in conformance/kernel/patches/0001 and build the kernel again",
    )


def _printed(program: str) -> str:
    """Return what a program prints that the system's Python runs; "" if it fails."""
    try:
        done = subprocess.run(["/usr/bin/python3", "-I", "-c", program], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def _python() -> Check:
    version = tuple(map(int, _printed("import sys; print(*sys.version_info[:2])").split()))
    shown = ".".join(map(str, version)) or "not found"
    return Check(version >= (3, 11), f"the system's Python: {shown}", "apt-get install python3 (3.11 or later)")


def _mininet() -> Check:
    version = _printed("import mininet.net; print(mininet.net.VERSION)")
    shown = version or "cannot be imported by /usr/bin/python3"
    return Check(bool(version), f"Mininet: {shown}", "apt-get install --no-install-recommends mininet")


def _builds(stack: str) -> Check:
    """Check that a stack is built, or that the tools to build it are there."""
    about = manifest.read(stack)
    if adapter.is_built(about):
        return Check(True, f"{stack}: built")
    return _tools(stack, building.missing(about.build or {}), about.packages)


def _tools(to_build: str, lacking: Sequence[str], packages: Sequence[str]) -> Check:
    what = f"tools to build {to_build}: {', '.join(lacking) + ' missing' if lacking else 'all found'}"
    return Check(not lacking, what, f"apt-get install {' '.join(packages)}")


def _temp_folder() -> Check:
    try:
        return Check(True, f"folder for temporary files: {files.temp_folder()}")
    except UserError as error:
        return Check(False, str(error.cause), error.mend or "")


def _ptrace() -> Check:
    """Check that a child may ask to be traced, as every process of a guest does; some containers forbid it."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ctypes.CDLL(None).ptrace(_PTRACE_TRACEME, 0, 0, 0) == 0 else 1)
    ok = os.waitpid(pid, 0)[1] == 0
    return Check(
        ok, f"ptrace: {'allowed' if ok else 'forbidden'}",
        "set sysctl kernel.yama.ptrace_scope below 3; in a container, use the default seccomp profile",
    )  # fmt: skip


def _pinning() -> Check:
    """Check whether a process can be pinned to a core. Guests also run without that, at up to four times the cost."""
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        permission = "allowed"
    except OSError:
        permission = "forbidden, so trials take longer; a container's seccomp profile must allow sched_setaffinity"
    return Check(True, f"pinning guests to cores: {permission}")


def _processes() -> Check:
    most = limits.most_processes()
    return Check(
        most is None or most >= endings.LEAST_PROCESSES,
        f"processes: {'no limit' if most is None else f'at most {most} at once, {endings.LEAST_PROCESSES} needed'}",
        f"--pids-limit {endings.LEAST_PROCESSES} or more in a container",
    )


def _memory() -> Check:
    most = limits.memory_mb()
    return Check(
        most is None or most >= limits.LEAST_MB,
        f"memory: {'no limit' if most is None else f'{most} MB, {limits.LEAST_MB} MB needed'}",
        f"--memory {limits.LEAST_MB}m or more in a container",
    )


def _guest_memory(kernel: kernels.Kernel) -> Check:
    try:
        place = memory.folder(kernel)
    except UserError as error:
        return Check(False, str(error.cause), error.mend or "")
    return Check(True, f"a guest's memory: {'a memfd' if memory.is_memfd(kernel) else f'a file in {place}'}")


def _boots(kernel: kernels.Kernel) -> Check:
    core = max(os.sched_getaffinity(0))  # it may be busy: a check must not wait for a measurement to end
    with scratch_place.folder() as scratch:
        began = time.monotonic()
        (scratch / "nothing.py").write_text("print('hello')\n")
        try:
            guest = virtual.boot(kernel, scratch, core, run="/run/scratch/nothing.py")
        except UserError as error:
            return Check(False, str(error.cause), error.mend or "")
        try:
            while guest.exit_status is None and time.monotonic() - began < 30:
                time.sleep(0.01)
            wall_s = time.monotonic() - began
            console = (scratch / "console.log").read_text(errors="replace")
        finally:
            guest.end()
    ok = "hello" in console
    last = (console.strip().splitlines() or ["it printed nothing"])[-1]
    what = f"a guest boots: {wall_s:.1f} s" if ok else f"a guest does not boot: {last[:200]}"
    return Check(ok, what, "run `conformance kernel build`; if that does not help, report this line and /proc/cpuinfo")
