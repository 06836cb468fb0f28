"""The base of a graph's handle: the store, the accepted schema, and the branch to which the handle is bound."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, Self, TypeVar

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, ManifestState
from omnigraph.commit.place import settle
from omnigraph.commit.recovery import heal
from omnigraph.commit.updates import SchemaIs
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest, BranchNotFound, LanguageError, SchemaChanged
from omnigraph.graph.contract import Contract
from omnigraph.graph.schema_watch import SchemaWatch
from omnigraph.graph.snapshot import Reference, Snapshot, resolve
from omnigraph.graph.sources import CompiledQueries
from omnigraph.policy.actions import Guard, Need
from omnigraph.query.caches import Caches
from omnigraph.query.limits import Limits, limits_from_environment
from omnigraph.shown import Shown
from omnigraph.spark.options import SparkOptions

SchemaOf = Literal["now", "then"]
NOW: Final = "now"
THEN: Final = "then"

#: How often a write is prepared again after a schema change came first.
SCHEMA_RESTART_BUDGET = 5

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Connection:
    """The data that all handles of one opened graph share."""

    context: CommitContext
    watch: SchemaWatch
    embedder: Embedder
    spark: SparkOptions
    external_blobs: tuple[str, ...] = ()
    #: The policy check of every write; None: everybody with access to the storage may write.
    guard: Guard | None = None
    caches: Caches = field(default_factory=Caches)
    queries: CompiledQueries = field(default_factory=CompiledQueries)


class Door:
    """The way to a connection. It is shared by the handles that `Graph.at` makes: closing one closes all."""

    def __init__(self, connection: Connection) -> None:
        self.uri = connection.context.root.uri
        self._connection: Connection | None = connection
        self._process_id = os.getpid()

    @property
    def is_closed(self) -> bool:
        return self._connection is None

    def connection(self) -> Connection:
        """The connection; BadRequest when it is closed."""
        found = self._connection
        if found is None:
            raise BadRequest(f"this handle of {self.uri} is closed; open the graph again")
        if self._process_id != os.getpid():
            # Lance's threads do not exist in a forked process: whatever waits for them waits for ever.
            raise BadRequest(
                f"this handle of {self.uri} was opened before the process was forked; start processes with spawn or forkserver "
                "and open the graph there"
            )
        return found

    def close(self) -> None:
        """Let go of the connection: caches, table handles and network clients go with it. A second time does nothing."""
        found, self._connection = self._connection, None
        if found is not None:
            found.embedder.close()


class Handle(Shown):
    """An open graph without its verbs; each family of verbs is a class on top of this one, and `Graph` is all of them."""

    #: For a handle made by `retrying`: the state at the call. The rows that it writes must not have changed since.
    _since: ManifestState | None = None
    #: For such a handle: whether it has made its one commit.
    _spent: bool = False

    def __init__(
        self,
        door: Door,
        *,
        mode: Literal["rw", "ro"],
        actor: str | None,
        branch: str = MAIN,
        limits: Limits | None = None,
    ) -> None:
        self._door = door
        self._limits = limits or limits_from_environment()
        self.mode = mode
        self.actor = actor
        self.branch = branch

    # Every verb reaches the graph through one of these properties, so that a closed handle is always refused.

    @property
    def _context(self) -> CommitContext:
        return self._door.connection().context

    @property
    def _watch(self) -> SchemaWatch:
        return self._door.connection().watch

    @property
    def _caches(self) -> Caches:
        return self._door.connection().caches

    @property
    def _queries(self) -> CompiledQueries:
        return self._door.connection().queries

    @property
    def _embedder(self) -> Embedder:
        return self._door.connection().embedder

    @property
    def _spark(self) -> SparkOptions:
        return self._door.connection().spark

    @property
    def _external_blobs(self) -> tuple[str, ...]:
        return self._door.connection().external_blobs

    @property
    def uri(self) -> str:
        """Where the graph lies: an absolute path, or `s3://bucket/prefix`."""
        return self._door.uri

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called on this handle, or on one that shares its connection."""
        return self._door.is_closed

    def close(self) -> None:
        """Let go of everything this handle keeps open or in memory; handles made by `at` are closed with it.

        Afterwards every verb is refused with `BadRequest`. A call that is running ends as if the handle were open.
        Snapshots, results and a Spark session stay usable. A second call does nothing.
        """
        self._door.close()

    def __enter__(self) -> Self:
        self._door.connection()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self.is_closed else ""
        return f"{type(self).__name__}({self.uri!r}, mode={self.mode!r}, branch={self.branch!r}{closed})"

    def at(self, branch: str) -> Self:
        """A handle on the same graph that is bound to another branch."""
        self._context.manifest.load(branch)
        return type(self)(self._door, mode=self.mode, actor=self.actor, branch=branch, limits=self._limits)

    def contract(self, branch: str | None = None, snapshot: Reference = None) -> Contract:
        """The schema of a branch (this handle's unless given) as it is now, or that a snapshot was written under.

        Main's is checked against the files on disk when they changed.
        """
        if snapshot is not None:
            return self._view(branch, snapshot, THEN)[0]
        name = self._named(branch)
        if name == MAIN:
            return self._watch.captured()[0]
        return self._watch.of(self._context.manifest.load(name))

    def schema(self, branch: str | None = None, *, snapshot: Reference = None) -> str:
        """The source of the schema of a branch (this handle's unless given), or of the one that a snapshot was written under."""
        return self.contract(branch, snapshot).source

    def snapshot(self, branch: str | None = None, at: Reference = None, *, schema: SchemaOf = NOW) -> Snapshot:
        """The graph now, or at a commit id, tag, manifest version, snapshot id, time (`"2026-11-16T13:10:00Z"`, a datetime,
        `"main@{2 days ago}"`) or ancestor (`"main~3"`).

        `schema`: what its types are called, today on its branch or `"then"`, when it was written.
        """
        return at if isinstance(at, Snapshot) else self._seen(branch, at, schema)[1]

    def _view(self, branch: str | None, snapshot: Reference, schema: SchemaOf) -> tuple[Contract, Snapshot]:
        """The schema and the snapshot of a read; raises BadRequest when both a branch and a snapshot are given."""
        if branch is not None and snapshot is not None:
            raise BadRequest("branch and snapshot exclude each other: a snapshot says itself what is read; give one")
        return self._seen(branch, snapshot, schema)

    def _seen(self, branch: str | None, at: Reference, schema: SchemaOf) -> tuple[Contract, Snapshot]:
        """The schema and the snapshot of a branch now, or at a reference (`at`)."""
        if schema not in (NOW, THEN):
            raise BadRequest(f"schema is {NOW!r} or {THEN!r}, not {schema!r}")
        connection = self._door.connection()
        context, watch, then = connection.context, connection.watch, schema == THEN
        name = self._named(branch)
        if at is None and name == MAIN:
            # The schema is read first: a schema accepted meanwhile comes with a newer state, which is noticed.
            captured = watch.captured()
            state = context.manifest.load()
            contract = watch.of(state) if then else watch.of_head(state, captured)
        elif at is None:
            state = context.manifest.load(name)
            contract = watch.of(state)
        else:
            state = at.state if isinstance(at, Snapshot) else resolve(context.manifest, name, at)
            then = then or (isinstance(at, Snapshot) and at.then)
            today = watch.of_today(state)
            contract = watch.of(state) if then else today
        return contract, Snapshot(state, context.tables, contract.names(), then)

    def _snapshot(self, state: ManifestState) -> Snapshot:
        return Snapshot(state, self._context.tables, self._watch.of(state).names())

    def _named(self, branch: str | None) -> str:
        """The given branch, or this handle's branch for None. An empty text is not None and names no branch."""
        return self.branch if branch is None else branch

    def _under_schema(
        self, branch: str, write: Callable[[Contract, SchemaIs], _Result], base: str | None = None
    ) -> _Result:
        """Run a write with the schema of its branch; when that changes before the first effect, run it again with the new one.
        `base`: the branch from which the write's branch is created if it does not exist.
        """
        for _ in range(SCHEMA_RESTART_BUDGET):
            name, captured = self._captured(branch, base)
            try:
                return write(*captured)
            except (SchemaChanged, LanguageError) as error:
                # A text that does not fit may fit a newer schema: of a published change whose files are not yet in place, or
                # one
                # that another process has applied to the branch.
                if isinstance(error, LanguageError) and not self._watch.look_again(name):
                    raise
                # A running change holds the lock until its files are in place; an interrupted change is healed.
                with self._context.locks.hold(name):
                    heal(self._context, holding={name})
                self._context.manifest.load(name)
        return write(*self._captured(branch, base)[1])

    def _captured(self, branch: str, base: str | None) -> tuple[str, tuple[Contract, SchemaIs]]:
        """The branch whose schema a write relies on (the written branch, or `base` if it does not exist), and the schema."""
        if base is None or branch == MAIN:
            return branch, self._watch.captured(branch)
        try:
            return branch, self._watch.captured(branch)
        except BranchNotFound:
            return base, self._watch.captured(base)

    @property
    def _is_guarded(self) -> bool:
        """Whether writes are checked against a policy."""
        return self._door.connection().guard is not None

    def _allow_write(self, actor: str | None, *needs: Need) -> None:
        """The check before every write: raises for a read-only handle, and for needs that the graph's policy denies.
        `actor`: who writes; None for the actor of this handle. `needs`: the permissions that the write requires.
        """
        if self.mode != "rw":
            raise BadRequest('this handle is read-only; open the graph with mode="rw" to write')
        self._ask_policy(actor, *needs)
        settle(self._context, self._watch.original_domain)

    def _ask_policy(self, actor: str | None, *needs: Need) -> None:
        """Raise `Denied` for the first need that the policy of the graph denies; without a policy, nothing is denied."""
        guard = self._door.connection().guard
        if guard is not None:
            for need in needs:
                guard.check(actor or self.actor, need)


def cache_sizes(handle: Handle) -> tuple[int, int]:
    """The number of values in the caches of an open graph, and the bytes of the values whose size is known."""
    return handle._caches.sizes()
