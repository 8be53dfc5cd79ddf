"""Set up a client, a router with a proxy, and a server in network namespaces: `dev proxy check`, tests, benchmarks.

Everything runs inside `unshare --user --map-root-user --net`, so that it does not need root; the namespace that it
starts in is the router's.
"""

import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import time
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from conformance.guest import netns, proxy

UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]
CLIENT, SERVER, PORT = "10.0.0.1", "10.0.1.3", 4433
#: the router's interfaces: one for each section
TO_CLIENT, TO_SERVER = "to_client", "to_server"
_HERE = pathlib.Path("/proc/self/ns/net")


def allowed() -> str | None:
    """Return why network namespaces are not available here; None if they are."""
    check = "ip link add name ve0 type veth peer name ve1 && ip rule add iif ve0 ipproto tcp dport 1 lookup 100"
    try:
        done = subprocess.run([*UNSHARE, "sh", "-c", check], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else f"no network namespaces here: {done.stderr.strip()}"


class ProxyNetwork:
    """The network. `client` and `server` are what netns.inside() takes; this namespace is the router.

    `splitter`: the proxy's command, empty for no proxy. `hand_over`: whether connections are handed to the proxy.
    """

    client: Any
    server: Any
    proxy: subprocess.Popen[str]

    def __init__(self, splitter: Sequence[Any], options: Sequence[str] = (), hand_over: bool = True) -> None:
        self._splitter, self._options, self._hand_over = splitter, options, hand_over

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.client, self.server = (stack.enter_context(_namespace()) for _ in range(2))
            for node, near, far, router, address in (
                (self.client, TO_CLIENT, "client0", "10.0.0.2", CLIENT),
                (self.server, TO_SERVER, "server0", "10.0.1.2", SERVER),
            ):
                _ip(f"link add name {near} type veth peer name {far} netns {node.pid}")
                _ip(f"address add {router}/24 dev {near}", f"link set {near} up")
                with netns.inside(node):
                    _ip(f"address add {address}/24 dev {far}", f"link set {far} up", "link set lo up")
                    _ip(f"route add default via {router}")
            _ip("link set lo up")
            pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            if self._hand_over:
                _ip(*proxy.routing(PORT, TO_CLIENT, TO_SERVER))
            if self._splitter:
                self.start()
                stack.callback(self._end)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self) -> None:
        """Start the proxy, and wait until it listens."""
        self.proxy = subprocess.Popen(
            [*self._splitter, "-p", str(PORT), *self._options], stdout=subprocess.PIPE, text=True
        )
        wait(lambda: self.proxy.poll() is not None or netns.port_is_bound(self.proxy, PORT, "tcp"))
        if self.proxy.poll() is not None:
            raise RuntimeError(f"the proxy ended with status {self.proxy.returncode} before it was ready")

    def stop(self) -> tuple[Any, int]:
        """End the proxy by SIGTERM; return its own report of what it did, and its exit status."""
        self.proxy.send_signal(signal.SIGTERM)
        said, _ = self.proxy.communicate(timeout=20)
        return json.loads(said), self.proxy.returncode

    def kill(self) -> None:
        """End the proxy at once, by SIGKILL."""
        self.proxy.kill()
        self.proxy.wait()

    def _end(self) -> None:
        if self.proxy.poll() is None:
            self.proxy.kill()
        self.proxy.wait()
        if self.proxy.stdout:
            self.proxy.stdout.close()

    @contextlib.contextmanager
    def down(self, section: str) -> Iterator[None]:
        """Lose all packets of a section, both ways, for the block: TO_CLIENT or TO_SERVER."""
        node, far = (self.client, "client0") if section == TO_CLIENT else (self.server, "server0")

        def both(*arguments: str) -> None:
            subprocess.run(["tc", "qdisc", arguments[0], "dev", section, "root", *arguments[1:]], check=True)
            with netns.inside(node):
                subprocess.run(["tc", "qdisc", arguments[0], "dev", far, "root", *arguments[1:]], check=True)

        both("replace", "blackhole")
        try:
            yield
        finally:
            both("del")

    def listener(self, **options: Any) -> socket.socket:
        """Return a socket that listens at the server."""
        with netns.inside(self.server):
            return socket.create_server((SERVER, PORT), backlog=4096, **options)

    def connect(self, timeout: float = 20) -> socket.socket:
        """Return the client's socket of a new connection."""
        with netns.inside(self.client):
            return socket.create_connection((SERVER, PORT), timeout)

    def pair(self, listener: socket.socket) -> tuple[socket.socket, socket.socket]:
        """Return the client's socket and the server's of one new connection."""
        near = self.connect()
        far, _ = listener.accept()
        far.settimeout(20)
        return near, far


def wait(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait until a condition is true, or the time is over; return its last value."""
    deadline = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return holds


@contextlib.contextmanager
def _namespace() -> Iterator[Any]:
    process = subprocess.Popen(["unshare", "--net", "sleep", "1000"])
    try:
        there = pathlib.Path(f"/proc/{process.pid}/ns/net")
        wait(lambda: there.readlink() != _HERE.readlink())
        yield types.SimpleNamespace(pid=process.pid)
    finally:
        process.kill()
        process.wait()


def _ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)
