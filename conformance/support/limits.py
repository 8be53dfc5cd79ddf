"""What this process may use of the machine: cores, memory and processes, as its control groups allow (cgroups(7)).

A container sees the machine's processors and memory in /proc, and its own limits only in its control groups. Both
versions are read, at every level that can be seen; where none can, there is no limit that we know of.
"""

import functools
import math
import os
import pathlib
import re
from collections.abc import Iterator

_ROOT = pathlib.Path("/")
#: from here on a number of bytes means no limit (version 1 says so by the largest that is a whole number of pages)
_UNLIMITED = 1 << 60
#: for pytest and one guest; two guests of linux-tcp and pytest came to 179 to 195 MB
LEAST_MB = 192
#: for what runs the guests, and what the kernel needs for both: `conformance why` came to 98 MB and 11 MB
OWN_MB = 112
#: for each guest: one of linux-tcp or quinn comes to 90 MB, stacks with a runtime of their own take more
WORKER_MB = 128
#: a guest is up to about a dozen processes with linux-tcp; stacks with threads have more
WORKER_PROCESSES = 20


def cores() -> list[int]:
    """Return the numbers of the cores that this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))


def workers() -> int:
    """Return how many guests may run at once: one a core, as far as processor time, memory and processes go."""
    most = [float(len(cores()))]
    if (quota := core_quota()) is not None:
        most.append(math.ceil(quota))
    if (memory := guests_mb()) is not None:
        most.append(memory // WORKER_MB)
    if (processes := most_processes()) is not None:
        most.append(processes // WORKER_PROCESSES)
    return max(1, int(min(most)))


def core_quota(root: pathlib.Path = _ROOT) -> float | None:
    """Return of how many cores the time may be used (`--cpus 1.5`), None where that is not limited."""
    quotas = []
    for folder in _groups("cpu", root):
        words = _words(folder / "cpu.max")  # version 2: quota and period, in microseconds
        if not words:
            words = _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
        if len(words) == 2 and all(re.fullmatch(r"[1-9]\d*", word) for word in words):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def memory_mb(root: pathlib.Path = _ROOT) -> int | None:
    """Return the memory that may be used, in units of 2^20 bytes, None where that is not limited."""
    limit = _least("memory", ("memory.max", "memory.limit_in_bytes"), root)
    return None if limit is None or limit >= _UNLIMITED else limit >> 20


def guests_mb() -> int | None:
    """Return the memory that guests may have together, in units of 2^20 bytes, None where that is not limited."""
    memory = memory_mb()
    return None if memory is None else max(memory - OWN_MB, 0)


def killed_for_memory(root: pathlib.Path = _ROOT) -> int:
    """Return how many processes were killed as memory was short: of our control group, as far as that can be seen."""
    names = ("memory.events", "memory.oom_control")
    counts = [line.split() for folder in _groups("memory", root) for name in names for line in _lines(folder / name)]
    return sum(int(words[1]) for words in counts if words[:1] == ["oom_kill"])


def free_memory_mb(root: pathlib.Path = _ROOT) -> int | None:
    """Return the memory that new processes could have, in units of 2^20 bytes, None where nobody says."""
    lines = [line.split() for line in _lines(root / "proc" / "meminfo")]
    free = [int(line[1]) >> 10 for line in lines if line[:1] == ["MemAvailable:"] and line[1].isdigit()]
    limit = memory_mb(root)
    return min([*free, *([] if limit is None else [limit])], default=None)


def most_processes(root: pathlib.Path = _ROOT) -> int | None:
    """Return how many processes and threads there may be at once, None where that is not limited."""
    return _least("pids", ("pids.max",), root)


def refused_processes(root: pathlib.Path = _ROOT) -> int:
    """Return how often a new process or thread was refused, since there were too many (pids.events)."""
    counts = (_words(file) for file in _refusal_counts(root))
    return sum(int(words[1]) for words in counts if len(words) >= 2 and words[0] == "max")


@functools.cache
def _refusal_counts(root: pathlib.Path) -> list[pathlib.Path]:
    # They are read many times a second. The topmost group, which has no limit, has no such file.
    return [file for folder in _groups("pids", root) if (file := folder / "pids.events").exists()]


def _least(controller: str, names: tuple[str, ...], root: pathlib.Path) -> int | None:
    words = (word for folder in _groups(controller, root) for name in names for word in _words(folder / name)[:1])
    return min((int(word) for word in words if word.isdecimal()), default=None)


def _groups(controller: str, root: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield the folders of this process's control group for a controller, and of those above it, as far as visible."""
    paths: dict[str, str] = {}  # {controller: path}; "" is version 2, which has all
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        top, mounted = before.split()[3:5]
        kind, _, options = after.split()[:3]
        key = {"cgroup": controller, "cgroup2": ""}.get(kind)
        if key is None or key not in paths or (key and key not in options.split(",")):
            continue
        mount = root / mounted.lstrip("/")
        # The mount may show a part of the tree only, and the path may be one that is not in it.
        inside = pathlib.PurePath(paths[key])
        inside = inside.relative_to(top) if inside.is_relative_to(top) else pathlib.PurePath()
        folder = mount / inside
        yield folder if folder.is_dir() else mount
        if folder.is_dir():
            yield from (mount / parent for parent in inside.parents)


def _lines(file: pathlib.Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _words(file: pathlib.Path) -> list[str]:
    return " ".join(_lines(file)).split()
