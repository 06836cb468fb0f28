"""Operations of the server itself: health, readiness, metrics, its OpenAPI document and its list of graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph import __version__
from omnigraph.commit.format import CURRENT
from omnigraph.errors import Unauthorized
from omnigraph.server import answers
from omnigraph.server.access import GRAPH_LIST, Need
from omnigraph.server.exploring_models import StudioKeyBody, StudioSession
from omnigraph.server.graphs import health_of
from omnigraph.server.metrics import CONTENT_TYPE
from omnigraph.server.openapi import openapi_document
from omnigraph.server.operation import JSON, Answer, Call, Operation, no_needs
from omnigraph.server.state import ServerState
from omnigraph.server.tokens import bearer_token


def _list_graphs(call: Call) -> Iterable[Need]:
    return [Need(GRAPH_LIST)]


def operations(state: ServerState, of_graphs: Sequence[Operation]) -> list[Operation]:
    """The operations without a graph; the OpenAPI document describes them and the operations of graphs."""

    def health(call: Call) -> Answer:
        return call.json({"status": "ok", "version": __version__, "internal_schema_version": CURRENT})

    def ready(call: Call) -> Answer:
        found = {served.graph_id: health_of(served) for served in state.graphs.listed()}
        found |= dict.fromkeys(state.graphs.quarantined, "quarantined")
        is_ready = all(health == "ready" for health in found.values())
        shape: dict[str, object] = {"status": "ready" if is_ready else "unavailable"}
        if _is_known(call):
            shape["graphs"] = found
        return call.json(shape, status=200 if is_ready else 503)

    def _is_known(call: Call) -> bool:
        """Whether the caller has a valid token or needs none; other callers may not see the graphs."""
        if state.settings.rights == "open":
            return True
        given = call.headers.get("authorization", [])
        return bool(given) and state.tokens.actor_of(bearer_token(given)) is not None

    def metrics(call: Call) -> Answer:
        return Answer(state.metrics.text(), CONTENT_TYPE)

    def graphs(call: Call) -> Answer:
        listed = [{"graph_id": served.graph_id, "uri": served.graph.uri} for served in state.graphs.listed()]
        return call.json({"graphs": listed})

    def studio_session(call: Call) -> Answer:
        body: StudioKeyBody = call.body
        if state.settings.one_time_token is None or not state.studio_key.is_taken(body.key):
            raise Unauthorized("this key was used before, or is none; enter the token that the server has shown")
        return call.json({"token": state.settings.one_time_token}, headers={"Cache-Control": "no-store"})

    def document(call: Call) -> Answer:
        return Answer(content)

    flat = [
        Operation(
            "health",
            "GET",
            "/healthz",
            "Whether the process answers.",
            health,
            no_needs,
            answers=answers.Health,
            flat=True,
            public=True,
        ),
        Operation(
            "ready",
            "GET",
            "/readyz",
            "Whether the graphs can be used.",
            ready,
            no_needs,
            answers=answers.Ready,
            statuses=(503,),
            flat=True,
            public=True,
        ),
        Operation(
            "openapi",
            "GET",
            "/openapi.json",
            "This document.",
            document,
            no_needs,
            answers=JSON,
            flat=True,
            public=True,
        ),
        Operation(
            "metrics",
            "GET",
            "/metrics",
            "Numbers for Prometheus.",
            metrics,
            no_needs,
            answers="text/plain",
            flat=True,
        ),
        Operation(
            "list_graphs",
            "GET",
            "/graphs",
            "The graphs of this server.",
            graphs,
            _list_graphs,
            answers=answers.Graphs,
            flat=True,
        ),
    ]
    if state.settings.studio:
        flat.append(
            Operation(
                "studio_session",
                "POST",
                "/studio/session",
                "The token that a one-time key of `omnigraph studio` stands for.",
                studio_session,
                no_needs,
                body=StudioKeyBody,
                answers=StudioSession,
                statuses=(401,),
                flat=True,
                public=True,
            )
        )
    content = openapi_document([*flat, *of_graphs], with_security=state.settings.rights != "open")
    return flat
