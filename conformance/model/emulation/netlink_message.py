"""Messages of rtnetlink about queues and classes, with the index of their interface, which only the guest knows, 0.

Each asks for an acknowledgement. Layouts: include/uapi/linux/{netlink,rtnetlink}.h.
"""

import struct

#: of a message, where its interface's index is: behind struct nlmsghdr and the family of struct tcmsg
INDEX_AT = 16 + 4
NEWQDISC, NEWTCLASS = 36, 40
#: of a message that adds what is not there yet
CREATE = 0x200 | 0x400
#: of options: attributes, each with a kind; disciplines that came late refuse them without it
NESTED = 0x8000
_REQUEST_ACK = 0x1 | 0x4
_KIND, _OPTIONS = 1, 2


def message(kind: int, handle: int, parent: int, name: str, options: bytes, flags: int = 0, nested: int = 0) -> bytes:
    """Return a message about the discipline `name` at a place."""
    body = struct.pack("=BxxxiIII", 0, 0, handle, parent, 0)
    body += attribute(_KIND, name.encode() + b"\0") + attribute(_OPTIONS | nested, options)
    return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST_ACK | flags, 0, 0) + body


def attribute(kind: int, data: bytes) -> bytes:
    """Return an attribute, padded."""
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)
