"""A splitter in asyncio, with which the compiled one is compared (tests/bench/proxy.py)."""

import asyncio
import socket
import sys

_IP_TRANSPARENT = 19


def transparent_socket():
    made = socket.socket()
    made.setsockopt(socket.SOL_IP, _IP_TRANSPARENT, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_TCP, socket.TCP_NODELAY, 1)
    made.setblocking(False)
    return made


async def move(reader, writer):
    try:
        while data := await reader.read(1 << 18):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


async def serve(reader, writer):
    onward = transparent_socket()
    onward.bind(writer.get_extra_info("peername"))
    await asyncio.get_running_loop().sock_connect(onward, writer.get_extra_info("sockname"))
    to_reader, to_writer = await asyncio.open_connection(sock=onward, limit=1 << 18)
    await asyncio.gather(move(reader, to_writer), move(to_reader, writer))
    to_writer.close()
    writer.close()


async def main(port):
    listener = transparent_socket()
    listener.bind(("0.0.0.0", port))
    server = await asyncio.start_server(serve, sock=listener, backlog=4096, limit=1 << 18)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[sys.argv.index("-p") + 1])))
