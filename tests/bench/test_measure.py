"""The benchmark framework: medians, ratios, goals, the table and the choice of benchmarks."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.measure import BENCHMARKS, Floor, Measure, Row, benchmark, summary, timed
from bench.results import keep
from bench.table import machine, moment, render

MS = Measure(2e-3, 1e-3, 4e-3)


def _one_row(name: str) -> list[Row]:
    return [Row(f"row of {name}", MS)]


def test_a_summary_is_the_median_with_its_spread() -> None:
    assert summary([5.0, 1.0, 3.0], "rows") == Measure(3.0, 1.0, 5.0, "rows")


def test_warm_up_runs_are_not_counted() -> None:
    calls: list[int] = []
    measure = timed(lambda: calls.append(1), repeat=4, warm_up=3)
    assert len(calls) == 7
    assert 0 <= measure.low <= measure.median <= measure.high


@pytest.mark.parametrize(
    ("goal", "met"), [(None, None), (2e-3, True), (1.9e-3, False)], ids=["no-goal", "met", "missed"]
)
def test_a_goal_is_met_by_the_median(goal: float | None, met: bool | None) -> None:
    assert Row("x", MS, goal=goal).met is met


def test_the_ratio_is_ours_over_the_floor() -> None:
    assert Row("x", MS, Floor("f", Measure(5e-4, 0, 1))).ratio == 4
    assert Row("x", MS).ratio is None


def test_the_table_shows_every_column_in_fitting_units() -> None:
    table = render([
        Row("fast", MS, Floor("floor", Measure(5e-4, 0, 1)), goal=3e-3),
        Row("slow", Measure(2.0, 1.5, 3.0), goal=1.0),
        Row("requests", Measure(7, 7, 7, "requests")),
    ])  # fmt: skip
    header, rule, fast, slow, requests = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    )
    assert header == ["what", "ours", "spread", "floor or peer", "ratio", "goal", "met"]
    assert all(set(cell) == {"-"} for cell in rule)
    assert fast == ["fast", "2 ms", "1 ms … 4 ms", "floor: 500 µs", "4 ×", "≤ 3 ms", "yes"]
    assert slow == ["slow", "2 s", "1.5 s … 3 s", "–", "–", "≤ 1 s", "NO"]
    assert requests == ["requests", "7 requests", "7 requests … 7 requests", "–", "–", "–", "–"]


def test_the_circumstances_are_named() -> None:
    facts = [fact.partition(":")[0] for fact in (*machine(), *moment())]
    assert facts == ["machine", "versions", "date", "load average at the end"]


def test_a_name_is_given_to_one_benchmark_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BENCHMARKS, "taken", list)
    with pytest.raises(ValueError, match="two benchmarks are called taken"):
        benchmark("taken")(list)


def test_one_benchmark_or_a_family_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: list[str] = []
    monkeypatch.setattr("bench.__main__.keep", lambda family, rows: kept.append(f"{family} {len(rows)}"))
    for name in ("family.a", "family.b", "familiar"):
        monkeypatch.setitem(BENCHMARKS, name, partial(_one_row, name))
    assert main(["family"]) == 0
    shown = capsys.readouterr().out
    assert [name in shown for name in ("row of family.a", "row of family.b", "row of familiar")] == [True, True, False]
    assert main(["family.a"]) == 0
    assert kept == ["family 2"], "a part of a family is only shown"


def test_results_of_a_family_take_the_place_of_those_before(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    keep("query", [Row("an old question", MS)], path)
    keep("cli", [Row("a command", MS)], path)
    before = path.read_text()
    keep("query", [Row("a question", MS), Row("another", MS)], path)
    text = path.read_text()
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == ["cli", "query"]
    assert "an old question" not in text
    assert text.partition("## query")[0] == before.partition("## query")[0]
    assert text.count("| a question") == text.count("| another") == 1


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "languages.compile" in capsys.readouterr().err
