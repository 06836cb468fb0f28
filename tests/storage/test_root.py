"""Where a graph lives: URIs as people write them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest
from omnigraph.storage.root import Root, relative

NO_ENVIRONMENT: dict[str, str] = {}


@pytest.mark.parametrize(
    ("written", "uri"),
    [
        ("/data/graph", "/data/graph"),
        ("/data//a/../graph/", "/data/graph"),
        (Path("/data/graph"), "/data/graph"),
        ("file:///data/graph", "/data/graph"),
        ("file://localhost/data/my%20graph", "/data/my graph"),
        ("/data/my%20graph", "/data/my%20graph"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("memory://x", "memory://x"),
    ],
)
def test_a_uri_is_normalised(written: str | Path, uri: str) -> None:
    assert Root.parse(written, environ=NO_ENVIRONMENT).uri == uri


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Root.parse("graph").uri == str(tmp_path.resolve() / "graph")


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Root.parse(tmp_path / "link" / "graph").uri == str(tmp_path.resolve() / "real" / "graph")


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ("", "the graph URI is empty"),
        ("http://host/graph", "the scheme http:// is not supported"),
        ("s3a://bucket/graph", "the scheme s3a:// is not supported"),
        ("s3://", "names no bucket"),
        ("s3:///graph", "names no bucket"),
        ("s3://bucket/a//b", "is not a path below a graph"),
        ("s3://bucket/../b", "is not a path below a graph"),
        ("s3://bucket/a?x=1", "'?' and '#' can not be part"),
        ("file://host/graph", "can not name another host"),
        ("file://graph", "can not name another host"),
        ("/data/a\nb", "control characters"),
        ("/data/a?b", "contains '?'"),
        ("/data/a\udcffb", "not UTF-8"),
        ("/data/a?b/graph", "it contains '?'"),
    ],
)
def test_a_bad_uri_is_refused(written: str, part: str) -> None:
    with pytest.raises(BadRequest) as caught:
        Root.parse(written, environ=NO_ENVIRONMENT)
    assert part in str(caught.value)


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", ".", "a/../b", "a#1"])
def test_a_path_that_leaves_the_graph_is_refused(path: str) -> None:
    with pytest.raises(BadRequest):
        relative(path)


@pytest.mark.parametrize(
    ("uri", "lance_uri"),
    [("/data/g", "/data/g/nodes/1"), ("s3://b/p", "s3://b/p/nodes/1"), ("s3://b", "s3://b/nodes/1"), ("/", "/nodes/1")],
)
def test_a_table_has_an_absolute_uri(uri: str, lance_uri: str) -> None:
    assert Root.parse(uri, environ=NO_ENVIRONMENT).lance_uri("nodes/1") == lance_uri


def test_memory_is_for_control_files_only() -> None:
    with pytest.raises(BadRequest, match="memory:// keeps control files only"):
        Root.parse("memory://x").lance_uri("nodes/1")


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ({}, {}, {}),
        ({"region": "eu"}, {"AWS_REGION": "us"}, {"aws_region": "eu"}),
        ({}, {"AWS_REGION": "eu", "AWS_DEFAULT_REGION": "us"}, {"aws_region": "eu"}),
        ({}, {"AWS_DEFAULT_REGION": "us", "AWS_REGION": ""}, {"aws_region": "us"}),
        (
            {"access_key_id": "a", "AWS_SECRET_ACCESS_KEY": "b"},
            {"AWS_ACCESS_KEY_ID": "x", "AWS_SESSION_TOKEN": "y", "HOME": "/"},
            {"aws_access_key_id": "a", "aws_secret_access_key": "b"},
        ),
        ({"endpoint": "http://h:1"}, {}, {"aws_endpoint": "http://h:1", "allow_http": "true"}),
        ({"endpoint": "http://h:1", "allow_http": "false"}, {}, {"aws_endpoint": "http://h:1", "allow_http": "false"}),
        ({}, {"AWS_ENDPOINT_URL": "https://h"}, {"aws_endpoint": "https://h"}),
    ],
)
def test_s3_options(given: dict[str, str], environ: dict[str, str], expected: dict[str, str]) -> None:
    assert Root.parse("s3://b/p", given, environ).storage_options == expected


@pytest.mark.parametrize(
    ("uri", "given", "part"),
    [
        ("/data/g", {"region": "eu"}, "storage options are for s3:// only"),
        ("s3://b", {"region": "eu", "aws_region": "us"}, "aws_region is given twice"),
        ("s3://b", {"allow_http": True}, "must be text, not bool"),
    ],
)
def test_bad_options_are_refused(uri: str, given: dict[str, str], part: str) -> None:
    with pytest.raises(BadRequest) as caught:
        Root.parse(uri, given, NO_ENVIRONMENT)
    assert part in str(caught.value)


def test_a_root_is_a_value_that_keeps_its_secrets() -> None:
    root = Root.parse("s3://b/p", {"aws_secret_access_key": "hush"}, NO_ENVIRONMENT)
    assert pickle.loads(pickle.dumps(root)) == root
    assert hash(root) == hash(Root.parse("s3://b/p/", {"secret_access_key": "hush"}, NO_ENVIRONMENT))
    assert "hush" not in repr(root)


def test_lance_and_the_object_store_see_the_same_place(shared_root: Root) -> None:
    from omnigraph.storage.objects import open_store

    table = pa.table({"id": ["a"]})
    lance.write_dataset(table, shared_root.lance_uri("nodes/t"), storage_options=shared_root.storage_options)
    store = open_store(shared_root)
    assert store.exists("nodes/t/_versions")
    assert store.exists("nodes/t")
    store.delete_prefix("nodes/t")
    assert not store.exists("nodes/t")
    with pytest.raises((ValueError, OSError)):
        lance.dataset(shared_root.lance_uri("nodes/t"), storage_options=shared_root.storage_options)


@pytest.mark.parametrize("name", ["a b", "a#b", "a%20b", "é", "[a]*"])
def test_any_folder_name_works(name: str, tmp_path: Path) -> None:
    from omnigraph.storage.objects import open_store

    root = Root.parse(tmp_path / name)
    store = open_store(root)
    store.put("x/y", b"1")
    assert [info.path for info in store.list()] == ["x/y"]
    assert (tmp_path / name / "x" / "y").read_bytes() == b"1"
    assert os.path.isabs(root.lance_uri("nodes/t"))  # noqa: PTH117
