"""Vectors for the records of a JSONL file: read in batches, written in the same order, other lines as they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from omnigraph.cli.embed_spec import EmbedSpec, Selector, TypeSpec
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest

Mode = Literal["fill_missing", "reembed_all", "clean"]

#: Lines that are held at a time; a provider splits their texts into requests of its own size.
LINES_AT_A_TIME = 512


@dataclass(frozen=True)
class Choice:
    """Which records are worked on: of these types (all of the spec when empty), with any of these fields."""

    types: Collection[str] = ()
    selectors: Sequence[Selector] = ()

    def takes(self, type_name: str, data: Mapping[str, Any]) -> bool:
        if self.types and type_name not in self.types:
            return False
        if not self.selectors:
            return True
        return any(
            selector.type_name in (None, type_name)
            and selector.field in data
            and _as_text(data[selector.field]) == selector.value
            for selector in self.selectors
        )


@dataclass
class Counts:
    """What was done so far."""

    records: int = 0
    selected: int = 0
    embedded: int = 0
    cleaned: int = 0


@dataclass
class _Line:
    """A line as it is, and its record when it was selected."""

    text: bytes
    record: dict[str, Any] | None = None
    spec: TypeSpec | None = None

    def written(self) -> bytes:
        if self.record is None:
            return self.text
        return json.dumps(self.record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def embed_lines(
    lines: Iterable[bytes], name: str, spec: EmbedSpec, choice: Choice, mode: Mode, embedder: Embedder, counts: Counts
) -> Iterator[bytes]:
    """The lines of a file with vectors filled in or taken out; `name` is the file's, for messages."""
    numbered = enumerate(lines, start=1)
    while batch := list(islice(numbered, LINES_AT_A_TIME)):
        read = [_read(line, f"{name}:{number}", spec, choice, counts) for number, line in batch]
        chosen = [line for line in read if line.record is not None]
        if mode == "clean":
            _clean(chosen, counts)
        else:
            _fill(chosen, spec, mode, embedder, counts)
        for line in read:
            yield line.written()


def _read(line: bytes, place: str, spec: EmbedSpec, choice: Choice, counts: Counts) -> _Line:
    stripped = line.strip()
    if not stripped or stripped.startswith(b"//"):
        return _Line(line)
    record = _parse(stripped, place)
    counts.records += 1
    type_name = record.get("type")
    if not isinstance(type_name, str) or type_name not in spec.types:
        return _Line(line)
    data = record.get("data")
    if not isinstance(data, dict):
        raise BadRequest(f"{place}: the record has no object `data`")
    if not choice.takes(type_name, data):
        return _Line(line)
    counts.selected += 1
    return _Line(line, record, spec.types[type_name])


def _parse(line: bytes, place: str) -> dict[str, Any]:
    """A line as JSON, strictly: what would be read as something else than it says is refused."""
    try:
        # The standard library keeps integers of any size, which a faster reader would round.
        record = json.loads(line.decode(), object_pairs_hook=_once, parse_constant=_refuse_constant)
        json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{place}: not valid JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadRequest(f"{place}: a record is a JSON object")
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice in one object")
    return found


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


def _clean(lines: Iterable[_Line], counts: Counts) -> None:
    for line in lines:
        assert line.record is not None
        assert line.spec is not None
        if line.spec.target in line.record["data"]:
            del line.record["data"][line.spec.target]
            counts.cleaned += 1
        else:
            line.record = None


def _fill(lines: Iterable[_Line], spec: EmbedSpec, mode: Mode, embedder: Embedder, counts: Counts) -> None:
    wanted: list[tuple[dict[str, Any], str, str]] = []
    for line in lines:
        assert line.record is not None
        assert line.spec is not None
        data = line.record["data"]
        text = None if mode == "fill_missing" and data.get(line.spec.target) else _text_of(data, line.spec)
        if text is None:
            line.record = None
        else:
            wanted.append((data, line.spec.target, text))
    if not wanted:
        return
    vectors = embedder.embed_documents([text for _, _, text in wanted], spec.dimension)
    for (data, target, _), vector in zip(wanted, vectors, strict=True):
        data[target] = vector.tolist()
    counts.embedded += len(wanted)


def _text_of(data: Mapping[str, Any], spec: TypeSpec) -> str | None:
    """The text of a record: of one field as it is, of several as `name: text` lines; None when there is none."""
    given = {name: _as_text(data[name]) for name in spec.fields if data.get(name) is not None}
    if not any(text.strip() for text in given.values()):
        return None
    if len(spec.fields) == 1:
        return given[spec.fields[0]]
    return "\n".join(f"{name}: {text}" for name, text in given.items())


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
