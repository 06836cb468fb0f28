"""Near misses."""

from __future__ import annotations

import pytest

from omnigraph.language.source import did_you_mean, nearest_name


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        pytest.param("agee", ["age", "name"], "age", id="one-letter-more"),
        pytest.param("STRING", ["String", "Bool"], "String", id="other-letter-case"),
        pytest.param("xyz", ["age", "name"], None, id="nothing-close"),
        pytest.param("age", [], None, id="nothing-known"),
        pytest.param("", ["age"], None, id="no-name"),
        pytest.param("a" * 1_000_000, ["a" * 1_000_000], None, id="far-too-long-to-compare"),
    ],
)
def test_nearest_name(name: str, known: list[str], nearest: str | None) -> None:
    assert nearest_name(name, known) == nearest


def test_the_tail_of_a_message() -> None:
    assert did_you_mean("age") == "; did you mean `age`?"
    assert did_you_mean(None) == ""
