"""`omnigraph snapshot`: which tables a branch consists of."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.options import branch_option, json_option, positional_uri
from omnigraph.cli.scope import WRITE
from omnigraph.commit.model import MAIN
from omnigraph.wire.shapes import snapshot_output


@click.command(cls=Command, scope=WRITE)
@positional_uri
@branch_option
@json_option
@click.pass_context
def snapshot(context: click.Context, uri: str | None, branch: str | None, as_json: bool) -> None:
    """Show the tables of a branch and their published versions."""
    shown = snapshot_output(open_graph(resolve(context, uri), "ro").snapshot(branch or MAIN))
    if as_json:
        output.json(shown)
        return
    datasets = shown.pop("datasets")
    output.fields(shown)
    for dataset in datasets:
        output.line(
            f"{dataset['entity_kind']} type '{dataset['type_name']}' "
            f"published_dataset_version={dataset['published_dataset_version']} "
            f"native_dataset_branch={dataset.get('native_dataset_branch', MAIN)} entities={dataset['entity_count']}"
        )
