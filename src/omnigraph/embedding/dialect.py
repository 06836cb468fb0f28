"""How a service is asked for vectors over HTTP: the one thing in which the remote providers differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from omnigraph.embedding.provider import Purpose


class Body(Protocol):
    """Makes the JSON body of one request."""

    def __call__(self, model: str, texts: Sequence[str], dimension: int, purpose: Purpose) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """A service's requests and answers. `vectors` raises KeyError, TypeError or ValueError on an answer of another shape."""

    path: Callable[[str], str]
    headers: Callable[[str], Mapping[str, str]]
    body: Body
    vectors: Callable[[object], list[object]]
    texts_per_request: int


def member(value: object, name: str) -> object:
    """A member of what should be a JSON object."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object with '{name}'")
    return value[name]


def items(value: object) -> list[object]:
    """The items of what should be a JSON array."""
    if not isinstance(value, list):
        raise TypeError("expected an array")
    return value
