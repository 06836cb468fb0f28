"""Operations on the served cluster: the server plans or applies a declaration that a client sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from starlette.types import Scope

from omnigraph.cluster import commands
from omnigraph.cluster.applied import root_of
from omnigraph.cluster.commands import Outcome
from omnigraph.cluster.sources import Sent
from omnigraph.errors import BadRequest
from omnigraph.server import answers, bodies
from omnigraph.server.access import CLUSTER_APPLY, CLUSTER_PLAN, Need
from omnigraph.server.operation import Answer, Call, Operation, no_work
from omnigraph.server.state import ServerState


def _plan_needs(call: Call) -> Iterable[Need]:
    return [Need(CLUSTER_PLAN)]


def _apply_needs(call: Call) -> Iterable[Need]:
    return [Need(CLUSTER_APPLY)]


def operations(state: ServerState) -> list[Operation]:
    """Plan and apply. Errors of a declaration are in the answer, and not errors of the request."""

    def sent(call: Call) -> Sent:
        if state.settings.cluster is None:
            raise BadRequest("this server serves graphs that no cluster declares; start it with --cluster")
        body: bodies.Declaration = call.body
        return Sent(body.files, root_of(state.settings.cluster))

    def plan(call: Call) -> Answer:
        return call.json(commands.plan(sent(call)).to_dict())

    async def apply(call: Call, scope: Scope) -> Answer:
        """Apply, then serve the new revision: in this process before the answer, in the other processes soon after."""

        def applied() -> Outcome:
            return commands.apply(sent(call), call.actor)

        outcome = await _admitted(call, state, applied)
        if outcome.data.get("state_written"):
            await state.serve_newest()
        return call.json(outcome.to_dict() | {"served_revision": state.graphs.revision})

    return [
        Operation(
            "declaration_plan",
            "POST",
            "/cluster/plan",
            "What applying a declaration to the cluster of this server would change.",
            plan,
            _plan_needs,
            body=bodies.Declaration,
            answers=answers.ClusterPlan,
            flat=True,
        ),
        Operation(
            "declaration_apply",
            "POST",
            "/cluster/apply",
            "Make the cluster of this server what a declaration says, and serve it.",
            no_work,
            _apply_needs,
            body=bodies.Declaration,
            answers=answers.ClusterApply,
            statuses=(429,),
            conversation=apply,
            flat=True,
        ),
    ]


async def _admitted(call: Call, state: ServerState, work: Callable[[], Outcome]) -> Outcome:
    """The outcome of work that runs with admission in a thread of the writers."""
    with state.admission.admit(call.actor, len(call.content)):
        return await state.writers.run(call.actor, work)
