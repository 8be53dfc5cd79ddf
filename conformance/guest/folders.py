"""Empty the folders that a stack may write to before every trial, so that files neither reach the next nor pile up.

Each folder is a file system of its own, in memory and of bounded size. It is dropped as a whole, which takes the same
time whatever is in it.
"""

from __future__ import annotations

import ctypes
import os

from conformance.guest.mounts import mount, unmount
from conformance.guest.process import NOBODY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LIBC = ctypes.CDLL(None, use_errno=True)
_IPC_RMID = 0


def renew(names: Iterable[str]) -> None:
    """Give programs of the stack empty folders, and empty every folder that anyone may write to."""
    for folder in names:
        os.makedirs(folder, exist_ok=True)
        _remount(folder, f"size=20%,mode=755,uid={NOBODY},gid={NOBODY}")
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        _remount(folder, "size=4%,mode=1777")
    _remove_ipc()


def _remount(folder: str, options: str) -> None:
    unmount(folder)
    mount("tmpfs", folder, options)


def _remove_ipc() -> None:
    """Remove System V shared memory, semaphores and message queues, which otherwise persist."""
    removals: tuple[tuple[str, Callable[[int], object]], ...] = (
        ("shm", lambda i: _LIBC.shmctl(i, _IPC_RMID, None)),
        ("sem", lambda i: _LIBC.semctl(i, 0, _IPC_RMID, 0)),
        ("msg", lambda i: _LIBC.msgctl(i, _IPC_RMID, None)),
    )
    for kind, remove in removals:
        with open(f"/proc/sysvipc/{kind}") as f:
            for line in f.readlines()[1:]:
                remove(int(line.split()[1]))
