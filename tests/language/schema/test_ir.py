"""The canonical JSON of an accepted schema, what is refused when it is read, and the two hashes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import SchemaContractError
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.schema.ir import SchemaIR, catalog_of, fingerprint, ir_hash
from omnigraph.language.schema.printer import print_schema
from tests.language.schema.strategies import WrittenSchema, catalogs, shuffled, written_schemas

SOURCE = """
interface Titled { title: String @unique }
node Paper @description("é") @odd(x, n=1.5) implements Titled {
  code: String @key  year: I32? @default(2000) @range(year, -1..) @check(code, "^x")
  v: Vector(2) @embed(title, model="m") @metric("dot")
}
edge Cites: Paper -> Paper @card(0..1) { on: Date @key(src, dst, on) }
"""
GOLDEN = (
    '{"catalog":{"edges":{"Cites":{"cardinality":{"max":1,"min":0},"from":"Paper","id":"0000000000000002",'
    '"incarnation":"00000000000000a1","indexes":[["src","dst","on"]],"key":["src","dst","on"],'
    '"properties":{"on":{"id":1,"type":"Date"}},"to":"Paper"}},'
    '"interfaces":{"Titled":{"properties":{"title":{"annotations":[{"name":"unique"}],"type":"String"}}}},'
    '"nodes":{"Paper":{"annotations":[{"arguments":[["n",1.5]],"name":"odd","value":{"name":"x"}}],'
    '"checks":[{"pattern":"^x","property":"code"}],"description":"é","id":"0000000000000001",'
    '"implements":["Titled"],"incarnation":"00000000000000a1","indexes":[["code"]],"key":["code"],'
    '"properties":{"code":{"id":1,"type":"String"},"title":{"id":2,"type":"String"},'
    '"v":{"embed":{"model":"m","source":"title"},"id":3,"metric":"dot","type":"Vector(2)"},'
    '"year":{"default":2000,"id":4,"type":"I32?"}},"ranges":[{"low":-1,"property":"year"}],'
    '"uniques":[["title"]]}}},"format":1,"next_property_ids":{"edge:Cites":2,"node:Paper":5},'
    '"next_type_id":"0000000000000003"}'
)


def accepted(source: str = SOURCE) -> SchemaIR:
    return accept_schema(compile_schema(source), incarnation=0xA1)


def test_the_format_is_golden() -> None:
    assert accepted().to_json() == GOLDEN


def test_the_hash_of_the_format_is_golden() -> None:
    assert ir_hash(accepted()) == "dc610bc4a8711afa3526ba60a90b7b0fdcfa1c2b1aada50ebe576a86d8be32fb"


def test_reading_gives_the_same_schema() -> None:
    assert SchemaIR.from_json(GOLDEN) == accepted()
    assert SchemaIR.from_json(GOLDEN.encode()) == accepted()
    assert catalog_of(SchemaIR.from_json(GOLDEN)).nodes["Paper"].properties["v"].id == 3


@settings(max_examples=50, deadline=None)
@given(catalogs())
def test_any_schema_survives(catalog: Catalog) -> None:
    ir = accept_schema(catalog, incarnation=2**63 - 1)
    again = SchemaIR.from_json(ir.to_json())
    assert again == ir
    assert again.to_json() == ir.to_json()


@pytest.mark.parametrize(
    "text",
    ["", "{", "null{", "[" * 100_000, b"\xff\xfe", '{"format": ' + "9" * 5000 + "}"],
    ids=["empty", "cut", "tail", "deep", "bytes", "digits"],
)
def test_texts_that_are_not_json(text: str | bytes) -> None:
    with pytest.raises(SchemaContractError, match=r"_schema\.ir\.json is not JSON") as caught:
        SchemaIR.from_json(text, "_schema.ir.json")
    assert caught.value.reason == "unreadable"
    assert caught.value.path == "_schema.ir.json"


Change = Callable[[dict[str, Any]], object]

CHANGES: dict[str, Change] = {
    "no-format": lambda d: d.pop("format"),
    "other-format": lambda d: d.update(format=2),
    "format-true": lambda d: d.update(format=True),
    "no-catalog": lambda d: d.pop("catalog"),
    "catalog-list": lambda d: d.update(catalog=[]),
    "no-nodes": lambda d: d["catalog"].pop("nodes"),
    "node-list": lambda d: d["catalog"]["nodes"].update(Paper=[]),
    "extra-field": lambda d: d.update(more=1),
    "extra-node-field": lambda d: paper(d).update(more=1),
    "said-nothing": lambda d: paper(d).update(uniques=[]),
    "no-id": lambda d: paper(d).pop("id"),
    "short-id": lambda d: paper(d).update(id="1"),
    "number-id": lambda d: paper(d).update(id=1),
    "upper-id": lambda d: paper(d).update(id="000000000000000A"),
    "used-id": lambda d: paper(d).update(id="0000000000000002"),
    "zero-id": lambda d: paper(d).update(id="0000000000000000"),
    "future-id": lambda d: paper(d).update(id="0000000000000003"),
    "no-property-id": lambda d: paper(d)["properties"]["code"].pop("id"),
    "used-property-id": lambda d: paper(d)["properties"]["code"].update(id=2),
    "future-property-id": lambda d: paper(d)["properties"]["code"].update(id=5),
    "no-counter": lambda d: d["next_property_ids"].pop("node:Paper"),
    "other-counter": lambda d: d["next_property_ids"].update({"node:X": 1}),
    "text-counter": lambda d: d["next_property_ids"].update({"node:Paper": "5"}),
    "no-type": lambda d: paper(d)["properties"]["code"].pop("type"),
    "bad-type": lambda d: paper(d)["properties"]["code"].update(type="Text"),
    "bad-vector": lambda d: paper(d)["properties"]["v"].update(type="Vector(0)"),
    "spaced-type": lambda d: paper(d)["properties"]["code"].update(type=" String"),
    "bad-default": lambda d: paper(d)["properties"]["year"].update(default=[]),
    "nan-default": lambda d: paper(d)["properties"]["year"].update(default=float("nan")),
    "bad-embed": lambda d: paper(d)["properties"]["v"].update(embed={"model": "m"}),
    "bad-bound": lambda d: paper(d)["ranges"][0].update(low="1"),
    "true-bound": lambda d: paper(d)["ranges"][0].update(low=True),
    "range-of-nothing": lambda d: paper(d)["ranges"][0].update(property="nothing"),
    "check-of-nothing": lambda d: paper(d)["checks"][0].update(property="nothing"),
    "check-text": lambda d: paper(d).update(checks=["x"]),
    "key-of-nothing": lambda d: paper(d).update(key=["nothing"]),
    "key-of-numbers": lambda d: paper(d).update(key=[1]),
    "unique-of-nothing": lambda d: paper(d).update(uniques=[["src"]]),
    "unique-flat": lambda d: paper(d).update(uniques=["title"]),
    "index-of-nothing": lambda d: cites(d).update(indexes=[["from"]]),
    "no-interface": lambda d: paper(d).update(implements=["X"]),
    "no-endpoint": lambda d: cites(d).update(to="X"),
    "endpoint-missing": lambda d: cites(d).pop("from"),
    "no-cardinality": lambda d: cites(d).pop("cardinality"),
    "bad-cardinality": lambda d: cites(d)["cardinality"].update(min="0"),
    "annotation-without-name": lambda d: paper(d)["annotations"][0].pop("name"),
    "annotation-value": lambda d: paper(d)["annotations"][0].update(value=[]),
    "annotation-arguments": lambda d: paper(d)["annotations"][0].update(arguments=[["n"]]),
    "annotation-null": lambda d: paper(d)["annotations"][0].update(arguments=[["n", None]]),
    "half-character": lambda d: paper(d).update(description="\ud800"),
}


def paper(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["catalog"]["nodes"]["Paper"]
    return found


def cites(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["catalog"]["edges"]["Cites"]
    return found


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in CHANGES.items()])
def test_documents_that_are_no_schema(change: Change) -> None:
    document = json.loads(GOLDEN)
    change(document)
    with pytest.raises(SchemaContractError) as caught:
        SchemaIR.from_json(json.dumps(document))
    assert caught.value.reason == "malformed"


def test_a_newer_format_is_named() -> None:
    with pytest.raises(SchemaContractError, match="its format is 2, and this version reads 1"):
        SchemaIR.from_json(GOLDEN.replace('"format":1', '"format":2'))


@pytest.mark.parametrize("text", ["null", "[]", "1", '"x"', "{}"])
def test_values_that_are_no_schema(text: str) -> None:
    with pytest.raises(SchemaContractError) as caught:
        SchemaIR.from_json(text)
    assert caught.value.reason == "malformed"


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(GOLDEN) - 1), st.sampled_from(['"', "{", "]", "0", "null", ":", "x", ""]))
def test_a_damaged_text_is_refused_or_still_means_something(place: int, junk: str) -> None:
    damaged = GOLDEN[:place] + junk + GOLDEN[place + 1 :]
    try:
        ir = SchemaIR.from_json(damaged)
    except SchemaContractError:
        return
    assert ir.to_json() == json.dumps(json.loads(damaged), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


# --- hashes -----------------------------------------------------------------------------------------------------------


def test_identities_change_the_hash_but_not_the_fingerprint() -> None:
    first = accept_schema(compile_schema(SOURCE), incarnation=1)
    second = accept_schema(compile_schema(SOURCE), accept_schema(compile_schema("node Old { }")), incarnation=2)
    assert ir_hash(first) != ir_hash(second)
    assert fingerprint(first) == fingerprint(second) == fingerprint(compile_schema(SOURCE))


def test_the_order_of_a_key_is_identity() -> None:
    before = accept_schema(compile_schema("node A { a: I32 b: I32 @key(a, b) }"))
    wanted = compile_schema('node A { z: I32 @rename_from("a") b: I32 @key(b, z) }')
    assert fingerprint(accept_schema(wanted, before)) == fingerprint(wanted)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_order_blanks_and_comments_do_not_change_the_fingerprint(data: st.DataObject) -> None:
    schema: WrittenSchema = data.draw(written_schemas())
    other = data.draw(shuffled(schema))
    assert fingerprint(compile_schema(other)) == fingerprint(compile_schema(schema.text))
    assert print_schema(compile_schema(other)) == print_schema(compile_schema(schema.text))


DIFFERENT = [
    ("node A { }", "node B { }"),
    ("node A { }", "node A { } node B { }"),
    ("node A { }", "interface I { } node A { }"),
    ("interface I { } node A { }", "interface I { } node A implements I { }"),
    ("node A { x: I32 }", "node A { x: I64 }"),
    ("node A { x: I32 }", "node A { x: I32? }"),
    ("node A { x: enum(a) }", "node A { x: enum(a, b) }"),
    ("node A { x: I32 }", "node A { x: I32 @index }"),
    ("node A { x: I32 @index }", "node A { x: I32 @key }"),
    ("node A { x: I32 @unique y: I32 @unique }", "node A { x: I32 y: I32 @unique(x, y) }"),
    ("node A { x: I32 @range(x, 0..) }", "node A { x: I32 @range(x, 0..9) }"),
    ("node A { x: I32 @range(x, ..9) }", "node A { x: I32 @range(x, 9..) }"),
    ('node A { x: String @check(x, "a") }', 'node A { x: String @check(x, "b") }'),
    ("node A { x: I32 @default(1) }", "node A { x: I32 @default(2) }"),
    ("node A { x: Bool? @default(false) }", "node A { x: Bool? }"),
    ("node A { v: Vector(1) }", 'node A { v: Vector(1) @metric("dot") }'),
    ("node A { x: I32 @m(1) }", "node A { x: I32 @m(true) }"),
    ("node A { x: I32 @m(x) }", 'node A { x: I32 @m("x") }'),
    ('node A @description("a") { }', 'node A @instruction("a") { }'),
    ("node A { } edge R: A -> A", "node A { } edge R: A -> A @card(0..1)"),
    ("node A { } node B { } edge R: A -> B", "node A { } node B { } edge R: B -> A"),
    ("node A { } edge R: A -> A", "node A { } edge R: A -> A { @key(src, dst) }"),
    ("interface I { x: I32 }", "interface I { x: I32 @key }"),
]


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_another_meaning_is_another_fingerprint(left: str, right: str) -> None:
    assert fingerprint(compile_schema(left)) != fingerprint(compile_schema(right))
