"""The changes of a table judged in ranges of ids, on Spark and in this process: the same results as in one piece."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import omnigraph as og
from omnigraph.commit.updates import SchemaIs
from omnigraph.graph.merging import Accepted
from omnigraph.maintenance import workplace
from omnigraph.maintenance.workplace import Workplace
from omnigraph.merge import spread
from omnigraph.merge.difference import open_difference
from omnigraph.merge.judge import judge_table
from omnigraph.merge.options import Options
from omnigraph.merge.part import Part, together
from omnigraph.merge.plan import _Specs
from omnigraph.merge.schemas import merge_states
from omnigraph.merge.states import Sides
from tests.merge.graphs import do, everything, named, write
from tests.merge.test_matrix import CELLS, operate


def judged(part: Part) -> dict[str, Any]:
    """A part as plain data, whatever the order it was found in."""
    rows = [] if part.checked is None else part.checked.to_pylist()
    return {
        "counts": (part.inserted, part.updated, part.deleted, part.identical, part.new_rows, part.changed_rows),
        "skipped": sorted(part.skipped.to_pylist()),
        "marked": part.marked.addresses().tolist(),
        "removed": sorted(part.removed.to_pylist()),
        "checked": sorted(rows, key=lambda row: row["id"]),
        "conflicts": sorted(named(part.conflicts), key=str),
    }


@pytest.mark.parametrize("property_level", [False, True], ids=["rows", "properties"])
def test_ranges_give_the_same_as_the_whole(graph: og.Graph, property_level: bool) -> None:
    for number in range(30):
        do(graph, "feature", "put", f"p{number:02}", number)
    for number in range(0, 30, 4):
        do(graph, "main", "put", f"p{number:02}", number if number % 8 else 99)
    do(graph, "feature", "drop", "ben")
    do(graph, "main", "relevel", "ben", 1)
    context = graph._context
    base = graph.merge("feature", dry_run=True).stats["base"]
    sides = Sides(graph.snapshot(at=base).state, context.manifest.load("main"), context.manifest.load("feature"))
    options = Options(SchemaIs(None), property_level=property_level)
    schema = merge_states(context, Accepted(graph._watch, *graph._watch.captured()), sides, options)
    specs_of = _Specs(schema, sides, options, {})
    for spec in (*specs_of.to_look_at("node"), *specs_of.to_look_at("edge")):
        difference = open_difference(context, spec)
        whole = judge_table(difference)
        for count in (1, 2, 5, 100):
            specs = spread.pieces(difference, count)
            if specs[0].fragments is None:
                assert [part.until_id for part in specs[:-1]] == [part.after_id for part in specs[1:]]
                assert all((low.until_id or "") < (high.until_id or "\U0010ffff") for low, high in pairwise(specs))
            parts = [judge_table(open_difference(context, part)) for part in specs]
            assert judged(together([Part(), *parts])) == judged(whole)


@pytest.fixture(scope="module")
def spark() -> Any:
    """The one session of the test run."""
    from omnigraph.spark.session import spark_session

    return spark_session()


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [pytest.param(*cell[1:], id=f"MRG-{cell[0]} {cell[1]}-{cell[2]}") for cell in CELLS],
)
def test_the_matrix_on_spark(graph: og.Graph, spark: Any, source: str, target: str, expected: str) -> None:
    operate(graph, "feature", source, both=source == target)
    operate(graph, "main", target, both=source == target)
    local = graph.merge("feature", dry_run=True, engine="local")
    on_spark = graph.merge("feature", dry_run=True, engine="spark")
    assert (on_spark.outcome, on_spark.stats, on_spark.conflicts) == (local.outcome, local.stats, local.conflicts)
    if expected.startswith("conflict"):
        (conflict,) = on_spark.conflicts
        assert f"{conflict.kind} {conflict.type_key}" == " ".join(expected.split()[1:3])
        with pytest.raises(og.errors.MergeConflicts):
            graph.merge("feature", engine="spark")
        return
    graph.create_branch("other")
    graph.merge("feature", into="other", engine="local")
    graph.merge("feature", engine="spark")
    assert everything(graph) == everything(graph, "other")


def test_large_is_what_a_job_is_worth(graph: og.Graph, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With engine "auto" and a session, a table is read and written by tasks from so many rows on, in at least two tasks."""
    asked: list[str] = []

    def spy(self: Workplace, rows: int, most_tasks: int) -> Any:
        runner = runner_of(self, rows, most_tasks)
        asked.append(type(runner).__name__)
        return runner

    runner_of = Workplace.runner
    monkeypatch.setattr(Workplace, "runner", spy)
    monkeypatch.setattr(workplace, "ROWS_FOR_A_JOB", 4)
    do(graph, "feature", "put", "eli", 1)
    graph.merge("feature", dry_run=True)
    write(graph, "feature", *(f'insert Staff {{ handle: "q{number}", level: 1 }}' for number in range(4)))
    graph.merge("feature", dry_run=True)
    monkeypatch.setattr(spread, "IDS_PER_TASK", 2)
    graph.merge("feature", dry_run=True)
    graph.merge("feature", dry_run=True, engine="local")
    assert asked == ["Inline", "Inline", "OnSpark", "Inline"]


def test_an_unknown_engine(graph: og.Graph) -> None:
    with pytest.raises(og.errors.BadRequest, match="engine"):
        graph.merge("feature", engine="flink")  # type: ignore[arg-type]  # wrong on purpose
