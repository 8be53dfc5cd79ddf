"""Client, router with a proxy, and server in network namespaces of this machine, for tests and benchmarks.

Runs inside `unshare --user --map-root-user --net`, so that nobody needs to be root; the namespace it starts in is the
router's.
"""

import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from conformance.guest import netns, proxy

UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]
CLIENT, SERVER, PORT = "10.0.0.1", "10.0.1.3", 4433
_HERE = pathlib.Path("/proc/self/ns/net")


def allowed():
    """Why namespaces cannot be had here, or None."""
    check = "ip link add name ve0 type veth peer name ve1 && ip rule add iif ve0 ipproto tcp dport 1 lookup 100"
    try:
        done = subprocess.run([*UNSHARE, "sh", "-c", check], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else f"no network namespaces here: {done.stderr.strip()}"


class Network:
    """`client` and `server` are what netns.inside() takes; this namespace is the router."""

    def __init__(self, splitter, options=(), hand_over=True):
        self._splitter, self._options, self._hand_over = splitter, options, hand_over
        self.proxy = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.client, self.server = (stack.enter_context(_namespace()) for _ in range(2))
            for node, near, far, router, address in (
                (self.client, "to_client", "client0", "10.0.0.2", CLIENT),
                (self.server, "to_server", "server0", "10.0.1.2", SERVER),
            ):
                _ip(f"link add name {near} type veth peer name {far} netns {node.pid}")
                _ip(f"address add {router}/24 dev {near}", f"link set {near} up")
                with netns.inside(node):
                    _ip(f"address add {address}/24 dev {far}", f"link set {far} up", "link set lo up")
                    _ip(f"route add default via {router}")
            _ip("link set lo up")
            pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            if self._hand_over:
                _ip(*proxy.routing(PORT, "to_client", "to_server"))
            if self._splitter:
                self.start()
                stack.callback(self._end)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def start(self):
        self.proxy = subprocess.Popen(
            [*self._splitter, "-p", str(PORT), *self._options], stdout=subprocess.PIPE, text=True
        )
        wait(lambda: self.proxy.poll() is not None or netns.port_is_bound(self.proxy, PORT, "tcp"))
        assert self.proxy.poll() is None, self.proxy.returncode

    def stop(self):
        """End the proxy by SIGTERM; its own account of what it did, and its exit status."""
        self.proxy.send_signal(signal.SIGTERM)
        said, _ = self.proxy.communicate(timeout=20)
        return json.loads(said), self.proxy.returncode

    def _end(self):
        if self.proxy.poll() is None:
            self.proxy.kill()
        self.proxy.wait()
        self.proxy.stdout.close()

    def listener(self, **options):
        with netns.inside(self.server):
            return socket.create_server((SERVER, PORT), backlog=4096, **options)

    def connect(self, timeout=20):
        with netns.inside(self.client):
            return socket.create_connection((SERVER, PORT), timeout)

    def pair(self, listener):
        """(client's socket, server's socket) of one connection."""
        near = self.connect()
        far, _ = listener.accept()
        far.settimeout(20)
        return near, far


def wait(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found


@contextlib.contextmanager
def _namespace():
    process = subprocess.Popen(["unshare", "--net", "sleep", "1000"])
    try:
        there = pathlib.Path(f"/proc/{process.pid}/ns/net")
        assert wait(lambda: there.readlink() != _HERE.readlink())
        yield types.SimpleNamespace(pid=process.pid)
    finally:
        process.kill()
        process.wait()


def _ip(*lines):
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)
