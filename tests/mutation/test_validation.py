"""Section 10 through mutations: every rule is judged on the final image, and a broken one leaves no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import TypecheckError, ValidationError
from tests.mutation.org_graph import ids, pairs, rows


def refused(graph: og.Graph, source: str, *fragments: str, **params: object) -> ValidationError:
    """The mutation breaks a rule: the error says so, and nothing has changed."""
    before = graph.snapshot().to_dict()
    with pytest.raises(ValidationError) as error:
        graph.mutate(source, params=params)
    for fragment in fragments:
        assert fragment in str(error.value)
    assert graph.snapshot().to_dict() == before
    return error.value


def test_val_01_enum(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node P { name: String @key role: enum(admin, guest, member) }")
    insert = "query q($n: String, $r: String) { insert P { name: $n, role: $r } }"
    error = refused(graph, insert, "invalid enum value 'root'", n="a", r="root")
    assert (error.kind, error.type_key, error.property, error.entity_id) == ("enum", "node:P", "role", "a")
    graph.mutate(insert, params={"n": "a", "r": "admin"})
    update = 'query q($r: String) { update P set { role: $r } where name = "a" }'
    refused(graph, update, "invalid enum value 'root'", r="root")


@pytest.mark.parametrize(("value", "fits"), [(-20.0, True), (-40.0, True), (60.0, True), (-50.0, False), (60.5, False)])
def test_val_03_range(tmp_path: Path, value: float, fits: bool) -> None:
    graph = og.init(tmp_path / "g", "node P { name: String @key t: F64? @range(t, -40.0..60.0) }")
    insert = 'query q($t: F64) { insert P { name: "a", t: $t } }'
    if fits:
        graph.mutate(insert, params={"t": value})
        assert rows(graph, "node:P")[0]["t"] == value
    else:
        refused(graph, insert, "@range violation", t=value)


@pytest.mark.parametrize(
    ("bound", "good", "bad"),
    [("..9", 9, 10), ("3..", 3, 2), ("-1000..1000", -1000, -1001), ("0.5..2.5", 2, 3)],
)
def test_val_03_integer_ranges(tmp_path: Path, bound: str, good: int, bad: int) -> None:
    graph = og.init(tmp_path / "g", f"node P {{ name: String @key n: I64? @range(n, {bound}) }}")
    insert = 'query q($n: I64?) { insert P { name: "a", n: $n } }'
    graph.mutate(insert, params={"n": good})
    graph.mutate(insert, params={"n": None})
    refused(graph, insert, "@range violation on P.n", n=bad)


CHECKED = """node O { code: String @key label: String?
  @check(code, "^[A-Z]{3}-[0-9]+$") @check(label, "^[A-Z]+$") }"""


def test_val_05_check(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", CHECKED)
    insert = "query q($c: String, $l: String?) { insert O { code: $c, label: $l } }"
    refused(graph, insert, "@check violation", c="abc", l=None)
    graph.mutate(insert, params={"c": "ABC-1"})
    graph.mutate(insert, params={"c": "ABC-2", "l": "X"})
    refused(graph, 'query q() { update O set { label: "x" } where code = "ABC-1" }', "@check violation on O.label")


USERS = "node U { name: String @key mail: String? @unique(mail) }"
PUT_USER = "query q($n: String, $m: String?) { insert U { name: $n, mail: $m } }"


@pytest.fixture
def users(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "users", USERS)


def test_val_06_unique_within_one_write(users: og.Graph) -> None:
    query = 'query q() { insert U { name: "ann", mail: "m" } insert U { name: "bob", mail: "m" } }'
    refused(users, query, "@unique violation on U.mail")


def test_val_07_unique_against_committed_rows(users: og.Graph) -> None:
    users.mutate(PUT_USER, params={"n": "ann", "m": "m"})
    refused(users, PUT_USER, "@unique violation on U.mail", n="bob", m="m")


def test_val_08_nothing_of_a_refused_write_is_stored(users: og.Graph) -> None:
    users.mutate(PUT_USER, params={"n": "bob", "m": "m"})
    query = 'query q() { insert U { name: "dave", mail: "d" } insert U { name: "carol", mail: "m" } }'
    refused(users, query, "@unique violation on U.mail")
    assert ids(users, "node:U") == ["bob"]


def test_val_09_a_row_never_collides_with_itself(users: og.Graph) -> None:
    for _ in range(2):
        users.mutate(PUT_USER, params={"n": "ann", "m": "m"})
    users.mutate('query q() { update U set { mail: "m" } where name = "ann" }')
    assert len(ids(users, "node:U")) == 1


def test_val_10_nulls_are_exempt(users: og.Graph) -> None:
    users.mutate(PUT_USER, params={"n": "ann", "m": None})
    users.mutate(PUT_USER, params={"n": "bob", "m": None})
    assert len(ids(users, "node:U")) == 2


def test_val_11_only_the_final_image_counts(users: og.Graph) -> None:
    users.mutate(PUT_USER, params={"n": "ann", "m": "o"})
    users.mutate(
        """query q() { update U set { mail: "t" } where name = "ann" update U set { mail: "f" } where name = "ann"
           insert U { name: "cy", mail: "t" } }"""
    )
    assert [row["mail"] for row in rows(users, "node:U")] == ["f", "t"]


def test_val_11_a_value_that_was_given_up_can_be_taken(users: og.Graph) -> None:
    users.mutate(PUT_USER, params={"n": "ann", "m": "o"})
    users.mutate('query q() { update U set { mail: "n" } where name = "ann" insert U { name: "bob", mail: "o" } }')
    assert [row["mail"] for row in rows(users, "node:U")] == ["n", "o"]


def test_val_12_unique_date(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node K { name: String @key due: Date @unique }")
    insert = "query q($n: String, $d: Date) { insert K { name: $n, due: $d } }"
    graph.mutate(insert, params={"n": "a", "d": "2024-01-01"})
    refused(graph, insert, "@unique violation on K.due", n="b", d="2024-01-01")
    graph.mutate(insert, params={"n": "b", "d": "2024-01-02"})


@pytest.mark.parametrize("separator", [":", ",", "|", "\x1f", "\x00", " ", '"', "\\"])
def test_val_14_composite_unique_does_not_join_texts(tmp_path: Path, separator: str) -> None:
    graph = og.init(tmp_path / "g", "node X { slug: String @key a: String b: String @unique(a, b) }")
    insert = "query q($s: String, $a: String, $b: String) { insert X { slug: $s, a: $a, b: $b } }"
    graph.mutate(insert, params={"s": "1", "a": f"p{separator}q", "b": "r"})
    graph.mutate(insert, params={"s": "2", "a": "p", "b": f"q{separator}r"})
    refused(graph, insert, "@unique violation", s="3", a="p", b=f"q{separator}r")


def test_unique_lists_are_compared_by_value(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node X { slug: String @key tags: [String]? @unique(tags) }")
    insert = "query q($s: String, $t: [String]) { insert X { slug: $s, tags: $t } }"
    graph.mutate(insert, params={"s": "1", "t": ["a, b"]})
    graph.mutate(insert, params={"s": "2", "t": ["a", "b"]})
    refused(graph, insert, "@unique violation", s="3", t=["a", "b"])


PEOPLE = "node S { h: String @key } node T { c: String @key }"


def cardinal(path: Path, edge: str) -> og.Graph:
    graph = og.init(path, f"{PEOPLE} {edge}")
    graph.mutate(
        """query q() { insert S { h: "s1" } insert S { h: "s2" } insert T { c: "t1" } insert T { c: "t2" } }"""
    )
    return graph


PUT_W = "query q($a: String, $b: String) { insert W { from: $a, to: $b } }"


def test_val_15_maximum(tmp_path: Path) -> None:
    graph = cardinal(tmp_path / "g", "edge W: S -> T @card(0..1)")
    stale = og.open(graph.uri)
    refused(
        graph,
        'query q() { insert W { from: "s1", to: "t1" } insert W { from: "s1", to: "t2" } }',
        "@card violation",
        "max 1",
    )
    graph.mutate(PUT_W, params={"a": "s1", "b": "t1"})
    refused(graph, PUT_W, "@card violation", a="s1", b="t2")
    refused(stale, PUT_W, "@card violation", a="s1", b="t2")
    graph.mutate(PUT_W, params={"a": "s2", "b": "t1"})


def test_val_16_minimum(tmp_path: Path) -> None:
    graph = cardinal(tmp_path / "g", "edge K: S -> S @card(2..)")
    refused(graph, 'query q() { insert K { from: "s1", to: "s2" } }', "@card violation", "min 2")
    graph.mutate('query q() { insert K { from: "s1", to: "s2" } insert K { from: "s1", to: "s1" } }')


def test_val_18_a_delete_may_not_leave_too_few(tmp_path: Path) -> None:
    graph = cardinal(tmp_path / "g", "edge W: S -> T @card(1..)")
    graph.mutate(PUT_W, params={"a": "s1", "b": "t1"})
    error = refused(graph, "query q($h: String) { delete W where from = $h }", "@card violation", "s1", h="s1")
    assert error.kind == "cardinality"
    assert pairs(graph, "W") == [("s1", "t1")]


def test_val_18_deleting_the_source_itself_is_fine(tmp_path: Path) -> None:
    graph = cardinal(tmp_path / "g", "edge W: S -> T @card(1..)")
    graph.mutate(PUT_W, params={"a": "s1", "b": "t1"})
    graph.mutate('query q() { delete S where h = "s1" }')
    assert pairs(graph, "W") == []


def test_val_18_deleting_the_target_vacates_the_source(tmp_path: Path) -> None:
    graph = cardinal(tmp_path / "g", "edge W: S -> T @card(1..)")
    graph.mutate(PUT_W, params={"a": "s1", "b": "t1"})
    refused(graph, 'query q() { delete T where c = "t1" }', "@card violation", "s1")


def test_val_20_untouched_sources_are_not_counted(tmp_path: Path) -> None:
    graph = cardinal(tmp_path / "g", "edge W: S -> T @card(1..)")
    graph.mutate('query q() { insert S { h: "s3" } }')
    graph.mutate(PUT_W, params={"a": "s1", "b": "t1"})


def test_val_21_the_next_write_works(users: og.Graph) -> None:
    users.mutate(PUT_USER, params={"n": "ann", "m": "m"})
    refused(users, PUT_USER, "@unique", n="bob", m="m")
    users.mutate(PUT_USER, params={"n": "bob", "m": "b"})
    assert ids(users, "node:U") == ["ann", "bob"]


def test_defaults_and_whole_row_upserts(tmp_path: Path) -> None:
    graph = og.init(
        tmp_path / "g",
        """node D { k: String @key n: I32? @default(7) day: Date? @default("2024-01-01") note: String? }""",
    )
    graph.mutate('query q() { insert D { k: "a", note: "x" } }')
    graph.mutate('query q() { update D set { n: 9 } where k = "a" }')
    assert [rows(graph, "node:D")[0][name] for name in ("n", "note")] == [9, "x"]
    graph.mutate('query q() { insert D { k: "a" } }')
    row = rows(graph, "node:D")[0]
    assert (row["n"], str(row["day"]), row["note"]) == (7, "2024-01-01", None)


LISTS = "node P { name: String @key tags: [String]? nums: [I32]? level: String? age: I32? big: I64? v: Vector(2)? }"


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("lists") / "g", LISTS)
    graph.mutate('insert P { name: "x", age: 1 }')
    return graph


@pytest.mark.parametrize(
    "source",
    [
        'insert P { name: "x", tags: ["a", null] }',
        'insert P { name: "x", tags: [null] }',
        'insert P { name: "x", nums: [1, null] }',
        'insert P { name: "x", tags: distinct_list(["a", null]) }',
        'upsert P { name: "x", tags: ["a", null] }',
        "update P set { tags: [name, level] } where true",
        "update P set { nums: [age, big] } where true",
        "match { $p: P } update $p set { tags: [$p.name, $p.level] }",
        "match { $p: P } insert P { name: $p.name, tags: [$p.name, $p.level] }",
    ],
)
def test_a_list_holds_no_null(lists: og.Graph, source: str) -> None:
    error = refused(lists, source, "null is not accepted as an element")
    assert (error.kind, error.type_key, error.entity_id) == ("element", "node:P", "x")
    assert error.property in ("tags", "nums")


def test_a_list_in_a_transaction_holds_no_null(lists: og.Graph) -> None:
    with pytest.raises(ValidationError, match="null is not accepted as an element"), lists.transaction() as writing:
        writing.mutate("update P set { tags: [name, level] } where true")


def test_a_list_that_a_query_computes_may_hold_null(lists: og.Graph) -> None:
    found = lists.query("match { $p: P } return { [$p.name, $p.level] as l, size([$p.name, $p.level]) as n }")
    assert found.to_dicts() == [{"l": ["x", None], "n": 2}]


def test_a_vector_of_a_literal_holds_no_null(lists: og.Graph) -> None:
    with pytest.raises(TypecheckError, match="T3.*elements must be numeric"):
        lists.mutate('insert P { name: "x", v: [1, null] }')
