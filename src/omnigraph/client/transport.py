"""Requests to a server: one connection pool, errors as the library's own, and retries only where a repeat is safe."""

from __future__ import annotations

import threading
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from omnigraph.errors import BadRequest, Cancelled, OmnigraphError, Unavailable
from omnigraph.query.limits import Cancel
from omnigraph.wire.failures import LIBRARY_JSON, rebuild_error

#: Seconds between the tries of a request that is safe to repeat; there is one try more than entries.
WAITS = (0.1, 0.4, 1.2)
#: The longest wait that a server may ask for before a retry is given up, in seconds.
LONGEST_WAIT = 5
#: Seconds until a connection is made, and seconds without a byte of an answer.
CONNECT_SECONDS = 10.0
READ_SECONDS = 300.0
#: How often a cancelled call looks at its flag, in seconds.
_POLL = 0.02

Content = bytes | Iterable[bytes]


class Transport:
    """The way to one graph of a server."""

    def __init__(self, url: str, graph: str, token: str | None, verify: bool | str = True) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadRequest(f"the URL of a server begins with http:// or https://, unlike '{url}'")
        self.url = url.rstrip("/")
        self.graph = graph
        headers = {"Accept": LIBRARY_JSON, "User-Agent": "omnigraph-python"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._headers = headers
        self._verify = verify
        self._client = self._new_client()

    def _new_client(self) -> httpx.Client:
        return httpx.Client(
            headers=self._headers,
            verify=self._verify,
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=20),
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def address(self, path: str) -> str:
        """The URL of a path of the graph."""
        return f"{self.url}/graphs/{quote(self.graph, safe='')}{path}"

    def flat(self, path: str) -> Any:
        """The JSON of a GET of the server itself."""
        try:
            answer = self._client.get(f"{self.url}{path}")
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        if answer.is_error:
            raise error_of(answer)
        return orjson.loads(answer.content)

    # --- whole answers ----------------------------------------------------------------------------------------------

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """The JSON of a GET, which is always safe to repeat."""
        return orjson.loads(self.request("GET", path, params=params, safe=True).content)

    def post(self, path: str, body: Any, *, safe: bool, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON of a POST with a JSON body. `safe`: whether it may be repeated when its answer was lost."""
        content = encoded(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        return orjson.loads(self.request("POST", path, content=content, headers=sent, safe=safe).content)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        content: Content | None = None,
        headers: Mapping[str, str] | None = None,
        safe: bool,
        cancel: Cancel | None = None,
    ) -> httpx.Response:
        """A whole answer; the error that the server told is raised as the library's own."""
        options: dict[str, Any] = {"params": _known(params), "content": content, "headers": headers}
        for wait in (*WAITS, None):
            try:
                answer = self._sent(method, path, options, cancel)
            except (httpx.TransportError, httpx.StreamError) as error:
                never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if wait is None or not (safe or never_sent):
                    raise self._unreachable(error) from error
            else:
                if not answer.is_error:
                    return answer
                failure = error_of(answer)
                if wait is None or not safe or not _passes(failure):
                    raise failure
            time.sleep(wait)
        raise AssertionError("the last try has returned or raised")

    def _sent(self, method: str, path: str, options: dict[str, Any], cancel: Cancel | None) -> httpx.Response:
        if cancel is None:
            return self._client.request(method, self.address(path), **options)
        return self._cancellable(method, path, options, cancel)

    def _cancellable(self, method: str, path: str, options: dict[str, Any], cancel: Cancel) -> httpx.Response:
        """A request over a connection of its own, which is closed when the call is cancelled: the server notices."""
        found: list[httpx.Response | BaseException] = []
        client = self._new_client()

        def ask() -> None:
            try:
                found.append(client.request(method, self.address(path), **options))
            except BaseException as error:
                found.append(error)

        thread = threading.Thread(target=ask, name="omnigraph-request", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                if cancel.cancelled:
                    raise Cancelled("the query was cancelled")
                thread.join(_POLL)
        finally:
            with suppress(Exception):
                client.close()
        (answer,) = found
        if isinstance(answer, BaseException):
            raise answer
        return answer

    # --- streams ----------------------------------------------------------------------------------------------------

    @contextmanager
    def stream(self, path: str, body: Any) -> Iterator[Iterator[bytes]]:
        """The pieces of a streamed answer to a POST; one that breaks off is an error, so nobody takes it for whole."""
        sent = {"Content-Type": "application/json"}
        try:
            with self._client.stream("POST", self.address(path), content=encoded(body), headers=sent) as answer:
                if answer.is_error:
                    answer.read()
                    raise error_of(answer)
                yield answer.iter_bytes()
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> Unavailable:
        return Unavailable(f"no answer from {self.url}: {error or type(error).__name__}", seconds=1)


def error_of(answer: httpx.Response) -> OmnigraphError:
    """The error of an answer; one that is no JSON is told as it is."""
    try:
        body = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict) or "error" not in body:
        body = {"error": f"server returned {answer.status_code}: {answer.text[:500]}"}
    failure = rebuild_error(answer.status_code, body)
    if "retry-after" in answer.headers and hasattr(failure, "seconds"):
        with suppress(ValueError):
            failure.seconds = int(answer.headers["retry-after"])
    return failure


def _passes(failure: OmnigraphError) -> bool:
    """Whether waiting a moment can help."""
    return isinstance(failure, Unavailable) and failure.seconds <= LONGEST_WAIT


def encoded(body: Any) -> bytes:
    """A body as JSON."""
    try:
        return orjson.dumps(body, _plain, orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise BadRequest(f"this can not be sent as JSON: {error}") from None


def _plain(value: object) -> object:
    """A value that Python programs hold, as JSON has it: bytes are a blob's text."""
    if isinstance(value, bytes | bytearray):
        return f"base64:{b64encode(value).decode()}"
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _known(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}
