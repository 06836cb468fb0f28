"""What a call comes to, as plain data that can be compared: ids and times by the order in which they appear."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import omnigraph as og
from omnigraph.changes.model import ChangeSet
from omnigraph.client.values import BlobPlace
from omnigraph.graph.blobs import BlobValue
from omnigraph.query.result import Result
from tests.client.on_loop import OnLoop

_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
_TOKEN = re.compile(r"\bA[A-Za-z0-9_-]{60,}\b")
_ETAG = re.compile(r"^[0-9a-f]{32}$")
_TYPE_ID = re.compile(r"\b[0-9a-f]{16}-[0-9a-f]{16}\b")
_FOLDER = re.compile(r"scenario-[a-z0-9_]{8}")
#: Parts of a result that say how it was made, not what it is.
_MEASURED = {"report", "created_at", "authored_at", "seconds"}


def outcome(scenario: Callable[[Any], Any], graph: Any) -> Any:
    """What a scenario returns, or the error that it raises, with its class and data."""
    try:
        found = plain(scenario(graph))
    except og.OmnigraphError as error:
        told = {name: value for name, value in error.to_dict().items() if name not in ("file", "path")}
        found = {"raised": plain(told), "shown": str(error)}
    return _Names(graph.uri).named(found)


def plain(value: Any) -> Any:
    """A result as plain data."""
    if isinstance(value, OnLoop):
        value = value._behind
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, BlobValue | BlobPlace):
        return {"kind": value.kind, "length": value.length, "etag": value.etag, "snapshot": value.snapshot_id}
    if isinstance(value, ChangeSet) or hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items() if name not in _MEASURED}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


class _Names:
    """Stable names for what differs from graph to graph."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._known: dict[str, str] = {}

    def named(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._text(name): self.named(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.named(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        text = text.replace(self._uri, "<people>")
        for pattern in (_ULID, _TOKEN, _ETAG, _TYPE_ID, _FOLDER):
            text = pattern.sub(lambda found: self._known.setdefault(found[0], f"#{len(self._known) + 1}"), text)
        return text
