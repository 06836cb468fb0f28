"""The object store under many writers, and under writers that die."""

from __future__ import annotations

import random
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.storage import children

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
    putting: list[Future[object]] = []
    with ThreadPoolExecutor(1) as pool:

        def put_elsewhere() -> None:
            putting.append(pool.submit(other.put, "a", b"put"))
            time.sleep(0.05)
            assert not putting[0].done()

        with failpoints.armed("objects.swap_compared", put_elsewhere):
            store.swap("a", b"swapped", tag)
        putting[0].result()
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
