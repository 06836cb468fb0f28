"""`omnigraph.connect_async`: a graph of a server, with the verbs, results and errors of `omnigraph.open`, and `await`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from omnigraph.changes.commits import CommitChanges
from omnigraph.client import exploring, reading, upkeep, writing
from omnigraph.client.graph import SETTLED_BY_REPEATING, only_graph, token_of, waits
from omnigraph.client.handle import Handle, Reference, refuse_actor
from omnigraph.client.requests import Ask
from omnigraph.client.transport import Awaited
from omnigraph.client.values import AsyncBlob, BlobPlace, ChangePages
from omnigraph.commit.messages import checked_message
from omnigraph.errors import Denied
from omnigraph.graph.handle import NOW, SchemaOf
from omnigraph.graph.writing import RETRIES
from omnigraph.mutation.execute import MutationResult

Given = ParamSpec("Given")
Found = TypeVar("Found")
Shown = TypeVar("Shown")
_Done = TypeVar("_Done")


def _awaited(
    verb: Callable[Concatenate[Handle, Given], Ask[Found]],
) -> Callable[Concatenate[AsyncGraph, Given], Coroutine[Any, Any, Found]]:
    """A verb as a method whose result is awaited."""

    @wraps(verb)
    async def method(graph: AsyncGraph, /, *given: Given.args, **named: Given.kwargs) -> Found:
        return await graph._server.run(verb(graph, *given, **named))

    return method


def _shown(
    show: Callable[[AsyncGraph, Found], Awaitable[Shown]], verb: Callable[Concatenate[Handle, Given], Ask[Found]]
) -> Callable[Concatenate[AsyncGraph, Given], Coroutine[Any, Any, Shown]]:
    """A verb as a method whose result is awaited, in a form of its own."""

    @wraps(verb)
    async def method(graph: AsyncGraph, /, *given: Given.args, **named: Given.kwargs) -> Shown:
        return await show(graph, await graph._server.run(verb(graph, *given, **named)))

    return method


async def _blob(graph: AsyncGraph, place: BlobPlace) -> AsyncBlob:
    return AsyncBlob(**vars(place), _run=graph._server.run)


async def _followed(graph: AsyncGraph, pages: ChangePages) -> CommitChanges:
    """One page, or the changes of all pages."""
    if not pages.follow:
        return pages.first
    shown = pages.first
    found = list(shown.changes)
    while (rest := pages.rest(shown)) is not None:
        shown = await graph._server.run(rest)
        found += shown.changes
    return CommitChanges(found, pages.first.commit)


class AsyncGraph(Handle):
    """A graph of a server, for one event loop; bound to a branch, main unless `at` says otherwise."""

    _server: Awaited

    query = _awaited(reading.query)
    explain = _awaited(reading.explain)
    mutate = _awaited(writing.mutate)
    mutate_many = _awaited(writing.mutate_many)
    load = _awaited(writing.load)
    ingest = _awaited(writing.ingest)

    branches = _awaited(reading.branches)
    create_branch = _awaited(writing.create_branch)
    delete_branch = _awaited(writing.delete_branch)
    merge = _awaited(writing.merge)
    rebase = _awaited(writing.rebase)
    revert = _awaited(writing.revert)
    cherry_pick = _awaited(writing.cherry_pick)

    commits = _awaited(reading.commits)
    commit = _awaited(reading.commit)
    head = _awaited(reading.head)
    snapshot = _awaited(reading.snapshot)
    diff = _awaited(reading.diff)
    commit_changes = _shown(_followed, reading.commit_changes)
    changes = _awaited(reading.changes)
    baseline = _awaited(reading.baseline)
    tag = _awaited(writing.tag)
    tags = _awaited(reading.tags)
    delete_tag = _awaited(writing.delete_tag)

    neighbours = _awaited(exploring.neighbours)
    compare = _awaited(exploring.compare)
    branch_states = _awaited(exploring.branch_states)

    entity = _awaited(reading.entity)
    read_blob = _shown(_blob, reading.read_blob)
    schema = _awaited(reading.schema)
    plan_schema = _awaited(reading.plan_schema)
    apply_schema = _awaited(writing.apply_schema)
    export = _awaited(reading.export)
    refresh = _awaited(reading.refresh)
    config = _awaited(upkeep.config)
    set_config = _awaited(upkeep.set_config)
    stats = _awaited(upkeep.stats)
    recoveries = _awaited(upkeep.recoveries)
    ensure_indices = _awaited(upkeep.ensure_indices)
    optimize = _awaited(upkeep.optimize)
    cleanup = _awaited(upkeep.cleanup)

    stored_queries = _awaited(reading.stored_queries)
    invoke = _awaited(writing.invoke)

    def export_chunks(
        self,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        types: Collection[str] | None = None,
        schema: SchemaOf = NOW,
    ) -> AsyncIterator[bytes]:
        """The lines of an export, piece by piece."""
        return self._server.pieces(
            reading.exporting(self, branch=branch, snapshot=snapshot, types=types, schema=schema)
        )

    def transaction(
        self,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncTransaction:
        """Begin a transaction: mutations in order, all of them are one commit. They are sent together at its end."""
        refuse_actor(actor)
        options = {"message": checked_message(message), "if_commit": if_commit, "idempotency_key": idempotency_key}
        return AsyncTransaction(self, self._named(branch), options)

    async def at(self, branch: str) -> AsyncGraph:
        """A handle on the same graph that is bound to another branch."""
        bound = AsyncGraph(self._server, branch)
        await bound.head()
        return bound

    async def retrying(self, work: Callable[[AsyncGraph], Awaitable[_Done]], *, attempts: int = RETRIES) -> _Done:
        """Read, decide and write as if nobody else wrote: `work` is called again when the branch has moved meanwhile."""
        for wait in waits(attempts):
            head = await self.head()
            try:
                return await work(AsyncGraph(self._server, self.branch, head.id))
            except SETTLED_BY_REPEATING:
                if wait is None:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt has returned or raised")

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncTransaction(writing.PendingTransaction):
    """Mutations that become one commit; made by `AsyncGraph.transaction`."""

    _handle: AsyncGraph

    async def commit(self) -> MutationResult:
        """Send the mutations and make the commit; also the end of the `async with` block does."""
        return await self._handle._server.run(self._commit())

    async def __aenter__(self) -> Self:
        self._require_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ends_well(error):
            await self.commit()


async def connect_async(
    url: str, graph: str | None = None, *, token: str | None = None, verify: bool | str = True
) -> AsyncGraph:
    """A handle of a served graph whose verbs are awaited: `async with await connect_async(…) as g`.

    The arguments, and the verbs with their results and errors, are those of `connect`.
    """
    server = Awaited(url, graph or "", token_of(token), verify)
    try:
        if graph is None:
            server.graph = await server.run(only_graph(url))
        connected = AsyncGraph(server)
        with suppress(Denied):
            await connected.head()
    except BaseException:
        await server.close()
        raise
    return connected
