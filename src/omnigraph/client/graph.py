"""`omnigraph.connect`: a graph of a server, with the verbs, results and errors of `omnigraph.open`."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from omnigraph.changes.commits import CommitChanges
from omnigraph.changes.model import Change, Changes
from omnigraph.client import exploring, reading, upkeep, writing
from omnigraph.client.handle import Handle, Reference, refuse_actor
from omnigraph.client.requests import Ask, get, post
from omnigraph.client.transport import Blocking
from omnigraph.client.values import BlobPlace, ChangePages, RemoteBlob
from omnigraph.commit.messages import checked_message
from omnigraph.errors import BadRequest, Denied, ManifestContention, PreconditionFailed
from omnigraph.graph.graph import Graph
from omnigraph.graph.handle import NOW, SchemaOf
from omnigraph.graph.writing import LONGEST_WAIT, RETRIES, SHORTEST_WAIT, Transaction
from omnigraph.mutation.execute import MutationResult

Given = ParamSpec("Given")
Found = TypeVar("Found")
Shown = TypeVar("Shown")
_Done = TypeVar("_Done")

#: The errors of `work` after which `retrying` calls it again.
SETTLED_BY_REPEATING = (PreconditionFailed, ManifestContention)


def _blocking(
    verb: Callable[Concatenate[Handle, Given], Ask[Found]],
) -> Callable[Concatenate[RemoteGraph, Given], Found]:
    """A verb as a method that waits for its result."""

    @wraps(verb)
    def method(graph: RemoteGraph, /, *given: Given.args, **named: Given.kwargs) -> Found:
        return graph._server.run(verb(graph, *given, **named))

    return method


def _shown(
    show: Callable[[RemoteGraph, Found], Shown], verb: Callable[Concatenate[Handle, Given], Ask[Found]]
) -> Callable[Concatenate[RemoteGraph, Given], Shown]:
    """A verb as a method that waits for its result and wraps it by `show`, which may send further requests."""

    @wraps(verb)
    def method(graph: RemoteGraph, /, *given: Given.args, **named: Given.kwargs) -> Shown:
        return show(graph, graph._server.run(verb(graph, *given, **named)))

    return method


def _blob(graph: RemoteGraph, place: BlobPlace) -> RemoteBlob:
    return RemoteBlob(**vars(place), _run=graph._server.run)


def _followed(graph: RemoteGraph, pages: ChangePages) -> CommitChanges:
    """One page, or all changes, whose pages are requested while they are read."""
    if not pages.follow:
        return pages.first

    def stream() -> Iterator[Change]:
        shown: CommitChanges | None = pages.first
        while shown is not None:
            yield from shown.changes
            rest = pages.rest(shown)
            shown = None if rest is None else graph._server.run(rest)

    return CommitChanges(Changes(stream), pages.first.commit)


class RemoteGraph(Handle):
    """A graph of a server. Safe to use from threads; bound to a branch, main unless `at` says otherwise."""

    _server: Blocking

    query = _blocking(reading.query)
    explain = _blocking(reading.explain)
    mutate = _blocking(writing.mutate)
    mutate_many = _blocking(writing.mutate_many)
    load = _blocking(writing.load)
    ingest = _blocking(writing.ingest)

    branches = _blocking(reading.branches)
    create_branch = _blocking(writing.create_branch)
    delete_branch = _blocking(writing.delete_branch)
    merge = _blocking(writing.merge)
    rebase = _blocking(writing.rebase)
    revert = _blocking(writing.revert)
    cherry_pick = _blocking(writing.cherry_pick)

    commits = _blocking(reading.commits)
    commit = _blocking(reading.commit)
    head = _blocking(reading.head)
    snapshot = _blocking(reading.snapshot)
    diff = _blocking(reading.diff)
    commit_changes = _shown(_followed, reading.commit_changes)
    changes = _blocking(reading.changes)
    baseline = _blocking(reading.baseline)
    tag = _blocking(writing.tag)
    tags = _blocking(reading.tags)
    delete_tag = _blocking(writing.delete_tag)

    neighbours = _blocking(exploring.neighbours)
    compare = _blocking(exploring.compare)
    branch_states = _blocking(exploring.branch_states)

    entity = _blocking(reading.entity)
    read_blob = _shown(_blob, reading.read_blob)
    schema = _blocking(reading.schema)
    plan_schema = _blocking(reading.plan_schema)
    apply_schema = _blocking(writing.apply_schema)
    export = _blocking(reading.export)
    refresh = _blocking(reading.refresh)

    config = _blocking(upkeep.config)
    set_config = _blocking(upkeep.set_config)
    stats = _blocking(upkeep.stats)
    recoveries = _blocking(upkeep.recoveries)
    ensure_indices = _blocking(upkeep.ensure_indices)
    optimize = _blocking(upkeep.optimize)
    cleanup = _blocking(upkeep.cleanup)

    #: Only served graphs have stored queries.
    stored_queries = _blocking(reading.stored_queries)
    invoke = _blocking(writing.invoke)

    def export_chunks(
        self,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        types: Collection[str] | None = None,
        schema: SchemaOf = NOW,
    ) -> Iterator[bytes]:
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
    ) -> RemoteTransaction:
        """Begin a transaction: mutations in order, all of them are one commit. They are sent together at its end."""
        refuse_actor(actor)
        options = {"message": checked_message(message), "if_commit": if_commit, "idempotency_key": idempotency_key}
        return RemoteTransaction(self, self._named(branch), options)

    def at(self, branch: str) -> RemoteGraph:
        """A handle on the same graph that is bound to another branch."""
        bound = RemoteGraph(self._server, branch)
        bound.head()
        return bound

    def retrying(self, work: Callable[[RemoteGraph], _Done], *, attempts: int = RETRIES) -> _Done:
        """Read, decide and write as if nobody else wrote: `work` is called again when the branch has moved meanwhile."""
        for wait in waits(attempts):
            try:
                return work(RemoteGraph(self._server, self.branch, self.head().id))
            except SETTLED_BY_REPEATING:
                if wait is None:
                    raise
            time.sleep(wait)
        raise AssertionError("the last attempt has returned or raised")

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RemoteTransaction(writing.PendingTransaction):
    """Mutations that become one commit; made by `RemoteGraph.transaction`."""

    _handle: RemoteGraph

    def commit(self) -> MutationResult:
        """Send the mutations and make the commit; also the end of the `with` block does."""
        return self._handle._server.run(self._commit())

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ends_well(error):
            self.commit()


#: A handle of a graph, and a transaction, embedded or served: the type checker holds what is called against both.
AnyGraph = Graph | RemoteGraph
AnyTransaction = Transaction | RemoteTransaction


def waits(attempts: int) -> Iterator[float | None]:
    """The seconds to wait after each attempt, random and growing; None after the last."""
    if attempts < 1:
        raise BadRequest(f"attempts is at least 1, not {attempts}")
    for number in range(1, attempts):
        yield random.uniform(0, min(LONGEST_WAIT, SHORTEST_WAIT * 2**number))
    yield None


def connect(url: str, graph: str | None = None, *, token: str | None = None, verify: bool | str = True) -> RemoteGraph:
    """A handle of a served graph, with the verbs, results and errors of `open`.

    `graph`: its id; the only one of the server unless given. `token`: the bearer token; `OMNIGRAPH_BEARER_TOKEN` unless given.
    `verify`: whether certificates are checked, or the file of the authorities that are trusted.
    Works in a `with` statement, which closes its connections at the end.
    """
    server = Blocking(url, graph or "", token_of(token), verify)
    try:
        if graph is None:
            server.graph = server.run(only_graph(url))
        connected = RemoteGraph(server)
        # Reports a wrong address, token or id at once. A token without read permission may still do other things.
        with suppress(Denied):
            connected.head()
    except BaseException:
        server.close()
        raise
    return connected


def remote_graph(url: str, graph: str, token: str | None) -> RemoteGraph:
    """A handle of a served graph without a first request; errors appear at the first verb."""
    return RemoteGraph(Blocking(url, graph, token))


def served_graphs(url: str, *, token: str | None = None, verify: bool | str = True) -> list[dict[str, str]]:
    """The graphs of a server, by id: `graph_id` and `uri` of each. A server may refuse to list them."""
    server = Blocking(url, "", token_of(token), verify)
    try:
        return server.run(listed_graphs())
    finally:
        server.close()


def ask_cluster(
    url: str, token: str | None, verb: Literal["plan", "apply"], files: Mapping[str, bytes]
) -> dict[str, Any]:
    """The server's answer to a declaration; `files`: contents by the names in cluster.yaml."""
    server = Blocking(url, "", token)
    try:
        return server.run(_asked_cluster(verb, files))
    finally:
        server.close()


def _asked_cluster(verb: str, files: Mapping[str, bytes]) -> Ask[dict[str, Any]]:
    body = {"files": {name: content.decode() for name, content in files.items()}}
    # An apply whose answer was lost may still be running, so it is not repeated.
    answer = yield post(f"/cluster/{verb}", body, flat=True, safe=verb == "plan")
    told: dict[str, Any] = answer.json
    return told


def token_of(given: str | None) -> str | None:
    """The bearer token to send: the given token, else the environment's, else None."""
    return given if given is not None else os.environ.get("OMNIGRAPH_BEARER_TOKEN") or None


def listed_graphs() -> Ask[list[dict[str, str]]]:
    """Ask a server for its graphs."""
    told = yield from get("/graphs", flat=True)
    listed: list[dict[str, str]] = told["graphs"]
    return listed


def only_graph(url: str) -> Ask[str]:
    """The id of the only graph of a server."""
    listed = [entry["graph_id"] for entry in (yield from listed_graphs())]
    if len(listed) != 1:
        raise BadRequest(f"{url} serves {len(listed)} graphs ({', '.join(listed)}); name one with graph=")
    return listed[0]
