"""mount(2) and umount2(2), called directly: util-linux >= 2.39 speaks the newer mount API, in which hostfs takes its
path in another form.
"""

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_MNT_DETACH = 2


def mount(kind: str, target: str, options: str = "", flags: int = 0) -> None:
    """Mount a file system of a kind. Raises OSError, which names the target."""
    if _LIBC.mount(b"none", target.encode(), kind.encode(), flags, options.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind} on {target}: {os.strerror(code)}")


def unmount(target: str) -> None:
    """Unmount at once, even where files are open; do nothing where nothing is mounted."""
    _LIBC.umount2(target.encode(), _MNT_DETACH)
