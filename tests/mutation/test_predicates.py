"""Where: which rows an update or delete finds, for every type a property can have, committed or pending."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import TypecheckError, ValidationError
from tests.mutation.org_graph import ids

#: A type, and three of its values in ascending order.
ORDERED = [
    ("String", ["a", "it's", "ü"]),
    ("Bool", [False, True]),
    ("I32", [-5, 0, 7]),
    ("I64", [-(2**40), 0, 2**40]),
    ("U32", [0, 7, 2**32 - 1]),
    ("U64", [0, 7, 2**63 - 1]),
    ("F32", [-0.5, 0.1, 3.0]),
    ("F64", [-1e300, 0.1, 2.5]),
    ("Date", ["1969-12-31", "2024-01-01", "2024-01-02"]),
    ("DateTime", ["1969-12-31T23:59:59Z", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.001Z"]),
]


@pytest.mark.parametrize(("kind", "values"), ORDERED, ids=[kind for kind, _ in ORDERED])
def test_every_type_can_be_asked_for(tmp_path: Path, kind: str, values: list[object]) -> None:
    """The middle value is found by `=`, those beyond it by `<` and `>`, and null by nothing."""
    graph = og.init(tmp_path / "g", f"node N {{ name: String @key camelCase: {kind}? hit: String? }}")
    insert = f"query q($n: String, $v: {kind}?) {{ insert N {{ name: $n, camelCase: $v }} }}"
    for number, value in enumerate([*values, None]):
        graph.mutate(insert, params={"n": str(number), "v": value})
    middle = values[1]
    for operator, found in (("=", {1}), ("<", {0}), ("<=", {0, 1}), (">", set(range(2, len(values)))), ("!=", {0, 2})):
        update = f'query q($v: {kind}) {{ update N set {{ hit: "x" }} where camelCase {operator} $v }}'
        expected = found & set(range(len(values)))
        assert graph.mutate(update, params={"v": middle}).affected_nodes == len(expected), operator
    delete = f"query q($v: {kind}) {{ delete N where camelCase = $v }}"
    assert graph.mutate(delete, params={"v": middle}).affected_nodes == 1
    assert "1" not in ids(graph, "node:N")


@pytest.mark.parametrize(
    ("kind", "constant", "operator", "found"),
    [
        ("I32", 2.7, "=", []),
        ("I32", 2.7, "!=", ["1", "2", "3"]),
        ("I32", 2.7, ">", ["3"]),
        ("I32", 2.0, "=", ["2"]),
        ("U32", -1, ">", ["1", "2", "3"]),
        ("U64", 2.5, "<=", ["1", "2"]),
        ("F32", 2, "=", ["2"]),
        ("I32", 3_000_000_000, "<", ["1", "2", "3"]),
    ],
)
@pytest.mark.parametrize("pending", [False, True], ids=["committed", "pending"])
def test_numbers_compare_by_value(
    tmp_path: Path, kind: str, constant: float, operator: str, found: list[str], pending: bool
) -> None:
    """The same rows are found whether they are stored or were inserted by the same query."""
    graph = og.init(tmp_path / "g", f"node N {{ name: String @key v: {kind}? hit: Bool? }}")
    inserts = " ".join(f'insert N {{ name: "{number}", v: {number} }}' for number in (1, 2, 3))
    update = f"update N set {{ hit: true }} where v {operator} $c"
    if not pending:
        graph.mutate(f"query q() {{ {inserts} }}")
    given = "F64" if isinstance(constant, float) else "I64"
    graph.mutate(f"query q($c: {given}) {{ {inserts if pending else ''} {update} }}", params={"c": constant})
    rows = graph.snapshot().open("node:N").read(["name", "hit"]).to_pylist()
    assert sorted(row["name"] for row in rows if row["hit"]) == found


def test_a_null_parameter_finds_nothing(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node N { name: String @key v: I32? }")
    graph.mutate('query q() { insert N { name: "a" } }')
    for operator in ("=", "!="):
        assert graph.mutate(f"query q($v: I32?) {{ delete N where v {operator} $v }}").commit is None
    assert ids(graph, "node:N") == ["a"]


def test_now_in_a_predicate(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node N { name: String @key until: DateTime? }")
    insert = "query q($n: String, $u: DateTime) { insert N { name: $n, until: $u } }"
    graph.mutate(insert, params={"n": "past", "u": "2000-01-01T00:00:00Z"})
    graph.mutate(insert, params={"n": "future", "u": "2999-01-01T00:00:00Z"})
    assert graph.mutate("query q() { delete N where until < now() }").affected_nodes == 1
    assert ids(graph, "node:N") == ["future"]


@pytest.mark.parametrize("operand", ["tags", "emb", "content"])
def test_lists_vectors_and_blobs_are_not_compared(tmp_path: Path, operand: str) -> None:
    graph = og.init(tmp_path / "g", "node N { name: String @key tags: [String]? emb: Vector(2)? content: Blob? }")
    with pytest.raises(TypecheckError):
        graph.mutate(f'query q() {{ delete N where {operand} = "x" }}')


@pytest.mark.parametrize(("kind", "value"), [("U32", 7), ("U64", 2**63 - 1), ("F64", 0.0)])
def test_unique_values_of_any_type_are_found(tmp_path: Path, kind: str, value: object) -> None:
    graph = og.init(tmp_path / "g", f"node N {{ name: String @key v: {kind}? @unique(v) }}")
    insert = f"query q($n: String, $v: {kind}) {{ insert N {{ name: $n, v: $v }} }}"
    graph.mutate(insert, params={"n": "a", "v": value})
    graph.mutate(insert, params={"n": "a", "v": value})
    with pytest.raises(ValidationError, match=r"@unique violation on N\.v"):
        graph.mutate(insert, params={"n": "b", "v": -value if isinstance(value, float) else value})


@pytest.mark.parametrize(("kind", "values"), ORDERED, ids=[kind for kind, _ in ORDERED])
def test_the_key_in_a_predicate_finds_one_node(tmp_path: Path, kind: str, values: list[object]) -> None:
    graph = og.init(tmp_path / "g", f"node N {{ k: {kind} @key hit: Bool? }}")
    for value in values:
        graph.mutate(f"query q($k: {kind}) {{ insert N {{ k: $k }} }}", params={"k": value})
    update = f"query q($k: {kind}) {{ update N set {{ hit: true }} where k = $k }}"
    assert graph.mutate(update, params={"k": values[1]}).affected_nodes == 1
    delete = f"query q($k: {kind}) {{ delete N where k = $k }}"
    assert graph.mutate(delete, params={"k": values[1]}).affected_nodes == 1
    assert len(ids(graph, "node:N")) == len(values) - 1


@pytest.mark.parametrize(("constant", "found"), [("2", 1), ("2.0", 1), ("2.5", 0), ("3000000000", 0)])
def test_a_key_is_compared_by_value(tmp_path: Path, constant: str, found: int) -> None:
    graph = og.init(tmp_path / "g", "node N { k: I32 @key }")
    graph.mutate("query q() { insert N { k: 2 } }")
    assert graph.mutate(f"query q() {{ delete N where k = {constant} }}").affected_nodes == found


@pytest.mark.parametrize(
    "kind", ["U64", "[U32]", "[U64]", "[I32]", "[F32]", "[Bool]", "[Date]", "[DateTime]", "Vector(2)", "Blob"]
)
def test_a_property_of_any_type_leaves_the_others_to_be_asked_for(tmp_path: Path, kind: str) -> None:
    graph = og.init(
        tmp_path / "g", f"node N {{ name: String @key level: I32? other: {kind}? }} edge E: N -> N {{ o: {kind}? }}"
    )
    graph.mutate('query q() { insert N { name: "a" level: 1 } insert E { from: "a" to: "a" } }')
    assert graph.mutate("query q() { update N set { level: 2 } where level = 1 }").affected_nodes == 1
    read = 'query q() { match { $n: N { name: "a" } $n $e:e $m $m.level >= 2 } return { $n.level } }'
    assert graph.query(read).rows == [{"n.level": 2}]
    deleted = graph.mutate('query q() { delete N where name = "a" }')
    assert (deleted.affected_nodes, deleted.affected_edges) == (1, 1)


@pytest.mark.parametrize("kind", ["U32", "U64"])
def test_membership_in_lists_of_unsigned_integers(tmp_path: Path, kind: str) -> None:
    graph = og.init(tmp_path / "g", f"node N {{ name: String @key v: [{kind}]? }}")
    graph.load(
        [{"type": "N", "data": {"name": "a", "v": [0, 2**32 - 1]}}, {"type": "N", "data": {"name": "b", "v": []}}]
    )
    for condition in ("$n.v contains 4294967295", "$n.v contains 0.0"):
        assert graph.query(f"query q() {{ match {{ $n: N {condition} }} return {{ $n }} }}").rows == [{"n": "a"}]
