"""The lab's promises, tested in real guests. Each test boots one or a few; the kernel must be built (`make kernel`)."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
from helpers import line

from conformance.catalogue import documents
from conformance.engine import runs
from conformance.lab import cores, job, virtual
from conformance.lab.adapter import load
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.results import store
from conformance.support import paths, scratch as scratch_place

pytestmark = pytest.mark.guest

SHORT = Cell(10, 5, 0)
LINUX_TCP = "/run/suite/adapters/linux-tcp/linux-tcp"


def short(cell=SHORT, **overrides):
    return documents.profile("atc25", cell, **{"transfer_s": 1, **overrides})


def go(bench, settings, seeds=(1,), algorithm="cubic", room=None, **options):
    """Return measurements as the room yields them, without a store."""
    batches = [bench.trials(algorithm, s, seeds) for s in settings]
    return list((room or bench.place(algorithm).room).run(bench.adapter, batches, threading.Event(), **options))


def guests(pid=None):
    """Return the process ids of running guest kernels that process `pid`, by default this one, has started."""
    mark = f"conformance-scratch-{pid or os.getpid()}-".encode()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"cc_scratch=" in command and mark in command:
            found.append(folder.name)
    return found


def wait_for(guest, seconds):
    """Wait at most `seconds` for the guest to end by itself, then end it."""
    try:
        deadline = time.monotonic() + seconds
        while guest.exit_status is None and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        guest.end()


def run_program(bench, program, wall_timeout_s=120):
    """Run a Python program in a guest instead of the job; return what the console said."""
    with cores.one_core() as core, scratch_place.folder() as scratch:
        (scratch / "program.py").write_text(program)
        guest = virtual.boot(bench.place("cubic").kernel, scratch, core, run="/run/scratch/program.py")
        wait_for(guest, wall_timeout_s)
        return (scratch / "console.log").read_text(errors="replace")


def adapter(folder, server="exec LINUX server", client="exec LINUX client", **manifest):
    """Write an adapter made of two shell commands, in which LINUX stands for linux-tcp's program."""
    folder.mkdir()
    program = folder / "stack"
    server, client = (text.replace("LINUX", LINUX_TCP) for text in (server, client))
    describe = """echo '{"version": "1"}'"""
    verbs = f"server) {server} ;;\nclient) {client} ;;\ndescribe) {describe} ;;"
    program.write_text(f'#!/bin/sh\ncase "$1" in\n{verbs}\nesac\n')
    program.chmod(0o755)
    about = {
        "contract": 1, "name": "test", "title": "a test", "program": "stack", "transport": "tcp",
        "kernel_algorithms": {"cubic": "cubic"},
    }  # fmt: skip
    (folder / "adapter.json").write_text(json.dumps({**about, **manifest}))
    return dataclasses.replace(load(str(folder / "adapter.json")), build=load("linux-tcp").build)


def test_same_seed_same_bytes_wherever_and_whenever_it_runs(bench):
    """The bytes are the same alone or after others, in any guest, on an idle or a loaded host; other seeds differ."""
    settings = [short(Cell(10, 20, 1)), short(Cell(50, 1, 3)), short(Cell(20, 60, 0))]
    long = {(m.trial.setting, m.trial.seed): line(m) for m in go(bench, settings, (1, 2, 3))}
    load_host = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        again = {(m.trial.setting, m.trial.seed): line(m) for m in go(bench, list(reversed(settings)), (3, 1))}
    finally:
        for process in load_host:
            process.kill()
            process.wait()
    for key, found in again.items():
        assert found == long[key], key[0].cell.id
    # Without random loss, results of different seeds need not differ.
    lossy = [text for (setting, _), text in long.items() if setting.cell.loss_pct]
    assert len({json.loads(text)["metrics"]["completion_s"] for text in lossy}) == 6


@pytest.mark.thorough
def test_what_a_guest_ran_before_does_not_show_by_a_nanosecond(bench):
    """Whole transfers in reverse order meet the kernel's housekeeping at other points of each transfer.

    With coarse timers, with charged readings of the clock or with a server for fair tasks, 1 trial in 10 differed.
    """
    settings = [documents.profile("atc25", cell) for cell in (Cell(10, 100, 1), Cell(10, 100, 0), Cell(30, 1, 2))]
    seeds = tuple(range(1, 9))
    forwards = {(m.trial.setting, m.trial.seed): line(m) for m in go(bench, settings, seeds)}
    backwards = {(m.trial.setting, m.trial.seed): line(m) for m in go(bench, settings[::-1], seeds[::-1])}
    assert [key[0].cell.id for key in forwards if forwards[key] != backwards[key]] == []


def test_one_worker_and_two_make_the_same_results(bench, tmp_path):
    work = [("cubic", short(Cell(10, d, 2))) for d in (1, 10, 20, 30)]
    found = []
    for workers in (1, 2):
        kept = store.Store(tmp_path / f"{workers}.jsonl")
        with runs.Run(bench, kept, work, [1, 2], workers) as run:
            found.append([[line(m) for m in run.result(*key)] for key in work])
    assert found[0] == found[1]


def test_an_interrupted_run_resumes(bench, tmp_path):
    kept = store.Store(tmp_path / "r.jsonl")
    work = [("cubic", short(Cell(10, d, 0))) for d in (1, 2, 3, 4)]
    with runs.Run(bench, kept, work, [1], 1) as run:
        run.result(*work[0])
    before = len(store.read(kept.path))
    assert 1 <= before < 4
    with runs.Run(bench, store.Store(kept.path), work, [1], 1) as run:
        assert [len(run.result(*key)) for key in work] == [1, 1, 1, 1]
        assert run.progress.fresh == 4 - before


def _check_queue_columns(found, read_back, kind):
    """Check that the trace's counters never fall, and end near tc's own counters, which are read after the trial."""
    trace = found.evidence["trace"]
    for name, last in (
        ("queue_out_bytes", read_back[kind]["bytes"]),
        ("queue_dropped_packets", read_back[kind]["drops"]),
        ("dropped_packets", read_back["netem"]["drops"]),
    ):
        assert trace[name] == sorted(trace[name]) and 0 <= trace[name][-1] <= last, name
    assert trace["queue_out_bytes"][-1] > 0.6 * read_back[kind]["bytes"]


QUEUES = ("red", "bfifo:1", "pfifo:50", "fq_codel", "codel", "cake", "pie", "policer")


def test_every_queue_is_installed_calibrated_and_used(bench):
    asked = [short(Cell(10, 10, 0), queue=queue) for queue in QUEUES]
    for queue, found in zip(QUEUES, go(bench, asked), strict=True):
        assert found.outcome is Outcome.OK, (queue, found.message)
        kind = "bfifo" if queue == "policer" else queue.partition(":")[0]
        read_back = {q["kind"]: q for q in found.evidence["qdiscs"] if q["dev"] == "to_client"}
        assert set(read_back) == {"netem", "htb", kind}
        assert read_back[kind]["bytes"] > found.trial.setting.transfer_bytes
        _check_queue_columns(found, read_back, kind)
        assert 0.2 < found.utilization < 1, queue
        assert found.metrics["min_rtt_ms"] == pytest.approx(20, abs=1.5), queue
        for side in ("server", "client"):
            assert found.evidence["sysctls"][side]["net.ipv4.tcp_rmem"] == "4096 131072 6291456"


def test_fractional_loss_and_offload_off(bench):
    (found,) = go(bench, [short(Cell(10, 10, 0.01), offload=False, transfer_s=2)])
    assert found.outcome is Outcome.OK, found.message
    netem = next(q for q in found.evidence["qdiscs"] if q["kind"] == "netem")
    assert netem["options"]["loss-random"]["loss"] == pytest.approx(0.0001)
    assert found.evidence["offload"]["server:server-eth0"] == {"tso": False, "gso": False, "gro": False}
    # Without super-packets, no frame is larger than Ethernet allows.
    sent = found.evidence["interfaces"]["server"]["server-eth0"]
    assert sent["tx_bytes"] / sent["tx_packets"] <= 1514


def test_with_offload_on_packets_leave_in_super_packets(bench):
    (found,) = go(bench, [short(Cell(10, 10, 0), transfer_s=2)])
    sent = found.evidence["interfaces"]["server"]["server-eth0"]
    assert sent["tx_bytes"] / sent["tx_packets"] > 1600


def test_an_emulator_that_does_not_deliver_is_an_error(bench, monkeypatch):
    right = job.shaping.tc_lines
    monkeypatch.setattr(
        job.shaping, "tc_lines", lambda *s, **how: [x.replace("rate 10mbit", "rate 12mbit") for x in right(*s, **how)]
    )
    (found,) = go(bench, [short()])
    assert found.outcome is Outcome.ERROR
    assert found.message.startswith("calibration: to_client has a rate of 12 Mbit/s instead of 10")
    assert "the emulator delivered 12" in found.message


def test_a_transfer_that_takes_too_long_is_a_timeout_with_a_bound(bench):
    (found,) = go(bench, [dataclasses.replace(short(), timeout_s=0.5)])
    assert found.outcome is Outcome.TIMEOUT
    assert found.metrics["goodput_mbps"] is None
    assert found.utilization == pytest.approx(2.0)


def test_wall_time_is_limited_too(bench):
    room = virtual.VirtualRoom(bench.place("cubic").kernel, trial_wall_timeout_s=0.05)
    found = go(bench, [short(), short(Cell(10, 6, 0))], room=room)
    assert [m.outcome for m in found] == [Outcome.ERROR] * 2
    assert "wall time" in found[0].message
    assert guests() == []


def test_a_guest_killed_from_outside_harms_only_its_cell(bench):
    started = []

    def kill_the_first(guest):
        started.append(guest)
        if len(started) == 1:
            os.kill(guest.pid, signal.SIGKILL)

    first, second = go(bench, [short(), short(Cell(10, 6, 0))], on_start=kill_the_first)
    assert first.outcome is Outcome.ERROR
    assert "killed by signal 9 (SIGKILL)" in first.message
    assert second.outcome is Outcome.OK
    assert guests() == []


def test_nothing_is_left_when_the_runner_is_killed(tmp_path):
    program = "from conformance.cli import main; main(['run', 'cubic', '--grid', '10mbps', '--trials', '20'])"
    runner = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.DEVNULL)

    deadline = time.monotonic() + 60
    while not guests(runner.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert guests(runner.pid)
    runner.kill()
    runner.wait()
    deadline = time.monotonic() + 20
    while guests(runner.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not guests(runner.pid)
    with scratch_place.folder() as scratch:  # making a folder removes what the killed process left
        assert not list(scratch.parent.glob(f"conformance-scratch-{runner.pid}-*"))


#: what others of tests/guest/test_faults.py do, too, in guests that they share
THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize(
    ("commands", "outcome", "words"),
    [
        pytest.param({"server": "exit 127"}, Outcome.UNSUPPORTED, "test does not offer cubic", id="127"),
        pytest.param(
            {"server": "echo no such certificate >&2; exit 1"}, Outcome.ERROR,
            "before it was ready: no such certificate", id="no-start",
        ),
        pytest.param(
            {"server": "(sleep 0.6; kill -9 $$) & exec LINUX server"}, Outcome.FAILED,
            "died with status -9 during the transfer", id="dies",
        ),
        pytest.param({"client": "LINUX client; kill -9 $$"}, Outcome.FAILED, "ended with status -9", id="client-dies"),
        pytest.param(
            {"client": """echo '{"bytes": 1250000, "completion_s": 1, "handshake_s": 0}'"""}, Outcome.ERROR,
            "crossed its link", id="lies", marks=THOROUGH,
        ),
        pytest.param(
            {"client": "LINUX client | sed s/1250000/9999999/"}, Outcome.ERROR, "reports 9999999 bytes",
            id="lies-bytes",
        ),
        pytest.param(
            {"client": "LINUX client; sleep 5"}, Outcome.ERROR, "the harness saw it run for", id="lies-time",
            marks=THOROUGH,
        ),
        pytest.param({"client": "yes"}, Outcome.FAILED, "ended with status", id="floods", marks=THOROUGH),
        pytest.param(
            {"server": "setsid sleep 10000 & exec LINUX server"}, Outcome.OK, None, id="stays", marks=THOROUGH
        ),
        pytest.param(
            {"server": "touch /run/suite/evil /run/adapter/evil /evil /usr/evil; exec LINUX server"}, Outcome.OK, None,
            id="writes", marks=THOROUGH,
        ),
    ],
)  # fmt: skip
def test_bad_adapters_end_in_time_with_the_right_outcome(bench, tmp_path, commands, outcome, words):
    bad = dataclasses.replace(bench, adapter=adapter(tmp_path / "stack", **commands))
    (found,) = go(bad, [dataclasses.replace(short(transfer_s=1), timeout_s=30)])
    assert found.outcome is outcome, found.message
    assert words is None or words in found.message
    assert guests() == []
    for place in (paths.PACKAGE.parent, tmp_path / "stack", pathlib.Path("/"), pathlib.Path("/usr")):
        assert not (place / "evil").exists()


@pytest.mark.parametrize("algorithm", ["vegas", "westwood"])
def test_algorithms_that_namespaces_do_not_get_by_default(bench, algorithm):
    (found,) = go(bench, [short()], algorithm=algorithm)
    assert found.outcome is Outcome.OK, found.message
    assert found.evidence["sysctls"]["server"]["net.ipv4.tcp_congestion_control"] == algorithm


def test_an_algorithm_that_the_kernel_lacks_is_unsupported(bench, tmp_path):
    lacking = dataclasses.replace(bench, adapter=adapter(tmp_path / "stack", kernel_algorithms={"cubic": "nosuchcc"}))
    (found,) = go(lacking, [short()])
    assert found.outcome is Outcome.UNSUPPORTED
    assert "no congestion control named nosuchcc" in found.message


def test_kernels_extended_registers_survive_threads_signals_and_forks(bench):
    """Our patch leaves floating-point state in the host process; the states of threads must never be mixed up."""
    program = """
import math, os, signal, threading
hits = []
signal.signal(signal.SIGALRM, lambda *_: hits.append(math.sqrt(2.0) * math.pi))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def work(seed, out):
    x = seed
    for i in range(20000):
        x = math.fmod(x * 1.0000001 + math.sin(x), 1000.0)
        if i % 500 == 0:
            os.sched_yield()
    out.append(x)
alone = {}
for seed in range(4):
    out = []
    work(float(seed), out)
    alone[seed] = out[0]
results = [[] for _ in range(4)]
threads = [threading.Thread(target=work, args=(float(s), results[s])) for s in range(4)]
for t in threads: t.start()
children = []
for s in range(4):
    pid = os.fork()
    if pid == 0:
        out = []
        work(float(s), out)
        os._exit(0 if out[0] == alone[s] else 1)
    children.append(pid)
for t in threads: t.join()
good = all(results[s][0] == alone[s] for s in range(4))
good &= all(os.waitpid(p, 0)[1] == 0 for p in children)
print("registers good" if good else "registers BAD")
"""
    assert "registers good" in run_program(bench, program)


def test_the_clock_is_one_clock_and_advances_for_whoever_waits_for_it(bench):
    """The clock is read by system call and by libc (from 7.2 on mostly without one), in processes that only read it."""
    program = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
libc.time.restype = ctypes.c_long
class Time(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
def called(clock):
    t = Time()
    assert libc.syscall(228, clock, ctypes.byref(t)) == 0
    return t.s * 10**9 + t.ns
good = True
for clock, apart in ((0, 2000), (1, 2000), (5, 10**6), (6, 10**6)):
    for _ in range(500):
        before, middle, after = time.clock_gettime_ns(clock), called(clock), time.clock_gettime_ns(clock)
        good &= before <= middle <= after and after - before <= 2 * apart
good &= abs(time.time() - called(0) / 1e9) < 0.001 and int(time.time()) - libc.time(None) in (0, 1)
def spin(out=None):
    began = time.monotonic_ns()
    while time.monotonic_ns() - began < 1_000_000:
        pass
spin()
threads = [threading.Thread(target=spin) for _ in range(3)]
for t in threads: t.start()
children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        spin()
        os._exit(0)
    children.append(pid)
for t in threads: t.join()
good &= all(os.waitpid(p, 0)[1] == 0 for p in children)
print("clock good" if good else "clock BAD", "uptime", time.monotonic_ns())
"""
    said = [run_program(bench, program) for _ in range(2)]
    assert "clock good" in said[0]
    assert said[0] == said[1]


def test_more_mappings_than_the_host_allows_end_the_process_and_not_the_guest(bench):
    """Each page of a guest's process is a mapping of the host process, unless it lies next to the one before."""
    program = """
import mmap, os
pages = 75_000
if os.fork() == 0:
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
    for i in range(pages):
        memory[i * 7919 % pages * mmap.PAGESIZE] = 1
    os._exit(0)
print("child ended with", os.wait()[1])
"""
    limit = int(pathlib.Path("/proc/sys/vm/max_map_count").read_text())
    said = run_program(bench, program)
    assert f"child ended with {11 if limit < 75_000 else 0}" in said, said


def test_pytest_judges_linux_cubic_on_real_guests(tmp_path):
    """The whole product once: two smoke cells, real measurements, the shipped zones."""
    cells = ",".join(cell.id for cell in documents.zone_of("cubic").smoke[:2])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--pyargs", "conformance.suite", "-m", "cubic", "--grid", cells, "-v", "-p",
         "no:cacheprovider", "--results", str(tmp_path / "r.jsonl")],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert "4 passed" in done.stdout, done.stdout  # utilization and loss of each
    assert len(store.read(tmp_path / "r.jsonl")) == 10
