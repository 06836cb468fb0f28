"""The lock of a branch's effect window: between threads, between processes, and when its holder dies."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.errors import BadRequest, ManifestContention, StorageError
from omnigraph.storage.faults import FaultyStore, error_before, latency
from omnigraph.storage.file_lock import FileLock, is_locked_file, try_lock, unlock
from omnigraph.storage.locks import BranchLocks, Turn, lock_path
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.storage import children


@pytest.fixture
def locks(store: ObjectStore, store_root: Root) -> BranchLocks:
    return BranchLocks(store, store_root)


def is_free(locks: BranchLocks, branch: str) -> bool:
    """Whether a thread of its own can take the lock now."""

    def take() -> bool:
        with locks.try_hold(branch) as held:
            return held is not None and held.still_held()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(take).result()


# --- one holder -------------------------------------------------------------------------------------------------------


def test_a_held_lock_is_held_until_the_block_ends(locks: BranchLocks) -> None:
    with locks.hold("main") as held:
        assert held.branch == "main"
        assert held.still_held()
        assert not is_free(locks, "main")
        assert is_free(locks, "other")
    assert not held.still_held()
    assert is_free(locks, "main")


def test_an_error_gives_the_lock_back(locks: BranchLocks) -> None:
    with pytest.raises(KeyError), locks.hold("main"):
        raise KeyError
    assert is_free(locks, "main")


def test_a_failed_try_gets_none_and_takes_nothing(locks: BranchLocks) -> None:
    with locks.hold("main"):
        assert not is_free(locks, "main")
    assert is_free(locks, "main")


def test_a_lock_that_does_not_come_is_contention(locks: BranchLocks) -> None:
    def take() -> None:
        with locks.hold("feature/x", timeout=0.05):
            pass

    message = re.escape("branch 'feature/x' was locked by another writer for 0.05 s; nothing was written, try again")
    with locks.hold("feature/x"), ThreadPoolExecutor(1) as pool, pytest.raises(ManifestContention, match=message):
        pool.submit(take).result()


@pytest.mark.parametrize("again", ["hold", "try_hold"])
def test_a_thread_may_not_take_its_own_lock_again(locks: BranchLocks, again: str) -> None:
    twice = pytest.raises(BadRequest, match="this thread holds the lock of branch 'main' already")
    with locks.hold("main") as held:
        with twice, getattr(locks, again)("main"):
            pytest.fail("the lock was taken twice")
        assert held.still_held()
    assert is_free(locks, "main")


def test_giving_back_twice_does_not_free_the_next_holder(locks: BranchLocks) -> None:
    with locks.hold("main") as first:
        first.release()
        with locks.hold("main") as second:
            first.release()
            assert second.still_held()
            assert not is_free(locks, "main")


def test_every_handle_of_the_process_shares_the_lock(store: ObjectStore, store_root: Root) -> None:
    with BranchLocks(store, store_root).hold("main"):
        assert not is_free(BranchLocks(store, store_root), "main")


def test_a_lock_that_can_not_be_taken_for_another_reason_is_told_and_not_kept(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")
    (tmp_path / "graph").write_bytes(b"a file where the graph should be")
    locks = BranchLocks(open_store(root), root)
    for _ in range(2):
        with pytest.raises(StorageError, match=r"can not lock .*/graph/__locks/main"), locks.hold("main"):
            pass


def test_a_failure_lets_the_next_thread_in(s3_root: Root) -> None:
    store = FaultyStore(open_store(s3_root), [latency("get", seconds=0.2, nth=1), error_before("get", nth=1)])
    locks = BranchLocks(store, s3_root)

    def take(_: int) -> str:
        try:
            with locks.hold("main"):
                return "held"
        except StorageError as error:
            return error.kind

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(take, range(3))) == ["held", "held", "transient"]


# --- several branches -------------------------------------------------------------------------------------------------


def test_several_locks_are_taken_in_name_order(locks: BranchLocks) -> None:
    with locks.hold_all(["b", "a/c", "main", "b"]) as held:
        assert [lock.branch for lock in held.locks] == ["a/c", "b", "main"]
        assert held.still_held()
        assert not any(is_free(locks, branch) for branch in ("a/c", "b", "main"))
    assert not held.still_held()
    assert all(is_free(locks, branch) for branch in ("a/c", "b", "main"))


def test_several_locks_or_none(locks: BranchLocks) -> None:
    def take() -> None:
        with locks.hold_all(["a", "b", "c"], timeout=0.05):
            pytest.fail("a held lock was taken")

    with locks.hold("b"), ThreadPoolExecutor(1) as pool:
        with pytest.raises(ManifestContention, match="branch 'b'"):
            pool.submit(take).result()
        assert is_free(locks, "a")
        assert is_free(locks, "c")


def test_two_that_want_all_do_not_block_each_other(locks: BranchLocks) -> None:
    def take(branches: list[str]) -> int:
        with locks.hold_all(branches) as held:
            return len(held.locks)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(take, [["a", "b", "c"], ["c", "b", "a"]] * 4)) == [3] * 8


# --- names ------------------------------------------------------------------------------------------------------------


def test_lock_names() -> None:
    assert lock_path("main") == "__locks/main"
    assert lock_path("feature/x.1") == "__locks/feature%2fx%2e1"
    assert lock_path("Main") == "__locks/%4dain"
    names = ["a", "A", "a/b", "a%2fb", "a.b", ".objects", "a.gate", "é", "e" * 300, "e" * 301, "é" * 100, "~"]
    found = [lock_path(name).removeprefix("__locks/") for name in names]
    assert len({name.lower() for name in found}) == len(names)
    assert all(len(name) <= 200 and "/" not in name and "." not in name for name in found)


@pytest.mark.parametrize("branch", ["feature/x", "feature", "Feature", "é" * 200, "a.gate", "a"])
def test_any_branch_can_be_locked(locks: BranchLocks, branch: str) -> None:
    with locks.hold(branch) as held:
        assert held.still_held()
        assert not is_free(locks, branch)


# --- many -------------------------------------------------------------------------------------------------------------


def test_threads_and_processes_exclude_each_other(shared_root: Root, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    times = 40 if shared_root.is_local else 6
    with children.children(3, children.count_under_lock, shared_root, counter, times, 2) as racers:
        for racer in racers:
            racer.send("go")
        assert [racer.receive() for racer in racers] == ["done"] * 3
    assert counter.read_text() == str(3 * times)


def test_threads_are_served_in_the_order_they_came() -> None:
    turn = Turn()
    order: list[int] = []

    def wait(number: int) -> None:
        assert turn.take(60)
        order.append(number)
        turn.give()

    assert turn.take(0)
    threads = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
    for waiting, thread in enumerate(threads, start=1):
        thread.start()
        while len(turn._queue) < waiting:
            time.sleep(0.001)
    turn.give()
    assert not turn.is_mine
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_who_leaves_the_queue_does_not_hold_up_the_others() -> None:
    turn = Turn()
    assert turn.take(0)
    with ThreadPoolExecutor(2) as pool:
        impatient = pool.submit(turn.take, 0.05)
        patient = pool.submit(turn.take, 60)
        assert not impatient.result()
        turn.give()
        assert patient.result()


def test_a_busy_process_can_not_starve_one_that_waits(tmp_path: Path) -> None:
    """Each lock stands for a process; who gave the lock back queues behind the one that waited for it."""
    busy, waiting, again = (FileLock(tmp_path / "main") for _ in range(3))
    assert busy.attempt()
    assert not waiting.attempt()
    busy.release()
    assert not again.attempt()
    assert waiting.attempt()
    assert not again.attempt()
    waiting.release()
    assert again.attempt()
    again.release()


def test_who_stops_waiting_lets_others_pass(tmp_path: Path) -> None:
    holder, impatient, next_one = (FileLock(tmp_path / "main") for _ in range(3))
    assert holder.attempt()
    assert not impatient.attempt()
    impatient.abandon()
    holder.release()
    assert next_one.attempt()
    next_one.release()


# --- dying ------------------------------------------------------------------------------------------------------------


def test_a_killed_holder_on_disk_frees_the_lock_at_once(tmp_path: Path) -> None:
    root = Root.parse(tmp_path)
    locks = BranchLocks(open_store(root), root)
    child = children.Child(children.hold_for_ever, root, "feature/x", 30.0)
    assert child.receive() == "held"
    with locks.try_hold("feature/x") as held:
        assert held is None
    child.kill()
    with locks.try_hold("feature/x") as held:
        assert held is not None


def test_a_killed_holder_on_s3_frees_the_lock_when_its_lease_ends(s3_root: Root) -> None:
    locks = BranchLocks(open_store(s3_root), s3_root)
    child = children.Child(children.hold_for_ever, s3_root, "feature/x", 3.0)
    assert child.receive() == "held"
    child.kill()
    with locks.try_hold("feature/x") as held:
        assert held is None
    with locks.hold("feature/x") as held:
        assert held.still_held()


def test_a_fork_neither_has_nor_keeps_its_parents_lock(tmp_path: Path) -> None:
    root = Root.parse(tmp_path)
    locks = BranchLocks(open_store(root), root)
    parent = children.Child(children.hold_and_fork, root, "main")
    fork_id, fork_holds = parent.receive()
    try:
        assert not fork_holds
        with locks.try_hold("main") as held:
            assert held is None, "the fork gave back what was not its own"
        parent.kill()
        with locks.try_hold("main") as held:
            assert held is not None, "the fork keeps the lock of its dead parent"
    finally:
        os.kill(fork_id, signal.SIGKILL)


def test_a_removed_lock_file_is_noticed(tmp_path: Path) -> None:
    root = Root.parse(tmp_path)
    store = open_store(root)
    locks = BranchLocks(store, root)
    with locks.hold("main") as held:
        store.delete(lock_path("main"))
        assert not held.still_held()
    with locks.hold("main") as held:
        assert held.still_held()


def test_a_file_that_goes_away_while_it_is_locked_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "main"
    true_flock = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", true_flock)
        place.unlink()
        true_flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    descriptor = try_lock(place)
    assert descriptor is not None
    assert is_locked_file(descriptor, place)
    assert try_lock(place) is None
    unlock(descriptor)


def test_a_lock_that_can_not_be_given_back_is_a_warning(s3_root: Root, caplog: pytest.LogCaptureFixture) -> None:
    store = FaultyStore(open_store(s3_root))
    locks = BranchLocks(store, s3_root)
    with locks.hold("main"):
        store.inject(error_before("swap"))
    assert "the lock of branch 'main' was not given back" in caplog.text
    # The same process knows that nobody else can be meant, and does not wait for the lease to end.
    assert is_free(locks, "main")
