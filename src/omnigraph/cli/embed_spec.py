"""What `omnigraph embed` is told: which files, which properties of which types, and which records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.sources import read_source
from omnigraph.errors import BadRequest
from omnigraph.language.source import did_you_mean, nearest_name


@dataclass(frozen=True)
class TypeSpec:
    """A type: the property that gets the vector, and the properties whose texts it is made of."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class EmbedSpec:
    """All types, the number of components of their vectors, and the model, when it is not the configured one."""

    dimension: int
    types: Mapping[str, TypeSpec]
    model: str | None = None


@dataclass(frozen=True)
class Job:
    """One run: from a file to a file."""

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
    """A type that the spec does not know would silently select nothing."""
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
