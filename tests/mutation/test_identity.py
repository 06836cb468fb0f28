"""Section 11 through mutations: the id of a keyed entity is the text of its key."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from tests.mutation.org_graph import ids, rows


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("String", "a b", "a b"),
        ("U64", 9223372036854775807, "9223372036854775807"),
        ("I32", -5, "-5"),
        ("U32", 4294967295, "4294967295"),
        ("Bool", True, "true"),
        ("Bool", False, "false"),
        ("Date", "2024-01-01", "19723"),
        ("DateTime", "1970-01-01T00:00:01.500Z", "1500"),
        ("DateTime", "1969-12-31T23:59:59Z", "-1000"),
        ("F32", 16777217, "16777216"),
        ("F32", 0.1, "0.1"),
        ("F64", 0.1, "0.1"),
        ("F64", -0.0, "0"),
        ("F64", 1e20, "100000000000000000000"),
        ("F64", 1.5e-7, "0.00000015"),
        ("F64", 2.0, "2"),
    ],
)
def test_idn_01_04_one_property(tmp_path: Path, kind: str, value: object, expected: str) -> None:
    graph = og.init(tmp_path / "g", f"node C {{ k: {kind} @key lab: String? }}")
    insert = f"query q($k: {kind}, $l: String) {{ insert C {{ k: $k, lab: $l }} }}"
    graph.mutate(insert, params={"k": value, "l": "one"})
    graph.mutate(insert, params={"k": value, "l": "two"})
    assert [(row["id"], row["lab"]) for row in rows(graph, "node:C")] == [(expected, "two")]


COMPOSITE = "node M { ten: String slot: U32 lab: String @key(ten, slot) } edge R: M -> M"
PUT_M = "query q($t: String, $n: U32, $l: String) { insert M { ten: $t, slot: $n, lab: $l } }"


@pytest.fixture
def composite(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "m", COMPOSITE)
    graph.mutate(PUT_M, params={"t": "acme", "n": 7, "l": "x"})
    return graph


def test_idn_06_several_properties(composite: og.Graph) -> None:
    assert ids(composite, "node:M") == ['["7","acme"]']


def test_idn_07_composite_upsert(composite: og.Graph) -> None:
    composite.mutate(PUT_M, params={"t": "acme", "n": 7, "l": "y"})
    assert [(row["id"], row["lab"]) for row in rows(composite, "node:M")] == [('["7","acme"]', "y")]


def test_idn_08_a_key_part_can_not_be_updated(composite: og.Graph) -> None:
    with pytest.raises(BadRequest, match="cannot update @key property 'slot'"):
        composite.mutate(
            "query q($t: String, $n: U32) { update M set { slot: $n } where ten = $t }", params={"t": "acme", "n": 8}
        )


@pytest.mark.parametrize("text", ['a"b', "a\\b", "a\nb", "a\x1fb", "ü€😀", ""])
def test_idn_06_json_texts(composite: og.Graph, text: str) -> None:
    import orjson

    composite.mutate(PUT_M, params={"t": text, "n": 1, "l": "x"})
    assert orjson.dumps(["1", text]).decode() in ids(composite, "node:M")


def test_idn_15_without_a_key_equal_rows_are_two(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node Log { text: String }")
    for _ in range(2):
        graph.mutate('query q() { insert Log { text: "same" } }')
    assert [row["text"] for row in rows(graph, "node:Log")] == ["same", "same"]


def test_an_edge_with_a_key_is_one_edge(tmp_path: Path) -> None:
    graph = og.init(
        tmp_path / "g", "node A { k: String @key } edge R: A -> A { w: I32 note: String? @key(src, dst, w) }"
    )
    graph.mutate('query q() { insert A { k: "x" } insert A { k: "y" } }')
    insert = 'query q($w: I32, $n: String) { insert R { from: "x", to: "y", w: $w, note: $n } }'
    graph.mutate(insert, params={"w": 1, "n": "a"})
    graph.mutate(insert, params={"w": 1, "n": "b"})
    graph.mutate(insert, params={"w": 2, "n": "c"})
    assert [(row["id"], row["note"]) for row in rows(graph, "edge:R")] == [
        ('["x","y","1"]', "b"),
        ('["x","y","2"]', "c"),
    ]
