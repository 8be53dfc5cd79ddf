"""Measure the throughput of the splitting proxy and its alternatives on this machine. It prints and asserts nothing.

    python tests/bench/proxy.py [SECONDS]

Client, router and server are network namespaces joined by veth pairs (conformance/lab/proxy_network.py), so only the
processors, which all three share, are a limit; the receiver's kernel discards the payload. The rows are: the kernel,
which forwards and splits nothing; the suite's splitter; the same in asyncio; and socat, if it is installed, as a plain
forwarder that is not transparent.
"""

import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from conformance.guest import netns
from conformance.lab import proxy_network
from conformance.lab.proxy_network import PORT, SERVER, ProxyNetwork, wait

_PAYLOAD = memoryview(bytes(1 << 20))
_TICKS = os.sysconf("SC_CLK_TCK")
_ROUTER = "10.0.0.2"


def main(seconds):
    from conformance.lab import proxy
    from conformance.model.networks.proxy import Proxy

    splitter = [str(proxy.program(Proxy()))]
    asyncio_proxy = [sys.executable, str(pathlib.Path(__file__).with_name("asyncio_proxy.py"))]
    rows = [("kernel forwarding", None, SERVER), ("splitter", splitter, SERVER), ("asyncio", asyncio_proxy, SERVER)]
    if shutil.which("socat"):
        rows.append(("socat", ["socat"], _ROUTER))
    print(f"{'':20}{'connections':>12}{'Gbit/s':>9}{'proxy s/GB':>12}{'connects/s':>12}{'proxy MB':>10}")
    for name, command, address in rows:
        for connections in (1, 10, 1000):
            print(f"{name:20}{connections:12}{in_namespaces(command, address, connections, seconds)}", flush=True)


def in_namespaces(command, address, connections, seconds):
    """Return a line of figures, measured in namespaces of its own."""
    done = subprocess.run(
        [*proxy_network.UNSHARE, sys.executable, __file__, "--one", str(connections), str(seconds), address,
         *(command or [])],
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip("\n") if done.returncode == 0 else f"  failed: {done.stderr.strip().splitlines()[-1:]}"


def one(connections, seconds, address, command):
    socat = bool(command) and command[0] == "socat"
    with ProxyNetwork(None if socat else command, hand_over=bool(command) and not socat) as network:
        if socat:
            network.proxy = subprocess.Popen(
                ["socat", "-b", "262144", f"TCP-LISTEN:{PORT},fork,reuseaddr,backlog=4096", f"TCP:{SERVER}:{PORT}"]
            )
            wait(lambda: netns.port_is_bound(network.proxy, PORT, "tcp"))
        listener = network.listener()
        sender = os.fork()
        if sender == 0:
            send(listener, connections, seconds)
            os._exit(0)
        listener.close()
        began = time.monotonic()
        ends = []
        for _ in range(connections):
            with netns.inside(network.client):
                ends.append(socket.create_connection((address, PORT), 60))
        connected_s = time.monotonic() - began
        total, took_s = receive(ends)
        spent_s, resident_mb = cost(network.proxy) if network.proxy and not socat else (None, None)
        if socat:
            network.proxy.kill()
        os.waitpid(sender, 0)
    print(
        f"{8 * total / took_s / 1e9:9.2f}"
        f"{'' if spent_s is None else f'{spent_s / (total / 1e9):.2f}':>12}{connections / connected_s:12.0f}"
        f"{'' if resident_mb is None else f'{resident_mb:.1f}':>10}"
    )


def send(listener, connections, seconds):
    """Accept `connections` connections, then send on all of them as fast as they take data, for `seconds`."""
    poll, ends = select.epoll(), {}
    for _ in range(connections):
        end, _ = listener.accept()
        end.setblocking(False)
        ends[end.fileno()] = end
        poll.register(end, select.EPOLLOUT)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for fd, _ in poll.poll(0.1):
            try:
                ends[fd].send(_PAYLOAD)
            except BlockingIOError:
                continue
    for end in ends.values():
        end.close()


def receive(ends):
    """Receive until all connections have ended; return (bytes, seconds from the first data to the last)."""
    poll, by_fd, total, buffer = select.epoll(), {}, 0, bytearray(1 << 20)
    for end in ends:
        end.setblocking(False)
        by_fd[end.fileno()] = end
        poll.register(end, select.EPOLLIN)
    began = last = None
    while by_fd:
        for fd, _ in poll.poll():
            got = by_fd[fd].recv_into(buffer, 0, socket.MSG_TRUNC)
            last = time.monotonic()
            began = began or last
            total += got
            if got == 0:
                poll.unregister(fd)
                by_fd.pop(fd).close()
    return total, last - began


def cost(process):
    """Return (processor seconds, peak of resident MB) of the proxy so far."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5:])
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 3)
