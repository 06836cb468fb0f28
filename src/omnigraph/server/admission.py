"""Admission limits: concurrent requests and bytes per actor, and concurrent streams per graph and process."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from omnigraph.errors import ResourceLimit, TooManyRequests
from omnigraph.server.settings import Limits
from omnigraph.server.shares import Shares

#: The Retry-After of a refused request, in seconds.
RETRY_AFTER = 60
#: The seconds for which wrong tokens of an address are counted, and the number of remembered addresses.
_FAILURE_WINDOW = 60.0
_REMEMBERED_ADDRESSES = 10_000
#: Seconds between two attempts at a slot that another worker holds.
_SLOT_POLL_SECONDS = 0.02


@dataclass
class Admission:
    """The admitted writing requests by actor, over all worker processes. Used from the event loop only."""

    limits: Limits
    #: The admitted requests of the other workers; None when there is one process.
    shares: Shares | None = None
    _requests: Counter[str] = field(default_factory=Counter)
    _bytes: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def admit(self, actor: str | None, size: int) -> Iterator[None]:
        """Admit one request of an estimated size in bytes, or raise `TooManyRequests`. Without tokens there is one actor."""
        who = actor or ""
        with nullcontext() if self.shares is None else self.shares.turn():
            # Counted before the check, so that two workers that check at the same time never admit too many.
            self._count(who, 1, size)
            try:
                self._check(who, size)
            except TooManyRequests:
                self._count(who, -1, -size)
                raise
        try:
            yield
        finally:
            self._count(who, -1, -size)

    def _count(self, who: str, requests: int, size: int) -> None:
        self._requests[who] += requests
        self._bytes[who] += size
        if not self._requests[who]:
            del self._requests[who], self._bytes[who]
        if self.shares is not None:
            self.shares.tell({known: (count, self._bytes[known]) for known, count in self._requests.items()})

    def _check(self, who: str, size: int) -> None:
        requests, held = self._requests[who], self._bytes[who]
        if self.shares is not None:
            others, their_bytes = self.shares.of_others(who)
            requests, held = requests + others, held + their_bytes
        if requests > self.limits.actor_requests:
            raise TooManyRequests(
                f"{self.limits.actor_requests} writing requests of this actor are under way; try again later",
                seconds=RETRY_AFTER,
            )
        if requests > 1 and held > self.limits.actor_bytes:
            raise TooManyRequests(
                f"writing requests of this actor may hold {self.limits.actor_bytes} bytes together; try again later",
                seconds=RETRY_AFTER,
            )


class FailedTries:
    """Wrong tokens by address; after many within a minute, answers are delayed."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def delay(self, address: str, now: float) -> float:
        """Count one failure; returns how many seconds its answer should wait."""
        began, count = self._seen.pop(address, (now, 0))
        if now - began > _FAILURE_WINDOW:
            began, count = now, 0
        self._seen[address] = (began, count + 1)
        if len(self._seen) > _REMEMBERED_ADDRESSES:
            self._seen.popitem(last=False)
        return 0.0 if count < self._limits.free_failures else self._limits.failure_seconds


class ExportSlots:
    """Limits concurrent exports per graph (over all workers) and per process; a further export waits briefly."""

    def __init__(self, limits: Limits, shares: Shares | None = None) -> None:
        self._limits = limits
        self._shares = shares
        self._graphs: dict[str, asyncio.Semaphore] = {}
        self._process = asyncio.Semaphore(limits.exports)

    @asynccontextmanager
    async def taken(self, graph_id: str) -> AsyncIterator[None]:
        """Hold a slot, or raise `ResourceLimit` when none is free in time."""
        own = self._graphs.setdefault(graph_id, asyncio.Semaphore(self._limits.graph_exports))
        await self._acquire(own, self._limits.graph_exports, "of this graph")
        try:
            await self._acquire(self._process, self._limits.exports, "of this server")
            try:
                async with self._shared(graph_id):
                    yield
            finally:
                self._process.release()
        finally:
            own.release()

    @asynccontextmanager
    async def _shared(self, graph_id: str) -> AsyncIterator[None]:
        """Hold one of the graph's slots, which all workers share."""
        if self._shares is None:
            yield
            return
        deadline = asyncio.get_running_loop().time() + self._limits.export_wait_seconds
        while True:
            with self._shares.slot(f"export {graph_id}", self._limits.graph_exports) as is_free:
                if is_free:
                    yield
                    return
            if asyncio.get_running_loop().time() >= deadline:
                raise _no_slot(self._limits.graph_exports, "of this graph")
            await asyncio.sleep(_SLOT_POLL_SECONDS)

    async def _acquire(self, slots: asyncio.Semaphore, limit: int, whose: str) -> None:
        try:
            async with asyncio.timeout(self._limits.export_wait_seconds):
                await slots.acquire()
        except TimeoutError:
            raise _no_slot(limit, whose) from None


def _no_slot(limit: int, whose: str) -> ResourceLimit:
    return ResourceLimit(
        f"{limit} export{'s' * (limit > 1)} {whose} may run at a time; try again when it has ended",
        resource="stream_export_slots",
        limit=limit,
        actual=limit + 1,
    )


class FairSlots:
    """Slots that waiting actors get in turn, so that many requests of one actor do not delay other actors."""

    def __init__(self, count: int, changed: Callable[[], None] = lambda: None) -> None:
        """`changed`: called when the number of waiting requests changes."""
        self._free = count
        self._changed = changed
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return sum(map(len, self._waiting.values()))

    async def acquire(self, actor: str, seconds: float) -> bool:
        """Take a slot; returns False when none was free in time."""
        if self._free and not self._waiting:
            self._free -= 1
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(actor, deque()).append(turn)
        self._changed()
        try:
            async with asyncio.timeout(seconds):
                await turn
        except TimeoutError:
            return self._given_up(actor, turn)
        except asyncio.CancelledError:
            if self._given_up(actor, turn):
                self.release()
            raise
        return True

    def release(self) -> None:
        """Give a slot back: to the actor whose turn it is, or make it free when nobody waits."""
        while self._waiting:
            actor, queue = self._waiting.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._waiting[actor] = queue
            self._changed()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _given_up(self, actor: str, turn: asyncio.Future[None]) -> bool:
        """Leave the queue; returns True when the slot was given at the last moment."""
        if turn.done() and not turn.cancelled():
            return True
        with suppress(KeyError, ValueError):
            self._waiting[actor].remove(turn)
            if not self._waiting[actor]:
                del self._waiting[actor]
        self._changed()
        return False
