"""What a load takes: files of every kind, text, Python objects and tables; and what it says about those it can not take."""

from __future__ import annotations

import datetime
import gzip
import io
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, LoadRejected, NotFound, OmnigraphError
from omnigraph.load.foreign import _integers_again
from tests.load.conftest import Load
from tests.load.loading import content, edge, ends, files, graph_of, ids, lines, node, org, rows
from tests.query.fixtures import ORG_ROWS
from tests.s3 import S3Server

SCHEMA = """
node Person {
  name: String @key age: I32? score: F32? born: Date? seen: DateTime? tags: [String]? emb: Vector(2)? ok: Bool? n: U64?
}
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return graph_of(tmp_path / "g")


@pytest.fixture
def people(tmp_path: Path) -> og.Graph:
    return graph_of(tmp_path / "people", SCHEMA)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.jsonl", lambda data: data),
        ("a.jsonl.gz", gzip.compress),
        ("a.jsonl.zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
        ("crlf.jsonl", lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")),
        ("no_newline.jsonl", lambda data: data.rstrip(b"\n")),
    ],
)
@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
def test_files(graph: og.Graph, tmp_path: Path, name: str, pack: Any, lenient: bool) -> None:
    (tmp_path / name).write_bytes(pack(ORG_ROWS.encode()))
    if lenient and name == "crlf.jsonl":
        pytest.skip("a byte order mark is for lines")
    graph.load(tmp_path / name, engine="local", lenient=lenient)
    assert content(graph) == content(org(tmp_path / "other"))


@pytest.mark.parametrize("way", ["several", "folder", "glob"])
def test_many_files(graph: og.Graph, tmp_path: Path, way: str) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    text = ORG_ROWS.encode().splitlines(keepends=True)
    (folder / "a.jsonl").write_bytes(b"".join(text[6:]))
    (folder / "deep" / "b.ndjson").write_bytes(b"".join(text[:6]))
    (folder / "_SUCCESS").write_text("no data")
    (folder / "notes.txt").write_text("no data")
    given: Any = {
        "several": [folder / "a.jsonl", str(folder / "deep" / "b.ndjson")],
        "folder": folder,
        "glob": str(folder / "**" / "*.*json*"),
    }[way]
    graph.load(given, engine="local")
    assert content(graph) == content(org(tmp_path / "other"))


def test_problems_name_file_and_line(graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\n// c\n{"type":"Staff","data":{"handle":"a"}}\n')
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"type":"Staff","data":{"handle":"b"}}\n{"type":"Nope"}\n'))
    (tmp_path / "c.jsonl").write_bytes(b'{"edge":"Mentors","from":"a","to":"zoe"}\n\nnonsense')
    with pytest.raises(LoadRejected) as caught:
        graph.load([tmp_path / name for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl")], engine="local")
    found = [(Path(file).name, line) for file, line, _ in caught.value.errors]
    assert found == [("b.jsonl.gz", 2), ("c.jsonl", 1), ("c.jsonl", 3)]
    assert caught.value.total == 3


def test_s3(graph: og.Graph, tmp_path: Path, s3_server: S3Server) -> None:
    root = s3_server.new_root()
    target = og.init(f"{root.uri}/graph", graph.schema(), storage_options=root.storage_options)
    from omnigraph.storage.objects import open_store

    store = open_store(root)
    text = ORG_ROWS.encode().splitlines(keepends=True)
    store.put("in/a.jsonl", b"".join(text[:7]))
    store.put("in/b.jsonl", b"".join(text[7:]))
    target.load(f"{root.uri}/in", engine="local")
    assert {key: len(found) for key, found in content(target).items()} == {
        "node:Staff": 4,
        "node:Team": 2,
        "edge:Mentors": 3,
        "edge:MemberOf": 2,
    }
    target.load(f"{root.uri}/in/*.jsonl", "merge", engine="local")
    target.load(f"{root.uri}/in/a.jsonl", "merge", engine="local")
    with pytest.raises(OmnigraphError):
        target.load(f"{root.uri}/nothing.jsonl", engine="local")


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        pytest.param(lambda folder: folder / "none.jsonl", NotFound, "there is no file", id="missing"),
        pytest.param(lambda folder: folder, BadRequest, "holds no file ending in", id="empty folder"),
        pytest.param(lambda folder: str(folder / "*.jsonl"), BadRequest, "no file matches", id="empty glob"),
        pytest.param(lambda folder: _cut(folder), BadRequest, "cut off or damaged", id="truncated gzip"),
        pytest.param(lambda folder: {"type": "Staff"}, BadRequest, "a list of dicts", id="one dict"),
        pytest.param(lambda folder: 5, BadRequest, "can not load a int", id="a number"),
        pytest.param(lambda folder: pa.table({"handle": ["a"]}), BadRequest, "needs `type`", id="a table of nothing"),
    ],
)
def test_what_can_not_be_read(graph: og.Graph, tmp_path: Path, make: Any, kind: Any, message: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    there = files(graph)
    with pytest.raises(kind, match=message):
        graph.load(make(folder), engine="local")
    assert files(graph) == there


def _cut(folder: Path) -> Path:
    data = gzip.compress(ORG_ROWS.encode() * 100)
    (folder / "cut.jsonl.gz").write_bytes(data[: len(data) // 2])
    return folder / "cut.jsonl.gz"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"type":"Staff","data":{"handle":"\xff"}}', "not valid UTF-8"),
        (b'{"type":"Staff","data":{"handle":"a"}', "unexpected end of data"),
        (b'{"type":"Staff","data":{"handle":"a"}} x', "not valid JSON"),
        (b'{"type":"Staff","data":{"handle":"a"}}{"type":"Staff","data":{"handle":"b"}}', "not valid JSON"),
        (b'{"type":"Staff","data":{"handle":"a","handle":"b"}}', "stands twice"),
        (b'{"type":"Staff","type":"Staff","data":{"handle":"a"}}', "stands twice"),
        (b'{"type":"Staff","data":[1]}', "is an object of properties, got an array"),
        (b'{"type":"Staff"}', "is an object of properties, got none"),
        (b'{"type":"Staff","data":null}', "is an object of properties, got null"),
        (b'{"type":"Staff","data":{"handle":"a","level":1.0}}', "expected an integer, got 1.0"),
        (b'{"type":"Staff","data":{"handle":"a","level":"1"}}', "expected an integer, got the text '1'"),
        (b'{"type":"Staff","data":{"handle":"a","level":3000000000}}', "outside the range of I32"),
        (b'{"type":"Staff","data":{"handle":"a","level":true}}', "expected an integer, got true"),
        (b'{"type":"Staff","data":{"handle":"a","level":{"x":1}}}', "expected an integer, got an object"),
        (b'{"type":"Staff","data":{"handle":"a","levle":1}}', "did you mean `level`?"),
        (b'{"type":"Staff","edge":"Mentors","data":{}}', 'has "type" or "edge", not both'),
        (b'{"data":{}}', 'needs "type"'),
        (b'{"type":5,"data":{}}', "is the name of a type, got 5"),
        (b"[1]", "expected a JSON object, got an array"),
        (b'{"edge":"Mentors","from":1,"to":"b"}', "is the id of a node as a text, got 1"),
        (b'{"edge":"Mentors","to":"b"}', "`from` is the id of a node as a text, got none"),
        (b'{"edge":"Mentors","from":"a","to":"b","data":null}', "is an object of properties, got null"),
        (b'{"type":"Staff","data":{"handle":"\\ud800"}}', "not valid JSON"),
        (b'{"type":"Staff","data":{"handle":null}}', "is required and has null"),
        (b'{"type":"Staff","data":{"id":5,"handle":"a"}}', "id is a text, got 5"),
        (b"{'type':'Staff'}", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_lines_do_not_hide_each_other(graph: og.Graph, line: bytes, message: str) -> None:
    good = b'{"type":"Team","data":{"code":"%d"}}\n'
    text = good % 1 + line + b"\n" + good % 2 + b"nonsense\n"
    with pytest.raises(LoadRejected) as caught:
        graph.load(text, engine="local")
    listed = caught.value.errors
    assert [number for _, number, _ in listed] == [2, 4]
    assert message in listed[0][2]
    assert len(listed[0][2]) < 300


def test_a_long_line(graph: og.Graph) -> None:
    """Of 100 MB: read when it is right, and refused in few words when it is not."""
    long = b'{"type":"Staff","data":{"handle":"' + b"x" * 100_000_000 + b'"}}\n'
    graph.load(ORG_ROWS.encode() + long, engine="local")
    assert max(map(len, ids(graph, "node:Staff"))) == 100_000_000
    with pytest.raises(LoadRejected) as caught:
        graph.load(long.replace(b'"}}', b"}}"), engine="local")
    assert len(caught.value.message) < 400


def test_many_problems_are_counted_and_some_are_listed(graph: og.Graph) -> None:
    with pytest.raises(LoadRejected) as caught:
        graph.load(b"nonsense\n" * 5000, engine="local")
    assert (caught.value.total, len(caught.value.errors)) == (5000, 100)
    assert [line for _, line, _ in caught.value.errors] == list(range(1, 101))
    assert "… and 4990 more" in caught.value.message


# --- ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 40, 64, 200, 10_000])
def test_ranges_of_any_size_read_every_line_once(graph: og.Graph, tmp_path: Path, step: int) -> None:
    from omnigraph.load.chunks import Places, ranges
    from omnigraph.load.exact import Rules
    from omnigraph.load.parsed import Problem
    from omnigraph.storage.files import find_files

    text = ORG_ROWS.replace("\n", "\n\n", 3) + '{"type":"Nope","data":{}}'
    (tmp_path / "a.jsonl").write_text(text)
    (file,) = find_files(str(tmp_path / "a.jsonl"), ())
    chunks = ranges(file, 1000, step)
    found: list[int] = []
    counts = {}
    problems: list[Problem] = []
    for number, chunk in enumerate(chunks):
        (piece,) = chunk.pieces(Rules(graph.contract().catalog))
        counts[number] = (piece.lines, None)
        for one in piece.reading.rows:
            found += one.orders.tolist()
        problems += piece.reading.problems
    assert len(found) == len(set(found)) == 11
    places = Places.of(chunks, counts)
    assert [places.find(problem.order)[1] for problem in problems] == [len(text.splitlines())]


# --- Python objects and tables ----------------------------------------------------------------------------------------


def test_streams_and_standard_input(graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.load(io.BytesIO(ORG_ROWS.encode()), engine="local")
    other = graph_of(tmp_path / "other")

    class Standard:
        buffer = io.BytesIO(ORG_ROWS.encode())

    monkeypatch.setattr("sys.stdin", Standard)
    other.load("-", engine="local")
    assert content(other) == content(graph)


def test_dicts(people: og.Graph) -> None:
    utc = datetime.UTC
    given = [
        node(
            "Person",
            name="ada",
            born=datetime.date(1815, 12, 10),
            seen=datetime.datetime(2024, 1, 1, 1, tzinfo=utc),
            tags=("x", "y"),
            emb=(1, 2.5),
            score=0.1,
        ),
        edge("Knows", "ada", "ada"),
    ]
    people.load(iter(given), engine="local")
    (found,) = rows(people, "node:Person")
    assert (found["born"], found["seen"]) == (datetime.date(1815, 12, 10), datetime.datetime(2024, 1, 1, 1, tzinfo=utc))
    assert (found["tags"], found["emb"]) == (["x", "y"], [1, 2.5])


def test_more_dicts_than_fit(people: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.load.inputs.DOCUMENTS_AT_ONCE", 10)
    people.load((node("Person", name=f"p{n:03d}") for n in range(35)), engine="local")
    assert len(ids(people, "node:Person")) == 35
    with pytest.raises(LoadRejected) as caught:
        people.load((node("Person", name=f"p{n}", age="x" if n == 24 else 1) for n in range(35)), engine="local")
    assert [line for _, line, _ in caught.value.errors] == [25]


TABLE = pa.table(
    {
        "name": ["ada", "ben"],
        "years": pa.array([36, None], pa.int64()),
        "score": pa.array([0.5, 1], pa.float64()),
        "born": pa.array([datetime.date(1815, 12, 10), None], pa.date32()),
        "seen": pa.array([datetime.datetime(2024, 1, 1), None], pa.timestamp("us")),
        "tags": [["x"], None],
        "emb": pa.array([[1, 2], None], pa.list_(pa.float64())),
        "n": pa.array([2**64 - 1, 0], pa.uint64()),
    }
)
MAPPING = {"years": "age"}


def assert_people(graph: og.Graph, *, nested: bool = True) -> None:
    ada, ben = rows(graph, "node:Person")
    assert (ada["id"], ada["age"], ada["score"], ada["n"]) == ("ada", 36, 0.5, 2**64 - 1)
    assert (ada["born"], ada["seen"].isoformat()) == (datetime.date(1815, 12, 10), "2024-01-01T00:00:00+00:00")
    assert (ben["age"], ben["born"], ben["seen"]) == (None, None, None)
    if nested:
        assert (ada["tags"], ada["emb"], ben["tags"], ben["emb"]) == (["x"], [1, 2], None, None)


@pytest.mark.parametrize("kind", ["arrow", "batch", "parquet", "csv", "pandas", "polars"])
def test_tables(people: og.Graph, tmp_path: Path, kind: str) -> None:
    data: Any = TABLE
    if kind == "batch":
        data = TABLE.to_batches()[0]
    elif kind == "parquet":
        data = tmp_path / "people.parquet"
        pq.write_table(TABLE, data, row_group_size=1)
    elif kind == "csv":
        data = tmp_path / "people.csv"
        ada = 'ada,36,0.5,1815-12-10,2024-01-01T00:00:00Z,"[""x""]","[1, 2]",18446744073709551615'
        data.write_text(f"name,years,score,born,seen,tags,emb,n\n{ada}\nben,,1,,,,,0\n")
    elif kind in ("pandas", "polars"):
        module = pytest.importorskip(kind)
        data = module.from_arrow(TABLE) if kind == "polars" else TABLE.to_pandas()
    people.load(data, type="Person", mapping=MAPPING, engine="local")
    assert_people(people)


def test_integers_that_a_frame_made_floats_for_want_of_one_are_integers_again() -> None:
    table = pa.table({"a": [1.0, None], "b": [1.5, None], "c": [2.0, 3.0], "d": [2.0**60, None], "e": [math.inf, None]})
    assert _integers_again(table).schema.types == [pa.int64(), *[pa.float64()] * 4]
    assert _integers_again(table)["a"].to_pylist() == [1, None]


@pytest.mark.parametrize("kind", ["arrow", "csv"])
def test_tables_of_edges(people: og.Graph, tmp_path: Path, kind: str) -> None:
    people.load(lines([node("Person", name="a"), node("Person", name="b")]), engine="local")
    data: Any = pa.table({"from": ["a", "b"], "target": ["b", "b"], "since": pa.array([1, None], pa.int32())})
    if kind == "csv":
        (tmp_path / "e.csv").write_text("from,target,since\na,b,1\nb,b,\n")
        data = tmp_path / "e.csv"
    people.load(data, edge="Knows", mapping={"target": "to"}, engine="local")
    assert ends(people, "Knows") == [("a", "b"), ("b", "b")]


def test_a_large_table_waits_in_a_file(people: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 2000)
    people.load(pa.table({"name": [f"person number {n}" for n in range(1000)]}), type="Person", engine="local")
    assert len(ids(people, "node:Person")) == 1000


@pytest.mark.parametrize(
    ("table", "errors"),
    [
        (pa.table({"name": ["a", "b"], "age": ["1", "x"]}), [(1, "expected an integer"), (2, "expected an integer")]),
        (pa.table({"name": ["a", None]}), [(2, "is required")]),
        (pa.table({"name": ["a", "b"], "age": pa.array([1, 2**40])}), [(2, "outside the range of I32")]),
        (pa.table({"name": ["a"], "seen": pa.array([1], pa.timestamp("us"))}), [(1, "finer than a millisecond")]),
        (pa.table({"name": ["a"], "emb": [[1.0]]}), [(1, "expects 2 dimensions, got 1")]),
        (pa.table({"name": ["a"], "score": [1e300]}), [(1, "outside the range of F32")]),
    ],
)
def test_bad_rows_of_tables(people: og.Graph, table: pa.Table, errors: list[tuple[int, str]]) -> None:
    with pytest.raises(LoadRejected) as caught:
        people.load(table, type="Person", engine="local")
    assert [
        (line, message in text) for (_, line, text), (_, message) in zip(caught.value.errors, errors, strict=True)
    ] == [(line, True) for line, _ in errors]


def test_bad_csv(people: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name,age,ok\na,1,true\nb,1.5,maybe\n")
    with pytest.raises(LoadRejected) as caught:
        people.load(tmp_path / "p.csv", type="Person", engine="local")
    assert [(line, text.partition(":")[0]) for _, line, text in caught.value.errors] == [
        (3, "Person.age (I32?)"),
        (3, "Person.ok (Bool?)"),
    ]
    (tmp_path / "q.csv").write_text("name,age\na,1,2,3\n")
    with pytest.raises(BadRequest, match="not readable as CSV"):
        people.load(tmp_path / "q.csv", type="Person", engine="local")


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["nam"], {"type": "Person"}, "is no property of Person; did you mean `name`?"),
        (
            ["nam"],
            {"type": "Person", "mapping": {"nam": "nick"}},
            "is no property of Person under the name 'nick'",
        ),
        (["name"], {"type": "Persn"}, "unknown node type 'Persn'; did you mean `Person`?"),
        (["name"], {"type": "Person", "mapping": {"x": "age"}}, "has no column 'x'"),
        (["name", "b"], {"type": "Person", "mapping": {"b": "name"}}, "two columns of the table are 'name'"),
        (["from"], {"edge": "Knows"}, "has no column 'to'"),
        (["name"], {"type": "Person", "edge": "Knows"}, "and not both"),
    ],
)
def test_tables_that_do_not_fit(people: og.Graph, columns: list[str], options: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=message.replace("?", r"\?")):
        people.load(pa.table({name: ["a"] for name in columns}), engine="local", **options)


# --- exports come back ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", ["one", "many"])
def test_a_parquet_export_loads_back(tmp_path: Path, files: Any) -> None:
    """The folders say what the rows are; ids, vectors, blobs and edges are as they were."""
    schema = """node P { name: String @key v: Vector(2)? day: Date? at: DateTime? words: [String]? b: Blob? }
    node Q { x: I32? }
    edge Knows: P -> P { since: Date? }"""
    before = og.init(tmp_path / "before", schema)
    full = {
        "name": "a",
        "v": [1, 2],
        "day": "2024-02-29",
        "at": "2024-02-29T12:00:00Z",
        "words": ["x"],
        "b": "base64:AAE=",
    }
    before.load([node("P", **full), node("P", name="b"), node("Q", x=1), edge("Knows", "a", "b")], engine="local")
    before.export(tmp_path / "out", format="parquet", files=files)
    after = og.init(tmp_path / "after", schema)
    result = after.load(tmp_path / "out", engine="local")
    assert (result.nodes_loaded, result.edges_loaded) == (3, 1)
    assert content(after) == content(before)
    assert ids(after, "node:Q") == ids(before, "node:Q")
    with pytest.raises(BadRequest, match="as an export writes them"):
        after.load((tmp_path / "out/nodes/P/part-00000.parquet").rename(tmp_path / "p.parquet"), engine="local")


def test_an_edge_is_named_as_in_a_query(tmp_path: Path, load: Load) -> None:
    """In lines, in lines that are read exactly, and for tables."""
    graph = og.init(tmp_path / "g", "node P { name: String @key }\nedge MentoredBy: P -> P")
    names = [node("P", name=name) for name in "abcd"]
    pairs = ['{"edge":"mentoredBy","from":"a","to":"b"}', '{"from":"b","to":"c","edge":"mentoredby"}']
    load(graph, lines([*names, *pairs]))
    load(graph, pa.table({"from": ["c"], "to": ["d"]}), edge="mentoredBy")
    assert ends(graph, "MentoredBy") == [("a", "b"), ("b", "c"), ("c", "d")]
    with pytest.raises(LoadRejected, match="unknown edge type 'mentors'"):
        load(graph, lines(['{"edge":"mentors","from":"a","to":"b"}']))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"type": "Person", "data": {}}', "give rows as a list of dicts"),
        ('{"type": "Person", "data": {}}\n' * 100, "give rows as a list of dicts"),
        ("a" * 300, "is not the path of a file"),
        ("a\0b", "is not the path of a file"),
    ],
)
def test_a_text_that_can_be_no_path(tmp_path: Path, text: str, problem: str) -> None:
    graph = og.init(tmp_path / "g", "node Person { name: String @key }")
    with pytest.raises(BadRequest, match=problem):
        graph.load(text)
