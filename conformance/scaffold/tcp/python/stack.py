#!/usr/bin/python3 -I
"""my-stack as HTTPS server and client: one program with the verbs of the adapter contract.

It works as it is, over the kernel's TCP. Put your own stack where a comment says YOUR STACK.
"""

import http.client
import http.server
import json
import os
import pathlib
import platform
import shutil
import socket
import socketserver
import ssl
import sys
import time
from typing import NoReturn

# YOUR STACK: its own names for its congestion controls; adapter.json says which algorithm each of them is.
ALGORITHMS = ("cubic", "reno")
NOT_OFFERED = 127
CHUNK_BYTES = 1 << 16


def describe() -> None:
    # YOUR STACK: print every version that affects how it behaves.
    version = f"my-stack 0.1, Python {platform.python_version()}, {ssl.OPENSSL_VERSION}"
    print(json.dumps({"version": version, "algorithms": ALGORITHMS}))


def serve() -> None:
    called = setting("CC_CALLED")
    if called not in ALGORITHMS:
        refuse(f"there is no {called}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if secrets := os.environ.get("SSLKEYLOGFILE"):
        context.keylog_filename = secrets
    context.load_cert_chain(setting("CC_CERT"), setting("CC_KEY"))
    # YOUR STACK, from here on and in Server: listen, with the congestion control `called`.
    server = Server(endpoint(), Handler, bind_and_activate=False)
    try:
        server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, called.encode())
    except OSError as error:
        refuse(f"the kernel refuses {called}: {error.strerror}")
    server.server_bind()
    server.server_activate()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()  # until a signal ends it


class Server(socketserver.TCPServer):
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        print(f"my-stack: {sys.exc_info()[1]}", file=sys.stderr)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.removeprefix("/")
        file = pathlib.Path(setting("CC_WWW"), name)
        # Bodies are named by their size. Refusing all other names also blocks paths that lead out of the folder.
        if not name.isdecimal() or not file.is_file():
            self.send_error(404)
            return
        with file.open("rb") as body:
            self.send_response(200)
            self.send_header("Content-Length", str(file.stat().st_size))
            self.end_headers()
            shutil.copyfileobj(body, self.wfile, CHUNK_BYTES)

    def log_message(self, *_: object) -> None: ...


def fetch() -> None:
    size, host = int(setting("CC_BYTES")), setting("CC_HOSTNAME")
    context = ssl.create_default_context(cafile=setting("CC_CA"))  # verifies the authority and the name
    if secrets := os.environ.get("SSLKEYLOGFILE"):
        context.keylog_filename = secrets
    start_ns = time.monotonic_ns()
    # YOUR STACK: connect, send the request, receive the body.
    with socket.create_connection(endpoint()) as plain, context.wrap_socket(plain, server_hostname=host) as secure:
        handshake_s = (time.monotonic_ns() - start_ns) / 1e9
        connection = http.client.HTTPConnection(host, int(setting("CC_PORT")))
        connection.sock = secure  # connected to CC_ADDRESS, because no DNS resolves the name
        connection.request("GET", f"/{size}")
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            sys.exit(f"my-stack: the server answered {response.status}")
        received = sum(map(len, iter(lambda: response.read(CHUNK_BYTES), b"")))
        completion_s = (time.monotonic_ns() - start_ns) / 1e9
    if received != size:
        sys.exit(f"my-stack: the body has {received} bytes, not {size}")
    print(json.dumps({"bytes": received, "completion_s": completion_s, "handshake_s": handshake_s}))


def setting(name: str) -> str:
    return os.environ.get(name) or sys.exit(f"my-stack: {name} is not set")


def endpoint() -> tuple[str, int]:
    return setting("CC_ADDRESS"), int(setting("CC_PORT"))


def refuse(why: str) -> NoReturn:
    print(f"my-stack: {why}", file=sys.stderr)
    sys.exit(NOT_OFFERED)


if __name__ == "__main__":
    verbs = {"server": serve, "client": fetch, "describe": describe}
    if len(sys.argv) != 2 or sys.argv[1] not in verbs:
        sys.exit("usage: stack.py server|client|describe")
    try:
        verbs[sys.argv[1]]()
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"my-stack: {error}")
