"""The rows of the merge benchmarks, alike for every system."""

from __future__ import annotations

import pyarrow as pa

SCHEMA = "node P { name: String @key a: I32? b: String? }"
CHANGED, INSERTED = 1_000, 5_000
ROUNDS = 7


def rows(names: list[str], number: int) -> pa.Table:
    """Rows under these names."""
    texts = [text_of(name) for name in names]
    return pa.table({"name": names, "a": pa.array([number] * len(names), pa.int32()), "b": texts})


def text_of(name: str) -> str:
    return f"text of {name}"


def changed_names(size: int, side: str) -> list[str]:
    """The rows that one side updates, spread over the table; the sides update different ones."""
    step = size // (2 * CHANGED)
    start = 0 if side == "f" else step // 2
    return [f"p{number * step + start:07}" for number in range(CHANGED)]


def new_names(side: str, turn: int) -> list[str]:
    """The rows that one side inserts in one round."""
    return [f"{side}{turn}-{number:05}" for number in range(INSERTED)]
