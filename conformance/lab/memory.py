"""Find the folder for the file that is a guest's memory, which must be executable; a memfd needs no folder."""

import functools
import mmap
import os
import pathlib

from conformance.kernel.store import Kernel
from conformance.model.errors import UserError
from conformance.support import files

#: the name that our kernel patch 0010 gives the memfd; kernels built before the patch do not contain it
_MEMFD = b"uml-memory"
_SHARED = pathlib.Path("/dev/shm")
#: free space in MB that a folder must have; the file grows as the guest needs it, to less than half of this
_LEAST_MB = 256


def folder(kernel: Kernel) -> pathlib.Path | None:
    """Return the folder for a guest's memory; None if no folder is fit and the kernel needs none.

    Raises UserError if the kernel needs one, and neither /dev/shm nor the folder for temporary files is fit.
    """
    problems = []
    for place in dict.fromkeys((_SHARED, pathlib.Path(files.temp_folder()))):
        problem = unfit(place)
        if problem is None:
            return place
        problems.append(f"{place} {problem}")
    if is_memfd(kernel):
        return None
    raise UserError(
        f"no folder can hold a guest's memory: {'; '.join(problems)}",
        "build the kernel again (`conformance kernel build`): its guests then need none; or set TMPDIR to a folder "
        "with space on an executable file system, in a container with --tmpfs /dev/shm:rw,exec,size=1g",
    )


def unfit(place: pathlib.Path) -> str | None:
    """Return why a folder cannot hold a guest's memory; None if it can."""
    try:
        about = os.statvfs(place)
    except OSError as error:
        return f"cannot be examined ({error.strerror})"
    free_mb = about.f_bavail * about.f_frsize >> 20
    if about.f_flag & os.ST_NOEXEC:
        return "is mounted noexec"
    if not os.access(place, os.W_OK | os.X_OK):
        return "cannot be written to"
    return f"has {free_mb} MB free and needs {_LEAST_MB}" if free_mb < _LEAST_MB else None


@functools.cache
def is_memfd(kernel: Kernel) -> bool:
    """Return whether a kernel's guests have their memory in a memfd if the machine lets them."""
    with open(kernel.binary, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(_MEMFD) >= 0
