"""Groups: writers that wait for one branch and are published together. Who leads, who waits, and what each is told.

The first writer of a branch leads at once. Writers that arrive while it works wait in order of arrival. When it is done, the
first of them leads: it takes all waiting writers, carries them out one after the other on one state, and publishes them with
one commit of the manifest. Every leader leads once, so no writer works for others longer than for itself.

A writer alone never waits. After a group of several, the next leader waits up to `PATIENCE` times the duration of that group
for the same number of writers: clients that write row after row come back together.
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

#: The most writers that are published together.
MOST_MEMBERS = 64
#: How long the next leader waits for members to come back, as a fraction of the duration of the last group.
PATIENCE = 0.5

failpoints.declare("group.gathered", "group.published")

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Joinable(Protocol[Result_co]):
    """A write that can be published in a group."""

    def go_on_alone(self) -> Result_co:
        """Carry the write out alone after its group failed or may have failed; it must take effect at most once."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """The outcome of one writer: its result, or its own error."""

    result: Result | None = None
    error: Exception | None = None

    def take(self) -> Result:
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


@dataclass(eq=False, slots=True)
class _Ticket(Generic[Result]):
    """A waiting writer. `role`: what it does when woken: lead, take its outcome, or go on alone."""

    writer: Joinable[Result]
    role: Literal["lead", "done", "alone"] | None = None
    outcome: Outcome[Result] | None = None
    woken: threading.Event = field(default_factory=threading.Event)

    def wake(self, role: Literal["lead", "done", "alone"]) -> None:
        self.role = role
        self.woken.set()


class Queue(Generic[Result]):
    """The waiting writers of one branch in one process.

    `lead` carries out the first one or more of the writers it is given, and returns their outcomes in order; the rest
    go to the next leader. When it raises, every writer goes on alone.
    """

    def __init__(self, lead: Callable[[Sequence[Joinable[Result]]], Sequence[Outcome[Result]]]) -> None:
        self._lead = lead
        self._lock = threading.Lock()
        self._waiting: deque[_Ticket[Result]] = deque()
        self._led = False
        #: The id of the thread that leads.
        self._leader: int | None = None
        #: The size of the last group, the time of its end, and its duration, both in seconds.
        self._last_size = 1
        self._last_end = self._last_seconds = 0.0
        #: How many waiting writers the leader waits for (0: none), and the event that is set when they are there.
        self._wanted = 0
        self._complete = threading.Event()

    def write(self, writer: Joinable[Result]) -> Result:
        """Carry out a write, alone or in a group; returns or raises the same as if it went alone."""
        if self._leader == threading.get_ident():
            # The leader itself writes from inside its work; it can not wait for itself.
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
        """Remove a writer that was interrupted while it waited. If a leader has taken it, it is still carried out; if it was
        to lead, the next writer leads.
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
        # Another member may have caused the failure, so the leader's own write goes on alone.
        return outcomes[0].take() if outcomes else ticket.writer.go_on_alone()

    def _hand_out(
        self, leader: _Ticket[Result], taken: Sequence[_Ticket[Result]], outcomes: Sequence[Outcome[Result]]
    ) -> None:
        """Wake every member of the group, and the next leader. No member keeps waiting for a leader that has failed."""
        with self._lock:
            self._leader, leader.role = None, "done"
            if leader in self._waiting:  # the leader was interrupted before it took any writer
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
        """Let the first waiting writer lead; called under the lock."""
        if self._waiting:
            self._waiting[0].wake("lead")
        else:
            self._led = False

    def _gather(self) -> None:
        """After a group of several, wait a little until as many writers wait again."""
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
        """The queue of a branch. A forked child process starts new queues: the waiting threads exist only in its parent."""
        if self._process_id != os.getpid():
            self._lock, self._process_id, self._queues = threading.Lock(), os.getpid(), {}
        with self._lock:
            if branch not in self._queues:
                self._queues[branch] = Queue(lead)
            return self._queues[branch]
