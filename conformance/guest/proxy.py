"""Hand the connections that cross a router to a splitting proxy on it.

Routing by rule (ip-rule(8)) does what TPROXY does in a firewall. The router accepts packets to the server's port that
come in from the client's side, and packets from that port that come in from the server's side, as if they were
addressed to itself. It forwards all other packets.
"""

from __future__ import annotations

import subprocess

from conformance.guest import netns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.guest.netns import Node

_TABLE = 100
#: the proxy's user id, neither root nor the stack's: the stack cannot signal the proxy, whose only privilege is to use
#: other hosts' addresses
PROXY_USER = 65533


def routing(port: int, client_side: str, server_side: str) -> list[str]:
    """Return the arguments of the ip(8) commands that hand connections over, in order; the sides are interfaces."""
    return [
        f"rule add iif {client_side} ipproto tcp dport {port} lookup {_TABLE}",
        f"rule add iif {server_side} ipproto tcp sport {port} lookup {_TABLE}",
        f"route replace local 0.0.0.0/0 dev lo table {_TABLE}",
    ]


def hand_over(router: Node, port: int, interfaces: Sequence[str]) -> None:
    """Hand connections through `router` to the program that listens on `port` there.

    `interfaces`: the router's on the client's side, and on the server's.

    Raises RuntimeError with ip's error message if the kernel has no routing by rule.
    """
    netns.set_sysctls(router, {"net.ipv4.ip_unprivileged_port_start": str(min(port, 1024))})
    with netns.inside(router):
        done = subprocess.run(
            ["ip", "-batch", "-"], input="\n".join(routing(port, *interfaces)) + "\n", capture_output=True, text=True
        )
    if done.returncode != 0:
        words = " ".join(done.stderr.split())
        raise RuntimeError(f"this kernel lacks policy routing, which proxies need: ip: {words}; build the kernel again")
