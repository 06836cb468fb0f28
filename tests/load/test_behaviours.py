"""Sections 9, 10, 11 and 22 of the behaviours: what a load accepts, what it refuses and what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, KeyConflict, LoadRejected, OmnigraphError
from tests.load.conftest import Load
from tests.load.loading import content, edge, ends, files, graph_of, ids, lines, node, org, rows
from tests.query.fixtures import ORG_ROWS

THING = "node Thing { key: String @key v: String }"
BARE = "node Thing { v: String }"
CARD = "node S { h: String @key } node T { c: String @key } edge W: S -> T @card(0..1)"
CARD_MIN = "node S { h: String @key } node T { c: String @key } edge W: S -> T @card(1..)"
DOC = "node Doc { slug: String @key emb: Vector(3) }"
USER = "node U { name: String @key mail: String? @unique(mail) }"
TENANT = "node M { ten: String slot: U32 lab: String @key(ten, slot) } edge R: M -> M"
BLOB = "node Doc { title: String @key content: Blob? note: String? } edge Att: Doc -> Doc { payload: Blob? }"


def refused(load: Load, graph: og.Graph, documents: list[Any], mode: str, kind: type[OmnigraphError]) -> OmnigraphError:
    """A load that is refused and leaves nothing behind: no commit, no branch, no file."""
    before, head, branches, there = content(graph), graph.head(), graph.branches(), files(graph)
    with pytest.raises(kind) as caught:
        load(graph, lines(documents), mode)
    assert (content(graph), graph.head(), graph.branches()) == (before, head, branches)
    assert files(graph) == there
    return caught.value


# --- 9. loading -------------------------------------------------------------------------------------------------------


@pytest.mark.row("LOD-01", "LOD-35")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_the_fixture(load: Load, tmp_path: Path, mode: str, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g")
    before = graph.head()
    result = load(graph, ORG_ROWS.encode(), mode)
    counts = {(table.kind, table.type): table.rows for table in result.tables}
    assert counts == {("node", "Staff"): 4, ("node", "Team"): 2, ("edge", "Mentors"): 3, ("edge", "MemberOf"): 2}
    assert (result.branch, result.base_branch, result.branch_created, result.mode) == ("main", None, False, mode)
    assert (result.nodes_loaded, result.edges_loaded) == (6, 5)
    assert result.commit == graph.head()
    assert result.commit.parent == before.id
    assert result.commit.kind == "load"
    assert content(graph) == content(org(tmp_path / "other"))


@pytest.mark.row("LOD-04")
def test_a_strict_insert_of_an_id_that_exists(load: Load, tmp_path: Path, row: list[str]) -> None:
    error = refused(load, org(tmp_path / "g"), [node("Staff", handle="ada", level=99)], "append", KeyConflict)
    assert isinstance(error, KeyConflict)
    assert (error.type_key, error.entity_id) == ("node:Staff", "ada")


@pytest.mark.row("LOD-05")
def test_merge(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = org(tmp_path / "g")
    load(graph, lines([node("Staff", handle="ada", level=31), node("Staff", handle="eve")]), "merge")
    levels = {one["handle"]: one["level"] for one in rows(graph, "node:Staff")}
    assert levels == {"ada": 31, "ben": 25, "cleo": 35, "dov": 28, "eve": None}
    assert len(ends(graph, "Mentors")) == 3


@pytest.mark.row("LOD-07")
def test_merging_a_delta_twice(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", THING, *(node("Thing", key=f"k{n}", v="a") for n in range(50)))
    delta = lines(node("Thing", key=f"k{n}", v="b") for n in range(35, 65))
    for _ in range(2):
        assert load(graph, delta, "merge").nodes_loaded == 30
        found = rows(graph, "node:Thing")
        assert len(found) == 65
        assert sum(one["v"] == "b" for one in found) == 30


@pytest.mark.row("LOD-08")
def test_overwrite_is_by_type(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = org(tmp_path / "g")
    graph.ensure_indices()
    new = [node("Staff", handle="zara"), edge("Mentors", "zara", "zara"), edge("MemberOf", "zara", "core")]
    load(graph, lines(new), "overwrite")
    assert ids(graph, "node:Staff") == ["zara"]
    assert ids(graph, "node:Team") == ["core", "labs"]
    assert ends(graph, "MemberOf") == [("zara", "core")]
    graph.ensure_indices()
    assert ids(graph, "node:Staff") == ["zara"]


@pytest.mark.row("LOD-09")
def test_an_overwrite_may_not_leave_an_edge_dangling(load: Load, tmp_path: Path, row: list[str]) -> None:
    schema = "node Staff { handle: String @key } edge Mentors: Staff -> Staff"
    graph = graph_of(
        tmp_path / "g", schema, node("Staff", handle="ada"), node("Staff", handle="ben"), edge("Mentors", "ada", "ben")
    )
    error = refused(load, graph, [node("Staff", handle="ada")], "overwrite", LoadRejected)
    assert "not found" in error.message
    assert "'ben'" in error.message
    load(
        graph,
        lines([node("Staff", handle="ada"), node("Staff", handle="ben"), node("Staff", handle="cy")]),
        "overwrite",
    )
    assert ids(graph, "node:Staff") == ["ada", "ben", "cy"]


@pytest.mark.row("LOD-10")
def test_an_overwrite_is_judged_on_the_new_image(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", *[graph_schema()], node("Staff", handle="ada"))
    load(graph, lines([edge("Mentors", "cyd", "cyd"), node("Staff", handle="cyd")]), "overwrite")
    assert ends(graph, "Mentors") == [("cyd", "cyd")]
    refused(load, graph, [node("Staff", handle="dan"), edge("Mentors", "ada", "dan")], "overwrite", LoadRejected)


def graph_schema() -> str:
    return "node Staff { handle: String @key level: I32? } edge Mentors: Staff -> Staff"


@pytest.mark.row("LOD-11")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_an_edge_to_nowhere(load: Load, tmp_path: Path, mode: str, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g")
    for wrong in (edge("Mentors", "ada", "Missing"), edge("Mentors", "Missing", "ada")):
        error = refused(load, graph, [node("Staff", handle="ada"), wrong], mode, LoadRejected)
        assert isinstance(error, LoadRejected)
        assert "not found" in error.message
        assert error.errors[0][1] == 2
        assert "Missing" in error.errors[0][2]
    load(graph, ORG_ROWS.encode(), mode)
    assert len(ends(graph, "Mentors")) == 3


@pytest.mark.row("LOD-12")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_one_key_twice(load: Load, tmp_path: Path, mode: str, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", THING)
    twice = [node("Thing", key="a", v="1"), node("Thing", key="b", v="1"), node("Thing", key="a", v="2")]
    if mode == "merge":
        result = load(graph, lines(twice), mode)
        assert result.nodes_loaded == 2
        assert {one["id"]: one["v"] for one in rows(graph, "node:Thing")} == {"a": "2", "b": "1"}
    else:
        error = refused(load, graph, twice, mode, LoadRejected)
        assert isinstance(error, LoadRejected)
        assert error.errors == [("<data>", 3, error.errors[0][2])]
        assert "@unique violation on Thing.key: the key 'a'" in error.message


@pytest.mark.row("LOD-13")
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_given_id_twice_on_a_fresh_branch(load: Load, tmp_path: Path, mode: str, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", BARE).at("main")
    graph.create_branch("fresh")
    branch = graph.at("fresh")
    error = refused(load, branch, [node("Thing", id="DUP", v="1"), node("Thing", id="DUP", v="2")], mode, KeyConflict)
    assert isinstance(error, KeyConflict)
    assert (error.type_key, error.entity_id) == ("node:Thing", "DUP")


@pytest.mark.row("LOD-14", "LOD-15", "VAL-19")
def test_edges_that_are_replaced(load: Load, tmp_path: Path, row: list[str]) -> None:
    nodes = [node("S", h="s1"), node("S", h="s2"), node("T", c="t1"), node("T", c="t2")]
    graph = graph_of(tmp_path / "g", CARD, *nodes)
    load(graph, lines([edge("W", "s1", "t1", id="w1"), edge("W", "s1", "t2", id="w1")]), "merge")
    assert ends(graph, "W") == [("s1", "t2")]
    load(graph, lines([edge("W", "s1", "t1", id="w1")]), "merge")
    assert ends(graph, "W") == [("s1", "t1")]
    load(graph, lines([edge("W", "s1", "t2", id="w2"), edge("W", "s2", "t2", id="w2")]), "merge")
    assert ends(graph, "W") == [("s1", "t1"), ("s2", "t2")]


@pytest.mark.row("LOD-16")
def test_where_the_id_of_an_edge_stands(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", graph_schema(), node("Staff", handle="a"), node("Staff", handle="b"))
    load(graph, lines([edge("Mentors", "a", "b", id="w1")]))
    assert ids(graph, "edge:Mentors") == ["w1"]
    wrong = {**edge("Mentors", "a", "b"), "id": "w2"}
    assert "unknown field 'id'" in refused(load, graph, [wrong], "append", LoadRejected).message
    load(graph, lines([wrong]), lenient=True)
    assert len(ids(graph, "edge:Mentors")) == 2
    assert "w2" not in ids(graph, "edge:Mentors")


@pytest.mark.row("LOD-17")
def test_unknown_types(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = org(tmp_path / "g")
    assert "unknown node type 'Stuff'" in refused(load, graph, [node("Stuff")], "append", LoadRejected).message
    assert "unknown edge type" in refused(load, graph, [edge("Mentor", "ada", "ben")], "merge", LoadRejected).message


@pytest.mark.row("LOD-19")
def test_an_empty_load_is_one_commit(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = org(tmp_path / "g")
    before, head = content(graph), graph.head()
    result = load(graph, b"\n// nothing\n", "merge")
    assert result.tables == ()
    assert graph.head().id == result.commit.id
    assert graph.head().parent == head.id
    assert content(graph) == before


@pytest.mark.row("LOD-20")
def test_a_lenient_stream(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g")
    text = b"""{
      "type": "Staff",
      "data": {"handle": "ada", "extra": 1, "level": "many"}
    } // the first
    {"type":"Staff","data":{"handle":"ben"}}{"type":"Team","edge":"Mentors","data":{"code":"core"},"note":1}
    {"edge":"Mentors","from":"ada","to":"ben"}"""
    result = load(graph, text, lenient=True)
    assert [one["level"] for one in rows(graph, "node:Staff")] == [None, None]
    assert ids(graph, "node:Team") == ["core"]
    ignored = result.report.ignored
    assert (ignored.fields, ignored.properties, ignored.values) == (2, 1, 1)
    with pytest.raises(LoadRejected) as caught:
        load(
            graph,
            b'{\n"type":"Staff","data":{"handle":"x"}}\n\n{"edge":"Mentors",\n"from":"x","to":"no"}',
            lenient=True,
        )
    assert caught.value.errors == [("<data>", 4, "edge Mentors: `to` node Staff 'no' not found")]


@pytest.mark.row("LOD-25")
def test_a_lenient_reading_does_not_invent(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", THING)
    with pytest.raises(LoadRejected, match="has null or invalid values"):
        load(graph, lines([node("Thing", key="a", v=5)]), lenient=True)


@pytest.mark.row("LOD-26")
@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([0.1, None, 0.3], "elements must be numeric"),
        ([0.1, "0.2", 0.3], "elements must be numeric"),
        ([0.1, 0.2], "expects 3 dimensions, got 2"),
    ],
)
def test_vectors(load: Load, tmp_path: Path, vector: list[Any], message: str, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", DOC)
    assert message in refused(load, graph, [node("Doc", slug="a", emb=vector)], "append", LoadRejected).message
    load(graph, lines([node("Doc", slug="a", emb=[0.5, 0.25, 1])]))
    assert rows(graph, "node:Doc")[0]["emb"] == [0.5, 0.25, 1]


@pytest.mark.row("LOD-27")
def test_an_omitted_vector(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", "node Doc { slug: String @key emb: Vector(2)? }")
    load(graph, lines([node("Doc", slug="a"), node("Doc", slug="b", emb=[1, 2]), node("Doc", slug="c", emb=None)]))
    assert [one["emb"] for one in rows(graph, "node:Doc")] == [None, [1, 2], None]


@pytest.mark.row("LOD-29")
@pytest.mark.parametrize("day", ["2024-01-01", 19723])
@pytest.mark.parametrize("instant", ["2024-01-01T00:00:01.500Z", "2024-01-01T01:00:01.5+01:00", 1704067201500])
def test_dates(load: Load, tmp_path: Path, day: Any, instant: Any, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", "node Ev { d: Date @key t: DateTime? }")
    load(graph, lines([node("Ev", d=day, t=instant)]))
    (found,) = rows(graph, "node:Ev")
    assert (found["id"], found["d"].isoformat()) == ("19723", "2024-01-01")
    assert found["t"].isoformat() == "2024-01-01T00:00:01.500000+00:00"


# --- 10. validation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "good", "bad", "message"),
    [
        pytest.param(
            "node P { name: String @key role: enum(admin, guest) }",
            {"name": "a", "role": "admin"},
            {"name": "b", "role": "root"},
            "invalid enum value 'root'",
            id="VAL-01",
        ),
        pytest.param(
            "node P { name: String @key t: F64? @range(t, -40.0..60.0) }",
            {"name": "a", "t": -20.0},
            {"name": "b", "t": -50.0},
            "@range violation",
            id="VAL-03",
        ),
        pytest.param(
            "node P { name: String @key t: F64? @range(t, -40.0..60.0) }",
            {"name": "a", "t": None},
            '{"type":"P","data":{"name":"b","t":NaN}}',
            "NaN",
            id="VAL-04",
        ),
        pytest.param(
            'node P { name: String @key label: String? @check(label, "^[A-Z]+$") }',
            {"name": "a", "label": None},
            {"name": "b", "label": "no"},
            "@check violation",
            id="VAL-05",
        ),
        pytest.param(
            "node P { name: String @key n: I32 }",
            {"name": "a", "n": 1},
            {"name": "b"},
            "is required and has null",
            id="VAL-21 required",
        ),
    ],
)
def test_rules_about_a_row(load: Load, tmp_path: Path, schema: str, good: Any, bad: Any, message: str) -> None:
    graph = graph_of(tmp_path / "g", schema)
    wrong = bad if isinstance(bad, str) else node("P", **bad)
    error = refused(load, graph, [node("P", **good), wrong], "append", LoadRejected)
    assert isinstance(error, LoadRejected)
    assert [(line, message in text) for _, line, text in error.errors] == [(2, True)]
    load(graph, lines([node("P", **good)]))
    assert ids(graph, "node:P") == ["a"]


@pytest.mark.row("VAL-06", "VAL-08", "VAL-09", "VAL-10", "VAL-12")
def test_unique(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", USER, node("U", name="bob", mail="m"))
    both = [node("U", name="x", mail="n"), node("U", name="y", mail="n")]
    assert "@unique violation on U.mail" in refused(load, graph, both, "append", LoadRejected).message
    with_dave = [node("U", name="dave", mail="d"), node("U", name="carol", mail="m")]
    error = refused(load, graph, with_dave, "append", LoadRejected)
    assert isinstance(error, LoadRejected)
    assert [line for _, line, _ in error.errors] == [2]
    for _ in range(2):
        load(graph, lines([node("U", name="ann", mail="a"), node("U", name="nobody"), node("U", name="none")]), "merge")
    # Who gives a value up may hand it on in the same load.
    load(graph, lines([node("U", name="ann", mail="m"), node("U", name="bob", mail="a")]), "merge")
    assert {one["name"]: one["mail"] for one in rows(graph, "node:U")} == {
        "ann": "m",
        "bob": "a",
        "nobody": None,
        "none": None,
    }


@pytest.mark.row("VAL-14")
def test_a_composite_unique_rule(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", "node X { slug: String @key a: String b: String @unique(a, b) }")
    for number, separator in enumerate([":", "|", "\x1f", '","']):
        pair = [
            node("X", slug=f"{number}1", a=f"p{separator}q", b="r"),
            node("X", slug=f"{number}2", a="p", b=f"q{separator}r"),
        ]
        load(graph, lines(pair))
    same = [node("X", slug="z", a="p:q", b="r")]
    assert "@unique violation on X(a, b)" in refused(load, graph, same, "append", LoadRejected).message


@pytest.mark.row("VAL-15", "VAL-16", "VAL-17")
def test_cardinality(load: Load, tmp_path: Path, row: list[str]) -> None:
    nodes = [node("S", h="s1"), node("S", h="s2"), node("T", c="t1"), node("T", c="t2")]
    most = graph_of(tmp_path / "most", CARD, *nodes)
    two = [edge("W", "s1", "t1"), edge("W", "s1", "t2")]
    assert "@card violation" in refused(load, most, two, "append", LoadRejected).message
    load(most, lines(two[:1]))
    assert "@card violation" in refused(load, most, two[1:], "append", LoadRejected).message
    least = graph_of(tmp_path / "least", CARD_MIN, *nodes, edge("W", "s1", "t1", id="e1"))
    error = refused(load, least, [edge("W", "s2", "t1", id="e1")], "merge", LoadRejected)
    assert isinstance(error, LoadRejected)
    assert "@card violation" in error.message
    assert "'s1'" in error.message
    assert error.errors[0][1] == 1
    refused(load, least, [edge("W", "s2", "t1", id="e9")], "overwrite", LoadRejected)
    many = graph_of(tmp_path / "many", "node S { h: String @key } edge K: S -> S @card(2..)", node("S", h="s1"))
    assert "min 2" in refused(load, many, [edge("K", "s1", "s1")], "append", LoadRejected).message
    load(many, lines([edge("K", "s1", "s1"), edge("K", "s1", "s1")]))


# --- 11. identity -----------------------------------------------------------------------------------------------------


@pytest.mark.row("IDN-01")
def test_large_unsigned_keys(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", "node C { seq: U64 @key lab: String }")
    load(graph, lines([node("C", seq=2**64 - 1, lab="a"), node("C", seq=2**63 - 1, lab="b")]))
    assert ids(graph, "node:C") == ["18446744073709551615", "9223372036854775807"]


@pytest.mark.row("IDN-04")
def test_the_stored_width_decides(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", "node N { v: F32 @key }")
    load(graph, lines([node("N", v=16777217)]))
    assert ids(graph, "node:N") == ["16777216"]
    error = refused(load, graph, [node("N", v=16777217)], "append", KeyConflict)
    assert isinstance(error, KeyConflict)
    assert error.entity_id == "16777216"


@pytest.mark.row("IDN-05")
def test_a_key_is_finite(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", "node N { v: F64 @key }")
    with pytest.raises(LoadRejected, match="must be finite"):
        load(graph, [node("N", v=float("inf"))])
    with pytest.raises(LoadRejected):
        load(graph, b'{"type":"N","data":{"v":1e999}}')


@pytest.mark.row("IDN-06", "IDN-07", "IDN-09", "IDN-10")
def test_composite_keys(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", TENANT)
    load(graph, lines([node("M", ten="acme", slot=7, lab="a")]))
    assert ids(graph, "node:M") == ['["7","acme"]']
    load(graph, lines([node("M", ten="acme", slot=7, lab="b")]), "merge")
    assert [one["lab"] for one in rows(graph, "node:M")] == ["b"]
    fresh = graph_of(tmp_path / "fresh", TENANT)
    load(fresh, lines([edge("R", "7", "7"), node("M", id="7", ten="acme", slot=7, lab="a")]))
    assert ends(fresh, "R") == [('["7","acme"]', '["7","acme"]')]
    claims = [node("M", id="8", ten="a", slot=8, lab="x"), node("M", id="8", ten="b", slot=8, lab="y")]
    assert "ambiguous edge endpoint remap" in refused(load, fresh, claims, "append", LoadRejected).message


@pytest.mark.row("IDN-11", "IDN-12")
def test_ids_that_spell_the_key_otherwise(load: Load, tmp_path: Path, row: list[str]) -> None:
    days = graph_of(tmp_path / "days", "node D { day: Date @key } edge Next: D -> D")
    load(days, lines([edge("Next", "2024-01-01", "19723"), node("D", id="2024-01-01", day=19723)]))
    assert ids(days, "node:D") == ["19723"]
    assert ends(days, "Next") == [("19723", "19723")]
    wrong = [node("D", id="2024-01-02", day=19723)]
    assert "does not match @key" in refused(load, days, wrong, "merge", LoadRejected).message
    numbers = graph_of(tmp_path / "numbers", "node N { v: U32 @key }")
    for mode in ("append", "merge", "overwrite"):
        refused(load, numbers, [node("N", id="00042", v=42), node("N", id="42", v=42)], mode, LoadRejected)
    load(numbers, lines([node("N", id="00042", v=42)]))
    assert ids(numbers, "node:N") == ["42"]


# --- 22. blobs --------------------------------------------------------------------------------------------------------


@pytest.mark.row("BLB-01", "BLB-05", "BLB-09")
def test_blobs(load: Load, tmp_path: Path, row: list[str]) -> None:
    graph = graph_of(tmp_path / "g", BLOB)
    documents = [
        node("Doc", title="a", content="base64:SGVsbG8gV29ybGQ="),
        node("Doc", title="b"),
        node("Doc", title="c", content="base64:"),
        edge("Att", "a", "b", id="e", payload="base64:AQID"),
    ]
    load(graph, lines(documents))
    assert graph.read_blob("node", "Doc", "a", "content").read() == b"Hello World"
    assert graph.read_blob("node", "Doc", "c", "content").length == 0
    assert graph.read_blob("edge", "Att", "e", "payload").read() == b"\1\2\3"
    assert [one["content"] for one in rows(graph, "node:Doc")] == [b"Hello World", None, b""]
    load(graph, lines([node("Doc", title="b", content="base64:AQID", note="n")]), "merge")
    assert [one["content"] for one in rows(graph, "node:Doc")] == [b"Hello World", b"\1\2\3", b""]
    for wrong in ("base64:???", "file:///etc/passwd"):
        refused(load, graph, [node("Doc", title="z", content=wrong)], "append", LoadRejected)


def test_modes_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="unknown mode 'upsert'; the modes are overwrite, append, merge"):
        graph_of(tmp_path / "g").load(b"", "upsert")  # type: ignore[arg-type]  # wrong on purpose
