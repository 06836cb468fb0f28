"""The ASGI application: routes from the list of operations, request ids, one log line and some numbers per request."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from time import perf_counter
from types import FrameType

from starlette.exceptions import HTTPException
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette_compress import CompressMiddleware, add_compress_type

from omnigraph.errors import NotFound
from omnigraph.ids import new_ulid
from omnigraph.server.dispatch import Endpoint, error_response
from omnigraph.server.logs import log_request
from omnigraph.server.operation import Call, Operation
from omnigraph.server.reloads import take_reload
from omnigraph.server.routes import (
    agents,
    beyond,
    blobs,
    clusters,
    exploring,
    feeds,
    flat,
    jobs,
    loads,
    reads,
    stored,
    upkeep,
    writes,
)
from omnigraph.server.settings import HEAD_TOO_LARGE
from omnigraph.server.state import ServerState
from omnigraph.server.studio import is_studio_path, serve_studio
from omnigraph.server.tracing import RequestSpan
from omnigraph.wire.arrow import ARROW_STREAM
from omnigraph.wire.failures import CODES, INTERNAL_MESSAGE, error_body, status_of

_log = logging.getLogger("omnigraph.server")

PREFIX = "/graphs/{graph_id}"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


#: Answers of fewer bytes are not compressed.
SMALLEST_COMPRESSED = 2048
# Lines are sent as they are made, also when they are compressed.
add_compress_type("application/x-ndjson", streaming=True)
add_compress_type(ARROW_STREAM)


def operations(state: ServerState) -> list[Operation]:
    """All operations of a server, in the order of the contract."""
    of_graphs = [
        *reads.OPERATIONS,
        *blobs.OPERATIONS,
        *writes.OPERATIONS,
        *stored.OPERATIONS,
        *loads.OPERATIONS,
        *feeds.OPERATIONS,
        *beyond.OPERATIONS,
        *exploring.OPERATIONS,
        *upkeep.OPERATIONS,
        *jobs.operations(state),
        *agents.operations(state),
    ]
    whole = clusters.operations(state)
    return [*flat.operations(state, [*whole, *of_graphs]), *whole, *of_graphs]


def build_app(state: ServerState) -> ASGIApp:
    """The application of a server."""
    return Application(state, operations(state))


class Application:
    """The outermost layer, for every request, including requests without a route."""

    def __init__(self, state: ServerState, served: Sequence[Operation]) -> None:
        self._state = state
        router = Router(
            _routes(state, served), redirect_slashes=False, default=self._elsewhere, lifespan=lambda _: _lifespan(state)
        )
        # Clients get zstd or gzip on request; blobs are not compressed, because ranges count their own bytes.
        self._router = CompressMiddleware(
            router, minimum_size=SMALLEST_COMPRESSED, zstd_level=1, gzip_level=1, brotli=False
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._router(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        await self._request(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        tracing = self._state.tracing
        if tracing is None:
            await self._answer(scope, receive, send, None)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with tracing.request(scope["method"], headers) as span:
            await self._answer(scope, receive, send, span)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, span: RequestSpan | None) -> None:
        started = perf_counter()
        request_id = _request_id(scope)
        scope["omnigraph.request_id"] = request_id
        # Routes match the undecoded path, so that an escaped slash stays part of a name.
        scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
        scope["app"] = self
        status, sent, is_begun = 499, 0, False

        async def send_with_id(message: Message) -> None:
            nonlocal status, sent, is_begun
            if message["type"] == "http.response.start":
                status, is_begun = message["status"], True
                message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id.encode())]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        self._state.metrics.began()
        try:
            await self._routed(scope, receive, send_with_id, request_id)
        except Exception as error:
            if is_begun:
                # The connection is closed, so that the client sees that the answer is incomplete.
                raise
            _log.error("request %s failed", request_id, exc_info=error)
            body = {"error": INTERNAL_MESSAGE, "code": CODES[500]}
            await error_response(500, body, request_id, {"Connection": "close"})(scope, receive, send_with_id)
        finally:
            call: Call | None = scope.get("omnigraph.call")
            name = scope.get("omnigraph.served", "unknown") if call is None else call.operation.name
            seconds = perf_counter() - started
            self._state.metrics.ended(name, status, seconds)
            graph = None if call is None or call.served is None else call.served.graph_id
            traced: dict[str, str] = {}
            if span is not None:
                span.end(operation=name, method=scope["method"], status=status, graph=graph, request_id=request_id)
                traced["trace_id"] = span.trace_id
            log_request(
                request_id=request_id,
                **traced,
                method=scope["method"],
                operation=name,
                graph=graph,
                actor=None if call is None else call.actor,
                status=status,
                milliseconds=round(seconds * 1000, 2),
                bytes=sent,
            )

    async def _elsewhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a path without an operation: a page of Studio, or 404."""
        if self._state.settings.studio and scope["method"] in ("GET", "HEAD") and is_studio_path(scope["path"]):
            scope["omnigraph.served"] = "studio"
            await serve_studio(scope, receive, send)
        else:
            await _unknown_path(scope, receive, send)

    async def _routed(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        refusal = _refusal(scope, self._state.settings.limits.head_bytes)
        if refusal is not None:
            body = {"error": refusal, "code": "bad_request"}
            await error_response(400, body, request_id, {"Connection": "close"})(scope, receive, send)
            return
        try:
            await self._router(scope, receive, send)
        except HTTPException as error:
            body = {"error": "method not allowed", "code": "method_not_allowed"}
            response = error_response(error.status_code, body, request_id, dict(error.headers or {}))
            await response(scope, receive, send)


def _refusal(scope: Scope, head_bytes: int) -> str | None:
    """Why the head of a request is refused and its connection closed; None when it is accepted."""
    if _head_size(scope) > head_bytes:
        return HEAD_TOO_LARGE
    names = {name for name, _ in scope["headers"]}
    if {b"content-length", b"transfer-encoding"} <= names:
        # Request smuggling: a proxy and this server might delimit the body differently.
        return "a request has Content-Length or Transfer-Encoding, not both"
    return None


def _head_size(scope: Scope) -> int:
    """The bytes of the target and the headers. The parser bounds only its buffer between two reads."""
    return (
        len(scope["path"])
        + len(scope["query_string"])
        + sum(len(name) + len(value) for name, value in scope["headers"])
    )


def _request_id(scope: Scope) -> str:
    """The request id given by the client if it is printable; else a new id."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value.decode("latin-1")
            if _REQUEST_ID.fullmatch(given):
                return str(given)
    return new_ulid()


def _routes(state: ServerState, served: Sequence[Operation]) -> list[Route]:
    """One route per path, with its methods; fixed paths come before paths with parameters."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in served:
        path = operation.path if operation.flat else PREFIX + operation.path
        by_path.setdefault(path, {})[operation.method] = operation
    routes = []
    for path in sorted(by_path, key=lambda path: path.count("{")):
        route = Route(path, Endpoint(by_path[path], state), methods=list(by_path[path]))
        # Starlette adds HEAD to every GET; here only the methods of operations are served.
        route.methods = set(by_path[path])
        routes.append(route)
    return routes


async def _unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    error = NotFound("there is nothing at this path")
    status = status_of(error)
    response = error_response(status, error_body(error, status), scope["omnigraph.request_id"])
    await response(scope, receive, send)


@asynccontextmanager
async def _lifespan(state: ServerState) -> AsyncIterator[None]:
    # A server in a thread of a larger process can not handle signals.
    with suppress(ValueError, RuntimeError, NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, state.reload)
        if take_reload():
            state.reload()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _stopping(state, signal.getsignal(number)))
    yield
    if state.running_jobs:
        await asyncio.wait(state.running_jobs, timeout=state.settings.drain_seconds)
    state.close()


def _stopping(state: ServerState, behind: object) -> Callable[[int, FrameType | None], None]:
    """A signal handler that marks the server as stopping, then calls the previous handler."""

    def handle(number: int, frame: FrameType | None) -> None:
        state.is_stopping = True
        if callable(behind):
            behind(number, frame)

    return handle
