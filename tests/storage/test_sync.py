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


def test_sync_of_nothing(store: ObjectStore, store_root: Root) -> None:
    if store_root.is_local:
        assert kind_of(lambda: store.sync("a/b")) == "not_found"
    else:
        store.sync("a/b")
    assert not store.exists("")
