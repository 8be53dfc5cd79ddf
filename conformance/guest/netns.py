"""Enter network namespaces, read their counters, and set their sysctls and offloads."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct

from conformance.guest.seen import InterfaceCounters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Protocol

    class Node(Protocol):
        """A network namespace: that of the process `pid`."""

        @property
        def pid(self) -> int: ...


_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL = 0x8946
#: {ethtool(8)'s name of an offload that makes or merges super-packets: (get, set) command numbers}
_OFFLOADS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}


#: ethtool's commands and string set for switching a feature by its name (linux/ethtool.h)
_GSSET_INFO, _GSTRINGS, _SFEATURES, _FEATURES = 0x37, 0x1B, 0x3B, 4

_HOME = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def setns(fd: int) -> None:
    """Move this thread into the network namespace behind the descriptor `fd`."""
    if _LIBC.setns(fd, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(node: Node) -> Iterator[None]:
    """Let the calling thread work in `node`'s namespace; sockets and children made in the block stay there."""
    fd = os.open(f"/proc/{node.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        setns(fd)
        yield
    finally:
        setns(_HOME)
        os.close(fd)


def _sysctl_file(name: str) -> str:
    return "/proc/sys/" + name.replace(".", "/")


def set_sysctls(node: Node | None, sysctls: Mapping[str, str]) -> dict[str, str | None]:
    """Set sysctls of a node (or of the initial namespace). Return each as read back, None if this kernel lacks it.

    Raises RuntimeError if the kernel refuses a value.
    """
    texts: dict[str, str | None] = {}
    with contextlib.nullcontext() if node is None else inside(node):
        for name, value in sysctls.items():
            try:
                with open(_sysctl_file(name), "w") as f:
                    f.write(value)
                with open(_sysctl_file(name)) as f:
                    texts[name] = " ".join(f.read().split())
            except FileNotFoundError:
                texts[name] = None
            except OSError as error:
                raise RuntimeError(f"this kernel refuses {value!r} for {name}: {error.strerror}") from None
    return texts


def set_offload(node: Node, interface: str, on: bool) -> dict[str, bool]:
    """Switch segmentation and receive offload on or off. Return what the interface then reports, by feature."""
    switches = {}
    with inside(node), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for name, (get, put) in _OFFLOADS.items():
            # GRO on a veth needs NAPI, which changes how the pair delivers: leave it to the kernel's
            # default (off) unless offload as a whole is switched off.
            if not (name == "gro" and on):
                _ethtool(s, interface, put, int(on))
            switches[name] = bool(_ethtool(s, interface, get, 0))
        if not on:
            # "gso" does not include UDP's offload: QUIC stacks would go on sending super-packets.
            _switch_off(s, interface, "tx-udp-segmentation")
    return switches


def _switch_off(s: socket.socket, interface: str, feature: str) -> None:
    """Switch off one of the features that ethtool(8) lists with -k, unless this kernel lacks it."""
    count = struct.unpack_from("I", _ioctl(s, interface, struct.pack("IIQI", _GSSET_INFO, 0, 1 << _FEATURES, 0)), 16)[0]
    strings = _ioctl(s, interface, struct.pack("III", _GSTRINGS, _FEATURES, count).ljust(12 + 32 * count, b"\0"))
    names = [strings[12 + 32 * i : 44 + 32 * i].rstrip(b"\0").decode() for i in range(count)]
    if feature in names:
        block, bit = divmod(names.index(feature), 32)
        blocks = b"".join(struct.pack("II", (i == block) << bit, 0) for i in range(-(-count // 32)))
        _ioctl(s, interface, struct.pack("II", _SFEATURES, len(blocks) // 8) + blocks)


def _ethtool(s: socket.socket, interface: str, command: int, value: int) -> int:
    answer: int = struct.unpack("II", _ioctl(s, interface, struct.pack("II", command, value)))[1]
    return answer


def _ioctl(s: socket.socket, interface: str, data: bytes) -> bytes:
    """Make ethtool's ioctl with a struct that begins with the command. Return the struct as the kernel left it."""
    buffer = ctypes.create_string_buffer(data, len(data))
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(buffer)).ljust(40, b"\0")
    fcntl.ioctl(s, _SIOCETHTOOL, request)
    return buffer.raw


def interface_counters(node: Node) -> dict[str, InterfaceCounters]:
    """Return the counters of all interfaces of a node except lo, by name."""
    counters = {}
    with open(f"/proc/{node.pid}/net/dev") as f:
        for line in f.readlines()[2:]:
            name, values = line.split(":")
            v = [int(x) for x in values.split()]
            counters[name.strip()] = InterfaceCounters(
                rx_bytes=v[0], rx_packets=v[1], rx_dropped=v[3], tx_bytes=v[8], tx_packets=v[9], tx_dropped=v[11]
            )
    counters.pop("lo", None)
    return counters


def snmp_counters(node: Node, wanted: Sequence[str]) -> dict[str, int]:
    """Return selected counters of /proc/net/snmp and netstat, e.g. "Tcp.RetransSegs", "TcpExt.TCPTimeouts"."""
    counters = {}
    for file in ("snmp", "netstat"):
        with open(f"/proc/{node.pid}/net/{file}") as f:
            lines = f.read().splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            group, _, rest = names.partition(":")
            for name, value in zip(rest.split(), values.partition(":")[2].split(), strict=True):
                if f"{group}.{name}" in wanted:
                    counters[f"{group}.{name}"] = int(value)
    return counters


def has_connections(node: Node) -> bool:
    """Return whether a node has a TCP connection that is open or closing. Those in TIME_WAIT do not count."""
    dormant = ("06", "0A")  # TIME_WAIT, LISTEN
    for file in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{node.pid}/net/{file}") as f:
            if any(row.split()[3] not in dormant for row in f.read().splitlines()[1:]):
                return True
    return False


def port_is_bound(node: Node, port: int, kind: str) -> bool:
    """Return whether a socket in `node` listens on (tcp) or is bound to (udp) this port, IPv4 or IPv6."""
    wanted_state = "0A" if kind == "tcp" else "07"
    for file in (kind, kind + "6"):
        try:
            with open(f"/proc/{node.pid}/net/{file}") as f:
                rows = f.read().splitlines()[1:]
        except FileNotFoundError:
            continue
        for row in rows:
            _, local, _, state = row.split()[:4]
            if state == wanted_state and int(local.rsplit(":", 1)[1], 16) == port:
                return True
    return False
