"""A good adapter: it serves HTTPS with Python's ssl over the kernel's TCP."""

import contextlib
import os
import pathlib
import socket
import ssl
import sys
import threading
import time


def size():
    return int(os.environ["CC_BYTES"])


def here():
    return os.environ["CC_ADDRESS"], int(os.environ["CC_PORT"])


def zeros(connection, size):
    connection.sendall(bytes(size))


def serve(listener=None, tls=True, body=zeros):
    listener = listener or socket.create_server(here())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["CC_CERT"], os.environ["CC_KEY"])

    def answer(connection):
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(connection, server_side=True) if tls else connection as c,
        ):
            body(c, int(c.recv(4096).split()[1][1:]))

    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],)).start()


def connect(tls=True, port=None):
    plain = socket.create_connection((here()[0], port or here()[1]))
    if not tls:
        return plain
    context = ssl.create_default_context(cafile=os.environ["CC_CA"])
    return context.wrap_socket(plain, server_hostname=os.environ["CC_HOSTNAME"])


def read(connection, wanted):
    connection.sendall(b"GET /%d HTTP/1.1\r\n\r\n" % wanted)
    received = 0
    while received < wanted and (data := connection.recv(1 << 16)):
        received += len(data)
    if received < wanted:
        sys.exit(f"the connection ended after {received} bytes")


def fetch(**how):
    """Fetch the body; return how many seconds that took."""
    began = time.monotonic()
    with connect(**how) as connection:
        read(connection, size())
    return time.monotonic() - began


def result(seconds, received=None, handshake_s="null"):
    return f'{{"bytes": {received or size()}, "completion_s": {seconds:f}, "handshake_s": {handshake_s}}}'


def good():
    print(result(fetch()))


def witness():
    """Be a good client, but look first for what an earlier trial may have left in the guest."""
    left = [f"process {pid}" for pid in processes() if pid not in (os.getpid(), server_pid())]
    for top in ("/tmp", "/var/tmp", "/dev/shm", os.environ["CC_SCRATCH"]):
        for folder, folders, files in os.walk(top):
            left += [f"{folder}/{name}" for name in folders + files]
    for kind in ("shm", "sem", "msg"):
        left += pathlib.Path("/proc/sysvipc", kind).read_text().splitlines()[1:]
    memory = dict(line.split()[:2] for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    if int(memory["MemAvailable:"]) < 350_000:
        left.append(f"only {memory['MemAvailable:']} kB of memory")
    if left:
        sys.exit(f"found {', '.join(left)}"[:250])
    # How long it took to look depends on how many threads the kernel has just now.
    time.sleep((-time.monotonic_ns() % 128_000_000) / 1e9)
    good()


def processes():
    """Yield the ids of this user's processes, including zombies."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
            if lines["Uid"].split()[0] == str(os.getuid()):
                yield int(folder.name)


def server_pid():
    """Return the id of the server's process, which is this user's first."""
    return min(processes())
