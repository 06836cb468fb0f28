"""A lock as an object with a lease: every way to take, keep, lose and give it back."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Literal

import orjson
import pytest

from omnigraph.errors import StorageError
from omnigraph.ids import now_micros
from omnigraph.storage import lease as lease_module
from omnigraph.storage.faults import Fault, FaultyStore, error_after, error_before
from omnigraph.storage.lease import Lease, LeaseRecord, decode
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from tests.storage.kinds import kind_of

PATH = "__locks/main"
LONG = 600.0
LOOKS = 12_000


@pytest.fixture
def store(s3_root: Root) -> FaultyStore:
    return FaultyStore(open_store(s3_root))


def lease(store: FaultyStore, process: str, seconds: float = LONG) -> Lease:
    return Lease(store, PATH, seconds=seconds, process=process)


def held_by(store: FaultyStore) -> str | None:
    record = decode(store.inner.get(PATH))
    assert record is not None
    return record.process


def wait_until(happened: Callable[[], bool]) -> None:
    """Look again and again; what has not come after so many looks never will, and the test says which line waited."""
    for _ in range(LOOKS):
        if happened():
            return
        time.sleep(0.01)
    pytest.fail("what the test waits for has not happened")


def test_the_record_says_who_and_until_when(store: FaultyStore) -> None:
    mine = lease(store, "one")
    before = now_micros()
    assert mine.attempt()
    record = orjson.loads(store.get(PATH))
    assert set(record) == {"owner", "process", "lease_seconds", "expires_at"}
    assert (record["process"], record["lease_seconds"]) == ("one", LONG)
    assert before + LONG * 1e6 <= record["expires_at"] <= now_micros() + LONG * 1e6
    mine.release()
    free = orjson.loads(store.get(PATH))
    assert free.pop("expires_at") <= 0
    assert free == {"owner": None, "process": None, "lease_seconds": LONG}


def test_taking_and_giving_back_is_three_requests(store: FaultyStore) -> None:
    for expected in ({"get": 1, "create": 1, "swap": 1}, {"get": 1, "swap": 2}):
        store.counts.clear()
        mine = lease(store, "one")
        assert mine.attempt()
        mine.release()
        assert store.counts == expected


def test_one_holder_at_a_time(store: FaultyStore) -> None:
    one, two = lease(store, "one"), lease(store, "two")
    assert one.attempt()
    assert not two.attempt()
    assert one.still_held()
    one.release()
    assert not one.still_held()
    assert two.attempt()
    assert held_by(store) == "two"
    two.release()


def _changed(store: FaultyStore, before: bytes) -> bool:
    return store.get(PATH) != before


def test_a_lease_is_renewed(store: FaultyStore) -> None:
    one, two = lease(store, "one", seconds=6.0), lease(store, "two")
    assert one.attempt()
    for _ in range(2):
        wait_until(partial(_changed, store, store.get(PATH)))
        assert one.still_held()
        assert not two.attempt()
    one.release()
    assert held_by(store) is None


def test_a_lease_that_ran_out_can_be_taken_and_its_holder_knows(store: FaultyStore) -> None:
    store.inject(error_before("swap", nth=None))  # it can not renew
    one = lease(store, "one", seconds=0.3)
    assert one.attempt()
    wait_until(lambda: not one.still_held())
    store.clear()
    two = lease(store, "two")
    wait_until(two.attempt)
    assert not one.still_held()
    one.release()
    assert held_by(store) == "two"
    assert two.still_held()
    two.release()


def test_a_renewal_that_comes_too_late_does_not_bring_a_lease_back(store: FaultyStore) -> None:
    one = lease(store, "one", seconds=LONG)
    assert one.attempt()
    one._deadline = time.monotonic() - 1  # it has run out, and somebody has asked
    assert not one.still_held()
    assert not one.renew()
    assert not one.still_held()


def test_a_stolen_lock_is_noticed_at_the_next_renewal(store: FaultyStore) -> None:
    one = lease(store, "one")
    assert one.attempt()
    assert one.renew()
    thief = LeaseRecord("thief", "thief", LONG, now_micros() + int(LONG * 1e6))
    store.inner.put(PATH, thief.encode())
    assert not one.renew()
    assert not one.still_held()
    one.release()
    assert held_by(store) == "thief"


def test_a_removed_lock_is_noticed_at_the_next_renewal(store: FaultyStore) -> None:
    one = lease(store, "one")
    assert one.attempt()
    store.inner.delete(PATH)
    assert not one.renew()
    assert not one.still_held()
    one.release()
    assert not store.exists(PATH)


def test_giving_back_a_stolen_lock_leaves_it_to_the_thief(store: FaultyStore) -> None:
    one = lease(store, "one")
    assert one.attempt()
    thief = LeaseRecord("thief", "thief", LONG, now_micros() + int(LONG * 1e6))
    store.inner.put(PATH, thief.encode())
    one.release()
    assert held_by(store) == "thief"
    assert not one.renew()


def test_a_lock_that_has_expired_is_taken_at_once(store: FaultyStore) -> None:
    store.put(PATH, LeaseRecord("dead", "dead", LONG, now_micros() - 1).encode())
    one = lease(store, "one")
    assert one.attempt()
    one.release()


@pytest.mark.parametrize("clock", ["monotonic", "now_micros"])
def test_a_lease_runs_out_on_either_clock(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch, clock: Literal["monotonic", "now_micros"]
) -> None:
    """One clock stands still while a machine sleeps, the other can be set back."""
    stopped = getattr(lease_module, clock)()
    monkeypatch.setattr(lease_module, clock, lambda: stopped)
    store.inject(error_before("swap", nth=None))
    one = lease(store, "one", seconds=0.3)
    assert one.attempt()
    wait_until(lambda: not one.still_held())


@pytest.mark.parametrize("lost", ["create", "swap"])
def test_a_lock_whose_answer_was_lost_is_ours(store: FaultyStore, lost: str) -> None:
    if lost == "swap":
        store.put(PATH, LeaseRecord(None, None, LONG, 0).encode())
    store.inject(error_after(lost))
    one = lease(store, "one")
    assert one.attempt()
    assert [fault.verb for fault in store.fired] == [lost]
    assert one.still_held()
    one.release()
    assert held_by(store) is None


@pytest.mark.parametrize("fault", [error_before("create", kind="unknown"), error_before("create", kind="precondition")])
def test_a_lock_that_was_not_taken_is_not_ours(store: FaultyStore, fault: Fault) -> None:
    store.inject(fault)
    one = lease(store, "one")
    assert not one.attempt()
    assert not one.still_held()
    assert one.attempt()
    one.release()


def test_a_renewal_whose_answer_was_lost_keeps_the_lock(store: FaultyStore) -> None:
    one = lease(store, "one", seconds=6.0)
    store.inject(error_after("swap", nth=1))
    store.inject(error_before("swap", nth=2, kind="unknown"))
    assert one.attempt()
    wait_until(lambda: len(store.fired) == 2)
    renewed = store.get(PATH)
    wait_until(lambda: store.get(PATH) != renewed)
    assert one.still_held()
    one.release()
    assert held_by(store) is None


def test_a_store_that_is_away_is_told(store: FaultyStore) -> None:
    store.inject(error_before("get", kind="transient"))
    assert kind_of(lease(store, "one").attempt) == "transient"
    store.inject(error_before("create", kind="configuration"))
    assert kind_of(lease(store, "one").attempt) == "configuration"
    assert not store.exists(PATH)


def test_giving_back_fails_loudly_and_the_lease_runs_out(store: FaultyStore) -> None:
    one = lease(store, "one", seconds=0.5)
    assert one.attempt()
    store.inject(error_before("swap", nth=None))
    with pytest.raises(StorageError):
        one.release()
    assert not one.still_held()
    store.clear()
    wait_until(lease(store, "two").attempt)


def test_what_this_process_left_behind_is_free(store: FaultyStore) -> None:
    left = lease(store, "one")
    assert left.attempt()
    again = lease(store, "one")
    assert again.attempt()
    left.release()
    assert held_by(store) == "one"
    assert again.still_held()
    again.release()


@pytest.mark.parametrize(
    "record",
    [
        LeaseRecord("dead", "dead", 0.2, now_micros() + 10**15).encode(),
        b"not JSON",
        b"[]",
        b'{"owner": "x"}',
        b'{"owner": "x", "process": "x", "lease_seconds": "x", "expires_at": "x"}',
    ],
    ids=["clock ahead", "text", "list", "short", "types"],
)
def test_a_record_that_nobody_renews_is_free_after_a_lease(store: FaultyStore, record: bytes) -> None:
    """The clock of a dead holder, or what it wrote, can not block a branch for ever."""
    store.put(PATH, record)
    mine = lease(store, "one", seconds=0.2)
    assert not mine.attempt()
    wait_until(mine.attempt)
    assert held_by(store) == "one"
    mine.release()


def test_a_record_that_is_renewed_is_not_free(store: FaultyStore) -> None:
    ahead = now_micros() + 10**15
    mine = lease(store, "one", seconds=0.2)
    for turn in range(5):
        store.put(PATH, LeaseRecord("alive", "alive", 0.2, ahead + turn).encode())
        assert not mine.attempt()
        time.sleep(0.1)


def test_a_lock_given_back_is_taken_again_without_reading_it(store: FaultyStore) -> None:
    freed: dict[str, str] = {}
    first = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
    assert first.attempt()
    first.release()
    store.counts.clear()
    again = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
    assert again.attempt()
    assert store.counts == {"swap": 1}
    assert again.still_held()
    again.release()


def test_a_freed_lock_that_someone_else_took_is_theirs(store: FaultyStore) -> None:
    freed: dict[str, str] = {}
    first = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
    assert first.attempt()
    first.release()
    other = lease(store, "two")
    assert other.attempt()
    again = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
    assert not again.attempt()
    assert held_by(store) == "two"
    other.release()
    assert again.attempt()
    again.release()


def test_a_lock_that_nobody_used_since_is_taken_again_without_reading_it(store: FaultyStore) -> None:
    freed: dict[str, str] = {}
    for expected in ({"get": 1, "create": 1, "swap": 1}, {"swap": 2}, {"swap": 2}):
        store.counts.clear()
        mine = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
        assert mine.attempt()
        mine.release()
        assert store.counts == expected


def test_who_takes_a_lock_again_knows_whether_another_had_it(store: FaultyStore) -> None:
    freed: dict[str, str] = {}
    for meanwhile in (False, False, True, False):
        if meanwhile:
            other = lease(store, "two")
            assert other.attempt()
            other.release()
        known = bool(freed) and not meanwhile
        mine = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
        assert mine.attempt()
        assert mine.uninterrupted is known
        mine.release()


def test_a_lock_that_another_holds_is_not_taken_by_what_is_remembered(store: FaultyStore) -> None:
    freed: dict[str, str] = {}
    first = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
    assert first.attempt()
    first.release()
    other = lease(store, "two")
    assert other.attempt()
    again = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
    assert not again.attempt()
    assert held_by(store) == "two"
    other.release()
    assert again.attempt()
    assert held_by(store) == "one"
    again.release()


def test_a_lock_file_that_is_gone_is_made_anew(store: FaultyStore) -> None:
    freed: dict[str, str] = {}
    first = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
    assert first.attempt()
    first.release()
    store.inner.delete(PATH)
    again = Lease(store, PATH, seconds=LONG, process="one", freed=freed)
    assert again.attempt()
    assert held_by(store) == "one"
    again.release()


def test_a_lease_of_another_length_is_not_stolen_early(store: FaultyStore) -> None:
    """How long a record may go without a renewal is said by its holder, not by who waits for it."""
    store.put(PATH, LeaseRecord("slow", "slow", LONG, now_micros() + 10**15).encode())
    hasty = lease(store, "one", seconds=0.01)
    for _ in range(5):
        assert not hasty.attempt()
        time.sleep(0.02)
    assert held_by(store) == "slow"
