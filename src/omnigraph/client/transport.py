"""The two transports of verbs: `Blocking` over `httpx.Client`, `Awaited` over `httpx.AsyncClient`."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from omnigraph.client.requests import Answer, Ask, Request, error_of, judged, unreachable
from omnigraph.errors import BadRequest, Cancelled, OmnigraphError
from omnigraph.query.limits import Cancel
from omnigraph.wire.failures import LIBRARY_JSON

#: Seconds until a connection is made, and seconds without a byte of an answer.
CONNECT_SECONDS = 10.0
READ_SECONDS = 300.0
#: How often a call that can be cancelled looks at its flag, in seconds.
_POLL = 0.02
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

Found = TypeVar("Found")


class Server:
    """Where a graph is served, and as whom it is asked; shared by all handles of one connection."""

    def __init__(self, url: str, graph: str, token: str | None, verify: bool | str = True) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadRequest(f"the URL of a server begins with http:// or https://, unlike '{url}'")
        self.url = url.rstrip("/")
        self.graph = graph
        #: Who writes, as the server has told with the last write; None before.
        self.actor: str | None = None
        self.is_closed = False
        headers = {"Accept": LIBRARY_JSON, "User-Agent": "omnigraph-python"}
        if urlsplit(self.url).hostname in _LOOPBACK:
            # Between processes of one machine, compressing takes longer than sending.
            headers["Accept-Encoding"] = "identity"
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self.settings: dict[str, Any] = {
            "headers": headers,
            "verify": _trusted(self.url, verify),
            "timeout": httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            "limits": httpx.Limits(max_connections=100, max_keepalive_connections=20),
        }

    def address(self, request: Request) -> str:
        """The URL of a request."""
        return f"{self.url}{request.path}" if request.flat else f"{self.graph_url}{request.path}"

    @property
    def graph_url(self) -> str:
        return f"{self.url}/graphs/{quote(self.graph, safe='')}"


def _trusted(url: str, verify: bool | str) -> ssl.SSLContext:
    """What certificates are checked against: read once per connection, and not at all for http://, which has none."""
    return (
        httpx.create_ssl_context(verify=verify) if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )


class Blocking(Server):
    """Carries verbs out on the calling thread; safe to use from several."""

    def __init__(self, url: str, graph: str, token: str | None, verify: bool | str = True) -> None:
        super().__init__(url, graph, token, verify)
        self._client = httpx.Client(**self.settings)

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self.is_closed = True
        self._client.close()

    def run(self, ask: Ask[Found]) -> Found:
        """Carry out a verb: its requests one after the other. Errors of answers are raised inside of it."""
        try:
            request = next(ask)
            while True:
                try:
                    answer = self._answered(request)
                except OmnigraphError as error:
                    request = ask.throw(error)
                else:
                    request = ask.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            ask.close()

    def _answered(self, request: Request) -> Answer:
        number = 0
        while True:
            try:
                outcome: Answer | Exception = self._sent(request)
            except (httpx.TransportError, httpx.StreamError) as error:
                outcome = error
            found = judged(request, outcome, number, self.url)
            if isinstance(found, Answer):
                return found
            time.sleep(found)
            number += 1

    def _sent(self, request: Request) -> Answer:
        if request.consume is not None:
            return Answer(200, {}, b"", request.consume(self.pieces(request)))
        if request.cancel is None:
            return _answer(self._client.request(**self._options(request)))
        return self._cancellable(request, request.cancel)

    def _options(self, request: Request) -> dict[str, Any]:
        content = request.content
        return {
            "method": request.method,
            "url": self.address(request),
            "params": request.params,
            "content": content() if callable(content) else content,
            "headers": request.headers,
        }

    def _cancellable(self, request: Request, cancel: Cancel) -> Answer:
        """A request over a connection of its own, which is closed when the call is cancelled: the server notices."""
        found: list[httpx.Response | BaseException] = []
        client = httpx.Client(**self.settings)

        def ask() -> None:
            try:
                found.append(client.request(**self._options(request)))
            except BaseException as error:
                found.append(error)

        thread = threading.Thread(target=ask, name="omnigraph-request", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                if cancel.cancelled:
                    raise _cancelled()
                thread.join(_POLL)
        finally:
            with suppress(Exception):
                client.close()
        (answer,) = found
        if isinstance(answer, BaseException):
            raise answer
        return _answer(answer)

    def pieces(self, request: Request) -> Iterator[bytes]:
        """The pieces of a streamed answer; one that breaks off is an error, so nobody takes it for whole."""
        try:
            with self._client.stream(**self._options(request)) as answer:
                if answer.is_error:
                    answer.read()
                    raise error_of(_answer(answer))
                yield from answer.iter_bytes()
        except httpx.ConnectError:
            # Nothing was sent, so that the request is tried again.
            raise
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from error


class Awaited(Server):
    """Carries verbs out on an event loop."""

    def __init__(self, url: str, graph: str, token: str | None, verify: bool | str = True) -> None:
        super().__init__(url, graph, token, verify)
        self._client = httpx.AsyncClient(**self.settings)

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self.is_closed = True
        await self._client.aclose()

    async def run(self, ask: Ask[Found]) -> Found:
        """Carry out a verb: its requests one after the other. Errors of answers are raised inside of it."""
        try:
            request = next(ask)
            while True:
                try:
                    answer = await self._answered(request)
                except OmnigraphError as error:
                    request = ask.throw(error)
                else:
                    request = ask.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            ask.close()

    async def _answered(self, request: Request) -> Answer:
        number = 0
        while True:
            try:
                outcome: Answer | Exception = await self._sent(request)
            except (httpx.TransportError, httpx.StreamError) as error:
                outcome = error
            found = judged(request, outcome, number, self.url)
            if isinstance(found, Answer):
                return found
            await asyncio.sleep(found)
            number += 1

    async def _sent(self, request: Request) -> Answer:
        if request.consume is not None:
            return Answer(200, {}, b"", await _consumed(request.consume, self.pieces(request)))
        asked = self._client.request(**self._options(request))
        if request.cancel is None:
            return _answer(await asked)
        task = asyncio.ensure_future(asked)
        try:
            while not task.done():
                if request.cancel.cancelled:
                    raise _cancelled()
                await asyncio.wait([task], timeout=_POLL)
        finally:
            task.cancel()
        return _answer(task.result())

    def _options(self, request: Request) -> dict[str, Any]:
        content = request.content
        return {
            "method": request.method,
            "url": self.address(request),
            "params": request.params,
            "content": _made(content()) if callable(content) else content,
            "headers": request.headers,
        }

    async def pieces(self, request: Request) -> AsyncIterator[bytes]:
        """The pieces of a streamed answer; one that breaks off is an error, so nobody takes it for whole."""
        try:
            async with self._client.stream(**self._options(request)) as answer:
                if answer.is_error:
                    await answer.aread()
                    raise error_of(_answer(answer))
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.ConnectError:
            raise
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from error


async def _made(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """A body that is read from files or made from tables, in a thread: the event loop goes on meanwhile."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece


async def _consumed(consume: Callable[[Iterator[bytes]], Any], pieces: AsyncIterator[bytes]) -> Any:
    """Hand the pieces to a consumer that blocks, such as one that writes a file, in a thread of its own."""
    loop = asyncio.get_running_loop()

    async def following() -> bytes | None:
        return await anext(pieces, None)

    def pulled() -> Iterator[bytes]:
        while (piece := asyncio.run_coroutine_threadsafe(following(), loop).result()) is not None:
            yield piece

    return await asyncio.to_thread(consume, pulled())


def _answer(response: httpx.Response) -> Answer:
    return Answer(
        response.status_code, {name.lower(): value for name, value in response.headers.items()}, response.content
    )


def _cancelled() -> Cancelled:
    return Cancelled("the query was cancelled")
