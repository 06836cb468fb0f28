"""An operation of the server as data, and a request on its way through it.

The dispatcher (`dispatch`) goes through the same steps with every operation: who asks, which graph, what is asked (`parameters`,
`body`), may they (`needs`), is there room, then `work` in a thread. `openapi` documents the same data.
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
    """A whole answer."""

    content: bytes
    media_type: str | None = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """An answer that is made while it is sent; each piece is made in a thread. Errors of the first piece still have a status."""

    pieces: Iterator[bytes]
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Follow:
    """An answer without an end: `poll` is called in a thread again and again, and what it gives is sent.

    Between two polls that give nothing, no thread waits; a comment keeps the connection alive.
    """

    poll: Callable[[], bytes | None]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Whether there will be nothing more; asked after each piece that was sent.
    is_over: Callable[[], bool] = lambda: False
    #: Whether it reads the graph. It ends when the server reloads its cluster; the client connects again.
    of_graph: bool = False


@dataclass
class Call:
    """One request. The dispatcher fills it in step by step; `work` reads it."""

    operation: Operation
    request_id: str
    headers: Mapping[str, list[str]]
    access: Access
    actor: str | None = None
    served: ServedGraph | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    parameters: Any = None
    body: Any = None
    #: The bytes of the body, for an operation that is a conversation.
    content: bytes = b""
    #: The file that holds a streamed body.
    upload: Path | None = None
    cancel: Cancel = field(default_factory=Cancel)
    #: Seconds that a read query may take.
    timeout: float = 30.0
    #: Whether the client asked for the library's form of results and errors.
    whole: bool = False
    #: The media types that the client accepts, and how much it likes them, from 0 (not at all) to 1.
    accepts: Mapping[str, float] = field(default_factory=dict)
    #: Called with how far long work is; None when nobody wants to know.
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
        """The Idempotency-Key of the request, apart from equal keys of other actors."""
        given = self.header("idempotency-key")
        return None if given is None else f"{self.actor or ''}:{given}"

    def header(self, name: str) -> str | None:
        """The value of a header; of several the first."""
        return self.headers.get(name, [None])[0]

    def preferred(self, *forms: str) -> str | None:
        """The form that the client likes best; None for JSON, which it also gets when it likes nothing that there is.

        A form besides JSON is only given to who names it.
        """
        liked = max(forms, key=lambda form: self.accepts.get(form, 0.0))
        plain = next((self.accepts[name] for name in (JSON, "application/*", "*/*") if name in self.accepts), 0.0)
        return liked if self.accepts.get(liked, 0.0) >= max(plain, LEAST_LIKED) else None

    def check(self, need: Need) -> None:
        """Raise `Denied` unless the actor may do this; for permissions that are only known while working."""
        self.access.check(self.actor, need)

    def json(
        self, shape: Any, library: Any = None, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """An answer of JSON; `library`: the library's form of it, for clients that ask."""
        if self.whole and library is not None:
            shape = {**shape, LIBRARY: library}
        content = orjson.dumps(shape, option=orjson.OPT_NON_STR_KEYS)
        return Answer(content, status=status, headers=headers or {})


Work = Callable[[Call], Answer | Stream | Follow]
#: Work that waits for other work of its own: it runs on the event loop, and takes threads and admission for each part.
Conversation = Callable[[Call, Scope], Awaitable[Answer]]
Needs = Callable[[Call], Iterable[Need]]


def no_work(call: Call) -> Answer:
    """The work of an operation that is a conversation, which has none of its own."""
    raise AssertionError("a conversation is carried on by the dispatcher")


def no_needs(call: Call) -> Iterable[Need]:
    """Nothing has to be allowed: what is told is the same for everybody who may ask at all."""
    return ()


@dataclass(frozen=True)
class Operation:
    """One method of one path. Paths are relative to `/graphs/{graph_id}`, except those of `flat` operations."""

    name: str
    method: str
    path: str
    summary: str
    work: Work
    #: Every operation says what must be allowed; `no_needs` only where no policy has a say.
    needs: Needs
    #: Whether `needs` of a call asks the storage, so that it is called in a thread.
    needs_look_up: Callable[[Call], bool] = lambda call: False
    parameters: type[msgspec.Struct] = NoParameters
    #: How wrong parameters are named in the error.
    parameters_called: str = "query parameters"
    body: type[msgspec.Struct] | None = None
    body_called: str = "request body"
    body_optional: bool = False
    #: The only media type a body may have; None for any.
    body_type: str | None = None
    #: The body goes to a file after the request was admitted, instead of being decoded before.
    uploads: bool = False
    #: Bodies may be as large as those of loads.
    large_body: bool = False
    #: The shape of a 200 answer; a text names a media type that is no JSON.
    answers: type[msgspec.Struct] | str | tuple[type[msgspec.Struct], ...] = BYTES
    #: The statuses of this operation that not every operation can answer.
    statuses: tuple[int, ...] = ()
    #: Needs admission, and a thread of the writers.
    writes: bool = False
    #: Whether a call writes, of an operation that not always does.
    writes_now: Callable[[Call], bool] | None = None
    #: May be answered before it is done, when the client prefers that.
    can_be_job: bool = False
    #: Carried on instead of `work`.
    conversation: Conversation | None = None
    #: Holds an export slot while it streams.
    exports: bool = False
    flat: bool = False
    #: Needs no token.
    public: bool = False
    #: The operation that has taken the place of this one.
    successor: str | None = None
    #: Headers a request may have, with what they mean.
    request_headers: Mapping[str, str] = field(default_factory=dict)
    required_headers: frozenset[str] = frozenset()

    def is_write(self, call: Call) -> bool:
        """Whether a call, whose body is known, writes."""
        return self.writes if self.writes_now is None else self.writes_now(call)
