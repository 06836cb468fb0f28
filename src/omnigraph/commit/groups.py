"""Writers that wait for one branch and are published together: who leads, who waits, and what each of them is told.

The first writer of a branch leads at once. Writers that arrive while it is at work wait in the order they came. When it is
done, the first of them leads: it takes all that wait, carries them out one after the other on one state, and publishes them in
one commit of the manifest. Every leader leads once, so nobody works for others for longer than for itself.

A writer alone never waits. After a group of several, the next leader waits for at most `PATIENCE` of the time which that group
took, until as many writers are there again: clients that write one row after the other come back together.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from omnigraph import failpoints
from omnigraph.errors import OmnigraphError

#: How many writers are published together at most.
MOST_MEMBERS = 64
#: Which part of the time of the last group the next leader waits at most for its members to come back.
PATIENCE = 0.5

failpoints.declare("group.gathered", "group.published")

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Joinable(Protocol[Result_co]):
    """A write that can be published with others."""

    def go_on_alone(self) -> Result_co:
        """Carry it out alone, after a group that it was in has failed, or may have failed: it counts once."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What one writer is told: its result, or its own error."""

    result: Result | None = None
    error: Exception | None = None

    def take(self) -> Result:
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


@dataclass(eq=False, slots=True)
class _Ticket(Generic[Result]):
    """A writer that waits. `role` says what it does when it is woken: lead, take its outcome, or go on alone."""

    writer: Joinable[Result]
    role: Literal["lead", "done", "alone"] | None = None
    outcome: Outcome[Result] | None = None
    woken: threading.Event = field(default_factory=threading.Event)

    def wake(self, role: Literal["lead", "done", "alone"]) -> None:
        self.role = role
        self.woken.set()


class Queue(Generic[Result]):
    """The writers of one branch in one process.

    `lead` carries out the first of the writers that it is given, at least one, and returns an outcome for each of them in
    order; those behind them are given again to the next leader. When it raises, each of them goes on alone.
    """

    def __init__(self, lead: Callable[[Sequence[Joinable[Result]]], Sequence[Outcome[Result]]]) -> None:
        self._lead = lead
        self._lock = threading.Lock()
        self._waiting: deque[_Ticket[Result]] = deque()
        self._led = False
        #: The thread that leads.
        self._leader: int | None = None
        #: The size of the last group, when it ended and how long it took, in seconds.
        self._last_size = 1
        self._last_end = self._last_seconds = 0.0
        #: Raised when as many writers wait as the leader waits for.
        self._wanted = 0
        self._complete = threading.Event()

    def write(self, writer: Joinable[Result]) -> Result:
        """Carry out a write, alone or with others that wait; returns or raises what it would alone."""
        if self._leader == threading.get_ident():
            # Something that the leader calls writes too; it can not wait for itself.
            return writer.go_on_alone()
        ticket = _Ticket(writer)
        try:
            with self._lock:
                self._waiting.append(ticket)
                if not self._led:
                    self._led = True
                    ticket.role = "lead"
                elif self._wanted and len(self._waiting) >= self._wanted:
                    self._complete.set()
            if ticket.role is None:
                ticket.woken.wait()
            if ticket.role == "lead":
                return self._leading(ticket)
        except BaseException:
            self._leave(ticket)
            raise
        if ticket.role == "alone":
            return writer.go_on_alone()
        assert ticket.outcome is not None
        return ticket.outcome.take()

    def _leave(self, ticket: _Ticket[Result]) -> None:
        """A writer that was interrupted while it waited. One that a leader has taken is carried out without it; one that was
        to lead lets the next lead.
        """
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if ticket.role == "lead":
                self._pass_on()

    def _leading(self, ticket: _Ticket[Result]) -> Result:
        taken: list[_Ticket[Result]] = []
        outcomes: Sequence[Outcome[Result]] = ()
        try:
            self._leader = threading.get_ident()
            self._gather()
            with self._lock:
                while self._waiting and len(taken) < MOST_MEMBERS:
                    taken.append(self._waiting.popleft())
            started = time.monotonic()
            if len(taken) > 1:
                failpoints.hit("group.gathered")
            outcomes = self._lead([one.writer for one in taken])
            if len(taken) > 1:
                failpoints.hit("group.published")
            self._last_size, self._last_end = len(taken), time.monotonic()
            self._last_seconds = self._last_end - started
        except OmnigraphError:
            if len(taken) == 1:
                raise
        finally:
            self._hand_out(ticket, taken, outcomes)
        # Others were in the way of what it would have got alone.
        return outcomes[0].take() if outcomes else ticket.writer.go_on_alone()

    def _hand_out(
        self, leader: _Ticket[Result], taken: Sequence[_Ticket[Result]], outcomes: Sequence[Outcome[Result]]
    ) -> None:
        """Wake everybody who was taken, and the next leader. No follower waits for a leader that has failed."""
        with self._lock:
            self._leader, leader.role = None, "done"
            if leader in self._waiting:  # it was interrupted before it took anybody
                self._waiting.remove(leader)
            if outcomes:
                self._waiting.extendleft(reversed(taken[len(outcomes) :]))
            for place, ticket in enumerate(taken):
                if ticket is leader:
                    continue
                if place < len(outcomes):
                    ticket.outcome = outcomes[place]
                    ticket.wake("done")
                elif not outcomes:
                    ticket.wake("alone")
            self._pass_on()

    def _pass_on(self) -> None:
        """Let the first that waits lead; under the lock."""
        if self._waiting:
            self._waiting[0].wake("lead")
        else:
            self._led = False

    def _gather(self) -> None:
        """After a group of several, wait a little for as many writers."""
        if self._last_size < 2:
            return
        patience = PATIENCE * self._last_seconds
        with self._lock:
            late = time.monotonic() - self._last_end > patience
            if late or len(self._waiting) >= self._last_size:
                return
            self._complete.clear()
            self._wanted = self._last_size
        try:
            self._complete.wait(patience)
        finally:
            self._wanted = 0


class Queues(Generic[Result]):
    """The queues of one open graph, by branch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process_id = os.getpid()
        self._queues: dict[str, Queue[Result]] = {}

    def of(self, branch: str, lead: Callable[[Sequence[Joinable[Result]]], Sequence[Outcome[Result]]]) -> Queue[Result]:
        """The queue of a branch. A forked child starts anew: the threads that wait in its parent are not there."""
        if self._process_id != os.getpid():
            self._lock, self._process_id, self._queues = threading.Lock(), os.getpid(), {}
        with self._lock:
            if branch not in self._queues:
                self._queues[branch] = Queue(lead)
            return self._queues[branch]
