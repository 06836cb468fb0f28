"""Requests that do not wait for each other: they overlap on an object store and run in order on local disk."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from omnigraph.storage.objects import at_once
from omnigraph.storage.root import Root

LOCAL = Root.parse(Path.cwd())
REMOTE = Root.parse("s3://bucket/graph", {})


def test_requests_to_an_object_store_overlap() -> None:
    met = threading.Barrier(3)  # nobody passes before all three are there

    def ask(number: int) -> int:
        met.wait()
        return number

    with at_once(REMOTE) as requests:
        answers = [requests.submit(partial(ask, number)) for number in range(3)]
        assert [answer.result() for answer in answers] == [0, 1, 2]


def test_requests_to_local_disk_are_made_in_order_by_the_caller() -> None:
    seen: list[tuple[int, int]] = []

    def ask(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    with at_once(LOCAL) as requests:
        answers = [requests.submit(partial(ask, number)) for number in range(3)]
    assert seen == [(number, threading.get_ident()) for number in range(3)]
    assert [answer.result() for answer in answers] == [0, 1, 2]


@pytest.mark.parametrize("root", [LOCAL, REMOTE], ids=["local", "s3"])
def test_an_error_comes_out_where_its_answer_is_asked_for(root: Root) -> None:
    def fail() -> None:
        raise ValueError("no")

    with at_once(root) as requests:
        failing, fine = requests.submit(fail), requests.submit(len, "abc")
    assert fine.result() == 3
    with pytest.raises(ValueError, match="no"):
        failing.result()


@pytest.mark.parametrize("root", [LOCAL, REMOTE], ids=["local", "s3"])
def test_what_was_submitted_is_done_although_nobody_waits(root: Root) -> None:
    requests = at_once(root)
    answer = requests.submit(len, "abc")
    requests.shutdown(wait=False)
    assert answer.result() == 3
