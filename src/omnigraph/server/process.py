"""The server process: a single server, or a supervisor of worker processes. Signals, sockets, orderly shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType

import h11
import orjson
import uvicorn
from prometheus_client.multiprocess import mark_process_dead
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from omnigraph.errors import BadRequest, OmnigraphError
from omnigraph.ids import new_ulid
from omnigraph.server.logs import log_to_stderr
from omnigraph.server.metrics import SHARED_FOLDER
from omnigraph.server.reloads import held_reloads, remember_reloads
from omnigraph.server.settings import HEAD_TOO_LARGE, Settings
from omnigraph.storage.scratch import make_scratch

#: Seconds between two checks of a worker whether its supervisor is alive.
_PARENT_POLL = 1.0

_log = logging.getLogger("omnigraph.server")


def listen(settings: Settings) -> socket.socket:
    """A socket at the address of the server; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise BadRequest(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}; choose another --bind"
        ) from None
    listening.listen(2048)
    listening.set_inheritable(True)
    return listening


def address_of(listening: socket.socket) -> str:
    """`host:port` of a socket."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def run(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until a signal ends it. `announce` is called with the address once it is bound."""
    log_to_stderr()
    # Uvicorn raises the signal again when it is done; by then everything is finished, so it is ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ignored)
    remember_reloads()
    if settings.workers > 1:
        _run_workers(settings, announce)
        return
    app = build(settings)
    listening = listen(settings)
    announce(address_of(listening))
    uvicorn.Server(server_config(app, settings)).run(sockets=[listening])
    _end()


def build(settings: Settings) -> ASGIApp:
    """Open the graphs and make the application; a supervisor process does not call this."""
    from omnigraph.server.app import build_app
    from omnigraph.server.state import open_state

    return build_app(open_state(settings))


def _run_workers(settings: Settings, announce: Callable[[str], None]) -> None:
    listening = listen(settings)
    announce(address_of(listening))
    shared = make_scratch("workers")
    os.environ[SHARED_FOLDER] = str(shared.path)
    try:
        app = AppOf(replace(settings, shared_folder=str(shared.path), supervisor=os.getpid()), os.getpid())
        workers = Workers(server_config(app, settings), [listening])
        workers.run()
    finally:
        shared.remove()
    if workers.could_not_start:
        raise BadRequest("the server could not start, for the reason above")


def _end() -> None:
    """End this drained process without waiting for running calls; an interrupted write is healed later."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _ignored(number: int, frame: FrameType | None) -> None:
    return None


def server_config(app: AppOf | ASGIApp, settings: Settings) -> uvicorn.Config:
    """The uvicorn configuration for an application, or for a factory that makes it in the serving process."""
    return uvicorn.Config(
        app,
        factory=isinstance(app, AppOf),
        workers=settings.workers,
        http=Http,
        h11_max_incomplete_event_size=settings.limits.head_bytes,
        ws="none",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=2048,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings.drain_seconds,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )


class Http(H11Protocol):
    """The h11 protocol, which bounds the head of a request, unlike faster parsers; invalid requests get the JSON error object.
    A connection is closed when a request head is not complete in time, however slowly its bytes arrive, and when the rest of
    the
    body of an already answered request does not arrive in time.
    """

    #: Seconds for the head of a request, and for the rest of an unread body.
    head_seconds = 30.0
    _head_timer: asyncio.TimerHandle | None = None
    #: Whether a request was answered while its body is still arriving.
    _is_unread = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle received bytes; a head must be complete within `head_seconds` of its first byte."""
        super().data_received(data)
        if self._is_unread:
            if self.conn.their_state is h11.SEND_BODY:
                return
            # The unread body has ended: the connection is idle, or in the next request.
            self._is_unread = False
            self._stop_waiting()
            if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
                return
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._await_head()

    def on_response_complete(self) -> None:
        """Start a timer for the rest of a body that was refused before it was complete."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._is_unread = True
            self._await_head()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid HTTP request or too large a head with 400, and close the connection."""
        request_id = new_ulid()
        body = orjson.dumps({"error": HEAD_TOO_LARGE, "code": "bad_request", "request_id": request_id})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


@dataclass(frozen=True)
class AppOf:
    """Makes the application in a worker process. `parent`: the process id of its supervisor."""

    settings: Settings
    parent: int

    def __call__(self) -> ASGIApp:
        log_to_stderr()
        try:
            app = build(self.settings)
        except OmnigraphError as error:
            print(f"Error: {error.message}", file=sys.stderr, flush=True)
            sys.exit(STARTUP_FAILURE)
        return _Orphans(app, self.parent)


class _Orphans:
    """An application that ends its process when the supervisor is gone."""

    def __init__(self, app: ASGIApp, parent: int) -> None:
        self._app = app
        self._parent = parent
        self._watch: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._watch is None:
            self._watch = asyncio.create_task(self._end_with_parent())
        await self._app(scope, receive, send)

    async def _end_with_parent(self) -> None:
        while os.getppid() == self._parent:
            await asyncio.sleep(_PARENT_POLL)
        signal.raise_signal(signal.SIGTERM)


class Worker(Process):
    """One serving process."""

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal ends it."""
        super().target(sockets)
        _end()


class Workers(Multiprocess):
    """Uvicorn's supervisor of worker processes, with different rules for replacing workers."""

    could_not_start = False

    def init_processes(self) -> None:
        """Start the workers."""
        for _ in range(self.processes_num):
            self.processes.append(self._started())

    def _started(self) -> Worker:
        worker = Worker(self.config, self.sockets)
        with held_reloads():
            worker.start()
        return worker

    def handle_hup(self) -> None:
        """Forward SIGHUP to the workers, which reload without being replaced."""
        for worker in self.processes:
            if worker.pid is not None:
                os.kill(worker.pid, signal.SIGHUP)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended.
        Uvicorn pings each worker and waits for the answer. A worker killed meanwhile would never answer, and signals would be
        delayed; here the state of the process is checked instead.
        """
        for place, worker in enumerate(self.processes):
            if self.should_exit.is_set() or worker.process.is_alive():
                continue
            worker.join()
            if worker.exitcode == STARTUP_FAILURE:
                self.could_not_start = True
                self.should_exit.set()
                return
            _log.error("worker %s has ended with code %s; starting another one", worker.pid, worker.exitcode)
            # Remove its gauges of running requests.
            mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
            self.processes[place] = self._started()
