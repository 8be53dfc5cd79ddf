"""Run as process 1 of a User-Mode Linux guest: mount file systems, run the job, and power off.

The root file system is the host's tree, read-only. Folders that programs expect to write to are in memory. Only the
scratch folder outlives the guest; only root can reach it, whoever owns it on the host.

The kernel passes NAME=VALUE parameters that it does not know to process 1 as environment variables. cc_scratch,
cc_suite and, if there is a stack, cc_adapter, cc_build, cc_client, cc_client_build and cc_rootfs are host paths.
cc_run names a Python program to run instead of the job; the
suite's own tests and doctor use it.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import subprocess
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LIBC = ctypes.CDLL(None, use_errno=True)
_MS_RDONLY = 1
_RB_POWER_OFF = 0x4321FEDC


def _mount_function() -> Callable[..., None]:
    """Return mount() of mounts.py next to this file: the suite is not yet mounted where it is imported from.

    It is not imported by a path in sys.path: a checkout below /tmp is hidden as soon as /tmp is mounted.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mounts.py")
    mount: Callable[..., None] = runpy.run_path(path)["mount"]
    return mount


def set_up_filesystem() -> None:
    mount = _mount_function()
    # The arguments of the suite's programs hold the trial's seed, and a node's folder its counters.
    mount("proc", "/proc", "hidepid=2")
    mount("sysfs", "/sys")
    mount("devtmpfs", "/dev")
    for directory in ("/dev/pts", "/dev/shm"):
        os.makedirs(directory, exist_ok=True)
    mount("devpts", "/dev/pts", "mode=620,ptmxmode=666")
    for directory in ("/dev/shm", "/tmp", "/var/tmp"):
        mount("tmpfs", directory, "mode=1777")
    for directory in ("/run", "/var/log"):
        mount("tmpfs", directory, "mode=755,size=40%")
    for name in ("suite", "adapter", "build", "client", "client-build", "rootfs"):
        variable = f"cc_{name.replace('-', '_')}"
        if variable in os.environ:
            os.mkdir(f"/run/{name}")
            mount("hostfs", f"/run/{name}", os.environ[variable], _MS_RDONLY)
    os.mkdir("/run/harness", 0o700)
    os.mkdir("/run/harness/scratch")
    mount("hostfs", "/run/harness/scratch", os.environ["cc_scratch"])
    os.symlink("harness/scratch", "/run/scratch")


def set_up_environment() -> None:
    """Give every guest the same environment, whatever the host's was."""
    os.environ.clear()
    os.environ.update(
        PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        HOME="/tmp",
        SHELL="/bin/sh",
        LC_ALL="C",
    )
    if sys.version_info < (3, 12):
        # Mininet 2.3.0 imports distutils; setuptools' replacement of it takes an eighth of a guest's start. Python
        # reads the variable when it starts, so it is for other processes; in this one the replacement is already
        # installed.
        os.environ["SETUPTOOLS_USE_DISTUTILS"] = "stdlib"
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "_distutils_hack"]
    # OpenSSL and BoringSSL read RDRAND and RDSEED themselves; mask both so the seed reaches them.
    os.environ["OPENSSL_ia32cap"] = "~0x4000000000000000:~0x40000"


def main() -> None:
    status = 1
    program = os.environ.get("cc_run")
    try:
        set_up_filesystem()
        set_up_environment()
        sys.path.insert(0, "/run/suite")
        if program:
            status = subprocess.run([sys.executable, "-I", program]).returncode
        else:
            from conformance.guest.main import run_job

            status = run_job("/run/scratch")
    except BaseException:  # process 1 must not die: the kernel would panic and hide the reason
        traceback.print_exc()
    finally:
        print(f"guest: end, status {status}", flush=True)
        os.sync()
        _LIBC.reboot(_RB_POWER_OFF)


if __name__ == "__main__":
    main()
