"""The declared resources with contents, digests and dependencies. All files of the declaration are read once, here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.cluster.config import CLUSTER, ClusterConfig, GraphConfig, QuerySource, read_config
from omnigraph.cluster.diagnostics import Findings, Stop
from omnigraph.cluster.digests import config_digest, file_digest, graph_digest, provider_digest
from omnigraph.cluster.sources import Source
from omnigraph.errors import BadRequest, LanguageError, ParseError
from omnigraph.language.query.ast import QueryFile
from omnigraph.language.query.compile import compile_parsed
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.policy.bundle import read_bundle

Kind = Literal["graph", "schema", "query", "policy", "embedding_provider"]


@dataclass(frozen=True)
class Resource:
    """One resource of a cluster. `content`: the bytes of its file; None for graphs and providers."""

    address: str
    kind: Kind
    digest: str
    #: The file that declares it, as cluster.yaml names it.
    path: str | None = None
    content: bytes | None = field(default=None, repr=False)
    applies_to: tuple[str, ...] = ()
    embedding_provider: str | None = None
    embedding_profile: Mapping[str, str] | None = None
    external_blob_policy: Mapping[str, Any] | None = None

    @property
    def graph_id(self) -> str | None:
        """The id of the graph that it is or belongs to; None for policies and providers."""
        return graph_of(self.address)

    def to_dict(self) -> dict[str, Any]:
        path = {} if self.path is None else {"path": self.path}
        return {"address": self.address, "kind": self.kind, "digest": self.digest, **path}


@dataclass(frozen=True)
class Desired:
    """A valid declaration."""

    config: ClusterConfig
    resources: Mapping[str, Resource]
    #: Pairs of addresses: the first depends on the second.
    dependencies: tuple[tuple[str, str], ...]
    config_digest: str

    def digests(self) -> dict[str, str]:
        """The digests by address, sorted."""
        return {address: self.resources[address].digest for address in sorted(self.resources)}


def graph_of(address: str) -> str | None:
    """The id of the graph of an address; None for policies and providers."""
    kind, _, rest = address.partition(".")
    return rest.partition(".")[0] if kind in ("graph", "schema", "query") else None


def read_desired(source: Source, findings: Findings) -> Desired:
    """Read and check a declaration: cluster.yaml and every file that it names. Raises Stop when it has errors."""
    config = read_config(source, findings)
    resources: dict[str, Resource] = {}
    for address, profile in config.providers.items():
        resources[address] = Resource(
            address, "embedding_provider", provider_digest(profile), embedding_profile=profile
        )
    for graph in config.graphs.values():
        for resource in _graph_resources(graph, source, findings, resources):
            resources[resource.address] = resource
    for policy in config.policies.values():
        content = source.read(policy.file)
        if content is None:
            findings.error("policy_file_missing", f"policies.{policy.name}.file", f"cannot read '{policy.file}'")
            continue
        try:
            read_bundle(_text(content), policy.kind)
        except BadRequest as error:
            findings.error("policy_invalid", f"policies.{policy.name}.file", f"{policy.file}: {error.message}")
            continue
        address = f"policy.{policy.name}"
        resources[address] = Resource(
            address, "policy", file_digest(content), policy.file, content, applies_to=policy.applies_to
        )
    _refuse_changed(source, resources.values(), findings)
    if not findings.ok:
        raise Stop
    digests = [(address, resource.digest) for address, resource in resources.items()]
    return Desired(config, resources, _dependencies(resources), config_digest(config.content, digests))


def _refuse_changed(source: Source, resources: Iterable[Resource], findings: Findings) -> None:
    """Report files that changed while the declaration was read, since they may not fit together."""
    for path, content in {resource.path: resource.content for resource in resources if resource.path}.items():
        if source.read(path) != content:
            findings.error(
                "resource_content_changed", path, "the file changed while the declaration was read; run it again"
            )


def _graph_resources(
    graph: GraphConfig, files: Source, findings: Findings, known: Mapping[str, Resource]
) -> Iterator[Resource]:
    """The schema and queries of a graph, then the graph as a whole."""
    path = f"graphs.{graph.graph_id}"
    schema, catalog = _schema(graph, files, findings)
    queries = _queries(graph, files, findings, catalog)
    if graph.external_blobs is None:
        findings.warn(
            "external_blob_ingress_default_deny",
            f"{path}.external_blobs",
            "no external blobs are allowed; declare external_blobs to allow some",
        )
    if schema is None:
        return
    yield schema
    yield from queries.values()
    provider = None if graph.provider is None else known[graph.provider]
    digest = graph_digest(
        graph.graph_id,
        schema.digest,
        {name: resource.digest for name, resource in queries.items()},
        None if provider is None else (provider.address, provider.digest),
        graph.external_blobs,
    )
    yield Resource(
        f"graph.{graph.graph_id}",
        "graph",
        digest,
        embedding_provider=graph.provider,
        embedding_profile=None if provider is None else provider.embedding_profile,
        external_blob_policy=graph.external_blobs,
    )


def _schema(graph: GraphConfig, files: Source, findings: Findings) -> tuple[Resource | None, Catalog | None]:
    path = f"graphs.{graph.graph_id}.schema"
    content = files.read(graph.schema)
    if content is None:
        findings.error("schema_file_missing", path, f"cannot read '{graph.schema}'")
        return None, None
    resource = Resource(f"schema.{graph.graph_id}", "schema", file_digest(content), graph.schema, content)
    try:
        return resource, compile_schema(_text(content), graph.schema)
    except ParseError as error:
        findings.error("schema_parse_error", path, _placed(error))
    except BadRequest as error:
        findings.error("schema_catalog_error", path, _placed(error))
    return resource, None


def _queries(graph: GraphConfig, files: Source, findings: Findings, catalog: Catalog | None) -> dict[str, Resource]:
    """The queries of a graph by name; each query has the digest of its whole file."""
    found: dict[str, Resource] = {}
    for source in _query_sources(graph, files, findings):
        content = files.read(source.file)
        if content is None:
            findings.error("query_file_missing", source.path, f"cannot read '{source.file}'")
            continue
        try:
            parsed = parse_query_file(_text(content), source.file)
        except BadRequest as error:
            findings.error("query_parse_error", source.path, _placed(error))
            continue
        _check_types(graph, source, parsed, catalog, findings)
        declared = {query.name for query in parsed.queries}
        for name in source.names or ():
            if name not in declared:
                findings.error("query_key_mismatch", f"{source.path}.{name}", f"'{source.file}' has no query '{name}'")
        for name in [query.name for query in parsed.queries] if source.names is None else source.names:
            if name in found:
                findings.error(
                    "duplicate_query_name",
                    source.path,
                    f"query '{name}' is in '{found[name].path}' and in '{source.file}'",
                )
                continue
            found[name] = Resource(
                f"query.{graph.graph_id}.{name}", "query", file_digest(content), source.file, content
            )
    return {name: found[name] for name in sorted(found)}


def _query_sources(graph: GraphConfig, files: Source, findings: Findings) -> tuple[QuerySource, ...]:
    if graph.query_folder is None:
        return graph.query_files
    path = f"graphs.{graph.graph_id}.queries"
    listed = files.queries_in(graph.query_folder)
    if listed is None:
        findings.error("query_dir_unreadable", path, f"cannot read the folder '{graph.query_folder}'")
        return ()
    if not listed:
        findings.warn("query_dir_empty", path, f"there is no .gq file in '{graph.query_folder}'")
    return tuple(QuerySource(file, path) for file in listed)


def _check_types(
    graph: GraphConfig, source: QuerySource, parsed: QueryFile, catalog: Catalog | None, findings: Findings
) -> None:
    for query in parsed.queries:
        path = f"query.{graph.graph_id}.{query.name}"
        if not query.name:
            findings.error("query_parse_error", source.path, f"'{source.file}' has a query without a name; give it one")
        elif catalog is None:
            findings.warn("query_typecheck_skipped", path, "its schema is not valid, so the query was not checked")
        else:
            try:
                compile_parsed(query, catalog, parsed.source)
            except BadRequest as error:
                findings.error("query_typecheck_error", path, _placed(error))


def _dependencies(resources: Mapping[str, Resource]) -> tuple[tuple[str, str], ...]:
    found = []
    for resource in resources.values():
        if resource.kind == "schema":
            found.append((resource.address, f"graph.{resource.graph_id}"))
        elif resource.kind == "query":
            found.append((resource.address, f"schema.{resource.graph_id}"))
        elif resource.kind == "graph" and resource.embedding_provider is not None:
            found.append((resource.address, resource.embedding_provider))
        elif resource.kind == "policy":
            found += [(resource.address, scope) for scope in resource.applies_to if scope != CLUSTER]
    return tuple(sorted(found))


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"it is not UTF-8 text (byte {error.start})") from None


def _placed(error: BadRequest) -> str:
    """The message of an error with its file, line and column, in one line."""
    if isinstance(error, LanguageError) and error.file is not None:
        return f"{error.file}:{error.line}:{error.column}: {error.message}"
    return error.message
