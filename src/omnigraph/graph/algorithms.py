"""`g.algorithms`: PageRank, components, communities, paths and alike over chosen types of a branch or snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.algorithms import local, on_spark
from omnigraph.algorithms.compact import CompactGraph, compact_graph, needed_bytes
from omnigraph.algorithms.selection import Direction, Selection, select
from omnigraph.errors import BadRequest, EntityNotFound, NotFound, ResourceLimit
from omnigraph.graph.handle import NOW
from omnigraph.graph.loading import Loading
from omnigraph.graph.snapshot import Reference
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.language.types import PropType, Scalar
from omnigraph.query.limits import Budget, Cancel
from omnigraph.query.result import Result
from omnigraph.query.rows import Integers
from omnigraph.query.scan.entities import open_nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph.load.model import LoadResult

Engine = Literal["auto", "local", "spark"]
#: A node: its id where all nodes are of one type, else its type and its id.
Node = str | tuple[str, str]
Measure = Literal["jaccard", "overlap", "cosine"]

_REAL = PropType(Scalar.F64)
_WHOLE = PropType(Scalar.I64)
_TEXT = PropType(Scalar.STRING)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments that all algorithms share."""

    nodes: Sequence[str] | None
    edges: Sequence[str] | None
    direction: str
    weight: str | None
    branch: str | None
    snapshot: Reference
    engine: str
    frame: bool
    write_to: str | None
    memory_limit: int | str | None
    timeout: float | None
    cancel: Cancel | None


@dataclass(frozen=True, slots=True)
class _Values:
    """One value for each node, or for the nodes at some positions."""

    values: np.ndarray[Any, Any]
    positions: Integers | None = None


@dataclass(frozen=True, slots=True)
class _Algorithm:
    """An algorithm with its arguments bound: the functions that compute it in this process and on Spark."""

    name: str
    column: str
    kind: PropType
    local: Callable[[CompactGraph, Selection, Budget], _Values]
    spark: Callable[[on_spark.SparkGraph, Selection], DataFrame]


class Algorithms:
    """The algorithms of a graph. Each returns a `Result` with the columns `type`, `id` and its value, ordered by type and id.

    Arguments that all of them have:
    `nodes`, `edges`: names of the types it runs over; all unless given. Edges whose ends are not among `nodes` are left out.
    `direction`: "out" follows edges as they point, "in" against it, "both" either way. `weight`: a number of the edges.
    `branch` or `snapshot`: what is read. `engine`: "local", "spark", or "auto": Spark when the graph does not fit into
    `memory_limit` bytes. `frame`: return a Spark data frame, not collected. `write_to`: such as `"Person.rank"`: put the
    values into that property, as one commit on the branch, and return its report. `timeout`: seconds. `cancel`: stops it.
    """

    def __init__(self, graph: Loading) -> None:
        self._graph = graph

    def pagerank(
        self,
        *,
        damping: float = 0.85,
        iterations: int = 100,
        tolerance: float = 1e-6,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Direction = "out",
        weight: str | None = None,
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The `rank` of each node: the chance to be there after following edges at random; all ranks together are 1.

        At each step the walk starts anew with the chance 1 - `damping`. It ends after `iterations` rounds, or when a round
        moves all ranks together by less than `tolerance` times the number of nodes.
        """
        if not 0 <= damping <= 1:
            raise BadRequest(f"damping is a number from 0 to 1, not {damping!r}")
        _positive("iterations", iterations)
        if not tolerance >= 0:
            raise BadRequest(f"tolerance is a number of 0 or more, not {tolerance!r}")

        asked = _Asked(
            nodes, edges, direction, weight, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        return self._run(
            _Algorithm(
                "pagerank",
                "rank",
                _REAL,
                lambda graph, chosen, budget: _Values(
                    local.pagerank(graph, chosen.direction, damping, iterations, tolerance, budget)
                ),
                lambda graph, chosen: on_spark.pagerank(graph, chosen.direction, damping, iterations, tolerance),
            ),
            asked,
        )

    def connected_components(
        self,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Literal["both"] = "both",
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The number of each node's `component`: nodes that edges connect, whatever their direction.

        Components are numbered from 0 in the order of their first node.
        """

        _only("connected_components", direction, "both")
        asked = _Asked(
            nodes, edges, "both", None, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        return self._run(
            _Algorithm(
                "connected_components",
                "component",
                _WHOLE,
                lambda graph, chosen, budget: _Values(local.connected_components(graph, budget)),
                lambda graph, chosen: on_spark.connected_components(graph),
            ),
            asked,
        )

    def strongly_connected(
        self,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Direction = "out",
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The number of each node's strong `component`: inside it every node is reached from every other along edges.

        Components are numbered from 0 in the order of their first node. With direction "both" they are the connected ones.
        """
        if direction == "both":
            return self.connected_components(
                nodes=nodes,
                edges=edges,
                branch=branch,
                snapshot=snapshot,
                engine=engine,
                frame=frame,
                write_to=write_to,
                memory_limit=memory_limit,
                timeout=timeout,
                cancel=cancel,
            )

        asked = _Asked(
            nodes, edges, direction, None, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        return self._run(
            _Algorithm(
                "strongly_connected",
                "component",
                _WHOLE,
                lambda graph, chosen, budget: _Values(local.strongly_connected(graph, budget)),
                lambda graph, chosen: on_spark.strongly_connected(graph),
            ),
            asked,
        )

    def label_propagation(
        self,
        *,
        iterations: int = 100,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Literal["both"] = "both",
        weight: str | None = None,
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The number of each node's `community`: each node takes the label that most of its neighbours have, until all do.

        Semi-synchronous and without chance: nodes are coloured by degree, colours take turns, ties are settled by position.
        """
        _positive("iterations", iterations)

        _only("label_propagation", direction, "both")
        asked = _Asked(
            nodes, edges, "both", weight, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        return self._run(
            _Algorithm(
                "label_propagation",
                "community",
                _WHOLE,
                lambda graph, chosen, budget: _Values(local.label_propagation(graph, iterations, budget)),
                lambda graph, chosen: on_spark.label_propagation(graph, iterations),
            ),
            asked,
        )

    def louvain(
        self,
        *,
        resolution: float = 1.0,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Literal["both"] = "both",
        weight: str | None = None,
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The number of each node's `community`: groups with more edges inside than by chance (modularity), by Louvain's method.

        A higher `resolution` gives smaller communities. Without chance: the same graph has the same communities.
        """
        if not resolution > 0:
            raise BadRequest(f"resolution is a number above 0, not {resolution!r}")

        _only("louvain", direction, "both")
        asked = _Asked(
            nodes, edges, "both", weight, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        return self._run(
            _Algorithm(
                "louvain",
                "community",
                _WHOLE,
                lambda graph, chosen, budget: _Values(local.louvain(graph, resolution, budget)),
                lambda graph, chosen: on_spark.louvain(graph, resolution),
            ),
            asked,
        )

    def triangle_count(
        self,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Literal["both"] = "both",
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """In how many `triangles` each node is; the direction of edges, parallel edges and loops do not matter."""

        _only("triangle_count", direction, "both")
        asked = _Asked(
            nodes, edges, "both", None, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        return self._run(
            _Algorithm(
                "triangle_count",
                "triangles",
                _WHOLE,
                lambda graph, chosen, budget: _Values(local.triangle_count(graph, budget)),
                lambda graph, chosen: on_spark.triangle_count(graph),
            ),
            asked,
        )

    def k_core(
        self,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Literal["both"] = "both",
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The `core` number of each node: the largest k such that it is in a part where every node has k neighbours there."""

        _only("k_core", direction, "both")
        asked = _Asked(
            nodes, edges, "both", None, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        return self._run(
            _Algorithm(
                "k_core",
                "core",
                _WHOLE,
                lambda graph, chosen, budget: _Values(local.k_core(graph, budget)),
                lambda graph, chosen: on_spark.k_core(graph),
            ),
            asked,
        )

    def shortest_paths(
        self,
        source: Node | Sequence[Node],
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Direction = "out",
        weight: str | None = None,
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The `distance` of each node from the nearest `source`: edges, or the sum of their weights; of nodes that are reached.

        `source`: an id, a pair of type and id, or a list of them. `write_to` gives null to nodes that are not reached.
        """

        def here(graph: CompactGraph, chosen: Selection, budget: Budget) -> _Values:
            starts = [_position(graph, chosen, node) for node in _sources(source)]
            found = local.shortest_paths(graph, chosen.direction, starts, budget)
            reached = np.flatnonzero(np.isfinite(found) & (found >= 0))
            return _Values(found[reached], reached)

        def spread(graph: on_spark.SparkGraph, chosen: Selection) -> DataFrame:
            return on_spark.shortest_paths(graph, chosen.direction, [_typed(chosen, node) for node in _sources(source)])

        asked = _Asked(
            nodes, edges, direction, weight, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        kind = _WHOLE if weight is None else _REAL
        return self._run(_Algorithm("shortest_paths", "distance", kind, here, spread), asked)

    def degree(
        self,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Direction = "both",
        weight: str | None = None,
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The `degree` of each node: its edges, or the sum of their weights. With "both" a loop counts twice."""

        asked = _Asked(
            nodes, edges, direction, weight, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        kind = _WHOLE if weight is None else _REAL
        return self._run(
            _Algorithm(
                "degree",
                "degree",
                kind,
                lambda graph, chosen, budget: _Values(local.degree(graph, chosen.direction)),
                lambda graph, chosen: on_spark.degree(graph, chosen.direction),
            ),
            asked,
        )

    def similarity(
        self,
        source: Node,
        *,
        measure: Measure = "jaccard",
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        direction: Direction = "both",
        branch: str | None = None,
        snapshot: Reference = None,
        engine: Engine = "auto",
        frame: bool = False,
        write_to: str | None = None,
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Any:
        """The `similarity` of other nodes to `source`, above 0 to 1, by the neighbours they share; of nodes that share some.

        `measure`: "jaccard" divides the shared neighbours by all of both, "overlap" by those of the node that has fewer,
        "cosine" by the root of the product. `write_to` gives null to nodes that share none.
        """
        if measure not in ("jaccard", "overlap", "cosine"):
            raise BadRequest(f"measure is 'jaccard', 'overlap' or 'cosine', not {measure!r}")

        def here(graph: CompactGraph, chosen: Selection, budget: Budget) -> _Values:
            found, values = local.similarity(graph, chosen.direction, _position(graph, chosen, source), measure)
            return _Values(values, found)

        def spread(graph: on_spark.SparkGraph, chosen: Selection) -> DataFrame:
            return on_spark.similarity(graph, chosen.direction, _typed(chosen, source), measure)

        asked = _Asked(
            nodes, edges, direction, None, branch, snapshot, engine, frame, write_to, memory_limit, timeout, cancel
        )
        return self._run(_Algorithm("similarity", "similarity", _REAL, here, spread), asked)

    # --- common parts -----------------------------------------------------------------------------------------------

    def _run(self, algorithm: _Algorithm, asked: _Asked) -> Result | DataFrame | LoadResult:
        graph = self._graph
        if asked.engine not in ("auto", "local", "spark"):
            raise BadRequest(f"engine is 'auto', 'local' or 'spark', not {asked.engine!r}")
        if asked.frame and asked.engine == "local":
            raise BadRequest('frame=True is an answer of Spark; use engine="spark" or "auto"')
        if asked.write_to is not None and (asked.frame or asked.snapshot is not None):
            raise BadRequest("write_to writes to a branch; it goes neither with frame nor with snapshot")
        contract, view = graph._view(asked.branch, asked.snapshot, NOW)
        chosen = select(contract.catalog, view, asked.nodes, asked.edges, asked.direction, asked.weight)
        target = None if asked.write_to is None else _target(chosen, asked.write_to, algorithm)
        limits = graph._limits.with_request(asked.memory_limit, asked.timeout)
        needed = needed_bytes(chosen)
        if asked.engine == "spark" or (asked.engine == "auto" and (asked.frame or needed > limits.memory)):
            from omnigraph.spark.failures import spark_errors
            from omnigraph.spark.session import spark_session

            with spark_errors(spark_session(options=graph._spark), algorithm.name):
                frame = self._on_spark(algorithm, chosen, asked)
                if asked.frame:
                    return frame
                return self._collected(frame, algorithm, chosen, limits.memory, target, asked)
        budget = Budget(limits, asked.cancel)
        try:
            table = self._here(algorithm, chosen, budget, needed)
        finally:
            budget.close()
        return self._finished(table, algorithm, chosen, target, asked)

    def _here(self, algorithm: _Algorithm, chosen: Selection, budget: Budget, needed: int) -> pa.Table:
        try:
            budget.charge(needed)
        except ResourceLimit as error:
            raise ResourceLimit(
                f"{algorithm.name} over {chosen.node_count:,} nodes and {chosen.edge_count:,} edges needs about "
                f'{needed:,} bytes of memory and may take {budget.limits.memory:,}; use engine="spark", choose fewer types, '
                "or raise memory_limit (OMNIGRAPH_QUERY_MEMORY)",
                resource=error.resource,
                limit=error.limit,
                actual=error.actual,
            ) from None
        graph = compact_graph(chosen, self._graph._caches, budget)
        found = algorithm.local(graph, chosen, budget)
        budget.check()
        names = [name for name, _ in graph.nodes]
        sizes = [len(ids) for _, ids in graph.nodes]
        types = pa.DictionaryArray.from_arrays(
            pa.array(np.repeat(np.arange(len(names), dtype=np.int32), sizes)), pa.array(names, pa.string())
        ).cast(pa.string())
        ids = pa.concat_arrays([pa.array([], pa.string()), *(ids for _, ids in graph.nodes)])
        if found.positions is not None:
            places = pa.array(found.positions)
            types, ids = types.take(places), ids.take(places)
        values = pa.array(found.values, pa.int64() if algorithm.kind == _WHOLE else pa.float64())
        return pa.table({"type": types, "id": ids, algorithm.column: values})

    def _on_spark(self, algorithm: _Algorithm, chosen: Selection, asked: _Asked) -> DataFrame:
        graph = on_spark.spark_graph(self._graph, chosen)  # type: ignore[arg-type]
        return graph.named(algorithm.spark(graph, chosen), algorithm.column)

    def _collected(
        self,
        frame: DataFrame,
        algorithm: _Algorithm,
        chosen: Selection,
        memory: int,
        target: tuple[str, str] | None,
        asked: _Asked,
    ) -> Result | LoadResult:
        """The result of Spark's values: rows in this process if they fit, or a load from Spark's tasks for `write_to`."""
        if target is not None:
            type_name, property_name = target
            rows = frame.filter(frame["type"] == type_name).select("id", frame[algorithm.column].alias(property_name))
            named, keys = _keyed(chosen, type_name)
            everyone = self._graph.spark_table(f"node:{type_name}", ["id", *keys], snapshot=chosen.view)  # type: ignore[attr-defined]
            rows = everyone.join(rows, "id", "left" if algorithm.name in _PARTIAL else "inner")
            return self._graph.load(rows.select(*named, property_name), "update", branch=asked.branch, type=type_name)
        count = frame.count()
        if count * 100 > memory:
            raise ResourceLimit(
                f"{algorithm.name} has {count:,} rows, too many to return; use frame=True or write_to=…",
                resource="query memory bytes",
                limit=memory,
                actual=count * 100,
            )
        table = frame.orderBy("type", "id").toArrow()
        return Result(table, (_TEXT, _TEXT, algorithm.kind), chosen.view.commit)

    def _finished(
        self,
        table: pa.Table,
        algorithm: _Algorithm,
        chosen: Selection,
        target: tuple[str, str] | None,
        asked: _Asked,
    ) -> Result | LoadResult:
        if target is None:
            return Result(table, (_TEXT, _TEXT, algorithm.kind), chosen.view.commit)
        type_name, property_name = target
        rows = table.filter(pc.field("type") == type_name).drop_columns("type").rename_columns(["id", property_name])
        named, keys = _keyed(chosen, type_name)
        nodes = open_nodes(chosen.view, chosen.catalog, type_name)
        everyone = nodes.table.read(["id", *(nodes.stored[key] or key for key in keys)]).rename_columns(["id", *keys])
        rows = everyone.join(rows, "id", join_type="left outer" if algorithm.name in _PARTIAL else "inner")
        return self._graph.load(rows.select([*named, property_name]), "update", branch=asked.branch, type=type_name)


def _keyed(chosen: Selection, type_name: str) -> tuple[list[str], list[str]]:
    """The columns that identify rows of a type in a load (its key or `id`), and those of them that are properties."""
    key = next(kind for kind in chosen.nodes if kind.name == type_name).key
    return (list(key), list(key)) if key else (["id"], [])


#: Algorithms that give a value to some nodes only.
_PARTIAL = frozenset({"shortest_paths", "similarity"})


class WithAlgorithms(Loading):
    """A graph whose algorithms can be called."""

    @property
    def algorithms(self) -> Algorithms:
        """PageRank, components, communities, shortest paths, cores and alike; see `Algorithms`."""
        self._door.connection()
        return Algorithms(self)


def _positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequest(f"{name} is a whole number of 1 or more, not {value!r}")


def _only(algorithm: str, direction: str, allowed: str) -> None:
    if direction != allowed:
        raise BadRequest(f"{algorithm} looks at edges either way; its direction is '{allowed}', not {direction!r}")


def _sources(source: Node | Sequence[Node]) -> list[Node]:
    """The source nodes as a list. A tuple of two texts is one node: a type and an id."""
    if isinstance(source, str) or (
        isinstance(source, tuple) and len(source) == 2 and all(isinstance(part, str) for part in source)
    ):
        return [source]  # type: ignore[list-item]
    found = list(source)
    if not found:
        raise BadRequest("source is at least one node")
    return found


def _typed(chosen: Selection, node: Node) -> tuple[str, str]:
    """The type and the id of a node."""
    if isinstance(node, str):
        if len(chosen.nodes) != 1:
            listed = ", ".join(kind.name for kind in chosen.nodes)
            raise BadRequest(f"'{node}' may be of several types ({listed}); give the node as a pair of type and id")
        return chosen.nodes[0].name, node
    if not (isinstance(node, tuple | list) and len(node) == 2 and all(isinstance(part, str) for part in node)):
        raise BadRequest(f"a node is an id, or a pair of type and id, not {node!r}")
    name, node_id = node
    names = [kind.name for kind in chosen.nodes]
    if name not in names:
        raise NotFound(f"'{name}' is not among the chosen node types{did_you_mean(nearest_name(name, names))}")
    return name, node_id


def _position(graph: CompactGraph, chosen: Selection, node: Node) -> int:
    name, node_id = _typed(chosen, node)
    position = graph.position(name, node_id)
    if position is None:
        raise missing_node(name, node_id)
    return position


def missing_node(type_name: str, node_id: str) -> EntityNotFound:
    """The error for a source node that does not exist."""
    return EntityNotFound(
        f"there is no {type_name} with the id '{node_id}'", type_key=f"node:{type_name}", entity_id=node_id
    )


def _target(chosen: Selection, write_to: str, algorithm: _Algorithm) -> tuple[str, str]:
    """The type and the property to which `write_to` writes values."""
    name, dot, property_name = write_to.partition(".")
    kinds = {kind.name: kind for kind in chosen.nodes}
    if not dot or not property_name:
        raise BadRequest(f"write_to is a type and a property, such as 'Person.{algorithm.column}', not {write_to!r}")
    if name not in kinds:
        raise NotFound(
            f"write_to: '{name}' is not among the node types it runs over{did_you_mean(nearest_name(name, kinds))}"
        )
    declared = kinds[name].properties.get(property_name)
    if declared is None:
        hint = did_you_mean(nearest_name(property_name, kinds[name].properties))
        raise NotFound(f"node type '{name}' has no property '{property_name}'; add it to the schema first{hint}")
    fits = declared.type.is_numeric and (algorithm.kind == _WHOLE or declared.type.scalar in (Scalar.F32, Scalar.F64))
    if not fits:
        raise BadRequest(f"{write_to} is a {declared.type}; {algorithm.column} is a {algorithm.kind}")
    if algorithm.name in _PARTIAL and not declared.type.nullable:
        raise BadRequest(f"{write_to} is required, and {algorithm.name} gives some nodes no value; make it nullable")
    return name, property_name
