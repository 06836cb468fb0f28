"""`@default`: which literals fit, and in which spelling they are kept."""

from __future__ import annotations

import pytest

from omnigraph.language.schema.build import compile_schema
from tests.language.schema.parsing import semantic_refusal

FITTING = [
    ("String", '"x"', "x"),
    ("String?", '""', ""),
    ("enum(a, b)", '"a"', "a"),
    ("Bool", "true", True),
    ("Bool?", "false", False),
    ("I32", "2147483647", 2147483647),
    ("I64", "9223372036854775807", 9223372036854775807),
    ("U32", "4294967295", 4294967295),
    ("U64", "18446744073709551615", 18446744073709551615),
    ("F32", "0.5", 0.5),
    ("F64", "3", 3.0),
    ("Date", '"2024-02-29"', "2024-02-29"),
    ("Date", "19723", "2024-01-01"),
    ("DateTime", '"2024-06-01T12:00:00+02:00"', "2024-06-01T10:00:00.000Z"),
    ("DateTime", "1", "1970-01-01T00:00:00.001Z"),
]


@pytest.mark.parametrize(("declared", "literal", "value"), FITTING)
def test_fitting(declared: str, literal: str, value: object) -> None:
    catalog = compile_schema(f"node N {{ a: {declared} @default({literal}) }}")
    default = catalog.nodes["N"].properties["a"].default
    assert default == value
    assert type(default) is type(value)


UNFIT = [
    ("String", "1", "double quotes"),
    ("String", "true", "double quotes"),
    ("enum(a, b)", '"c"', "'c' is not one of its values"),
    ("enum(a, b)", '"A"', "'A'"),
    ("Bool", "1", "`true` or `false`"),
    ("Bool", '"true"', "`true` or `false`"),
    ("I32", "2147483648", "range of I32"),
    ("I64", "9223372036854775808", "range of I64"),
    ("U32", "4294967296", "range of U32"),
    ("I32", "1.0", "integer"),
    ("I32", '"1"', "integer"),
    ("I32", "true", "integer"),
    ("F32", f"{10**39}.0", "F32"),
    ("F64", "true", "number"),
    ("F64", '"1.5"', "number"),
    ("Date", '"2023-02-29"', "2023-02-29"),
    ("Date", '"yesterday"', "yesterday"),
    ("Date", "true", "integer"),
    ("Date", "2932897", "9999"),
    ("DateTime", '"2024-01-01T00:00:00.0001Z"', "millisecond"),
    ("DateTime", "1.5", "integer"),
    ("[String]", '"x"', "can not have a default"),
    ("Vector(1)", "1", "can not have a default"),
    ("Blob", '"x"', "can not have a default"),
]


@pytest.mark.parametrize(("declared", "literal", "message"), UNFIT)
def test_unfit(declared: str, literal: str, message: str) -> None:
    refusal = semantic_refusal(f"node N {{ a: {declared} @default({literal}) }}")
    assert "@default on N.a does not fit" in refusal
    assert message in refusal


def test_a_default_may_stand_on_an_edge_and_in_an_interface() -> None:
    catalog = compile_schema(
        "interface I { a: I32 @default(1) } node N implements I { } edge R: N -> N { w: I32 @default(2) }"
    )
    assert catalog.nodes["N"].properties["a"].default == 1
    assert catalog.edges["R"].properties["w"].default == 2
