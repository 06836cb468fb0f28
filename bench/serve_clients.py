"""Clients of a server, in a process of their own: `python -m bench.serve_clients` with a JSON task on standard input.

A closed loop asks again as soon as it was answered. An open loop asks at fixed moments whatever the server does: the time of a
request counts from the moment at which it should have been sent, so that a server that is behind is seen to be. The answer is
one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import uvloop


@dataclass
class Told:
    """What the clients saw. Latencies in seconds, by the kind of request."""

    latencies: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    #: How many requests each connection had answered.
    answered: Counter[int] = field(default_factory=Counter)

    def note(self, kind: str, client: int, seconds: float, status: int) -> None:
        if status != 200:
            self.errors[str(status)] += 1
            return
        self.latencies.setdefault(kind, []).append(seconds)
        self.answered[client] += 1


class Connection:
    """One connection that is kept, with one request at a time."""

    def __init__(self, number: int, task: Mapping[str, Any]) -> None:
        self.number = number
        self._task = task
        self._sent = 0

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(self._task["host"], self._task["port"])
        return self

    async def ask(self, kind: str) -> int:
        """Send a request of this kind and read its whole answer; returns the status."""
        self._writer.write(self._request(kind))
        head = await self._reader.readuntil(b"\r\n\r\n")
        await self._reader.readexactly(_length(head))
        return int(head[9:12])

    def _request(self, kind: str) -> bytes:
        told = self._task["kinds"][kind]
        self._sent += 1
        body: bytes = told["body"].replace("@@", f"{self._task['mark']}-{self.number}-{self._sent}").encode()
        head = (
            f"POST {told['path']} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self._task['token']}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line[:15].lower() == b"content-length:":
            return int(line[15:])
    raise SystemExit(f"an answer without a length: {head!r}")


async def closed(task: Mapping[str, Any], told: Told) -> None:
    """Each connection asks again as soon as it was answered."""
    end = time.perf_counter() + task["seconds"]
    (kind,) = task["kinds"]

    async def ask(connection: Connection) -> None:
        while (started := time.perf_counter()) < end:
            status = await connection.ask(kind)
            told.note(kind, connection.number, time.perf_counter() - started, status)

    connections = [await Connection(number, task).open() for number in range(task["connections"])]
    await asyncio.gather(*map(ask, connections))


async def opened(task: Mapping[str, Any], told: Told) -> None:
    """Requests at fixed moments, on whichever connection is free; one in ten is of the second kind."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for number in range(task["connections"]):
        free.put_nowait(await Connection(number, task).open())
    first, second = task["kinds"]

    async def ask(kind: str, due: float) -> None:
        connection = await free.get()
        status = await connection.ask(kind)
        free.put_nowait(connection)
        told.note(kind, connection.number, time.perf_counter() - due, status)

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(int(task["rate"] * task["seconds"])):
            due = begin + number / task["rate"]
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(ask(second if number % 10 == 9 else first, due))


LOOPS: dict[str, Callable[[Mapping[str, Any], Told], Any]] = {"closed": closed, "open": opened}


def main() -> None:
    task = json.load(sys.stdin)
    told = Told()
    started = time.perf_counter()
    uvloop.run(LOOPS[task["loop"]](task, told))
    taken = time.perf_counter() - started
    answer = {
        "seconds": taken,
        "latencies": told.latencies,
        "errors": told.errors,
        "answered": [told.answered[number] for number in range(task["connections"])],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
