"""Stable identities: what keeps its number, and what starts a new life."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from omnigraph.errors import CatalogError
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.schema.ir import SchemaIR, catalog_of, fingerprint
from tests.language.schema.strategies import catalogs


def accepted(*sources: str) -> SchemaIR:
    """The last of several schemas that a graph accepted one after the other, each with an incarnation of its own."""
    ir: SchemaIR | None = None
    for number, source in enumerate(sources):
        ir = accept_schema(compile_schema(source), ir, incarnation=100 + number)
    assert ir is not None
    return ir


def type_ids(ir: SchemaIR) -> dict[str, tuple[int, int]]:
    catalog = catalog_of(ir)
    entities: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return {entity.type_key: (entity.id, entity.incarnation) for entity in entities}


def property_ids(ir: SchemaIR, node: str = "A") -> dict[str, int]:
    return {name: prop.id for name, prop in catalog_of(ir).nodes[node].properties.items()}


def test_the_first_acceptance_numbers_in_canonical_order() -> None:
    ir = accepted("edge B: Z -> A node Z { y: I32 x: I32 } node A { c: I32 a: I32 } edge A: A -> A { w: I32 }")
    assert type_ids(ir) == {"node:A": (1, 100), "node:Z": (2, 100), "edge:A": (3, 100), "edge:B": (4, 100)}
    assert property_ids(ir, "Z") == {"x": 1, "y": 2}
    assert ir.next_type_id == 5
    assert ir.next_property_ids == {"node:A": 3, "node:Z": 3, "edge:A": 2, "edge:B": 1}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        pytest.param(["node A { }", "node A { } node B { }"], {"node:A": (1, 100), "node:B": (2, 101)}, id="add"),
        pytest.param(["node B { }", "node A { } node B { }"], {"node:A": (2, 101), "node:B": (1, 100)}, id="add-first"),
        pytest.param(["node A { } node B { }", "node B { }"], {"node:B": (2, 100)}, id="drop"),
        pytest.param(["node A { }", "", "node A { }"], {"node:A": (2, 102)}, id="drop-and-add-again"),
        pytest.param(
            ["node A { } node B { }", "node A { }", "node A { } node C { }"],
            {"node:A": (1, 100), "node:C": (3, 102)},
            id="never-reused",
        ),
        pytest.param(["node A { }", 'node B @rename_from("A") { }'], {"node:B": (1, 100)}, id="rename"),
        pytest.param(
            ["node A { }", 'node B @rename_from("A") { }', 'node B @rename_from("A") { }'],
            {"node:B": (1, 100)},
            id="rename-stays-written",
        ),
        pytest.param(
            ["node A { }", 'node B @rename_from("A") { }', 'node B @rename_from("A") { } node A { }'],
            {"node:A": (2, 102), "node:B": (1, 100)},
            id="TT-14-old-name-is-new-again",
        ),
        pytest.param(['node B @rename_from("A") { }'], {"node:B": (1, 100)}, id="inert-on-first"),
        pytest.param(
            ["node C { }", 'node B @rename_from("A") { } node C { }'],
            {"node:B": (2, 101), "node:C": (1, 100)},
            id="inert-without-old",
        ),
        pytest.param(
            ["node A { } edge A: A -> A", 'node B @rename_from("A") { } edge A: B -> B'],
            {"node:B": (1, 100), "edge:A": (2, 100)},
            id="namespaces-are-separate",
        ),
        pytest.param(
            ["node N { } edge A: N -> N", 'node N { } edge B: N -> N @rename_from("A")'],
            {"node:N": (1, 100), "edge:B": (2, 100)},
            id="rename-edge",
        ),
    ],
)
def test_type_identities(sources: list[str], expected: dict[str, tuple[int, int]]) -> None:
    assert type_ids(accepted(*sources)) == expected


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        pytest.param(["b: I32", "a: I32 b: I32"], {"a": 2, "b": 1}, id="add"),
        pytest.param(["a: I32 b: I32", "b: I32", "a: I32 b: I32"], {"a": 3, "b": 2}, id="drop-and-add-again"),
        pytest.param(["a: I32", 'z: I32 @rename_from("a")'], {"z": 1}, id="rename"),
        pytest.param(["a: I32", "z: I32 @rename_from(a)"], {"z": 1}, id="rename-bare"),
        pytest.param(
            ["a: I32", 'z: I32 @rename_from("a")', 'z: I32 @rename_from("a") a: I32'],
            {"a": 2, "z": 1},
            id="old-name-is-new-again",
        ),
        pytest.param(["a: I32", "a: String"], {"a": 1}, id="another-type-same-name"),
    ],
)
def test_property_identities(bodies: list[str], expected: dict[str, int]) -> None:
    assert property_ids(accepted(*(f"node A {{ {body} }}" for body in bodies))) == expected


def test_property_counters_follow_a_renamed_type() -> None:
    ir = accepted("node A { a: I32 b: I32 }", 'node B @rename_from("A") { b: I32 c: I32 }')
    assert property_ids(ir, "B") == {"b": 2, "c": 3}
    assert ir.next_property_ids == {"node:B": 4}


@pytest.mark.parametrize(
    ("bodies", "key"),
    [
        pytest.param(["b: I32 a: I32 @key(b, a)"], ("a", "b"), id="by-name"),
        pytest.param(
            ["a: I32 b: I32 @key(a, b)", 'z: I32 @rename_from("a") b: I32 @key(b, z)'], ("z", "b"), id="renamed"
        ),
        pytest.param(
            ["a: I32 b: I32 @key(a, b)", 'z: I32 @rename_from("a") b: I32 @key(b, z)', "z: I32 b: I32 @key(b, z)"],
            ("z", "b"),
            id="renamed-long-ago",
        ),
        pytest.param(
            ["a: I32 b: I32 @key(a, b)", 'z: I32 @rename_from("a") b: I32 c: I32 @key(b, c)'], ("b", "c"), id="new-key"
        ),
        pytest.param(["a: I32 b: I32", "a: I32 b: I32 @key(b, a)"], ("a", "b"), id="key-added"),
        pytest.param(["a: I32 @key", "a: I32"], None, id="key-removed"),
    ],
)
def test_identity_order_of_a_key(bodies: list[str], key: tuple[str, ...] | None) -> None:
    assert catalog_of(accepted(*(f"node A {{ {body} }}" for body in bodies))).nodes["A"].key == key


def test_identity_order_of_an_edge_key() -> None:
    ir = accepted(
        "node A { } edge R: A -> A { a: I32 b: I32 @key(src, dst, a, b) }",
        'node A { } edge R: A -> A { z: I32 @rename_from("a") b: I32 @key(src, dst, b, z) }',
    )
    assert catalog_of(ir).edges["R"].key == ("src", "dst", "z", "b")


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param(["node A { }", 'node A { } node B @rename_from("A") { }'], id="old-type-is-still-there"),
        pytest.param(
            ["node A { }", 'node B @rename_from("A") { } node C @rename_from("A") { }'], id="two-types-from-one"
        ),
        pytest.param(
            ["node A { a: I32 }", 'node A { a: I32 b: I32 @rename_from("a") }'], id="old-property-is-still-there"
        ),
        pytest.param(
            ["node A { a: I32 }", 'node A { c: I32 @rename_from("a") b: I32 @rename_from("a") }'],
            id="two-properties-from-one",
        ),
    ],
)
def test_a_rename_that_leaves_a_doubt_is_refused(sources: list[str]) -> None:
    with pytest.raises(CatalogError, match="renamed from"):
        accepted(*sources)


@settings(max_examples=50, deadline=None)
@given(catalogs(), catalogs())
def test_identities_hold_over_any_change(first: Catalog, second: Catalog) -> None:
    before = accept_schema(first, incarnation=1)
    try:
        after = accept_schema(second, before, incarnation=2)
    except CatalogError:
        return
    assert fingerprint(after) == fingerprint(second)
    assert accept_schema(second, after, incarnation=3) == after
    earlier_ids = {entity_id for entity_id, _ in type_ids(before).values()}
    for entity_id, incarnation in type_ids(after).values():
        assert entity_id in earlier_ids if incarnation == 1 else before.next_type_id <= entity_id < after.next_type_id
