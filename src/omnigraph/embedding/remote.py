"""A provider that is a service elsewhere: texts are sent in batches over HTTP, within one deadline, with retries."""

from __future__ import annotations

import random
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import orjson

from omnigraph.embedding.config import Patience
from omnigraph.embedding.httpx_private import Deadlines
from omnigraph.embedding.provider import Dialect, Purpose
from omnigraph.errors import EmbeddingError

if TYPE_CHECKING:
    import httpx


#: More than the vectors of any one request, and small enough to hold.
LARGEST_ANSWER = 64 * 2**20
_SHOWN_CHARACTERS = 300
#: A shorter text is no password, and would be found inside other words.
_SHORTEST_PASSWORD = 4


@dataclass(frozen=True, slots=True)
class _Failure:
    """The failure of one attempt: its reason, whether to retry, and the seconds that the service asks to wait."""

    reason: str
    may_retry: bool
    wait: float = 0.0


@dataclass(frozen=True)
class Transport:
    """The connection to one service. `secret`, and a password inside the URL, are never shown."""

    provider: str
    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(repr=False)
    patience: Patience

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx  # costs start-up time that only those who embed should pay

        client = self._deadlines.bind(httpx.Client(headers=dict(self.headers)))
        # Calls may run when the provider is let go of; its connections are closed after the last of them.
        weakref.finalize(self, client.close)
        return client

    @cached_property
    def _deadlines(self) -> Deadlines:
        return Deadlines()

    def deadline(self) -> float:
        """The deadline of a call that starts now."""
        return time.monotonic() + self.patience.deadline_ms / 1000

    def post(self, path: str, body: Mapping[str, object], deadline: float) -> object:
        """The JSON answer to a request; EmbeddingError when there is none in time."""
        content = orjson.dumps(body)
        backoff = self.patience.retry_backoff_ms / 1000
        for attempt in range(1, self.patience.retry_attempts + 1):
            outcome = self._attempt(path, content, deadline)
            if isinstance(outcome, bytes):
                return self._decoded(outcome)
            if not outcome.may_retry or attempt == self.patience.retry_attempts:
                raise self._error(outcome.reason + (f" (attempt {attempt})" if attempt > 1 else ""))
            # Random waits, so that callers that failed together do not retry together.
            wait = max(outcome.wait, backoff * random.uniform(0.5, 1.0))
            if time.monotonic() + wait >= deadline:
                raise self._error(f"{outcome.reason}; waiting to ask again would pass {self._shown_deadline}")
            time.sleep(wait)
            backoff *= 2
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, path: str, content: bytes, deadline: float) -> bytes | _Failure:
        import httpx

        client = self._client  # making it takes time that is not the service's
        until = min(deadline, time.monotonic() + self.patience.timeout_ms / 1000)
        seconds = until - time.monotonic()
        if seconds <= 0:
            return _Failure(f"gave no answer within {self._shown_deadline}", may_retry=False)
        try:
            with (
                self._deadlines.until(until),
                client.stream(
                    "POST",
                    self.base_url + path,
                    content=content,
                    headers={"Content-Type": "application/json"},
                    timeout=seconds,
                ) as response,
            ):
                answer = _read(response, until)
        except httpx.TimeoutException:
            return self._late(deadline)
        except (httpx.TransportError, httpx.DecodingError, httpx.InvalidURL) as problem:
            may_retry = isinstance(problem, httpx.NetworkError | httpx.RemoteProtocolError)
            return _Failure(f"could not be reached: {problem or type(problem).__name__}", may_retry)
        return answer

    def _late(self, deadline: float) -> _Failure:
        if time.monotonic() >= deadline:
            return _Failure(f"gave no answer within {self._shown_deadline}", may_retry=False)
        return _Failure(f"gave no answer within the timeout of {self.patience.timeout_ms} ms", may_retry=True)

    @property
    def _shown_deadline(self) -> str:
        return f"the deadline of {self.patience.deadline_ms} ms"

    def _decoded(self, answer: bytes) -> object:
        try:
            return orjson.loads(answer)
        except orjson.JSONDecodeError:
            raise self._error(f"answered something that is not JSON: {_one_line(answer)}") from None

    def _error(self, reason: str) -> EmbeddingError:
        shown = reason
        for secret in self._secrets():
            shown = shown.replace(secret, "***")
        return EmbeddingError(
            f"embedding provider '{self.provider}' at {self.base_url} {shown}", provider=self.provider
        )

    def _secrets(self) -> Iterator[str]:
        """The secrets that a service might repeat in its answer: the key, and the password inside the URL."""
        if self.secret:
            yield self.secret
        password = urlsplit(self.base_url).password or ""
        for written in {password, unquote(password)}:
            if len(written) >= _SHORTEST_PASSWORD:
                yield written


def _read(response: httpx.Response, until: float) -> bytes | _Failure:
    """The body of an answer. The deadline is checked between its parts, since a slow service may send many."""
    import httpx

    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if time.monotonic() >= until:
            raise httpx.ReadTimeout("the answer was not complete in time")
        if len(body) > LARGEST_ANSWER:
            return _Failure(f"answered more than {LARGEST_ANSWER} bytes", may_retry=False)
    status = response.status_code
    if status == 200:
        return bytes(body)
    reason = f"answered {status} {response.reason_phrase}".rstrip()
    told = _one_line(bytes(body))
    return _Failure(
        f"{reason}: {told}" if told else reason,
        may_retry=status == 429 or status >= 500,
        wait=_retry_after(response.headers.get("retry-after", "")),
    )


def _retry_after(value: str) -> float:
    """The seconds of a `Retry-After` header (a number or a date); 0 when it has neither."""
    try:
        return max(0.0, float(value)) if value.strip().isdecimal() else _until(parsedate_to_datetime(value))
    except (ValueError, OverflowError):
        return 0.0


def _until(moment: datetime) -> float:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _one_line(body: bytes) -> str:
    """What a service says, short enough for a message; the message inside when it is the usual JSON."""
    try:
        told = orjson.loads(body)
        text = str(told["error"]["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = body[: 4 * _SHOWN_CHARACTERS].decode(errors="replace")
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "…"


@dataclass(frozen=True, slots=True)
class RemoteProvider:
    """A service, in its own dialect."""

    name: str
    model: str
    dialect: Dialect
    transport: Transport

    def embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> Sequence[object]:
        """The vectors as the service gives them."""
        deadline = self.transport.deadline()
        size = self.dialect.texts_per_request
        found: list[object] = []
        for start in range(0, len(texts), size):
            batch = texts[start : start + size]
            body = self.dialect.body(self.model, batch, dimension, purpose)
            answer = self.transport.post(self.dialect.path(self.model), body, deadline)
            found += self._vectors(answer, len(batch))
        return found

    def _vectors(self, answer: object, count: int) -> list[object]:
        try:
            vectors = self.dialect.vectors(answer)
        except (KeyError, TypeError, ValueError):
            raise EmbeddingError(
                f"embedding provider '{self.name}' answered JSON without vectors in it; check its base URL and model",
                provider=self.name,
            ) from None
        # Counted per batch, so that two wrong batches do not add up to the right number.
        if len(vectors) != count:
            raise EmbeddingError(
                f"embedding provider '{self.name}' answered {len(vectors)} vectors for {count} texts",
                provider=self.name,
            )
        return vectors
