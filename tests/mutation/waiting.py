"""Calls that wait for one branch in a fixed order, so that they are published together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import omnigraph as og
from omnigraph.mutation.together import _write_together

Call = Callable[[], Any]


def publish_together(graph: og.Graph, calls: Sequence[Call], branch: str = "main") -> list[Any]:
    """Let the calls wait in this order until all are there; returns what each of them returned or raised."""
    queue = graph._context.queues.of(branch, _write_together)
    told: list[Any] = [None] * len(calls)

    def make(place: int) -> None:
        try:
            told[place] = calls[place]()
        except BaseException as error:
            told[place] = error

    with queue._lock:
        assert not queue._led
        # As if a writer were at work.
        queue._led = True
    threads = [threading.Thread(target=make, args=(place,)) for place in range(len(calls))]
    for number, thread in enumerate(threads, start=1):
        thread.start()
        # One that can not wait with others is done at once.
        while len(queue._waiting) + sum(not one.is_alive() for one in threads[:number]) < number:
            time.sleep(0.001)
    with queue._lock:
        queue._pass_on()
    for thread in threads:
        thread.join()
    assert not queue._led
    assert not queue._waiting
    return told
