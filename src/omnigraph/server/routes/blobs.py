"""Blob values over HTTP: ranges, conditions, and redirects to external values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import BlobRangeNotSatisfiable
from omnigraph.graph.blobs import LONGEST_RANGE, BlobValue
from omnigraph.server import bodies
from omnigraph.server.operation import BYTES, Answer, Call, Operation, Stream, Work
from omnigraph.server.routes.reads import names_snapshot, read_target
from omnigraph.server.routes.sources import named
from omnigraph.wire.failures import Refused

_RANGE = re.compile(r"bytes=(?P<first>[0-9]*)-(?P<last>[0-9]*)")
_TAG = re.compile(r'\s*(?P<weak>W/)?"(?P<tag>[^"]*)"\s*')
#: Positions with more digits count as the largest position; Python refuses to convert very many digits.
_MOST_DIGITS = 18


@dataclass(frozen=True)
class Span:
    """Bytes `start` to `end` (exclusive) of a value; `partial` when a range was asked for."""

    start: int
    end: int
    partial: bool


def _get(call: Call) -> Answer | Stream:
    value = _value(call)
    if value.length is None:
        return _elsewhere(value)
    headers = _headers(value)
    if (unmodified := _condition(call, value, headers)) is not None:
        return unmodified
    span = _span(call, value.length, f'"{value.etag}"')
    headers["Content-Length"] = str(span.end - span.start)
    if span.partial:
        headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{value.length}"
    status = 206 if span.partial else 200
    return Stream(_pieces(value, span), BYTES, status, headers)


def _head(call: Call) -> Answer:
    value = _value(call)
    if value.length is None:
        return _elsewhere(value)
    headers = _headers(value)
    if (unmodified := _condition(call, value, headers)) is not None:
        return unmodified
    return Answer(b"", BYTES, headers=headers | {"Content-Length": str(value.length)})


def _value(call: Call) -> BlobValue:
    asked: bodies.BlobParameters = call.parameters
    branch = named(asked.branch) if asked.snapshot is None else None
    return call.graph.read_blob(
        asked.entity, asked.type, asked.id, asked.property, branch=branch, snapshot=asked.snapshot
    )


def _headers(value: BlobValue) -> dict[str, str]:
    return {"Accept-Ranges": "bytes", "ETag": f'"{value.etag}"', "Omnigraph-Snapshot-Id": value.snapshot_id}


def _elsewhere(value: BlobValue) -> Answer:
    """A redirect to an external value, which the server never fetches itself."""
    headers = {
        "Location": value.uri or "",
        "Cache-Control": "no-store",
        "Omnigraph-Snapshot-Id": value.snapshot_id,
    }
    return Answer(b"", None, 302, headers)


def _condition(call: Call, value: BlobValue, headers: dict[str, str]) -> Answer | None:
    """The answer when a condition ends the request, else None: If-Match (strong) first, then If-None-Match (weak)."""
    wanted = ",".join(call.headers.get("if-match", []))
    if wanted and not _matches(wanted, value.etag, strong=True):
        raise Refused("the value has another ETag than If-Match names", status=412, headers=headers)
    known = ",".join(call.headers.get("if-none-match", []))
    if known and _matches(known, value.etag, strong=False):
        return Answer(b"", None, 304, headers)
    return None


def _matches(header: str, etag: str | None, *, strong: bool) -> bool:
    """Whether a list of entity tags contains the tag; `*` contains every tag."""
    if header.strip() == "*":
        return True
    tags = (_TAG.fullmatch(item) for item in header.split(","))
    return any(found is not None and found["tag"] == etag and not (strong and found["weak"]) for found in tags)


def _span(call: Call, length: int, etag: str) -> Span:
    """The requested bytes: a single valid range, else all bytes."""
    whole = Span(0, length, partial=False)
    if_range = call.headers.get("if-range")
    if if_range is not None and if_range != [etag]:
        return whole
    given = call.headers.get("range", [])
    found = _RANGE.fullmatch(given[0].strip()) if len(given) == 1 else None
    if found is None or not (found["first"] or found["last"]):
        return whole
    if not found["first"]:
        last = _position(found["last"])
        if last == 0 or length == 0:
            raise _unsatisfiable(length, length, length)
        return Span(max(0, length - last), length, partial=True)
    first = _position(found["first"])
    end = min(_position(found["last"]) + 1, bodies.LARGEST) if found["last"] else length
    if end <= first < bodies.LARGEST and found["last"]:
        return whole
    if first >= length:
        raise _unsatisfiable(first, end, length)
    return Span(first, min(end, length), partial=True)


def _position(digits: str) -> int:
    """The number of some digits; too many digits give the largest number that an answer can hold."""
    meant = digits.lstrip("0") or "0"
    return int(meant) if len(meant) <= _MOST_DIGITS else bodies.LARGEST


def _unsatisfiable(start: int, end: int, length: int) -> BlobRangeNotSatisfiable:
    return BlobRangeNotSatisfiable(
        f"bytes from {start} are not within the {length} bytes of this blob", start=start, end=end, length=length
    )


def _pieces(value: BlobValue, span: Span) -> Iterator[bytes]:
    for start in range(span.start, span.end, LONGEST_RANGE):
        yield value.read(start, min(start + LONGEST_RANGE, span.end))


_CONDITIONS = {
    "If-Match": "Only while the value has one of these entity tags.",
    "If-None-Match": "Only while the value has none of these entity tags.",
}


def _operation(name: str, method: str, summary: str, work: Work, statuses: tuple[int, ...], **more: Any) -> Operation:
    return Operation(
        name,
        method,
        "/blob",
        summary,
        work,
        read_target,
        needs_look_up=names_snapshot,
        parameters=bodies.BlobParameters,
        parameters_called="Blob selector query parameters",
        answers=BYTES,
        statuses=statuses,
        **more,
    )


OPERATIONS = [
    _operation(
        "get_blob",
        "GET",
        "The bytes of a blob value.",
        _get,
        (206, 302, 304, 404, 410, 412, 416),
        request_headers=_CONDITIONS
        | {"Range": "One range of bytes.", "If-Range": "The strong entity tag for which the range is meant."},
    ),
    _operation(
        "head_blob", "HEAD", "The size of a blob value.", _head, (302, 304, 404, 410, 412), request_headers=_CONDITIONS
    ),
]
