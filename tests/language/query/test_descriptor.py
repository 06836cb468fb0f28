"""Operation descriptors: parameters, result columns, types read and written."""

from __future__ import annotations

import pytest

from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.descriptor import OperationDescriptor, ValueDescriptor
from omnigraph.language.schema.catalog import Catalog
from tests.language.query.catalogs import BOOKS, KINDS, ORG


def described(catalog: Catalog, text: str) -> OperationDescriptor:
    return compile_query(text, None, catalog).operation


@pytest.mark.parametrize(
    ("declared", "described_as"),
    [
        ("String", {"kind": "string", "nullable": False}),
        ("String?", {"kind": "string", "nullable": True}),
        ("Bool", {"kind": "bool", "nullable": False}),
        ("I32", {"kind": "int", "nullable": False}),
        ("U32", {"kind": "int", "nullable": False}),
        ("I64", {"kind": "bigint", "nullable": False}),
        ("U64", {"kind": "bigint", "nullable": False}),
        ("F32", {"kind": "float", "nullable": False}),
        ("F64", {"kind": "float", "nullable": False}),
        ("Date", {"kind": "date", "nullable": False}),
        ("DateTime", {"kind": "datetime", "nullable": False}),
        ("Blob", {"kind": "blob", "nullable": False}),
        ("Vector(4)?", {"kind": "vector", "vector_dim": 4, "nullable": True}),
        ("[I64]", {"kind": "list", "item_kind": "bigint", "nullable": False}),
        ("[Date]?", {"kind": "list", "item_kind": "date", "nullable": True}),
    ],
)
def test_params(declared: str, described_as: dict[str, object]) -> None:
    operation = described(ORG, f"query q($p: {declared}) {{ match {{ $s: Staff }} return {{ $s }} }}")
    assert operation.to_dict()["params"] == [{"name": "p", **described_as}]


def test_columns() -> None:
    text = (
        "query q($t: [String]?) { match { $b: Book $b $e:cites $c } "
        "return { $b, $b.kind, $b.tags, $b.emb as v, $e.year, $t, nearest($c.emb, [1, 2, 3]) as d } }"
    )
    assert described(BOOKS, text).columns == (
        ValueDescriptor("b", "string", nullable=False),
        ValueDescriptor("b.kind", "string", nullable=True),
        ValueDescriptor("b.tags", "list", nullable=True, item_kind="string"),
        ValueDescriptor("v", "vector", nullable=True, vector_dim=3),
        ValueDescriptor("e.year", "date", nullable=True),
        ValueDescriptor("t", "list", nullable=True, item_kind="string"),
        ValueDescriptor("d", "float", nullable=True),
    )


def test_aggregate_columns_are_nullable() -> None:
    text = "query q() { match { $b: Book } return { $b.isbn, count($b) as n, sum($b.pages), min($b.pages) as lo } }"
    assert [(column.name, column.kind, column.nullable) for column in described(BOOKS, text).columns] == [
        ("b.isbn", "string", False),
        ("n", "bigint", True),
        ("sum(b.pages)", "bigint", True),
        ("lo", "int", True),
    ]


@pytest.mark.parametrize(
    ("catalog", "body", "kind", "reads", "writes"),
    [
        pytest.param(
            ORG,
            "match { $s: Staff $s mentors $_ not { $s memberOf $t } } return { $s }",
            "read",
            ("edge:MemberOf", "edge:Mentors", "node:Staff", "node:Team"),
            (),
            id="read",
        ),
        pytest.param(ORG, 'insert Staff { handle: "x" }', "mutation", (), ("node:Staff",), id="insert node"),
        pytest.param(
            ORG,
            'insert MemberOf { from: "a", to: "b" }',
            "mutation",
            ("node:Staff", "node:Team"),
            ("edge:MemberOf",),
            id="insert edge looks for its ends",
        ),
        pytest.param(
            ORG,
            'update Staff set { level: 1 } where handle = "x"',
            "mutation",
            ("node:Staff",),
            ("node:Staff",),
            id="update",
        ),
        pytest.param(
            ORG,
            'delete Staff where handle = "x"',
            "mutation",
            ("node:Staff",),
            ("edge:MemberOf", "edge:Mentors", "node:Staff"),
            id="delete node takes its edges",
        ),
        pytest.param(
            ORG,
            'delete Team where code = "x"',
            "mutation",
            ("node:Team",),
            ("edge:MemberOf", "node:Team"),
            id="delete node at the far end",
        ),
        pytest.param(
            ORG,
            'delete Mentors where from = "x"',
            "mutation",
            ("edge:Mentors",),
            ("edge:Mentors",),
            id="delete edge",
        ),
        pytest.param(
            KINDS,
            'insert Kind { k: "a" } insert Pair { from: "a", to: "a", n: 1 }',
            "mutation",
            ("node:Kind",),
            ("edge:Pair", "node:Kind"),
            id="several statements",
        ),
    ],
)
def test_types(catalog: Catalog, body: str, kind: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
    operation = described(catalog, f"query q() {{ {body} }}")
    assert (operation.name, operation.kind) == ("q", kind)
    assert (operation.reads, operation.writes) == (reads, writes)
    assert operation.to_dict()["reads"] == [
        dict(zip(("kind", "type_name"), key.split(":"), strict=True)) for key in reads
    ]
