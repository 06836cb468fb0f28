"""What every part of a graph's handle stands on: the store, the accepted schema, the branch it is bound to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeVar

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, ManifestState
from omnigraph.commit.recovery import heal
from omnigraph.commit.updates import SchemaIs
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest, LanguageError, SchemaChanged
from omnigraph.graph.contract import Contract
from omnigraph.graph.schema_watch import SchemaWatch
from omnigraph.graph.snapshot import Reference, Snapshot, resolve
from omnigraph.graph.sources import CompiledQueries
from omnigraph.query.caches import Caches
from omnigraph.spark.options import SparkOptions

SchemaOf = Literal["now", "then"]
NOW: Final = "now"
THEN: Final = "then"

#: How often a write that lost to a schema change is prepared again.
SCHEMA_RESTART_BUDGET = 5

_Result = TypeVar("_Result")


class Handle:
    """An open graph without its verbs; each family of verbs is a class on top of this one, and `Graph` is all of them."""

    def __init__(
        self,
        context: CommitContext,
        watch: SchemaWatch,
        *,
        mode: Literal["rw", "ro"],
        actor: str | None = None,
        branch: str = MAIN,
        external_blobs: tuple[str, ...] = (),
        caches: Caches | None = None,
        embedder: Embedder | None = None,
        spark: SparkOptions | None = None,
    ) -> None:
        self._context = context
        self._watch = watch
        self._external_blobs = external_blobs
        self._queries = CompiledQueries()
        self._caches = caches or Caches()
        self._embedder = embedder or Embedder()
        self._spark = spark or SparkOptions()
        self.mode = mode
        self.actor = actor
        self.branch = branch

    @property
    def uri(self) -> str:
        return self._context.root.uri

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r}, mode={self.mode!r}, branch={self.branch!r})"

    def contract(self) -> Contract:
        """The accepted schema, checked against the files on disk when they changed."""
        return self._watch.current()

    def schema(self) -> str:
        """The accepted schema source."""
        return self.contract().source

    def snapshot(self, branch: str | None = None, at: Reference = None, *, schema: SchemaOf = NOW) -> Snapshot:
        """The graph now, or at a commit id, manifest version or snapshot id.

        `schema`: what its types are called, today or `"then"`, when it was written.
        """
        return at if isinstance(at, Snapshot) else self._view(branch, at, schema)[1]

    def _view(self, branch: str | None, at: Reference, schema: SchemaOf) -> tuple[Contract, Snapshot]:
        """What is read, and the schema it is read with: one view for all of a query."""
        if schema not in (NOW, THEN):
            raise BadRequest(f"schema is {NOW!r} or {THEN!r}, not {schema!r}")
        # The schema first: one that is accepted meanwhile comes with a newer state, which is noticed.
        captured = self._watch.captured()
        contract, then = captured[0], schema == THEN
        if isinstance(at, Snapshot):
            state, then = at.state, at.then or then
        else:
            state = resolve(self._context.manifest, self._named(branch), at)
        if then:
            contract = self._watch.of(state, captured)
        elif at is None:
            contract = self._watch.of_head(state, captured)
        return contract, Snapshot(state, self._context.tables, contract.names(), then)

    def _snapshot(self, state: ManifestState) -> Snapshot:
        return Snapshot(state, self._context.tables, self.contract().names())

    def _named(self, branch: str | None) -> str:
        """The branch that is meant: the one that is given, else that of this handle. An empty text names no branch."""
        return self.branch if branch is None else branch

    def _under_schema(self, write: Callable[[Contract, SchemaIs], _Result]) -> _Result:
        """Run a write with the accepted schema; when that changes before its first effect, with the one that is then."""
        for _ in range(SCHEMA_RESTART_BUDGET):
            try:
                return write(*self._watch.captured())
            except (SchemaChanged, LanguageError) as error:
                # What does not fit the files may fit the schema that a published change has not put there yet.
                if isinstance(error, LanguageError) and not self._watch.is_changing():
                    raise
                # The change holds the lock until its files are in place; a dead one is settled.
                with self._context.locks.hold(MAIN):
                    heal(self._context, holding={MAIN})
        return write(*self._watch.captured())

    def _refuse_read_only(self) -> None:
        if self.mode != "rw":
            raise BadRequest('this handle is read-only; open the graph with mode="rw" to write')
