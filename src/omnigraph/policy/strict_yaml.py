"""Reading hand-written YAML files as plain data; duplicate keys are refused."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import yaml

from omnigraph.errors import BadRequest


class DuplicateKey(BadRequest):
    """A mapping of a YAML file has a duplicate key; `key` is its text, `line` counts from 1."""

    def __init__(self, message: str, *, key: str, line: int) -> None:
        super().__init__(message)
        self.key = key
        self.line = line


if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    # PyYAML's C parser if available: the Python parser takes seconds for a long policy.
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):
    """PyYAML's safe loader, which would let the last of two equal keys win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a text", key_node.start_mark)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise DuplicateKey(f"duplicate key '{key}' in line {line}", key=str(key), line=line)
            seen.add(key)
        made: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return made


def read_yaml(text: str) -> object:
    """The plain data of a YAML text; raises BadRequest with the error and its place in one line."""
    try:
        _refuse_depth(text)
        value = yaml.load(text, _Loader)
        _count(value, {}, set())
    except yaml.MarkedYAMLError as error:
        place = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 1}"
        raise BadRequest(f"not valid YAML{place}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise BadRequest(f"not valid YAML: {str(error).partition(chr(10))[0]}") from None
    return value


#: The nesting limit, deeper than any of our files; the C parser recurses without a guard.
_MOST_DEPTH = 50


def _refuse_depth(text: str) -> None:
    """Raise ValueError for a text that is nested too deeply; it is read event by event, only as far as needed."""
    depth = 0
    for event in yaml.parse(text, _SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_DEPTH:
            raise ValueError("nested too deeply")


#: The limit of values, more than any of our files has; a few references (`*name`) can expand to very many values.
_MOST_VALUES = 100_000


def _count(value: object, known: dict[int, int], inside: set[int]) -> int:
    """The number of values with all references expanded; raises ValueError for too many, or for a cyclic reference."""
    if not isinstance(value, dict | list):
        if isinstance(value, str):
            _refuse_halves(value)
        return 1
    if id(value) in inside:
        raise ValueError("a value refers to itself")
    if id(value) not in known:
        inside.add(id(value))
        parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count(part, known, inside) for part in parts)
        inside.remove(id(value))
    if known[id(value)] > _MOST_VALUES:
        raise ValueError(f"it has more than {_MOST_VALUES} values")
    return known[id(value)]


def _refuse_halves(text: str) -> None:
    """Raise an error for half a surrogate pair, such as the escape `\\ud800`, which no file or request can contain."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("a text has an escape that is no character")


def mapping_of(value: object, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    """A mapping with known keys only; raises BadRequest with the first unknown key."""
    if not isinstance(value, dict):
        raise BadRequest(f"{what} must be a mapping")
    for key in value:
        if key not in known:
            raise BadRequest(
                f"{what}: unknown field `{key}`, expected one of {', '.join(f'`{name}`' for name in known)}"
            )
    return value
