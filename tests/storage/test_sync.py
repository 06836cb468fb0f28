"""Surviving a power failure: what `sync` flushes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.storage.kinds import kind_of


def test_sync_flushes_the_file_and_every_folder_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root.parse(tmp_path / "graph")
    store = open_store(root)
    for path in ("a/b/x", "a/b/y", "a/z"):
        store.put(path, b"1")
    flushed: list[str] = []
    true_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()).removeprefix(str(tmp_path)))
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


def test_a_second_sync_flushes_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, and the folders that name them: one that was added, one that was replaced, one that another process wrote."""
    store = open_store(Root.parse(tmp_path / "graph"))
    for path in ("a/b/x", "a/b/y", "a/c/z"):
        store.put(path, b"1")
    store.sync("a")
    flushed: list[str] = []
    true_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()).removeprefix(str(tmp_path)))
        true_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.sync("a")
    assert flushed == ["/graph/a", "/graph", ""]
    flushed.clear()
    store.put("a/b/x", b"2")
    (tmp_path / "graph/a/b/new").write_bytes(b"1")
    store.sync("a")
    assert sorted(flushed[:-3]) == ["/graph/a/b", "/graph/a/b/new", "/graph/a/b/x"]


def test_sync_of_nothing(store: ObjectStore, store_root: Root) -> None:
    if store_root.is_local:
        assert kind_of(lambda: store.sync("a/b")) == "not_found"
    else:
        store.sync("a/b")
    assert not store.exists("")
