"""An HTTP/3 server on aioquic for tests of the common client. It allows 0-RTT, which no adapter's server does.

Called as: quic_server.py BUILD [WORD]: the folder in which adapter aioquic is built, and what it does beyond answering
`GET /N` with N bytes:
  forbid   announces that clients must not migrate
  keep     gives no connection ID to migrate with
  refuse   forgets tickets, so early data are refused
  reset    resets each stream once half of the body is sent
  mute     does not answer what probes another path
  token    gives a token, and prints what the first packet of each connection returns
  close    closes the connection instead of answering, with a reason of control characters
  broken   does so with a code of the transport
  alert    does so with an alert of TLS
  lost     answers by a stateless reset, as if it did not know the connection
  old      speaks another version of QUIC only
  acks     prints a JSON line for each acknowledgement of data, and marks its packets ECT(0)
  ce       does so, but marks all packets CE
  skip     does so, but leaves out the number of each tenth packet
The other settings come in the variables of the adapter contract.
"""

import asyncio
import json
import os
import socket
import sys

sys.path.insert(0, sys.argv[1])

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.buffer import Buffer
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic import connection, packet, packet_builder
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, StopSendingReceived
from aioquic.tls import AlertDescription

WORD = sys.argv[2] if len(sys.argv) > 2 else ""
#: {word: the ECN field of all packets}
MARKS = {"acks": 2, "ce": 3, "skip": 2}
#: {word: how connections are closed}; only a code of the transport has a frame's type
CLOSES = {
    "close": {"error_code": ErrorCode.H3_EXCESSIVE_LOAD, "reason_phrase": "too \x1b[2J\nmuch"},
    "broken": {
        "error_code": packet.QuicErrorCode.PROTOCOL_VIOLATION,
        "frame_type": packet.QuicFrameType.PADDING,
        "reason_phrase": "no",
    },
    "alert": {
        "error_code": packet.QuicErrorCode.CRYPTO_ERROR + AlertDescription.unexpected_message,
        "frame_type": packet.QuicFrameType.CRYPTO,
    },
}
#: the token that clients are given
TOKEN = b"come again"


class Answering(QuicConnectionProtocol):
    http = None
    is_first = True

    def datagram_received(self, data, addr):
        if WORD == "token" and self.is_first:
            print(packet.pull_quic_header(Buffer(data=data)).token.decode() or "none", flush=True)
        self.is_first = False
        super().datagram_received(data, addr)

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if isinstance(event, StopSendingReceived):
            self._quic.reset_stream(event.stream_id, ErrorCode.H3_REQUEST_CANCELLED)
        for heard in self.http.handle_event(event) if self.http else ():
            if isinstance(heard, HeadersReceived):
                self.answer(heard.stream_id, int(dict(heard.headers)[b":path"][1:]))

    def answer(self, stream, size):
        if WORD in CLOSES:
            self._quic.close(**CLOSES[WORD])
            return
        if WORD == "lost":
            reset = b"\x40" + os.urandom(30) + self._quic._host_cids[0].stateless_reset_token
            self._transport.sendto(reset, self._quic._network_paths[0].addr)
            return
        self.http.send_headers(stream, [(b":status", b"200"), (b"content-length", str(size).encode())])
        if WORD == "reset":
            self.http.send_data(stream, bytes(size // 2), end_stream=False)
            self._quic.reset_stream(stream, ErrorCode.H3_INTERNAL_ERROR)
        else:
            self.http.send_data(stream, bytes(size), end_stream=True)


def forbid_migration():
    """Make all connections announce it, for which aioquic has no setting."""
    push = connection.push_quic_transport_parameters

    def pushed(buffer, parameters):
        parameters.disable_active_migration = True
        push(buffer, parameters)

    connection.push_quic_transport_parameters = pushed


def print_acknowledgements():
    handle = connection.QuicConnection._handle_ack_frame

    def handled(self, context, frame_type, buffer):
        start = buffer.tell()
        handle(self, context, frame_type, buffer)
        frame = Buffer(data=buffer.data_slice(start, buffer.tell()))
        ranges, delay = packet.pull_ack_frame(frame)
        if context.epoch != connection.tls.Epoch.ONE_RTT:
            return
        counts = [frame.pull_uint_var() for _ in range(3)] if frame_type == packet.QuicFrameType.ACK_ECN else None
        said = {
            "largest": ranges[-1].stop - 1, "delay_s": (delay << self._remote_ack_delay_exponent) / 1e6,
            "longest_s": self._loss.max_ack_delay, "ecn": counts,
        }  # fmt: skip
        print(json.dumps(said), flush=True)

    connection.QuicConnection._handle_ack_frame = handled


def give_tokens():
    """Send a token with HANDSHAKE_DONE, for which aioquic has no setting."""
    write = connection.QuicConnection._write_handshake_done_frame

    def written(self, builder):
        write(self, builder)
        frame = builder.start_frame(packet.QuicFrameType.NEW_TOKEN, capacity=2 + len(TOKEN))
        frame.push_uint_var(len(TOKEN))
        frame.push_bytes(TOKEN)

    connection.QuicConnection._write_handshake_done_frame = written


def skip_numbers():
    end = packet_builder.QuicPacketBuilder._end_packet

    def ended(self):
        end(self)
        self._packet_number += self._packet_number % 10 == 0

    packet_builder.QuicPacketBuilder._end_packet = ended


async def main():
    quic = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN, max_data=1 << 30, max_stream_data=1 << 30)
    if secrets := os.environ.get("SSLKEYLOGFILE"):
        quic.secrets_log_file = open(secrets, "a")
    quic.load_cert_chain(os.environ["CC_CERT"], os.environ["CC_KEY"])
    tickets = {}
    if WORD == "forbid":
        forbid_migration()
    if WORD == "keep":
        connection.QuicConnection._replenish_connection_ids = lambda self: None
    if WORD == "old":
        quic.supported_versions = [packet.QuicProtocolVersion.VERSION_2]
    if WORD == "mute":
        connection.QuicConnection._write_path_response_frame = lambda self, builder, challenge: None
    if WORD == "token":
        give_tokens()
    if WORD in MARKS:
        print_acknowledgements()
    if WORD == "skip":
        skip_numbers()
    server = await serve(
        os.environ["CC_ADDRESS"], int(os.environ["CC_PORT"]), configuration=quic, create_protocol=Answering,
        session_ticket_fetcher=tickets.get if WORD == "refuse" else lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: WORD == "refuse" or tickets.update({ticket.ticket: ticket}),
    )  # fmt: skip
    if WORD in MARKS:
        server._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_IP, socket.IP_TOS, MARKS[WORD])
    await asyncio.Event().wait()


asyncio.run(main())
