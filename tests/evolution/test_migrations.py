"""Every pair of schemas, on a graph with rows and on an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.commit.schema_files import FILES
from omnigraph.errors import SchemaChangeRefused, ValidationError
from omnigraph.evolution.plan import Plan
from tests.evolution.case import Case, codes, refused
from tests.evolution.pictures import Picture, picture, plain
from tests.evolution.property_cases import PROPERTY_CASES
from tests.evolution.rule_cases import RULE_CASES
from tests.evolution.type_cases import TYPE_CASES

CASES = [*PROPERTY_CASES, *RULE_CASES, *TYPE_CASES]


def shown(plan: Plan) -> tuple[str, ...]:
    """The kinds of the steps, with their codes."""
    steps = (step.to_dict() for step in plan.steps)
    return tuple(f"{step['kind']} {step['code']}" if "code" in step else step["kind"] for step in steps)


def leftovers(graph: og.Graph) -> list[str]:
    """Records and staged files, of which none may be left behind."""
    root = Path(graph.uri)
    return sorted(
        str(path.relative_to(root)) for pattern in ("__recovery/*", "*.staged") for path in root.glob(pattern)
    )


def schema_files(graph: og.Graph) -> dict[str, bytes]:
    return {name: (Path(graph.uri) / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_with_rows(case: Case, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", case.before)
    graph.mutate(case.load)
    before, head, files = picture(graph), graph.head(), schema_files(graph)
    plan = graph.plan_schema(case.after)
    assert shown(plan) == (*case.steps, *(refused("OG-MF-107") if case.broken else ()))
    assert plan.supported == (not case.refused and not case.broken)
    if case.refused or case.broken:
        refuse(graph, case)
        assert (graph.head(), schema_files(graph), picture(graph)) == (head, files, before)
    else:
        applied = graph.apply_schema(case.after, actor="ann")
        assert applied.plan == plan
        assert (graph.head() == head) == (not case.steps)
        if case.steps:
            assert graph.head() == applied.commit
            assert (graph.head().kind, graph.head().actor, graph.head().parent) == ("schema", "ann", head.id)
        expect_rows(graph, case, before)
        again = graph.apply_schema(case.after)
        assert (again.applied, shown(again.plan)) == (False, ())
        if case.write:
            assert graph.mutate(case.write).commit is not None
    assert picture(graph, head.id, "then") == before
    assert leftovers(graph) == []
    assert picture(og.open(graph.uri)) == picture(graph)


def refuse(graph: og.Graph, case: Case) -> None:
    if case.refused:
        with pytest.raises(SchemaChangeRefused) as refused:
            graph.apply_schema(case.after)
        assert tuple(refusal["code"] for refusal in refused.value.refusals) == case.refused
        assert all(code in refused.value.message for code in case.refused)
        return
    assert case.broken is not None
    kind, entity_id = case.broken
    with pytest.raises(ValidationError, match="the schema can not be applied, rows of") as broken:
        graph.apply_schema(case.after)
    assert broken.value.kind == kind
    if entity_id is not None:
        assert broken.value.entity_id == entity_id


def expect_rows(graph: og.Graph, case: Case, before: Picture) -> None:
    now = picture(graph)
    for type_key, rows in now.items():
        expected = case.rows.get(type_key, before.get(type_key))
        assert expected is not None, f"{type_key} is not expected"
        assert rows == sorted((plain(row, False) for row in expected), key=repr)
    assert set(case.rows) <= set(now)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_without_rows(case: Case, tmp_path: Path) -> None:
    """A table without rows breaks no rule, and takes a required property."""
    graph = og.init(tmp_path / "graph", case.before)
    before = picture(graph)
    steps = case.empty_steps if case.empty_steps is not None else case.steps
    assert shown(graph.plan_schema(case.after)) == steps
    if codes(steps):
        with pytest.raises(SchemaChangeRefused):
            graph.apply_schema(case.after)
    else:
        assert graph.apply_schema(case.after).applied == bool(steps)
        if case.write and not case.write_joins:
            assert graph.mutate(case.write).commit is not None
    assert picture(graph, 1, "then") == before
    assert leftovers(graph) == []
    og.open(graph.uri)


def test_there_are_enough_pairs() -> None:
    assert len({case.id for case in CASES}) == len(CASES) >= 60
