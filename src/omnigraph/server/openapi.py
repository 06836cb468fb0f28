"""The OpenAPI document of a server, made from the same operations as its routes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from omnigraph import __version__
from omnigraph.server.answers import ErrorBody, JobAnswer
from omnigraph.server.operation import JSON, Operation

PREFIX = "/graphs/{graph_id}"
_REFERENCES = "#/components/schemas/{name}"
_PATH_NAME = re.compile(r"\{([a-z_]+)\}")

_MEANINGS = {
    200: "Done.",
    202: "Taken: a job says how far it is; a notification has no answer.",
    206: "One range of the bytes.",
    302: "The value lies elsewhere.",
    304: "The value is the one that the client has.",
    400: "The request can not be carried out as it is.",
    401: "There is no bearer token, or nobody has it.",
    403: "The actor may not do this.",
    404: "Something that was named does not exist.",
    405: "The path has other methods.",
    406: "The client accepts no JSON.",
    408: "The body did not arrive in time.",
    409: "The state of the graph does not allow it, or has moved.",
    410: "History that is needed was cleaned up.",
    412: "A condition does not hold.",
    413: "A limit was exceeded.",
    415: "The body has another media type than the route takes.",
    416: "The range is outside the value.",
    424: "An external blob could not be read.",
    429: "The actor has too many requests under way.",
    500: "An error of the server.",
    503: "The server can not do it now.",
    504: "The query took too long.",
}
_WITHOUT_BODY = frozenset({302, 304})


def openapi_document(operations: Sequence[Operation], *, with_security: bool) -> bytes:
    """The document as JSON; with security schemes only when tokens are needed."""
    types = _types(operations)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCES)
    shapes = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = operation.path if operation.flat else PREFIX + operation.path
        paths.setdefault(path, {})[operation.method.lower()] = _described(
            operation, path, shapes, components, with_security
        )
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "OmniGraph",
            "version": __version__,
            "description": "A typed property graph with branches, commits and merges.",
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    if with_security:
        document["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    return orjson.dumps(document)


def _types(operations: Sequence[Operation]) -> list[Any]:
    found: dict[Any, None] = {ErrorBody: None, JobAnswer: None}
    for operation in operations:
        found |= dict.fromkeys(_answer_types(operation))
        for kind in (operation.body, operation.parameters):
            if kind is not None:
                found[kind] = None
    return list(found)


def _answer_types(operation: Operation) -> tuple[Any, ...]:
    if isinstance(operation.answers, str):
        return ()
    return operation.answers if isinstance(operation.answers, tuple) else (operation.answers,)


def _described(
    operation: Operation, path: str, shapes: dict[Any, Any], components: dict[str, Any], with_security: bool
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": f"cluster_{operation.name}",
        "summary": operation.summary,
        "parameters": [*_path_parameters(path), *_query_parameters(operation, components), *_headers(operation)],
        "responses": _responses(operation, shapes, with_security),
    }
    if operation.successor is not None:
        told["deprecated"] = True
    if operation.body is not None:
        content = {operation.body_type or JSON: {"schema": shapes[operation.body]}}
        told["requestBody"] = {"required": not operation.body_optional, "content": content}
    elif operation.uploads:
        content = {operation.body_type or JSON: {"schema": {"type": "string"}}}
        told["requestBody"] = {"required": True, "content": content}
    if with_security and not operation.public:
        told["security"] = [{"bearer": []}]
    return told


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PATH_NAME.findall(path)
    ]


def _query_parameters(operation: Operation, components: dict[str, Any]) -> list[dict[str, Any]]:
    about = components[operation.parameters.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in about.get("required", ()),
            "schema": _without_null(schema),
        }
        for name, schema in about.get("properties", {}).items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter without null and default, since a query string has no null."""
    kept = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return {**kept, **choices[0]} if len(choices) == 1 else kept | ({"anyOf": choices} if choices else {})


def _headers(operation: Operation) -> list[dict[str, Any]]:
    described = dict(operation.request_headers)
    if operation.writes:
        described["Idempotency-Key"] = (
            "A repeat with the same key answers as the first request did, and writes nothing."
        )
    if operation.can_be_job:
        described["Prefer"] = "`respond-async`: answer with 202 and a job, and go on."
    return [
        {
            "name": name,
            "in": "header",
            "required": name in operation.required_headers,
            "description": text,
            "schema": {"type": "string"},
        }
        for name, text in described.items()
    ]


def _responses(operation: Operation, shapes: dict[Any, Any], with_security: bool) -> dict[str, Any]:
    statuses = {400, 408, 500, 503, *operation.statuses}
    if not operation.public:
        statuses |= {401, 403} if with_security else {403}
    if not operation.flat:
        statuses.add(404)
    if operation.body is not None or operation.uploads:
        statuses.add(413)
    if operation.writes:
        statuses.add(429)
    if operation.can_be_job:
        statuses.add(202)
    responses = {"200": _success(operation, shapes)}
    for status in sorted(statuses):
        responses[str(status)] = _other(operation, status, shapes)
    return responses


def _success(operation: Operation, shapes: dict[Any, Any]) -> dict[str, Any]:
    if isinstance(operation.answers, str):
        media = operation.answers.partition(";")[0]
        schema: dict[str, Any] = {} if media == JSON else {"type": "string"}
        content = {media: {"schema": schema}}
    else:
        found = [shapes[kind] for kind in _answer_types(operation)]
        content = {JSON: {"schema": found[0] if len(found) == 1 else {"anyOf": found}}}
    return {"description": _MEANINGS[200], "content": content}


def _other(operation: Operation, status: int, shapes: dict[Any, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"description": _MEANINGS[status]}
    if status == 206:
        return told | {"content": {"application/octet-stream": {"schema": {"type": "string"}}}}
    if status == 202 and not operation.can_be_job:
        return told
    if status == 202:
        return told | {"content": {JSON: {"schema": shapes[JobAnswer]}}}
    if status in _WITHOUT_BODY or operation.method == "HEAD":
        return told
    shape = shapes[ErrorBody]
    if operation.name == "ready" and status == 503:
        shape = {"anyOf": [shape, *(shapes[kind] for kind in _answer_types(operation))]}
    return told | {"content": {JSON: {"schema": shape}}}
