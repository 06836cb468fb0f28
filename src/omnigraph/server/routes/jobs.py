"""Operations on jobs: the progress of a job, once or as server-sent events."""

from __future__ import annotations

from typing import Any

import orjson

from omnigraph.server import answers
from omnigraph.server.jobs import RUNNING, Jobs
from omnigraph.server.operation import NDJSON, Answer, Call, Follow, Operation, Stream, no_needs
from omnigraph.server.routes.feeds import EVENTS
from omnigraph.server.state import ServerState


def operations(state: ServerState) -> list[Operation]:
    """The operations on the jobs of a server. Only the actor who started a job can see it."""

    def find(call: Call) -> dict[str, Any]:
        assert call.served is not None
        jobs: Jobs = state.jobs
        return jobs.find(call.served.graph_id, call.path["job_id"], call.actor)

    def show(call: Call) -> Answer:
        return call.json(find(call))

    def cancel(call: Call) -> Answer:
        assert call.served is not None
        return call.json(state.jobs.cancel(call.served.graph_id, call.path["job_id"], call.actor))

    def result(call: Call) -> Stream:
        assert call.served is not None
        return Stream(state.jobs.result(call.served.graph_id, call.path["job_id"], call.actor), NDJSON)

    def follow(call: Call) -> Follow:
        find(call)
        shown: list[dict[str, Any]] = []

        def poll() -> bytes | None:
            told = find(call)
            if shown and shown[-1] == told:
                return None
            shown[:] = [told]
            return b"event: " + str(told["state"]).encode() + b"\ndata: " + orjson.dumps(told) + b"\n\n"

        return Follow(poll, EVENTS, {"Cache-Control": "no-store"}, lambda: shown[-1]["state"] != RUNNING)

    return [
        Operation(
            "job",
            "GET",
            "/jobs/{job_id}",
            "How far a job is.",
            show,
            no_needs,
            answers=answers.JobAnswer,
            statuses=(404,),
        ),
        Operation(
            "cancel_job",
            "DELETE",
            "/jobs/{job_id}",
            "Stop a job at its next step; a load that stops has written nothing. One that has ended loses its result.",
            cancel,
            no_needs,
            answers=answers.JobAnswer,
            statuses=(404,),
        ),
        Operation(
            "job_result",
            "GET",
            "/jobs/{job_id}/result",
            "The lines of an export that was made as a job.",
            result,
            no_needs,
            answers=NDJSON,
            statuses=(404,),
        ),
        Operation(
            "job_events",
            "GET",
            "/jobs/{job_id}/events",
            "How far a job is, as server-sent events until it has ended.",
            follow,
            no_needs,
            answers=EVENTS,
            statuses=(404,),
        ),
    ]
