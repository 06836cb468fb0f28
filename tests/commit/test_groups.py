"""The queue of writers that wait for a branch: who leads, in which order, and that nobody waits for somebody who is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from omnigraph.commit.groups import MOST_MEMBERS, Joinable, Outcome, Queue, Queues
from omnigraph.errors import Conflict, OmnigraphError


class Named:
    """A write that says how it was carried out."""

    def __init__(self, name: str) -> None:
        self.name = name

    def go_on_alone(self) -> str:
        return f"{self.name} alone"


Lead = Callable[[Sequence[Joinable[str]]], Sequence[Outcome[str]]]


def together(queue: Queue[str], names: Sequence[str]) -> dict[str, Any]:
    """Let writers wait in this order until all are there; what each returned or raised."""
    told: dict[str, Any] = {}

    def write(name: str) -> None:
        try:
            told[name] = queue.write(Named(name))
        except BaseException as error:
            told[name] = error

    queue._led = True
    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for number, thread in enumerate(threads, start=1):
        thread.start()
        while len(queue._waiting) < number:
            time.sleep(0.001)
    with queue._lock:
        queue._pass_on()
    for thread in threads:
        thread.join()
    assert not queue._led
    assert not queue._waiting
    return told


def names_of(writers: Sequence[Joinable[str]]) -> list[str]:
    return [writer.name for writer in writers if isinstance(writer, Named)]


class Leader:
    """Carries out at most so many writers at once, and remembers which."""

    def __init__(self, most: int = MOST_MEMBERS) -> None:
        self.groups: list[list[str]] = []
        self._most = most

    def __call__(self, writers: Sequence[Joinable[str]]) -> list[Outcome[str]]:
        names = names_of(writers)[: self._most]
        self.groups.append(names)
        return [Outcome(f"{name} of {len(names)}") for name in names]


def test_all_that_wait_are_taken_in_the_order_they_came() -> None:
    leader = Leader()
    assert together(Queue(leader), "abc") == {"a": "a of 3", "b": "b of 3", "c": "c of 3"}
    assert leader.groups == [["a", "b", "c"]]


def test_those_that_were_left_come_first_in_the_next_group() -> None:
    leader = Leader(most=2)
    together(Queue(leader), "abcde")
    assert leader.groups == [["a", "b"], ["c", "d"], ["e"]]


def test_a_group_has_a_largest_size() -> None:
    leader = Leader()
    together(Queue(leader), [f"{number:03}" for number in range(MOST_MEMBERS + 3)])
    assert [len(group) for group in leader.groups] == [MOST_MEMBERS, 3]


def test_an_error_of_one_is_told_to_it_alone() -> None:
    def lead(writers: Sequence[Joinable[str]]) -> list[Outcome[str]]:
        return [Outcome(error=Conflict("no")) if name == "b" else Outcome(name) for name in names_of(writers)]

    told = together(Queue(lead), "abc")
    assert (told["a"], told["c"]) == ("a", "c")
    assert isinstance(told["b"], Conflict)


def test_after_an_error_of_the_group_everybody_goes_on_alone() -> None:
    def lead(writers: Sequence[Joinable[str]]) -> list[Outcome[str]]:
        raise Conflict("nobody")

    assert together(Queue(lead), "abc") == {"a": "a alone", "b": "b alone", "c": "c alone"}


def test_an_error_of_one_that_leads_nobody_is_its_own() -> None:
    def lead(writers: Sequence[Joinable[str]]) -> list[Outcome[str]]:
        raise Conflict("mine")

    with pytest.raises(Conflict, match="mine"):
        Queue(lead).write(Named("a"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_a_leader_that_is_gone_leaves_nobody_waiting(error: type[BaseException]) -> None:
    def lead(writers: Sequence[Joinable[str]]) -> list[Outcome[str]]:
        raise error

    told = together(Queue(lead), "abc")
    assert isinstance(told["a"], error)
    assert (told["b"], told["c"]) == ("b alone", "c alone")


def test_one_that_is_interrupted_while_it_waits_is_not_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = Leader()
    queue: Queue[str] = Queue(leader)
    queue._led = True

    def interrupt(self: threading.Event, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(threading.Event, "wait", interrupt)
        queue.write(Named("a"))
    with queue._lock:
        queue._pass_on()
    assert queue.write(Named("b")) == "b of 1"
    assert leader.groups == [["b"]]


def test_one_that_was_to_lead_when_it_was_interrupted_lets_the_next_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = Leader()
    queue: Queue[str] = Queue(leader)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(queue, "_gather", interrupt)
        queue.write(Named("a"))
    assert queue.write(Named("b")) == "b of 1"
    assert leader.groups == [["b"]]


def test_what_a_leader_calls_does_not_wait_for_it() -> None:
    inner: list[str] = []

    def lead(writers: Sequence[Joinable[str]]) -> list[Outcome[str]]:
        inner.append(queue.write(Named("inner")))
        return [Outcome(name) for name in names_of(writers)]

    queue: Queue[str] = Queue(lead)
    assert queue.write(Named("a")) == "a"
    assert inner == ["inner alone"]


def test_a_writer_alone_never_waits_and_one_after_a_group_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    queue: Queue[str] = Queue(Leader())
    monkeypatch.setattr(queue._complete, "wait", waits.append)
    for name in "abc":
        queue.write(Named(name))
    assert waits == []
    together(queue, "abc")
    # As if the group had taken long, so that the next writer comes soon after it.
    queue._last_seconds = 1000.0
    queue.write(Named("d"))
    assert waits == [500.0]
    queue._last_seconds = 1000.0
    queue.write(Named("e"))
    assert waits == [500.0], "the last group was of one"


def test_as_many_as_before_are_waited_for() -> None:
    leader = Leader()
    queue: Queue[str] = Queue(leader)
    together(queue, "abc")
    queue._last_seconds = 1000.0
    threads = [threading.Thread(target=queue.write, args=(Named(name),)) for name in "def"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(group) for group in leader.groups] == [3, 3]


def test_each_branch_has_its_queue() -> None:
    queues: Queues[str] = Queues()
    leader = Leader()
    assert queues.of("main", leader) is queues.of("main", leader)
    assert queues.of("main", leader) is not queues.of("feature", leader)
    queues._process_id = -1
    fresh = queues.of("main", leader)
    assert fresh is queues.of("main", leader), "a forked child has its own"


def test_an_outcome_is_a_result_or_an_error() -> None:
    assert Outcome("done").take() == "done"
    with pytest.raises(OmnigraphError):
        Outcome(error=OmnigraphError("no")).take()
