"""Places that can not be written: no permission, no space, no atomic create (LIF-16)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.faults import Fault, FaultyStore, error_after, error_before, unconditional
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.storage import children
from tests.storage.kinds import kind_of

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
    calls: list[Callable[[], object]] = [
        partial(store.put, "a/x", b"2"),
        partial(store.delete, "a/x"),
        store.probe_create_if_absent,
    ]
    for call in calls:
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
def test_lif_16_an_unfit_store_is_refused(store: ObjectStore, fault: Fault) -> None:
    store.put("__probe-foreign", b"not ours")
    faulty = FaultyStore(store, [fault])
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
def test_lif_16_a_store_that_fails_is_not_called_unfit(store: ObjectStore, fault: Fault, kind: str) -> None:
    faulty = FaultyStore(store, [fault])
    assert kind_of(faulty.probe_create_if_absent) == kind
    assert store.list() == []


def test_lif_16_a_file_system_without_hard_links(tmp_path: Path) -> None:
    root = Root.parse(tmp_path)
    kind, path, message = children.call(children.outcome_without_links, root, "probe_create_if_absent")
    assert (kind, path) == ("configuration", str(tmp_path))
    assert "it has no atomic create-if-absent" in message
    files = [str(found.relative_to(tmp_path)) for found in tmp_path.rglob("*") if found.is_file()]
    assert files == ["__locks/.objects"]
