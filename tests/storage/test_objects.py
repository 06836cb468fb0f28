"""The contract of the object store, on every kind of store."""

from __future__ import annotations

import datetime
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.errors import BadRequest, StorageError
from omnigraph.storage.faults import FaultyStore, error_after, error_before, unconditional
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.storage import children


def kind_of(call: Callable[[], object]) -> str:
    """The kind of the StorageError that a call raises."""
    with pytest.raises(StorageError) as caught:
        call()
    assert "\n" not in caught.value.message
    return caught.value.kind


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


@pytest.mark.parametrize("verb", ["get", "put", "create", "swap", "delete", "exists", "list", "delete_prefix"])
def test_a_path_outside_is_refused(store: ObjectStore, verb: str) -> None:
    arguments = {"put": (b"",), "create": (b"",), "swap": (b"", "tag")}.get(verb, ())
    with pytest.raises(BadRequest, match="is not a path below a graph"):
        getattr(store, verb)("../x", *arguments)


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


# --- racing -----------------------------------------------------------------------------------------------------------


def test_one_of_many_threads_creates(store: ObjectStore) -> None:
    for number in range(5):
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda _, number=number: children.try_create(store, f"a/{number}"), range(8)))
        assert sum(won) == 1


def test_one_of_many_processes_creates(shared_root: Root) -> None:
    paths = [f"a/{number}" for number in range(10)]
    with children.children(4, children.race_to_create, shared_root, paths, 2) as racers:
        for racer in racers:
            racer.send("go")
        won = [racer.receive() for racer in racers]
    assert [sum(counts) for counts in zip(*won, strict=True)] == [1] * len(paths)


def test_no_swap_of_many_threads_is_lost(store: ObjectStore) -> None:
    store.create("counter", b"0")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: children.add_by_swapping(store, "counter"), range(40)))
    assert store.get("counter") == b"40"


def test_no_swap_of_many_processes_is_lost(shared_root: Root) -> None:
    store = open_store(shared_root)
    store.create("counter", b"0")
    times = 100 if shared_root.is_local else 10
    with children.children(4, children.count_by_swapping, shared_root, "counter", times) as racers:
        for racer in racers:
            racer.send("go")
        assert [racer.receive() for racer in racers] == ["done"] * 4
    assert store.get("counter") == str(4 * times).encode()


def test_a_put_does_not_slip_into_a_swap(tmp_path: Path) -> None:
    """On disk a swap is two steps; a put from elsewhere waits for both, so the newest write is what stays."""
    root = Root.parse(tmp_path)
    store, other = open_store(root), open_store(root)
    tag = store.create("a", b"1")
    with ThreadPoolExecutor(1) as pool:

        def put_elsewhere() -> None:
            nonlocal putting
            putting = pool.submit(other.put, "a", b"put")
            time.sleep(0.05)
            assert not putting.done()

        putting = pool.submit(int)
        with failpoints.armed("objects.swap_compared", put_elsewhere):
            store.swap("a", b"swapped", tag)
        putting.result()
    assert store.get("a") == b"put"


# --- dying ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["put", "create", "swap"])
def test_a_killed_write_is_whole_or_absent(shared_root: Root, verb: str) -> None:
    store = open_store(shared_root)
    size = 4_000_000
    for turn in range(4):
        store.put("a/x", b"\xff" * size)
        with children.children(1, children.write_for_ever, shared_root, "a/x", size, verb) as (writer,):
            writer.send("go")
            time.sleep(random.uniform(0.01, 0.15))
            writer.kill()
        for info in store.list("a"):
            data = store.get(info.path)
            assert len(data) == size
            assert data == data[:1] * size
        store.put("a/x", b"writable again")
        store.delete_prefix("a")
        assert store.list() == [], turn


def test_a_killed_swap_leaves_the_old_object_and_no_lock(tmp_path: Path) -> None:
    root = Root.parse(tmp_path)
    store = open_store(root)
    tag = store.create("a", b"old")
    with children.children(1, children.swap_until_failpoint, root, "a") as (writer,):
        writer.send("go")
        assert writer.join() == -9
    assert store.get("a") == b"old"
    store.swap("a", b"mine", tag)
    assert store.get("a") == b"mine"


def test_what_a_killed_write_left_is_invisible_and_goes_with_its_folder(tmp_path: Path) -> None:
    store = open_store(Root.parse(tmp_path))
    store.put("a/x", b"1")
    (tmp_path / "a" / "x#1").write_bytes(b"half")
    assert [info.path for info in store.list()] == ["a/x"]
    store.delete("a/x")
    assert not store.exists("a")
    store.delete_prefix("a")
    assert not (tmp_path / "a").exists()


# --- a store that can not do it ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "verb", "arguments"),
    [
        (0o555, "put", ("x/new", b"")),
        (0o555, "create", ("x/new", b"")),
        (0o555, "delete", ("x/old",)),
        (0o555, "delete_prefix", ("x",)),
        (0o555, "probe_create_if_absent", ()),
        (0o000, "get", ("x/old",)),
        (0o000, "get_or_none", ("x/old",)),
        (0o000, "exists", ("x/old",)),
        (0o000, "exists", ("x",)),
        (0o000, "list", ("x",)),
        (0o000, "list", ()),
        (0o000, "sync", ("x/old",)),
    ],
    ids=lambda value: oct(value) if isinstance(value, int) else None,
)
def test_a_missing_permission_is_loud(tmp_path: Path, mode: int, verb: str, arguments: tuple[object, ...]) -> None:
    open_store(Root.parse(tmp_path)).put("x/old", b"1")
    closed = [tmp_path / "x", tmp_path] if verb == "probe_create_if_absent" else [tmp_path / "x"]
    try:
        for folder in closed:
            folder.chmod(mode)
        kind, path, message = children.call(children.outcome, Root.parse(tmp_path), verb, *arguments)
    finally:
        for folder in reversed(closed):
            folder.chmod(0o755)
    assert kind == "configuration"
    assert path is not None
    assert path.startswith(str(tmp_path))
    assert path in message
    assert "permission denied; give this user read and write access" in message
    assert (tmp_path / "x" / "old").read_bytes() == b"1"


def test_a_readable_place_stays_readable_without_write_permission(tmp_path: Path) -> None:
    open_store(Root.parse(tmp_path)).put("x/old", b"1")
    try:
        for folder in (tmp_path / "x", tmp_path / "__locks", tmp_path):
            folder.chmod(0o555)
        assert children.call(children.outcome, Root.parse(tmp_path), "get", "x/old") == ("ok", None, "b'1'")
        assert children.call(children.outcome, Root.parse(tmp_path), "exists", "x/new") == ("ok", None, "False")
        kind, path, _ = children.call(children.outcome, Root.parse(tmp_path), "swap", "x/old", b"", "tag")
    finally:
        for folder in (tmp_path, tmp_path / "__locks", tmp_path / "x"):
            folder.chmod(0o755)
    # The lock file was there before, so the swap got as far as comparing.
    assert (kind, path) == ("precondition", f"{tmp_path}/x/old")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this user may not mount a file system; test_object_errors.py has the same error, injected")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("verb", ["put", "create", "swap"])
def test_a_full_disk_is_told_and_harms_nothing(small_disk: Path, verb: str) -> None:
    store = open_store(Root.parse(small_disk))
    tag = store.create("a/x", b"small")
    arguments = (tag,) if verb == "swap" else ()
    path = "a/new" if verb == "create" else "a/x"
    with pytest.raises(StorageError) as caught:
        getattr(store, verb)(path, os.urandom(200_000), *arguments)
    assert caught.value.kind == "permanent"
    assert caught.value.path == f"{small_disk}/{path}"
    assert str(caught.value).endswith("the disk is full; free some space")
    assert store.get("a/x") == b"small"
    assert [info.path for info in store.list()] == ["a/x"]
    store.put("a/x", b"fits again")


def test_a_read_only_disk_is_told(small_disk: Path) -> None:
    store = open_store(Root.parse(small_disk))
    store.put("a/x", b"1")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for call in (lambda: store.put("a/x", b"2"), lambda: store.delete("a/x"), store.probe_create_if_absent):
        with pytest.raises(StorageError, match="read-only; mount it read-write or open the graph read-only") as caught:
            call()
        assert caught.value.kind == "configuration"
    assert store.get("a/x") == b"1"
    assert [info.path for info in store.list()] == ["a/x"]


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    store = open_store(Root.parse(tmp_path))
    store.put("a", b"1")
    assert kind_of(lambda: store.put("a/b", b"")) == "configuration"
    store.put("b/c", b"1")
    assert kind_of(lambda: store.put("b", b"")) == "configuration"


# --- the probe --------------------------------------------------------------------------------------------------------


def test_lif_16_a_fit_store_passes_and_keeps_nothing(store: ObjectStore) -> None:
    store.probe_create_if_absent()
    assert store.list() == []


@pytest.mark.parametrize(
    "fault",
    [
        unconditional("create", "__probe*"),
        error_before("create", "__probe*", nth=None, kind="configuration"),
    ],
    ids=["LIF-16-overwrites", "LIF-16-unsupported"],
)
def test_lif_16_an_unfit_store_is_refused(store: ObjectStore, fault: object) -> None:
    store.put("__probe-foreign", b"not ours")
    faulty = FaultyStore(store, [fault])  # type: ignore[list-item]
    with pytest.raises(StorageError, match="has no atomic create-if-absent") as caught:
        faulty.probe_create_if_absent()
    assert caught.value.kind == "configuration"
    assert store.describe in caught.value.message
    assert [info.path for info in store.list()] == ["__probe-foreign"]
    assert store.get("__probe-foreign") == b"not ours"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (error_before("create", kind="transient"), "transient"),
        (error_after("create", kind="unknown"), "unknown"),
        (error_before("create", nth=2, kind="transient"), "transient"),
        (error_before("get", kind="transient"), "transient"),
    ],
    ids=["LIF-16-away", "LIF-16-answer-lost", "LIF-16-away-later", "LIF-16-unreadable"],
)
def test_lif_16_a_store_that_fails_is_not_called_unfit(store: ObjectStore, fault: object, kind: str) -> None:
    faulty = FaultyStore(store, [fault])  # type: ignore[list-item]
    assert kind_of(faulty.probe_create_if_absent) == kind
    assert store.list() == []


def test_lif_16_a_file_system_without_hard_links(tmp_path: Path) -> None:
    root = Root.parse(tmp_path)
    kind, path, message = children.call(children.outcome_without_links, root, "probe_create_if_absent")
    assert (kind, path) == ("configuration", str(tmp_path))
    assert "it has no atomic create-if-absent" in message
    assert [str(found.relative_to(tmp_path)) for found in tmp_path.rglob("*") if found.is_file()] == ["__locks/.objects"]


# --- durability -------------------------------------------------------------------------------------------------------


def test_sync_flushes_the_file_and_every_folder_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root.parse(tmp_path / "graph")
    store = open_store(root)
    for path in ("a/b/x", "a/b/y", "a/z"):
        store.put(path, b"1")
    flushed: list[str] = []
    true_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(str(tmp_path)))
        true_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.sync("a/b/x")
    assert flushed == ["/graph/a/b/x", "/graph/a/b", "/graph/a", "/graph", ""]
    flushed.clear()
    store.sync("a")
    assert sorted(flushed[:4]) == ["/graph/a/b", "/graph/a/b/x", "/graph/a/b/y", "/graph/a/z"]
    assert flushed[4:] == ["/graph/a", "/graph", ""]
    flushed.clear()
    store.sync("")
    assert {"/graph/a/b/x", "/graph", ""} < set(flushed)


def test_sync_of_nothing(store: ObjectStore, store_root: Root) -> None:
    if store_root.is_local:
        assert kind_of(lambda: store.sync("a/b")) == "not_found"
    else:
        store.sync("a/b")
    assert not store.exists("")


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
