"""Reads the fields of a JSON record with type checks, because these fields decide what is published or undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Fields:
    """One JSON object; each method returns a field of one type, or raises ValueError with the field's name."""

    def __init__(self, value: object, name: str) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{name} is no object")
        self._value: dict[str, Any] = value
        self._name = name

    def text(self, field: str) -> str:
        found = self.optional_text(field)
        if not found:
            raise ValueError(f"{self._name} has no {field}")
        return found

    def optional_text(self, field: str) -> str | None:
        found = self._value.get(field)
        if found is not None and not isinstance(found, str):
            raise ValueError(f"{field} of {self._name} is no text")
        return found

    def number(self, field: str) -> int:
        found = self.optional_number(field)
        if found is None:
            raise ValueError(f"{self._name} has no {field}")
        return found

    def optional_number(self, field: str) -> int | None:
        found = self._value.get(field)
        # In Python True is an int.
        if found is not None and (type(found) is not int or found < 0):
            raise ValueError(f"{field} of {self._name} is no number from 0")
        return found

    def optional_object(self, field: str) -> dict[str, Any] | None:
        found = self._value.get(field)
        if found is not None and not isinstance(found, dict):
            raise ValueError(f"{field} of {self._name} is no object")
        return found

    def list(self, field: str) -> Sequence[Any]:
        found = self._value.get(field)
        if not isinstance(found, list):
            raise ValueError(f"{self._name} has no list of {field}")
        return found

    def optional_list(self, field: str) -> Sequence[Any]:
        return self.list(field) if self._value.get(field) is not None else ()

    def flag(self, field: str) -> bool:
        found = self._value.get(field, False)
        if not isinstance(found, bool):
            raise ValueError(f"{field} of {self._name} is neither true nor false")
        return found
