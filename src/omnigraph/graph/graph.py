"""`Graph`: the handle people hold. Safe to use from threads; bound to a branch, main unless `at` says otherwise."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from omnigraph.commit import audit
from omnigraph.commit.audit import Recovery
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.exactly_once import once
from omnigraph.commit.history import history
from omnigraph.commit.model import COMMIT_KINDS, MAIN, Commit
from omnigraph.commit.recovery import heal, pending
from omnigraph.commit.sidecar import Sidecar, discard_sidecar
from omnigraph.errors import (
    BadRequest,
    CommitNotFound,
    Conflict,
    ExpectedVersionMismatch,
    ManifestContention,
    PreconditionFailed,
    ReadSetChanged,
    SchemaChanged,
)
from omnigraph.graph.algorithms import WithAlgorithms
from omnigraph.graph.backups import Backups
from omnigraph.graph.blobs import BlobValue, find_blob, read_entity
from omnigraph.graph.evolution import Evolution
from omnigraph.graph.exploring import Exploring
from omnigraph.graph.exporting import Exporting
from omnigraph.graph.handle import NOW, Handle, SchemaOf
from omnigraph.graph.history import History
from omnigraph.graph.merging import Merging
from omnigraph.graph.pictures import Pictures
from omnigraph.graph.snapshot import Reference, Snapshot
from omnigraph.graph.spark_tables import SparkTables
from omnigraph.graph.transactions import Transactions
from omnigraph.graph.upkeep import Upkeep
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.language.query.params import bind_params
from omnigraph.policy.actions import ADMIN, BRANCH_CREATE, BRANCH_DELETE, CHANGE, Need
from omnigraph.query.execute import Request, answer, explain, refuse_engine, start
from omnigraph.query.limits import Cancel
from omnigraph.query.result import Explanation, Result
from omnigraph.query.run import Run
from omnigraph.shown import Listing

if TYPE_CHECKING:
    import networkx as nx
    from pyspark.sql import DataFrame

    from omnigraph.commit.updates import SchemaIs
    from omnigraph.graph.contract import Contract
    from omnigraph.mutation.execute import MutationResult

Moment = datetime | int
_Done = TypeVar("_Done")

#: How often `retrying` calls its function at most, and the bounds of its waits in seconds.
RETRIES = 20
SHORTEST_WAIT = 0.005
LONGEST_WAIT = 0.5
_SETTLED_BY_REPEATING = (
    ExpectedVersionMismatch,
    ManifestContention,
    PreconditionFailed,
    ReadSetChanged,
    SchemaChanged,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Graph(
    Transactions,
    WithAlgorithms,
    Merging,
    History,
    Upkeep,
    Backups,
    Evolution,
    Exporting,
    SparkTables,
    Pictures,
    Exploring,
    Handle,
):
    """An open graph. `mode` "ro" writes nothing at all; "rw" heals what a dead writer left before it writes."""

    def at(self, branch: str) -> Graph:
        """A handle on the same graph that is bound to another branch."""
        self._context.manifest.load(branch)
        return Graph(self._door, mode=self.mode, actor=self.actor, branch=branch, limits=self._limits)

    # --- branches ---------------------------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """The names of all branches: main first, then by name."""
        return branch_names(self._context)

    def create_branch(
        self,
        name: str,
        base: str | None = None,
        *,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Snapshot:
        """Make a branch at the current head of `base` (this handle's branch unless given).

        `actor` is taken as by every call that writes; a branch is no commit, so nothing keeps it. `idempotency_key`: a repeat of
        the call makes nothing and returns the state that the branch began with.
        """
        self._allow_write(actor, Need(BRANCH_CREATE, self._named(base), name))
        asked = once(idempotency_key, "create_branch", name=name, base=self._named(base))
        return self._snapshot(create_branch(self._context, name, self._named(base), asked))

    def delete_branch(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> None:
        """Remove a branch that no other branch depends on; `actor` as in `create_branch`.

        `idempotency_key`: a repeat of the call deletes nothing, also when there is another branch of this name by then.
        """
        self._allow_write(actor, Need(BRANCH_DELETE, None, name))
        if name == self.branch and name != MAIN:
            raise Conflict(f"cannot delete branch '{name}': it is the currently active branch of this handle")
        delete_branch(self._context, name, asked=once(idempotency_key, "delete_branch", name=name))

    # --- history ----------------------------------------------------------------------------------------------------

    def head(self, branch: str | None = None) -> Commit:
        """The newest commit of a branch; a fresh branch has its fork point."""
        name = self._named(branch)
        state = self._context.manifest.load(name)
        commit = state.newest or self._context.manifest.find_commit(name, state.head)
        if commit is None:
            raise CommitNotFound(f"commit '{state.head}' not found", commit=state.head)
        return commit

    def commit(self, commit_id: str) -> Commit:
        """A commit by its id, wherever it was made."""
        return self._context.manifest.commit_near(commit_id, self.branch)

    def commits(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        kind: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> list[Commit]:
        """The history reachable from a branch's head, newest first, filtered by actor, kind and time."""
        if kind is not None and kind not in COMMIT_KINDS:
            raise BadRequest(f"'{kind}' is no kind of commit; the kinds are {', '.join(sorted(COMMIT_KINDS))}")
        earliest, latest = micros(since), micros(until)
        return Listing(
            commit
            for commit in history(self._context.manifest, self._named(branch))
            if (actor is None or commit.actor == actor)
            and (kind is None or commit.kind == kind)
            and (earliest is None or commit.created_at >= earliest)
            and (latest is None or commit.created_at <= latest)
        )

    # --- entities ---------------------------------------------------------------------------------------------------

    def entity(
        self,
        kind: Literal["node", "edge"],
        type_name: str,
        entity_id: str,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        schema: SchemaOf = NOW,
    ) -> dict[str, Any] | None:
        """One entity as a dict, or None when there is none with this id."""
        contract, view = self._view(branch, snapshot, schema)
        return read_entity(contract.catalog, view, kind, type_name, entity_id)

    def read_blob(
        self,
        kind: Literal["node", "edge"],
        type_name: str,
        entity_id: str,
        property: str,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        schema: SchemaOf = NOW,
    ) -> BlobValue:
        """One blob value: its size and ETag at once, its bytes by `read(start, end)`."""
        contract, shown = self._view(branch, snapshot, schema)
        return find_blob(self._context.store, contract.catalog, shown, kind, type_name, entity_id, property)

    # --- writing ----------------------------------------------------------------------------------------------------

    def mutate(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Run a mutation: one commit for all of its statements, or none when nothing changed.

        `message`: kept with the commit. Several mutations as one commit: `transaction`, `mutate_many`.
        `if_commit`: only while this is the head of the branch; never repeated by itself, see `retrying`.
        `idempotency_key`: a repeat of the call returns the first answer and writes nothing.
        """
        # The writers are loaded when something is written: a reader starts faster without them.
        from omnigraph.mutation.execute import Mutation
        from omnigraph.mutation.together import mutate

        self._allow_write(actor, Need(CHANGE, self._named(branch)))

        def attempt(contract: Contract, accepted: SchemaIs) -> MutationResult:
            compiled = self._queries.get(source, name, contract, params)
            bound = bind_params(compiled.query.params, params, undeclared="refuse")
            request = self._write_request(
                contract,
                accepted,
                branch,
                actor=actor,
                message=message,
                if_commit=if_commit,
                idempotency_key=idempotency_key,
            )
            return mutate(self._context, request, Mutation(compiled, bound))

        self._refuse_second_write()
        result = self._under_schema(self._named(branch), attempt)
        self._spent = self._since is not None and result.commit is not None
        return result

    def retrying(self, work: Callable[[Graph], _Done], *, attempts: int = RETRIES) -> _Done:
        """Read, decide and write as if nobody else wrote: `work` is called again when another writer was faster.

        `work` is called with a handle on this branch and returns what it likes. A mutation through that handle is refused
        with a conflict when the rows that it writes or that its updates match have changed since `work` was called;
        changes to other rows do not matter. Then, and after any other conflict that repeating can settle, `work` is called
        anew, at most `attempts` times in all; the last conflict is raised. `work` makes one mutation, and should have no other
        effects.
        """
        # What `work` writes is checked when it does.
        self._allow_write(None)
        if attempts < 1:
            raise BadRequest(f"attempts is at least 1, not {attempts}")
        for number in range(1, attempts + 1):
            handle = self.at(self.branch)
            handle._since = self._context.manifest.load(self.branch)
            try:
                return work(handle)
            except _SETTLED_BY_REPEATING:
                if number == attempts:
                    raise
            # Random and growing, so that writers who met once do not meet again.
            time.sleep(random.uniform(0, min(LONGEST_WAIT, SHORTEST_WAIT * 2**number)))
        raise AssertionError("the last attempt has returned or raised")

    # --- queries ----------------------------------------------------------------------------------------------------

    def query(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        engine: str = "local",
        schema: SchemaOf = NOW,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Result:
        """Run a read query on a branch as it is now, or on a snapshot.

        `schema`: a snapshot is read with the schema of today, or with that of `"then"`, which has what was dropped since.
        `memory_limit`: bytes its rows may take at a time, as a number or as in `"512MiB"`; `OMNIGRAPH_QUERY_MEMORY` or
        1 GiB unless given. A query that needs more raises `ResourceLimit`. `timeout`: seconds after which it raises
        `DeadlineExceeded`. `cancel`: its `cancel()`, called from another thread, makes this call raise `Cancelled`.
        `engine`: "local" is this process; "spark" computes the same rows on Spark, for scans and joins that do not fit into the
        memory here; "auto" takes Spark only when the plan would hold more than the memory limit.
        """
        refuse_engine(engine)
        request = Request(self._limits.with_request(memory_limit, timeout), cancel)
        compiled, run = self._prepared(source, name, params, branch, snapshot, schema, request)
        if engine == "local":
            return answer(compiled, run)
        return self._on_spark_or_here(compiled, run, engine)

    def query_frame(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        schema: SchemaOf = NOW,
        memory_limit: int | str | None = None,
    ) -> DataFrame:
        """The answer of a read query as a Spark data frame of one snapshot, which is not computed yet.

        Vectors are arrays in it, U64 is a decimal. A traversal of several hops runs its rounds before this returns.
        `memory_limit`: bytes the rows of one task may take at a time.
        """
        from omnigraph.query_spark.execute import Place, frame_on_spark

        request = Request(self._limits.with_request(memory_limit, None))
        compiled, run = self._prepared(source, name, params, branch, snapshot, schema, request)
        return frame_on_spark(compiled, run, Place(self._context.root, self._spark))

    def _on_spark_or_here(self, compiled: CompiledQuery, run: Run, engine: str) -> Result:
        """The answer of Spark, when it is asked for or the local engine could not hold the rows."""
        from omnigraph.query_spark.estimate import exceeds_memory
        from omnigraph.query_spark.execute import Place, answer_on_spark

        if engine == "auto" and not exceeds_memory(compiled, run):
            return answer(compiled, run)
        return answer_on_spark(compiled, run, Place(self._context.root, self._spark))

    def explain(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: Reference = None,
        analyze: bool = False,
        engine: str = "local",
        schema: SchemaOf = NOW,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Explanation:
        """How a read query is answered: its plan, what is pushed down, indexes and traversals; times with `analyze`.

        The query runs, within the same limits as in `query`. With `engine="spark"` the steps are its scans, what is pushed into
        them, and Spark's own plan; it runs only with `analyze`.
        """
        refuse_engine(engine)
        request = Request(self._limits.with_request(memory_limit, timeout), cancel, explaining=True)
        compiled, run = self._prepared(source, name, params, branch, snapshot, schema, request)
        if engine == "spark":
            from omnigraph.query_spark.execute import Place, explain_on_spark

            return explain_on_spark(compiled, run, Place(self._context.root, self._spark), analyze=analyze)
        return explain(compiled, run, analyze=analyze)

    def _prepared(
        self,
        source: str | Path,
        name: str | None,
        params: Mapping[str, object] | None,
        branch: str | None,
        snapshot: Reference,
        schema: SchemaOf,
        request: Request,
    ) -> tuple[CompiledQuery, Run]:
        contract, view = self._view(branch, snapshot, schema)
        connection = self._door.connection()
        compiled = connection.queries.get(source, name, contract, params)
        bound = bind_params(compiled.query.params, params, undeclared="refuse")
        embed = connection.embedder.embed_query
        return compiled, start(view, contract.catalog, bound, connection.caches, embed, request)

    def to_networkx(
        self,
        *,
        types: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        query: str | None = None,
        params: Mapping[str, object] | None = None,
        branch: str | None = None,
        snapshot: Reference = None,
        limit: int = 5_000_000,
    ) -> nx.MultiDiGraph[Any]:
        """A `MultiDiGraph` of one snapshot: nodes are `(type, id)`, edges have the key `(type, id)`, attributes Python values.

        `types`: only these node types, and edges between them; `edges`: only these edge types. `query`: instead, what a query
        returns as `object($x)` of nodes and edges. A property without a value is no attribute; blobs are left out. `limit`: more
        nodes and edges than this are refused with ResourceLimit before they are read.
        """
        from omnigraph.graph.networks import Wanted, to_networkx

        return to_networkx(self, Wanted(types, edges, query, params, limit), branch, snapshot)

    # --- recovery ---------------------------------------------------------------------------------------------------

    def refresh(self) -> list[Recovery]:
        """Look at the store afresh: heal what can be healed (read-write handles) and adopt a new schema."""
        healed = heal(self._context) if self.mode == "rw" else []
        for branch in self.branches():
            self._context.manifest.forget(branch)
        self.contract()
        return healed

    def recoveries(self) -> list[Recovery]:
        """Every completed recovery of this graph."""
        return Listing(audit.recoveries(self._context))

    def pending_operations(self) -> list[Sidecar]:
        """The recovery records that are waiting."""
        return pending(self._context)

    def discard_operation(self, operation_id: str) -> str:
        """Set a recovery record aside that can not be settled; returns where it went. Nothing is destroyed."""
        self._allow_write(None, Need(ADMIN))
        return discard_sidecar(self._context.store, operation_id)


def micros(moment: Moment | None) -> int | None:
    """A point in time as microseconds since the epoch; a datetime without a zone means UTC."""
    if moment is None or (isinstance(moment, int) and not isinstance(moment, bool)):
        return moment
    if not isinstance(moment, datetime):
        raise BadRequest(f"a point in time is a datetime, or microseconds since the epoch, not {moment!r}")
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
