"""`omnigraph policy …`: who may do what in a cluster, as it is applied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import applied_cluster
from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option, together
from omnigraph.cli.scope import CLUSTER_GRAPH
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.cluster.applied import AppliedPolicy
    from omnigraph.policy.decide import Policy

_options = together(
    click.option("--scope", type=click.Choice(["graph", "cluster"]), help="Which policy: a graph's, or the cluster's."),
    json_option,
    click.pass_context,
)
Scope = Literal["graph", "cluster"]


@click.group(cls=Group)
def policy() -> None:
    """Check the policy of a cluster."""


@policy.command(scope=CLUSTER_GRAPH)
@_options
def validate(context: click.Context, scope: Scope | None, as_json: bool) -> None:
    """Check the policy by itself."""
    found, _ = _chosen(context, scope)
    actors = len(found.bundle.actors)
    if as_json:
        output.json({"ok": True, "bundle": found.name, "actors": actors, "rules": len(found.bundle.rules)})
    else:
        output.line(f"policy valid: bundle '{found.name}' [{actors} actors]")


@policy.command(scope=CLUSTER_GRAPH)
@click.option("--tests", metavar="FILE", required=True, help="The cases and the decisions they expect.")
@_options
def test(context: click.Context, tests: str, scope: Scope | None, as_json: bool) -> None:
    """Compare the decisions of the policy with expected ones."""
    from omnigraph.policy.cases import failures, read_cases

    found, compiled = _chosen(context, scope)
    cases = read_cases(_text(tests))
    failed = failures(cases, compiled.decide)
    if as_json:
        output.json({"ok": not failed, "bundle": found.name, "cases": len(cases), "failures": failed})
    elif failed:
        output.line("policy tests failed:\n" + "\n".join(failed))
    else:
        output.line(f"policy tests passed: {len(cases)} cases")
    if failed:
        context.exit(1)


@policy.command(scope=CLUSTER_GRAPH)
@click.option("--actor", metavar="ACTOR", required=True, help="Who asks.")
@click.option("--action", metavar="ACTION", required=True, help="What is asked, such as branch-merge.")
@click.option("--branch", metavar="NAME", help="The branch it is about.")
@click.option("--target-branch", metavar="NAME", help="The branch it leads to.")
@_options
def explain(
    context: click.Context,
    actor: str,
    action: str,
    branch: str | None,
    target_branch: str | None,
    scope: Scope | None,
    as_json: bool,
) -> None:
    """Show the decision about one action, and the rule behind it."""
    from omnigraph.policy.actions import Need
    from omnigraph.policy.cases import read_action

    need = Need(read_action(action), branch, target_branch)
    _, compiled = _chosen(context, scope)
    decision = compiled.decide(actor, need)
    told = {
        "decision": "allow" if decision.allowed else "deny",
        "actor": actor,
        "action": need.action,
        "branch": branch,
        "target_branch": target_branch,
        "matched_rule": decision.rule,
        "message": decision.message,
    }
    if as_json:
        output.json({name: value for name, value in told.items() if value is not None})
    else:
        output.fields(told)


def _chosen(context: click.Context, scope: Scope | None) -> tuple[AppliedPolicy, Policy]:
    """The policy that is meant: a graph's own one before the cluster's, the only one when no graph is named."""
    from omnigraph.policy.decide import Policy

    cluster, graph_id = applied_cluster(context)
    if graph_id is not None:
        cluster.graph(graph_id)
    own = [found for found in cluster.policies if graph_id is None or f"graph.{graph_id}" in found.applies_to]
    shared = [found for found in cluster.policies if "cluster" in found.applies_to]
    if scope == "cluster":
        listed = shared
    elif scope == "graph":
        listed = [found for found in own if found not in shared]
    else:
        listed = own if own or graph_id is None else shared
    names = ", ".join(found.name for found in listed)
    if not listed:
        bound = "to the cluster" if scope == "cluster" else f"to graph {graph_id}" if graph_id else "to a graph"
        raise BadRequest(f"cluster `{cluster.address}` has no policy bundle bound {bound}")
    if len(listed) > 1:
        raise BadRequest(
            f"cluster `{cluster.address}` has {len(listed)} policy bundles ([{names}]); pass --graph <id> to select one"
        )
    found = listed[0]
    if "cluster" in found.applies_to:
        return found, Policy(found.bundle, None)
    return found, Policy(found.bundle, graph_id or found.applies_to[0].removeprefix("graph."))


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"cannot read '{path}': {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadRequest(f"cannot read '{path}': it is not UTF-8 text") from None
