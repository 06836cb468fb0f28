"""Which indexes a schema declares, and what they are called."""

from __future__ import annotations

import pytest

from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.maintenance.index_plan import declared_indexes

Kinds = dict[str, set[str]]


def accepted(source: str) -> Catalog:
    return accept_schema(compile_schema(source)).catalog


def kinds_of_node(properties: str) -> Kinds:
    """The kinds of index of each property of a node type."""
    found: Kinds = {}
    for index in declared_indexes(accepted(f"node N {{ {properties} }}").nodes["N"]):
        if index.declared is not None:
            found.setdefault(index.column, set()).add(index.kind.value)
    return found


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        pytest.param("p: String @key", {"p": {"BTREE", "INVERTED"}}, id="text key"),
        pytest.param("p: String @index", {"p": {"INVERTED"}}, id="IDX-01 free text"),
        pytest.param("p: String @key @index", {"p": {"BTREE", "INVERTED"}}, id="text key that is also indexed"),
        pytest.param("p: enum(a, b) @key", {"p": {"BTREE"}}, id="enum key"),
        pytest.param("p: enum(a, b) @index", {"p": {"BTREE"}}, id="IDX-01 enum"),
        *(
            pytest.param(f"p: {name}? @index", {"p": {"BTREE"}}, id=f"IDX-01 {name}")
            for name in ("Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime")
        ),
        pytest.param("p: I64 @key", {"p": {"BTREE"}}, id="number key"),
        pytest.param("p: Vector(3) @index", {"p": {"VECTOR"}}, id="IDX-06 vector"),
        pytest.param("p: [String] @index(p)", {"p": {"LABEL_LIST"}}, id="list, body form"),
        pytest.param("p: String", {}, id="IDX-01 nothing declared"),
        pytest.param("p: String @unique", {}, id="unique is no index"),
        pytest.param("p: Blob", {}, id="blob"),
        pytest.param("a: I32 b: String @index(a, b)", {"a": {"BTREE"}, "b": {"INVERTED"}}, id="one for each column"),
        pytest.param("a: String b: I32 @key(a, b)", {"a": {"BTREE", "INVERTED"}, "b": {"BTREE"}}, id="composite key"),
    ],
)
def test_the_type_decides(properties: str, expected: Kinds) -> None:
    assert kinds_of_node(properties) == expected


def test_an_interface_passes_its_indexes_on() -> None:
    catalog = accepted("interface Dated { at: DateTime @index } node N implements Dated { p: String }")
    assert [index.column for index in declared_indexes(catalog.nodes["N"])] == ["id", "at"]


def test_edges_have_their_endpoints_indexed_once() -> None:
    source = "node N { p: String @key } edge E: N -> N { w: I32 @key(src, dst, w) @index(src) }"
    found = [(index.column, index.kind.value) for index in declared_indexes(accepted(source).edges["E"])]
    assert found == [("id", "BTREE"), ("src", "BTREE"), ("dst", "BTREE"), ("w", "BTREE")]


def test_names_follow_the_property_not_what_it_is_called() -> None:
    schema = None
    names = []
    for properties in (
        "b: Vector(2)? @index",
        'z: Vector(2)? @index @rename_from("b")',
        "z: Vector(2)? @index b: String @index",
    ):
        schema = accept_schema(compile_schema(f"node N {{ {properties} }}"), schema)
        names.append({index.column: index.name for index in declared_indexes(schema.catalog.nodes["N"])})
    assert names == [
        {"id": "id_btree", "b": "p1_vector"},
        {"id": "id_btree", "z": "p1_vector"},
        {"id": "id_btree", "z": "p1_vector", "b": "p2_inverted"},
    ]
