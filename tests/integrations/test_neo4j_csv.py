"""Folders of CSV files for `neo4j-admin` as graphs."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.integrations.neo4j.run import Imported
from tests.cli.calling import call


def imported(folder: Path, files: dict[str, str], **options: Any) -> Imported:
    source = folder / "csv"
    source.mkdir()
    for name, text in files.items():
        data = text.encode()
        (source / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return og.import_neo4j(source, folder / "g.omni", **options)


MOVIES = """movieId:ID(Movie),title,year:int,:LABEL,secret:IGNORE
1,"The Matrix, part 1",1999,Movie,x
2,Speed,1994,Movie;Action,
"""
ACTORS = "personId:ID(Person)|name|:LABEL\n1|Keanu|Person\n2|Sandra|Person\n"
ROLES = ":START_ID(Person),role,:END_ID(Movie),:TYPE\n1,Neo,1,ACTED_IN\n1,Jack,2,ACTED_IN\n2,Annie,2,ACTED_IN\n"


def test_a_whole_folder(tmp_path: Path) -> None:
    done = imported(tmp_path, {"movies.csv": MOVIES, "actors.csv.gz": ACTORS, "roles.csv": ROLES})
    assert (done.load.nodes_loaded, done.load.edges_loaded) == (4, 3)
    shown = "$p.name, $p.personId, $r.role, $m.title, $m.year, $m.labels"
    asked = f"match {{ $p: Person  $p $r: acted_in $m }} return {{ {shown} }} order {{ $r.role }}"
    first, *_ = done.graph.query(asked).rows
    assert first == {
        "p.name": "Sandra",
        "p.personId": "2",
        "r.role": "Annie",
        "m.title": "Speed",
        "m.year": 1994,
        "m.labels": ["Action", "Movie"],
    }
    told = "\n".join(map(str, done.notes))
    assert "'secret' is marked :IGNORE" in told


def test_headers_beside_files_and_names_instead_of_columns(tmp_path: Path) -> None:
    done = imported(
        tmp_path,
        {
            "Person_header.csv": "id:ID;name",
            "Person-part1.csv": "1;Ada\n",
            "Person-part2.csv": "2;Ben\n",
            "KNOWS.csv": ":START_ID;:END_ID;since:date\n1;2;2020-05-01\n",
        },
    )
    assert (done.load.nodes_loaded, done.load.edges_loaded) == (2, 1)
    assert set(done.graph.contract().catalog.edges) == {"KNOWS"}
    assert "from its name" in "\n".join(map(str, done.notes))


def test_one_id_space_with_several_types(tmp_path: Path) -> None:
    files = {
        "nodes.csv": ":ID,:LABEL\na,Person\nb,City\nc,\n",
        "rels.csv": ":START_ID,:END_ID,:TYPE\na,b,IN\nb,a,IN\na,c,IN\n",
    }
    done = imported(tmp_path, files)
    assert set(done.graph.contract().catalog.edges) == {"IN_Person_City", "IN_City_Person", "IN_Person_Node"}


def test_one_label_in_two_id_spaces(tmp_path: Path) -> None:
    files = {
        "a.csv": ":ID(A),:LABEL\n1,Thing\n",
        "b.csv": ":ID(B),:LABEL\n1,Thing\n",
        "r.csv": ":START_ID(A),:END_ID(B),:TYPE\n1,1,LIKES\n",
    }
    done = imported(tmp_path, files)
    (row,) = done.graph.query("match { $a: Thing  $a likes $b } return { $a.@id, $b.@id }").rows
    assert row == {"a.@id": "A/1", "b.@id": "B/1"}


#: A column, the text of a field, and what is stored in which type.
FIELDS: list[tuple[str, str, str, Any]] = [
    ("p:long", "9007199254740993", "p: I64?", 9007199254740993),
    ("p:double", "1e3", "p: F64?", 1000.0),
    ("p:boolean", "TRUE", "p: Bool?", True),
    ("p", "007", "p: String?", "007"),
    ("p:string[]", "a;b", "p: [String]?", ["a", "b"]),
    ("p:int[]", "1;2", "p: [I64]?", [1, 2]),
    ("p:date", "2020-05-01", "p: Date?", "2020-05-01"),
    ("p:date", "2020-W10", "p: String?", "2020-W10"),
    ("p:datetime", "2020-05-01T10:00:00+02:00", "p: DateTime?", "2020-05-01T08:00:00.000Z"),
    ("p:datetime", "2020-05-01T10:00:00.123456789Z", "p: String?", "2020-05-01T10:00:00.123456789Z"),
    ("p:localdatetime", "2020-05-01T10:00:00", "p: DateTime?", "2020-05-01T10:00:00.000Z"),
    ("p:duration", "P1Y", "p: String?", "P1Y"),
    ("p:string", '"two\nlines, ""quoted"""', "p: String?", 'two\nlines, "quoted"'),
]


@pytest.mark.parametrize(
    ("column", "text", "declared", "stored"), FIELDS, ids=[f"{row[0]} {row[1][:12]}" for row in FIELDS]
)
def test_a_field_has_the_type_of_its_header(tmp_path: Path, column: str, text: str, declared: str, stored: Any) -> None:
    done = imported(tmp_path, {"T.csv": f"k:ID,{column}\n1,{text}\n2,\n"})
    assert f"  {declared}\n" in done.schema
    found = done.graph.entity("node", "T", "1")
    assert found is not None
    assert found["p"] == stored
    empty = done.graph.entity("node", "T", "2")
    assert empty is not None
    assert empty["p"] is None


def test_points_have_a_property_for_each_coordinate(tmp_path: Path) -> None:
    done = imported(tmp_path, {"T.csv": 'k:ID,at:point{crs:WGS-84}\n1,"{latitude:55.6, longitude:12}"\n'})
    found = done.graph.entity("node", "T", "1")
    assert found == {"id": "1", "k": "1", "at_latitude": 55.6, "at_longitude": 12.0}


WRONG: list[tuple[dict[str, str], str]] = [
    ({"T.csv": "a,b\n1,2\n"}, "has no header"),
    ({"T.csv": ""}, "has no header"),
    ({"T.csv": ":ID,p:intt\n1,2\n"}, "did you mean `int`"),
    ({"T.csv": ":ID,p,p\n1,2,3\n"}, "'p' twice"),
    ({"T.csv": ":ID,p:int\n1,x\n2,y\n"}, "T.csv:3: column 'p': 'y' is no int"),
    ({"T.csv": ":ID,p:int\n1,99999999999999999999\n"}, "more than 64 bits"),
    ({"T.csv": ":ID,p:boolean\n1,maybe\n"}, "neither true nor false"),
    ({"T.csv": ":ID,p\n1,2,3\n"}, "3 fields for the 2 columns"),
    ({"T.csv": ":ID,p\n,2\n"}, "T.csv:2: a node without an id"),
    ({"T.csv": ':ID,p\n1,"open\n'}, "can not be read on"),
    ({"T.csv": ":ID\n1\n1\n"}, "T.csv:3: "),
    ({"T.csv": ":ID\n1\n", "R.csv": ":START_ID,:END_ID\n1,2\n"}, "R.csv:2: "),
    ({"T.csv": ":ID(A)\n1\n", "R.csv": ":START_ID(A),:END_ID(B)\n1,2\n"}, "id space 'B'"),
]


@pytest.mark.parametrize(("files", "message"), WRONG, ids=[row[1][:30] for row in WRONG])
def test_what_is_wrong_is_told_and_leaves_no_trace(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(errors.BadRequest) as refused:
        imported(tmp_path, files)
    assert message in refused.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["csv"]


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "T.csv").write_bytes(b":ID,p\n1,\xff\xfe\n")
    with pytest.raises(errors.BadRequest, match="T.csv"):
        og.import_neo4j(tmp_path / "csv", tmp_path / "g.omni")
    with pytest.raises(errors.NotFound, match="nowhere"):
        og.import_neo4j(tmp_path / "nowhere", tmp_path / "g.omni")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "Person.csv").write_text(":ID,name\n1,Ada\n")
    folder, graph = str(tmp_path / "csv"), str(tmp_path / "g.omni")
    shown = call(capsys, "import", "--csv-admin", folder, "--schema-only")
    assert (shown.code, shown.out) == (0, "node Person {\n  name: String?\n  neo4j_id: String @key\n}\n")
    done = call(capsys, "import", "--csv-admin", folder, graph)
    assert (done.code, done.out) == (0, f"imported {graph}: 1 node of 1 type and 0 edges of 0 types\n")
    assert "note: " in done.err
    dump = tmp_path / "dump.jsonl"
    dump.write_text('{"type":"node","id":"1","labels":["A"]}\n')
    dumped = call(capsys, "import", "--from", "neo4j-dump", str(dump), str(tmp_path / "h.omni"), "--json")
    assert '"nodes_loaded": 1' in dumped.out or '"nodes_loaded":1' in dumped.out
    assert call(capsys, "import", str(dump)).code == 2
    assert call(capsys, "import", "--from", "neo4j-dump", str(dump)).code == 2
    assert call(capsys, "import", "--csv-admin", folder, "--from", "neo4j-dump", graph).code == 2
    missing = call(capsys, "import", "--from", "neo4j-dump", "nowhere.jsonl", str(tmp_path / "i.omni"))
    assert (missing.code, missing.err) == (1, "Error: there is no file nowhere.jsonl\n")
    again = call(capsys, "import", "--csv-admin", folder, graph)
    assert again.code == 1
    assert "an import makes a new one" in again.err
