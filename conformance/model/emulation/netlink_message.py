"""Build rtnetlink messages about queues and classes; the index of the interface is 0, since only the guest knows it.

Each message asks for an acknowledgement. Layouts: include/uapi/linux/{netlink,rtnetlink}.h.
"""

import struct

#: offset in a message of the interface's index: after struct nlmsghdr and the family of struct tcmsg
INDEX_AT = 16 + 4
NEWQDISC, NEWTCLASS = 36, 40
#: flags of a message that adds what does not exist yet (NLM_F_EXCL, NLM_F_CREATE)
CREATE = 0x200 | 0x400
#: flag of options that are attributes, each with a kind (NLA_F_NESTED); recent qdiscs refuse them without it
NESTED = 0x8000
_REQUEST_ACK = 0x1 | 0x4
_KIND, _OPTIONS = 1, 2


def message(kind: int, handle: int, parent: int, name: str, options: bytes, flags: int = 0, nested: int = 0) -> bytes:
    """Return a message about the qdisc or class of kind `name` at a handle and parent."""
    body = struct.pack("=BxxxiIII", 0, 0, handle, parent, 0)
    body += attribute(_KIND, name.encode() + b"\0") + attribute(_OPTIONS | nested, options)
    return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST_ACK | flags, 0, 0) + body


def attribute(kind: int, data: bytes) -> bytes:
    """Return a netlink attribute, padded to a multiple of four bytes."""
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)
