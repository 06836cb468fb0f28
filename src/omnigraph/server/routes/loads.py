"""Operations that load rows: a JSON body read permissively, or a stream of lines read strictly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from omnigraph.load.inputs import Body, Unnamed
from omnigraph.load.model import LoadResult
from omnigraph.server import answers, bodies
from omnigraph.server.access import BRANCH_CREATE, CHANGE, Need
from omnigraph.server.operation import Answer, Call, Operation
from omnigraph.server.routes.sources import named
from omnigraph.wire.failures import IN_MEMORY, told_by_record
from omnigraph.wire.shapes import load_answer

#: A streamed body of at most so many bytes is loaded from memory, which avoids reading the file twice.
_SMALL = 8 * 2**20


def _needs_of(call: Call, asked: bodies.LoadBody | bodies.LoadParameters) -> Iterable[Need]:
    branch = named(asked.branch)
    needs = [Need(CHANGE, branch)]
    if asked.base is not None and branch not in call.graph.branches():
        needs.insert(0, Need(BRANCH_CREATE, asked.base, branch))
    return needs


def _body_needs(call: Call) -> Iterable[Need]:
    return _needs_of(call, call.body)


def _parameter_needs(call: Call) -> Iterable[Need]:
    return _needs_of(call, call.parameters)


def _load(call: Call) -> Answer:
    body: bodies.LoadBody = call.body
    with told_by_record("record", IN_MEMORY):
        result = _loaded(call, Body.of(body.data.encode(), by_record=True), body, lenient=True)
    return call.json(load_answer(call.graph.uri, call.actor, result), result.to_dict())


def _load_lines(call: Call) -> Answer:
    assert call.upload is not None
    path = call.upload
    small = path.stat().st_size <= _SMALL
    title = call.parameters.title
    data: bytes | Unnamed = Body.of(path.read_bytes(), title) if small else Unnamed(path, title)
    with told_by_record("line", IN_MEMORY if small else str(path)):
        result = _loaded(
            call, data, call.parameters, lenient=call.parameters.lenient, if_commit=call.parameters.if_commit
        )
    return call.json(load_answer(None, call.actor, result), result.to_dict())


def _loaded(
    call: Call,
    data: bytes | Unnamed,
    asked: bodies.LoadBody | bodies.LoadParameters,
    *,
    lenient: bool,
    if_commit: str | None = None,
) -> LoadResult:
    call.committed = True
    return call.graph.load(
        data,
        asked.mode or "merge",
        branch=named(asked.branch),
        base=asked.base,
        actor=call.actor,
        message=asked.message,
        lenient=lenient,
        format="jsonl",
        if_commit=if_commit,
        idempotency_key=call.idempotency_key,
        progress=call.progress,
    )


_STATUSES = (404, 409, 410, 413, 424)


def _json_load(name: str, path: str, summary: str, **more: Any) -> Operation:
    return Operation(
        name,
        "POST",
        path,
        summary,
        _load,
        _body_needs,
        needs_look_up=lambda call: call.body.base is not None,
        body=bodies.LoadBody,
        large_body=True,
        answers=answers.Loaded,
        statuses=_STATUSES,
        writes=True,
        can_be_job=True,
        **more,
    )


OPERATIONS = [
    _json_load("load", "/load", "Load rows that are a text in a JSON body."),
    Operation(
        "load_ndjson",
        "POST",
        "/load/ndjson",
        "Load rows that are streamed as JSON lines.",
        _load_lines,
        _parameter_needs,
        needs_look_up=lambda call: call.parameters.base is not None,
        parameters=bodies.LoadParameters,
        body_type="application/x-ndjson",
        uploads=True,
        answers=answers.StreamLoaded,
        statuses=(*_STATUSES, 412, 415),
        writes=True,
        can_be_job=True,
    ),
    _json_load("ingest", "/ingest", "Load rows (older name).", successor="load"),
]
