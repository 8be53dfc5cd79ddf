"""Fetch https://CC_HOSTNAME:CC_PORT/CC_BYTES over HTTP/1.1 and print what it took as one JSON line.

Blocking reads and few imports, because in virtual time a trial's cost is its system calls and page faults:
curl makes five calls a packet (poll, two clock readings, a signal mask, recv), this makes one. On the wire
they do the same. The clock starts before the TCP connect and stops at the end of the body.
"""

import os
import socket
import ssl
import sys
import time


def main():
    host, port, size = os.environ["CC_HOSTNAME"], int(os.environ["CC_PORT"]), int(os.environ["CC_BYTES"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(os.environ["CC_CA"])
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    buffer = memoryview(bytearray(1 << 16))
    start = time.monotonic()
    plain = socket.create_connection((os.environ["CC_ADDRESS"], port))
    tls = context.wrap_socket(plain, server_hostname=host)
    handshake_s = time.monotonic() - start
    tls.sendall(f"GET /{size} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        data = tls.recv(1 << 14)
        if not data:
            sys.exit("the connection ended within the response's head")
        head += data
    head, _, body = head.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    if status.split()[1:2] != ["200"]:
        sys.exit(f"the server answered {status!r}")
    received = len(body)
    while received < size and (count := tls.recv_into(buffer)):
        received += count
    completion_s = time.monotonic() - start
    print(f'{{"bytes": {received}, "completion_s": {completion_s:.6f}, "handshake_s": {handshake_s:.6f}}}')


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"{type(error).__name__}: {error}")
