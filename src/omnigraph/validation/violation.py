"""A broken rule, as data; writers turn it into the error of their own kind."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import ValidationError


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule. `row` is the position in the batch that was checked, where there is one."""

    kind: str
    type_key: str
    message: str
    property: str | None = None
    row: int | None = None
    entity_id: str | None = None

    def to_error(self) -> ValidationError:
        """The error a single write raises for it."""
        return ValidationError(
            self.message, kind=self.kind, type_key=self.type_key, property=self.property, entity_id=self.entity_id
        )
