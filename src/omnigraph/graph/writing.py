"""The verbs that write by queries: one mutation, a retried mutation, several queries as one commit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from omnigraph.errors import (
    BadRequest,
    ExpectedVersionMismatch,
    ManifestContention,
    PreconditionFailed,
    ReadSetChanged,
    SchemaChanged,
)
from omnigraph.graph.handle import Handle
from omnigraph.graph.sources import require_named
from omnigraph.ids import now_micros
from omnigraph.language.query.params import bind_params
from omnigraph.policy.actions import CHANGE, Need
from omnigraph.query.execute import Request as QueryRequest
from omnigraph.query.execute import answer, read_plan, start
from omnigraph.query.limits import Cancel
from omnigraph.query.result import Result
from omnigraph.query.scan.entities import View

if TYPE_CHECKING:
    from omnigraph.commit.updates import SchemaIs
    from omnigraph.graph.contract import Contract
    from omnigraph.mutation.execute import MutationResult, Request

Source = str | Path
#: One mutation of `mutate_many`: a source, or a source with the name of its query, or also with parameters.
Given = Source | tuple[Source] | tuple[Source, str | None] | tuple[Source, str | None, Mapping[str, object] | None]

_Done = TypeVar("_Done")

#: The most calls of `retrying`, and the bounds of its waits in seconds.
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


class Writing(Handle):
    """Mutations, alone and several as one commit."""

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

    def retrying(self, work: Callable[[Self], _Done], *, attempts: int = RETRIES) -> _Done:
        """Read, decide and write as if nobody else wrote: `work` is called again when another writer was faster.

        `work` is called with a handle on this branch and returns what it likes. A mutation through that handle is refused
        with a conflict when the rows that it writes or that its updates match have changed since `work` was called;
        changes to other rows do not matter. Then, and after any other conflict that repeating can settle, `work` is called
        anew, at most `attempts` times in all; the last conflict is raised. `work` makes one mutation, and should have no other
        effects.
        """
        # The permissions are checked when `work` writes.
        self._allow_write(None)
        if not callable(work):
            raise BadRequest(f"retrying calls a function with a handle, and {work!r} is none")
        if not isinstance(attempts, int) or attempts < 1:
            raise BadRequest(f"attempts is at least 1, not {attempts!r}")
        for number in range(1, attempts + 1):
            handle = self.at(self.branch)
            handle._since = self._context.manifest.load(self.branch)
            try:
                return work(handle)
            except _SETTLED_BY_REPEATING:
                if number == attempts:
                    raise
            # Random, growing waits, so that competing writers spread out.
            time.sleep(random.uniform(0, min(LONGEST_WAIT, SHORTEST_WAIT * 2**number)))
        raise AssertionError("the last attempt has returned or raised")

    def transaction(
        self,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> Transaction:
        """Begin a transaction: queries in order, each sees those before it, all of them are one commit.

        In a `with` statement it is committed at the end of the block, and undone when the block raises. The branch is read as
        it is now; `ReadSetChanged` or another `Conflict` at the end when someone has changed what the transaction has read or
        written. `message`: kept with the commit. `if_commit`, `idempotency_key`: as in `mutate`.
        """
        self._allow_write(actor, Need(CHANGE, self._named(branch)))
        self._refuse_second_write()
        contract, accepted = self._watch.captured(self._named(branch))
        request = self._write_request(
            contract,
            accepted,
            branch,
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
        )
        return Transaction(self, contract, request)

    def mutate_many(
        self,
        mutations: Sequence[Given],
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Run mutations in order as one commit; a failure of one undoes all.

        Each is a source, or a tuple of a source, the name of its query and its parameters. The options are those of
        `transaction`.
        """
        self._allow_write(actor, Need(CHANGE, self._named(branch)))
        self._refuse_second_write()
        asked = given_mutations(mutations)

        def attempt(contract: Contract, accepted: SchemaIs) -> MutationResult:
            request = self._write_request(
                contract,
                accepted,
                branch,
                actor=actor,
                message=message,
                if_commit=if_commit,
                idempotency_key=idempotency_key,
            )
            with Transaction(self, contract, request) as transaction:
                for source, name, params in asked:
                    transaction.mutate(source, name, params)
            assert transaction.result is not None
            return transaction.result

        return self._under_schema(self._named(branch), attempt)

    def _write_request(self, contract: Contract, accepted: SchemaIs, branch: str | None, **options: Any) -> Request:
        """The request of a write without its mutations; `options` are further fields of the request."""
        from omnigraph.mutation.execute import Request

        return Request(
            catalog=contract.catalog,
            branch=self._named(branch),
            embedder=self._embedder,
            requires=accepted,
            external_blobs=self._external_blobs,
            since=self._since if self._named(branch) == self.branch else None,
            **{**options, "actor": options["actor"] or self.actor},
        )

    def _refuse_second_write(self) -> None:
        if self._spent:
            raise BadRequest(
                "a call of `retrying` makes one mutation: calling it again would repeat the first; put all statements into "
                "one query, or all queries into one transaction"
            )


class Transaction:
    """Queries that become one commit; made by `Graph.transaction`, for one thread at a time."""

    def __init__(self, graph: Handle, contract: Contract, request: Request) -> None:
        # The writers are loaded when something is written: a reader starts faster without them.
        from omnigraph.mutation import transaction as mutation

        self._graph = graph
        self._contract = contract
        self._mutation = mutation
        self._work = mutation.Transaction(graph._context, request)
        self._state: Literal["open", "committed", "undone"] = "open"
        self._why = ""
        #: The result; None until the transaction is committed.
        self.result: MutationResult | None = None
        self.branch = request.branch

    def mutate(
        self, source: str | Path, name: str | None = None, params: Mapping[str, object] | None = None
    ) -> MutationResult:
        """Carry out a mutation on what the queries before have left. Its result has no commit yet.

        An error undoes the whole transaction.
        """
        self._require_open()
        try:
            compiled = self._graph._queries.get(source, name, self._contract, params)
            bound = bind_params(compiled.query.params, params, undeclared="refuse")
            return self._work.mutate(compiled, bound)
        except BaseException as error:
            self._undo(f"it was undone by an error: {getattr(error, 'message', error)}")
            raise

    def query(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Result:
        """Ask a read query on what the queries before have left. What it reads must still be so at the commit.

        The options are those of `Graph.query`. An error leaves the transaction as it was.
        """
        self._require_open()
        graph, catalog = self._graph, self._contract.catalog
        compiled = graph._queries.get(source, name, self._contract, params)
        read_plan(compiled.rewritten, compiled)
        bound = bind_params(compiled.query.params, params, undeclared="refuse")
        request = QueryRequest(graph._limits.with_request(memory_limit, timeout), cancel)
        now = now_micros() // 1000

        def ask(view: View) -> Result:
            # `now` stays the same when the transaction starts over and the query runs again.
            run = start(view, catalog, bound, graph._caches, graph._embedder.embed_query, request, now)
            return answer(compiled, run)

        return self._work.query(ask)

    def commit(self) -> MutationResult:
        """Make the commit; also the end of the `with` block does. None is made when nothing has changed."""
        self._require_open()
        try:
            self.result = self._work.commit()
        except BaseException as error:
            self._undo(f"its commit failed: {error}")
            raise
        self._state = "committed"
        self._work.close()
        self._graph._spent = self._graph._since is not None and self.result.commit is not None
        return self.result

    def rollback(self) -> None:
        """Forget all that was asked; nothing of it is in the graph."""
        self._require_open()
        self._undo("it was rolled back")

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            if self._state == "open":
                self._undo(f"it was undone by an error: {getattr(error, 'message', error)}")
        elif self._state == "open":
            self.commit()
        elif self._state == "undone" and not self._rolled_back:
            # The block caught the error that undid the transaction.
            raise BadRequest(f"nothing of this transaction was written: {self._why}")

    @property
    def _rolled_back(self) -> bool:
        return self._why == "it was rolled back"

    def _undo(self, why: str) -> None:
        self._state, self._why = "undone", why
        self._work.close()

    def _require_open(self) -> None:
        if self._state != "open":
            over = self._why or "it is committed"
            raise BadRequest(f"this transaction is over: {over}; begin another one")

    def __repr__(self) -> str:
        return f"Transaction(branch={self.branch!r}, {self._state})"


_ASKED = "a mutation is a source, or a tuple of a source, the name of its query (or None) and its parameters"


def given_mutations(mutations: Sequence[Given]) -> list[tuple[Source, str | None, Mapping[str, object] | None]]:
    """The mutations of `mutate_many` as tuples: source, name of the query, parameters."""
    if isinstance(mutations, str | Path | Mapping) or not isinstance(mutations, Iterable):
        raise BadRequest(f"mutate_many takes a list of mutations, not a {type(mutations).__name__}; {_ASKED}")
    return [_given_mutation(mutation) for mutation in mutations]


def _given_mutation(mutation: Given) -> tuple[Source, str | None, Mapping[str, object] | None]:
    if not isinstance(mutation, tuple):
        if not isinstance(mutation, str | Path):
            raise BadRequest(f"{_ASKED}, not a {type(mutation).__name__}")
        return mutation, None, None
    if not 1 <= len(mutation) <= 3:
        raise BadRequest(f"{_ASKED}, not a tuple of {len(mutation)}")
    source, name, params = (*mutation, None, None)[:3]
    require_named(name, params)
    return source, name, params
