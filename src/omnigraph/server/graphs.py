"""The graphs of a server: open handles by id, their stored queries, and whether they can be reached."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from omnigraph.cluster.applied import AppliedCluster, AppliedGraph, ClusterError, StoredFile, read_applied
from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, Conflict, NotFound, OmnigraphError
from omnigraph.graph.entry import open as open_graph
from omnigraph.graph.graph import Graph
from omnigraph.graph.stored import StoredQuery, read_stored
from omnigraph.ids import now_micros
from omnigraph.language.query.compile import compile_parsed
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.schema.catalog import Catalog
from omnigraph.policy.bundle import Bundle
from omnigraph.policy.decide import Policy
from omnigraph.server.access import SCHEMA_APPLY, Access, Need, access_of
from omnigraph.server.settings import GRAPH_ID, RESERVED_IDS, GraphSource, Settings, checked_source

_log = logging.getLogger("omnigraph.server")

#: A recovery record of at least this age (microseconds) is assumed to be of a dead writer.
STUCK_MICROS = 60_000_000


@dataclass(frozen=True)
class ServedGraph:
    """One served graph that could be opened."""

    graph_id: str
    graph: Graph
    access: Access
    stored: Mapping[str, StoredQuery] = field(default_factory=dict)
    #: Whether its schema is declared in a cluster and can be changed by `omnigraph cluster apply` only.
    is_declared: bool = False

    def hidden(self, text: str) -> str:
        """A message with the graph's storage place replaced by its id."""
        for place in {self.graph.uri, self.graph.uri.removeprefix("file://")}:
            text = text.replace(place, f"<{self.graph_id}>")
        return text


@dataclass
class ServedGraphs:
    """The graphs that could be opened, by id. The others are quarantined: clients see them as absent."""

    #: The rule for the server as a whole.
    access: Access
    healthy: dict[str, ServedGraph] = field(default_factory=dict)
    quarantined: dict[str, str] = field(default_factory=dict)
    #: The applied revision of the served cluster; None without a cluster.
    revision: int | None = None
    #: How many requests use these graphs, and whether new requests get other graphs. Used from the event loop only.
    _users: int = 0
    _is_retired: bool = False

    def find(self, graph_id: str) -> ServedGraph:
        """The graph of an id; raises BadRequest for an invalid id, NotFound for an unknown id."""
        if not GRAPH_ID.fullmatch(graph_id) or graph_id in RESERVED_IDS:
            raise BadRequest(
                "a graph id has 1 to 64 letters, digits and `-`, and is none of " + ", ".join(sorted(RESERVED_IDS))
            )
        if graph_id not in self.healthy:
            raise NotFound(f"graph '{graph_id}' not found")
        return self.healthy[graph_id]

    def listed(self) -> list[ServedGraph]:
        """The graphs in the order of their ids."""
        return [self.healthy[graph_id] for graph_id in sorted(self.healthy)]

    @contextmanager
    def used(self) -> Iterator[ServedGraphs]:
        """These graphs for one request: they stay open until it ends, even when a reload replaces them."""
        self._users += 1
        try:
            yield self
        finally:
            self._users -= 1
            self._close_when_unused()

    def retire(self) -> None:
        """Close the graphs as soon as no request uses them any more."""
        self._is_retired = True
        self._close_when_unused()

    def _close_when_unused(self) -> None:
        if self._is_retired and not self._users:
            self.close()

    def close(self) -> None:
        for served in self.healthy.values():
            served.graph.close()


def open_graphs(settings: Settings) -> ServedGraphs:
    """Open every graph of the settings, or of the cluster that they name."""
    if settings.cluster is not None:
        return open_cluster(settings, read_applied(settings.cluster))
    ways = {source.graph_id: partial(_opened, source, settings) for source in settings.graphs}
    return _all_opened(ServedGraphs(_access(settings, settings.policy, None)), ways, settings)


def open_cluster(settings: Settings, cluster: AppliedCluster) -> ServedGraphs:
    """Open every graph of the applied revision of a cluster."""
    if settings.rights == "open" and cluster.policies:
        raise BadRequest(
            f"cluster {cluster.address} has policies, and a policy needs to know who asks: set tokens "
            "(OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, …_JSON or OMNIGRAPH_SERVER_BEARER_TOKEN)"
        )
    ways = {graph_id: partial(_opened_declared, graph, settings) for graph_id, graph in cluster.graphs.items()}
    graphs = ServedGraphs(_access(settings, cluster.policy, None), revision=cluster.revision)
    return _all_opened(graphs, ways, settings)


def _all_opened(
    graphs: ServedGraphs, ways: Mapping[str, Callable[[], ServedGraph]], settings: Settings
) -> ServedGraphs:
    """Open graphs. One that can not be opened is quarantined, or refused with `require_all_graphs`."""
    for graph_id, opened in ways.items():
        try:
            graphs.healthy[graph_id] = opened()
        except OmnigraphError as error:
            if settings.require_all_graphs:
                graphs.close()
                raise
            graphs.quarantined[graph_id] = error.message
            _log.error("graph '%s' is quarantined: %s", graph_id, error.message)
    if not graphs.healthy:
        reasons = "; ".join(f"{graph_id}: {reason}" for graph_id, reason in graphs.quarantined.items())
        raise ClusterError(f"no graph can be served ({reasons})", code="cluster_no_healthy_graphs")
    return graphs


def _opened_declared(declared: AppliedGraph, settings: Settings) -> ServedGraph:
    """Open a graph of a cluster, with the applied queries, policy and embedding provider."""
    graph_id = declared.graph_id
    if declared.fault is not None:
        raise ClusterError(declared.fault.message, code=declared.fault.code)
    checked_source(GraphSource(graph_id, declared.uri))
    access = _access(settings, declared.policy, graph_id)
    graph = open_graph(
        declared.uri,
        "ro" if settings.read_only else "rw",
        storage_options=declared.storage_options or None,
        external_blobs=declared.external_blobs,
        embedding=declared.embedding,
        guard=_DeclaredSchema(graph_id, None if declared.policy is None else access),
    )
    try:
        catalog = graph.contract().catalog
        stored = {file.name: _declared_query(file, catalog) for file in declared.queries}
    except OmnigraphError:
        graph.close()
        raise
    return ServedGraph(graph_id, graph, access, stored, is_declared=True)


@dataclass(frozen=True)
class _DeclaredSchema:
    """The guard of a graph of a cluster: it denies schema changes to everybody; its policy decides the rest."""

    graph_id: str
    policy: Access | None

    def check(self, actor: str | None, need: Need) -> None:
        if self.policy is not None:
            self.policy.check(actor, need)
        if need.action == SCHEMA_APPLY:
            raise declared_schema(self.graph_id)


def declared_schema(graph_id: str) -> Conflict:
    """The error for a schema change on a graph of a cluster."""
    return Conflict(
        f"the schema of graph '{graph_id}' is declared in its cluster; change it there and run `omnigraph cluster apply`"
    )


def _declared_query(file: StoredFile, catalog: Catalog) -> StoredQuery:
    parsed = parse_query_file(file.text, f"{file.name}.gq")
    query = find_query(parsed, file.name)
    compile_parsed(query, catalog, parsed.source)
    return StoredQuery(file.text, query)


def _opened(source: GraphSource, settings: Settings) -> ServedGraph:
    access = _access(settings, source.policy, source.graph_id)
    guard = None if source.policy is None else access
    graph = open_graph(source.uri, "ro" if settings.read_only else "rw", guard=guard)
    return ServedGraph(source.graph_id, graph, access, read_stored(source.queries, graph))


def _access(settings: Settings, bundle: Bundle | None, graph_id: str | None) -> Access:
    """The rule of a graph, or of the server (`graph_id` None); its policy is compiled here, once."""
    policy = None if bundle is None else Policy(bundle, graph_id)
    return access_of(settings.rights, policy, read_only=settings.read_only)


def health_of(served: ServedGraph) -> str:
    """`ready`, or why a graph can not be used now; reads its storage and its pending recoveries."""
    try:
        served.graph.head(MAIN)
        waiting = served.graph.pending_operations()
    except OmnigraphError as error:
        return served.hidden(error.message)
    # Younger records belong to running writers.
    stuck = [record for record in waiting if now_micros() - record.created_at > STUCK_MICROS]
    return "ready" if not stuck else f"{len(stuck)} operations wait for recovery"
