"""The format of `apoc.export.json.all`: one node or relationship as a JSON object on each line, maybe compressed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from omnigraph.errors import BadRequest
from omnigraph.integrations.neo4j.model import (
    End,
    Foreign,
    ForeignEdge,
    ForeignFile,
    ForeignNode,
    Labels,
    Problems,
    is_point,
    without_points,
)
from omnigraph.integrations.proposal import Note
from omnigraph.load.parsed import LONGEST_LINE
from omnigraph.load.text import CompressedText, compression_of
from omnigraph.storage.files import InputFile

_WINDOW = 8 << 20
_BOM = b"\xef\xbb\xbf"
_KNOWN = {"type", "id", "labels", "label", "properties", "start", "end"}


@dataclass
class ApocFile:
    """One file of JSON lines."""

    file: InputFile
    #: Fields beside the known ones, which are passed over and told about.
    other_fields: set[str] = field(default_factory=set)
    #: Properties that are points.
    points: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.file.name

    def entities(self, problems: Problems) -> Iterator[Foreign]:
        for number, line in enumerate(_lines(self.file), start=1):
            if not line or line.isspace():
                continue
            try:
                yield self._entity(number, orjson.loads(line))
            except orjson.JSONDecodeError as error:
                problems.add(self.name, number, _unreadable(line, error))
            except ValueError as error:
                problems.add(self.name, number, str(error))

    def _entity(self, number: int, value: Any) -> Foreign:
        if not isinstance(value, dict):
            raise ValueError("a line is an object of a node or a relationship; export with jsonFormat: 'JSON_LINES'")
        if not value.keys() <= _KNOWN:
            self.other_fields |= value.keys() - _KNOWN
        properties = value.get("properties") or {}
        if not isinstance(properties, dict):
            raise ValueError("`properties` is not an object")
        self.points |= {name for name, held in properties.items() if is_point(held)}
        kind = value.get("type")
        if kind == "node":
            return ForeignNode(number, _id(value), _labels(value.get("labels") or []), without_points(properties))
        if kind == "relationship":
            label = value.get("label")
            if not isinstance(label, str) or not label:
                raise ValueError("a relationship without a `label`")
            return ForeignEdge(number, label, _end(value, "start"), _end(value, "end"), without_points(properties))
        raise ValueError(
            f'`type` is "node" or "relationship", not {orjson.dumps(kind).decode()[:40]}; lines are those of apoc.export.json.all'
        )


@dataclass
class ApocDump:
    """Files that `apoc.export.json.all` wrote."""

    apoc_files: Sequence[ApocFile]
    key: str = "neo4j_id"

    @property
    def files(self) -> Sequence[ForeignFile]:
        return self.apoc_files

    def key_of(self, space: str) -> str:
        return self.key

    def notes(self) -> list[Note]:
        notes = [
            Note("relationships", "the internal ids of relationships are not kept; nodes keep theirs as their key")
        ]
        fields = sorted(set().union(*(file.other_fields for file in self.apoc_files)))
        if fields:
            notes.append(Note("lines", f"fields that are no part of the format are left out: {', '.join(fields)}"))
        for name in sorted(set().union(*(file.points for file in self.apoc_files))):
            notes.append(Note(f"property {name!r}", "points are kept as one property for each coordinate"))
        return notes


def _id(value: dict[str, Any]) -> str:
    found = value.get("id")
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise ValueError("an entity without an `id`")
    return str(found)


def _labels(value: object) -> Labels:
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        raise ValueError("`labels` is not a list of texts")
    return tuple(sorted(set(value)))


def _end(value: dict[str, Any], which: str) -> End:
    end = value.get(which)
    if not isinstance(end, dict):
        raise ValueError(f"a relationship without `{which}`")
    # No labels is what an export of bare ids has; the node itself says them.
    labels = end.get("labels")
    return End(_id(end), labels=_labels(labels) if labels else None)


def _unreadable(line: bytes, error: orjson.JSONDecodeError) -> str:
    """Why a line can not be read: an encoding that is not UTF-8 makes JSON of nothing."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as wrong:
        return f"this line is not UTF-8 text (byte {wrong.start + 1}); change the encoding of the file to UTF-8"
    return f"this line is not JSON: {error.msg} at column {error.colno}{_form(line)}"


def _form(line: bytes) -> str:
    if line.lstrip()[:1] == b"[":
        return "; this is an export with jsonFormat: 'ARRAY_JSON', export with 'JSON_LINES'"
    return ""


def _lines(file: InputFile) -> Iterator[bytes]:
    compression = compression_of(file)
    if compression is not None:
        for window in CompressedText(file, compression, 0).windows():
            yield from window.removesuffix(b"\n").split(b"\n")
        return
    rest = b""
    with file.opened() as opened:
        first = True
        while data := bytes(opened.read(_WINDOW)):
            data = data.removeprefix(_BOM) if first else data
            first = False
            *whole, rest = (rest + data).split(b"\n")
            if len(rest) > LONGEST_LINE:
                raise BadRequest(
                    f"{file.name} has a line of more than {LONGEST_LINE >> 20} MiB; it is no file of JSON lines"
                )
            yield from whole
    if rest:
        yield rest
