"""The faults that tests inject do what they say."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.storage.faults import (
    FaultyStore,
    error_after,
    error_before,
    latency,
    stale_list,
    torn_list,
    unconditional,
)
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.storage.kinds import kind_of


@pytest.fixture
def faulty() -> FaultyStore:
    store = FaultyStore(open_store(Root.parse("memory://faults")))
    store.put("a/1", b"1")
    store.put("a/2", b"2")
    return store


def paths(store: ObjectStore, prefix: str = "a") -> list[str]:
    return [info.path for info in store.list(prefix)]


def test_without_faults_it_is_the_store(store: ObjectStore) -> None:
    faulty = FaultyStore(store)
    tag = faulty.create("a/1", b"1")
    assert faulty.get_tagged("a/1") == (b"1", tag) == store.get_tagged("a/1")
    assert faulty.get_or_none("a/2") is None
    faulty.swap("a/1", b"2", tag)
    faulty.put("a/2", b"3")
    assert faulty.list() == store.list()
    assert faulty.exists("a")
    faulty.sync("a/1")
    faulty.delete("a/1")
    faulty.delete_prefix("a")
    faulty.probe_create_if_absent()
    assert not store.exists("")
    assert faulty.counts is store.counts
    assert faulty.describe == store.describe
    assert faulty.fired == []


CALLS = {
    "get": lambda store: store.get("a/1"),
    "put": lambda store: store.put("a/1", b"new"),
    "create": lambda store: store.create("a/3", b"new"),
    "swap": lambda store: store.swap("a/1", b"new", store.inner.get_tagged("a/1")[1]),
    "list": lambda store: store.list("a"),
    "exists": lambda store: store.exists("a/1"),
    "delete": lambda store: store.delete("a/1"),
    "delete_prefix": lambda store: store.delete_prefix("a"),
    "sync": lambda store: store.sync("a/1"),
}


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("kind", ["transient", "configuration", "not_found", "precondition", "permanent", "unknown"])
def test_an_error_before_leaves_everything_as_it_was(faulty: FaultyStore, verb: str, kind: str) -> None:
    before = [(info.path, info.tag) for info in faulty.inner.list()]
    faulty.inject(error_before(verb, "a*", kind=kind))
    assert kind_of(lambda: CALLS[verb](faulty)) == kind
    assert [(info.path, info.tag) for info in faulty.inner.list()] == before
    CALLS[verb](faulty)
    assert [fault.verb for fault in faulty.fired] == [verb]


@pytest.mark.parametrize(
    ("verb", "after"),
    [
        ("put", {"a/1": b"new", "a/2": b"2"}),
        ("create", {"a/1": b"1", "a/2": b"2", "a/3": b"new"}),
        ("swap", {"a/1": b"new", "a/2": b"2"}),
        ("delete", {"a/2": b"2"}),
        ("delete_prefix", {}),
    ],
)
def test_an_error_after_is_a_lost_answer(faulty: FaultyStore, verb: str, after: dict[str, bytes]) -> None:
    faulty.inject(error_after(verb))
    assert kind_of(lambda: CALLS[verb](faulty)) == "unknown"
    assert {path: faulty.get(path) for path in paths(faulty)} == after


def test_a_fault_waits_for_its_call(faulty: FaultyStore) -> None:
    faulty.inject(error_before("get", "a/*", nth=3))
    faulty.get("a/1")
    faulty.exists("a/1")
    faulty.get("a/2")
    assert kind_of(lambda: faulty.get("a/1")) == "transient"
    faulty.get("a/1")


def test_a_fault_meets_only_its_path(faulty: FaultyStore) -> None:
    faulty.inject(error_before("*", "a/2", nth=None))
    assert faulty.get("a/1") == b"1"
    assert kind_of(lambda: faulty.get("a/2")) == "transient"
    assert kind_of(lambda: faulty.put("a/2", b"")) == "transient"
    faulty.clear()
    assert faulty.get("a/2") == b"2"


def test_a_fault_fires_once_for_many_threads(faulty: FaultyStore) -> None:
    def get(_: int) -> str:
        return "ok" if faulty.get_or_none("a/1") else "gone"

    faulty.inject(error_before("get", nth=5, kind="not_found"))
    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(get, range(20))) == ["gone"] + ["ok"] * 19


def test_latency(faulty: FaultyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    faulty.inject(latency("get", "a/1", seconds=0.25))
    assert (faulty.get("a/1"), faulty.get("a/2"), faulty.get("a/1")) == (b"1", b"2", b"1")
    assert slept == [0.25, 0, 0.25]


def test_a_torn_listing(faulty: FaultyStore) -> None:
    faulty.inject(torn_list("a", hidden="*/2"))
    assert paths(faulty) == ["a/1"]
    assert paths(faulty) == ["a/1", "a/2"]


def test_a_stale_listing(faulty: FaultyStore) -> None:
    faulty.list("a")
    faulty.delete("a/1")
    faulty.put("a/3", b"3")
    faulty.inject(stale_list("a"))
    assert paths(faulty) == ["a/1", "a/2"]
    assert paths(faulty) == ["a/2", "a/3"]
    faulty.inject(stale_list("*"))
    assert paths(faulty, "") == []


def test_a_store_that_ignores_conditions(faulty: FaultyStore) -> None:
    faulty.inject(unconditional("create"))
    faulty.inject(unconditional("swap"))
    tag = faulty.create("a/1", b"created")
    assert faulty.get_tagged("a/1") == (b"created", tag)
    faulty.swap("a/1", b"swapped", "wrong tag")
    assert faulty.get("a/1") == b"swapped"
