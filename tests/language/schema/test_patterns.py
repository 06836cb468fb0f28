"""The patterns of `@check`: they mean what Python's mean, take linear time, and say what they do not support."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    LoadRejected,
    OmnigraphError,
    ParseError,
    ValidationError,
)
from omnigraph.language.schema import constraints
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.patterns import UnsupportedPattern, compile_check
from omnigraph.merge.rules import row_conflicts

ALIKE = [
    r"^\w+$", r"^[\w-]+$", r"^\d{3}$", r"a\Z", r"[]x]+", r"[^]x]", r"[[a]+", r"[a\]b]", r"\u00e4", r"^\S+$", r"\s",
    r"[^\d]", r"\W", r"^[A-Z]{3}-[0-9]+$", r"(?m)^a$", r"(?i)ärger", r"\.", r"\\", r"[\\\]]+", r"a|b", r"^[\s\d]*$",
    "ä+", r"^.$", r"(?s)^.$", r"\x41", r"\t", r"^(?:a|aa)+$", r"(?P<n>a)b*",
]  # fmt: skip
TEXTS = [
    "José_1", "a-b", "123", "١٢٣", "a", "a\n", "]", "[", "]x", "ä", "Ä", " ", "\xa0", "\u2003", "\x0b", "\x1c", "\x85",
    "abc", "ABC-1", "x\na\ny", "ÄRGER", "\\", "", "\U0001f600", "\n", "A", "\t", "²", "e\u0301", "_", "aaaa", "a.b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", ALIKE)
def test_patterns_mean_what_they_mean_in_python(pattern: str) -> None:
    """But for `$`, which is the end of the text alone."""
    python = pattern if "(?m)" in pattern else re.sub(r"(?<!\\)\$", r"\\Z", pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [re.search(python, text) is not None for text in TEXTS]
    assert [compile_check(pattern)(text.encode()) for text in TEXTS] == expected


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", "no back-references"),
        (r"(?=x)", "no look-ahead"),
        (r"(?!x)", "no look-ahead"),
        (r"(?<!x)y", "no look-behind"),
        (r"(?>a)", "no atomic groups"),
        (r"a*+", "no repetitions of repetitions"),
        (r"a{2000}", "no counts above 1000"),
        (r"(?P<n>a)(?P=n)", "no references to groups"),
        (r"[\W]", "within a set of characters"),
        (r"(?x) a", "invalid perl operator"),
        (r"[", "missing ]"),
        ("\ud800", "half of a surrogate pair"),
        (r"(?:a{1000}){1000}", "repetition size|counts above"),
    ],
)
def test_what_is_not_supported_is_refused_with_a_reason(pattern: str, reason: str) -> None:
    with pytest.raises(UnsupportedPattern, match=reason):
        compile_check(pattern)


def test_a_schema_with_such_a_pattern_is_refused_where_it_is_written() -> None:
    from omnigraph.language.schema.parser import parse_schema

    with pytest.raises(
        ParseError, match="@check has an invalid regular expression: RE2.* has no look-ahead"
    ) as refused:
        parse_schema('node A {\n  x: String @check(x, "^(?=a)")\n}\n')
    assert refused.value.line == 2


#: Took longer than two minutes with a text of forty letters in an engine that tries every way.
SLOW = '@check(code, "^(a+)+$")'
HOSTILE = "a" * 40 + "!"


def test_time_is_linear_in_every_writer(tmp_path: Path) -> None:
    """A load, a mutation, a merge and an applied schema all judge the text that a backtracking engine never ends on."""
    plain = "node P { name: String @key code: String? }"
    checked = plain.replace("String? }", f"String? {SLOW} }}")
    graph = og.init(tmp_path / "g", checked)
    row = [{"type": "P", "data": {"name": "a", "code": HOSTILE}}]
    with pytest.raises(LoadRejected, match="@check violation"):
        graph.load(row, engine="local")
    with pytest.raises(ValidationError, match="@check violation"):
        graph.mutate('query q($c: String) { insert P { name: "a", code: $c } }', params={"c": HOSTILE})
    loose = og.init(tmp_path / "loose", plain)
    loose.load(row, engine="local")
    with pytest.raises(ValidationError, match="rows of node:P break it: @check violation"):
        loose.apply_schema(checked)
    merged = loose.snapshot().open("node:P").read()
    (conflict,) = row_conflicts(compile_schema(checked).nodes["P"], merged)
    assert "@check violation" in conflict.message
    assert not compile_check("^(a+)+$")(("a" * 1_000_000 + "!").encode())


def old_graph(path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    """A graph as it was made when patterns were Python's: with one that RE2 does not have."""
    with monkeypatch.context() as patch:
        patch.setattr(constraints, "refuse_pattern", lambda *_: None)
        og.init(path, 'node P { name: String @key code: String? @check(code, "^(?=a)") }\nnode Q { name: String @key }')
    return og.open(path)


def test_a_stored_schema_with_such_a_pattern_opens_and_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = old_graph(tmp_path / "g", monkeypatch)
    insert: dict[str, Any] = {"query": 'query q() { insert P { name: "a", code: "a" } }'}
    with pytest.raises(
        ValidationError, match=r"@check on P.code can not be evaluated: .* apply a schema whose pattern"
    ):
        graph.mutate(insert["query"])
    with pytest.raises(OmnigraphError, match="can not be evaluated"):
        graph.load([{"type": "P", "data": {"name": "a", "code": "a"}}], engine="local")
    graph.load([{"type": "Q", "data": {"name": "other types are as they were"}}], engine="local")
    assert len(graph.query("query q() { match { $q: Q } return { $q.name } }").to_arrow()) == 1
    graph.apply_schema('node P { name: String @key code: String? @check(code, "^a") }\nnode Q { name: String @key }')
    graph.mutate(insert["query"])
    found = graph.query("query q() { match { $p: P } return { $p.code as code } }").to_arrow()
    assert found.to_pylist() == [{"code": "a"}]
