"""Bytes that are no messages, sent to the servers on standard input: a request after them is still answered."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import omnigraph as og

SCHEMA = "node Person { name: String @key }\n"
#: Texts that are no requests, whatever the frame.
NO_REQUESTS = [
    b"{",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"\xff\xfe",
    b"\x00",
    b"{}",
    b'{"jsonrpc":"1.0","id":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":2,"method":5}',
    b'{"jsonrpc":"2.0","id":3,"method":"nothing/like/this"}',
    b'{"jsonrpc":"2.0","id":9,"result":{}}',
    b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":5}',
    b"[" * 50_000,
    b'{"a":' * 20_000,
    b"x" * 2_000_000,
]


@contextmanager
def running(*words: str) -> Iterator[tuple[IO[bytes], IO[bytes], subprocess.Popen[bytes]]]:
    """A command that is spoken with: its input, its output and its process."""
    command = [sys.executable, "-m", "omnigraph", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdin, process.stdout, process
        finally:
            process.kill()


def request(number: int, method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def test_an_agent_that_sends_no_messages(tmp_path: Path) -> None:
    og.init(tmp_path / "g.omni", SCHEMA).close()
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    with running("mcp", str(tmp_path / "g.omni")) as (given, told, process):

        def answer(number: int) -> dict[str, Any]:
            while True:
                found: dict[str, Any] = json.loads(told.readline())
                if found.get("id") == number:
                    return found

        given.write(request(1, "initialize", hello) + b"\n")
        given.flush()
        assert "result" in answer(1)
        given.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        for text in (b"", *NO_REQUESTS, b"Content-Length: 4\r\n\r\nnull"):
            given.write(text + b"\n")
        given.write(request(77, "tools/call", {"name": "health", "arguments": {}}) + b"\n")
        given.flush()
        assert not answer(77)["result"]["isError"]
        given.close()
        assert process.wait(60) == 0


def test_an_editor_that_sends_no_messages() -> None:
    with running("lsp") as (given, told, process):

        def send(text: bytes) -> None:
            given.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
            given.flush()

        def answer(number: int) -> dict[str, Any]:
            while True:
                length = 0
                while (line := told.readline()).strip():
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                found: dict[str, Any] = json.loads(told.read(length))
                if found.get("id") == number:
                    return found

        send(request(1, "initialize", {"capabilities": {}, "processId": None, "rootUri": None}))
        assert "result" in answer(1)
        for text in NO_REQUESTS:
            send(text)
        for header in (b"Content-Length: many\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"nonsense\r\n\r\n", b"\r\n"):
            given.write(header)
        document = {"uri": "untitled:one.pg"}
        opened = {
            "textDocument": document | {"languageId": "pg", "version": 1, "text": "node  Person {name:String @key}"}
        }
        send(json.dumps({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": opened}).encode())
        options = {"tabSize": 2, "insertSpaces": True}
        send(request(77, "textDocument/formatting", {"textDocument": document, "options": options}))
        (edit,) = answer(77)["result"]
        assert edit["newText"].startswith("node Person {")
        send(request(78, "shutdown", None))
        assert answer(78)["result"] is None
        send(b'{"jsonrpc":"2.0","method":"exit"}')
        assert process.wait(60) == 0
