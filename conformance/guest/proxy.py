"""The router's part: hand the connections that pass to a splitting proxy on it, and run that.

Routing by rule does what TPROXY does in a firewall: packets to the server's port that come in from the client's side,
and those from that port that come in from the server's, are taken for the router's own, whatever their address is. All
others it forwards.
"""

import contextlib
import os
import subprocess

from conformance.guest import netns
from conformance.guest.process import Process

_TABLE = 100
#: neither root nor the stack's user: the stack cannot signal it, and it may do nothing but use others' addresses
_PROXY_USER = 65533


def routing(port, client_side, server_side):
    """Arguments of the ip(8) commands that hand over, in order; the last two are interfaces."""
    return [
        f"rule add iif {client_side} ipproto tcp dport {port} lookup {_TABLE}",
        f"rule add iif {server_side} ipproto tcp sport {port} lookup {_TABLE}",
        f"route add local 0.0.0.0/0 dev lo table {_TABLE}",
    ]


def hand_over(router, port, interfaces):
    """Hand connections through `router` to whoever listens on `port` there; `interfaces`: client's side, server's.

    Raises RuntimeError with ip's words, where the kernel has no routing by rule.
    """
    netns.set_sysctls(router, {"net.ipv4.ip_unprivileged_port_start": min(port, 1024)})
    with netns.inside(router):
        done = subprocess.run(
            ["ip", "-batch", "-"], input="\n".join(routing(port, *interfaces)) + "\n", capture_output=True, text=True
        )
    if done.returncode != 0:
        words = " ".join(done.stderr.split())
        raise RuntimeError(f"this kernel cannot route by rule, as a proxy needs: ip: {words}; build the kernel again")


class Proxy:
    """The proxy of one trial, started on the router. `end()` it."""

    def __init__(self, router, job):
        directory = os.path.join(job["work_dir"], "proxy")
        os.makedirs(directory, mode=0o700, exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if name in ("PATH", "LC_ALL")}
        command = [os.path.join(job["scratch"], job["proxy"]["program"]), *job["proxy"]["options"]]
        if job["proxy"]["ours"]:
            command += ["-u", str(_PROXY_USER)]
        self._process = Process(router, command, environment, directory, contextlib.nullcontext())
        self.pidfd = self._process.pidfd

    @property
    def exit_status(self):
        return self._process.exit_status

    def facts(self):
        return {
            "exit_status": self._process.exit_status,
            "ran_out_of_memory": self._process.ran_out_of_memory,
            **self._process.output(),
        }

    def end(self):
        self._process.end()
