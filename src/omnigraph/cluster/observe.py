"""Comparing the ledger with storage: graphs, their schemas, and the stored contents of queries and policies."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.cluster.desired import Desired, graph_of
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.layout import Place
from omnigraph.cluster.live import Live, look_at, payload_state
from omnigraph.cluster.recovery import Swept, recomputed_graph
from omnigraph.cluster.state import Entry, State
from omnigraph.errors import OmnigraphError, StorageError


def observed(place: Place, desired: Desired, swept: Swept, findings: Findings) -> State:
    """The state with the observations. Missing or differing graphs and contents become drifted; an apply repairs them."""
    state = swept.state
    declared = {f"graph.{graph_id}" for graph_id in desired.config.graphs}
    known = {address for address in state.resources if address.startswith("graph.")}
    for address in sorted(declared | known):
        graph_id = address.removeprefix("graph.")
        if not swept.is_blocked(graph_id):
            state = _with_graph(place, desired, state, graph_id, findings)
    for address in sorted(state.resources):
        if address.startswith(("query.", "policy.")):
            state = _with_payload(place, state, address, findings)
    if any(status["status"] != "applied" for status in state.statuses.values()):
        # The applied declaration is no longer fully in place.
        state = replace(state, config_digest=None)
    return state


def _with_graph(place: Place, desired: Desired, state: State, graph_id: str, findings: Findings) -> State:
    graph, schema = f"graph.{graph_id}", f"schema.{graph_id}"
    wanted = desired.resources.get(schema)
    try:
        live = look_at(place, graph_id)
    except OmnigraphError as error:
        findings.error("graph_observation_error", graph, error.message)
        return state.with_status(graph, "error", error.message) if graph in state.resources else state
    conflict = _older_than_seen(state, graph, live)
    tombstone = graph not in state.resources and not live.exists and state.observations.get(graph, {}).get("tombstone")
    if not tombstone:
        state = state.with_observation(graph, live.observation(None if wanted is None else wanted.digest))
    if live.problem is not None:
        findings.error("graph_observation_error", graph, live.problem)
        return state.with_status(graph, "error", live.problem)
    if conflict is not None:
        findings.error("conflicting_graph_manifest_observation", graph, conflict)
        return state.with_status(graph, "error", conflict)
    if not live.exists:
        if graph not in state.resources and schema not in state.resources:
            return state
        state = state.with_entry(schema, None).with_entry(graph, None)
        return state.with_status(
            graph, "drifted", "the graph is gone; the next apply creates an empty one", "root_missing"
        )
    assert live.schema_digest is not None
    before = state.resources.get(schema)
    state = state.with_entry(schema, Entry(live.schema_digest))
    state = recomputed_graph(state, graph_id)
    if before is not None and before.digest != live.schema_digest:
        message = "the graph has another schema than was applied; the next apply changes it back"
        state = state.with_status(graph, "drifted", message, "schema_changed")
        return state.with_status(schema, "drifted", message, "schema_changed")
    return state.with_status(graph, "applied").with_status(schema, "applied")


def _older_than_seen(state: State, graph: str, live: Live) -> str | None:
    """A message for a graph whose manifest version is lower than it was seen before; None otherwise.
    Manifest versions only grow, so the graph was replaced or restored. The present version is recorded, so that the next
    refresh
    accepts it.
    """
    seen = state.observations.get(graph, {}).get("manifest_version")
    if not isinstance(seen, int) or live.manifest_version is None or live.manifest_version >= seen:
        return None
    return (
        f"the graph has manifest version {live.manifest_version}, but version {seen} was seen before: it was replaced or put "
        "back to an older state; if that is meant, run `omnigraph cluster refresh` again"
    )


def _with_payload(place: Place, state: State, address: str, findings: Findings) -> State:
    digest = state.resources[address].digest
    try:
        found = payload_state(place, address, digest)
    except StorageError as error:
        findings.error("catalog_payload_read_error", address, error.message)
        return state.with_status(address, "error", error.message)
    if found == "whole":
        return state.with_status(address, "applied")
    code = "catalog_payload_missing" if found == "missing" else "catalog_payload_mismatch"
    message = "its stored content is gone" if found == "missing" else "its stored content was changed"
    findings.warn(code, address, f"{message}; the next apply stores it again")
    state = state.with_entry(address, None)
    graph_id = graph_of(address)
    if graph_id is not None and f"graph.{graph_id}" in state.resources:
        state = recomputed_graph(state, graph_id)
    return state.with_status(address, "drifted", message, code)
