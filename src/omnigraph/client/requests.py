"""Requests and answers as data, without any input or output.

A verb is a generator (`Ask`): it yields a `Request`, is sent the `Answer` to it, and returns the result. `transport` carries
verbs out, blocking or with `await`; both judge outcomes with `judged`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import orjson

from omnigraph.client.sending import encoded
from omnigraph.errors import BadRequest, OmnigraphError, Unavailable
from omnigraph.ids import new_ulid
from omnigraph.query.limits import Cancel
from omnigraph.wire.failures import rebuild_error

#: Seconds between the tries of a request that is safe to repeat; there is one try more than entries.
WAITS = (0.1, 0.4, 1.2)
#: The longest wait that a server may ask for before a retry is given up, in seconds.
LONGEST_WAIT = 5

_HEADER_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")

Found = TypeVar("Found")


@dataclass(frozen=True)
class Request:
    """One request to a graph of a server; `path` is below that of the graph, unless it is `flat`."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    #: The body; one that is streamed is made anew each time it is sent.
    content: bytes | Callable[[], Iterator[bytes]] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Whether it may be repeated when its answer was lost.
    safe: bool = True
    cancel: Cancel | None = None
    #: Takes the pieces of the body of the answer while they come; what it returns is `Answer.consumed`.
    consume: Callable[[Iterator[bytes]], Any] | None = None
    flat: bool = False


@dataclass(frozen=True)
class Answer:
    """A whole answer: its status, its headers (names in lower case), and its body, or what was made of it."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    consumed: Any = None

    @property
    def json(self) -> Any:
        return orjson.loads(self.content)


Ask = Generator[Request, Answer, Found]


def get(path: str, params: Mapping[str, Any] | None = None, *, flat: bool = False) -> Ask[Any]:
    """The JSON of a GET; parameters that are None are left out."""
    answer = yield Request("GET", path, params=_known(params or {}), flat=flat)
    return answer.json


def post(path: str, body: Any, headers: Mapping[str, str] | None = None, **more: Any) -> Request:
    """A POST with a JSON body that is safe to repeat: it reads, or it has an idempotency key."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    return Request("POST", path, content=encoded(body), headers=sent, **more)


def put(path: str, body: Any, headers: Mapping[str, str]) -> Request:
    """A PUT with a JSON body and an idempotency key, so that it is safe to repeat."""
    return Request("PUT", path, content=encoded(body), headers={"Content-Type": "application/json", **headers})


def keyed(idempotency_key: str | None = None, headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Headers that make a repeat of a write harmless: the caller's key, or one that is made for this request."""
    key = new_ulid() if idempotency_key is None else in_header("an idempotency key", idempotency_key)
    return {"Idempotency-Key": key, **(headers or {})}


def in_header(what: str, text: object) -> str:
    """A text that goes as a header; BadRequest for what a header can not carry."""
    if not isinstance(text, str):
        raise BadRequest(f"{what} is a text, not {text!r}")
    if not _HEADER_VALUE.fullmatch(text):
        raise BadRequest(f"{what} goes to a server as visible characters of ASCII, at least one, not as {text[:40]!r}")
    return text


def segment(text: str) -> str:
    """A name as one part of a path."""
    escaped = quote(str(text), safe="")
    # Parts of dots only would be taken for steps in the path.
    return escaped.replace(".", "%2E") if escaped in (".", "..") else escaped


def judged(request: Request, outcome: Answer | Exception, number: int, url: str) -> Answer | float:
    """The outcome of a try: the answer, or the seconds to wait before the next try. Raises the error that it ends with.

    `number`: how many tries there were before.
    """
    wait = WAITS[number] if number < len(WAITS) else None
    if isinstance(outcome, Exception):
        never_sent = isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        if wait is None or not (request.safe or never_sent):
            raise unreachable(url, outcome) from outcome
        return wait
    if outcome.status < 400:
        return outcome
    failure = error_of(outcome)
    passes = isinstance(failure, Unavailable) and failure.seconds <= LONGEST_WAIT
    if wait is None or not request.safe or not passes:
        raise failure
    return wait


def unreachable(url: str, error: Exception) -> Unavailable:
    """The error of a server that gives no answer, or breaks one off."""
    hint = ""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        hint = "; set SSL_CERT_FILE to a file with the certificate of whoever has signed the server's"
    return Unavailable(f"no answer from {url}: {error or type(error).__name__}{hint}", seconds=1)


def error_of(answer: Answer) -> OmnigraphError:
    """The error of an answer; one that is no JSON is told as it is."""
    try:
        body = answer.json
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict) or "error" not in body:
        shown = answer.content[:500].decode(errors="replace")
        body = {"error": f"server returned {answer.status}: {shown}"}
    failure = rebuild_error(answer.status, body)
    if "retry-after" in answer.headers and hasattr(failure, "seconds"):
        with suppress(ValueError):
            failure.seconds = int(answer.headers["retry-after"])
    return failure


def _known(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
