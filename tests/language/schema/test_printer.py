"""Schemas as text: one golden page, and the round trip of any schema."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.schema.ir import fingerprint
from omnigraph.language.schema.printer import print_schema
from tests.language.schema.strategies import catalogs

SOURCE = r"""
edge Likes: Person -> Paper
interface Titled { title: String @key @tag("x") }
edge Cites: Paper -> Paper @card(1..) @description("why") {
  on: Date @key(src, dst, on) note: String? @unique(src, note)
}
node Person { name: String @key }
node Paper @owner("me", since=2024) @instruction("cite") implements Titled {
  trueness: Bool? @index @default(false)
  tags: [String]? @index(tags)
  mark: F64? @range(mark, -0.5..1000000000000000000000000.0) @range(mark, ..7)
  kind: enum(b, a) @default("a") @unique
  v: Vector(2) @embed(title, model="m") @metric("cosine") @unique(v)
  text: String @description("a\n\"b\"\\\t\r") @check(text, "^\\d{3}$")
}
"""

PRINTED = r"""interface Titled {
  title: String @key @tag("x")
}

node Paper @instruction("cite") @owner("me", since=2024) implements Titled {
  kind: enum(a, b) @unique @default("a")
  mark: F64?
  tags: [String]?
  text: String @description("a\n\"b\"\\\t\r")
  title: String @key @tag("x")
  trueness: Bool? @index @default(false)
  v: Vector(2) @embed("title", model="m") @metric("cosine")
  @unique(v)
  @index(tags)
  @range(mark, -0.5..1000000000000000000000000.0)
  @range(mark, ..7)
  @check(text, "^\\d{3}$")
}

node Person {
  name: String @key
}

edge Cites: Paper -> Paper @card(1..) @description("why") {
  note: String?
  on: Date
  @key(src, dst, on)
  @unique(src, note)
}

edge Likes: Person -> Paper
"""


def test_a_schema_is_printed() -> None:
    assert print_schema(compile_schema(SOURCE)) == PRINTED


def test_an_accepted_schema_is_printed_alike() -> None:
    assert print_schema(accept_schema(compile_schema(SOURCE), incarnation=7)) == PRINTED


def test_nothing_is_printed_as_nothing() -> None:
    assert print_schema(compile_schema("// nothing")) == ""


@settings(max_examples=150, deadline=None)
@given(catalogs())
def test_what_is_printed_means_the_same(catalog: Catalog) -> None:
    printed = print_schema(catalog)
    again = compile_schema(printed)
    assert again == catalog
    assert fingerprint(again) == fingerprint(catalog)
    assert print_schema(again) == printed


@pytest.mark.parametrize(
    "literal",
    ["0.0", "0.1", "5.0", f"{10**22}.0", f"{10**300}.0", "0." + "0" * 320 + "5", "123456789.123456789", "0.000001"],
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_floats_have_no_exponent(literal: str, sign: str) -> None:
    catalog = compile_schema(f"node A {{ x: F64 @range(x, {sign}{literal}..) }}")
    printed = print_schema(catalog)
    assert "e" not in printed.split("@range")[1]
    assert compile_schema(printed).nodes["A"].ranges == catalog.nodes["A"].ranges


def test_a_renamed_key_still_prints() -> None:
    before = accept_schema(compile_schema("node A { a: I32 b: I32 @key(a, b) }"))
    after = accept_schema(compile_schema('node A { z: I32 @rename_from("a") b: I32 @key(b, z) }'), before)
    assert "@key(z, b)" in print_schema(after)
    assert fingerprint(compile_schema(print_schema(after))) == fingerprint(after)
