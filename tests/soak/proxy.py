"""A TCP proxy before an S3 server that does what networks and object stores do to people.

    python -m tests.soak.proxy UPSTREAM_PORT SEED FAULTS_IN_A_THOUSAND

Prints its port; when standard input ends it prints how often each fault took place, as JSON. Faults: `reset` (before anything
happened), `cut_request` (half of the request arrives), `cut_after` (the effect takes place, the answer is lost), `cut_answer`
(half of the answer arrives), `error_before` and `error_after` (500 or 503, without and with the effect), `delay`.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FAULTS = ("reset", "cut_request", "cut_after", "cut_answer", "error_before", "error_after", "delay", "delay")
_PROJECT = Path(__file__).resolve().parents[2]


class Proxy:
    """Takes one request per connection, as the server behind it does."""

    def __init__(self, upstream: int, seed: str, faults_in_a_thousand: int) -> None:
        self.upstream = upstream
        self.random = random.Random(seed)
        self.rate = faults_in_a_thousand
        self.done: Counter[str] = Counter()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._serve(reader, writer)
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"expect: 100-continue" in head.lower():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(_length(head))
        fault = self.random.choice(FAULTS) if self.random.randrange(1000) < self.rate else "none"
        self.done[fault] += 1
        match fault:
            case "reset":
                return _reset(writer)
            case "error_before":
                return self._refuse(writer)
            case "cut_request":
                await self._ask(head, body[: len(body) // 2] if body else None)
                return _reset(writer)
            case "delay":
                await asyncio.sleep(self.random.choice([0.05, 0.2, 1.0, 3.0]))
        answer = await self._ask(head, body)
        match fault:
            case "cut_after":
                return _reset(writer)
            case "error_after":
                return self._refuse(writer)
            case "cut_answer":
                writer.write(answer[: len(answer) // 2])
                await writer.drain()
                return _reset(writer)
        writer.write(answer)
        await writer.drain()
        return None

    async def _ask(self, head: bytes, body: bytes | None) -> bytes:
        """The whole answer of the server; with `body` None not even the head is finished."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        try:
            writer.write(_closing(head) + body if body is not None else head[: len(head) // 2])
            await writer.drain()
            if body is None or len(body) < _length(head):
                return b""
            return await reader.read()
        finally:
            writer.close()

    def _refuse(self, writer: asyncio.StreamWriter) -> None:
        code, name = self.random.choice([("500 Internal Server Error", "InternalError"), ("503 Slow Down", "SlowDown")])
        text = f"<Error><Code>{name}</Code><Message>injected</Message></Error>".encode()
        writer.write(f"HTTP/1.1 {code}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _closing(head: bytes) -> bytes:
    """The head of a request, asking for the connection to be closed after the answer."""
    first, *rest = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in rest if line.partition(b":")[0].lower() not in (b"connection", b"expect")]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


def _reset(writer: asyncio.StreamWriter) -> None:
    """End the connection with RST."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def serve(upstream: int, seed: str, rate: int) -> None:
    proxy = Proxy(upstream, seed, rate)
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps(proxy.done), flush=True)


@contextmanager
def running_proxy(upstream: str, seed: str, rate: int, done: Counter[str]) -> Iterator[str]:
    """A proxy in a process of its own for the duration of a block; gives its endpoint, adds what it did to `done`."""
    port = upstream.rpartition(":")[2]
    command = [sys.executable, "-m", "tests.soak.proxy", port, seed, str(rate)]
    process = subprocess.Popen(command, cwd=_PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        told, _ = process.communicate("")
        done.update(json.loads(told or "{}"))


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
