"""Which engine a load takes, and what it says about the choice."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.load import engine
from omnigraph.load.model import Progress
from omnigraph.spark.options import SparkOptions

MIB = 1 << 20
GIVEN = SparkOptions(given=object())


@pytest.mark.parametrize(
    ("size", "options", "runs", "limit", "taken", "why"),
    [
        (0, SparkOptions(), False, None, "local", "0.0 MiB of input is too little for Spark"),
        (MIB, GIVEN, True, None, "local", "1.0 MiB of input is too little for Spark"),
        (MIB + 1, SparkOptions(), True, None, "spark", "1.0 MiB of input, and a Spark session is there"),
        (MIB + 1, GIVEN, False, None, "spark", "1.0 MiB of input, and a Spark session is there"),
        (32 * MIB, SparkOptions(), False, None, "local", "32.0 MiB of input is at most 32.0 MiB"),
        (32 * MIB + 1, SparkOptions(), False, None, "spark", "32.0 MiB of input is more than 32.0 MiB"),
        (
            2 * MIB,
            SparkOptions(),
            False,
            MIB,
            "spark",
            "2.0 MiB of input is more than 1.0 MiB (OMNIGRAPH_INLINE_LOAD_BYTES)",
        ),
        (200, SparkOptions(), False, 100, "spark", "is more than 0.0 MiB"),
        (64 * MIB, SparkOptions(), False, 100 * MIB, "local", "64.0 MiB of input is at most 100.0 MiB"),
    ],
)
def test_what_auto_takes(
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    options: SparkOptions,
    runs: bool,
    limit: int | None,
    taken: str,
    why: str,
) -> None:
    monkeypatch.setattr(engine, "is_running", lambda: runs)
    if limit is not None:
        monkeypatch.setenv("OMNIGRAPH_INLINE_LOAD_BYTES", str(limit))
    found, reason = engine._automatic(size, options)
    assert found == taken
    assert reason.startswith(why) or why in reason


def test_a_limit_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_INLINE_LOAD_BYTES", "many")
    with pytest.raises(BadRequest, match="OMNIGRAPH_INLINE_LOAD_BYTES is a number, not 'many'"):
        engine.choose("auto", 1, SparkOptions())


def test_the_choice_is_told_first_and_reported(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node P { name: String @key }")
    told: list[Progress] = []
    loaded = graph.load([{"type": "P", "data": {"name": "a"}}], engine="local", progress=told.append)
    assert (told[0].stage, told[0].note) == ("engine", "local: the caller asked for it")
    assert (loaded.report.engine, loaded.report.why, loaded.report.rows) == ("local", "the caller asked for it", 1)
