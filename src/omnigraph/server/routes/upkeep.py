"""Operations on the storage of a graph and on its settings: statistics, indexes, optimize, cleanup, recoveries, config."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.server import exploring_models as models
from omnigraph.server.access import ADMIN, Need
from omnigraph.server.bodies import BranchParameters
from omnigraph.server.operation import Answer, Call, Operation
from omnigraph.server.routes.reads import read_main, read_nothing, read_parameter_branch
from omnigraph.server.routes.sources import named
from omnigraph.server.routes.writes import WRITE_STATUSES
from omnigraph.wire.results import told_report


def _admin(call: Call) -> Iterable[Need]:
    return [Need(ADMIN)]


def _is_run(call: Call) -> bool:
    return not call.body.dry_run


def _stats(call: Call) -> Answer:
    return call.json(call.graph.stats(named(call.parameters.branch)).to_dict())


def _recoveries(call: Call) -> Answer:
    found = [recovery.to_dict() for recovery in call.graph.recoveries()]
    return call.json({"recoveries": found, "waiting": len(call.graph.pending_operations())})


def _ensure_indices(call: Call) -> Answer:
    body: models.IndexBody = call.body
    report = call.graph.ensure_indices(
        named(body.branch),
        types=body.types,
        actor=call.actor,
        message=body.message,
        dry_run=body.dry_run,
        idempotency_key=call.idempotency_key,
    )
    return call.json({"dry_run": body.dry_run, "report": report.to_dict()}, told_report(report))


def _optimize(call: Call) -> Answer:
    body: models.UpkeepBody = call.body
    report = call.graph.optimize(
        named(body.branch),
        actor=call.actor,
        message=body.message,
        dry_run=body.dry_run,
        idempotency_key=call.idempotency_key,
    )
    return call.json({"dry_run": body.dry_run, "report": report.to_dict()}, told_report(report))


def _cleanup(call: Call) -> Answer:
    body: models.CleanupBody = call.body
    report = call.graph.cleanup(
        keep=body.keep,
        older_than=body.older_than,
        dry_run=body.dry_run,
        actor=call.actor,
        idempotency_key=call.idempotency_key,
    )
    return call.json({"dry_run": body.dry_run, "report": report.to_dict()}, told_report(report))


def _config(call: Call) -> Answer:
    return call.json({"config": call.graph.config()})


def _set_config(call: Call) -> Answer:
    body: models.ConfigBody = call.body
    config = call.graph.set_config(body.name, body.value, actor=call.actor, idempotency_key=call.idempotency_key)
    return call.json({"config": config, "actor_id": call.actor})


OPERATIONS = [
    Operation(
        "stats",
        "GET",
        "/stats",
        "The size and the state of each type's table.",
        _stats,
        read_parameter_branch,
        parameters=BranchParameters,
        answers=models.StatsAnswer,
        statuses=(404,),
    ),
    Operation(
        "get_config",
        "GET",
        "/config",
        "The settings of the graph.",
        _config,
        read_main,
        answers=models.Config,
    ),
    Operation(
        "set_config",
        "PUT",
        "/config",
        "Set a setting of the graph, or give it its default back.",
        _set_config,
        _admin,
        body=models.ConfigBody,
        answers=models.ConfigSet,
        statuses=WRITE_STATUSES,
        writes=True,
    ),
    Operation(
        "recoveries",
        "GET",
        "/recoveries",
        "What dead writers left and was settled.",
        _recoveries,
        read_nothing,
        answers=models.Recoveries,
    ),
    Operation(
        "ensure_indices",
        "POST",
        "/ensure-indices",
        "Build the indexes that are declared and missing.",
        _ensure_indices,
        _admin,
        body=models.IndexBody,
        answers=models.UpkeepAnswer,
        statuses=WRITE_STATUSES,
        writes=True,
        writes_now=_is_run,
        can_be_job=True,
    ),
    Operation(
        "optimize",
        "POST",
        "/optimize",
        "Compact the tables of a branch and complete their indexes.",
        _optimize,
        _admin,
        body=models.UpkeepBody,
        answers=models.UpkeepAnswer,
        statuses=WRITE_STATUSES,
        writes=True,
        writes_now=_is_run,
        can_be_job=True,
    ),
    Operation(
        "cleanup",
        "POST",
        "/cleanup",
        "Remove old versions and what nothing refers to.",
        _cleanup,
        _admin,
        body=models.CleanupBody,
        answers=models.UpkeepAnswer,
        statuses=WRITE_STATUSES,
        writes=True,
        writes_now=_is_run,
        can_be_job=True,
    ),
]
