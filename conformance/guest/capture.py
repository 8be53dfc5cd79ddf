"""Capture the frames that pass an interface in memory, and write them as pcap when the trial is over.

The kernel puts frames into a ring that is mapped into this process (PACKET_RX_RING, TPACKET_V3), so that a capture
makes no system call while a trial runs: a trial with a capture gives the same bytes as one without.
"""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
import time

from conformance.guest.netns import inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.guest.netns import Node

_ETH_P_ALL = 0x0003
_SOL_PACKET, _PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION, _TPACKET_V3 = 263, 5, 6, 10, 2
_SO_ATTACH_FILTER, _BPF_RETURN = 26, 6
_BLOCK_BYTES, _FRAME_BYTES = 1 << 20, 1 << 17
#: Bytes of a frame that tell it from others (model/diagnosis/pcap.py), and bytes of a block for such heads: a packet of
#: 1200 bytes and an acknowledgement then take 384 bytes of it, a quarter of what the whole frames take.
HEAD_BYTES, HEADS_BLOCK_BYTES = 110, 1 << 18
#: ms after which the kernel hands over a block that is not full; long, since the rest of the block is then wasted
_RETIRE_MS = 60_000
#: factor on the size of the body, for headers and acknowledgements
_SPARE = 1.3
_SPARE_BLOCKS = 24
#: struct tpacket_hdr_v1 in struct tpacket_block_desc: num_pkts, offset_to_first_pkt
_BLOCK = struct.Struct("=II")
_BLOCK_AT = 12
#: struct tpacket3_hdr: tp_next_offset, tp_sec, tp_nsec, tp_snaplen, tp_len, tp_status, tp_mac
_PACKET = struct.Struct("=IIIIIIH")
#: pcap with nanoseconds, version 2.4, no snap length, Ethernet
_PCAP_HEADER = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)


class Capture:
    """A capture of one interface of a node, in both directions, with room for a transfer of `transfer_bytes`.

    Times are written as seconds since `epoch_ns`, which may be set until then, because guests' clocks are past 2038,
    which not every pcap reader can handle. The first `most_bytes` of each frame are kept, or all of it; `block_bytes`
    is the room for 1 MiB of frames.
    """

    def __init__(
        self, node: Node, interface: str, transfer_bytes: int, epoch_ns: int = 0, most_bytes: int | None = None,
        block_bytes: int = _BLOCK_BYTES,
    ) -> None:  # fmt: skip
        blocks = int(transfer_bytes * _SPARE / _BLOCK_BYTES) + _SPARE_BLOCKS
        size = blocks * block_bytes
        with inside(node):
            # The socket has no protocol yet, so that nothing comes in before there is a ring.
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V3)
        request = struct.pack("=7I", block_bytes, blocks, _FRAME_BYTES, size // _FRAME_BYTES, _RETIRE_MS, 0, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        if most_bytes is not None:
            # A filter of one instruction (struct sock_filter): it passes the first `most_bytes` of every frame.
            keep = ctypes.create_string_buffer(struct.pack("=HBBI", _BPF_RETURN, 0, 0, most_bytes))
            program = struct.pack("=H6xQ", 1, ctypes.addressof(keep))
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
        self._ring = mmap.mmap(self._socket.fileno(), size, mmap.MAP_SHARED, mmap.PROT_READ)
        # A rival's process is forked, and a fork that inherits such a ring kills the guest (User-Mode Linux).
        self._ring.madvise(mmap.MADV_DONTFORK)
        self._blocks, self._block_bytes, self.epoch_ns = blocks, block_bytes, epoch_ns
        self._socket.bind((interface, _ETH_P_ALL))

    def frames(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Wait until the kernel has handed over all frames; yield (seconds, nanoseconds, length, bytes) of each."""
        time.sleep(2 * _RETIRE_MS / 1000)
        for block in range(self._blocks):
            start = block * self._block_bytes
            frames, at = _BLOCK.unpack_from(self._ring, start + _BLOCK_AT)
            at += start
            for _ in range(frames):
                step, seconds, nanoseconds, kept, length, _, offset = _PACKET.unpack_from(self._ring, at)
                yield seconds, nanoseconds, length, self._ring[at + offset : at + offset + kept]
                at += step

    def unseen(self) -> int:
        """Return how many frames did not fit since the last call."""
        lost: int = struct.unpack("=III", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 12))[1]
        return lost

    def close(self) -> None:
        """End the capture."""
        self._ring.close()
        self._socket.close()

    def write(self, path: str) -> tuple[int, int]:
        """Write what was captured to `path`, and end the capture. Return (frames written, frames lost)."""
        written = 0
        with open(path, "wb") as f:
            f.write(_PCAP_HEADER)
            for seconds, nanoseconds, length, frame in self.frames():
                since_ns = max(seconds * 1_000_000_000 + nanoseconds - self.epoch_ns, 0)
                f.write(struct.pack("=IIII", *divmod(since_ns, 1_000_000_000), len(frame), length))
                f.write(frame)
                written += 1
        lost = self.unseen()
        self.close()
        return written, lost
