"""Run trials in the virtual room: User-Mode Linux guests in time-travel mode. No root, no flakes, no waiting.

A guest sees the host's files read-only and has no network but its own. It is one process group that dies with this
process: the kernel process asks to be killed when its parent ends, and takes its children along.
"""

import contextlib
import ctypes
import os
import pathlib
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import IO

from conformance.guest import protocol, wire
from conformance.kernel.store import Kernel
from conformance.lab import allowance, cores, endings, host_process, job, memory as memory_file, two_passes
from conformance.lab.adapter import Adapter
from conformance.lab.reader import Reader
from conformance.lab.room import Batches, Supply
from conformance.model.errors import UserError
from conformance.model.trials.trial import Measurement, Outcome, Trial
from conformance.support import limits, paths, scratch as scratch_place

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
#: a guest's time at boot, in ns since 1970: 2040-01-01, after the certificates' first day, whenever they were made
_WALL_CLOCK_NS = 2_208_988_800 * 10**9
_MEMORY = f"{job.LEAST_MB}M"
#: Virtual cost, in ns, of a system call, and of a poll that finds nothing and does not wait. Computing takes no virtual
#: time in a guest, so a program that polls in a loop until something happens would otherwise do so forever.
SYSCALL_COST_NS, EMPTY_POLL_COST_NS = 1_000, 20_000
#: From kernel 7.2 on, this many reads of the clock at one point in time are free, and the next one is a system call,
#: which makes 25 ns a read.
CLOCK_READS = 40
#: seed of all randomness before the first trial, the same in every guest
_BOOT_SEED = 1
_POLL_S = 0.02
#: Uptime in s at which a guest is replaced: 2^30 ms, 12 days. At twice that, signed 32-bit counts of milliseconds
#: overflow: the kernel's jiffies, where they are compared with much earlier ones, or a stack's own clock.
_MOST_UPTIME_S = 2**30 / 1000
#: A guest gives its core to another run that waits for one after _STARTS_A_SHIFT times the time that it took to start,
#: but not before _SHIFT_S of wall time: otherwise a busy machine would do little but start guests. If starts take very
#: long, it does so after _LONGEST_SHIFT_S, or the other run would seem to hang.
_STARTS_A_SHIFT, _SHIFT_S, _LONGEST_SHIFT_S = 15, 30.0, 180.0
#: how long to wait, in s, until killed processes are gone: on a busy machine it may take a moment
_GONE_S = 5.0


def command(
    kernel: Kernel,
    scratch: pathlib.Path,
    adapter: Adapter | None = None,
    run: str | None = None,
    memory: str = _MEMORY,
) -> list[str]:
    """Return the guest's command line."""
    stack = [f"cc_{name.replace('-', '_')}={folder}" for name, folder in adapter.folders().items()] if adapter else []
    # If the host forbids seccomp, such a kernel uses ptrace, which is slower and gives the same results.
    calls = ["seccomp=auto"] if kernel.seccomp else []
    # Variant parameters come first, because the kernel takes the last duplicate and the lab's must win.
    parameters = [f"{name}={value}" for name, value in kernel.parameters]
    return [
        str(kernel.binary), *parameters, f"mem={memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
        f"time-travel-start={_WALL_CLOCK_NS}", "time-travel=inf-cpu", *calls, f"random.seed={_BOOT_SEED}",
        "norandmaps", "ipv6.disable_ipv6=1", "thash_entries=512",
        f"syscall.cost_ns={SYSCALL_COST_NS}", f"syscall.empty_poll_ns={EMPTY_POLL_COST_NS}",
        f"time.clock_reads={CLOCK_READS}",
        "con=null", "con0=null,fd:1", "quiet", "panic=-1", "noreboot", f"uml_dir={scratch}/uml",
        f"cc_scratch={scratch}", f"cc_suite={paths.PACKAGE.parent}", *stack,
        *([f"cc_run={run}"] if run else []),
        "init=/usr/bin/python3", "--", "-I", "-u", str(paths.PACKAGE / "guest" / "init.py"),
    ]  # fmt: skip


class Group:
    """A process and its descendants, with its output in SCRATCH/console.log; `end()` leaves none of them behind.

    The process asks the kernel to kill it when its parent, the suite, ends, however that happens.
    """

    def __init__(
        self,
        command: Sequence[str],
        scratch: pathlib.Path,
        environment: Mapping[str, str],
        cores: Collection[int] | None = None,
    ) -> None:
        self._console = open(scratch / "console.log", "wb")
        parent = os.getpid()

        def bind_to_us() -> None:
            if cores is not None:
                with contextlib.suppress(OSError):  # forbidden in some containers, where it is slower
                    os.sched_setaffinity(0, cores)
            with contextlib.suppress(OSError):  # if memory is short, it is killed, and not we, who report that
                pathlib.Path("/proc/self/oom_score_adj").write_text("500")
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._console, stderr=subprocess.STDOUT, cwd=scratch,
                env=environment, start_new_session=True, preexec_fn=bind_to_us,
            )  # fmt: skip
        except OSError as error:
            self._console.close()
            raise UserError(f"cannot start {command[0]}: {error.strerror}", "run `conformance doctor`") from None
        # A process that a guest has just begun to create does not die with its parent yet, and would stay, stopped,
        # forever. So a shell waits for the end of a pipe, which comes when we end, and then kills the whole group.
        try:
            self._last_will = subprocess.Popen(
                ["/bin/sh", "-c", f"read _; kill -s KILL -- -{self._process.pid}"], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._console.close()
            raise UserError(f"cannot start /bin/sh: {error.strerror}", "run `conformance doctor`") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        return self._process.poll()

    def end(self) -> None:
        """Kill the process group. What left the group dies with it, by namespaces or parent-death signals."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # A guest's processes are traced by the one that we waited for, and end after it.
        deadline = time.monotonic() + _GONE_S
        while _lives(self._process.pid) and time.monotonic() < deadline:
            time.sleep(0.005)
        self._last_will.kill()
        self._last_will.wait()
        if self._last_will.stdin is not None:
            self._last_will.stdin.close()
        self._console.close()


def _lives(group: int) -> bool:
    """Return whether a process of this group still runs; zombies do not count."""
    return any(process.group == group and process.state not in "ZX" for process in host_process.processes())


def _refuse_unusable(adapter: Adapter) -> None:
    """Raise UserError if a guest cannot be told of a folder, or the user nobody may not read it."""
    for folder in adapter.folders().values():
        paths.refuse_spaces(folder, "move it, or set CC_CONFORMANCE_CACHE to another folder")
    for about in (adapter.manifest, (adapter.client or adapter).manifest):
        if any(path.stat().st_mode & 0o005 != 0o005 for path in (about.folder, about.folder / about.program)):
            raise UserError(
                f"{about.folder}: stacks run as the user nobody, which may not read all of it",
                f"run `chmod -R o+rX {shlex.quote(str(about.folder))}`",
            )


def boot(
    kernel: Kernel,
    scratch: pathlib.Path,
    core: int,
    adapter: Adapter | None = None,
    run: str | None = None,
    memory: str = _MEMORY,
) -> Group:
    """Start a guest; `run` is a Python program for it to run instead of the job."""
    if (limits.most_processes() or limits.WORKER_PROCESSES) < limits.WORKER_PROCESSES:
        raise endings.too_few_processes()
    paths.refuse_spaces(scratch.parent, "set TMPDIR to another folder")
    paths.refuse_spaces(paths.PACKAGE.parent, "move it")
    if adapter is not None:
        _refuse_unusable(adapter)
    (scratch / "uml").mkdir()
    place = memory_file.folder(kernel)
    # HOME also serves the kernel itself: Linux 7.2 takes the top of its address space from the place of its
    # environment, and PATH is moved. Without any other variable, its first process ends at once.
    environment = {**({"TMPDIR": str(place)} if place else {}), "HOME": str(scratch), "PATH": "/usr/bin:/bin"}
    return Group(command(kernel, scratch, adapter, run, memory), scratch, environment, {core})


class VirtualRoom:
    """The Room that runs trials in guests: a guest is fed all cells, one after another, as long as it lives."""

    def __init__(
        self,
        kernel: Kernel,
        trial_wall_timeout_s: float = 600.0,
        most_uptime_s: float = _MOST_UPTIME_S,
        remembers: bool = True,
    ) -> None:
        self.kernel, self.trial_wall_timeout_s = kernel, trial_wall_timeout_s
        self._most_uptime_s, self._remembers = most_uptime_s, remembers

    def run(
        self,
        adapter: Adapter,
        batches: Batches,
        cancelled: threading.Event,
        on_start: Callable[[Group], object] = lambda guest: None,
    ) -> Iterator[Measurement]:
        """Yield one Measurement for each trial, as they come, until all are made or `cancelled` is set.

        A guest's fault is an error in the measurements of the cell it happened in, never an exception; the cells after
        it get a new guest.
        """
        yield from two_passes.run(lambda trials: self._once(adapter, trials, cancelled, on_start), batches)

    def _once(
        self, adapter: Adapter, batches: Batches, cancelled: threading.Event, on_start: Callable[[Group], object]
    ) -> Iterator[Measurement]:
        """Yield the measurements of trials of one pass each, first passes among them."""
        supply = Supply(batches)
        while not cancelled.is_set() and (first := supply.take()):
            if why := job.why_not(first[0].setting, adapter):
                yield from (Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why) for trial in first)
                continue
            supply.give_back([first])
            with one_guest(self.kernel, adapter, first[0], cancelled) as (guest, scratch):
                on_start(guest)
                reader = Reader([], adapter, remembers=self._remembers, traces=scratch / "trace")
                has_mb = job.memory_mb(first[0].setting, adapter.name), allowance.needed_mb(first[0])
                shift = _Shift(supply, reader, job.Feeder(scratch), self._most_uptime_s, *has_mb)
                for measurement in follow(guest, reader, scratch, cancelled, self.trial_wall_timeout_s, shift.feed):
                    # Guests read the adapter's files anew; a result must not be kept under the digest of others.
                    adapter.require_unchanged()
                    yield measurement
                supply.give_back(reader.owed)


class _Shift:
    """Feeds one guest until no cells are left, it is too old, or another run waits for its core.

    The shift also ends before trials that need more memory than the guest has, `memory_mb`, and, if memory is limited,
    before those that need more than the guest may take, `allowed_mb`.
    """

    def __init__(
        self, supply: Supply, reader: Reader, feeder: job.Feeder, most_uptime_s: float, memory_mb: int,
        allowed_mb: int,
    ) -> None:  # fmt: skip
        self._supply, self._reader, self._feeder, self._most_uptime_s = supply, reader, feeder, most_uptime_s
        self._memory_mb, self._allowed_mb = memory_mb, allowed_mb
        self._began_s = time.monotonic()
        self._start_s = 0.0

    def feed(self) -> None:
        """Feed the guest so much that it does not wait, and no more, since another guest could take the rest."""
        while self._reader.few_owed and not self._is_over() and (trials := self._supply.take()):
            if self._is_too_small_for(trials[0]):
                self._supply.give_back([trials])
                return
            self._feeder.feed(self._reader.add(trials))

    def _is_too_small_for(self, trial: Trial) -> bool:
        if job.memory_mb(trial.setting, trial.scheme.stack) > self._memory_mb:
            return True
        return limits.memory_mb() is not None and allowance.needed_mb(trial) > self._allowed_mb

    def _is_over(self) -> bool:
        if self._reader.uptime_s > self._most_uptime_s:
            return True
        so_far_s = time.monotonic() - self._began_s
        # The guest sends no event before its network is up.
        self._start_s = self._start_s or (so_far_s if self._reader.uptime_s else 0.0)
        long_enough_s = min(max(_SHIFT_S, _STARTS_A_SHIFT * self._start_s), _LONGEST_SHIFT_S)
        return so_far_s > long_enough_s and cores.others_wait()


@contextlib.contextmanager
def one_guest(
    kernel: Kernel,
    adapter: Adapter,
    first: Trial,
    cancelled: threading.Event | None = None,
    traced: job.FlowOf | None = None,
    trace: str | None = None,
    probe: bool = False,
) -> Iterator[tuple[Group, pathlib.Path]]:
    """Boot a guest for trials like `first`, with a core and memory of its own; yield (guest, its scratch folder).

    The guest waits until it is fed (job.Feeder), and ends with the block. `probe`, `trace`: see job.write(). `traced`:
    see Reader. Raises UserError.
    """
    needed_mb = allowance.needed_mb(first, trace, traced)
    memory = f"{job.memory_mb(first.setting, adapter.name, trace, traced)}M"
    with (
        scratch_place.disk_errors(), allowance.OURS.hold(needed_mb, cancelled), cores.one_core(cancelled) as core,
        scratch_place.folder() as scratch,
    ):  # fmt: skip
        job.write(scratch, adapter, "/run", first, probe, trace)
        guest = boot(kernel, scratch, core, adapter, memory=memory)
        try:
            yield guest, scratch
        finally:
            guest.end()


#: {event: the work that it ends}: the time of this work is noted with the next trial
_PARTS: Mapping[type[protocol.Event], str] = {
    protocol.NetworkUp: "start_s",
    protocol.CongestionControl: "start_s",
    protocol.Calibration: "calibration_s",
}


def follow(
    guest: Group,
    reader: Reader,
    scratch: pathlib.Path,
    cancelled: threading.Event,
    trial_wall_timeout_s: float,
    feed: Callable[[], None] = lambda: None,
) -> Iterator[Measurement]:
    """Yield measurements while the guest works; end when it owes no more, or is given up.

    `feed` is called whenever the guest may need another cell. "wall_s" of a trial is the time since the event before
    it. Raises UserError if the guest was refused a process: it would wait forever.
    """
    tail = Tail(scratch / "out.jsonl")
    refused, killed = limits.refused_processes(), limits.killed_for_memory()
    feed()
    last = time.monotonic()
    before: dict[str, float] = {}
    while not cancelled.is_set():
        ended = guest.exit_status is not None
        if limits.refused_processes() > refused:
            raise endings.too_few_processes()
        for event in tail.read():
            now = time.monotonic()
            took_s, last = round(now - last, 3), now
            if part := _PARTS.get(type(event)):
                before[part] = round(before.get(part, 0.0) + took_s, 3)
            measurements = list(reader.feed(event, {"wall_s": took_s, **before}))
            if measurements:
                before = {}
            yield from measurements
            if isinstance(event, protocol.Fault):
                return
            feed()
        if not reader.owed:
            return
        host = {"wall_s": round(time.monotonic() - last, 3), **before}
        if ended:
            yield from reader.give_up(endings.why_it_ended(guest.exit_status, scratch, killed), host)
            return
        if time.monotonic() - last > trial_wall_timeout_s:
            yield from reader.give_up(f"a trial took longer than {trial_wall_timeout_s:g} s of wall time", host)
            return
        time.sleep(_POLL_S)


def events(guest: Group, scratch: pathlib.Path, wall_timeout_s: float) -> Iterator[protocol.Event]:
    """Yield the guest's events until it ends, or until `wall_timeout_s` seconds of wall time are over."""
    tail = Tail(scratch / "out.jsonl")
    deadline = time.monotonic() + wall_timeout_s
    ended = False
    while not ended and time.monotonic() < deadline:
        ended = guest.exit_status is not None
        yield from tail.read()
        time.sleep(_POLL_S)


class Tail:
    """Reads the events of a growing file, each once; lines that are not events are skipped."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path, self._rest = path, b""
        self._file: IO[bytes] | None = None

    def read(self) -> Iterator[protocol.Event]:
        if self._file is None:
            try:
                self._file = open(self._path, "rb")
            except FileNotFoundError:
                return
        data = self._rest + self._file.read()
        *lines, self._rest = data.split(b"\n")
        for line in lines:
            # A guest whose scratch disk is full leaves half a line; trials that are owed become errors.
            with contextlib.suppress(wire.ProtocolError):
                yield protocol.parse_event(line)
