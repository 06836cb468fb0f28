"""Reading requests: parameters, bodies and headers; every limit is checked before anything is parsed."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from omnigraph.errors import BadRequest, ResourceLimit
from omnigraph.server.operation import Call, Operation
from omnigraph.server.settings import Limits
from omnigraph.wire.failures import Refused

Receive = Callable[[], Any]
Parsed = TypeVar("Parsed")

_QUALITY = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")
#: More parameters than any route has.
_MOST_PARAMETERS = 256


class ClientGone(Exception):
    """The client has closed the connection."""


def read_parameters(operation: Operation, query_string: bytes) -> Any:
    """The query parameters as the operation's type; a parameter may be repeated only where a list is expected."""
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS
        )
    except (UnicodeDecodeError, ValueError):
        raise BadRequest(f"invalid {operation.parameters_called}: they are not readable") from None
    lists = _list_fields(operation.parameters)
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise BadRequest(f"invalid {operation.parameters_called}: '{name}' is given twice")
        else:
            found[name] = value
    try:
        return msgspec.convert(found, operation.parameters, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(f"invalid {operation.parameters_called}: {_lower(str(error))}") from None


def _list_fields(parameters: type[msgspec.Struct]) -> set[str]:
    about = msgspec.inspect.type_info(parameters)
    assert isinstance(about, msgspec.inspect.StructType)
    return {field.encode_name for field in about.fields if isinstance(field.type, msgspec.inspect.ListType)}


def accepted(headers: Sequence[str]) -> dict[str, float]:
    """The media types of Accept headers with their quality values; an unreadable quality counts as 0."""
    found: dict[str, float] = {}
    for item in ",".join(headers).split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        if name:
            found[name] = next((_quality(text[2:]) for text in parameters if text.startswith("q=")), 1.0)
    return found


def _quality(text: str) -> float:
    return float(text) if _QUALITY.fullmatch(text) else 0.0


def check_media_type(operation: Operation, call: Call) -> None:
    """Raise an error for a compressed body, and for a media type that the operation does not accept."""
    if (call.header("content-encoding") or "identity").strip().lower() != "identity":
        # A small compressed body may decompress to any size, which no limit here would count.
        raise BadRequest("the body of a request is not compressed; send it as it is, without Content-Encoding")
    given = (call.header("content-type") or "").partition(";")[0].strip().lower()
    if operation.body_type is not None and given != operation.body_type:
        raise Refused(f"the Content-Type of this route is {operation.body_type}", status=415)


def decode_body(operation: Operation, content: bytes) -> Any:
    """A JSON body as the operation's type."""
    assert operation.body is not None
    if not content.strip() and operation.body_optional:
        return operation.body()
    try:
        return msgspec.json.decode(content, type=operation.body)
    except msgspec.ValidationError as error:
        raise BadRequest(f"invalid {operation.body_called}: {_lower(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else _lower(str(error))
        raise BadRequest(f"invalid {operation.body_called}: {reason}") from None


def _lower(text: str) -> str:
    """A text with a lower-case first letter, except for an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def body_limit(operation: Operation, limits: Limits) -> int:
    """The most bytes of a body of this operation."""
    return limits.load_bytes if operation.large_body or operation.uploads else limits.body_bytes


def announced_size(call: Call, limit: int) -> int | None:
    """The Content-Length of a request, None without one; raises an error when it exceeds the limit."""
    given = call.header("content-length")
    if given is None:
        return None
    if not given.isdecimal() or len(given) > 18:
        raise BadRequest("the Content-Length is no number")
    if int(given) > limit:
        raise _too_large(limit, int(given))
    return int(given)


async def body_parts(receive: Receive, limit: int, seconds: float, rate: int | None = None) -> AsyncIterator[bytes]:
    """The parts of a body as they arrive, counted; raises an error when the sender pauses for longer than `seconds`.
    `rate`: after these seconds, also when the sender's average is below so many bytes a second.
    """
    clock = asyncio.get_running_loop().time
    taken, began = 0, clock()
    while True:
        left = None if rate is None else began + seconds + taken / rate - clock()
        try:
            async with asyncio.timeout(seconds if left is None else min(seconds, max(left, 0.0))):
                message = await receive()
        except TimeoutError:
            if left is not None and left < seconds:
                raise Refused(f"the body comes slower than {rate} bytes a second", status=408) from None
            raise Refused(f"no part of the body arrived within {seconds:g} s", status=408) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        part: bytes = message.get("body", b"")
        taken += len(part)
        if taken > limit:
            raise _too_large(limit, taken)
        if part:
            yield part
        if not message.get("more_body", False):
            return


async def whole_body(receive: Receive, limit: int, limits: Limits) -> bytes:
    """The whole body."""
    parts = body_parts(receive, limit, limits.receive_seconds, limits.receive_rate)
    return b"".join([part async for part in parts])


async def spooled_body(receive: Receive, limit: int, seconds: float, folder: Path) -> Path:
    """The path of a file with the body, written as it arrives, so that memory does not grow with its size."""
    descriptor, name = tempfile.mkstemp(prefix="body-", suffix=".jsonl", dir=folder)
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            async for part in body_parts(receive, limit, seconds):
                # Written on the event loop: it goes to the page cache, and a thread for each part would cost more.
                file.write(part)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def timeout_of(call: Call, most: float) -> float:
    """The timeout of a request in seconds: `Omnigraph-Timeout-Ms`, at most `most`."""
    given = call.header("omnigraph-timeout-ms")
    if given is None:
        return most
    if not given.isdecimal() or not 0 < len(given) < 10 or int(given) == 0:
        raise BadRequest(f"Omnigraph-Timeout-Ms is a whole number of milliseconds above 0, not '{given[:40]}'")
    return min(int(given) / 1000, most)


def check_idempotency_key(call: Call) -> None:
    """Raise BadRequest unless the Idempotency-Key is a single printable text of at most 255 characters."""
    given = call.headers.get("idempotency-key", [])
    if not given:
        return
    if len(given) > 1 or not 0 < len(given[0]) <= 255 or not given[0].isprintable():
        raise BadRequest("an Idempotency-Key is given once and has 1 to 255 printable characters")


def _too_large(limit: int, actual: int) -> ResourceLimit:
    return ResourceLimit(
        f"a body of this route has at most {limit} bytes", resource="request_body_bytes", limit=limit, actual=actual
    )
