"""`apoc.export.json` as a graph: what it becomes, what is told, and what is refused without a trace."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors, failpoints
from omnigraph.integrations.neo4j.run import Imported


def node(place: str, labels: Sequence[str] = ("Person",), /, **properties: Any) -> dict[str, Any]:
    return {"type": "node", "id": place, "labels": list(labels), "properties": properties}


def rel(label: str, start: Any, end: Any, **properties: Any) -> dict[str, Any]:
    ends = {
        side: {"id": given} if isinstance(given, str) else {"id": given[0], "labels": given[1]}
        for side, given in (("start", start), ("end", end))
    }
    return {"type": "relationship", "id": "9", "label": label, "properties": properties, **ends}


def write(folder: Path, *lines: Any, name: str = "dump.jsonl") -> Path:
    path = folder / name
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def imported(folder: Path, *lines: Any, name: str = "dump.jsonl", **options: Any) -> Imported:
    return og.import_neo4j(write(folder, *lines, name=name), folder / "g.omni", **options)


def notes(done: Any) -> str:
    return "\n".join(map(str, done.notes))


#: Values of a property, the declared type, and what is stored.
VALUES: list[tuple[list[Any], str, list[Any]]] = [
    ([1, 2**62], "I64?", [1, 2**62]),
    ([2**64 - 1], "U64?", [2**64 - 1]),
    ([1, 2.5], "F64?", [1.0, 2.5]),
    ([2**60, 2.5], "String?", [str(2**60), "2.5"]),
    ([True, None], "Bool?", [True, None]),
    (["a", 1, True, [1]], "String?", ["a", "1", "true", "[1]"]),
    (["2020-01-31"], "Date?", ["2020-01-31"]),
    (["2020-01-31", "soon"], "String?", ["2020-01-31", "soon"]),
    (["2020-02-31"], "String?", ["2020-02-31"]),
    (["2020-01-31T10:00:00Z"], "DateTime?", ["2020-01-31T10:00:00.000Z"]),
    (["2020-01-31T10:00:00+02:00"], "String?", ["2020-01-31T10:00:00+02:00"]),
    ([[1, 2], []], "[I64]?", [[1, 2], []]),
    ([[]], "[String]?", [[]]),
    ([[1, "a"]], "[String]?", [["1", "a"]]),
    ([["a", None]], "String?", ['["a",null]']),
    ([{"a": {"b": 1}}], "String?", ['{"a":{"b":1}}']),
    ([None], "String?", [None]),
]


@pytest.mark.parametrize(("values", "declared", "stored"), VALUES, ids=[str(row[0])[:30] for row in VALUES])
def test_a_property_holds_all_of_its_values(
    tmp_path: Path, values: list[Any], declared: str, stored: list[Any]
) -> None:
    done = imported(tmp_path, *(node(str(place), p=value) for place, value in enumerate(values)))
    assert f"  p: {declared}\n" in done.schema
    found = [done.graph.entity("node", "Person", str(place)) for place in range(len(values))]
    assert [row and row["p"] for row in found] == stored


def test_a_whole_dump(tmp_path: Path) -> None:
    done = imported(
        tmp_path,
        node("0", ["Person", "Actor"], name="Keanu", home={"crs": "wgs-84", "latitude": 43, "longitude": -79.3}),
        node("1", ["Movie"], title="The Matrix", id=7),
        node("2", name="Lana"),
        {"type": "node", "id": 3},
        rel("ACTED_IN", ("0", ["Person", "Actor"]), ("1", ["Movie"]), roles=["Neo"]),
        rel("ACTED_IN", ("0", ["Person", "Actor"]), ("1", ["Movie"]), roles=["Thomas"]),
        rel("KNOWS", ("0", ["Person", "Actor"]), ("2", ["Person"])),
        rel("KNOWS", "2", "3"),
    )
    assert (done.load.nodes_loaded, done.load.edges_loaded) == (4, 4)
    assert [commit.kind for commit in done.graph.commits()] == ["load", "init"]
    shown = "$p.name, $p.labels, $p.home_latitude, $r.roles, $m.id_"
    asked = f"match {{ $p: Person  $p $r: acted_in $m }} return {{ {shown} }} order {{ $r.roles[0] }}"
    rows = done.graph.query(asked).rows
    assert rows == [
        {"p.name": "Keanu", "p.labels": ["Actor", "Person"], "p.home_latitude": 43.0, "r.roles": [role], "m.id_": 7}
        for role in ("Neo", "Thomas")
    ]
    assert set(done.graph.contract().catalog.edges) == {"ACTED_IN", "KNOWS_Person_Node", "KNOWS_Person_Person"}
    told = notes(done)
    for part in ("internal ids of relationships", "called 'id'", "points", "KNOWS", "without a label", "Actor:Person"):
        assert part in told


def test_a_label_that_every_node_has_names_no_type(tmp_path: Path) -> None:
    lines = [node("0", ["Entity", "City"]), node("1", ["Entity", "Person"]), node("2", ["Entity", "Person"])]
    done = imported(tmp_path, *lines, rel("IN", "1", "0"))
    assert set(done.graph.contract().catalog.nodes) == {"City", "Person"}
    assert "label Entity: every node has it" in notes(done)


def test_a_label_that_names_no_type_by_request(tmp_path: Path) -> None:
    lines = [node("0", ["Node", "City"]), node("1", ["Node"]), node("2", ["Person"])]
    dump = write(tmp_path, *lines)
    assert "node City" not in og.propose_neo4j(dump).schema
    chosen = og.propose_neo4j(dump, ignore_labels=["Node"]).schema
    assert [line.split()[1] for line in chosen.splitlines() if line.startswith("node")] == ["City", "Node", "Person"]


@pytest.mark.parametrize("name", ["dump.jsonl.gz", "dump.json"])
def test_files_of_several_kinds(tmp_path: Path, name: str) -> None:
    done = imported(tmp_path, "\ufeff" + json.dumps(node("0", name="é")), "", node("1"), name=name)
    assert done.load.nodes_loaded == 2


def test_texts_stay_texts_on_request(tmp_path: Path) -> None:
    assert "p: String?" in imported(tmp_path, node("0", p="2020-01-31"), dates=False).schema


def test_names_that_differ_in_case_or_are_not_legal(tmp_path: Path) -> None:
    done = imported(
        tmp_path,
        node(
            "0", ["Foo"], name=1, Name=2, **{"näme": 3, "1st": 4, "": 5, "a b": 6, "src": 7, "neo4j_id": 8, "日本": 9}
        ),
        node("1", ["foo"]),
        node("2", ["日本"]),
        rel("likes", "0", "1"),
        rel("LIKES", "0", "1"),
    )
    assert len(done.graph.contract().catalog.nodes) == 3
    assert len(done.graph.contract().catalog.edges) == 2
    row = done.graph.entity("node", "Foo", "0")
    assert row is not None
    assert sorted(value for value in row.values() if isinstance(value, int)) == list(range(1, 10))


#: Lines, and what the refusal says.
WRONG: list[tuple[list[Any], str]] = [
    (["{"], "dump.jsonl:1: this line is not JSON"),
    (["[" + json.dumps(node("0")) + ",", json.dumps(node("1")) + "]"], "JSON_LINES"),
    ([node("0"), 7], "dump.jsonl:2: a line is an object"),
    ([{"type": "path"}], "`type` is"),
    ([{"type": "node"}], "without an `id`"),
    ([{"type": "node", "id": True}], "without an `id`"),
    ([node("0") | {"labels": "Person"}], "`labels` is not a list"),
    ([node("0") | {"properties": [1]}], "`properties` is not an object"),
    (
        [node("0"), rel("KNOWS", "0", "zzz"), node("1", ["Other"])],
        "dump.jsonl:2: the relationship refers to the node 'zzz'",
    ),
    ([node("0"), rel("KNOWS", ("0", ["Person"]), ("7", ["Person"]))], "dump.jsonl:2: "),
    ([node("0"), rel("KNOWS", ("0", ["Person"]), ("7", ["Ghost"]))], "labelled Ghost"),
    ([node("0"), {"type": "relationship", "id": "1", "label": "A", "start": {"id": "0"}}], "without `end`"),
    ([node("0"), node("0")], "dump.jsonl:2: "),
    ([node(str(place), [f"L{place}"]) for place in range(2001)], "more than 2000 sets of labels"),
]


@pytest.mark.parametrize(("lines", "message"), WRONG, ids=[row[1][:40] for row in WRONG])
def test_what_is_wrong_is_told_and_leaves_no_trace(tmp_path: Path, lines: list[Any], message: str) -> None:
    with pytest.raises(errors.BadRequest, match=r"[\s\S]*") as refused:
        imported(tmp_path, *lines)
    assert message in refused.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["dump.jsonl"]


def test_a_schema_of_ones_own(tmp_path: Path) -> None:
    dump = write(tmp_path, node("0", name="Ada", age=36, note="x"))
    proposed = og.propose_neo4j(dump).schema
    changed = proposed.replace("  age: I64?\n", "  age: I32\n").replace("  note: String?\n", "")
    done = og.import_neo4j(dump, tmp_path / "g.omni", schema=changed)
    assert done.graph.entity("node", "Person", "0") == {"id": "0", "age": 36, "name": "Ada", "neo4j_id": "0"}
    assert "Person.note: the schema that is given does not declare it: left out" in notes(done)
    with pytest.raises(errors.BadRequest, match="no node type Person"):
        og.import_neo4j(dump, tmp_path / "h.omni", schema="node Other { x: I32? }")


def test_a_graph_that_exists_is_refused(tmp_path: Path) -> None:
    imported(tmp_path, node("0"))
    with pytest.raises(errors.AlreadyInitialized, match="an import makes a new one"):
        imported(tmp_path, node("1"))


def test_an_import_that_died_before_its_load_is_repeated(tmp_path: Path) -> None:
    dump = write(tmp_path, node("0"))
    og.init(tmp_path / "g.omni", og.propose_neo4j(dump).schema)
    assert og.import_neo4j(dump, tmp_path / "g.omni").load.nodes_loaded == 1


@pytest.mark.parametrize("place", ["discard.after_claim", "discard.after_manifest"])
def test_a_discard_that_dies_leaves_a_place_for_a_graph(tmp_path: Path, place: str) -> None:
    with failpoints.armed(place), pytest.raises(errors.OmnigraphError):
        imported(tmp_path, node("0"), node("0"))
    done = imported(tmp_path, node("0"))
    assert og.verify(tmp_path / "g.omni").ok
    assert done.load.nodes_loaded == 1


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_dump_that_is_not_utf_8(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "dump.jsonl").write_bytes((json.dumps(node("0", ["é"]), ensure_ascii=False) + "\n").encode(encoding))
    with pytest.raises(errors.BadRequest, match=r"dump.jsonl:1: this line is not UTF-8 text \(byte \d+\)"):
        og.import_neo4j(tmp_path / "dump.jsonl", tmp_path / "g.omni")
    assert not (tmp_path / "g.omni").exists()
