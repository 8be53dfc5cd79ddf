"""Call mount(2) and umount2(2) directly.

mount(8) of util-linux >= 2.39 uses the newer mount API, in which hostfs takes its path in another form.
"""

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_MNT_DETACH = 2


def mount(kind: str, target: str, options: str = "", flags: int = 0) -> None:
    """Mount a file system of type `kind` on `target`. Raises OSError, which names the target."""
    if _LIBC.mount(b"none", target.encode(), kind.encode(), flags, options.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind} on {target}: {os.strerror(code)}")


def unmount(target: str) -> None:
    """Unmount `target` at once, even if files there are open; do nothing if nothing is mounted there."""
    _LIBC.umount2(target.encode(), _MNT_DETACH)
