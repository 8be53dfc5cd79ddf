"""Limits of control groups, of both versions, as containers show them."""

import pytest

from conformance.support import limits

_V1 = "31 24 0:28 {top} /sys/fs/cgroup/{name} rw,relatime shared:9 - cgroup cgroup rw,{name}"
_V2 = "31 24 0:28 {top} /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate"


@pytest.fixture
def machine(tmp_path):
    """Return a function that writes a machine's files from lines of cgroup, lines of mountinfo, {file: content}."""

    def write(groups, mounts, files):
        contents = {"proc/self/cgroup": "\n".join(groups), "proc/self/mountinfo": "\n".join(mounts), **files}
        for name, content in contents.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{content}\n")
        return tmp_path

    return write


def seen(root):
    return limits.core_quota(root), limits.memory_mb(root), limits.most_processes(root), limits.refused_processes(root)


def test_version_2_in_a_namespace_of_its_own(machine):
    files = {"cpu.max": "150000 100000", "memory.max": "268435456", "pids.max": "100", "pids.events": "max 3"}
    root = machine(["0::/"], [_V2.format(top="/")], {f"sys/fs/cgroup/{name}": text for name, text in files.items()})
    assert seen(root) == (1.5, 256, 100, 3)


def test_version_2_takes_the_least_of_a_group_and_those_above_it(machine):
    root = machine(
        ["0::/ci/job/step"],
        [_V2.format(top="/")],
        {
            "sys/fs/cgroup/ci/cpu.max": "200000 100000",
            "sys/fs/cgroup/ci/job/cpu.max": "400000 100000",
            "sys/fs/cgroup/ci/job/step/cpu.max": "max 100000",
            "sys/fs/cgroup/ci/memory.max": "max",
            "sys/fs/cgroup/ci/job/step/pids.max": "max",
        },
    )
    assert seen(root) == (2.0, None, None, 0)


def test_version_1_shows_the_containers_part_of_the_tree_under_the_path_of_the_whole(machine):
    names = ("cpu", "memory", "pids")
    root = machine(
        [f"{at}:{name}:/docker/abc" for at, name in enumerate(names, 2)] + ["0::/"],
        [_V1.format(top="/docker/abc", name=name) for name in names],
        {
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "201326592",
            "sys/fs/cgroup/pids/pids.max": "20",
            "sys/fs/cgroup/pids/pids.events": "max 0",
        },
    )
    assert seen(root) == (0.5, 192, 20, 0)


def test_version_1_without_limits_and_a_machine_without_control_groups(machine, tmp_path):
    root = machine(
        ["3:cpu:/", "2:memory:/"],
        [_V1.format(top="/", name="cpu"), _V1.format(top="/", name="memory")],
        {
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert seen(root) == seen(tmp_path / "nowhere") == (None, None, None, 0)


@pytest.mark.parametrize(
    ("quota", "memory", "processes", "most"),
    [
        (None, None, None, 8), (1.5, None, None, 2), (0.2, None, None, 1), (None, 256, None, 1), (None, 100, None, 1),
        (None, 192, None, 1), (None, 367, None, 1), (None, 368, None, 2), (None, 496, None, 3),
        (None, None, 60, 3), (None, None, 5, 1), (16, 4096, 1000, 8), (3, 512, 1000, 3),
    ],
)  # fmt: skip
def test_as_many_workers_as_the_scarcest_allows(monkeypatch, quota, memory, processes, most):
    monkeypatch.setattr(limits, "cores", lambda: list(range(8)))
    monkeypatch.setattr(limits, "core_quota", lambda: quota)
    monkeypatch.setattr(limits, "memory_mb", lambda: memory)
    monkeypatch.setattr(limits, "most_processes", lambda: processes)
    assert limits.workers() == most


def test_processes_killed_for_memory_are_counted(machine, tmp_path):
    files = {"sys/fs/cgroup/memory.events": "low 0\nmax 7\noom 2\noom_kill 3"}
    assert limits.killed_for_memory(machine(["0::/"], [_V2.format(top="/")], files)) == 3
    assert limits.killed_for_memory(tmp_path / "nowhere") == 0


def test_version_1_counts_processes_killed_for_memory_too(machine):
    files = {"sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2"}
    root = machine(["2:memory:/docker/abc"], [_V1.format(top="/docker/abc", name="memory")], files)
    assert limits.killed_for_memory(root) == 2
