"""`omnigraph policy …`: who may do what in a cluster."""

from __future__ import annotations

import click

from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import CLUSTER_GRAPH
from omnigraph.cli.served import no_cluster


@click.group(cls=Group)
def policy() -> None:
    """Check the policy of a cluster."""


@policy.command(scope=CLUSTER_GRAPH)
@json_option
def validate(as_json: bool) -> None:
    """Check the policy by itself."""
    raise no_cluster("policy validate")


@policy.command(scope=CLUSTER_GRAPH)
@click.option("--tests", metavar="FILE", required=True, help="The cases and the decisions they expect.")
@json_option
def test(tests: str, as_json: bool) -> None:
    """Compare the decisions of the policy with expected ones."""
    raise no_cluster("policy test")


@policy.command(scope=CLUSTER_GRAPH)
@click.option("--actor", metavar="ACTOR", required=True, help="Who asks.")
@click.option("--action", metavar="ACTION", required=True, help="What is asked, such as branch-merge.")
@click.option("--branch", metavar="NAME", help="The branch it is about.")
@click.option("--target-branch", metavar="NAME", help="The branch it leads to.")
@json_option
def explain(actor: str, action: str, branch: str | None, target_branch: str | None, as_json: bool) -> None:
    """Show the decision about one action, and the rule behind it."""
    raise no_cluster("policy explain")
