"""The OpenAPI document: complete, about what is really served, and true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnigraph.server.app import operations
from tests.server.serving import Served, serving, settings_of

#: Method and path of every row of the contract.
CONTRACT = """
GET /healthz
GET /openapi.json
GET /graphs
GET /snapshot
GET /blob
HEAD /blob
POST /query
POST /read
POST /mutate
POST /mutate/if-graph-commit
POST /change
GET /queries
POST /queries/{name}
POST /queries/{name}/if-graph-commit
GET /schema
POST /schema/apply
POST /load
POST /load/ndjson
POST /ingest
GET /branches
POST /branches
DELETE /branches/{branch}
POST /branches/merge
GET /commits
GET /commits/{commit_id}
GET /commits/{commit_id}/changes
GET /changes
POST /changes/baseline
POST /export
"""
FLAT = {"/healthz", "/openapi.json", "/graphs", "/readyz", "/metrics"}


@pytest.fixture(scope="module")
def document(reading: Served) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{reading.url}/openapi.json").json()
    return found


def described(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_every_row_of_the_contract_is_described(document: dict[str, Any]) -> None:
    found = {f"{method} {path.removeprefix('/graphs/{graph_id}') or path}" for method, path, _ in described(document)}
    assert set(CONTRACT.split("\n")) - {""} <= found


def test_what_is_described_is_what_is_served(reading: Served, document: dict[str, Any]) -> None:
    served = {(operation.method, operation.path) for operation in operations(reading.state)}
    told = {
        (method, path if path in FLAT else path.removeprefix("/graphs/{graph_id}"))
        for method, path, _ in described(document)
    }
    assert served == told


def test_operation_ids_are_prefixed_and_unique(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in described(document)]
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("cluster_") for name in ids)


def test_every_described_route_answers(reading: Served, document: dict[str, Any]) -> None:
    for method, path, _ in described(document):
        called = path.replace("{graph_id}", "people").replace("{", "").replace("}", "")
        answer = httpx.request(method, f"{reading.url}{called}", content=b"{")
        public = path in ("/healthz", "/openapi.json", "/readyz")
        assert answer.status_code == (200 if public else 401), (method, path, answer.text)


def test_security_is_told_where_tokens_are_needed(document: dict[str, Any], graph_path: Path) -> None:
    assert document["components"]["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}
    for _, path, operation in described(document):
        public = path in ("/healthz", "/openapi.json", "/readyz")
        assert ("security" in operation) is not public
        assert ("401" in operation["responses"]) is not public
    with serving(settings_of(graph_path, rights="open", one_time_token=None)) as served:
        text = served.http.get("/openapi.json").text
    assert "securitySchemes" not in text
    assert '"security"' not in text


def test_deprecated_routes_are_marked(document: dict[str, Any]) -> None:
    marked = {path.rpartition("/")[2] for _, path, operation in described(document) if operation.get("deprecated")}
    assert marked == {"read", "change", "ingest"}


def test_every_reference_is_there(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    waiting: list[Any] = [document["paths"], schemas]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            reference = item.get("$ref")
            assert reference is None or reference.removeprefix("#/components/schemas/") in schemas
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
