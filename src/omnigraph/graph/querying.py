"""The verbs that read: a query as rows or as a Spark data frame, explain, one entity, one blob, a NetworkX graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.graph.blobs import BlobValue, find_blob, read_entity
from omnigraph.graph.handle import NOW, Handle, SchemaOf
from omnigraph.graph.snapshot import Reference
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.language.query.params import bind_params
from omnigraph.query.execute import Request, answer, explain, refuse_engine, start
from omnigraph.query.limits import Cancel
from omnigraph.query.result import Explanation, Result
from omnigraph.query.run import Run

if TYPE_CHECKING:
    import networkx as nx
    from pyspark.sql import DataFrame


class Querying(Handle):
    """Questions to a graph."""

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
        """The result of Spark if it is requested, or with "auto" if the plan exceeds the memory limit; else of this process."""
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
