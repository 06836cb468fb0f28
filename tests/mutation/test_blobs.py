"""Section 22: blob values through mutations and ranged reads."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequest,
    BlobRangeNotSatisfiable,
    EntityNotFound,
    ExternalBlobDenied,
    ExternalBlobSource,
    HistoricalVersionReclaimed,
    LoadRejected,
    ResourceLimit,
)
from omnigraph.language.schema.build import compile_schema
from omnigraph.storage.external import permitted_uri
from omnigraph.values.blobs import blob_value
from tests.mutation.org_graph import rows

SCHEMA = """node Doc { title: String @key content: Blob? note: String? }
edge Att: Doc -> Doc { payload: Blob? }"""
PUT = "query q($t: String, $c: Blob?, $n: String?) { insert Doc { title: $t, content: $c, note: $n } }"
SET = "query q($t: String, $c: Blob?) { update Doc set { content: $c } where title = $t }"
NOTE = "query q($t: String, $n: String) { update Doc set { note: $n } where title = $t }"


def b64(data: bytes) -> str:
    return f"base64:{base64.b64encode(data).decode()}"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", SCHEMA)


def put(graph: og.Graph, title: str, data: bytes | None, note: str | None = None) -> None:
    graph.mutate(PUT, params={"t": title, "c": None if data is None else b64(data), "n": note})


def content(graph: og.Graph, title: str) -> bytes:
    return b"".join(graph.read_blob("node", "Doc", title, "content"))


def test_blb_02_insert_and_update(graph: og.Graph) -> None:
    graph.mutate(PUT, params={"t": "a", "c": "base64:AQID"})
    assert content(graph, "a") == bytes([1, 2, 3])
    graph.mutate(SET, params={"t": "a", "c": "base64:BAUG"})
    assert content(graph, "a") == bytes([4, 5, 6])
    put(graph, "b", None)
    graph.mutate(SET, params={"t": "b", "c": "base64:AQID"})
    assert content(graph, "b") == bytes([1, 2, 3])


def test_blb_03_other_updates_keep_the_content(graph: og.Graph) -> None:
    put(graph, "a", b"Hello World", "x")
    graph.mutate(NOTE, params={"t": "a", "n": "y"})
    assert content(graph, "a") == b"Hello World"
    graph.mutate(
        """query q($c: Blob) { insert Doc { title: "b", content: $c }
           update Doc set { note: "z" } where title = "b" update Doc set { note: "w" } where title = "a" }""",
        params={"c": b64(b"pending")},
    )
    assert (content(graph, "b"), content(graph, "a")) == (b"pending", b"Hello World")
    assert [row["note"] for row in rows(graph, "node:Doc")] == ["w", "z"]


def test_blb_04_ranges(graph: og.Graph) -> None:
    put(graph, "a", b"Hello World")
    blob = graph.read_blob("node", "Doc", "a", "content")
    assert [blob.read(0, 5), blob.read(5, 5), blob.read(6, 11)] == [b"Hello", b"", b"World"]
    for start, end in ((0, 12), (6, 5)):
        with pytest.raises(BlobRangeNotSatisfiable) as error:
            blob.read(start, end)
        assert (error.value.start, error.value.end, error.value.length) == (start, end, 11)


def test_blb_05_empty_is_not_null(graph: og.Graph) -> None:
    put(graph, "a", b"")
    blob = graph.read_blob("node", "Doc", "a", "content")
    assert (blob.kind, blob.length, blob.read(0, 0)) == ("managed", 0, b"")
    put(graph, "b", None)
    with pytest.raises(EntityNotFound, match="null"):
        graph.read_blob("node", "Doc", "b", "content")


def test_blb_08_four_mebibytes_at_once(graph: og.Graph) -> None:
    limit = 4 * 1024 * 1024
    data = bytes(range(256)) * (limit // 256) + b"tail"
    put(graph, "a", data)
    blob = graph.read_blob("node", "Doc", "a", "content")
    assert blob.read(0, limit) == data[:limit]
    assert blob.read(limit) == b"tail"
    with pytest.raises(ResourceLimit) as error:
        blob.read(0, limit + 1)
    assert (error.value.resource, error.value.limit, error.value.actual) == ("Blob read range bytes", limit, limit + 1)
    assert b"".join(blob) == data


def test_blb_09_edges(graph: og.Graph) -> None:
    put(graph, "a", b"x")
    graph.mutate(
        'query q($p: Blob) { insert Att { from: "a", to: "a", payload: $p } }', params={"p": b64(b"edge bytes")}
    )
    edge_id = rows(graph, "edge:Att")[0]["id"]
    assert graph.read_blob("edge", "Att", edge_id, "payload").read() == b"edge bytes"


def test_blb_10_etags(graph: og.Graph) -> None:
    put(graph, "a", b"x")
    etag = graph.read_blob("node", "Doc", "a", "content").etag
    assert etag is not None
    assert len(etag) == 32
    assert graph.read_blob("node", "Doc", "a", "content").etag == etag
    graph.mutate('query q() { insert Att { from: "a", to: "a" } }')
    assert graph.read_blob("node", "Doc", "a", "content").etag == etag
    put(graph, "b", b"y")
    assert graph.read_blob("node", "Doc", "a", "content").etag != etag


def test_blb_11_ids_are_matched_exactly(graph: og.Graph) -> None:
    odd = "it's \\ \"odd\" OR '1'='1"
    put(graph, odd, b"odd")
    assert content(graph, odd) == b"odd"


def test_blb_18_a_snapshot_of_an_earlier_incarnation(graph: og.Graph) -> None:
    graph.create_branch("feature")
    feature = graph.at("feature")
    put(feature, "a", b"old")
    snapshot = feature.snapshot()
    etag = feature.read_blob("node", "Doc", "a", "content").etag
    graph.delete_branch("feature")
    graph.create_branch("feature")
    feature = graph.at("feature")
    put(feature, "a", b"new")
    with pytest.raises(HistoricalVersionReclaimed, match="incarnation witness"):
        feature.read_blob("node", "Doc", "a", "content", snapshot=snapshot)
    blob = feature.read_blob("node", "Doc", "a", "content")
    assert (blob.read(), blob.etag == etag) == (b"new", False)


def test_external_values_need_permission(graph: og.Graph, tmp_path: Path) -> None:
    uri = (tmp_path / "outside.bin").as_uri()
    (tmp_path / "outside.bin").write_bytes(b"outside")
    with pytest.raises(ExternalBlobDenied) as error:
        graph.mutate(PUT, params={"t": "a", "c": uri})
    assert error.value.uri == uri
    allowed = og.open(graph.uri, external_blobs=[tmp_path.as_uri()])
    allowed.mutate(PUT, params={"t": "a", "c": uri})
    allowed.mutate(NOTE, params={"t": "a", "n": "kept"})
    blob = graph.read_blob("node", "Doc", "a", "content")
    assert (blob.kind, blob.uri, blob.length, blob.etag) == ("external", uri, None, None)
    with pytest.raises(BadRequest, match="external"):
        blob.read()


BASE = "s3://bucket/data"


@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        ("s3://bucket/data/a.bin", True),
        ("s3://bucket/data/%C3%A4%20b/x", True),
        ("s3://bucket/data", True),
        ("s3://bucket/database/a.bin", False),
        ("s3://bucket/data/../secret", False),
        ("s3://bucket/data/./a", False),
        ("s3://bucket/data/%2e%2e/secret", False),
        ("s3://bucket/data/%2E%2E/secret", False),
        ("s3://bucket/data/%2E./secret", False),
        ("s3://bucket/data/..%2Fsecret", False),
        ("s3://bucket/data/a%5C..%5Cb", False),
        ("s3://bucket/data/..\\..\\secret", False),
        ("s3://bucket/data/.\t./secret", False),
        ("s3://bucket/data/.\n./secret", False),
        ("s3://bucket/data/a b", False),
        ("s3://bucket/data/ä", False),
        ("s3://bucket/data//a", False),
        ("s3://bucket/data/a/", False),
        ("s3://bucket/data/a?x=1", False),
        ("s3://bucket/data/a#x", False),
        ("s3://bucket/data/%", False),
        ("s3://bucket/data/%ff", False),
        ("s3://bucket/data/%00", False),
        ("s3://user@bucket/data/a", False),
        ("S3://bucket/data/a", False),
        (" s3://bucket/data/a", False),
        ("file:///s3://bucket/data/a.bin", False),
    ],
)
@pytest.mark.parametrize("base", [BASE, f"{BASE}/"])
def test_external_values_lie_under_an_allowed_base(uri: str, allowed: bool, base: str) -> None:
    """A URI that a parser would normalise is refused, so that the URI that was checked is the one that is opened later."""
    assert permitted_uri(uri, ("gs://other/", base)) == (uri if allowed else None)
    if not allowed:
        with pytest.raises(ExternalBlobDenied):
            blob_value(compile_schema(SCHEMA).nodes["Doc"], "content", uri, ("gs://other/", base))


def test_external_files_are_judged_where_they_lie(graph: og.Graph, tmp_path: Path) -> None:
    """A symbolic link out of an allowed folder is refused; for one within it the URI of its target is stored."""
    inside, outside = tmp_path / "in side", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.bin").write_bytes(b"a")
    (inside / "link.bin").symlink_to(inside / "a.bin")
    (inside / "out.bin").symlink_to(outside / "a.bin")
    (inside / "up").symlink_to(outside)
    allowed = og.open(graph.uri, external_blobs=[inside.as_uri()])
    text = inside.as_uri()
    for uri in (f"{text}/out.bin", f"{text}/up/a.bin", f"{text}/..\\outside\\a.bin", f"{text}/.\t./outside/a.bin"):
        with pytest.raises(ExternalBlobDenied):
            allowed.mutate(PUT, params={"t": "a", "c": uri})
    allowed.mutate(PUT, params={"t": "a", "c": f"{text}/link.bin"})
    assert graph.read_blob("node", "Doc", "a", "content").uri == (inside / "a.bin").as_uri()


def test_an_external_source_must_exist_when_it_is_written(graph: og.Graph, tmp_path: Path) -> None:
    allowed = og.open(graph.uri, external_blobs=[tmp_path.as_uri()])
    missing = (tmp_path / "missing.bin").as_uri()
    with pytest.raises(ExternalBlobSource) as refused:
        allowed.mutate(PUT, params={"t": "a", "c": missing})
    assert (refused.value.uri, refused.value.reason) == (missing, "there is no such file")
    with pytest.raises(ExternalBlobSource):
        allowed.mutate(PUT, params={"t": "a", "c": tmp_path.as_uri()})
    # No file system takes a name of so many bytes.
    with pytest.raises(ExternalBlobSource, match="name too long"):
        allowed.mutate(PUT, params={"t": "a", "c": f"{tmp_path.as_uri()}/{'a' * 300}"})
    (tmp_path / "there.bin").write_bytes(b"x")
    lines = [
        {"type": "Doc", "data": {"title": title, "content": (tmp_path / f"{title}.bin").as_uri()}}
        for title in ("there", "gone")
    ]
    for data in (lines, b"".join(orjson.dumps(line) + b"\n" for line in lines)):
        with pytest.raises(
            LoadRejected, match="Doc.content: can not refer to .*gone.bin': there is no such file"
        ) as load:
            allowed.load(data, engine="local")
        assert [line for _, line, _ in load.value.errors] == [2]


@pytest.mark.parametrize(
    "given", ["file:///data/", ["/data"], [Path("/data")], [None], ["file:///data/../etc/"], ["*"], [""], 5], ids=repr
)
def test_what_is_no_list_of_uris_is_refused_when_the_graph_is_opened(graph: og.Graph, given: Any) -> None:
    """It would allow nothing, and the first blob would be refused without a word about the list."""
    with pytest.raises(BadRequest, match="external_blobs"):
        og.open(graph.uri, external_blobs=given)
    with pytest.raises(BadRequest, match="external_blobs"):
        og.init(f"{graph.uri}-2", SCHEMA, external_blobs=given)


def test_bad_input(graph: og.Graph) -> None:
    put(graph, "a", b"x")
    wrong: list[tuple[Literal["node", "edge"], str, str]] = [
        ("node", "Doc", "note"),
        ("node", "Nope", "x"),
        ("edge", "Doc", "content"),
    ]
    for kind, type_name, property_name in wrong:
        with pytest.raises(BadRequest):
            graph.read_blob(kind, type_name, "a", property_name)
    with pytest.raises(EntityNotFound):
        graph.read_blob("node", "Doc", "nobody", "content")
    with pytest.raises(BadRequest, match="base64"):
        graph.mutate(PUT, params={"t": "a", "c": "base64:%%%"})
    with pytest.raises(ResourceLimit):
        graph.mutate(PUT, params={"t": "a", "c": "s3://" + "x" * 70000})
