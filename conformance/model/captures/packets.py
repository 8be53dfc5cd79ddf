"""Keep the packets of a trial in its measurement: what one flow's server sent, and which of it reached the client.

A result line holds them as one text (zlib, base64), some six bytes a packet. So all that is to be known of packets is a
pure function of a measurement, and a new question needs no new trial.
"""

import base64
import binascii
import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any, Self

import numpy
import numpy.typing

from conformance.model.diagnosis.pcap import Frames, texts
from conformance.model.errors import UserError

Integers = numpy.typing.NDArray[numpy.int64]
#: `out_ns` of a packet that never reached the client
LOST = -1
#: offsets in IPv4's header: the byte with ECN's two bits, and the checksum, which depends on them
_TOS, _CHECKSUM = 1, slice(10, 12)
#: the most frames that may come out without having been sent: more mean that the captures are not of one transfer
_MOST_STRANGE = 10
#: ECN's codepoints (RFC 3168, section 5)
NOT_ECT, ECT_1, ECT_0, CE = 0, 1, 2, 3
_COLUMNS = ("sent_ns", "bytes", "out_ns", "ecn_sent", "ecn_out")
_OTHERS = ("client_ns", "client_bytes")
#: the most packets of one trial that are read
_MOST = 4_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Packets:
    """The server's packets in the order sent, and the client's as they reached the server, in arrays of equal length.

    Times are in nanoseconds since the first packet that was sent. `out_ns`: when a packet reached the client, or LOST.
    `ecn_sent`, `ecn_out`: the codepoints with which it left and arrived. Sizes are of frames. `began_ns`: when the
    first packet was sent, since the capture's own zero, which is the start of the trial for flows that share a network.
    `cut`: whether there were more packets, for which the guest had no room.
    """

    began_ns: int
    sent_ns: Integers
    bytes: Integers
    out_ns: Integers
    ecn_sent: Integers
    ecn_out: Integers
    client_ns: Integers
    client_bytes: Integers
    cut: bool = False

    def __len__(self) -> int:
        return len(self.sent_ns)

    def to_json(self) -> dict[str, Any]:
        """Return the form that a result line keeps."""
        columns = [
            numpy.diff(self.sent_ns, prepend=0), self.bytes,
            numpy.where(self.out_ns == LOST, LOST, self.out_ns - self.sent_ns), self.ecn_sent, self.ecn_out,
            numpy.diff(self.client_ns, prepend=0), self.client_bytes,
        ]  # fmt: skip
        # Equal bytes side by side compress well, so each byte of a number has a row of its own.
        rows = [column.astype("<i8").view(numpy.uint8).reshape(-1, 8).T.tobytes() for column in columns]
        packed = zlib.compress(b"".join(rows), 9)
        return {
            "began_ns": self.began_ns, "sent": len(self.sent_ns), "asked": len(self.client_ns),
            "columns": base64.b64encode(packed).decode(), **({"cut": True} if self.cut else {}),
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the packets of a result line. Raises UserError if they cannot be read."""
        sent, answers = data["sent"], data["asked"]
        if sent + answers > _MOST:
            raise UserError(f"a result line has {sent + answers} packets", f"at most {_MOST} are read")
        size = 8 * (len(_COLUMNS) * sent + len(_OTHERS) * answers)
        try:
            raw = zlib.decompressobj().decompress(base64.b64decode(data["columns"], validate=True), size + 1)
        except (zlib.error, binascii.Error) as error:
            raise UserError(f"the packets of a result line cannot be read: {error}", "measure it again") from None
        if len(raw) != size:
            raise UserError("the packets of a result line are cut short", "measure it again")
        columns, at = [], 0
        for count in (*[sent] * len(_COLUMNS), *[answers] * len(_OTHERS)):
            rows = numpy.frombuffer(raw, numpy.uint8, 8 * count, at).reshape(8, count)
            columns.append(numpy.ascontiguousarray(rows.T).view("<i8").reshape(count).astype(numpy.int64))
            at += 8 * count
        sent_ns, sizes, travel_ns, ecn_sent, ecn_out, client_ns, client_bytes = columns
        sent_ns = numpy.cumsum(sent_ns)
        return cls(
            began_ns=data["began_ns"], sent_ns=sent_ns, bytes=sizes, ecn_sent=ecn_sent, ecn_out=ecn_out,
            out_ns=numpy.where(travel_ns == LOST, LOST, sent_ns + travel_ns),
            client_ns=numpy.cumsum(client_ns), client_bytes=client_bytes, cut=data.get("cut", False),
        )  # fmt: skip

    def whose_fate_is_known(self) -> Self:
        """Return, of captures that were cut, the packets up to the last one that is known to have arrived.

        A packet that was sent after it may have arrived when there was no room any more. Raises UserError if none did.
        """
        arrived = numpy.flatnonzero(self.out_ns != LOST)
        if not len(arrived):
            raise UserError("no packet arrived before the guest's memory for captures was full")
        last = int(arrived[-1])
        sent = {name: getattr(self, name)[: last + 1] for name in _COLUMNS}
        before = self.client_ns <= self.sent_ns[last]
        answers = {name: getattr(self, name)[before] for name in _OTHERS}
        return dataclasses.replace(self, cut=True, **sent, **answers)


def matched(sent: Frames, came: Frames, answers: Frames) -> Packets:
    """Return the packets of one flow from two captures, as pcap.frames() reads them.

    `sent`, `answers`: the server's and the client's packets, where the server's enter the network; `came`: the server's
    packets where they leave it. A packet is recognised without its ECN bits, as a mark changes these. Raises UserError
    if the captures are not of one transfer.
    """
    if not len(sent):
        raise UserError("the server sent nothing")
    #: {identity: the packets that have it, the last one first}
    where: dict[bytes, list[int]] = {}
    for at, identity in reversed(list(enumerate(_identities(sent)))):
        where.setdefault(identity, []).append(at)
    pairs = []
    strange = 0
    for arrival, identity in enumerate(_identities(came)):
        if places := where.get(identity):
            pairs.append((places.pop(), arrival))
        else:
            strange += places is None  # else the network duplicated it
    if strange > _MOST_STRANGE:
        raise UserError(f"{strange} of {len(came)} packets that arrived were never sent")
    out_ns = numpy.full(len(sent), LOST, dtype=numpy.int64)
    ecn_out = numpy.zeros(len(sent), dtype=numpy.int64)
    sent_ns = _ns(sent)
    began_ns = int(sent_ns[0])
    departures, arrivals = numpy.array(pairs, dtype=numpy.int64).reshape(-1, 2).T
    out_ns[departures], ecn_out[departures] = _ns(came)[arrivals] - began_ns, _ecn(came)[arrivals]
    return Packets(
        began_ns=began_ns, bytes=sent.bytes, out_ns=out_ns, ecn_out=ecn_out, sent_ns=sent_ns - began_ns,
        ecn_sent=_ecn(sent), client_ns=_ns(answers) - began_ns, client_bytes=answers.bytes,
    )  # fmt: skip


def _ns(frames: Frames) -> Integers:
    return numpy.rint(frames.seconds * 1e9).astype(numpy.int64)


def _ecn(frames: Frames) -> Integers:
    return (frames.identities[:, _TOS] & 3).astype(numpy.int64)


def _identities(frames: Frames) -> list[bytes]:
    masked = frames.identities.copy()
    masked[:, _TOS] &= 0xFC
    masked[:, _CHECKSUM] = 0
    return texts(masked, frames.identity_bytes)
