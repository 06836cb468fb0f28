"""Tables in files: delimiters, mappings, extra columns, Arrow files, JSON arrays, and exports that load back as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, LoadRejected
from omnigraph.load import inputs
from tests.load.loading import edge, graph_of, lines, node, rows

SCHEMA = """
node Person {
  name: String @key  age: I32?  x: F64?  f: F32?  born: Date?  seen: DateTime?  tags: [String]?  emb: Vector(2)?
  ok: Bool?  n: U64?  photo: Blob?  note: String?
}
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def people(tmp_path: Path) -> og.Graph:
    return graph_of(tmp_path / "people", SCHEMA)


def ages(graph: og.Graph) -> dict[str, Any]:
    return {row["name"]: row["age"] for row in rows(graph, "node:Person")}


# --- delimiters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "name,age\nada,1\nben,2\n"),
        ("a.tsv", "name\tage\nada\t1\nben\t2\n"),
        ("a.csv", "name;age\nada;1\nben;2\n"),
        ("a.csv", "name|age\nada|1\nben|2\n"),
        ("a.tab", "name\tage\nada\t1\nben\t2\n"),
        ("a.csv", '\ufeff"name";"age"\r\nada;1\r\nben;2\r\n'),
        ("a.csv", '"name","age"\nada,1\nben,2'),
    ],
)
def test_the_delimiter_is_found(people: og.Graph, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    people.load(tmp_path / name, type="Person")
    assert ages(people) == {"ada": 1, "ben": 2}


def test_a_quoted_delimiter_is_no_delimiter(people: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"the;first;name","age"\n"a;b",1\n')
    people.load(tmp_path / "a.csv", type="Person", mapping={"the;first;name": "name"})
    assert ages(people) == {"a;b": 1}


def test_a_given_delimiter_counts(people: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name;a,b,c:age\nada;x:7\n")
    with pytest.raises(BadRequest, match="not readable as CSV"):
        people.load(tmp_path / "a.csv", type="Person")
    people.load(tmp_path / "a.csv", type="Person", delimiter=":", mapping={"name;a,b,c": "name"})
    assert ages(people) == {"ada;x": 7}
    (tmp_path / "a.jsonl").write_bytes(lines([node("Person", name="x")]))
    with pytest.raises(BadRequest, match="a delimiter is for CSV files"):
        people.load(tmp_path / "a.jsonl", delimiter=";")


@pytest.mark.parametrize("delimiter", ["tab", ",,", "", "§", '"', "\n"])
def test_a_delimiter_is_one_character(people: og.Graph, tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "a.csv").write_text("name,age\nada,1\n")
    with pytest.raises(BadRequest, match="a delimiter is one character, such as ';'"):
        people.load(tmp_path / "a.csv", type="Person", delimiter=delimiter)


# --- extra columns ----------------------------------------------------------------------------------------------------


def test_extra_columns_are_refused_with_the_list_or_left_out(people: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,foo,age,bar\nada,q,1,z\n")
    for data in (tmp_path / "a.csv", pa.table({"name": ["ada"], "foo": ["q"], "age": [1], "bar": ["z"]})):
        with pytest.raises(
            BadRequest, match="the columns 'foo', 'bar' of .* are no properties of Person; .*--ignore-extra"
        ):
            people.load(data, type="Person")
        people.load(data, "merge", type="Person", ignore_extra=True)
        assert ages(people) == {"ada": 1}


def test_a_mapped_column_is_never_left_out(people: og.Graph) -> None:
    with pytest.raises(BadRequest, match="column 'foo' of the table is no property of Person"):
        people.load(pa.table({"name": ["a"], "foo": [1]}), type="Person", mapping={"foo": "agee"}, ignore_extra=True)
    with pytest.raises(BadRequest, match="has no column that is a property of Person"):
        people.load(pa.table({"foo": [1]}), type="Person", ignore_extra=True)


# --- JSON arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_is_read(people: og.Graph, tmp_path: Path, indent: int | None) -> None:
    given = [node("Person", name="ada", age=1), node("Person", name="ben", age=2), edge("Knows", "ada", "ben")]
    (tmp_path / "a.json").write_text("\n " + json.dumps(given, indent=indent))
    done = people.load(tmp_path / "a.json")
    assert (done.nodes_loaded, done.edges_loaded) == (2, 1)


def test_what_is_wrong_in_an_array_is_told_by_item(people: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        json.dumps([node("Person", name="ada"), node("Person", name="b", age="x")], indent=2)
    )
    with pytest.raises(LoadRejected) as told:
        people.load(tmp_path / "a.json")
    assert [(Path(file).name, place) for file, place, _ in told.value.errors] == [("a.json", 2)]


def test_an_array_that_is_broken_or_too_long(people: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text('[{"type": "Person"},\n')
    with pytest.raises(BadRequest, match=r"a.json:2: begins like a JSON array and is none"):
        people.load(tmp_path / "a.json")
    monkeypatch.setattr(inputs, "LONGEST_ARRAY", 10)
    with pytest.raises(BadRequest, match=r"make lines of it: jq -c '\.\[\]' a.json > a.jsonl"):
        people.load(tmp_path / "a.json")


# --- exports ----------------------------------------------------------------------------------------------------------

EVERYTHING = [
    node(
        "Person",
        name='a,"q"\nz',
        age=-1,
        x=0.1,
        f=0.25,
        born="2024-02-03",
        seen="2024-02-03T04:05:06.007Z",
        tags=["a", "b,c", ""],
        emb=[1.5, -2],
        ok=True,
        n=2**64 - 1,
        photo="base64:aGVsbG8=",
        note="",
    ),
    node("Person", name="b", x="NaN", f="-Infinity", tags=[], ok=False),
    node("Person", name="c"),
    edge("Knows", "b", 'a,"q"\nz', since=3),
    edge("Knows", "b", "c"),
]


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv"])
@pytest.mark.parametrize("files", ["one", "many"])
def test_an_exported_folder_loads_back_as_it_is(people: og.Graph, tmp_path: Path, format: Any, files: Any) -> None:
    people.load(lines(EVERYTHING))
    assert people.export(tmp_path / "out", format=format, files=files) == 5
    again = graph_of(tmp_path / "again", SCHEMA)
    assert again.load(tmp_path / "out").nodes_loaded == 3
    assert b"".join(again.export_chunks()) == b"".join(people.export_chunks())


def test_an_empty_graph_is_exported_too(people: og.Graph, tmp_path: Path) -> None:
    for format in ("parquet", "arrow", "csv"):
        assert people.export(tmp_path / format, format=format) == 0


def test_an_arrow_file_by_itself(people: og.Graph, tmp_path: Path) -> None:
    table = pa.table({"name": ["ada", "ben"], "age": [1, 2]})
    with pa.ipc.new_file(tmp_path / "people.feather", table.schema) as writer:
        for batch in table.to_batches(max_chunksize=1):
            writer.write_batch(batch)
    people.load(tmp_path / "people.feather", type="Person")
    assert ages(people) == {"ada": 1, "ben": 2}
    (tmp_path / "broken.arrow").write_bytes(b"ARROW1\0\0nonsense")
    with pytest.raises(BadRequest, match="is no Arrow file that can be read"):
        people.load(tmp_path / "broken.arrow", type="Person")


# --- days -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dict", "jsonl", "csv", "table", "parquet", "arrow"])
def test_a_timestamp_of_zero_time_is_a_day(people: og.Graph, tmp_path: Path, kind: str) -> None:
    for clock, fits in (("00:00:00", True), ("00:00:01", False)):
        data, options = _moment(tmp_path, kind, f"2024-01-02T{clock}")
        if not fits:
            with pytest.raises(LoadRejected, match=r"Person.born \(Date\?\): '2024-01-02T00:00:01' is not a whole day"):
                people.load(data, "merge", **options)
            continue
        people.load(data, "merge", **options)
        assert str(rows(people, "node:Person")[0]["born"]) == "2024-01-02"


def _moment(folder: Path, kind: str, text: str) -> tuple[Any, dict[str, Any]]:
    """A person whose birthday is an instant, as each kind of input has it."""
    import datetime

    import pyarrow.parquet as pq

    instant = datetime.datetime.fromisoformat(text)
    table = pa.table({"name": ["ada"], "born": pa.array([instant], pa.timestamp("ns"))})
    if kind == "dict":
        return [node("Person", name="ada", born=instant)], {}
    if kind == "jsonl":
        return lines([node("Person", name="ada", born=text)]), {}
    if kind == "csv":
        (folder / "a.csv").write_text(f"name,born\nada,{text}\n")
        return folder / "a.csv", {"type": "Person"}
    if kind == "parquet":
        pq.write_table(table, folder / "a.parquet")
        return folder / "a.parquet", {"type": "Person"}
    if kind == "arrow":
        with pa.ipc.new_file(folder / "a.arrow", table.schema) as writer:
            writer.write_table(table)
        return folder / "a.arrow", {"type": "Person"}
    return table, {"type": "Person"}
