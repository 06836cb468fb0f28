"""The contract of the object store, on every kind of store."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.errors import BadRequest
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.storage.kinds import kind_of

# --- reading and writing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 4096], ids=["empty", "one", "1 MiB"])
def test_what_is_put_is_got(store: ObjectStore, data: bytes) -> None:
    store.put("a/b.json", b"before")
    store.put("a/b.json", data)
    assert store.get("a/b.json") == data
    assert store.get_or_none("a/b.json") == data
    assert store.get_tagged("a/b.json")[0] == data


@pytest.mark.parametrize("path", ["a", "a/é b%2F#?*&+.json", "a/b/c/d/e/f", ".hidden", "a/x#y", "A/a"])
def test_any_name_works(store: ObjectStore, path: str) -> None:
    store.create(path, b"1")
    assert [info.path for info in store.list()] == [path]
    assert store.get(path) == b"1"
    assert store.exists(path)
    store.delete(path)
    assert store.list() == []


def test_what_is_missing_is_not_found(store: ObjectStore) -> None:
    store.put("a/b", b"1")
    assert kind_of(lambda: store.get("a/c")) == "not_found"
    assert kind_of(lambda: store.get("a")) == "not_found"
    assert store.get_or_none("a/c") is None
    assert store.get_tagged_or_none("a/c") is None


@pytest.mark.parametrize("verb", ["get", "stamp", "put", "create", "swap", "delete", "exists", "list", "delete_prefix"])
def test_a_path_outside_is_refused(store: ObjectStore, verb: str) -> None:
    arguments = {"put": (b"",), "create": (b"",), "swap": (b"", "tag")}.get(verb, ())
    with pytest.raises(BadRequest, match="is not a path below a graph"):
        getattr(store, verb)("../x", *arguments)


def test_a_stamp_changes_with_every_write(store: ObjectStore) -> None:
    assert store.stamp("a/b") is None
    seen = []
    for content in (b"1", b"2", b"33", b"44"):
        store.put("a/b", content)
        seen.append(store.stamp("a/b"))
        assert store.stamp("a/b") == seen[-1] is not None
    assert len(set(seen)) == len(seen)
    assert store.stamp("a") is None
    assert store.stamp("a/b/c") is None
    store.delete("a/b")
    assert store.stamp("a/b") is None


def test_create_refuses_what_exists(store: ObjectStore) -> None:
    store.create("a/b", b"1")
    assert kind_of(lambda: store.create("a/b", b"2")) == "precondition"
    assert store.get("a/b") == b"1"
    store.delete("a/b")
    store.create("a/b", b"3")
    assert store.get("a/b") == b"3"


def test_swap_replaces_only_what_has_not_changed(store: ObjectStore) -> None:
    first = store.create("a/b", b"1")
    assert store.get_tagged("a/b") == (b"1", first)
    second = store.swap("a/b", b"2", first)
    assert store.get_tagged("a/b") == (b"2", second)
    assert kind_of(lambda: store.swap("a/b", b"3", first)) == "precondition"
    store.put("a/b", b"4")
    assert kind_of(lambda: store.swap("a/b", b"5", second)) == "precondition"
    assert store.get("a/b") == b"4"


def test_swap_does_not_bring_back_what_is_gone(store: ObjectStore) -> None:
    tag = store.create("a/b", b"1")
    store.delete("a/b")
    assert kind_of(lambda: store.swap("a/b", b"2", tag)) == "precondition"
    assert not store.exists("a/b")


# --- listing and deleting ---------------------------------------------------------------------------------------------


def test_a_listing_is_complete_and_sorted(store: ObjectStore) -> None:
    before = datetime.datetime.now(datetime.UTC)
    names = [f"r/{number:03}.json" for number in range(120)] + ["r/sub/deep/x", "r-other/x", "r2"]
    for name in random.sample(names, len(names)):
        store.put(name, name.encode())
    below = [name for name in names if name.startswith("r/")]
    listed = store.list("r")
    assert [info.path for info in listed] == sorted(below)
    assert [info.size for info in listed] == [len(name) for name in sorted(below)]
    assert all(abs(info.modified - before) < datetime.timedelta(hours=1) for info in listed)
    assert [info.path for info in store.list()] == sorted(names)
    assert store.list("nothing") == []
    assert store.list("r2") == []


def test_the_tag_of_a_listing_fits_or_is_absent(store: ObjectStore) -> None:
    store.create("a", b"1")
    (info,) = store.list()
    assert info.tag in (None, store.get_tagged("a")[1])


def test_more_objects_than_so_many(store: ObjectStore) -> None:
    assert not store.has_more_than(0, "a")
    for path in ("a/b/c", "a/d", "ab/e"):
        store.put(path, b"x")
    assert [store.has_more_than(count, "a") for count in range(3)] == [True, True, False]
    assert not store.has_more_than(0, "a/d")


def test_several_objects_at_once_come_in_order(store: ObjectStore) -> None:
    paths = [f"m/{number}" for number in range(40)]
    for path in paths[::2]:
        store.put(path, path.encode())
    found = list(store.get_many(paths))
    assert found == [path.encode() if at % 2 == 0 else None for at, path in enumerate(paths)]


def test_a_name_with_escapes_is_deleted(store: ObjectStore) -> None:
    path = "refs/b%C3%BCro%2Fx.json"
    store.put(path, b"x")
    store.delete(path)
    assert store.get_or_none(path) is None
    store.delete(path)


def test_exists_means_an_object_or_something_below(store: ObjectStore) -> None:
    assert not store.exists("")
    store.put("a/b/c", b"")
    assert [path for path in ("", "a", "a/b", "a/b/c", "a/b/c/d", "a/bb", "b") if store.exists(path)] == [
        "",
        "a",
        "a/b",
        "a/b/c",
    ]
    store.delete("a/b/c")
    assert not store.exists("a")


def test_delete_is_repeatable(store: ObjectStore) -> None:
    store.delete("a/b")
    assert not store.exists("")
    store.put("a/b", b"")
    store.delete("a/b")
    store.delete("a/b")
    store.delete("a")
    assert not store.exists("a/b")


def test_delete_prefix_takes_what_is_below_and_nothing_else(store: ObjectStore) -> None:
    store.delete_prefix("a")
    for path in ("a/x", "a/b/c/d", "ab", "b/a/x", "f"):
        store.put(path, b"")
    store.delete_prefix("a")
    store.delete_prefix("a")
    store.delete_prefix("f")
    assert [info.path for info in store.list()] == ["ab", "b/a/x", "f"]
    store.delete_prefix("")
    assert not store.exists("")
    store.put("a/x", b"again")
    assert store.get("a/x") == b"again"


def test_a_folder_marker_is_not_an_object(s3_root: Root) -> None:
    import boto3

    options = s3_root.storage_options
    client = boto3.client(
        "s3",
        endpoint_url=options["aws_endpoint"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    )
    client.put_object(Bucket=s3_root.bucket, Key=f"{s3_root.prefix}/__recovery/", Body=b"")
    store = open_store(s3_root)
    assert store.list("__recovery") == []
    assert not store.exists("__recovery")


def test_two_graphs_in_one_bucket_do_not_meet(s3_root: Root) -> None:
    other = open_store(Root.parse(s3_root.uri + "-2", s3_root.storage_options))
    store = open_store(s3_root)
    other.put("x", b"other")
    assert store.list() == []
    store.delete_prefix("")
    assert other.get("x") == b"other"


# --- counting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda store: store.get("a/b"), {"get": 1}),
        (lambda store: store.get_or_none("nothing"), {"get": 1}),
        (lambda store: store.put("a/b", b"2"), {"put": 1}),
        (lambda store: store.create("a/new", b"2"), {"create": 1}),
        (lambda store: store.swap("a/b", b"2", store.get_tagged("a/b")[1]), {"get": 1, "swap": 1}),
        (lambda store: store.list("__recovery"), {"list": 1}),
        (lambda store: store.exists("a/b"), {"head": 1}),
        (lambda store: store.exists("a"), {"head": 1, "list": 1}),
        (lambda store: store.exists("nothing"), {"head": 1, "list": 1}),
        (lambda store: store.delete("a/b"), {"delete": 1}),
        (lambda store: store.probe_create_if_absent(), {"create": 2, "get": 1, "delete": 1}),
    ],
    ids=["get", "get_none", "put", "create", "swap", "heal", "exists", "exists_prefix", "absent", "delete", "probe"],
)
def test_requests_are_counted(
    store: ObjectStore, call: Callable[[ObjectStore], object], expected: dict[str, int]
) -> None:
    store.put("a/b", b"1")
    store.counts.clear()
    call(store)
    assert store.counts == Counter(expected)


def test_a_prefix_is_deleted_in_batches(s3_root: Root) -> None:
    store = open_store(s3_root)
    for number in range(5):
        store.put(f"a/{number}", b"")
    store.counts.clear()
    store.delete_prefix("a")
    assert store.counts == {"list": 1, "delete": 1}


# --- opening ----------------------------------------------------------------------------------------------------------


def test_opening_and_looking_makes_nothing(tmp_path: Path) -> None:
    store = open_store(Root.parse(tmp_path / "graph"))
    assert store.describe == str(tmp_path / "graph")
    assert store.list() == []
    assert not store.exists("a")
    store.delete("a")
    store.delete_prefix("a")
    store.delete_prefix("")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(BadRequest, match="can not open s3://b/p: Configuration key: 'zork' is not valid"):
        open_store(Root.parse("s3://b/p", {"zork": "1"}))
