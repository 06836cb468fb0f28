"""An operation of the server as data, and a request (call) of it.
The dispatcher (`dispatch`) runs the same steps for every operation: the actor, the graph, `parameters` and `body`, permission
(`needs`), admission, then `work` in a thread. `openapi` documents the same data.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import orjson
from starlette.types import Scope

from omnigraph.load.model import Progress
from omnigraph.query.limits import Cancel
from omnigraph.server.access import Access, Need
from omnigraph.server.bodies import NoParameters
from omnigraph.wire.failures import LIBRARY

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.server.graphs import ServedGraph

JSON = "application/json"
NDJSON = "application/x-ndjson; charset=utf-8"
BYTES = "application/octet-stream"
#: The smallest quality value of HTTP that is not 0.
LEAST_LIKED = 0.001


@dataclass(frozen=True)
class Answer:
    """A complete answer."""

    content: bytes
    media_type: str | None = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """An answer that is made while it is sent, each piece in a thread. Errors of the first piece still have a status."""

    pieces: Iterator[bytes]
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Follow:
    """An endless answer: `poll` is called in a thread repeatedly, and its results are sent.
    No thread waits between two polls without news; comments keep the connection alive.
    """

    poll: Callable[[], bytes | None]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Whether the answer has ended; called after each sent piece.
    is_over: Callable[[], bool] = lambda: False
    #: Whether it reads the graph; it then ends when the server reloads its cluster, and the client connects again.
    of_graph: bool = False


@dataclass
class Call:
    """One request. The dispatcher fills in the fields step by step; `work` reads them."""

    operation: Operation
    request_id: str
    headers: Mapping[str, list[str]]
    access: Access
    actor: str | None = None
    served: ServedGraph | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    parameters: Any = None
    body: Any = None
    #: The bytes of the body, for a conversation.
    content: bytes = b""
    #: The file with a streamed body.
    upload: Path | None = None
    cancel: Cancel = field(default_factory=Cancel)
    #: Seconds that a read query may take.
    timeout: float = 30.0
    #: Whether the client asked for the library's form of results and errors.
    whole: bool = False
    #: The accepted media types with their quality values, from 0 (not accepted) to 1.
    accepts: Mapping[str, float] = field(default_factory=dict)
    #: Called with the progress of long work; None when it is not wanted.
    progress: Callable[[Progress], None] | None = None
    #: Whether the work has made a commit.
    committed: bool = False

    @property
    def graph(self) -> Graph:
        """The handle of the graph that the path names."""
        assert self.served is not None, "only flat operations have no graph"
        return self.served.graph

    @property
    def idempotency_key(self) -> str | None:
        """The Idempotency-Key of the request, prefixed with the actor, or None."""
        given = self.header("idempotency-key")
        return None if given is None else f"{self.actor or ''}:{given}"

    def header(self, name: str) -> str | None:
        """The (first) value of a header, or None."""
        return self.headers.get(name, [None])[0]

    def preferred(self, *forms: str) -> str | None:
        """The media type of `forms` that the client prefers; None for JSON, also when it accepts none of them.
        A form other than JSON is chosen only if the client names it.
        """
        liked = max(forms, key=lambda form: self.accepts.get(form, 0.0))
        plain = next((self.accepts[name] for name in (JSON, "application/*", "*/*") if name in self.accepts), 0.0)
        return liked if self.accepts.get(liked, 0.0) >= max(plain, LEAST_LIKED) else None

    def check(self, need: Need) -> None:
        """Raise `Denied` unless the actor has a permission; for needs that become known during the work."""
        self.access.check(self.actor, need)

    def json(
        self, shape: Any, library: Any = None, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """A JSON answer; `library`: the library's form, added for clients that request it."""
        if self.whole and library is not None:
            shape = {**shape, LIBRARY: library}
        content = orjson.dumps(shape, option=orjson.OPT_NON_STR_KEYS)
        return Answer(content, status=status, headers=headers or {})


Work = Callable[[Call], Answer | Stream | Follow]
#: Work on the event loop that takes a thread and admission for each of its parts.
Conversation = Callable[[Call, Scope], Awaitable[Answer]]
Needs = Callable[[Call], Iterable[Need]]


def no_work(call: Call) -> Answer:
    """The `work` of a conversation, which is never called."""
    raise AssertionError("a conversation is carried on by the dispatcher")


def no_needs(call: Call) -> Iterable[Need]:
    """No permissions are needed beyond a valid token."""
    return ()


@dataclass(frozen=True)
class Operation:
    """One method of one path. Paths are relative to `/graphs/{graph_id}`, except for `flat` operations."""

    name: str
    method: str
    path: str
    summary: str
    work: Work
    #: The permissions that a call needs; `no_needs` only where no policy applies.
    needs: Needs
    #: Whether `needs` of a call reads storage, so that it must run in a thread.
    needs_look_up: Callable[[Call], bool] = lambda call: False
    parameters: type[msgspec.Struct] = NoParameters
    #: The name of the parameters in error messages.
    parameters_called: str = "query parameters"
    body: type[msgspec.Struct] | None = None
    body_called: str = "request body"
    body_optional: bool = False
    #: The only accepted media type of a body; None for any.
    body_type: str | None = None
    #: Whether the body is written to a file after admission, instead of being decoded before it.
    uploads: bool = False
    #: Whether bodies may be as large as the bodies of loads.
    large_body: bool = False
    #: The type of a 200 answer; a text is a media type other than JSON.
    answers: type[msgspec.Struct] | str | tuple[type[msgspec.Struct], ...] = BYTES
    #: The additional statuses that this operation can answer.
    statuses: tuple[int, ...] = ()
    #: Whether it needs admission and a thread of the writers.
    writes: bool = False
    #: For an operation that only sometimes writes: whether a call writes.
    writes_now: Callable[[Call], bool] | None = None
    #: Whether a client may have it run as a job.
    can_be_job: bool = False
    #: Carried on instead of `work`.
    conversation: Conversation | None = None
    #: Whether it holds an export slot while it streams.
    exports: bool = False
    flat: bool = False
    #: Whether it needs no token.
    public: bool = False
    #: The operation that replaces this deprecated one.
    successor: str | None = None
    #: The optional request headers with their meanings.
    request_headers: Mapping[str, str] = field(default_factory=dict)
    required_headers: frozenset[str] = frozenset()

    def is_write(self, call: Call) -> bool:
        """Whether a call, with a decoded body, writes."""
        return self.writes if self.writes_now is None else self.writes_now(call)
