"""Handling a request: bearer token, graph, parameters and body, permission, admission, work. Each step can end it.
The order is part of the contract: a caller without a token learns nothing about graphs, and a caller without permission learns
nothing about the load of the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from time import perf_counter
from typing import Any
from urllib.parse import unquote

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from omnigraph.errors import (
    BadRequest,
    Cancelled,
    DeadlineExceeded,
    OmnigraphError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from omnigraph.server import intake
from omnigraph.server.intake import ClientGone
from omnigraph.server.operation import JSON, Answer, Call, Conversation, Follow, Operation, Stream
from omnigraph.server.state import ServerState
from omnigraph.server.tokens import bearer_token
from omnigraph.wire.failures import LIBRARY, LIBRARY_JSON, Refused, error_body, status_of

_log = logging.getLogger("omnigraph.server")

#: Seconds between two polls of an endless answer without news, and between two keep-alive comments.
FOLLOW_SECONDS = 0.25
KEEP_ALIVE_SECONDS = 15.0
#: A larger answer is sent in pieces of so many bytes.
PIECE_BYTES = 1 << 18
_STOPPING = (
    "the server is stopping and did not wait for this request any longer; repeat it, with the same idempotency key if it "
    "writes"
)
#: The status in the log of a request whose client has disconnected; it is not sent.
_GONE = 499
#: Waits for a thread below so many seconds are not counted.
_SHORTEST_WAIT = 0.01


class Endpoint:
    """The ASGI application of one path: its operations by method."""

    def __init__(self, operations: dict[str, Operation], state: ServerState) -> None:
        self._operations = operations
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations[scope["method"]]
        headers: dict[str, list[str]] = {}
        for name, value in Headers(scope=scope).items():
            headers.setdefault(name, []).append(value)
        call = Call(operation, scope["omnigraph.request_id"], headers, self._state.graphs.access)
        scope["omnigraph.call"] = call
        async with AsyncExitStack() as held:
            try:
                response = await self._answered(call, scope, receive, held)
            except ClientGone:
                return
            except asyncio.CancelledError:
                # The time to drain is over: the client is told that the outcome of its request is unknown.
                response = failure(Unavailable(_STOPPING, seconds=1), call)
            except Unauthorized as error:
                await self._slow_down(scope)
                response = failure(error, call)
            except Exception as error:
                response = self._failed(error, call)
            with suppress(BrokenStream, TimeoutError):
                # The body ends without its terminator, which tells the client, and the connection is closed.
                await response(scope, receive, self._in_time(send))

    async def _slow_down(self, scope: Scope) -> None:
        """Delay the answer to an address with many wrong tokens."""
        address = (scope.get("client") or ("",))[0]
        delay = self._state.failed_tries.delay(address, asyncio.get_running_loop().time())
        if delay:
            await asyncio.sleep(delay)

    def _in_time(self, send: Send) -> Send:
        """A `send` with a timeout, for clients that do not read."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._state.settings.limits.send_seconds):
                await send(message)

        return send_in_time

    def _failed(self, error: Exception, call: Call) -> Response:
        response = failure(error, call)
        if call.operation.writes and call.served is not None and response.status_code in (409, 412):
            self._state.metrics.refused(call.served.graph_id)
        return response

    async def _answered(self, call: Call, scope: Scope, receive: Receive, held: AsyncExitStack) -> Response:
        operation, state = call.operation, self._state
        graphs = held.enter_context(state.graphs.used())
        call.accepts = intake.accepted(call.headers.get("accept", []))
        call.whole = call.accepts.get(LIBRARY_JSON, 0.0) > 0
        if not operation.public:
            call.actor = self._actor(call)
        call.path = {name: _segment(value) for name, value in scope["path_params"].items()}
        if not operation.flat:
            call.served = graphs.find(call.path["graph_id"])
            call.access = call.served.access
        call.parameters = intake.read_parameters(operation, scope["query_string"])
        call.timeout = intake.timeout_of(call, state.settings.limits.query_seconds)
        intake.check_idempotency_key(call)
        limit = intake.body_limit(operation, state.settings.limits)
        size = await self._read_body(call, receive, limit)
        await self._allow(call)
        if operation.conversation is not None:
            return await self._conversed(operation.conversation, call, scope, receive)
        if operation.is_write(call):
            held.enter_context(state.admission.admit(call.actor, limit if size is None else size))
        if operation.uploads:
            seconds = state.settings.limits.receive_seconds
            call.upload = await intake.spooled_body(receive, limit, seconds, state.spool)
            held.callback(call.upload.unlink, missing_ok=True)
        if operation.exports:
            assert call.served is not None
            await held.enter_async_context(state.exports.taken(call.served.graph_id))
        if operation.can_be_job and _prefers_job(call):
            return self._begun_job(call, held.pop_all())
        return await self._worked(call, receive)

    async def _conversed(self, conversation: Conversation, call: Call, scope: Scope, receive: Receive) -> Response:
        """Run a conversation; its reads are cancelled when the client disconnects."""
        watch = asyncio.create_task(_cancel_on_hang_up(receive, call))
        try:
            answer = await conversation(call, scope)
        finally:
            watch.cancel()
        if call.committed and call.served is not None:
            self._state.metrics.committed(call.served.graph_id)
        return Response(answer.content, answer.status, dict(answer.headers), answer.media_type)

    def _begun_job(self, call: Call, held: AsyncExitStack) -> Response:
        """Answer at once and work on as a job; resources of the request, such as its admission, are held until the job ends."""
        state = self._state
        assert call.served is not None
        job = state.jobs.begin(call.served.graph_id, call.operation.name, call.actor)
        call.progress = job.note
        pool = state.writers if call.operation.is_write(call) else state.readers

        def work() -> tuple[int, Any]:
            answer = call.operation.work(call)
            if isinstance(answer, Stream):
                return answer.status, job.keep(answer.pieces)
            assert isinstance(answer, Answer), "a job has an end"
            return answer.status, orjson.loads(answer.content)

        async def run() -> None:
            async with held:
                try:
                    job.end(*await pool.run(call.actor, work))
                except Exception as error:
                    response = self._failed(error, call)
                    job.end(response.status_code, orjson.loads(bytes(response.body)))
                if call.committed:
                    state.metrics.committed(job.told["graph_id"])

        task = asyncio.create_task(run())
        state.running_jobs.add(task)
        task.add_done_callback(state.running_jobs.discard)
        place = f"/graphs/{call.served.graph_id}/jobs/{job.id}"
        headers = {"Location": place, "Preference-Applied": "respond-async"}
        return Response(orjson.dumps(job.told), 202, headers, JSON)

    def _actor(self, call: Call) -> str | None:
        """The actor of the request; None when the server has no tokens."""
        if self._state.settings.rights == "open":
            return None
        actor = self._state.tokens.actor_of(bearer_token(call.headers.get("authorization", [])))
        if actor is None:
            raise Unauthorized("invalid bearer token")
        return actor

    async def _read_body(self, call: Call, receive: Receive, limit: int) -> int | None:
        """Decode the body if the operation has one; returns its size in bytes, None when it is not known yet."""
        operation = call.operation
        if operation.uploads:
            intake.check_media_type(operation, call)
            return intake.announced_size(call, limit)
        if operation.body is None:
            return 0
        intake.check_media_type(operation, call)
        intake.announced_size(call, limit)
        content = await intake.whole_body(receive, limit, self._state.settings.limits)
        call.body = intake.decode_body(operation, content)
        call.content = content if operation.conversation is not None else b""
        return len(content)

    async def _allow(self, call: Call) -> None:
        def decide() -> None:
            for need in call.operation.needs(call):
                call.check(need)

        if call.operation.needs_look_up(call):
            await self._state.readers.run(call.actor, decide)
        else:
            decide()

    async def _worked(self, call: Call, receive: Receive) -> Response:
        """Do the work in a thread. A read is cancelled when the client disconnects; a write is completed."""
        operation, state = call.operation, self._state
        writes = operation.is_write(call)
        pool = state.writers if writes else state.readers

        asked = perf_counter()

        def work() -> Answer | Stream | Follow:
            with _counting_wait(call, perf_counter() - asked):
                answer = operation.work(call)
                return _begun(answer) if isinstance(answer, Stream) else answer

        watch = None if writes else asyncio.create_task(_cancel_on_hang_up(receive, call))
        try:
            answer = await pool.run(call.actor, work, seconds=call.timeout)
        finally:
            if watch is not None:
                watch.cancel()
        if call.committed and call.served is not None:
            state.metrics.committed(call.served.graph_id)
        headers = _deprecation(operation) | dict(answer.headers)
        if isinstance(answer, Answer) and len(answer.content) > PIECE_BYTES:
            # In pieces, so that compressing and sending a large answer does not block other requests.
            headers["Content-Length"] = str(len(answer.content))
            return StreamingResponse(_in_pieces(answer.content), answer.status, headers, answer.media_type)
        if isinstance(answer, Answer):
            return Response(answer.content, answer.status, headers, answer.media_type)
        if isinstance(answer, Follow):
            return StreamingResponse(_followed(answer, call, state), 200, headers, answer.media_type)
        return StreamingResponse(_sent(answer.pieces, call, state), answer.status, headers, answer.media_type)


@contextmanager
def _counting_wait(call: Call, waited: float) -> Iterator[None]:
    """Subtract the seconds that a request has waited for a thread from its timeout."""
    if waited < _SHORTEST_WAIT:
        yield
        return
    whole, call.timeout = call.timeout, max(call.timeout - waited, _SHORTEST_WAIT)
    try:
        yield
    except DeadlineExceeded as error:
        raise DeadlineExceeded(
            f"the query did not end within {whole:g} s, of which it waited {waited:.2f} s for a thread; add conditions or a "
            "limit, or try again when the server is less busy",
            seconds=whole,
        ) from error


async def _in_pieces(content: bytes) -> AsyncIterator[bytes]:
    view = memoryview(content)
    for start in range(0, len(view), PIECE_BYTES):
        yield bytes(view[start : start + PIECE_BYTES])


def _prefers_job(call: Call) -> bool:
    preferences = ",".join(call.headers.get("prefer", []))
    return "respond-async" in {item.strip().lower() for item in preferences.split(",")}


def _segment(value: str) -> str:
    """A part of the path, decoded after routing, so that an escaped slash is part of a name."""
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("the path is not UTF-8") from None


async def _cancel_on_hang_up(receive: Receive, call: Call) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            call.cancel.cancel()
            return


def _begun(stream: Stream) -> Stream:
    """A stream whose first piece is made already, so that an error before it still has a status."""
    first = next(stream.pieces, None)

    def pieces() -> Iterator[bytes]:
        if first is not None:
            yield first
            yield from stream.pieces

    return Stream(pieces(), stream.media_type, stream.status, stream.headers)


async def _sent(pieces: Iterator[bytes], call: Call, state: ServerState) -> AsyncIterator[bytes]:
    """The pieces of a stream; each is made in a thread after the previous one was sent."""
    while True:
        try:
            piece = await state.readers.run(call.actor, lambda: next(pieces, None))
        except Exception as error:
            _log.error("request %s: the stream broke off: %s", call.request_id, error)
            raise BrokenStream from error
        if piece is None:
            return
        yield piece


async def _followed(follow: Follow, call: Call, state: ServerState) -> AsyncIterator[bytes]:
    """The results of polling an endless answer, until the client leaves, the server stops or the graph is reloaded."""
    quiet = 0.0
    # The status and headers go out at once, so that a client knows that it is connected.
    yield b": connected\n\n"
    while not state.is_stopping and not (follow.of_graph and _is_replaced(call, state)):
        try:
            piece = await state.readers.run(call.actor, follow.poll)
        except Exception as error:
            _log.error("request %s: the stream broke off: %s", call.request_id, error)
            raise BrokenStream from error
        if piece is not None:
            quiet = 0.0
            yield piece
            if follow.is_over():
                return
            continue
        await asyncio.sleep(FOLLOW_SECONDS)
        quiet += FOLLOW_SECONDS
        if quiet >= KEEP_ALIVE_SECONDS:
            quiet = 0.0
            yield b": nothing new\n\n"


def _is_replaced(call: Call, state: ServerState) -> bool:
    """Whether a reload has replaced or removed the graph's handle, perhaps with other permissions."""
    return call.served is not None and state.graphs.healthy.get(call.served.graph_id) is not call.served


class BrokenStream(Exception):
    """A body that was begun can not be completed; the connection is closed instead."""


def _deprecation(operation: Operation) -> dict[str, str]:
    if operation.successor is None:
        return {}
    return {"Deprecation": "true", "Link": f'<{operation.successor}>; rel="successor-version"'}


def failure(error: Exception, call: Call) -> Response:
    """The answer to an error: its status, the one JSON error object, and the headers it needs."""
    status = _GONE if isinstance(error, Cancelled) else status_of(error)
    if status == 500:
        _log.error("request %s failed", call.request_id, exc_info=error)
    body = error_body(error, status, whole=call.whole)
    if call.served is not None:
        body = _public(body, call)
    if status == 500 and isinstance(error, OmnigraphError):
        body.pop(LIBRARY, None)
    response_headers = _deprecation(call.operation)
    if isinstance(error, Refused):
        response_headers |= error.headers
    if isinstance(error, TooManyRequests | Unavailable):
        response_headers["Retry-After"] = str(error.seconds)
    if status == 408:
        # The rest of the request body is unread, so the connection can not be used again.
        response_headers["Connection"] = "close"
    if status == 416:
        response_headers["Content-Range"] = f"bytes */{body['blob_range']['length']}"
    if status == 401:
        response_headers["WWW-Authenticate"] = "Bearer"
    return error_response(status, body, call.request_id, response_headers)


def _public(body: dict[str, Any], call: Call) -> dict[str, Any]:
    """An error body without paths of the server, and with the idempotency key as the client gave it."""
    assert call.served is not None
    text = call.served.hidden(body["error"])
    if call.idempotency_key is not None:
        text = text.replace(call.idempotency_key, call.header("idempotency-key") or "")
    library = body.get(LIBRARY)
    told = {} if library is None else {LIBRARY: {**library, "message": text}}
    return {**body, "error": text, **told}


def error_response(
    status: int, body: dict[str, Any], request_id: str, headers: dict[str, str] | None = None
) -> Response:
    """An error body with the id of its request."""
    return Response(orjson.dumps({**body, "request_id": request_id}), status, headers, "application/json")
