"""Find how many cores, how much memory and how many processes this process may use by its control groups (cgroups(7)).

A container sees the machine's processors and memory in /proc, and its own limits only in its control groups. Both
versions of control groups are read, at every level that is visible. If none is visible, no limit is known.
"""

import functools
import math
import os
import pathlib
import re
from collections.abc import Iterator

_ROOT = pathlib.Path("/")
#: a limit of this many bytes or more means no limit (version 1 then has the largest whole number of pages)
_UNLIMITED = 1 << 60
#: memory for pytest and one guest; pytest and two guests of linux-tcp took 179 to 195 MB
LEAST_MB = 192
#: memory for the process that runs the guests, and for the kernel on behalf of both: `conformance why` took 98 and 11
#: MB
OWN_MB = 112
#: memory for each guest: one with linux-tcp or quinn takes 90 MB, stacks with a runtime of their own take more
WORKER_MB = 128
#: processes for each guest: one with linux-tcp has up to about a dozen, stacks with threads have more
WORKER_PROCESSES = 20


def cores() -> list[int]:
    """Return the numbers of the cores that this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))


def workers() -> int:
    """Return how many guests may run at once: one for each core, or fewer if CPU time, memory or processes do not
    suffice.
    """
    most = [float(len(cores()))]
    if (quota := core_quota()) is not None:
        most.append(math.ceil(quota))
    if (memory := guests_mb()) is not None:
        most.append(memory // WORKER_MB)
    if (processes := most_processes()) is not None:
        most.append(processes // WORKER_PROCESSES)
    return max(1, int(min(most)))


def core_quota(root: pathlib.Path = _ROOT) -> float | None:
    """Return the limit on CPU time in cores (1.5 for `--cpus 1.5`), None if there is none."""
    quotas = []
    for folder in _groups("cpu", root):
        words = _words(folder / "cpu.max")  # version 2: quota and period, in microseconds
        if not words:
            words = _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
        if len(words) == 2 and all(re.fullmatch(r"[1-9]\d*", word) for word in words):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def memory_mb(root: pathlib.Path = _ROOT) -> int | None:
    """Return the limit on memory, in units of 2^20 bytes, None if there is none."""
    limit = _least("memory", ("memory.max", "memory.limit_in_bytes"), root)
    return None if limit is None or limit >= _UNLIMITED else limit >> 20


def guests_mb() -> int | None:
    """Return how much memory all guests together may use, in units of 2^20 bytes, None if that is not limited."""
    memory = memory_mb()
    return None if memory is None else max(memory - OWN_MB, 0)


def killed_for_memory(root: pathlib.Path = _ROOT) -> int:
    """Return how many processes of our control group were killed because memory was short, as far as is visible."""
    names = ("memory.events", "memory.oom_control")
    counts = [line.split() for folder in _groups("memory", root) for name in names for line in _lines(folder / name)]
    return sum(int(words[1]) for words in counts if words[:1] == ["oom_kill"])


def free_memory_mb(root: pathlib.Path = _ROOT) -> int | None:
    """Return the memory that new processes could get, in units of 2^20 bytes, None if that is unknown."""
    lines = [line.split() for line in _lines(root / "proc" / "meminfo")]
    free = [int(line[1]) >> 10 for line in lines if line[:1] == ["MemAvailable:"] and line[1].isdigit()]
    limit = memory_mb(root)
    return min([*free, *([] if limit is None else [limit])], default=None)


def most_processes(root: pathlib.Path = _ROOT) -> int | None:
    """Return the limit on simultaneous processes and threads, None if there is none."""
    return _least("pids", ("pids.max",), root)


def refused_processes(root: pathlib.Path = _ROOT) -> int:
    """Return how often a new process or thread was refused because there were too many (pids.events)."""
    counts = (_words(file) for file in _refusal_counts(root))
    return sum(int(words[1]) for words in counts if len(words) >= 2 and words[0] == "max")


@functools.cache
def _refusal_counts(root: pathlib.Path) -> list[pathlib.Path]:
    # These files are read many times a second. The root group, which has no limit, has no such file.
    return [file for folder in _groups("pids", root) if (file := folder / "pids.events").exists()]


def _least(controller: str, names: tuple[str, ...], root: pathlib.Path) -> int | None:
    words = (word for folder in _groups(controller, root) for name in names for word in _words(folder / name)[:1])
    return min((int(word) for word in words if word.isdecimal()), default=None)


def _groups(controller: str, root: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield the visible folders of this process's control group for a controller, and of the groups above it."""
    paths: dict[str, str] = {}  # {controller: path}; "" is version 2, which has all controllers
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
        # The mount may show only a part of the tree, and the path may be outside that part.
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
