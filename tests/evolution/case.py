"""A pair of schemas as data: what lies between them, what becomes of the rows, and what is refused with which code.

Each pair starts from the graph of `BEFORE` (or its own), with its rows or without. `rows` in a case are what a type shows
afterwards; types that a case does not name keep what they had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.evolution.people import BEFORE, ROWS, Shown


@dataclass(frozen=True)
class Case:
    """One pair. `steps`: kinds of the plan's steps, with the code where there is one. `broken`: kind and an id in the way."""

    id: str
    after: str
    steps: tuple[str, ...]
    rows: Shown = field(default_factory=dict)
    broken: tuple[str, str | None] | None = None
    before: str = BEFORE
    load: str = ROWS
    #: What an empty graph makes of it, where that differs.
    empty_steps: tuple[str, ...] | None = None
    #: A write that only the new schema takes.
    write: str | None = None

    @property
    def write_joins(self) -> bool:
        """Whether the write joins nodes that must be there."""
        return "from:" in (self.write or "")

    @property
    def refused(self) -> tuple[str, ...]:
        return codes(self.steps)


def codes(steps: Sequence[str]) -> tuple[str, ...]:
    """The codes of the refused steps."""
    return tuple(step.partition(" ")[2] for step in steps if step.startswith("unsupported_change"))


def refused(code: str) -> tuple[str, ...]:
    """The steps of a pair that is refused with one code."""
    return (f"unsupported_change {code}",)
