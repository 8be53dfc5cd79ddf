"""Misdeeds of a bad adapter, which it commits besides, or instead of, what a good one does."""

import contextlib
import ctypes
import mmap
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

from good import connect, fetch, here, read, result, serve, server_pid, size

MARK = "hostile-left-this"
LIBC = ctypes.CDLL(None, use_errno=True)


def first(deed, then):
    """Return a function that does `deed`, and then the transfer (`then`) all the same."""

    def both():
        deed()
        then()

    return both


def claim(of_seconds=lambda s: s, of_bytes=lambda b: b):
    return lambda: print(result(of_seconds(fetch()), of_bytes(size())))


def claim_a_late_handshake():
    """Fetch the body, but report a handshake that took half of the time."""
    seconds = fetch()
    print(result(seconds, handshake_s=seconds / 2))


def say(text):
    """Return a client that prints `text` as its result, with SECONDS and BYTES replaced by the true values."""
    text = text if isinstance(text, bytes) else text.encode()

    def client():
        seconds = fetch()
        os.write(1, text.replace(b"SECONDS", b"%f" % seconds).replace(b"BYTES", b"%d" % size()))

    return client


def stay(seconds=100_000):
    """Leave a process that does not end by itself, in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(seconds)
        os._exit(0)
    os.wait()


def stay_as_a_dead_leader():
    """Leave a process whose first thread has ended: it is listed as dead, but lives."""
    if os.fork() == 0:
        threading.Thread(target=time.sleep, args=(100_000,)).start()
        LIBC.syscall(60, 0)  # exit(2), of this thread alone


def daemonise_and_serve():
    if os.fork() == 0:
        os.setsid()
        time.sleep(1)
        serve()
    os._exit(0)


def fork_until_refused():
    """Leave as many processes as are allowed. A shell makes them, because its forks are quick."""
    never, _ = os.pipe()
    subprocess.run(["/bin/sh", "-c", f"for i in $(seq 5000); do read x <&{never} & done"], pass_fds=[never])


def bind_and_exit():
    listener = socket.create_server(here())
    time.sleep(0.2)
    listener.close()


def elsewhere_port():
    return here()[1] + 1


def elsewhere():
    return socket.create_server((here()[0], elsewhere_port()))


def never_accept():
    listener = socket.create_server(here())
    time.sleep(100_000)
    listener.close()


def hold_the_port():
    """Leave a process that holds the port, then serve."""
    listener = socket.create_server(here())
    stay()
    serve(listener)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def stop_when_bound():
    listener = socket.create_server(here())
    stop()
    listener.close()


def stop_half_way():
    with connect() as connection:
        read(connection, size() // 2)
        stop()


def flood(stream):
    block = b"x" * (1 << 20)
    with contextlib.suppress(OSError):
        for _ in range(1 << 12):
            os.write(stream, block)


def fill(folder):
    """Write as much as fits into a folder, in one file after the other."""
    block = bytes(1 << 20)
    for number in range(1 << 12):
        try:
            with open(f"{folder}/{MARK}{number}", "wb", buffering=0) as f:
                for _ in range(64):
                    f.write(block)
        except OSError:
            return


def fill_everything():
    for folder in (os.environ["CC_SCRATCH"], "/tmp", "/var/tmp", "/dev/shm"):
        fill(folder)


def nest():
    """Nest folders so deep that their path is longer than a path may be."""
    for _ in range(3000):
        pathlib.Path("d").mkdir()
        os.chdir("d")


def eat_memory():
    eaten, populate = [], 0x8000
    while True:
        eaten.append(mmap.mmap(-1, 1 << 24, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | populate))


def eat_memory_in_a_child():
    """Do what a shell does that starts a stack: end with 128 and the number of the signal that ended it."""
    child = os.fork()
    if child == 0:
        eat_memory()
    sys.exit(128 + os.WTERMSIG(os.waitpid(child, 0)[1]))


def leave_in_the_kernel():
    """Leave shared memory, messages and semaphores, which outlive the process that made them."""
    ipc_creat = 0o1666
    segment = LIBC.shmget(0x1234, 1 << 24, ipc_creat)
    LIBC.shmat.restype = ctypes.c_void_p
    at = LIBC.shmat(segment, None, 0)
    ctypes.memset(at, 1, 1 << 24)
    LIBC.semget(0x1234, 5, ipc_creat)
    queue = LIBC.msgget(0x1234, ipc_creat)
    LIBC.msgsnd(queue, ctypes.create_string_buffer(b"\1" + bytes(1000)), 900, 0)


def link_the_clients_output():
    """Put links to what is measured, and to the kernel's seed, where the client's output might be kept."""
    client = pathlib.Path("../client")
    (client / "stdout").symlink_to("/run/harness/scratch/out.jsonl")
    (client / "stderr").symlink_to("/sys/module/random/parameters/seed")


def crowd(others=3):
    """Fetch over several connections, each of which gets a share of the body."""
    began = time.monotonic()
    share = size() // (others + 1)
    connections = [connect() for _ in range(others + 1)]
    threads = [threading.Thread(target=read, args=(c, share)) for c in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(result(time.monotonic() - began))


def use(algorithm):
    listener = socket.create_server(here())
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm)
    return listener


def switch(connection, size):
    """Send with CUBIC, which was asked for, except for the first half of the body."""
    for name, part in ((b"reno", size // 2), (b"cubic", size - size // 2)):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
        connection.sendall(bytes(part))


def serve_at_a_side_door():
    """Bind the port, but serve the data from another one."""
    listener = socket.create_server(here())
    serve(elsewhere())
    listener.close()


def short_body(connection, size):
    connection.sendall(bytes(size // 10))


def inflate():
    """Fetch a tenth of the bytes but report all of them, as if the body had been compressed."""
    began = time.monotonic()
    with connect() as connection:
        connection.sendall(b"GET /%d HTTP/1.1\r\n\r\n" % size())
        received = 0
        while received < size() // 10:
            received += len(connection.recv(1 << 16))
    print(result(time.monotonic() - began))


def send_beside(connection, size):
    """Send a hundredth of the body over the connection, and the rest by UDP at 9 Mbit/s."""
    connection.sendall(bytes(size // 100))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beside:
        beside.connect((connection.getpeername()[0], elsewhere_port()))
        for left in range(size - size // 100, 0, -1400):
            beside.send(bytes(min(left, 1400)))
            time.sleep(0.00125)


def fetch_beside():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beside:
        beside.bind(("", elsewhere_port()))
        began, received = time.monotonic(), 0
        with connect() as connection:
            connection.sendall(b"GET /%d HTTP/1.1\r\n\r\n" % size())
            while received < size():
                received += len((connection if received < size() // 100 else beside).recv(1 << 16))
    print(result(time.monotonic() - began))


def call_back(connection, size):
    """Send a hundredth of the body over the connection, and the rest with Reno over one to the client."""
    connection.sendall(bytes(size // 100))
    with socket.socket() as back:
        back.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        back.connect((connection.getpeername()[0], elsewhere_port()))
        back.sendall(bytes(size - size // 100))
        back.recv(1)


def fetch_when_called():
    listener = socket.create_server(("", elsewhere_port()))
    began = time.monotonic()
    with connect() as connection:
        connection.sendall(b"GET /%d HTTP/1.1\r\n\r\n" % size())
        back, received = listener.accept()[0], 0
        while received < size():
            received += len((connection if received < size() // 100 else back).recv(1 << 16))
    print(result(time.monotonic() - began))


def end_half_way(status):
    def body(connection, size):
        connection.sendall(bytes(size // 2))
        time.sleep(1)
        os._exit(status)

    return body


def give_up_half_way(status):
    def client():
        with connect() as connection:
            read(connection, size() // 2)
        sys.exit(status)

    return client


def spoil_logs():
    """Put names where logs are kept that are no names for a copy, and as much as fits."""
    for role in ("server", "client"):
        logs = pathlib.Path(os.environ["CC_SCRATCH"], "..", f"trace-{role}").resolve()
        with contextlib.suppress(OSError):
            (logs / "stderr.txt").mkdir(parents=True)
            (logs / "stderr.txt" / "x").touch()
            (logs / "qlog" / "\x1b[2J").touch()
            (logs / "qlog" / "good.qlog").touch()
            os.chdir(logs / "qlog")
            nest()
            os.chdir(os.environ["CC_SCRATCH"])
            fill(logs / "stderr.txt")
    print("these are the server's words", file=sys.stderr, flush=True)


# --- deeds that must be refused


def host_folders():
    """Return the folders of the host that this guest was told of, and folders to which programs like to write."""
    words = pathlib.Path("/proc/cmdline").read_text().split()
    told = [word.partition("=")[2] for word in words if word.startswith("cc_") and "/" in word]
    return [
        *told, "/", "/etc", "/usr", "/run", "/run/work", "/run/scratch", "/run/suite", "/run/adapter", "/var/log",
        "/root", "/home",
    ]  # fmt: skip


def write_outside():
    for folder in (*host_folders(), "/run/harness/scratch"):
        for name in (MARK, "job.json", "out.jsonl"):
            with contextlib.suppress(OSError):
                open(f"{folder}/{name}", "ab").close()
                sys.exit(f"wrote {folder}/{name}")


def read_the_job():
    """Try to read what the network is like, and what was measured before."""
    for folder in (*host_folders(), "/run/harness/scratch"):
        for name in ("job.json", "out.jsonl"):
            with contextlib.suppress(OSError):
                pathlib.Path(folder, name).read_bytes()
                sys.exit(f"read {folder}/{name}")


def attack():
    """Try what the user `nobody` may not do to other processes, to the network and to the kernel."""
    known = {int(p.name) for pid in (os.getpid(), server_pid()) for p in pathlib.Path(f"/proc/{pid}/task").iterdir()}
    listed = {int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*")} - known
    # No process of others is listed, but each has a number.
    others = set(range(1, os.getpid() + 200)) - known

    def namespaces():
        for pid in others:
            with contextlib.suppress(OSError):
                fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
                if LIBC.setns(fd, 0) == 0:
                    return
        raise OSError

    def libc(name, *arguments):
        if getattr(LIBC, name)(*arguments) != 0:
            raise OSError

    def refused():
        raise OSError

    def each(function, *arguments):
        done = 0
        for pid in others:
            with contextlib.suppress(OSError):
                function(pid, *arguments)
                done += 1
        if not done:
            raise OSError

    def command(*words):
        if subprocess.run(words, capture_output=True).returncode != 0:
            raise OSError

    attempts = {
        "killed": lambda: each(os.kill, signal.SIGKILL),
        "stopped": lambda: each(os.kill, signal.SIGSTOP),
        "traced": lambda: each(lambda pid: libc("ptrace", 16, pid, 0, 0)),
        "reniced": lambda: each(lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19)),
        "limited": lambda: each(lambda pid: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1))),
        "saw others": lambda: listed or refused(),
        "read the arguments of": lambda: each(lambda pid: open(f"/proc/{pid}/cmdline", "rb")),
        "read the counters of": lambda: each(lambda pid: open(f"/proc/{pid}/net/dev", "rb")),
        "read memory of": lambda: each(lambda pid: open(f"/proc/{pid}/mem", "rb")),
        "became real-time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
        "became root": lambda: os.setuid(0),
        "is protected from the OOM killer": lambda: pathlib.Path("/proc/self/oom_score_adj").write_text("-1000"),
        "entered another's network": namespaces,
        "set the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, 0),
        "seeded the kernel": lambda: pathlib.Path("/sys/module/random/parameters/seed").write_text("1"),
        "set a sysctl": lambda: pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno"),
        "set a queue": lambda: command("/usr/sbin/tc", "qdisc", "replace", "dev", "client-eth0", "root", "netem"),
        "sniffed": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
        "made a user namespace": lambda: libc("unshare", 0x10000000),
        "mounted": lambda: libc("mount", b"none", b"/mnt", b"tmpfs", 0, None),
        "unmounted": lambda: libc("umount2", b"/tmp", 2),
        "rebooted": lambda: libc("reboot", 0x1234567),
        "wrote to the console": lambda: open("/dev/console", "w"),
        "wrote to the log": lambda: open("/dev/kmsg", "w"),
        "reached the host": lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
    }
    for name, attempt in attempts.items():
        with contextlib.suppress(OSError):
            attempt()
            sys.exit(f"{name}: that was possible")


def stir():
    """Add to the kernel's randomness, which any user may do."""
    with open("/dev/urandom", "wb") as f:
        f.write(b"x" * 1000)


def kill_everybody():
    os.kill(-1, signal.SIGKILL)
    sys.exit("all gone")


def ignore_sigterm():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def spin():
    while True:
        pass
