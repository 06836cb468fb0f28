"""The applied revision of a cluster for its readers: graphs with their stored queries, and policies.
A server reads it once. A fault of one graph is kept with the graph; a fault of something shared raises an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.cluster.config import CLUSTER, read_config
from omnigraph.cluster.diagnostics import Diagnostic, Findings, Stop
from omnigraph.cluster.digests import file_digest, provider_digest
from omnigraph.cluster.layout import STATE, Place, payload_path, place_at
from omnigraph.cluster.recovery import pending, recomputed_graph
from omnigraph.cluster.sources import FILE, Folder
from omnigraph.cluster.state import Entry, State, read_state
from omnigraph.errors import BadRequest, StorageError
from omnigraph.policy.bundle import Bundle, read_bundle
from omnigraph.storage.root import Root


class ClusterError(BadRequest):
    """The applied revision can not be used; `code` is the code of the diagnostic."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class StoredFile:
    """A stored query: its name, and the text of its file."""

    name: str
    text: str


@dataclass(frozen=True)
class AppliedPolicy:
    """An applied policy: its name, its rules, and the addresses to which it applies."""

    name: str
    bundle: Bundle
    applies_to: tuple[str, ...]


@dataclass(frozen=True)
class AppliedGraph:
    """One graph of the revision. `fault`: why it can not be served, else None."""

    graph_id: str
    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    queries: tuple[StoredFile, ...] = ()
    policy: Bundle | None = None
    embedding: Mapping[str, str] | None = None
    external_blobs: tuple[str, ...] = ()
    fault: Diagnostic | None = None


@dataclass(frozen=True)
class AppliedCluster:
    """The applied graphs and policies of a cluster."""

    address: str
    revision: int
    graphs: Mapping[str, AppliedGraph]
    policies: tuple[AppliedPolicy, ...] = ()

    @property
    def policy(self) -> Bundle | None:
        """The policy that applies to the cluster as a whole, or None."""
        return next((policy.bundle for policy in self.policies if CLUSTER in policy.applies_to), None)

    def graph(self, graph_id: str | None) -> AppliedGraph:
        """A graph by its id; for None, the only graph of the cluster."""
        known = sorted(self.graphs)
        if graph_id is None:
            if len(known) != 1:
                raise BadRequest(
                    f"cluster `{self.address}` has {len(known)} graphs: [{', '.join(known)}]; pass --graph <id> to select one"
                )
            return self.graphs[known[0]]
        if graph_id not in self.graphs:
            raise ClusterError(
                f"graph `{graph_id}` is not applied in cluster `{self.address}`: [{', '.join(known)}]",
                code="graph_not_applied",
            )
        return self.graphs[graph_id]


def root_of(address: str) -> Root:
    """The storage root of a cluster: a URI, or a folder, whose cluster.yaml may name another place."""
    try:
        root = Root.parse(address)
    except BadRequest as error:
        raise ClusterError(error.message, code="storage_root_invalid") from None
    if root.is_local and (Path(root.uri) / FILE).is_file():
        findings = Findings()
        try:
            return read_config(Folder(Path(root.uri)), findings).root
        except Stop:
            raise _first_error(findings) from None
    return root


def read_applied(address: str, *, environment: Mapping[str, str] = os.environ) -> AppliedCluster:
    """Read the applied revision of a cluster; raises ClusterError when it can not be used at all."""
    place = place_at(root_of(address))
    findings = Findings()
    try:
        read = read_state(place, findings)
    except Stop:
        raise _first_error(findings) from None
    if not read.found:
        raise ClusterError(
            f"there is no applied cluster at {place.shown(STATE)}; run `omnigraph cluster import` and `apply` first",
            code="cluster_state_missing",
        )
    state = read.state
    waiting = pending(place)
    if waiting.unreadable:
        raise ClusterError(
            f"the recovery record {place.shown(waiting.unreadable[0])} can not be read, so it is not known which graph it is "
            "about; run `omnigraph cluster apply`",
            code="cluster_recovery_unattributed",
        )
    policies = _policies(place, state)
    interrupted = {record.graph_id for record in waiting.records}
    graphs = {}
    for resource in sorted(state.resources):
        if resource.startswith("graph."):
            graph_id = resource.removeprefix("graph.")
            graphs[graph_id] = _graph(place, state, graph_id, policies, graph_id in interrupted, environment)
    if not graphs:
        raise ClusterError(f"no graph is applied in cluster {address}", code="cluster_empty")
    return AppliedCluster(address, state.revision, graphs, policies)


def _first_error(findings: Findings) -> ClusterError:
    found = next(diagnostic for diagnostic in findings.listed if diagnostic.severity == "error")
    return ClusterError(f"{found.path}: {found.message}", code=found.code)


# --- policies ---------------------------------------------------------------------------------------------------------


def _policies(place: Place, state: State) -> tuple[AppliedPolicy, ...]:
    """All policies. Each must be readable, since a server without one of them would allow or deny the wrong things."""
    found = []
    applied = [
        (address, state.resources[address]) for address in sorted(state.resources) if address.startswith("policy.")
    ]
    _check_bindings(applied)
    for address, entry in applied:
        content = _payload(place, address, entry)
        if isinstance(content, Diagnostic):
            raise ClusterError(f"{address}: {content.message}", code=content.code)
        try:
            bundle = read_bundle(content.decode(), "cluster" if CLUSTER in entry.applies_to else "graph")
        except (BadRequest, UnicodeDecodeError) as error:
            raise ClusterError(f"{address}: {error}", code="policy_invalid") from None
        found.append(AppliedPolicy(address.removeprefix("policy."), bundle, entry.applies_to))
    return tuple(found)


def _check_bindings(applied: list[tuple[str, Entry]]) -> None:
    """Raise ClusterError when a policy applies to nothing, or two policies apply to the same address."""
    bound: dict[str, str] = {}
    for address, entry in applied:
        if not entry.applies_to:
            raise ClusterError(f"{address} applies to nothing; apply the cluster again", code="policy_bindings_missing")
        for scope in entry.applies_to:
            if scope in bound:
                raise ClusterError(
                    f"{bound[scope]} and {address} both apply to {scope}", code="duplicate_policy_binding"
                )
            bound[scope] = address


def _payload(place: Place, address: str, entry: Entry) -> bytes | Diagnostic:
    """The stored content of a query or policy, or a diagnostic."""
    try:
        content = place.store.get_or_none(payload_path(address, entry.digest))
    except StorageError as error:
        return Diagnostic("error", "catalog_payload_read_error", address, error.message)
    if content is None:
        return Diagnostic(
            "error",
            "catalog_payload_missing",
            address,
            "its stored content is gone; run `cluster refresh`, then `apply`",
        )
    if file_digest(content) != entry.digest:
        return Diagnostic(
            "error",
            "catalog_payload_digest_mismatch",
            address,
            "its stored content was changed; run `cluster refresh`, then `apply`",
        )
    return content


# --- graphs -----------------------------------------------------------------------------------------------------------


def _graph(
    place: Place,
    state: State,
    graph_id: str,
    policies: tuple[AppliedPolicy, ...],
    is_interrupted: bool,
    environment: Mapping[str, str],
) -> AppliedGraph:
    address = f"graph.{graph_id}"
    entry = state.resources[address]
    fault: Diagnostic | None = None
    if is_interrupted:
        message = "an interrupted command waits for recovery; run `omnigraph cluster apply`"
        fault = Diagnostic("error", "cluster_recovery_pending", address, message)
    queries: list[StoredFile] = []
    for found in sorted(state.resources):
        if found.startswith(f"query.{graph_id}."):
            content = _payload(place, found, state.resources[found])
            if isinstance(content, Diagnostic):
                fault = fault or content
            else:
                queries.append(StoredFile(found.removeprefix(f"query.{graph_id}."), content.decode("utf-8", "replace")))
    embedding = _embedding(state, address, entry, environment)
    if isinstance(embedding, Diagnostic):
        fault, embedding = fault or embedding, None
    if recomputed_graph(state, graph_id).resources[address].digest != entry.digest:
        message = "what the state says about the graph does not fit its digest; run `cluster refresh`, then `apply`"
        fault = fault or Diagnostic("error", "external_blob_policy_digest_mismatch", address, message)
    root = place.graph_root(graph_id)
    return AppliedGraph(
        graph_id,
        root.uri,
        root.storage_options,
        tuple(queries),
        next((policy.bundle for policy in policies if address in policy.applies_to), None),
        embedding,
        _server_safe(entry.external_blob_policy),
        fault,
    )


def _embedding(
    state: State, address: str, entry: Entry, environment: Mapping[str, str]
) -> Mapping[str, str] | Diagnostic | None:
    """The embedding provider of a graph with its API key resolved, None without a provider, or a diagnostic."""
    reference = entry.embedding_provider
    if reference is None:
        return None
    provider, profile = state.resources.get(reference), entry.embedding_profile
    if provider is None:
        return Diagnostic("error", "embedding_provider_missing", address, f"{reference} is not applied")
    if profile is None:
        return Diagnostic(
            "error", "embedding_provider_profile_missing", address, f"the profile of {reference} is not there"
        )
    if provider_digest(profile) != provider.digest:
        message = f"the profile of {reference} is not the one that was applied"
        return Diagnostic("error", "embedding_provider_digest_mismatch", address, message)
    key = profile.get("api_key")
    if key is None:
        return profile
    variable = key.removeprefix("${").removesuffix("}")
    if not environment.get(variable):
        return Diagnostic("error", "embedding_api_key_required", address, f"the variable {variable} has no key in it")
    return {**profile, "api_key": environment[variable]}


def _server_safe(policy: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The URI prefixes from which external blobs of a served graph may come."""
    if policy is None:
        return ()
    return tuple(entry["base"] for entry in policy["allow"] if entry["scope"] == "server_safe")
