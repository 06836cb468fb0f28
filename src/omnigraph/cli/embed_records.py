"""Vectors for the records of a JSONL file: read in batches, written in the same order, other lines as they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click

from omnigraph.cli.sources import read_source
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest
from omnigraph.language.source import did_you_mean, nearest_name


@dataclass(frozen=True)
class TypeSpec:
    """The embedding of a type: the property for the vector, and the properties with the embedded texts."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class EmbedSpec:
    """The embeddings of all types, the number of components of the vectors, and the model (None: the configured model)."""

    dimension: int
    types: Mapping[str, TypeSpec]
    model: str | None = None


@dataclass(frozen=True)
class Job:
    """One run, from an input file to an output file."""

    source: Path
    target: Path
    spec: EmbedSpec


@dataclass(frozen=True)
class Selector:
    """`[TYPE:]FIELD=VALUE`: records whose field has this text, of one type or of any."""

    type_name: str | None
    field: str
    value: str


def job_of_manifest(path: str) -> Job:
    """The job that a seed manifest describes; its paths are relative to the manifest."""
    import yaml

    try:
        document = yaml.safe_load(read_source(path))
    except yaml.YAMLError as error:
        raise BadRequest(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    try:
        given = _mapping(document, "the manifest")
        source = _text(_mapping(given.get("sources"), "sources"), "raw_seed", "sources")
        target = _text(_mapping(given.get("artifacts"), "artifacts"), "embedded_seed", "artifacts")
        spec = _spec(_mapping(given.get("embeddings"), "embeddings"), "embeddings.")
    except ValueError as problem:
        raise BadRequest(f"{path}: {problem}") from None
    folder = Path(path).parent
    return Job(folder / source, folder / target, spec)


def read_spec(given: str) -> EmbedSpec:
    """The spec that `--spec` gives: a JSON object, or a file that holds one."""
    import orjson

    text, where = (given, "--spec") if given.lstrip().startswith("{") else (read_source(given), given)
    try:
        return _spec(_mapping(orjson.loads(text), "the spec"), "")
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{where} is not valid JSON: {error}") from None
    except ValueError as problem:
        raise BadRequest(f"{where}: {problem}") from None


def read_selectors(texts: Sequence[str]) -> tuple[Selector, ...]:
    """The selectors of one call."""
    return tuple(map(_selector, texts))


def refuse_unknown_types(spec: EmbedSpec, names: Collection[str]) -> None:
    """Raise an error for a selector with a type that the spec does not have, since it would select nothing."""
    for name in names:
        if name not in spec.types:
            hint = did_you_mean(nearest_name(name, spec.types)) or f"; it has {', '.join(spec.types)}"
            raise BadRequest(f"the spec has no type '{name}'{hint}")


def _selector(text: str) -> Selector:
    place, equals, value = text.partition("=")
    type_name, colon, field = place.rpartition(":")
    if not equals or not field or (colon and not type_name):
        raise click.UsageError(f"--select '{text}' is not [TYPE:]FIELD=VALUE")
    return Selector(type_name or None, field, value)


def _spec(given: Mapping[str, Any], where: str) -> EmbedSpec:
    dimension = given.get("dimension")
    if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1:
        raise ValueError(f"{where}dimension is the number of components of a vector, 1 or more, not {dimension!r}")
    types = _mapping(given.get("types"), f"{where}types")
    if not types:
        raise ValueError(f"{where}types must name at least one type")
    model = None if given.get("model") is None else _text(given, "model", where.rstrip("."))
    return EmbedSpec(
        dimension, {name: _type_spec(entry, f"{where}types.{name}") for name, entry in types.items()}, model
    )


def _type_spec(entry: object, where: str) -> TypeSpec:
    given = _mapping(entry, where)
    fields = given.get("fields")
    if not isinstance(fields, list) or not fields or not all(isinstance(name, str) and name for name in fields):
        raise ValueError(f"{where}.fields is a list of property names, not {fields!r}")
    target = _text(given, "target", where)
    if target in fields:
        raise ValueError(f"{where}.target can not be one of its fields")
    return TypeSpec(target, tuple(fields))


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a mapping, not {value!r}")
    return {str(key): item for key, item in value.items()}


def _text(given: Mapping[str, Any], key: str, where: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{f'{where}.' if where else ''}{key} must be a text, not {value!r}")
    return value


Mode = Literal["fill_missing", "reembed_all", "clean"]

#: How many lines are held at a time; a provider splits their texts into its own requests.
LINES_AT_A_TIME = 512


@dataclass(frozen=True)
class Choice:
    """The selected records: of these types (empty: all types of the spec), with any of these field values."""

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
    """The counts so far."""

    records: int = 0
    selected: int = 0
    embedded: int = 0
    cleaned: int = 0


@dataclass
class _Line:
    """A line of the file, and its record if it is selected, else None."""

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
    """A line as strictly parsed JSON; ambiguous input is refused."""
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
