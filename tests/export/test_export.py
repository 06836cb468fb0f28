"""Export, row by row of the behaviour catalogue: lines, order, selection, blobs, chunks, and the way back."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, BranchNotFound, StorageError
from omnigraph.export import tasks
from omnigraph.export.sink import CHUNK_BYTES, chunked
from omnigraph.failpoints import FailpointError, armed
from tests import warm
from tests.mutation.org_graph import SCHEMA, call, content, org_graph


def lines(graph: og.Graph, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(graph.export_chunks(**options)).splitlines()]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def org(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """FX-ORG, and a branch `feature` with eve and eve→ada."""
    graph = org_graph(tmp_path_factory.mktemp("org") / "g.omni")
    graph.create_branch("feature")
    call(graph, "put_link", "eve", 22, "ada", branch="feature")
    return graph


def reloaded(source: og.Graph, folder: Path, schema: str = SCHEMA, **options: Any) -> og.Graph:
    """An export, loaded into a new graph."""
    source.export(folder / "out.jsonl", **options)
    fresh = og.init(folder / "fresh.omni", schema)
    fresh.load(folder / "out.jsonl", mode="overwrite")
    return fresh


@pytest.mark.row("EXP-01", "EXP-02")
@pytest.mark.parametrize(("branch", "staff", "mentors"), [("main", 4, 3), ("feature", 5, 4)])
def test_an_export_loads_back_as_a_graph_of_its_own(
    org: og.Graph, tmp_path: Path, branch: str, staff: int, mentors: int
) -> None:
    fresh = reloaded(org, tmp_path, branch=branch)
    assert content(fresh) == content(org, branch)
    assert (len(content(fresh)["Staff"]), len(content(fresh)["Mentors"])) == (staff, mentors)
    assert fresh.branches() == ["main"]
    theirs = {commit.id for name in org.branches() for commit in org.commits(name)}
    assert not theirs & {commit.id for commit in fresh.commits()}
    assert all(commit.merged_parent is None for commit in fresh.commits())
    assert lines(fresh) == lines(org, branch=branch)


@pytest.mark.row("EXP-03")
def test_the_form_of_a_line(org: og.Graph) -> None:
    shown = b"".join(org.export_chunks()).splitlines()
    assert shown[0] == b'{"type":"Staff","data":{"id":"ada","handle":"ada","level":30}}'
    edge = json.loads(shown[-1])
    assert list(edge) == ["edge", "from", "to", "data"]
    assert edge["data"] == {"id": edge["data"]["id"], "began": None}


@pytest.mark.row("EXP-04")
def test_nodes_before_edges_then_type_then_id(org: og.Graph) -> None:
    shown = lines(org, branch="feature")
    keys = [("edge" in line, line.get("type") or line["edge"], line["data"]["id"].encode()) for line in shown]
    assert keys == sorted(keys)
    assert [key[1] for key in keys] == ["Staff"] * 5 + ["Team"] * 2 + ["MemberOf"] * 2 + ["Mentors"] * 4


EVERY_TYPE = """
node P {
  k: F32 @key
  f: F64? e: F32? s: String? o: Bool? d: Date? z: DateTime? u: U64? i: I64? v: Vector(2)? b: Blob? n: enum(x, y)?
  fs: [F64]? es: [F32]? ss: [String]? os: [Bool]? ds: [Date]? zs: [DateTime]? us: [U64]? is: [I64]?
}
node C { day: Date on: Bool text: String @key(text, day, on) }
edge E: P -> C { w: F32? b: Blob? }
edge K: C -> C { day: Date @key(src, dst, day) }
"""

EXTREMES: list[dict[str, Any]] = [
    {
        "type": "P",
        "data": {"k": 0.1, "f": math.nan, "e": -math.inf, "fs": [math.inf, math.nan, -0.0], "es": [0.1, -math.inf]},
    },
    {
        "type": "P",
        "data": {"k": -0.0, "s": 'a\u2028b\n\t"\\\0\U0001f600', "ss": ["", '"', "\u0301"], "b": b"", "v": [0.1, -0.0]},
    },
    {
        "type": "P",
        "data": {"k": 1e-30, "d": "0001-01-01", "z": "9999-12-31T23:59:59.999Z", "ds": ["1969-12-31"], "zs": [-1]},
    },
    {
        "type": "P",
        "data": {"k": 3.4e38, "u": 2**64 - 1, "i": -(2**63), "us": [2**64 - 1, 0], "is": [2**63 - 1], "b": b"\0\xff"},
    },
    {"type": "P", "data": {"k": 16777217, "o": False, "os": [True, False], "n": "y", "fs": [], "ss": []}},
    {"type": "C", "data": {"day": "1960-01-01", "on": False, "text": 'q"\\\n,]'}},
    {"edge": "E", "from": "0", "to": '["-3653","false","q\\"\\\\\\n,]"]', "data": {"w": 0.1, "b": b"x"}},
    {
        "edge": "K",
        "from": '["-3653","false","q\\"\\\\\\n,]"]',
        "to": '["-3653","false","q\\"\\\\\\n,]"]',
        "data": {"day": 0},
    },
]


def test_extremes_of_every_type_come_back_as_they_were(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", EVERY_TYPE)
    graph.load(EXTREMES)
    graph.export(tmp_path / "out.jsonl")
    again = og.init(tmp_path / "again", EVERY_TYPE)
    again.load(tmp_path / "out.jsonl")
    assert b"".join(again.export_chunks()) == (tmp_path / "out.jsonl").read_bytes()


@pytest.mark.row("EXP-06")
def test_large_unsigned_keys_are_exact(tmp_path: Path) -> None:
    schema = "node N { k: U64 @key  v: U64? }"
    graph = og.init(tmp_path / "g.omni", schema)
    graph.load([{"type": "N", "data": {"k": number, "v": number}} for number in (2**64 - 1, 2**63 + 1)])
    shown = lines(graph)
    assert {(line["data"]["id"], line["data"]["k"], line["data"]["v"]) for line in shown} == {
        (str(number), number, number) for number in (2**64 - 1, 2**63 + 1)
    }
    assert lines(reloaded(graph, tmp_path, schema)) == shown


BLOBS = "node Doc { title: String @key  content: Blob? }"
PUT = "query put($t: String, $c: String?) { insert Doc { title: $t, content: $c } }"


@pytest.fixture
def docs(tmp_path: Path) -> og.Graph:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "there").write_bytes(b"there")
    graph = og.init(tmp_path / "g.omni", BLOBS, external_blobs=[f"file://{outside}"])
    values = {"bytes": "base64:AQID", "empty": "base64:", "null": None, "outside": f"file://{outside}/there"}
    for title, value in values.items():
        graph.mutate(PUT, params={"t": title, "c": value})
    (outside / "there").unlink()
    return graph


@pytest.mark.row("EXP-08")
def test_blobs_are_texts_and_no_external_file_is_asked_for(docs: og.Graph, tmp_path: Path) -> None:
    gone = f"file://{tmp_path}/outside/there"
    shown = {line["data"]["id"]: line["data"]["content"] for line in lines(docs)}
    assert shown == {"bytes": "base64:AQID", "empty": "base64:", "null": None, "outside": gone}
    docs.export(tmp_path / "p", format="parquet")
    table = pq.read_table(tmp_path / "p" / "nodes" / "Doc" / "part-00000.parquet")
    assert dict(zip(table["id"].to_pylist(), table["content"].to_pylist(), strict=True)) == shown


def test_many_blobs_are_read_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph.export import rows

    monkeypatch.setattr(rows, "BLOB_BYTES", 5)
    graph = og.init(tmp_path / "g.omni", BLOBS)
    texts = {f"d{number:02d}": f"base64:{'QUJD' * number}" for number in range(9)}
    for title, text in texts.items():
        graph.mutate(PUT, params={"t": title, "c": text})
    assert {line["data"]["id"]: line["data"]["content"] for line in lines(graph)} == texts


@pytest.mark.row("EXP-09")
def test_chunks_of_a_large_row(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node T { k: String @key  t: String }")
    for key, text in {"a": "é" * 40_001, "b": "x", "c": "😀" * 20_000}.items():
        graph.mutate("query put($k: String, $t: String) { insert T { k: $k, t: $t } }", params={"k": key, "t": text})
    chunks = list(graph.export_chunks())
    assert len(chunks) > 2
    assert all(0 < len(chunk) <= CHUNK_BYTES for chunk in chunks)
    assert all(chunk.decode() for chunk in chunks)
    graph.export(tmp_path / "plain.jsonl")
    assert b"".join(chunks) == (tmp_path / "plain.jsonl").read_bytes()


@pytest.mark.parametrize("limit", [4, 5, 7, 64])
def test_chunks_end_between_characters(limit: int) -> None:
    text = "aé😀\n" * 20
    pieces = [text[start : start + 3].encode() for start in range(0, len(text), 3)]
    chunks = list(chunked(pieces, limit))
    assert "".join(chunk.decode() for chunk in chunks) == text
    assert all(0 < len(chunk) <= limit for chunk in chunks)
    assert list(chunked([b"", b""], limit)) == []


@pytest.mark.row("EXP-10")
def test_a_filter_selects_types_of_a_name(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node Knows { k: String @key } node P { k: String @key } edge Knows: P -> P")
    nodes = [{"type": name, "data": {"k": name}} for name in ("Knows", "P")]
    graph.load([*nodes, {"edge": "Knows", "from": "P", "to": "P", "data": {}}])
    assert [next(iter(line.items())) for line in lines(graph, types=["Knows"])] == [
        ("type", "Knows"),
        ("edge", "Knows"),
    ]
    assert [next(iter(line)) for line in lines(graph, types=["edge:Knows"])] == ["edge"]
    assert lines(graph, types=[]) == []
    with pytest.raises(BadRequest, match="unknown export type 'Nope'"):
        graph.export_chunks(types=["P", "Nope"])
    with pytest.raises(BadRequest, match="unknown export type 'Nope'"):
        graph.export(tmp_path / "out.jsonl", types=["Nope"])
    assert not (tmp_path / "out.jsonl").exists()


def test_an_old_snapshot_and_a_branch(org: og.Graph) -> None:
    assert len(lines(org, snapshot=org.snapshot("feature"))) == 13
    assert len(lines(org, snapshot=org.head("main").id)) == 11
    assert lines(org.at("feature")) == lines(org, branch="feature")
    assert lines(org, snapshot=org.commits("main")[-1].id) == []
    with pytest.raises(BranchNotFound):
        org.export_chunks(branch="nope")


EVERYTHING = """
node All {
  k: String @key
  b: Bool?
  i: I32?
  j: I64?
  u: U32?
  w: U64?
  f: F32?
  g: F64?
  d: Date?
  t: DateTime?
  e: enum(red, green)?
  l: [String]?
  n: [I32]?
  v: Vector(3)?
}
edge To: All -> All { w: F64? }
"""
ROWS: list[dict[str, Any]] = [
    {"k": 'a "quoted" \\ \n line \x01', "b": True, "i": -5, "j": -(2**63), "u": 2**32 - 1, "w": 2**64 - 1},
    {"k": "b", "f": 0.1, "g": -0.0, "d": "0001-01-01", "t": "9999-12-31T23:59:59.999Z", "e": "red"},
    {"k": "c é😀", "l": ['x"', ""], "n": [], "v": [0.1, -2.5, 3e38]},
    {"k": "d"},
]


def test_every_type_of_value_goes_out_and_back(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", EVERYTHING)
    graph.load([{"type": "All", "data": row} for row in ROWS])
    graph.load([{"edge": "To", "from": "b", "to": "d", "data": {"w": 1e-300}}])
    shown = {line["data"]["k"]: line["data"] for line in lines(graph, types=["All"])}
    names = ["b", "i", "j", "u", "w", "f", "g", "d", "t", "e", "l", "n", "v"]
    assert shown == {
        row["k"]: {"id": row["k"], "k": row["k"], **{name: row.get(name) for name in names}} for row in ROWS
    }
    assert lines(reloaded(graph, tmp_path, EVERYTHING)) == lines(graph)


# --- where it goes ----------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_as_a_whole(org: og.Graph, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("before")
    with armed("outputs.written", "error"), pytest.raises(FailpointError):
        org.export(out)
    assert out.read_text() == "before"
    assert names_in(tmp_path) == ["out.jsonl"]
    assert org.export(str(out)) == 11
    assert out.read_bytes() == b"".join(org.export_chunks())
    assert names_in(tmp_path) == ["out.jsonl"]


DYING = """
import sys, omnigraph
omnigraph.open(sys.argv[1], "ro").export(sys.argv[2], format=sys.argv[3])
"""


@pytest.mark.parametrize(("format", "failpoint"), [("jsonl", "outputs.written"), ("parquet", "outputs.folder_written")])
def test_a_killed_export_leaves_nothing_under_the_name(
    org: og.Graph, tmp_path: Path, format: Literal["jsonl", "parquet"], failpoint: str
) -> None:
    died = warm.run(
        [sys.executable, "-c", DYING, org.uri, str(tmp_path / "out"), format],
        env={**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"},
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    assert "out" not in names_in(tmp_path)
    assert org.export(tmp_path / "out", format=format) == 11


def test_a_full_disk_is_a_clear_error(org: og.Graph) -> None:
    with pytest.raises(StorageError, match="the disk is full"):
        org.export("/dev/full")


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_many_files_hold_every_row_once(
    org: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Any, format: Any
) -> None:
    monkeypatch.setattr(tasks, "ROWS_PER_FILE", 2)
    assert org.export(tmp_path / "out", branch="feature", format=format, files="many", engine=engine) == 13
    found = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*"))
    assert f"nodes/Staff/part-00001.{format}" in found
    assert names_in(tmp_path) == ["out"]
    if format == "jsonl":
        text = b"".join((tmp_path / "out" / name).read_bytes() for name in found)
        expected = b"".join(org.export_chunks(branch="feature"))
        assert sorted(text.splitlines()) == sorted(expected.splitlines())
    else:
        staff = pq.read_table(tmp_path / "out" / "nodes" / "Staff").to_pylist()
        assert {row["id"]: row["level"] for row in staff} == content(org, "feature")["Staff"]


@pytest.mark.row("EXP-03", "EXP-04", "EXP-08")
def test_one_file_made_on_spark_is_the_same_file(
    org: og.Graph, docs: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "ROWS_PER_FILE", 1)
    for graph in (org.at("feature"), docs, og.init(tmp_path / "empty.omni", SCHEMA)):
        before = names_in(tmp_path)
        count = graph.export(tmp_path / "spark.jsonl", engine="spark")
        assert (tmp_path / "spark.jsonl").read_bytes() == b"".join(graph.export_chunks())
        assert count == len(lines(graph))
        assert names_in(tmp_path) == sorted({*before, "spark.jsonl"})


@pytest.mark.parametrize("options", [{}, {"files": "many", "engine": "local"}], ids=["one", "many"])
def test_progress_counts_to_the_end(org: og.Graph, tmp_path: Path, options: dict[str, Any]) -> None:
    seen: list[tuple[int, int]] = []
    org.export(tmp_path / "out", progress=lambda done, total: seen.append((done, total)), **options)
    assert seen == sorted(seen)
    assert seen[-1] == (11, 11)


def test_a_folder_is_there_as_a_whole_or_not_at_all(org: og.Graph, tmp_path: Path) -> None:
    with armed("outputs.folder_written", "error"), pytest.raises(FailpointError):
        org.export(tmp_path / "out", format="parquet")
    assert names_in(tmp_path) == []
    (tmp_path / "out").mkdir()
    assert org.export(tmp_path / "out", format="parquet") == 11
    with pytest.raises(BadRequest, match="exists and is not an empty folder"):
        org.export(tmp_path / "out", format="parquet")


def test_empty_types_have_a_parquet_file_with_their_columns(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    assert graph.export(tmp_path / "out", format="parquet") == 0
    table = pq.read_table(tmp_path / "out" / "edges" / "Mentors" / "part-00000.parquet")
    assert (table.num_rows, table.column_names) == (0, ["id", "from", "to", "began"])
    assert graph.export(tmp_path / "out.jsonl") == 0
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_standard_output(org: og.Graph, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert org.export("-") == 11
    assert capfdbinary.readouterr().out == b"".join(org.export_chunks())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "xlsx"}, "format is jsonl, parquet, arrow or csv, not 'xlsx'"),
        ({"files": "two"}, "files is one or many"),
        ({"engine": "duck"}, "engine is auto, local or spark"),
        ({"out": "-", "files": "many"}, "standard output takes one stream"),
        ({"out": "s3://bucket"}, "names a bucket only"),
        ({"out": "gs://x/y"}, "not supported"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(org: og.Graph, tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        org.export(options.pop("out", tmp_path / "out"), **options)
    assert names_in(tmp_path) == []


def test_a_missing_folder_and_a_folder_in_the_way(org: og.Graph, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist"):
        org.export(tmp_path / "no" / "out.jsonl")
    with pytest.raises(BadRequest, match="it is a folder"):
        org.export(tmp_path)


def test_to_s3(org: og.Graph, s3_server: Any) -> None:
    root = s3_server.new_root()
    graph = org_graph_on(root)
    assert graph.export(f"{root.uri}/out/all.jsonl") == 11
    assert graph.export(f"{root.uri}/many", files="many", engine="local") == 11
    with pytest.raises(BadRequest, match="is not empty"):
        graph.export(f"{root.uri}/many", files="many", engine="local")
    from omnigraph.storage.objects import open_store

    store = open_store(root)
    assert store.get("out/all.jsonl") == b"".join(graph.export_chunks())
    assert store.get("many/nodes/Team/part-00000.jsonl") == b"".join(graph.export_chunks(types=["Team"]))


def org_graph_on(root: Any) -> og.Graph:
    from tests.mutation.org_graph import LOAD

    graph = og.init(f"{root.uri}/g.omni", SCHEMA, storage_options=root.storage_options)
    graph.mutate(LOAD)
    return graph


def test_an_upload_that_fails_halfway_leaves_no_object(s3_server: Any) -> None:
    from omnigraph.storage.objects import open_store
    from omnigraph.storage.outputs import Output

    root = s3_server.new_root()
    output = Output.parse(f"{root.uri}/half.bin", root.storage_options)

    def failing() -> Iterator[bytes]:
        yield b"x" * 6_000_000
        raise BadRequest("the rows ended")

    with pytest.raises(BadRequest, match="the rows ended"):
        output.write(failing())
    assert not open_store(root).exists("half.bin")


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_no_space_for_an_export(tmp_path: Path, kind: Literal["jsonl", "parquet"]) -> None:
    """What a full disk refuses may be in the last buffer only: it is a typed error there too, and no file is left."""
    graph = og.init(tmp_path / "g", "node P { name: String @key }")
    graph.load(b'{"type":"P","data":{"name":"one"}}', engine="local")
    place = tmp_path / "out" / f"all.{kind}"
    place.parent.mkdir()
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, unlimited[1]))
    try:
        with pytest.raises(StorageError, match="can not write .*out"):
            graph.export(str(place), format=kind, engine="local")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert list(place.parent.iterdir()) == []
